package fuzz

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// instance is a server, and workers that run inputs on it at the same time.
type instance struct {
	f     *Fuzzer
	id    int
	size  int // workers
	slow  int // workers with long pauses, in addition
	slice time.Duration

	t           target.Target
	next        chan startResult // the next server; nil if none was started
	to          endpoint
	ready       []*worker
	alarm       atomic.Bool   // all workers are to stop
	names       atomic.Uint64 // names that were used
	begun       uint64        // the first name
	descriptors int           // of the server at its start
	base        time.Time     // start of the server
	slices      int
	late        time.Duration  // how long the last slice took too long
	soaked      int64          // executions by soak
	ending      sync.WaitGroup // background starts and stops
	mu          sync.Mutex
	done        []*Input // inputs of the slice
}

// startResult is the result of starting a server.
type startResult struct {
	t   target.Target
	err error
}

// worker runs inputs on an instance.
type worker struct {
	*instance
	x        *executor
	b        *generator
	r        *rand.Rand
	spare    []string       // prefixes of whose names nothing is left
	observed *observation   // of a crash or hang
	later    []*observation // of other faults
}

// fuzzPatience is the timeout for replies while fuzzing. The replayer waits longer.
const fuzzPatience = time.Second

// The minimum and maximum time between two checks of the server. If the last inputs of a slice kept the workers waiting,
// the next slice is minSliceFactor times as long as that took.
const (
	fastSlice      = 800 * time.Millisecond
	slowSlice      = 5 * time.Second
	minSliceFactor = 10
)

// A server is restarted before the names of finished inputs make it slow.
const (
	lifetime  = 20 * time.Second
	manyNames = 1600
)

// historyWindow is how many of the inputs before an observation may have contributed to it.
const historyWindow = 60

// slowWorkers run inputs with long pauses. If they share a server with other workers, they run in one of slowEvery slices.
const (
	slowWorkers = 12
	slowEvery   = 8
)

// run fuzzes until the limits of the run are reached. The error is about the server.
func (w *instance) run(ctx context.Context) error {
	defer w.close()
	for {
		if w.t == nil {
			if err := w.launch(ctx); err != nil {
				return err
			}
		}
		w.fuzz(ctx)
		if err := w.check(ctx); err != nil {
			return err
		}
		switch {
		case ctx.Err() != nil, w.f.done():
			return errOver
		case !w.f.cfg.Fixed && w.t != nil && (time.Since(w.base) > lifetime || w.exhausted()):
			w.kill()
		}
	}
}

// launch starts the server.
func (w *instance) launch(ctx context.Context) error {
	f := w.f
	var t target.Target
	var err error
	for n := 1; ; n++ {
		if t, err = w.receive(ctx); err != nil {
			return err
		}
		if err = target.Alive(ctx, t); err == nil {
			break
		}
		// A server that was started in the background may have crashed.
		if v := verdict(t, nil); v != nil && v.ends() && f.lives.Load() > 0 {
			f.observe(v, nil)
		}
		t.Stop()
		if ctx.Err() != nil {
			return errOver
		}
		if n == maxStarts || f.lives.Load() == 0 {
			return err
		}
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
		one := &worker{instance: w, r: r, b: newGenerator(f.cfg.Protocol, r, &f.cfg.Known)}
		one.b.slow = id >= w.size
		w.ready = append(w.ready, one)
	}
	for _, one := range w.ready {
		one.x = newExecutor(f.cfg.Protocol, w.to, &f.cfg.Known, min(f.cfg.Patience, fuzzPatience))
		one.x.stop, one.x.over = w.alarm.Load, f.stopped
		one.spare = nil
	}
	w.names.Store(0)
	if f.cfg.Fixed {
		w.begun = unusedNames()
		w.names.Store(w.begun)
	} else {
		w.prepare(ctx)
	}
	return nil
}

// maxStarts is how often in a row a server may fail to start, after one has started.
const maxStarts = 3

// receive returns the next server.
func (w *instance) receive(ctx context.Context) (target.Target, error) {
	for n := 1; ; n++ {
		if w.next == nil {
			w.prepare(ctx)
		}
		next := <-w.next
		w.next = nil
		if next.err == nil || n == maxStarts || w.f.lives.Load() == 0 || ctx.Err() != nil {
			return next.t, next.err
		}
	}
}

// prepare starts the next server in the background.
func (w *instance) prepare(ctx context.Context) {
	next := make(chan startResult, 1)
	w.next = next
	w.ending.Go(func() {
		t, err := w.f.cfg.Start(context.WithoutCancel(ctx))
		next <- startResult{t, err}
	})
}

// kill stops the server in the background.
func (w *instance) kill() {
	if w.t == nil {
		return
	}
	w.closeCanary()
	t := w.t
	w.ending.Go(func() { t.Stop() })
	w.t = nil
}

// close stops the server and the next one.
func (w *instance) close() {
	w.kill()
	if w.next != nil {
		if n := <-w.next; n.err == nil {
			n.t.Stop()
		}
	}
	w.ending.Wait()
}

// closeCanary closes the canaries of all workers.
func (w *instance) closeCanary() {
	for _, one := range w.ready {
		one.x.closeCanary()
	}
}

