package fuzz

import (
	"context"
	"errors"
	"slices"
	"time"

	"jobwire/fuzz/input"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// replayer runs inputs again, on new servers. If there is only one server at a fixed address, it uses that server and
// gives each input new names.
type replayer struct {
	f        *Fuzzer
	cfg      *Config
	ctx      context.Context
	clock    int          // speed of the servers' clocks, as in Log
	next     chan started // the next server; nil if none was started
	t        target.Target
	x        *executor
	used     bool // the server has left its initial state
	inputs   int  // number of inputs that this server has run
	timeout  time.Duration
	leakRuns int // number of executions that suffice to detect a memory leak; 0: unknown
}

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
		if l.next == nil {
			l.prepare()
		}
		next := <-l.next
		if l.next = nil; next.err != nil {
			return next.err
		}
		if l.t, l.x = next.t, nil; !l.cfg.Fixed {
			l.prepare()
		}
	}
	if l.x == nil {
		to, err := transportOf(l.t)
		if err != nil {
			return err
		}
		l.x = newExecutor(l.cfg.barrier, to, &l.cfg.Known, l.timeout)
		l.x.thorough = true
		if l.clock > 1 {
			l.x.clock = clockOf(l.t, l.clock)
		}
		l.x.over = func() bool { return l.ctx.Err() != nil }
		l.used, l.inputs = false, 0
	}
	l.x.timeout = l.timeout
	return nil
}

// prepare starts the next server in the background.
func (l *replayer) prepare() {
	next := make(chan started, 1)
	l.next = next
	start := l.cfg.Start
	if l.clock > 1 {
		start = l.cfg.StartFast
	}
	l.f.triage.ending.Go(func() {
		next <- begin(l.ctx, start)
	})
}

// setClock sets how many times as fast as the clock of the machine the clocks of new servers run. 0 and 1 mean the same
// speed.
func (l *replayer) setClock(times int) {
	if l.clock != times {
		l.close()
		l.clock = times
	}
}

// close stops the current server, and the next server if one was started.
func (l *replayer) close() {
	l.discard()
	if l.next != nil {
		if n := <-l.next; n.err == nil {
			target.Kill(n.t)
		}
		l.next = nil
	}
}

// discard stops the current server.
func (l *replayer) discard() {
	if l.x != nil {
		l.x.closeCanary()
		l.x = nil
	}
	if l.t != nil {
		t := l.t
		l.t = nil
		l.f.triage.ending.Go(func() { target.Kill(t) })
	}
}

// execute runs an input on a server in its initial state. The fault is nil if no oracle reports one, if no server could
// be started, or if the run has ended.
func (l *replayer) execute(c *input.Input) (*Record, *Fault) {
	if l.ready() != nil {
		return &Record{}, nil
	}
	l.used = true
	l.inputs++
	l.x.ping() // open the canary connection before the input
	r := l.x.execute(c, l.prefix())
	v := verdict(l.t, r.Fault)
	if l.ctx.Err() != nil {
		return &Record{}, nil // the run has ended
	}
	l.observe(v, []input.Entry{{Input: c}})
	l.used = v != nil || !r.Clean || !l.x.d.Reuse || input.ChangesQueues(c)
	return r, v
}

// prefix returns the prefix for the names of an input: a new prefix on a server at a fixed address, and otherwise "".
func (l *replayer) prefix() string {
	if !l.cfg.Fixed {
		return ""
	}
	return l.f.prefix()
}

// observe adds a candidate if the server crashes while another failure is examined.
func (l *replayer) observe(v *Fault, entries []input.Entry) {
	if v != nil && v.ends() && l.cfg == &l.f.cfg {
		l.f.triage.add(&candidate{fault: v, log: &input.Log{Protocol: l.cfg.Protocol, Server: l.t.String(), Seed: l.cfg.Seed, Worker: -1, Entries: slices.Clone(entries)}})
	}
}

// entries runs entries on a new server, one after the other, until the expected fault appears. If expected is nil,
// every fault counts. entries returns the fault, or nil, and the number of entries that it has run.
func (l *replayer) entries(entries []input.Entry, expected *Fault) (v *Fault, n int) {
	if l.ready() != nil {
		return nil, 0
	}
	l.used = true
	l.x.ping()
	// The next input notices a crash, so the server is not checked after each input.
	crash := expected != nil && expected.ends()
	l.x.thorough, l.x.crashes = expected != nil && !crash, crash
	defer func() {
		if l.x != nil {
			l.x.thorough, l.x.crashes = true, false
		}
	}()
	lost := time.Duration(0)
	for i, e := range entries {
		start := time.Now()
		r := l.x.execute(e.Input, l.named(e, len(entries)))
		if r.Fault == nil && !ended(l.t) {
			continue
		}
		if v = verdict(l.t, r.Fault); l.ctx.Err() != nil || v == nil {
			return nil, 0
		}
		l.observe(v, entries[:i+1])
		lost += time.Since(start)
		if ended(l.t) || expected == nil || v.matches(expected) || v.Oracle == HangAll || lost > otherFaultTime {
			return v, i + 1
		}
	}
	if !l.x.ping() {
		if err := target.Died(l.t); err != nil && l.ctx.Err() == nil {
			v = death(l.t, err)
			l.observe(v, entries)
			return v, len(entries)
		}
	}
	return l.atEnd(expected), len(entries)
}

// otherFaultTime limits the time that entries spends on entries that cause other faults than the expected one.
const otherFaultTime = 20 * time.Second

// named returns the prefix for the names of an entry that is run again: the original prefix on a new server, a new
// prefix on a server at a fixed address, and "" if the entry is the only one.
func (l *replayer) named(e input.Entry, of int) string {
	switch {
	case l.cfg.Fixed:
		return l.f.prefix()
	case of == 1:
		return "" // a single input shares the server with no other input
	}
	return e.Prefix
}

// atEnd returns the fault that an oracle for the whole server reports after all entries have run, or nil.
func (l *replayer) atEnd(expected *Fault) *Fault {
	if v := verdict(l.t, nil); v != nil {
		return v
	}
	l.x.closeCanary()
	if (expected == nil || expected.Oracle == Processor) && watch.Spinning(l.t) {
		return cpuLoop()
	}
	if (expected == nil || expected.Oracle == Sanitizer || expected.Oracle == LeakReport) && !l.cfg.Fixed {
		stop(l.ctx, l.t) // the server prints a leak report when it ends
		return verdict(l.t, nil)
	}
	return nil
}

// test returns a function that runs an input on a new server and returns a fault, or nil. The function uses the oracle
// of the expected fault, and may also return other faults.
func (l *replayer) test(expected *Fault) func(*input.Input) *Fault {
	switch expected.Oracle {
	case Exit, Signal, Sanitizer, LeakReport, Processor:
		return func(c *input.Input) *Fault {
			v, _ := l.entries([]input.Entry{{Input: c}}, expected)
			return v
		}
	case Memory:
		return l.leaksMemory
	case Descriptors:
		return l.keeps
	}
	return func(c *input.Input) *Fault {
		_, v := l.execute(c)
		if v != nil && l.inputs > 1 && !l.cfg.Fixed {
			l.used = true // an earlier input on this server may be the cause, so use a new server
			_, v = l.execute(c)
		}
		return v
	}
}
