package conform

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/verdict"
	"jobwire/refserver/inject"
)

// TestInference tests which instances of a case run on servers that answer some of them: after three have failed because
// there was no reply, the others are inferred, unless an instance has passed, also when it was repeated.
func TestInference(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n@case echo\n@about An echo.\n@for n in 1..20\n" +
		"Client -> Job Server: ECHO_REQ {n}\nJob Server -> Client: ECHO_RES {n}\n"
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	later := faulty(inject.On("ECHO_REQ", func(m *inject.Message) bool { // other requests identify the protocol
		return len(m.Arg(0)) <= 2 && requests.Add(1) <= 5
	}, (*inject.Message).Drop))
	for _, tt := range []struct {
		name   string
		runner Runner
		want   map[verdict.Verdict]int
	}{
		{"never a reply", Runner{Start: faulty(edit("drop ECHO_REQ")), InferAfter: 3}, map[verdict.Verdict]int{verdict.Failed: 3, verdict.Inferred: 17}},
		{"all run", Runner{Start: faulty(edit("drop ECHO_REQ"))}, map[verdict.Verdict]int{verdict.Failed: 20}},
		{"a reply to the first", Runner{Start: faulty(edit(`drop ECHO_REQ when data != "1"`)), InferAfter: 3}, map[verdict.Verdict]int{verdict.Passed: 1, verdict.Failed: 19}},
		{"a wrong reply", Runner{Start: faulty(edit("alter ECHO_RES data=x")), InferAfter: 3}, map[verdict.Verdict]int{verdict.Failed: 20}},
		{"crashes", Runner{Start: faulty(edit("crash ECHO_REQ")), InferAfter: 3}, map[verdict.Verdict]int{verdict.Crashed: 3, verdict.Inferred: 17}},
		{"crashes after the first", Runner{Start: faulty(edit(`crash ECHO_REQ when data != "1" and len(data) < 3`)), InferAfter: 3},
			map[verdict.Verdict]int{verdict.Passed: 1, verdict.Crashed: 3, verdict.Inferred: 16}},
		{"a reply later", Runner{Start: later, InferAfter: 3, Parallel: 4}, map[verdict.Verdict]int{verdict.Passed: 20}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tt.runner.Timeout = time.Second
			results := tt.runner.Run(t.Context(), s, nil)
			got := map[verdict.Verdict]int{}
			for _, res := range results {
				if got[res.Verdict]++; res.Verdict == verdict.Inferred && !strings.Contains(res.Note, "instances of this case with the same message failed") {
					t.Errorf("%s: %s: %s", tt.name, res.Case.ID, res.Note)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%s: %v, expected %v", tt.name, got, tt.want)
			}
			report := Report{Protocol: gearman.Protocol, Results: results}
			if n := got[verdict.Inferred]; n > 0 && (!report.Failed() || strings.Contains(report.Untested(), "little")) {
				t.Errorf("%s: a run with %d inferred instances: failed %v, %q", tt.name, n, report.Failed(), report.Untested())
			}
		})
	}
}

// TestKnownSilence tests that cases wait briefly for a reply that was missing in other cases, but not for other replies.
func TestKnownSilence(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n"
	src += "@case other\n@about Another echo.\nClient -> Job Server: ECHO_REQ y\nJob Server -> Client: ECHO_RES y\n"
	for n := range 10 {
		src += fmt.Sprintf("@case echo-%d\n@about An echo.\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n", n)
	}
	src += "@case option\n@about An option.\nClient -> Job Server: OPTION_REQ exceptions\nJob Server -> Client: OPTION_RES exceptions\n"
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	const drop = "drop ECHO_REQ when data == \"x\"\ndrop OPTION_REQ"
	test := func(t *testing.T, fault string, short time.Duration) {
		r := Runner{Start: faulty(edit(fault)), Timeout: 4 * time.Second, InferAfter: 3}
		results := r.Run(t.Context(), s, nil)
		failed := 0
		for _, res := range results {
			if res.Case.Family == "gearman.other" {
				continue // it passes, so that the server implements the message
			}
			want := short
			if failed++; failed <= provedSilence || res.Case.Family == "gearman.option" {
				want = r.Timeout
			}
			if res.Verdict != verdict.Failed || res.Play.Failure.Waited != want {
				t.Errorf("%s: %s, after %v, expected failed after %v", res.Case.ID, res.Verdict, res.Play.Failure.Waited, want)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) { test(t, drop, shortTimeout) })
	// A target gets four times as long as it needs for its first reply.
	synctest.Test(t, func(t *testing.T) { test(t, drop+"\ndelay ECHO_RES 300ms", 1200*time.Millisecond) })
}

// TestBudget tests that a run starts no case after its time budget, and that the first instance of each case runs before
// that.
func TestBudget(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n"
	for n := range 3 {
		src += fmt.Sprintf("@case echo-%d\n@about An echo.\n@for n in 1..20\nClient -> Job Server: ECHO_REQ {n}\nJob Server -> Client: ECHO_RES {n}\n", n)
	}
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := Runner{Start: faulty(edit("delay ECHO_RES 1s")), InferAfter: 3, Budget: 10 * time.Second}
		report := &Report{Protocol: gearman.Protocol, Results: r.Run(t.Context(), s, nil)}
		if n := report.Count(verdict.Passed); n < 8 || n > 12 || report.Count(verdict.NotRun) != 60-n {
			t.Errorf("%d cases passed, %d did not run", n, report.Count(verdict.NotRun))
		}
		for i := range 3 {
			if res := report.Results[20*i]; res.Verdict != verdict.Passed {
				t.Errorf("%s: %s, expected passed", res.Case.ID, res.Verdict)
			}
		}
		if stopped := report.Stopped(); !strings.HasPrefix(stopped, "the time budget of 10s was used up after ") {
			t.Errorf("got %q", stopped)
		}
	})
}
