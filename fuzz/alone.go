package fuzz

import (
	"time"

	"jobwire/internal/target"
)

// What is looked for alone gets a share of the time.
const (
	aloneShare = 8
	aloneFor   = slice / 4
)

// alone holds conversations with a server that nobody else uses: names and numbers that all users
// have in common can be judged only there.
func (f *Fuzzer) alone() {
	if f.solitary > time.Since(f.start)/aloneShare {
		return
	}
	start := time.Now()
	defer func() { f.solitary += time.Since(start) }()
	f.tally("fuzzing alone")
	w := f.hermit
	var done []*Conv
	for time.Since(start) < aloneFor && !f.stopped() {
		c := w.b.fresh()
		if parent := f.pool.pick(w.r); parent != nil && w.r.IntN(2) == 0 {
			c = w.b.child(parent, func() *Conv { return f.pool.pick(w.r) })
		}
		if len(c.Steps) == 0 {
			continue
		}
		f.lab.patience = min(f.cfg.Patience, hasty)
		r, v := f.lab.perform(c)
		f.lab.patience = f.cfg.Patience
		done = append(done, c)
		f.convs.Add(1)
		f.msgs.Add(int64(len(r.Events)))
		f.pool.learn(c, r.edges)
		if v != nil && !f.old(c, v) {
			f.examine([]*suspicion{{c, v}}, nil, nil)
			return
		}
	}
	if f.lab.t == nil {
		return
	}
	f.lab.used = true // who examines something begins with a fresh server
	if f.lab.x != nil {
		f.lab.x.dismiss()
	}
	if target.Pid(f.lab.t) != 0 && spinning(f.lab.t) {
		f.examine(nil, spin(), done)
	}
}
