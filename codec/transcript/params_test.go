package transcript_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/transcript"
)

// labels returns the instances of a case, as "n=1,m=2".
func labels(scripts []*transcript.Script) (all []string) {
	for _, s := range scripts {
		var pairs []string
		for _, p := range s.Params {
			pairs = append(pairs, p.Name+"="+p.Label)
		}
		all = append(all, strings.Join(pairs, ","))
	}
	return all
}

func parseFor(t *testing.T, lines ...string) []*transcript.Script {
	t.Helper()
	scripts, err := transcript.Parse(beanstalk.Protocol, "x.wire", []byte("@case c\n"+strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// TestMeasure checks that the steps below each "measure" line belong to a sample of their own, also those of a
// repetition.
func TestMeasure(t *testing.T) {
	steps := parseFor(t, "Producer -> Server: use a", "each i in 1..2:", "  measure put-first at 100:", "    Producer -> Server: use b",
		"    Server -> Producer: USING b", "measure other at 007:", "  Producer -> Server: use c")[0].Steps
	var got []string
	for _, st := range steps {
		got = append(got, fmt.Sprint(st.Sample.Number, st.Sample.Name, st.Sample.Size))
	}
	if want := []string{"00", "1put-first100", "1put-first100", "2put-first100", "2put-first100", "3other7"}; !slices.Equal(got, want) {
		t.Errorf("got the samples %q, want %q", got, want)
	}
}

// TestSeparated checks the lines that joined and spaced make.
func TestSeparated(t *testing.T) {
	for values, want := range map[string]string{
		"joined(bury 1 0)": `"bury1 0" "bury 10"`,
		"spaced(bury 1 0)": `"bury\t1 0" "bury\v1 0" "bury 1\v0" "bury 1\f0"`,
	} {
		scripts, err := transcript.Parse(beanstalk.Protocol, "x.wire", []byte("@case c\n@for line in "+values+"\nProducer -> Server: raw {line}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range scripts {
			got = append(got, strconv.Quote(string(s.Steps[0].Choices[0].Bytes)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s:\ngot  %s\nwant %s", values, strings.Join(got, " "), want)
		}
	}
}

// TestValuesOfParameters tests that the values after @for, such as ranges, bounds, powers and the maximum of a field,
// produce one instance of the case each.
func TestValuesOfParameters(t *testing.T) {
	tests := []struct{ values, want string }{
		{"1 2 64", "1 2 64"},
		{"3..5 4 9", "3 4 5 9"},
		{"bounds(1,200)", "1 2 199 200"},
		{"bounds(1, max(use.tube)+1)", "1 2 200 201"},
		{"powers(1,9)", "1 2 3 4 5 7 8 9"},
		{"powers(4294967290,max(put.priority))", "4294967290 4294967295"},
		{"max(put.priority) max(put.priority)+1", "4294967295 4294967296"},
		{`long="x"*100 word`, "long word"},
		{"1..4 but 1 3", "2 4"},
	}
	for _, test := range tests {
		scripts, err := transcript.Parse(beanstalk.Protocol, "x.wire", []byte("@case c\n@for n in "+test.values+"\nProducer -> Server: use {n}\n"))
		if err != nil {
			if test.want != "" {
				t.Errorf("%s: %v", test.values, err)
			}
			continue
		}
		if got := strings.ReplaceAll(strings.Join(labels(scripts), " "), "n=", ""); got != test.want {
			t.Errorf("%s: %s, want %s", test.values, got, test.want)
		}
	}
	codes, err := transcript.Parse(danga.Protocol, "x.wire", []byte("@case c\n@for n in unused(0,255)\nWorker -> Job Server: raw 47 45 41 52\n"))
	if err != nil || len(codes) != 256-len(danga.Protocol.Types) || labels(codes)[len(codes)-1] != "n=255" {
		t.Errorf("%d unused codes of Danga, %v", len(codes), err)
	}
	if n := len(parseFor(t, "@for c in illegal(use.tube)", `Producer -> Server: unchecked use {c}`)); n < 150 || n > 256 {
		t.Errorf("%d characters that a name may not have", n)
	}
}

// TestReferences tests that {n} in a case is replaced by the value of the parameter, also in an expression, a loop and
// the description, and that the lines keep their numbers.
func TestReferences(t *testing.T) {
	scripts := parseFor(t, "@about {n} bytes", "@for n in 1..2", `@for b in nul="\0"`,
		`Producer -> Server: put 0 0 {n+1} {b}`,
		`each i in 1..{n}:`,
		`  Producer {i} -> Server: use "x"*{i}`,
		`    or closes`,
		`Server -> Producer: INSERTED *`)
	if len(scripts) != 2 {
		t.Fatalf("%d scripts, want 2", len(scripts))
	}
	s := scripts[1]
	var steps []string
	for i := range s.Steps {
		steps = append(steps, fmt.Sprintf("%d %s", s.Steps[i].Line, s.Steps[i].Source))
	}
	want := []string{
		`5 Producer -> Server: put 0 0 3 "\0"`,
		`7 Producer 1 -> Server: use "x"*1`,
		`7 Producer 2 -> Server: use "x"*2`,
		`9 Server -> Producer: INSERTED *`,
	}
	if s.Value("about") != "2 bytes" || !slices.Equal(steps, want) {
		t.Errorf("about %q, steps\n%s", s.Value("about"), strings.Join(steps, "\n"))
	}
}

// TestPairwise checks that, with three or more parameters, each pair of values occurs in an instance, and
// that there are fewer instances than combinations.
func TestPairwise(t *testing.T) {
	scripts := parseFor(t, "@for a in 1..5", "@for b in 1..4", "@for c in 1..3", "@for d in 1..3", "Producer -> Server: use x{a}{b}{c}{d}")
	if len(scripts) > 35 {
		t.Errorf("%d instances, want at most 35 of 180", len(scripts))
	}
	seen := map[string]bool{}
	for _, s := range scripts {
		for i, p := range s.Params {
			for _, q := range s.Params[i+1:] {
				seen[p.Name+p.Label+q.Name+q.Label] = true
			}
		}
	}
	if want := 5*4 + 5*3 + 5*3 + 4*3 + 4*3 + 3*3; len(seen) != want {
		t.Errorf("%d pairs, want %d", len(seen), want)
	}
}

// TestParameterErrors tests that a mistake in @for, in a reference or in a loop, or more instances than allowed, is an
// error that says what was expected.
func TestParameterErrors(t *testing.T) {
	tests := []struct{ lines, want string }{
		{"@for n 1 2", `1 2`},
		{"@for n in", "expected a name"},
		{"@for n in 5..4", "at least one value"},
		{"@for n in max(use.tub)", `did you mean tube?`},
		{"@for n in max(usee.tube)", `did you mean use?`},
		{"@for n in max(put.body)", `has no limit`},
		{"@for n in some(1)", `unknown values`},
		{"@for n in 1 2 but 3", `the label of one of several values`},
		{"@for n in 1..100000", `at most 1000`},
		{"@for n in 1..1001 but 1", `at most 1000`},
		{"@for n in 1..32\n@for m in 1..32", `at most 1000`},
		{"@for a in 1\n@for b in 1\n@for c in 1\n@for d in 1\n@for e in 1\n@for f in 1\n@for g in 1\n@for h in 1\n@for i in 1\n@for j in 1\n" +
			"@for k in 1\n@for l in 1\n@for m in 1\n@for n in 1\n@for o in 1\n@for p in 1\n@for q in 1", `at most 16 parameters`},
		{"@for n in powers(1,1" + strings.Repeat("0", 40) + ")", `at most 128 bits`},
		{"@for n in 1\neach i in 1..1000:\n each j in 1..1000:\n  each k in 2..1:\n   x", `at most 4 MiB`},
		{"@for n in 1\neach i in 9223372036854775807..9223372036854775807:\n Producer -> Server: use {i", ``},
		{"@for n in 1\n@for n in 2", `a different name`},
		{"@for n in 1\nProducer -> Server: use {m}", `expected the name of a parameter`},
		{"@for n in a\nProducer -> Server: use {n+1}", `expected a parameter that is a number`},
		{"@for n in 1\neach i in 1..{n}:\nProducer -> Server: use x", `expected indented lines`},
		{"measure x at 1:\nProducer -> Server: use x", `expected indented lines`},
	}
	for _, test := range tests {
		_, err := transcript.Parse(beanstalk.Protocol, "x.wire", []byte("@case c\n"+test.lines+"\nProducer -> Server: use x\n"))
		if err == nil || test.want != "1 2" && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.lines, err, test.want)
		}
	}
}
