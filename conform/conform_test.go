package conform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/conform/report"
	mutants "jobwire/internal/mutant"
	"jobwire/internal/schemacheck"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver"
	gearmanserver "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// protocols are the protocols that have cases.
var protocols = []struct {
	protocol *codec.Protocol
	silent   map[string]string // message types that no server can be made to send, and the rule that states the reason
}{
	{protocol: gearman.Protocol},
	{
		protocol: beanstalk.Protocol,
		silent: map[string]string{
			"BURIED_JOB":     "beanstalk.put.buried",
			"DRAINING":       "beanstalk.drain.refuses-put",
			"OUT_OF_MEMORY":  "beanstalk.error.out-of-memory",
			"INTERNAL_ERROR": "beanstalk.error.internal",
		},
	},
	{protocol: danga.Protocol},
	{
		protocol: gearmonkey.Protocol,
		silent: map[string]string{
			"null":          "resp.reply.resp3",
			"double":        "resp.reply.resp3",
			"boolean":       "resp.reply.resp3",
			"big-number":    "resp.reply.resp3",
			"verbatim":      "resp.reply.resp3",
			"map":           "resp.reply.resp3",
			"push":          "resp.reply.resp3",
			"blob-error":    "resp.reply.blob-error",
			"pmessage":      "resp.pubsub.patterns-and-shards",
			"psubscribed":   "resp.pubsub.patterns-and-shards",
			"punsubscribed": "resp.pubsub.patterns-and-shards",
			"smessage":      "resp.pubsub.patterns-and-shards",
			"ssubscribed":   "resp.pubsub.patterns-and-shards",
			"sunsubscribed": "resp.pubsub.patterns-and-shards",
		},
	},
}

// suite returns the suite that tests of the package itself use.
func suite(t *testing.T) *conform.Suite { t.Helper(); return mutanttest.Load(t, gearman.Protocol) }

// serving returns a function that starts the reference server of a protocol in memory.
func serving(e *catalog.Entry) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, e.Protocol.Name, func(ctx context.Context, ln net.Listener) error {
			o := refserver.Options{Protocol: e.Protocol, Codec: codec.Options{Waive: e.Lenient}}
			return refserver.New(e.New(), o).Serve(ctx, ln)
		})
	}
}

// load returns the suite of Gearman with the cases of one file.
func load(t *testing.T, src string) *conform.Suite {
	t.Helper()
	s, err := conform.LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a suite in virtual time. The server is the reference server of Gearman unless r has a function Start.
func run(t *testing.T, r conform.Runner, s *conform.Suite) (results []conform.Result) {
	t.Helper()
	if r.Start == nil {
		r.Start = reference
	}
	synctest.Test(t, func(t *testing.T) { results = r.Run(t.Context(), s, nil) })
	return results
}

// TestLoadSelected checks that the selected part of a suite is the same whether or not the other cases are parsed.
func TestLoadSelected(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		whole := mutanttest.Load(t, p.protocol)
		first, last := whole.Cases[0], whole.Cases[len(whole.Cases)-1]
		for _, run := range [][]string{{first.ID}, {first.Family, last.Family}, {"case:" + last.Family}, {string(last.Rules[0])},
			{"*-hand*"}, {"absent"}, {"[" + last.Family}} {
			part, err := conform.LoadSelected(p.protocol, run)
			if err != nil {
				t.Fatal(err)
			}
			got, gotErr := part.Select(run, nil)
			want, wantErr := whole.Select(run, nil)
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("%q: got the error %v, want %v", run, gotErr, wantErr)
			}
			if wantErr != nil {
				continue
			}
			same := func(a, b *conform.Case) bool {
				return a.ID == b.ID && a.Section == b.Section && a.Script.Line == b.Script.Line && len(a.Script.Steps) == len(b.Script.Steps)
			}
			if !slices.EqualFunc(got.Cases, want.Cases, same) {
				t.Errorf("%q: got %d cases, want %d", run, len(got.Cases), len(want.Cases))
			}
		}
	}
}

