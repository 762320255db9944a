package metrics

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var (
	metadata = regexp.MustCompile(`^# (TYPE|UNIT|HELP) ([a-z_]+) (.+)$`)
	sample   = regexp.MustCompile(`^([a-z_]+)(\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\})? (\S+)$`)
)

// check checks the syntax of a text in the OpenMetrics format: each family has its metadata first and is not
// interleaved, samples have the suffix of their type, and no series occurs twice.
func check(t *testing.T, text string) {
	t.Helper()
	if !strings.HasSuffix(text, "\n# EOF\n") {
		t.Errorf("expected # EOF at the end of\n%s", text)
	}
	types, series, family := map[string]string{}, map[string]bool{}, ""
	for line := range strings.Lines(strings.TrimSuffix(text, "# EOF\n")) {
		line = strings.TrimSuffix(line, "\n")
		if m := metadata.FindStringSubmatch(line); m != nil {
			if m[1] == "TYPE" {
				if family = m[2]; types[family] != "" {
					t.Errorf("the family %s occurs twice", family)
				}
				types[family] = m[3]
			}
			if m[2] != family {
				t.Errorf("metadata of %s in the family %s", m[2], family)
			}
			if m[1] == "UNIT" && !strings.HasSuffix(family, "_"+m[3]) {
				t.Errorf("the name %s does not end with the unit %s", family, m[3])
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a sample: %q", line)
			continue
		}
		suffix := map[string]string{"counter": "_total", "info": "_info", "gauge": ""}[types[family]]
		if m[1] != family+suffix {
			t.Errorf("expected a sample of %s, got %q", family+suffix, line)
		}
		if key := m[1] + m[2]; series[key] {
			t.Errorf("the series %s occurs twice", key)
		} else {
			series[key] = true
		}
	}
}

// TestServer tests what a client of the server receives.
func TestServer(t *testing.T) {
	s, err := Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.HasPrefix(s.URL(), "http://127.0.0.1:") {
		t.Errorf("expected a loopback address, got %s", s.URL())
	}
	s.Set([]Family{
		{Name: "jobwire_jobs", Counter: true, Help: "Jobs that have ended.", Samples: One(1e7)},
		{Name: "jobwire_latency_seconds", Unit: "seconds", Help: `A "quoted" \ text.`, Samples: []Sample{
			{0.001, []string{"stage", "total", "quantile", "0.5"}}, {0.25, []string{"stage", "a\"b\\c\nd", "quantile", "0.99"}}}},
	})
	r, err := http.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Get("Content-Type"); got != contentType {
		t.Errorf("expected %s, got %s", contentType, got)
	}
	check(t, string(text))
	for _, want := range []string{
		"# TYPE jobwire_jobs counter\n# HELP jobwire_jobs Jobs that have ended.\njobwire_jobs_total 1e+07\n",
		"# UNIT jobwire_latency_seconds seconds\n",
		`jobwire_latency_seconds{stage="total",quantile="0.5"} 0.001` + "\n",
		`jobwire_latency_seconds{stage="a\"b\\c\nd",quantile="0.99"} 0.25` + "\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
}

// TestNoServer tests that a run without metrics can call the methods.
func TestNoServer(t *testing.T) {
	var s *Server
	s.Set(nil)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestInvalidAddress tests that an address on which nothing can listen is an error.
func TestInvalidAddress(t *testing.T) {
	if s, err := Listen("256.0.0.1:0"); err == nil {
		s.Close()
		t.Error("expected an error, got none")
	}
}
