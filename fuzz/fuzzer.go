package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
)

// Config says what to fuzz, how, and for how long.
type Config struct {
	Protocol *codec.Protocol

	// Start starts a server in a process of its own. Fixed says that it cannot be started
	// anew: then nothing can be confirmed but what the server survives.
	Start func(context.Context) (target.Target, error)
	Fixed bool

	// Reference starts a server that is held to be right, whose replies findings give as
	// what was due. It may be nil.
	Reference func(context.Context) (target.Target, error)

	Seeds    []*Conv
	Seed     uint64
	Duration time.Duration // 0 is no bound
	Count    int64         // conversations; 0 is no bound
	Workers  int           // conversations at a time; 0 is 4
	Patience time.Duration // how long an answer may take; 0 is 2 s
	Minimise time.Duration // how long a finding may be made smaller; 0 is 30 s
	First    bool          // stop at the first finding
	Known    Known
	KnownAs  []string // keys of findings that were told before

	Found    func(*Finding)
	Progress func(Stats)   // called about once a second
	Keep     func([]*Conv) // called at the end with all that led somewhere new
}

// Stats tell how far fuzzing has come.
type Stats struct {
	Elapsed       time.Duration
	Conversations int64
	Messages      int64
	Pool, Edges   int
	Findings      int
	Again         int // suspicions that are a finding already
	Disputed      int // that the reference shows too
	Unconfirmed   int // that did not show on a fresh server
	Starts        int // of servers
	Doing         string
}

// Fuzzer is one run.
type Fuzzer struct {
	cfg   Config
	pool  *pool
	start time.Time

	t           target.Target
	to          endpoint
	lives       uint64 // of the server
	ready       []*worker
	stats       Stats
	convs       atomic.Int64
	msgs        atomic.Int64
	again       atomic.Int64
	alarm       atomic.Bool    // everybody is to stop
	habits      map[string]int // how many findings are of a rule or a law
	stopped     func() bool    // whether the caller wants no more; not for want of time
	known       map[string]bool
	quick       map[string]bool // of suspicions that were confirmed
	doubts      map[string]int  // that were not
	lab         *lab
	later       []*suspicion    // to be examined when there is time
	waiting     map[string]bool // the keys of these
	soaking     time.Duration   // looking for leaks
	hermit      *worker         // who makes conversations for the lab
	solitary    time.Duration   // spent on them
	spent       time.Duration   // on examining
	descriptors int             // that this server had at first
	slices      uint64
	base        time.Time // of this life of the server
	told        time.Time
}

// worker is one of those who hold conversations at the same time.
type worker struct {
	id      int
	x       *performer
	b       *breeder
	r       *rand.Rand
	names   uint64       // used up
	spare   []string     // prefixes under which nothing is left
	done    []*Conv      // since the last rest
	suspect *suspicion   // that the server has ended
	later   []*suspicion // of anything else
}

// suspicion is a fault that has been seen once.
type suspicion struct {
	conv  *Conv
	fault *Fault
}

// errOver ends a run.
var errOver = errors.New("over")

// Run fuzzes until its bounds are reached or ctx is cancelled. The error is about the server:
// it could not be started, or is out of reach.
func Run(ctx context.Context, cfg Config) (Stats, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 4
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2 * time.Second
	}
	if cfg.Minimise == 0 {
		cfg.Minimise = 30 * time.Second
	}
	f := &Fuzzer{cfg: cfg, pool: newPool(cfg.Seeds), start: time.Now(), known: map[string]bool{}, habits: map[string]int{}, quick: map[string]bool{}, doubts: map[string]int{}, waiting: map[string]bool{}}
	for _, k := range cfg.KnownAs {
		f.known[k] = true
	}
	caller := ctx
	f.stopped = func() bool { return caller.Err() != nil }
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	f.lab = &lab{cfg: &f.cfg, ctx: context.WithoutCancel(ctx), patience: cfg.Patience}
	defer f.lab.close()
	r := randOf(cfg.Seed - 1)
	f.hermit = &worker{r: r, b: newBreeder(cfg.Protocol, r, &f.cfg.Known)}
	err := f.run(ctx)
	f.kill()
	f.tally("over")
	if cfg.Keep != nil {
		cfg.Keep(f.pool.convs[len(cfg.Seeds):])
	}
	if errors.Is(err, errOver) {
		err = nil
	}
	return f.stats, err
}