// fuzz lets all workers run inputs for one slice.
func (w *instance) fuzz(ctx context.Context) {
	w.alarm.Store(false)
	w.slices++
	end := time.Now().Add(min(max(w.slice, minSliceFactor*w.late), slowSlice))
	stop := context.AfterFunc(ctx, func() { w.alarm.Store(true) })
	defer stop()
	var all sync.WaitGroup
	for _, one := range w.ready {
		if one.b.slow && w.size > 0 && w.slices%slowEvery != 4 {
			continue
		}
		all.Go(func() {
			for !w.alarm.Load() && time.Now().Before(end) && !w.exhausted() && !w.f.done() {
				one.runOne()
			}
		})
	}
	all.Wait()
	w.late = max(0, time.Since(end))
}

// runOne generates an input and runs it.
func (w *worker) runOne() {
	f := w.f
	c := w.next()
	if c == nil {
		return
	}
	prefix := w.prefix()
	r := w.x.execute(c, prefix)
	if r.Clean && w.x.d.reuse && r.Fault == nil && !changesQueues(c) {
		w.spare = append(w.spare, prefix)
	}
	f.inputs.Add(1)
	f.msgs.Add(int64(len(r.Events)))
	w.mu.Lock()
	at := len(w.done)
	w.done = append(w.done, c)
	w.mu.Unlock()
	if f.corpus.learn(c, r.features) {
		w.b.learn(c, r)
	}
	switch v := r.Fault; {
	case v == nil:
	case v.grave():
		w.observed = &observation{input: c, fault: v}
		w.alarm.Store(true)
	case !f.old(c, v):
		w.later = append(w.later, &observation{input: c, fault: v, at: at})
	}
}

// next generates or mutates an input. It returns nil if the input is not to be run.
func (w *worker) next() *Input {
	f := w.f
	var c *Input
	pick := func() *Input { return f.corpus.pick(w.r) }
	switch parent := pick(); {
	case parent == nil || w.r.IntN(3) == 0:
		c = w.b.generate()
	case w.r.IntN(40) == 0:
		c = parent.clone() // unchanged
		w.b.restrict(c)
	default:
		c = w.b.mutate(parent, pick)
	}
	if w.b.slow && c.waits() == 0 {
		w.b.wait(c, nil)
	}
	if w.overlong(c) {
		return nil
	}
	if f.corpus.penalizing() {
		for i := range c.Steps {
			if f.corpus.skips(class(f.cfg.Protocol, &c.Steps[i]), w.r) {
				return nil
			}
		}
	}
	if len(c.Steps) == 0 {
		return nil
	}
	return c
}

// check checks the server and queues the observations of the workers.
func (w *instance) check(ctx context.Context) error {
	f := w.f
	f.tally("fuzzing")
	var observations []*observation
	for _, one := range w.ready {
		if one.observed != nil {
			observations = append(observations, one.observed)
			one.observed = nil
		}
		for _, s := range one.later {
			s.beside = w.around(s.at)
			f.triageQueue.add(&candidate{observations: []*observation{s}})
		}
		one.later = nil
	}
	done := w.done
	w.done = nil
	whole := verdict(w.t, first(observations))
	m := &candidate{observations: observations, whole: whole, done: done}
	if f.cfg.Fixed {
		if len(observations) > 0 {
			if v := unreachable(w.t); v != nil {
				f.observe(v, m.inputs())
				return target.Alive(context.WithoutCancel(ctx), w.t)
			}
			f.triageQueue.add(m)
		}
		f.triageQueue.some(ctx)
		if f.replayer.gone {
			return target.Alive(context.WithoutCancel(ctx), w.t)
		}
		return nil
	}
	if len(observations) > 0 || whole != nil {
		f.triageQueue.add(m)
		w.kill()
		return nil
	}
	if target.Pid(w.t) == 0 || f.stopped() {
		return nil
	}
	w.closeCanary()
	if watch.Spinning(w.t) {
		f.triageQueue.add(&candidate{whole: spin(), done: done})
		w.kill()
		return nil
	}
	u, ok := watch.AtRest(w.t, w.descriptors+w.unnoticed())
	if w.descriptors == 0 || !ok {
		w.descriptors = u.Descriptors
	} else if u.Descriptors >= w.descriptors+kept+w.unnoticed() {
		f.triageQueue.add(&candidate{kept: true, done: done})
		w.kill()
	}
	return nil
}

// around returns the inputs that ran before and during the input number at.
func (w *instance) around(at int) []*Input {
	before, behind := w.done[max(0, at-historyWindow):at], w.done[at+1:min(len(w.done), at+1+len(w.ready))]
	return slices.DeleteFunc(slices.Concat(before, behind), func(c *Input) bool { return c.waits() > 0 })
}

// unnoticed returns how many connections the server may keep.
func (w *instance) unnoticed() (n int) {
	for _, one := range w.ready {
		n += one.x.unnoticed
	}
	return n
}

// overlong reports whether an input asks for a list of what all inputs have left on a server that is never restarted. Longer
// lists are requested less often, so that the run does not become slower and slower.
func (w *worker) overlong(c *Input) bool {
	used := w.names.Load() - w.begun
	if !w.f.cfg.Fixed || used <= manyNames || w.r.Uint64N(used) < manyNames {
		return false
	}
	for i := range c.Steps {
		if t := w.f.cfg.Protocol.TypeNamed(class(w.f.cfg.Protocol, &c.Steps[i])); t != nil && listsAll(t) {
			return true
		}
	}
	return false
}

func first(all []*observation) *Fault {
	if len(all) == 0 {
		return nil
	}
	return all[0].fault
}