// TestEveryTypeHasACase checks that the cases together send or expect every message type in every direction that it has.
func TestEveryTypeHasACase(t *testing.T) {
	t.Parallel()
	type way struct {
		msgType *codec.Type
		from    codec.Side
	}
	for _, p := range protocols {
		seen := map[way]bool{}
		for _, c := range mutanttest.Load(t, p.protocol).Cases {
			for _, st := range c.Script.Steps {
				for _, ch := range st.Choices {
					if ch.Type != nil && !ch.Unchecked {
						seen[way{ch.Type, st.From}] = true
					}
				}
			}
		}
		for _, msgType := range p.protocol.Types {
			for _, from := range []codec.Side{codec.Peer, codec.Server} {
				if msgType.Sends(from) && !seen[way{msgType, from}] && p.silent[msgType.Name] == "" {
					t.Errorf("no case of %s has %s from the %s", p.protocol.Title, msgType.Name, from)
				}
			}
		}
		for name, id := range p.silent {
			msgType, rule := p.protocol.TypeNamed(name), p.protocol.Rule(codec.RuleID(id))
			if msgType == nil || rule == nil || rule.Untestable == "" || seen[way{msgType, codec.Server}] {
				t.Errorf("%s: it is sent after all, or %s does not say why nothing can show it", name, id)
			}
		}
	}
}

// TestEveryRuleIsCovered checks that every rule of each protocol has a test, or a reason why no test is possible.
func TestEveryRuleIsCovered(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		rules, err := conform.Coverage(mutanttest.Load(t, p.protocol))
		if err != nil {
			t.Fatal(err)
		}
		if len(rules) != len(p.protocol.Rules) {
			t.Errorf("%d rules are listed of %d", len(rules), len(p.protocol.Rules))
		}
		for _, r := range rules {
			if len(r.TestedBy) == 0 && r.Untestable == "" {
				t.Errorf("%s: no case, no vector, and no reason", r.ID)
			}
			if len(r.TestedBy) > 0 && r.Untestable != "" {
				t.Errorf("%s: called untestable, but tested by %v", r.ID, r.TestedBy)
			}
		}
	}
}

const (
	head = "@section Echo\n"
	echo = "@case echo\n@about An echo.\n@rules gearman.echo.same-data\nClient -> Job Server: ECHO_REQ $x\nJob Server -> Client: ECHO_RES $x\n"
)

// smallSuite returns a suite of one case and, if alone is set, another case that needs a server of its own.
func smallSuite(t *testing.T, alone bool) *conform.Suite {
	t.Helper()
	src := head + echo
	if alone {
		src += strings.Replace(echo, "@case echo", "@case alone\n@alone", 1)
	}
	return load(t, src)
}

// TestLoadRefuses tests that a mistake in a file of cases, such as an unknown rule or a duplicate name, is an error
// that names the file and the line.
func TestLoadRefuses(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"unknown key", head + strings.Replace(echo, "@about", "@abuot", 1), "a.wire:3:"},
		{"unknown rule", head + strings.Replace(echo, "same-data", "other-data", 1), "unknown rule gearman.echo.other-data"},
		{"no rule", head + strings.Replace(echo, "@rules gearman.echo.same-data\n", "", 1), "has no @rules"},
		{"no section", echo, "has no @section"},
		{"twice", head + echo + echo, "a.wire:7:"},
		{"unknown type", head + strings.Replace(echo, "ECHO_REQ", "ECHO_RQ", 1), "a.wire:5:"},
		{"a pattern for a name", head + strings.Replace(echo, "@case echo", "@case ec*", 1), "invalid case name"},
		{"tests another rule", head + echo + "@tests gearman.echo.same-data gearman.text.form\n",
			"a.wire:7:8: expected rules of @rules after @tests, got gearman.text.form"},
		{"a rule without a test",
			head + strings.Replace(echo, "same-data", "same-data gearman.submit.created", 1) + "@tests gearman.echo.same-data\n",
			"a.wire:4:2: expected an @tests line with each rule after the first one, got none with gearman.submit.created"},
		{"@alone with a value", head + strings.Replace(echo, "@about", "@alone yes\n@about", 1), "takes no value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := conform.LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(tt.src)}})
			var e *transcript.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || e.Line == 0 {
				t.Errorf("%v; want a place, and %q", err, tt.want)
			}
		})
	}
	both := fstest.MapFS{"a.wire": {Data: []byte(head + echo)}, "b.wire": {Data: []byte(head + echo)}}
	if _, err := conform.LoadFS(gearman.Protocol, both); err == nil || !strings.Contains(err.Error(), "b.wire:2:1: duplicate case name gearman.echo: a.wire:2 has a case of this name") {
		t.Errorf("the same ID in two files: %v", err)
	}
	if _, err := conform.LoadFS(gearman.Protocol, fstest.MapFS{}); err == nil {
		t.Error("no files: no error")
	}
}

