package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/pcap"
	"jobwire/play"
)

// violation is a violation in a capture.
type violation struct {
	rule codec.RuleID
	by   codec.Side
	text string
}

// audited plays a case against a server, captures the traffic, and returns the violations of the server and the peers, as
// the function violations does. limit is how long the case waits for a message.
func audited(t *testing.T, sys *catalog.Entry, c *conform.Case, limit time.Duration, start func(context.Context) (target.Target, error)) (plain, all []violation) {
	t.Helper()
	srv, err := start(t.Context())
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	defer srv.Stop()
	tp := tapped(t, srv.Addr())
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", tp.Addr().String())
	}
	play.Peers(t.Context(), c.Script, dial, play.Options{Timeout: limit, Codec: codec.Options{Waive: sys.Lenient}})
	return violations(t, sys, c.ID, tp.capture(t))
}

// violations returns the violations in a capture: first those that single messages show, and then all violations, which
// include those that show only together with earlier messages.
func violations(t *testing.T, sys *catalog.Entry, name string, capture []byte) (plain, all []violation) {
	t.Helper()
	for _, audit := range []bool{false, true} {
		f, err := pcap.NewFile(name, bytes.NewReader(capture))
		if err != nil {
			t.Error(err)
			return nil, nil
		}
		plain, all = all, nil
		d := pcap.NewDecoder(pcap.Options{Protocol: sys.Protocol, Audit: audit}, func(it *pcap.Item) {
			if it.Kind == pcap.Violates {
				all = append(all, violation{it.Err.Rule, it.From, fmt.Sprintf("%q: %v", it.Raw[:min(len(it.Raw), 60)], it.Err)})
			}
		})
		if err := d.Decode(f); err != nil {
			t.Error(err)
		}
	}
	return plain, all
}

// each calls do for all elements of a list, up to 24 at a time.
func each[T any](list []T, do func(T)) {
	var wg sync.WaitGroup
	next := make(chan T)
	for range 24 {
		wg.Go(func() {
			for x := range next {
				do(x)
			}
		})
	}
	for _, x := range list {
		next <- x
	}
	close(next)
	wg.Wait()
}

// serverCases loads the cases that test a server. byName has them by family.
func serverCases(t *testing.T, sys *catalog.Entry) (cases []*conform.Case, byName map[string][]*conform.Case) {
	t.Helper()
	suite, err := conform.Load(sys.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	byName = map[string][]*conform.Case{}
	for _, c := range suite.Cases {
		if c.Program == "" {
			cases, byName[c.Family] = append(cases, c), append(byName[c.Family], c)
		}
	}
	return cases, byName
}

// outOfTurn lists, by protocol, the rules that peers break on purpose in cases that test how the server handles it.
var outOfTurn = map[string][]string{
	"gearman":   {"gearman.worker.uses-the-handle", "gearman.work.final"},
	"beanstalk": {"beanstalk.client.own-jobs"},
	"danga":     {"danga.complete.no-job", "danga.status.no-job", "danga.sync.one-at-a-time"},
}

// TestAuditOfCases audits the cases with the reference server: the audit must report no violation of the server, and
// only those violations of the peers that the case intends.
func TestAuditOfCases(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	for _, sys := range catalog.All() {
		t.Run(sys.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			cases, _ := serverCases(t, sys)
			each(cases, func(c *conform.Case) {
				if slow(c) {
					return
				}
				plain, all := audited(t, sys, c, time.Second, func(ctx context.Context) (target.Target, error) { return new(targetFlags).start(ctx, sys) })
				for _, a := range all {
					switch {
					case a.by == codec.Server:
						t.Errorf("%s: the server: %s", c.ID, a.text)
					case a.by == codec.Peer && !slices.Contains(plain, a) && !slices.Contains(c.Rules, a.rule) && !slices.Contains(outOfTurn[sys.Protocol.Name], string(a.rule)):
						t.Errorf("%s: a peer: %s", c.ID, a.text)
					}
				}
			})
		})
	}
}

