package fuzz

import (
	"context"
	"fmt"
	"slices"
	"time"

	"jobwire/codec/transcript"
	"jobwire/internal/target"
)

// spins reports whether the server works on behind a conversation.
func (l *lab) spins(c *Conv) *Fault {
	if l.perform(c); l.x == nil || ended(l.t) {
		return nil
	}
	l.x.dismiss() // who spins may be late with answers, too
	if !spinning(l.t) {
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
		if l.x.dismiss(); sound && !spinning(l.t) {
			continue
		}
		l.used = true
		for _, c := range batch {
			if v := l.spins(c); v != nil {
				return c, v
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
		if r := l.x.perform(c, fmt.Sprintf("z%0*x.", len(place)-2, i)); r.Fault != nil && r.Fault.grave() || ended(l.t) {
			return false
		}
	}
	return true
}

func spin() *Fault {
	return &Fault{Oracle: Processor, Law: "busy while idle", Conn: -1, Step: -1, Text: "a core is used all the time though all connections are closed"}
}

// When a server at rest is said to spin.
const (
	spinShare = 0.85                   // of a core that it asks for
	spinTime  = 30 * time.Millisecond  // that it must have got
	spinLeast = 300 * time.Millisecond // looked at; on a busy machine it takes longer to get that
	spinMost  = 4 * time.Second
)

// spinning reports whether a server that has nothing to do wants a core all the time. On a busy
// machine it may get little of one, so the time that it waits for it counts as well.
func spinning(t target.Target) bool {
	const piece = 10 * time.Millisecond
	pid := target.Pid(t)
	time.Sleep(piece)
	if pid == 0 || !runnable(pid) {
		return false
	}
	had, wanted := wants(pid)
	for start := time.Now(); time.Since(start) < spinMost; {
		time.Sleep(piece)
		if !runnable(pid) {
			return false
		}
		now, asked := wants(pid)
		if took := time.Since(start); took > spinLeast && now-had > spinTime {
			return float64(asked-wanted)/float64(took) > spinShare
		}
	}
	return false
}

// atRest returns what a server has when all have left, for which it is given a little time, until
// no more descriptors are left than there were; -1 is that nobody knows.
func atRest(t target.Target, descriptors int) (u usage, ok bool) {
	for n, last := 0, -1; n < 50; n++ {
		if u, ok = usageOf(target.Pid(t)); !ok || u.descriptors <= descriptors || descriptors < 0 && u.descriptors == last {
			break
		}
		last = u.descriptors
		time.Sleep(5 * time.Millisecond)
	}
	return u, ok
}

// What must stay behind, in each of two rounds, to be called a leak.
const (
	keepRuns = 24
	keeps    = keepRuns / 2 // descriptors

	leakRuns  = 150
	leakBytes = 3 << 20
)

// repeat holds a conversation so many times and returns what the server has at rest.
func (l *lab) repeat(c *Conv, runs, descriptors int) (usage, bool) {
	l.used = true
	l.x.thorough = false
	defer func() { l.x.thorough = true }()
	for range runs {
		if r := l.x.perform(c, ""); r.Fault != nil && r.Fault.grave() {
			return usage{}, false
		}
	}
	l.x.dismiss()
	return atRest(l.t, descriptors)
}

// keeps reports whether a conversation leaves descriptors behind each time.
func (l *lab) keeps(c *Conv) *Fault {
	if _, f := l.perform(c); f != nil && f.grave() {
		return nil
	}
	at, _ := l.repeat(c, 1, -1)
	begun := at.descriptors
	for range 2 {
		before, by := at.descriptors, l.x.unnoticed
		var ok bool
		if at, ok = l.repeat(c, keepRuns, before); !ok || at.descriptors-before-(l.x.unnoticed-by) < keeps {
			return nil
		}
	}
	return &Fault{Oracle: Descriptors, Law: "descriptors grow", Conn: -1, Step: -1,
		Text: fmt.Sprintf("%d descriptors more behind %d repetitions, all connections closed", at.descriptors-begun, 2*keepRuns)}
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
		runs = leakRuns
	}
	var u [4]usage // two rounds to warm up, two that count
	for i := range u {
		var ok bool
		if u[i], ok = l.repeat(c, runs, u[0].descriptors); !ok || i > 1 && u[i].resident-u[i-1].resident < leakBytes {
			return nil
		}
	}
	n := u[3].resident - u[1].resident
	each := n / int64(2*runs)
	l.leakRuns = min(leakRuns, max(16, int(2*leakBytes/each)))
	return &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1,
		Text: fmt.Sprintf("%d KiB more behind %d repetitions, %d bytes each, all connections closed", n>>10, 2*runs, each)}
}

// How the pool is soaked: each conversation held alone, in two rounds behind some to warm up.
const (
	soakWarm  = 3
	soakRuns  = 8
	soakBytes = soakRuns * leakBytes / leakRuns
)

// soakShare is how many of the conversations are those of the pool that are held again, at most: one
// of so many.
const soakShare = 6

// soak holds conversations of the pool again and again, with a server that nobody else uses, and
// looks whether it keeps memory of them.
func (w *crew) soak(ctx context.Context) {
	defer w.kill()
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
		} else if w.slices++; w.slices%spinBatch == 0 && spinning(w.t) {
			w.kill() // others tell of it
		}
	}
}

// steep holds one conversation again and again. It reports whether the server has survived it.
func (w *crew) steep(c *Conv) bool {
	f, one := w.f, w.ready[0]
	prefix := one.prefix()
	var at [3]usage
	for i, runs := range [3]int{soakWarm, soakRuns, soakRuns} {
		for range runs {
			r := one.x.perform(c, prefix)
			f.convs.Add(1)
			w.steeped++
			if r.Fault != nil && r.Fault.grave() {
				f.desk.add(&matter{suspects: []*suspicion{{c, r.Fault}}, whole: verdict(w.t, r.Fault)})
				return false
			}
			if !f.lab.mayGrow(r) {
				return true
			}
		}
		at[i], _ = usageOf(target.Pid(w.t))
	}
	if at[1].resident-at[0].resident >= soakBytes && at[2].resident-at[1].resident >= soakBytes {
		f.desk.add(&matter{suspects: []*suspicion{{c, &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1}}}, grown: true})
	}
	return true
}

// grown finds out whether a conversation of which a server has kept memory leaves some each time.
func (f *Fuzzer) grown(c *Conv) {
	f.lab.leakRuns = 0
	if v := f.lab.grows(c); v != nil && !f.dismissed(c, v) && !f.confirm(c, v) {
		f.note(func() { f.doubts[quickKey(f.cfg.Protocol, c, v)] = maxDoubts })
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
	if v := f.lab.keeps(done[0]); v != nil && !f.dismissed(done[0], v) {
		f.confirm(done[0], v)
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
	before, ok := atRest(l.t, -1)
	by := l.x.unnoticed
	ok = ok && l.holds(convs)
	l.x.dismiss()
	after, live := atRest(l.t, before.descriptors+l.x.unnoticed-by)
	return after.descriptors - before.descriptors - (l.x.unnoticed - by), ok && live
}
