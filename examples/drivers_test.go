package examples

import (
	"bytes"
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jobwire/audit"
	_ "jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
	beanstalkpeer "jobwire/refpeer/beanstalk"
	gearmanpeer "jobwire/refpeer/gearman"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	gearmanserver "jobwire/refserver/gearman"
)

// system is a protocol whose clients and workers are tested here.
type system struct {
	protocol *codec.Protocol
	embedded func() refserver.Machine
	server   string // the real server; see internal/peers
}

var systems = map[string]system{
	"gearman":   {gearman.Protocol, func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) }, "gearmand"},
	"beanstalk": {beanstalk.Protocol, func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) }, "beanstalkd"},
}

// serve starts the embedded server.
func (s system) serve(ctx context.Context) (target.Target, error) {
	return target.Func(ctx, "embedded", func(ctx context.Context, ln net.Listener) error {
		return refserver.New(s.embedded(), refserver.Options{Protocol: s.protocol}).Serve(ctx, ln)
	})
}

// audited returns a function that starts the real server with a proxy that checks all connections.
func (s system) audited(t *testing.T, a *audit.Auditor) func(context.Context) (target.Target, error) {
	t.Helper()
	suite, err := conform.Load(s.protocol)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := conform.LoadProfile(s.server, suite)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, s.server+" behind a proxy", func(ctx context.Context, ln net.Listener) error {
			server, err := target.Exec(ctx, profile.Exec)
			if err != nil {
				return err
			}
			defer server.Stop()
			proxy := audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", server.Addr())
			}}
			return proxy.Serve(ctx, ln)
		})
	}
}

// TestDrivers tests every library with the embedded server and with the real server. Each must fail as docs/findings.md
// says, and in no other way. With -short, it uses only the real server, and each library has a third of the cases that it
// passes.
func TestDrivers(t *testing.T) {
	findings, err := os.ReadFile("../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range Drivers {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			program := d.Prepare(t, ".")
			findingIDs := slices.Concat(slices.Collect(maps.Values(d.Fails)), slices.Collect(maps.Values(d.MayFail)))
			ways := []play.Segmentation{play.Plain, play.Bytewise}
			if d.Bytewise != "" {
				ways, findingIDs = ways[:1], append(findingIDs, d.Bytewise)
			}
			for _, id := range findingIDs {
				if !bytes.Contains(findings, []byte("\n<a id=\""+id+"\"></a>\n")) {
					t.Errorf("docs/findings.md has no finding %s", id)
				}
			}
			sys := systems[d.Protocol]
			if !testing.Short() {
				d.checkCases(t, program, sys.serve, ways...)
				if d.Bytewise != "" {
					d.checkBytewise(t, program)
				}
			}
			peers.Need(t, sys.server)
			a := audit.New(audit.Options{Protocol: sys.protocol})
			if testing.Short() {
				d.part = 1 + i%parts
			}
			d.checkCases(t, program, sys.audited(t, a), play.Plain)
			d.checkBreaches(t, a.Report())
		})
	}
}

// TestReferencePeers: the reference clients and workers pass the same cases.
func TestReferencePeers(t *testing.T) {
	for protocol, drive := range map[string]conform.Program{"gearman": gearmanpeer.Drive, "beanstalk": beanstalkpeer.Drive} {
		d := Driver{Protocol: protocol}
		d.checkCases(t, drive, systems[protocol].serve, play.Plain, play.Bytewise)
	}
}

// checkCases runs the cases with a program, and compares the failures with the known findings.
func (d *Driver) checkCases(t *testing.T, p conform.Program, start func(context.Context) (target.Target, error), ways ...play.Segmentation) {
	t.Helper()
	checked := 0
	for _, r := range d.perform(t, p, start, ways) {
		switch known := d.Fails[r.Case.ID]; {
		case r.Verdict == verdict.Skipped || d.MayFail[r.Case.ID] != "":
			continue
		case r.Verdict == verdict.Passed && known != "":
			t.Errorf("%s passes: %q is no longer true", r.Case.ID, known)
		case r.Verdict != verdict.Passed && known == "":
			t.Errorf("%s: %s: %s", r.Case.ID, r.Verdict, r.Note)
		}
		checked++
	}
	if least := 20; checked < least && (d.part == 0 || checked < least/parts) {
		t.Errorf("%d cases were judged", checked)
	}
}