// slow reports whether a case has an argument longer than 4 MiB.
func slow(c *conform.Case) bool {
	for _, st := range c.Script.Steps {
		for _, a := range st.Choices[0].Args {
			if len(a.Value) > 4<<20 {
				return true
			}
		}
	}
	return false
}

// TestAuditOfMutants runs each faulty server of the table in audit_faulty_test.go with its case: the audit of the capture
// must report that the server breaks the listed rule.
func TestAuditOfMutants(t *testing.T) {
	t.Parallel()
	suites := map[string]map[string][]*conform.Case{}
	mutants := map[string]conform.Mutant{}
	for _, sys := range catalog.All() {
		name := sys.Protocol.Name
		_, suites[name] = serverCases(t, sys)
		for _, m := range sys.Mutants() {
			mutants[name+" "+m.Name] = m
		}
	}
	each(faultyServers, func(g struct{ protocol, mutant, of, rule string }) {
		sys, err := entryNamed(g.protocol)
		if err != nil {
			t.Error(err)
			return
		}
		for try, limit := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second} { // faults that depend on timing may not show on a busy machine
			var found []violation
			for _, instance := range suites[g.protocol][g.of] {
				_, of := audited(t, sys, instance, limit, mutants[g.protocol+" "+g.mutant].Start)
				found = append(found, of...)
			}
			if slices.ContainsFunc(found, func(a violation) bool { return a.by == codec.Server && string(a.rule) == g.rule }) {
				return
			}
			if try == 2 {
				t.Errorf("%s: %s is not accused of %s but of %v", g.of, g.mutant, g.rule, found)
			}
		}
	})
}

// TestAuditOfRealServers audits the cases with real servers: the audit must report only violations that are known.
func TestAuditOfRealServers(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	for _, tt := range []struct {
		protocol, server string
		shared           bool   // cases share one server, because it takes long to start
		known            string // rules that the server breaks according to docs/findings.md
	}{
		{"gearman", "gearmand", false, "gearman.grab.assign-unique gearman.option.unknown gearman.submit.opaque-workload"},
		{"gearman", "gearmand-perl", true, "gearman.work.data gearman.work.warning"},
		{"beanstalk", "beanstalkd", false, "beanstalk.reserve.timeout-expires"},
		{"gearmonkey", "redis-server", false, ""},
	} {
		t.Run(tt.server, func(t *testing.T) {
			t.Parallel()
			peers.Need(t, tt.server)
			sys, err := entryNamed(tt.protocol)
			if err != nil {
				t.Fatal(err)
			}
			suite, err := conform.Load(sys.Protocol)
			if err != nil {
				t.Fatal(err)
			}
			profile, err := conform.LoadProfile(tt.server, suite)
			if err != nil {
				t.Fatal(err)
			}
			cases, _ := serverCases(t, sys)
			start := func(ctx context.Context) (target.Target, error) { return target.Exec(ctx, profile.Exec) }
			if tt.shared {
				one, err := start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer one.Stop()
				start = func(context.Context) (target.Target, error) { return target.Address(one.Addr()) }
			}
			each(cases, func(c *conform.Case) {
				if slow(c) || tt.shared && c.OwnServer {
					return
				}
				plain, all := audited(t, sys, c, time.Second, start)
				for _, a := range all {
					if a.by == codec.Server && !slices.Contains(plain, a) && !slices.Contains(strings.Fields(tt.known), string(a.rule)) {
						t.Errorf("%s: %s", c.ID, a.text)
					}
				}
			})
		})
	}
}

