package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// crew is workers that hold conversations with one server at the same time.
type crew struct {
	f     *Fuzzer
	id    int
	size  int // workers
	slow  int // of those who wait past timeouts, beside them
	slice time.Duration

	t           target.Target
	next        chan born // the server that is to come; nil is that none was started
	to          endpoint
	ready       []*worker
	alarm       atomic.Bool   // everybody is to stop
	names       atomic.Uint64 // used up
	descriptors int           // that this server had at first
	base        time.Time     // of this life of the server
	slices      int
	late        time.Duration  // the last ones behind the end of a slice
	steeped     int64          // conversations held while soaking
	ending      sync.WaitGroup // of servers, and of starting them
	mu          sync.Mutex
	done        []*Conv // since the last rest
}

// born is what came of starting a server.
type born struct {
	t   target.Target
	err error
}

// worker is one of a crew.
type worker struct {
	*crew
	x       *performer
	b       *breeder
	r       *rand.Rand
	spare   []string     // prefixes under which nothing is left
	suspect *suspicion   // that the server has ended
	later   []*suspicion // of anything else
}

// hasty is the patience with a server until it is suspected; what is confirmed is with all that
// there is.
const hasty = time.Second

// How long everybody fuzzes between two looks at the server as a whole: at least, and if at the end of
// the last time some kept the others waiting, so many times as long.
const (
	fastSlice = 800 * time.Millisecond
	slowSlice = 5 * time.Second
	keepsOff  = 10
)

// A server is started anew before the names that nobody uses any more make it slow.
const (
	lifetime  = 20 * time.Second
	manyNames = 1600
)

// company is how many conversations may have to do with what one that was held behind them has seen.
const company = 60

// slowWorkers hold conversations that wait past timeouts. Where they share a server with the
// others, slowly is how often they are let.
const (
	slowWorkers = 12
	slowly      = 8
)

// run fuzzes until the bounds of the run are reached. The error is about the server.
func (w *crew) run(ctx context.Context) error {
	defer w.close()
	for {
		if w.t == nil {
			if err := w.launch(ctx); err != nil {
				return err
			}
		}
		w.fuzz(ctx)
		if err := w.look(ctx); err != nil {
			return err
		}
		switch {
		case ctx.Err() != nil, w.f.done():
			return errOver
		case !w.f.cfg.Fixed && w.t != nil && (time.Since(w.base) > lifetime || w.names.Load() > manyNames):
			w.kill()
		}
	}
}

// launch starts the server.
func (w *crew) launch(ctx context.Context) error {
	f := w.f
	t, err := w.receive(ctx)
	if err != nil {
		return err
	}
	if err := target.Alive(ctx, t); err != nil {
		t.Stop()
		if ctx.Err() != nil {
			return errOver
		}
		return err
	}
	if w.to, err = resolve(t.Addr()); err != nil {
		t.Stop()
		return err
	}
	w.t, w.base = t, time.Now()
	u, _ := watch.AtRest(t, -1)
	w.descriptors = u.Descriptors
	f.lives.Add(1)
	for len(w.ready) < w.size+w.slow {
		id := len(w.ready)
		r := randOf(f.cfg.Seed + uint64(w.id)<<48 + uint64(id)<<32)
		one := &worker{crew: w, r: r, b: newBreeder(f.cfg.Protocol, r, &f.cfg.Known)}
		one.b.slow = id >= w.size
		w.ready = append(w.ready, one)
	}
	for _, one := range w.ready {
		one.x = newPerformer(f.cfg.Protocol, w.to, &f.cfg.Known, min(f.cfg.Patience, hasty))
		one.x.stop = w.alarm.Load
		one.spare = nil
	}
	w.names.Store(0)
	if !f.cfg.Fixed {
		w.prepare(ctx)
	}
	return nil
}

// mostStarts is how often a server may fail to start, one time behind the other, if one has started before.
const mostStarts = 3

// receive returns the next server.
func (w *crew) receive(ctx context.Context) (target.Target, error) {
	for n := 1; ; n++ {
		if w.next == nil {
			w.prepare(ctx)
		}
		next := <-w.next
		w.next = nil
		if next.err == nil || n == mostStarts || w.f.lives.Load() == 0 || ctx.Err() != nil {
			return next.t, next.err
		}
	}
}

// prepare starts the next server, so that nobody has to wait for it.
func (w *crew) prepare(ctx context.Context) {
	next := make(chan born, 1)
	w.next = next
	w.ending.Go(func() {
		t, err := w.f.cfg.Start(context.WithoutCancel(ctx))
		next <- born{t, err}
	})
}

// kill ends the server, for which nobody waits either.
func (w *crew) kill() {
	if w.t == nil {
		return
	}
	w.dismiss()
	t := w.t
	w.ending.Go(func() { t.Stop() })
	w.t = nil
}

// close ends the server, and the one that was to come.
func (w *crew) close() {
	w.kill()
	if w.next != nil {
		if n := <-w.next; n.err == nil {
			n.t.Stop()
		}
	}
	w.ending.Wait()
}

// dismiss ends the connections that workers keep from one conversation to the next.
func (w *crew) dismiss() {
	for _, one := range w.ready {
		one.x.dismiss()
	}
}