// hasty is the patience with a server until it is suspected; what is confirmed is with all that
// there is.
const hasty = time.Second

// slice is how long everybody fuzzes between two looks at the server as a whole.
const slice = 800 * time.Millisecond

// A server is started anew before the names that nobody uses any more make it slow.
const (
	lifetime  = 20 * time.Second
	manyNames = 3000
)

// names counts those that this server has been given.
func (f *Fuzzer) names() (n uint64) {
	for _, w := range f.ready {
		n += w.names
	}
	return n
}

func (f *Fuzzer) run(ctx context.Context) error {
	for {
		if f.t == nil {
			if err := f.launch(ctx); err != nil {
				return err
			}
		}
		f.fuzz(ctx)
		if err := f.look(ctx); err != nil {
			return err
		}
		switch {
		case ctx.Err() != nil, f.cfg.Count > 0 && f.convs.Load() >= f.cfg.Count, f.cfg.First && f.stats.Findings > 0:
			return errOver
		case !f.cfg.Fixed && f.t != nil && (time.Since(f.base) > lifetime || f.names() > manyNames):
			f.kill()
		}
	}
}

// launch starts the server.
func (f *Fuzzer) launch(ctx context.Context) error {
	t, err := f.cfg.Start(context.WithoutCancel(ctx))
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
	if f.to, err = resolve(t.Addr()); err != nil {
		return err
	}
	f.t, f.base = t, time.Now()
	u, _ := atRest(t, -1)
	f.descriptors = u.descriptors
	f.lives++
	f.stats.Starts++
	for len(f.ready) < f.cfg.Workers+slowWorkers {
		id := len(f.ready)
		r := randOf(f.cfg.Seed + uint64(id)<<32)
		w := &worker{id: id, r: r, b: newBreeder(f.cfg.Protocol, r, &f.cfg.Known)}
		w.b.slow = id >= f.cfg.Workers
		f.ready = append(f.ready, w)
	}
	for _, w := range f.ready {
		w.x = newPerformer(f.cfg.Protocol, f.to, &f.cfg.Known, min(f.cfg.Patience, hasty))
		w.x.stop = f.alarm.Load
		w.spare, w.names = nil, 0
	}
	return nil
}

func randOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x66757a7a)) }

// kill ends the server.
func (f *Fuzzer) kill() {
	if f.t == nil {
		return
	}
	for _, w := range f.ready {
		w.x.dismiss()
	}
	f.t.Stop()
	f.t = nil
}

// slowWorkers hold conversations that wait past timeouts; slowly is how often they are let.
const (
	slowWorkers = 12
	slowly      = 8
)

// fuzz has everybody hold conversations for a while.
func (f *Fuzzer) fuzz(ctx context.Context) {
	f.alarm.Store(false)
	f.slices++
	end := time.Now().Add(slice)
	stop := context.AfterFunc(ctx, func() { f.alarm.Store(true) })
	defer stop()
	var all sync.WaitGroup
	for _, w := range f.ready {
		if w.b.slow && f.slices%slowly != 4 {
			continue
		}
		w.done, w.suspect = w.done[:0], nil
		all.Go(func() {
			for !f.alarm.Load() && time.Now().Before(end) && w.names < manyNames/4 && !(f.cfg.Count > 0 && f.convs.Load() >= f.cfg.Count) {
				f.one(w)
			}
		})
	}
	all.Wait()
}

// one makes a conversation and holds it.
func (f *Fuzzer) one(w *worker) {
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
				return
			}
		}
	}
	if len(c.Steps) == 0 {
		return
	}
	prefix := w.prefix(f.lives)
	r := w.x.perform(c, prefix)
	if r.Clean && w.x.d.reuse && r.Fault == nil && !sticky(w.x.d, c) {
		w.spare = append(w.spare, prefix)
	}
	f.convs.Add(1)
	f.msgs.Add(int64(len(r.Events)))
	w.done = append(w.done, c)
	fresh := f.pool.learn(c, r.edges)
	if fresh {
		w.b.notice(c, r)
	}
	if r.Fault == nil || f.old(c, r.Fault) {
		return
	}
	if s := (&suspicion{c, r.Fault}); r.Fault.grave() {
		w.suspect = s
		f.alarm.Store(true)
	} else {
		w.later = append(w.later, s)
	}
}

