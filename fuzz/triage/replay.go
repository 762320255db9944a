package triage

import (
	"context"
	"errors"
	"slices"
	"time"

	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// replayer runs inputs again, on new servers. If there is only one server at a fixed address, it uses that server and
// gives each input new names.
type replayer struct {
	triage *Triage
	cfg    *Config
	ctx    context.Context
	clock  int // speed of the servers' clocks, as in Log

	servers  *exec.Servers // shared with other replayers
	fast     *exec.Servers // with fast clocks; nil: all inputs run with the clock of the machine
	t        target.Target
	x        *exec.Executor
	used     bool // the server has left its initial state
	inputs   int  // number of inputs that this server has run
	timeout  time.Duration
	leakRuns int // number of executions that suffice to detect a memory leak; 0: unknown

	// inputs run as the worker ran them, with several messages in one write and few barriers unless it was steady, and
	// not thoroughly
	asObserved bool
	steady     bool // as in Log

	// Inputs run one after the other on one server, each with its own prefix, and a new server starts only after a crash
	// or after maxShared inputs. Starting a server takes much longer than an input. A failure that appears in this way is
	// tried on new servers later.
	shared bool
}

// maxShared is the number of inputs that run on a server that inputs share.
const maxShared = 200

// errOver is the error if the run has ended.
var errOver = errors.New("the run has ended")

// ready ensures that a server in its initial state is running. It starts a new server if necessary.
func (l *replayer) ready() error {
	if l.ctx.Err() != nil {
		return errOver
	}
	if l.t != nil && l.used && !l.cfg.Fixed {
		l.discard()
	}
	if l.t == nil {
		servers := l.servers
		if l.clock > 1 {
			servers = l.fast
		}
		t, err := servers.Take(l.ctx)
		if err != nil {
			return err
		}
		if l.t, l.x = t, nil; !l.cfg.Fixed {
			servers.Prepare(l.ctx)
		}
	}
	if l.x == nil {
		x, err := exec.NewExecutor(l.t, l.clock, l.cfg.Barrier, &l.cfg.Known, l.timeout)
		if err != nil {
			return err
		}
		l.x = x
		l.x.Over = func() bool { return l.ctx.Err() != nil }
		l.used, l.inputs = false, 0
	}
	l.x.Timeout, l.x.Thorough, l.x.Steady = l.timeout, !l.asObserved, l.asObserved && l.steady
	return nil
}

// setClock sets how many times as fast as the clock of the machine the clocks of new servers run. 0 and 1 mean the same
// speed.
func (l *replayer) setClock(times int) {
	if l.clock != times && l.fast != nil {
		l.discard()
		l.clock = times
	}
}

// discard stops the current server in the background, because target.Kill waits for its processes to end.
func (l *replayer) discard() {
	if l.x != nil {
		l.x.CloseCanary()
		l.x = nil
	}
	if l.t != nil {
		t := l.t
		l.t = nil
		l.triage.ending.Go(func() { target.Kill(t) })
	}
}

// execute runs an input on a server in its initial state. The fault is nil if no oracle reports one, if no server could
// be started, or if the run has ended.
func (l *replayer) execute(in *input.Input) (*exec.Record, *exec.Fault) {
	if l.ready() != nil {
		return &exec.Record{}, nil
	}
	l.used = true
	l.inputs++
	l.x.Ping() // open the canary connection before the input
	r := l.x.Execute(in, l.prefix())
	v := exec.Verdict(l.t, r.Fault)
	if l.ctx.Err() != nil {
		return &exec.Record{}, nil // the run has ended
	}
	l.observe(v, []input.Entry{{Input: in}})
	if l.used = v != nil || !r.FreesNames(l.cfg.Protocol, in); l.shared {
		l.used = l.mustRestart(v)
	}
	return r, v
}

// share makes inputs share a server, if the fault v can be observed on such a server.
func (l *replayer) share(v *exec.Fault) {
	switch v.Oracle {
	case exec.Memory, exec.Descriptors, exec.LeakReport, exec.Processor:
	default:
		l.shared = !l.cfg.Fixed
		l.used = l.used || l.shared
	}
}

// unshare makes each input run on a server in its initial state.
func (l *replayer) unshare() {
	l.used = l.used || l.shared
	l.shared = false
}

// mustRestart reports whether a server that inputs share can run no more of them after the fault v, or nil.
func (l *replayer) mustRestart(v *exec.Fault) bool {
	return l.inputs >= maxShared || v != nil && (v.Ends() || v.MaybeCrashed())
}

// prefix returns the prefix for the names of an input: a new prefix on a server that other inputs use, and otherwise
// "".
func (l *replayer) prefix() string {
	switch {
	case l.cfg.Fixed:
		return l.triage.run.Prefix()
	case l.shared:
		return input.PrefixOf('A', uint64(l.inputs))
	}
	return ""
}

// observe adds a candidate if the server crashes while another failure is examined.
func (l *replayer) observe(v *exec.Fault, entries []input.Entry) {
	if v != nil && v.Ends() && l.cfg == &l.triage.cfg {
		l.triage.Add(&Candidate{Fault: v, Log: &input.Log{Protocol: l.cfg.Protocol, Server: l.t.String(), Seed: l.cfg.Seed, Worker: -1, Entries: slices.Clone(entries)}})
	}
}

// entries runs entries on a new server, one after the other, until the expected fault appears. If expected is nil,
// every fault counts. entries returns the fault, or nil, and the number of entries that it has run.
func (l *replayer) entries(entries []input.Entry, expected *exec.Fault) (v *exec.Fault, n int) {
	shared := l.shared && len(entries) == 1
	if !shared {
		l.used = l.used || l.inputs > 0 // the failure may depend on the number of connections so far
	}
	if l.ready() != nil {
		return nil, 0
	}
	l.used = true
	l.x.Ping()
	// The next input notices a crash, so the server is not checked after each input.
	crash := expected != nil && expected.Ends()
	l.x.Thorough, l.x.Crashes = expected != nil && !crash && !l.asObserved, crash
	defer func() {
		if l.x != nil {
			l.x.Crashes, l.x.Lingering = false, false
		}
		if shared {
			l.used = l.mustRestart(v)
		}
	}()
	lost := time.Duration(0)
	taken := map[string]bool{} // prefixes of inputs that have left something on the server
	for i, e := range entries {
		start := time.Now()
		l.inputs++
		l.x.Lingering = i > 0
		prefix := l.named(e, len(entries))
		if taken[prefix] {
			return nil, 0 // since earlier inputs were changed, an input would meet what another one has left
		}
		r := l.x.Execute(e.Input, prefix)
		taken[prefix] = !r.FreesNames(l.cfg.Protocol, e.Input)
		if r.Fault == nil && !exec.Ended(l.t) {
			continue
		}
		if v = exec.Verdict(l.t, r.Fault); l.ctx.Err() != nil || v == nil {
			return nil, 0
		}
		l.observe(v, entries[:i+1])
		lost += time.Since(start)
		if exec.Ended(l.t) || expected == nil || related(v, expected) || v.Oracle == exec.HangAll || lost > otherFaultTime {
			return v, i + 1
		}
	}
	if !l.x.Ping() {
		if err := target.Died(l.t); err != nil && l.ctx.Err() == nil {
			v = exec.Death(l.t, err)
			l.observe(v, entries)
			return v, len(entries)
		}
	}
	return l.atEnd(expected), len(entries)
}

// otherFaultTime limits the time that entries spends on entries that cause other faults than the expected one.
const otherFaultTime = 20 * time.Second

// named returns the prefix for the names of an entry that is run again: the original prefix on a new server, a new
// prefix on a server at a fixed address, and that of a single input if the entry is the only one.
func (l *replayer) named(e input.Entry, of int) string {
	switch {
	case l.cfg.Fixed:
		return l.triage.run.Prefix()
	case of == 1:
		return l.prefix()
	}
	return e.Prefix
}

// atEnd returns the fault that an oracle for the whole server reports after all entries have run, or nil.
func (l *replayer) atEnd(expected *exec.Fault) *exec.Fault {
	if v := exec.Verdict(l.t, nil); v != nil {
		return v
	}
	if l.shared {
		return nil
	}
	l.x.CloseCanary()
	if (expected == nil || expected.Oracle == exec.Processor) && watch.Spinning(l.t) {
		return exec.CPULoop()
	}
	if (expected == nil || expected.Oracle == exec.Sanitizer || expected.Oracle == exec.LeakReport) && !l.cfg.Fixed {
		exec.Stop(l.ctx, l.t) // the server prints a leak report when it ends
		return exec.Verdict(l.t, nil)
	}
	return nil
}

// test returns a function that runs an input on a new server and returns a fault, or nil. The function uses the oracle
// of the expected fault, and may also return other faults.
func (l *replayer) test(expected *exec.Fault) func(*input.Input) *exec.Fault {
	switch expected.Oracle {
	case exec.Exit, exec.Signal, exec.Sanitizer, exec.LeakReport, exec.Processor:
		return func(in *input.Input) *exec.Fault {
			v, _ := l.entries([]input.Entry{{Input: in}}, expected)
			return v
		}
	case exec.Memory:
		return l.leaksMemory
	case exec.Descriptors:
		return l.keeps
	}
	return func(in *input.Input) *exec.Fault {
		_, v := l.execute(in)
		if v != nil && l.inputs > 1 && !l.cfg.Fixed && !l.shared {
			l.used = true // an earlier input on this server may be the cause, so use a new server
			_, v = l.execute(in)
		}
		return v
	}
}

// ReplayLog runs the inputs of a log on a new server, in order, until the server ends or hangs. It calls failed for
// each fault that an oracle reports, with the number of the input, counted from 1.
func (t *Triage) ReplayLog(log *input.Log, failed func(n int, v *exec.Fault)) error {
	l := t.onlyExaminer.replay
	l.setClock(log.Clock)
	l.asObserved, l.steady = true, log.Steady
	defer t.ending.Wait()
	defer t.Close()
	if err := l.ready(); err != nil {
		return err
	}
	l.used = true
	for i, e := range log.Entries {
		l.x.Lingering = i > 0
		r := l.x.Execute(e.Input, e.Prefix)
		if r.Fault == nil && !exec.Ended(l.t) {
			continue
		}
		if v := exec.Verdict(l.t, r.Fault); v != nil && t.ctx.Err() == nil {
			if failed(i+1, v); v.Ends() || v.MaybeCrashed() {
				return nil
			}
		}
	}
	if v := l.atEnd(nil); v != nil && t.ctx.Err() == nil {
		failed(len(log.Entries), v)
	}
	return t.ctx.Err()
}