// TestSelect tests that cases can be selected by ID, rule and pattern, and left out by pattern, and that a pattern
// without a match is an error.
func TestSelect(t *testing.T) {
	t.Parallel()
	s := suite(t)
	one, err := s.Select([]string{"gearman.submit.created"}, nil)
	if err != nil || len(one.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(one.Cases), err)
	}
	for _, c := range one.Cases {
		if c.ID != "gearman.submit.created" && !slices.Contains(c.Rules, "gearman.submit.created") {
			t.Errorf("%s has neither the ID nor the rule", c.ID)
		}
	}
	rest, err := s.Select(nil, []string{"gearman.submit.*"})
	if err != nil || len(rest.Cases) == 0 || len(rest.Cases) == len(s.Cases) {
		t.Errorf("%d of %d cases are left, %v", len(rest.Cases), len(s.Cases), err)
	}
	for _, bad := range [][2][]string{{{"nothing.*"}, nil}, {nil, {"nothing.*"}}, {{"["}, nil}} {
		if _, err := s.Select(bad[0], bad[1]); err == nil {
			t.Errorf("Select(%q, %q) is an empty success", bad[0], bad[1])
		}
	}
}

// serve returns a function that starts a target that calls handle for each connection. An error of handle ends the target.
func serve(handle func(net.Conn) error) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "fake", func(ctx context.Context, ln net.Listener) error {
			defer context.AfterFunc(ctx, func() { ln.Close() })()
			for {
				c, err := ln.Accept()
				if err != nil {
					return nil
				}
				// A case sends bytes, and the check whether the target accepts connections does not.
				c.SetDeadline(time.Now().Add(5 * time.Second))
				if _, err := io.ReadFull(c, make([]byte, 12)); err == nil {
					err = handle(c)
					if err != nil {
						c.Close()
						return err
					}
				}
				c.Close()
			}
		})
	}
}

// TestVerdictsOnBadTargets tests that conform reports a target that is absent, ends, never replies, disconnects or
// sends another protocol with the verdict and the reason that fit.
func TestVerdictsOnBadTargets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		start func(context.Context) (target.Target, error)
		want  verdict.Verdict
		note  string
	}{
		{"absent", func(context.Context) (target.Target, error) { return target.Address("memory:absent") }, verdict.Unreachable, "refused"},
		{"does not start", func(context.Context) (target.Target, error) { return nil, &target.Error{Target: "x", Reason: "no"} }, verdict.Unreachable, "no"},
		{"dies", serve(func(net.Conn) error { return errors.New("out of luck") }), verdict.Crashed, "out of luck"},
		{"never answers", serve(func(c net.Conn) error { io.Copy(io.Discard, c); return nil }), verdict.Failed, "got nothing within 1s"},
		{"hangs up", serve(func(net.Conn) error { return nil }), verdict.Failed, "expected ECHO_RES, got "},
		{"garbage", serve(func(c net.Conn) error { c.Write([]byte("\x00BAD and worse")); return nil }), verdict.Failed, "magic"},
		{"another protocol", serve(func(c net.Conn) error { c.Write([]byte("HTTP/1.1 400 Bad Request\r\n")); return nil }), verdict.Failed, "no command waits for one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var results []conform.Result
			var reported []string
			synctest.Test(t, func(t *testing.T) {
				r := conform.Runner{Start: tt.start, Timeout: time.Second, Parallel: 2}
				results = r.Run(t.Context(), smallSuite(t, false), func(r conform.Result) { reported = append(reported, r.Case.ID) })
			})
			if len(results) != 1 || len(reported) != 1 || results[0].Verdict != tt.want || !strings.Contains(results[0].Note, tt.note) {
				t.Fatalf("%+v, reported %v; want %s and %q", results, reported, tt.want, tt.note)
			}
			report := &conform.Report{Protocol: gearman.Protocol, Target: "fake", Results: results}
			if !report.Failed() || (report.Unreachable() != "") != (tt.want == verdict.Unreachable) || report.Lost() != (tt.want == verdict.Crashed) {
				t.Errorf("failed %v, unreachable %v, lost %v", report.Failed(), report.Unreachable(), report.Lost())
			}
			report.Results = append(report.Results, conform.Result{Case: results[0].Case, Verdict: verdict.Passed})
			if report.Lost() {
				t.Error("lost, though a case passed")
			}
		})
	}
}