// grave reports whether the server may have ended.
func (v *Fault) grave() bool { return v.Oracle == HangAll || v.Oracle == Disturbed }

// old reports whether a suspicion is no news: it is a finding already, which the server has
// survived, or was doubted often.
func (f *Fuzzer) old(c *Conv, v *Fault) bool {
	key := quickKey(f.cfg.Protocol, c, v)
	switch {
	case v.grave():
		return false
	case f.waiting[key]:
		return true
	case f.doubts[key] >= maxDoubts:
		return true
	case !f.quick[key] && !f.habitual(c, v):
		return false
	}
	f.again.Add(1)
	f.shun(c, v)
	return true
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
func (w *worker) prefix(life uint64) string {
	if len(w.spare) > 16 {
		p := w.spare[0]
		w.spare = w.spare[1:]
		return p
	}
	w.names++
	return fmt.Sprintf("%c%0*x.", 'A'+w.id, len(place)-2, w.names)
}

// look judges the server as a whole, and what anybody suspects.
func (f *Fuzzer) look(ctx context.Context) error {
	f.tally("fuzzing")
	var suspects []*suspicion
	var done []*Conv
	for _, w := range f.ready {
		if w.suspect != nil {
			suspects = append(suspects, w.suspect)
			w.suspect = nil
		}
		for _, s := range w.later {
			if key := quickKey(f.cfg.Protocol, s.conv, s.fault); !f.waiting[key] {
				f.waiting[key] = true
				f.later = append(f.later, s)
			}
		}
		w.later = nil
		done = append(done, w.done...)
		w.done = w.done[:0]
	}
	whole := verdict(f.t, first(suspects))
	if len(suspects) > 0 || whole != nil {
		f.examine(suspects, whole, done)
		if f.cfg.Fixed {
			return target.Alive(ctx, f.t)
		}
		f.kill()
		return nil
	}
	// What does not stop the server is given half of the time.
	for len(f.later) > 0 && ctx.Err() == nil && (f.spent < time.Since(f.start)/2 || f.cfg.First) {
		s := f.later[0]
		f.later = f.later[1:]
		delete(f.waiting, quickKey(f.cfg.Protocol, s.conv, s.fault))
		f.examine([]*suspicion{s}, nil, nil)
		if f.cfg.First && f.stats.Findings > 0 {
			return nil
		}
	}
	if f.cfg.Fixed {
		return nil
	}
	f.alone()
	if target.Pid(f.t) == 0 {
		return nil
	}
	for _, w := range f.ready {
		w.x.dismiss()
	}
	if spinning(f.t) {
		f.examine(nil, spin(), done)
		f.kill()
		return nil
	}
	u, ok := atRest(f.t, f.descriptors+f.unnoticed())
	if f.descriptors == 0 || !ok {
		f.descriptors = u.descriptors
	} else if u.descriptors >= f.descriptors+kept+f.unnoticed() {
		f.keeper(done)
		f.kill()
		return nil
	}
	f.soak()
	return nil
}

// unnoticed counts the connections that the server may keep.
func (f *Fuzzer) unnoticed() (n int) {
	for _, w := range f.ready {
		n += w.x.unnoticed
	}
	return n
}

func first(all []*suspicion) *Fault {
	if len(all) == 0 {
		return nil
	}
	return all[0].fault
}

// tally brings the statistics up to date, and tells them once a second.
func (f *Fuzzer) tally(doing string) {
	f.stats.Elapsed = time.Since(f.start)
	f.stats.Conversations, f.stats.Messages = f.convs.Load(), f.msgs.Load()
	f.stats.Again = int(f.again.Load())
	f.stats.Pool, f.stats.Edges = f.pool.size()
	f.stats.Doing = doing
	if f.cfg.Progress != nil && (time.Since(f.told) > time.Second || doing == "over") {
		f.told = time.Now()
		f.cfg.Progress(f.stats)
	}
}