// TestAuditOfLoad kills workers under load: the audit must report no violation of the load generator or of the real
// server.
func TestAuditOfLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ protocol, server string }{{"gearman", "gearmand"}, {"beanstalk", "beanstalkd"}, {"gearmonkey", "redis-server"}} {
		t.Run(tt.server, func(t *testing.T) {
			t.Parallel()
			tp := tapped(t, peers.Start(t, tt.server).Addr())
			var out, complaints bytes.Buffer
			run(t.Context(), []string{"bench", "run", tt.protocol, "--addr", tp.Addr().String(), "--scenario", "chaos", "--count", "2000", "--kill", "60", "--work", "1ms", "--settle", "300ms"}, nil, &out, &complaints)
			out.Reset()
			if status := run(t.Context(), []string{"decode", "-", "--audit"}, bytes.NewReader(tp.capture(t)), &out, &complaints); status != exitOK {
				t.Errorf("exit status %d: %s%s", status, out.String(), complaints.String())
			}
		})
	}
}

// relayed is a server that is reached through a relay: Addr returns the address of the relay.
type relayed struct {
	target.Target
	addr string
}

func (r relayed) Addr() string { return r.addr }

// auditedProgram runs a case that tests a client or worker, and returns the violations of its connections that a message
// does not show alone, but only with the messages before it.
func auditedProgram(t *testing.T, sys *catalog.Entry, c *conform.Case, programs map[string]conform.Program) (found []violation) {
	t.Helper()
	srv, err := new(targetFlags).start(t.Context(), sys)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer srv.Stop()
	tp := tapped(t, srv.Addr())
	r := conform.Runner{Programs: programs, Timeout: 5 * time.Second, Start: func(context.Context) (target.Target, error) {
		return relayed{srv, tp.Addr().String()}, nil
	}}
	r.Run(t.Context(), &conform.Suite{Protocol: sys.Protocol, Cases: []*conform.Case{c}}, nil)
	plain, all := violations(t, sys, c.ID, tp.capture(t))
	return slices.DeleteFunc(all, func(a violation) bool { return slices.Contains(plain, a) })
}

// TestAuditOfPrograms audits the cases that test clients and workers: the audit must report no violation of the
// reference client and worker, and the violation of each faulty one.
func TestAuditOfPrograms(t *testing.T) {
	t.Parallel()
	sys, err := entryNamed("gearmonkey")
	if err != nil {
		t.Fatal(err)
	}
	suite, err := conform.Load(sys.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]*conform.Case{}
	var programs []*conform.Case
	for _, c := range suite.Cases {
		if cases[c.ID] = c; c.Program != "" && !slow(c) {
			programs = append(programs, c)
		}
	}
	each(programs, func(c *conform.Case) {
		for _, a := range auditedProgram(t, sys, c, sys.Programs) {
			t.Errorf("%s: %s", c.ID, a.text)
		}
	})
	faulty := map[string][2]string{
		"data-kept-for-a-day":    {"gearmonkey.work.success", "gearmonkey.done.expire-job"},
		"lock-kept-for-a-minute": {"gearmonkey.work.success", "gearmonkey.done.lock-expires"},
		"lock-of-done":           {"gearmonkey.work.success", "gearmonkey.done.lock"},
		"queued-twice":           {"gearmonkey.run.normal", "gearmonkey.create.once"},
		"scheduled-and-queued":   {"gearmonkey.run.scheduled", "gearmonkey.create.once"},
		"waits-for-ever":         {"gearmonkey.accept.start", "gearmonkey.loop.brpop-timeout"},
	}
	each(sys.Mutants(), func(m conform.Mutant) {
		f, ok := faulty[m.Name]
		if !ok {
			return
		}
		with := map[string]conform.Program{"Client": sys.Programs["Client"], "Worker": sys.Programs["Worker"], m.Role: m.Program}
		all := auditedProgram(t, sys, cases[f[0]], with)
		if !slices.ContainsFunc(all, func(a violation) bool { return string(a.rule) == f[1] }) {
			t.Errorf("%s: %s is not accused of %s but of %v", f[0], m.Name, f[1], all)
		}
	})
}