// TestInconsistent tests a server that treats the bytes of each read as one packet.
func TestInconsistent(t *testing.T) {
	t.Parallel()
	start := func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "hasty", func(ctx context.Context, ln net.Listener) error {
			defer context.AfterFunc(ctx, func() { ln.Close() })()
			for {
				c, err := ln.Accept()
				if err != nil {
					return nil
				}
				buf := make([]byte, 4096)
				if n, _ := c.Read(buf); n > 12 {
					buf[3], buf[7] = 'S', 17 // the ECHO_RES in reply to the ECHO_REQ
					c.Write(buf[:n])
				}
				c.Close()
			}
		})
	}
	for _, how := range []play.Segmentation{play.Bytewise, play.Coalesced} {
		r := conform.Runner{Start: start, Timeout: time.Second, Segments: []play.Segmentation{play.Plain, how}}
		res := run(t, r, smallSuite(t, false))[0]
		want := map[play.Segmentation]verdict.Verdict{play.Bytewise: verdict.Inconsistent, play.Coalesced: verdict.Passed}[how]
		if res.Verdict != want || want == verdict.Inconsistent && !strings.Contains(res.Note, "passed with plain writes, failed with bytewise writes") {
			t.Errorf("plain and %s: %s, %s; want %s", how, res.Verdict, res.Note, want)
		}
	}
}

// TestCrashingCaseIsFound tests that the case that crashes a server is found, although many cases run at the same
// time.
func TestCrashingCaseIsFound(t *testing.T) {
	t.Parallel()
	src := head + echo
	for i := range 12 {
		src += strings.Replace(echo, "@case echo", fmt.Sprintf("@case echo-%d", i), 1)
	}
	src += "@case poison\n@about Poison.\n@rules gearman.echo.same-data\nClient -> Job Server: ECHO_REQ poison\nJob Server -> Client: ECHO_RES poison\n" +
		// Nothing uses the server for a while, so the crash is noticed late.
		"@case slow\n@alone\n@about A slow case.\n@rules gearman.echo.same-data\nJob Server -> Client: nothing for 800ms\n"
	fragile := mutant("fragile", "", `crash ECHO_REQ when data == "poison"`).Start
	for _, res := range run(t, conform.Runner{Start: fragile, Parallel: 8, Timeout: time.Second}, load(t, src)) {
		want := verdict.Passed
		if res.Case.ID == "gearman.poison" {
			want = verdict.Crashed
		}
		if res.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", res.Case.ID, res.Verdict, res.Note, want)
		}
	}
}

// TestCrashIsReported tests that a crash of the server fails the case, unless the profile lists the case with crash:
// true, and that a profile which lists it only as failing is not enough.
func TestCrashIsReported(t *testing.T) {
	s := smallSuite(t, false)
	crash := serve(func(net.Conn) error { return errors.New("out of luck") })
	for _, tt := range []struct {
		known, flaky []conform.Exception
		want         verdict.Verdict
		note         string
	}{
		{nil, nil, verdict.Crashed, "the target crashed: out of luck"},
		{[]conform.Exception{{Cases: "gearman.*", Why: "it is wrong"}}, nil, verdict.Crashed, `the profile lists the case as failing, but not as crashing ("crash: true"): the target crashed: out of luck`},
		{nil, []conform.Exception{{Cases: "gearman.*", Why: "it may fail"}}, verdict.Crashed, "but not as crashing"},
		{[]conform.Exception{{Cases: "gearman.*", Crash: true, Why: "it crashes"}}, nil, verdict.Known, "it crashes: the target crashed: out of luck"},
		{nil, []conform.Exception{{Cases: "gearman.*", Crash: true, Why: "it may crash"}}, verdict.Flaky, "it may crash: the target crashed: out of luck"},
	} {
		r := conform.Runner{Start: crash, Timeout: time.Second, Profile: &conform.Profile{Name: "x", Known: tt.known, Flaky: tt.flaky}}
		res := run(t, r, s)[0]
		if res.Verdict != tt.want || !strings.Contains(res.Note, tt.note) {
			t.Errorf("known %v, flaky %v: %s, %q; want %s, %q", tt.known, tt.flaky, res.Verdict, res.Note, tt.want, tt.note)
		}
		if res.Crash == nil || res.Crash.Fault != "out of luck" {
			t.Errorf("known %v, flaky %v: the result has the crash %+v", tt.known, tt.flaky, res.Crash)
		}
	}
}