// fuzz has everybody hold conversations for a while.
func (w *crew) fuzz(ctx context.Context) {
	w.alarm.Store(false)
	w.slices++
	end := time.Now().Add(min(max(w.slice, keepsOff*w.late), slowSlice))
	stop := context.AfterFunc(ctx, func() { w.alarm.Store(true) })
	defer stop()
	var all sync.WaitGroup
	for _, one := range w.ready {
		if one.b.slow && w.size > 0 && w.slices%slowly != 4 {
			continue
		}
		all.Go(func() {
			for !w.alarm.Load() && time.Now().Before(end) && w.names.Load() <= manyNames && !w.f.done() {
				one.hold()
			}
		})
	}
	all.Wait()
	w.late = max(0, time.Since(end))
}

// hold makes a conversation and holds it.
func (w *worker) hold() {
	f := w.f
	c := w.next()
	if c == nil {
		return
	}
	prefix := w.prefix()
	r := w.x.perform(c, prefix)
	if r.Clean && w.x.d.reuse && r.Fault == nil && !sticky(w.x.d, c) {
		w.spare = append(w.spare, prefix)
	}
	f.convs.Add(1)
	f.msgs.Add(int64(len(r.Events)))
	w.mu.Lock()
	at := len(w.done)
	w.done = append(w.done, c)
	w.mu.Unlock()
	if f.pool.learn(c, r.edges) {
		w.b.notice(c, r)
	}
	switch v := r.Fault; {
	case v == nil:
	case v.grave():
		w.suspect = &suspicion{conv: c, fault: v}
		w.alarm.Store(true)
	case !f.old(c, v):
		w.later = append(w.later, &suspicion{conv: c, fault: v, at: at})
	}
}

// next makes a conversation, of others most often. It is nil if it is not to be held.
func (w *worker) next() *Conv {
	f := w.f
	var c *Conv
	pick := func() *Conv { return f.pool.pick(w.r) }
	switch parent := pick(); {
	case parent == nil || w.r.IntN(3) == 0:
		c = w.b.fresh()
	case w.r.IntN(40) == 0:
		c = parent.clone() // as it is
		w.b.restrict(c)
	default:
		c = w.b.child(parent, pick)
	}
	if w.b.slow && c.waits() == 0 {
		w.b.wait(c, nil)
	}
	if f.pool.shunning() {
		for i := range c.Steps {
			if f.pool.shuns(class(f.cfg.Protocol, &c.Steps[i]), w.r) {
				return nil
			}
		}
	}
	if len(c.Steps) == 0 {
		return nil
	}
	return c
}

// sticky reports whether a conversation may have changed a name for good.
func sticky(d *dialect, c *Conv) bool {
	if c.Burst {
		return true
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Verb == transcript.Raw || s.Type != nil && has(d.sticky, s.Type.Name) {
			return true
		}
	}
	return false
}

// prefix returns one under which nobody has names, or nothing is left of them. Those that were
// used last wait until the server has seen their users leave.
func (w *worker) prefix() string {
	if len(w.spare) > 16 {
		p := w.spare[0]
		w.spare = w.spare[1:]
		return p
	}
	return fmt.Sprintf("%c%0*x.", 'A'+w.crew.id, len(place)-2, w.names.Add(1))
}

// look judges the server as a whole, and hands on what anybody suspects.
func (w *crew) look(ctx context.Context) error {
	f := w.f
	f.tally("fuzzing")
	var suspects []*suspicion
	for _, one := range w.ready {
		if one.suspect != nil {
			suspects = append(suspects, one.suspect)
			one.suspect = nil
		}
		for _, s := range one.later {
			s.beside = w.around(s.at)
			f.desk.add(&matter{suspects: []*suspicion{s}})
		}
		one.later = nil
	}
	done := w.done
	w.done = nil
	whole := verdict(w.t, first(suspects))
	if len(suspects) > 0 || whole != nil {
		f.desk.add(&matter{suspects: suspects, whole: whole, done: done})
		if f.cfg.Fixed {
			f.desk.some(ctx)
			return target.Alive(ctx, w.t)
		}
		w.kill()
		return nil
	}
	if f.cfg.Fixed {
		f.desk.some(ctx)
		return nil
	}
	if target.Pid(w.t) == 0 {
		return nil
	}
	w.dismiss()
	if watch.Spinning(w.t) {
		f.desk.add(&matter{whole: spin(), done: done})
		w.kill()
		return nil
	}
	u, ok := watch.AtRest(w.t, w.descriptors+w.unnoticed())
	if w.descriptors == 0 || !ok {
		w.descriptors = u.Descriptors
	} else if u.Descriptors >= w.descriptors+kept+w.unnoticed() {
		f.desk.add(&matter{kept: true, done: done})
		w.kill()
	}
	return nil
}

// around returns the conversations that were held beside the one that was over after so many.
func (w *crew) around(at int) []*Conv {
	before, behind := w.done[max(0, at-company):at], w.done[at+1:min(len(w.done), at+1+len(w.ready))]
	return slices.DeleteFunc(slices.Concat(before, behind), func(c *Conv) bool { return c.waits() > 0 })
}

// unnoticed counts the connections that the server may keep.
func (w *crew) unnoticed() (n int) {
	for _, one := range w.ready {
		n += one.x.unnoticed
	}
	return n
}

func first(all []*suspicion) *Fault {
	if len(all) == 0 {
		return nil
	}
	return all[0].fault
}
