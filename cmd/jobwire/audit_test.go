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
	"testing/synctest"
	"time"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/mutant"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/virtualtime"
	"jobwire/pcap"
	"jobwire/play"
)

// violation is a violation in a capture.
type violation struct {
	rule codec.RuleID
	by   codec.Side
	text string
}

// audited plays a case against a server, captures the traffic, and returns the violations of the server and the peers,
// as the function violations does.
func audited(t *testing.T, sys *catalog.Entry, c *conform.Case, start starter) (plain, all []violation) {
	t.Helper()
	srv, err := start(t.Context())
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	defer srv.Stop()
	tp := tapped(t, srv.Addr())
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		return new(transport.Dialer).Dial(ctx, transport.Name(tp))
	}
	play.Peers(t.Context(), c.Script, dial, play.Options{Timeout: time.Second, Codec: codec.Options{Waive: sys.Lenient}})
	return violations(t, sys, c.ID, tp.capture(t))
}

// starter starts a server.
type starter = func(context.Context) (target.Target, error)

// inMemory returns a starter of the reference server of a protocol with a listener in memory, for tests in virtual
// time.
func inMemory(sys *catalog.Entry) starter {
	return func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "reference server", connect.Builtin(sys))
	}
}

// eachProtocol runs a subtest for each protocol, at the same time.
func eachProtocol(t *testing.T, do func(*testing.T, *catalog.Entry)) {
	t.Parallel()
	for _, sys := range catalog.All() {
		t.Run(sys.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			do(t, sys)
		})
	}
}

// violations returns the violations in a capture: first those that single messages show, and then all violations,
// which include those that show only together with earlier messages.
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