// TestPassOfSomeInstances tests that a case that a profile lists passes unexpectedly only if all its instances ran and
// passed: the server may fail in an instance that did not run.
func TestPassOfSomeInstances(t *testing.T) {
	src := head + "@case echoes\n@about x\n@rules gearman.echo.same-data\n@for n in 1 2\nClient -> Job Server: ECHO_REQ {n}\nJob Server -> Client: ECHO_RES {n}\n"
	s := load(t, src)
	profile, err := conform.ParseProfile("a.yaml", []byte("name: a\nknown:\n- cases: gearman.echoes*\n  why: it fails\n"), s)
	if err != nil {
		t.Fatal(err)
	}
	r := conform.Runner{Profile: profile}
	for _, tt := range []struct {
		suite *conform.Suite
		want  verdict.Verdict
	}{{s, verdict.Unexpected}, {s.First(), verdict.Passed}} {
		for _, res := range run(t, r, tt.suite) {
			if res.Verdict != tt.want {
				t.Errorf("%d of 2 instances ran: %s: %s, want %s", len(tt.suite.Cases), res.Case.ID, res.Verdict, tt.want)
			}
		}
	}
}

// TestNonStrictNoteNamesTheReply tests that the note of a non-strict result names the expected and the received reply
// and the line of the case file that accepts it, and that the JSON report has the received reply.
func TestNonStrictNoteNamesTheReply(t *testing.T) {
	src := head + "@case non-strict\n@about x\n@rules gearman.echo.same-data\nClient -> Job Server: ECHO_REQ a\nJob Server -> Client: ECHO_RES b\n  or closes\n  or non-strict ERROR * *\n  or non-strict ECHO_RES a\n"
	s := load(t, src)
	res := run(t, conform.Runner{}, s)[0]
	want := "expected ECHO_RES b or the end of the connection, got ECHO_RES a, which the case also accepts (line 9 of the case file)"
	if res.Verdict != verdict.NonStrict || res.Note != want {
		t.Errorf("%s: %s\nwant: %s", res.Verdict, res.Note, want)
	}
	var out bytes.Buffer
	if err := report.WriteJSON(&out, []*conform.Report{{Protocol: gearman.Protocol, Results: []conform.Result{res}}}); err != nil {
		t.Fatal(err)
	}
	schemacheck.Check(t, "../docs/schema/conform.json", out.Bytes())
	if !strings.Contains(out.String(), `"got": "ECHO_RES a"`) {
		t.Errorf("no alternative in:\n%s", &out)
	}
}

// TestCaseWithAloneGetsItsOwnServer tests that a case with @alone gets a server of its own, and is skipped if the
// server was not started by conform.
func TestCaseWithAloneGetsItsOwnServer(t *testing.T) {
	t.Parallel()
	started := 0
	start := func(ctx context.Context) (target.Target, error) { started++; return reference(ctx) }
	for _, res := range run(t, conform.Runner{Start: start}, smallSuite(t, true)) {
		if res.Verdict != verdict.Passed {
			t.Errorf("%s: %s, %s", res.Case.ID, res.Verdict, res.Note)
		}
	}
	if started != 2 {
		t.Errorf("%d servers were started, want 2", started)
	}
	synctest.Test(t, func(t *testing.T) {
		shared, err := reference(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer shared.Stop()
		r := conform.Runner{Start: func(context.Context) (target.Target, error) { return target.Address(shared.Addr()) }}
		results := r.Run(t.Context(), smallSuite(t, true), nil)
		if results[0].Verdict != verdict.Passed || results[1].Verdict != verdict.Skipped {
			t.Errorf("at an address: %s and %s, want passed and skipped", results[0].Verdict, results[1].Verdict)
		}
	})
}

// mutant returns the reference server with faults.
func mutant(name, kills string, faults ...string) mutants.Mutant {
	return mutants.Mutant{Name: name, About: "It is wrong.", KilledBy: strings.Fields(kills), Start: func(ctx context.Context) (target.Target, error) {
		p := inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) }}
		return target.InMemory(ctx, name, func(ctx context.Context, ln net.Listener) error {
			return p.Serve(ctx, ln, &inject.MutantSpec{Name: name, Fault: strings.Join(faults, "\n")})
		})
	}}
}

// reference starts the reference server in memory.
func reference(ctx context.Context) (target.Target, error) { return mutant("reference", "").Start(ctx) }
