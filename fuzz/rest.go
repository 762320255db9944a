package fuzz

import (
	"context"
	"fmt"
	"slices"
	"time"

	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// spins reports whether the server works on behind a conversation.
func (l *lab) spins(c *Conv) *Fault {
	if l.perform(c); l.x == nil || ended(l.t) {
		return nil
	}
	l.x.dismiss() // who spins may be late with answers, too
	if !watch.Spinning(l.t) {
		return nil
	}
	l.used = true
	return spin()
}

// spinBatch is how many conversations are held between two looks whether the server spins: the more
// that have it spin, the longer each takes.
const spinBatch = 16

// spinner finds the one of many conversations that has the server spin.
func (f *Fuzzer) spinner(done []*Conv) (*Conv, *Fault) {
	l := f.lab
	l.used = true
	for batch := range slices.Chunk(done, spinBatch) {
		if f.stopped() || l.ready() != nil {
			break
		}
		sound := l.holds(batch)
		if l.x.dismiss(); sound && !watch.Spinning(l.t) {
			continue
		}
		l.used = true
		for _, c := range batch {
			for _, c := range dialectOf(f.cfg.Protocol).alone(c) {
				if v := l.spins(c); v != nil {
					return c, v
				}
			}
		}
		l.used = true
	}
	l.used = true
	return nil, nil
}

// holds performs conversations one after the other, with names of their own. It reports whether the
// server has come through.
func (l *lab) holds(convs []*Conv) bool {
	l.x.thorough = false
	defer func() { l.x.thorough = true }()
	for i, c := range convs {
		if r := l.x.perform(c, nth(i)); r.Fault != nil && r.Fault.grave() || ended(l.t) {
			return false
		}
	}
	return true
}

func spin() *Fault {
	return &Fault{Oracle: Processor, Law: "busy while idle", Conn: -1, Step: -1, Text: "a core is used all the time though all connections are closed"}
}

// repeat holds a conversation so many times and returns what the server has at rest.
func (l *lab) repeat(c *Conv, runs, descriptors int) (watch.Usage, bool) {
	l.used = true
	l.x.thorough = false
	defer func() { l.x.thorough = true }()
	for range runs {
		if r := l.x.perform(c, ""); r.Fault != nil && r.Fault.grave() {
			return watch.Usage{}, false
		}
	}
	l.x.dismiss()
	return watch.AtRest(l.t, descriptors)
}

// keeps reports whether a conversation leaves descriptors behind each time.
func (l *lab) keeps(c *Conv) *Fault {
	if _, f := l.perform(c); f != nil && f.grave() {
		return nil
	}
	at, _ := l.repeat(c, 1, -1)
	begun := at.Descriptors
	for range 2 {
		before, by := at.Descriptors, l.x.unnoticed
		var ok bool
		if at, ok = l.repeat(c, watch.KeepRuns, before); !ok || at.Descriptors-before-(l.x.unnoticed-by) < watch.Keeps {
			return nil
		}
	}
	return &Fault{Oracle: Descriptors, Law: "descriptors grow", Conn: -1, Step: -1,
		Text: fmt.Sprintf("%d descriptors more behind %d repetitions, all connections closed", at.Descriptors-begun, 2*watch.KeepRuns)}
}

// mayGrow reports whether memory that stays behind a performance is a fault: jobs that are left take
// some by rights. Where nobody can tell what is left, another server is to be asked too.
func (l *lab) mayGrow(r *Record) bool {
	return r.Clean || r.Vague && l.cfg.Reference != nil
}

// grows reports whether a conversation leaves memory behind each time.
func (l *lab) grows(c *Conv) *Fault {
	if r, f := l.perform(c); f != nil && f.grave() || !l.mayGrow(r) {
		return nil
	}
	runs := l.leakRuns
	if runs == 0 {
		runs = watch.LeakRuns
	}
	var u [4]watch.Usage // two rounds to warm up, two that count
	for i := range u {
		var ok bool
		if u[i], ok = l.repeat(c, runs, u[0].Descriptors); !ok || i > 1 && u[i].Resident-u[i-1].Resident < watch.LeakBytes {
			return nil
		}
	}
	n := u[3].Resident - u[1].Resident
	each := n / int64(2*runs)
	l.leakRuns = min(watch.LeakRuns, max(16, int(2*watch.LeakBytes/each)))
	return &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1,
		Text: fmt.Sprintf("%d KiB more behind %d repetitions, %d bytes each, all connections closed", n>>10, 2*runs, each)}
}