// checkBreaches compares the violations that a proxy has reported with the known ones of the library.
func (d *Driver) checkBreaches(t *testing.T, r *audit.Report) {
	t.Helper()
	if whole := d.part == 0; r.Connections < 6 || r.Messages[codec.Peer] < 16 || whole && (r.Connections < 20 || r.Messages[codec.Peer] < 50) {
		t.Errorf("the proxy has heard %d messages on %d connections", r.Messages[codec.Peer], r.Connections)
	}
	var broken []codec.RuleID
	for _, b := range r.BrokenRules {
		if b.By == codec.Peer && b.Rule.Level == codec.Must {
			broken = append(broken, b.Rule.ID)
			t.Logf("%s, %d times: %v", b.Rule.ID, b.Count, b.First[0].Err)
		}
	}
	slices.Sort(broken)
	unseen := slices.DeleteFunc(slices.Clone(d.Breaks), func(rule codec.RuleID) bool { return slices.Contains(broken, rule) })
	if len(broken)+len(unseen) != len(d.Breaks) || len(unseen) > 0 && d.part == 0 {
		t.Errorf("after the proxy it breaks %q, and is known to break %q", broken, d.Breaks)
	}
}

// checkBytewise checks that a driver fails if messages arrive byte by byte. A busy machine may deliver several bytes at
// once, so one failed case is sufficient.
func (d *Driver) checkBytewise(t *testing.T, p conform.Program) {
	t.Helper()
	var passed []string
	for _, r := range d.perform(t, p, systems[d.Protocol].serve, []play.Segmentation{play.Bytewise}, d.Protocol+".client.in-turn", d.Protocol+".client.two-tubes", d.Protocol+".worker.timeout", d.Protocol+".worker.loop", d.Protocol+".worker.release", d.Protocol+".worker.touch") {
		if r.Verdict != verdict.Passed {
			return
		}
		passed = append(passed, r.Case.ID)
	}
	t.Errorf("%v pass, so the finding %q is outdated", passed, d.Bytewise)
}

// perform runs the named cases, or all cases, with a program.
func (d *Driver) perform(t *testing.T, p conform.Program, start func(context.Context) (target.Target, error), ways []play.Segmentation, cases ...string) []conform.Result {
	t.Helper()
	suite, err := conform.LoadFS(systems[d.Protocol].protocol, os.DirFS(filepath.Join("cases", d.Protocol)))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) > 0 {
		suite.Cases = slices.DeleteFunc(suite.Cases, func(c *conform.Case) bool { return !slices.Contains(cases, c.ID) })
	}
	if d.part > 0 {
		n := 0
		suite.Cases = slices.DeleteFunc(suite.Cases, func(c *conform.Case) bool {
			if d.Fails[c.ID] != "" || d.MayFail[c.ID] != "" {
				return false
			}
			n++
			return n%parts != d.part-1
		})
	}
	// A case that is listed as flaky keeps its verdict if it passes, and is not run again if it exceeds a time limit.
	known := &conform.Profile{Name: d.Name}
	for id, finding := range d.Fails {
		known.Flaky = append(known.Flaky, conform.Exception{Cases: id, Why: finding})
	}
	for id, finding := range d.MayFail {
		known.Flaky = append(known.Flaky, conform.Exception{Cases: id, Why: finding})
	}
	for _, id := range cases {
		known.Flaky = append(known.Flaky, conform.Exception{Cases: id, Why: d.Bytewise})
	}
	r := conform.Runner{Start: start, Programs: map[string]conform.Program{"Client": p, "Worker": p}, Segments: ways, Timeout: 20 * time.Second, Parallel: 4, Profile: known}
	return r.Run(t.Context(), suite, nil)
}
