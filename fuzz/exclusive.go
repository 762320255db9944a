package fuzz

import (
	"context"
	"time"

	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// The exclusive run gets a share of the time, in turns.
const (
	aloneFor   = 200 * time.Millisecond
	aloneShare = 8
)

// alone runs inputs, one after the other, on a server that no other input uses. Names and numbers that all users of a
// server share can be judged only there.
func (f *Fuzzer) alone(ctx context.Context) {
	b := newGenerator(f.cfg.Protocol, randOf(f.cfg.Seed-1), &f.cfg.Known)
	l := &replayer{cfg: &f.cfg, ctx: ctx, patience: min(f.cfg.Patience, fuzzPatience), died: f.observe}
	defer l.close()
	for ctx.Err() == nil && !f.done() {
		start := time.Now()
		f.runAlone(ctx, b, l)
		select {
		case <-time.After((aloneShare - 1) * time.Since(start)):
		case <-ctx.Done():
		}
	}
}

// runAlone runs inputs for a while and then checks whether the server is idle.
func (f *Fuzzer) runAlone(ctx context.Context, b *generator, l *replayer) {
	var done []*Input
	pick := func() *Input { return f.corpus.pick(b.r) }
	for start := time.Now(); ctx.Err() == nil && time.Since(start) < aloneFor; {
		c := b.generate()
		if parent := pick(); parent != nil && b.r.IntN(2) == 0 {
			c = b.mutate(parent, pick)
		}
		if len(c.Steps) == 0 {
			continue
		}
		r, v := l.execute(c)
		done = append(done, c)
		f.inputs.Add(1)
		f.msgs.Add(int64(len(r.Events)))
		f.corpus.learn(c, r.features)
		if v != nil && !f.old(c, v) {
			f.triageQueue.add(&candidate{observations: []*observation{{input: c, fault: v}}})
			return
		}
	}
	if l.t == nil || target.Pid(l.t) == 0 || ctx.Err() != nil {
		return
	}
	if l.x != nil {
		l.x.closeCanary()
	}
	if watch.Spinning(l.t) {
		f.triageQueue.add(&candidate{whole: spin(), done: done})
		l.used = true
	}
}