// How the pool is soaked: each conversation held alone, in two rounds behind some to warm up.
const (
	soakWarm  = 3
	soakRuns  = 8
	soakBytes = soakRuns * watch.LeakBytes / watch.LeakRuns
)

// soakShare is how many of the conversations are those of the pool that are held again, at most: one
// of so many.
const soakShare = 6

// soak holds conversations of the pool again and again, with a server that nobody else uses, and
// looks whether it watch.Keeps memory of them.
func (w *crew) soak(ctx context.Context) {
	defer w.close()
	for ctx.Err() == nil && !w.f.done() {
		if w.t != nil && (time.Since(w.base) > lifetime || w.names.Load() > manyNames) {
			w.kill()
		}
		if w.t == nil && w.launch(ctx) != nil || target.Pid(w.t) == 0 {
			return
		}
		var c *Conv
		if w.steeped*soakShare <= w.f.convs.Load() {
			c = w.f.pool.next()
		}
		if c == nil {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		} else if c.waits() == 0 && !c.Burst && c.bytes() <= big && !w.steep(c) {
			w.kill()
		} else if w.slices++; w.slices%spinBatch == 0 && watch.Spinning(w.t) {
			w.kill() // others tell of it
		}
	}
}

// steep holds one conversation again and again. It reports whether the server has survived it.
func (w *crew) steep(c *Conv) bool {
	f, one := w.f, w.ready[0]
	prefix := one.prefix()
	var at [3]watch.Usage
	for i, runs := range [3]int{soakWarm, soakRuns, soakRuns} {
		for range runs {
			r := one.x.perform(c, prefix)
			f.convs.Add(1)
			w.steeped++
			if r.Fault != nil && r.Fault.grave() {
				f.desk.add(&matter{suspects: []*suspicion{{conv: c, fault: r.Fault}}, whole: verdict(w.t, r.Fault)})
				return false
			}
			if !f.lab.mayGrow(r) {
				return true
			}
		}
		at[i], _ = watch.Of(w.t)
	}
	if at[1].Resident-at[0].Resident >= soakBytes && at[2].Resident-at[1].Resident >= soakBytes {
		f.desk.add(&matter{suspects: []*suspicion{{conv: c, fault: &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1}}}, grown: true})
	}
	return true
}

// grown finds out whether a conversation of which a server has kept memory leaves some each time.
func (f *Fuzzer) grown(c *Conv) {
	for _, c := range dialectOf(f.cfg.Protocol).alone(c) {
		f.lab.leakRuns = 0
		if v := f.lab.grows(c); v != nil {
			if !f.dismissed(c, v) && !f.confirm(c, v) {
				f.letBe(quickKey(f.cfg.Protocol, c, v))
			}
			break
		}
	}
	f.lab.leakRuns = 0
}

// kept is how many descriptors must have stayed to look whose they are.
const kept = 4

// keeper looks for the conversation of those that were held behind which descriptors stayed.
func (f *Fuzzer) keeper(done []*Conv) {
	const most = 1200
	f.tally("looking for descriptors")
	done = done[max(0, len(done)-most):]
	// Who ends his direction first may have his connection kept by rights, which blurs the count.
	plain := slices.DeleteFunc(slices.Clone(done), func(c *Conv) bool {
		return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Verb == transcript.Closes || s.Verb == transcript.HalfCloses })
	})
	all, ok := f.lab.stay(plain)
	if ok && all >= kept/2 {
		done = plain
	} else if all, ok = f.lab.stay(done); !ok || all < kept/2 {
		return
	}
	for len(done) > 1 && !f.stopped() {
		half := done[:len(done)/2]
		n, ok := f.lab.stay(half)
		if !ok {
			return
		}
		if 2*n >= all && n > 0 {
			done, all = half, n
		} else {
			done, all = done[len(half):], all-n
		}
	}
	for _, c := range dialectOf(f.cfg.Protocol).alone(done[0]) {
		if v := f.lab.keeps(c); v != nil {
			if !f.dismissed(c, v) {
				f.confirm(c, v)
			}
			return
		}
	}
}

// stay returns how many descriptors are left behind conversations.
func (l *lab) stay(convs []*Conv) (n int, ok bool) {
	if l.ready() != nil {
		return 0, false
	}
	l.used = true
	l.x.ask()
	l.x.dismiss()
	before, ok := watch.AtRest(l.t, -1)
	by := l.x.unnoticed
	ok = ok && l.holds(convs)
	l.x.dismiss()
	after, live := watch.AtRest(l.t, before.Descriptors+l.x.unnoticed-by)
	return after.Descriptors - before.Descriptors - (l.x.unnoticed - by), ok && live
}