// serverCases returns the first instance of each case that tests a server.
func serverCases(t *testing.T, sys *catalog.Entry) (cases []*conform.Case) {
	t.Helper()
	suite := mutanttest.Load(t, sys.Protocol)
	for _, c := range suite.First().Cases {
		if c.Program == "" && !slow(c) {
			cases = append(cases, c)
		}
	}
	return cases
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
	eachProtocol(t, func(t *testing.T, sys *catalog.Entry) {
		for _, c := range serverCases(t, sys) {
			synctest.Test(t, func(t *testing.T) {
				virtualtime.Forward()
				plain, all := audited(t, sys, c, inMemory(sys))
				for _, a := range all {
					switch {
					case a.by == codec.Server:
						t.Errorf("%s: the server: %s", c.ID, a.text)
					case a.by == codec.Peer && !slices.Contains(plain, a) && !slices.Contains(c.Rules, a.rule) &&
						!slices.Contains(outOfTurn[sys.Protocol.Name], string(a.rule)):
						t.Errorf("%s: a peer: %s", c.ID, a.text)
					}
				}
			})
		}
	})
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

// TestAuditOfMutants runs each faulty server of the table in audit_faulty_test.go with its case: the audit of the
// capture must report that the server breaks the listed rule.
func TestAuditOfMutants(t *testing.T) {
	eachProtocol(t, func(t *testing.T, sys *catalog.Entry) {
		suite := mutanttest.Load(t, sys.Protocol)
		mutants := map[string]mutant.Mutant{}
		for _, m := range sys.Mutants() {
			mutants[m.Name] = m
		}
		for _, g := range faultyServers {
			if g.protocol != sys.Protocol.Name {
				continue
			}
			var found []violation
			for _, c := range suite.Cases {
				if c.Family == g.of && c.Program == "" {
					synctest.Test(t, func(t *testing.T) {
						virtualtime.Forward()
						_, all := audited(t, sys, c, mutants[g.mutant].Start)
						found = append(found, all...)
					})
				}
			}
			if !slices.ContainsFunc(found, func(a violation) bool { return a.by == codec.Server && string(a.rule) == g.rule }) {
				t.Errorf("%s: expected the audit to report %s of %s, got %v", g.of, g.rule, g.mutant, found)
			}
		}
	})
}

// TestAuditOfRealServers audits the first instance of each case with real servers: the audit must report only
// violations that are known.
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
			sys, err := connect.EntryNamed(tt.protocol)
			if err != nil {
				t.Fatal(err)
			}
			suite := mutanttest.Load(t, sys.Protocol)
			profile, err := conform.LoadProfile(tt.server, suite)
			if err != nil {
				t.Fatal(err)
			}
			start := func(ctx context.Context) (target.Target, error) { return target.Exec(ctx, profile.Exec) }
			if tt.shared {
				one, err := start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer one.Stop()
				start = func(context.Context) (target.Target, error) { return target.Address(one.Addr()) }
			}
			each(serverCases(t, sys), func(c *conform.Case) {
				if tt.shared && c.OwnServer {
					return
				}
				plain, all := audited(t, sys, c, start)
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
			if status := run(t.Context(), []string{"decode", "-", "--audit"}, bytes.NewReader(tp.capture(t)), &out, &complaints); status != cli.StatusOK {
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

// auditedProgram runs a case that tests a client or worker, and returns the violations of its connections that a
// message does not show alone, but only with the messages before it.
func auditedProgram(t *testing.T, sys *catalog.Entry, c *conform.Case, programs map[string]conform.Program) (found []violation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := inMemory(sys)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Stop()
		tp := tapped(t, srv.Addr())
		r := conform.Runner{Programs: programs, Timeout: 5 * time.Second, Start: func(context.Context) (target.Target, error) {
			return relayed{srv, transport.Name(tp)}, nil
		}}
		r.Run(t.Context(), &conform.Suite{Protocol: sys.Protocol, Cases: []*conform.Case{c}}, nil)
		plain, all := violations(t, sys, c.ID, tp.capture(t))
		found = slices.DeleteFunc(all, func(a violation) bool { return slices.Contains(plain, a) })
	})
	return found
}

// TestAuditOfPrograms audits the cases that test clients and workers: the audit must report no violation of the
// reference client and worker, and the violation of each faulty one.
func TestAuditOfPrograms(t *testing.T) {
	t.Parallel()
	sys, err := connect.EntryNamed("gearmonkey")
	if err != nil {
		t.Fatal(err)
	}
	suite := mutanttest.Load(t, sys.Protocol)
	cases := map[string]*conform.Case{}
	var programs []*conform.Case
	for _, c := range suite.Cases {
		if cases[c.ID] = c; c.Program != "" && !slow(c) {
			programs = append(programs, c)
		}
	}
	for _, c := range programs {
		for _, a := range auditedProgram(t, sys, c, sys.Programs) {
			t.Errorf("%s: %s", c.ID, a.text)
		}
	}
	faulty := map[string][2]string{
		"data-kept-for-a-day":    {"gearmonkey.work.success", "gearmonkey.done.expire-job"},
		"lock-kept-for-a-minute": {"gearmonkey.work.success", "gearmonkey.done.lock-expires"},
		"lock-of-done":           {"gearmonkey.work.success", "gearmonkey.done.lock"},
		"queued-twice":           {"gearmonkey.run.normal", "gearmonkey.create.once"},
		"scheduled-and-queued":   {"gearmonkey.run.scheduled", "gearmonkey.create.once"},
		"waits-for-ever":         {"gearmonkey.accept.start", "gearmonkey.loop.brpop-timeout"},
	}
	for _, m := range sys.Mutants() {
		f, ok := faulty[m.Name]
		if !ok {
			continue
		}
		with := map[string]conform.Program{"Client": sys.Programs["Client"], "Worker": sys.Programs["Worker"], m.Role: m.Program}
		all := auditedProgram(t, sys, cases[f[0]], with)
		if !slices.ContainsFunc(all, func(a violation) bool { return string(a.rule) == f[1] }) {
			t.Errorf("%s: %s is not accused of %s but of %v", f[0], m.Name, f[1], all)
		}
	}
}
