package fuzz

import (
	"context"
	"time"

	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// What is looked for alone gets a share of the time, in turns.
const (
	aloneFor   = 200 * time.Millisecond
	aloneShare = 8
)

// alone holds conversations, one after the other, with a server that nobody else uses: names and
// numbers that all users have in common can be judged only there.
func (f *Fuzzer) alone(ctx context.Context) {
	r := randOf(f.cfg.Seed - 1)
	h := &hermit{f: f, b: newBreeder(f.cfg.Protocol, r, &f.cfg.Known),
		lab: &lab{cfg: &f.cfg, ctx: context.WithoutCancel(ctx), patience: min(f.cfg.Patience, hasty)}}
	defer h.lab.close()
	for ctx.Err() == nil && !f.done() {
		start := time.Now()
		h.turn(ctx)
		select {
		case <-time.After((aloneShare - 1) * time.Since(start)):
		case <-ctx.Done():
		}
	}
}

// hermit is who does.
type hermit struct {
	f   *Fuzzer
	b   *breeder
	lab *lab
}

// turn holds conversations for a while, then looks whether the server is at rest.
func (h *hermit) turn(ctx context.Context) {
	f := h.f
	var done []*Conv
	pick := func() *Conv { return f.pool.pick(h.b.r) }
	for start := time.Now(); ctx.Err() == nil && time.Since(start) < aloneFor; {
		c := h.b.fresh()
		if parent := pick(); parent != nil && h.b.r.IntN(2) == 0 {
			c = h.b.child(parent, pick)
		}
		if len(c.Steps) == 0 {
			continue
		}
		r, v := h.lab.perform(c)
		done = append(done, c)
		f.convs.Add(1)
		f.msgs.Add(int64(len(r.Events)))
		f.pool.learn(c, r.edges)
		if v != nil && !f.old(c, v) {
			f.desk.add(&matter{suspects: []*suspicion{{conv: c, fault: v}}})
			return
		}
	}
	if h.lab.t == nil || target.Pid(h.lab.t) == 0 {
		return
	}
	if h.lab.x != nil {
		h.lab.x.dismiss()
	}
	if watch.Spinning(h.lab.t) {
		f.desk.add(&matter{whole: spin(), done: done})
		h.lab.used = true
	}
}
