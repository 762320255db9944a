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
	Workers  int           // conversations at a time; 0 is 20
	Patience time.Duration // how long an answer may take; 0 is 2 s
	Minimise time.Duration // how long a finding may be made smaller; 0 is 30 s
	First    bool          // stop at the first finding
	Known    Known
	KnownAs  []string // keys of findings that were told before

	Found    func(*Finding)
	Progress func(Stats)   // called about once a second
	Log      func(string)  // called with what became of each suspicion
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
	cfg     Config
	pool    *pool
	start   time.Time
	convs   atomic.Int64
	msgs    atomic.Int64
	again   atomic.Int64
	lives   atomic.Uint64 // of servers
	stopped func() bool   // whether the caller wants no more; not for want of time
	enough  func()        // ends the run
	lab     *lab
	desk    *desk

	mu     sync.Mutex // of what follows; what is known of suspicions is written by the examiner alone
	stats  Stats
	told   time.Time
	habits map[string]int // how many findings are of a rule or a law
	known  map[string]bool
	quick  map[string]bool // of suspicions that were confirmed
	doubts map[string]doubt
}

// suspicion is a fault that has been seen once.
type suspicion struct {
	conv   *Conv
	fault  *Fault
	at     int     // so many conversations of the crew were over
	beside []*Conv // what others held just before it, or at the time
}

// errOver ends a run.
var errOver = errors.New("over")

// Run fuzzes until its bounds are reached or ctx is cancelled. The error is about the server:
// it could not be started, or is out of reach.
func Run(ctx context.Context, cfg Config) (Stats, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 20
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2 * time.Second
	}
	if cfg.Minimise == 0 {
		cfg.Minimise = 30 * time.Second
	}
	f := &Fuzzer{cfg: cfg, pool: newPool(cfg.Seeds), start: time.Now(), known: map[string]bool{}, habits: map[string]int{}, quick: map[string]bool{}, doubts: map[string]doubt{}}
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
	ctx, f.enough = context.WithCancel(ctx)
	defer f.enough()
	f.lab = &lab{cfg: &f.cfg, ctx: context.WithoutCancel(ctx), patience: cfg.Patience}
	defer f.lab.close()
	f.desk = newDesk(f)
	err := f.run(ctx)
	f.tally("over")
	if cfg.Keep != nil {
		cfg.Keep(f.pool.convs[len(cfg.Seeds):])
	}
	if errors.Is(err, errOver) {
		err = nil
	}
	return f.stats, err
}

// run has the crews fuzz, side by side, and whoever examines what they suspect.
func (f *Fuzzer) run(ctx context.Context) error {
	fast := &crew{f: f, size: f.cfg.Workers, slice: fastSlice}
	if f.cfg.Fixed {
		// There is one server, and nobody else may use it while a suspicion is examined.
		fast.slow = slowWorkers
		return fast.run(ctx)
	}
	beside, over := context.WithCancel(ctx)
	defer over()
	var all sync.WaitGroup
	slow := &crew{f: f, id: 1, slow: slowWorkers, slice: slowSlice}
	all.Go(func() { slow.run(beside) })
	soaker := &crew{f: f, id: 2, size: 1}
	all.Go(func() { soaker.soak(beside) })
	all.Go(func() { f.alone(beside) })
	examined := make(chan struct{})
	go func() {
		defer close(examined)
		f.desk.work(ctx)
	}()
	err := fast.run(ctx)
	over()
	all.Wait()
	f.desk.close()
	<-examined
	return err
}

func randOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x66757a7a)) }

// done reports whether as many conversations were held as were wanted.
func (f *Fuzzer) done() bool { return f.cfg.Count > 0 && f.convs.Load() >= f.cfg.Count }

// note changes what is known of suspicions, or the statistics.
func (f *Fuzzer) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// logf tells what became of a suspicion.
func (f *Fuzzer) logf(format string, args ...any) {
	if f.cfg.Log != nil {
		f.cfg.Log(fmt.Sprintf("%.1f s: ", time.Since(f.start).Seconds()) + fmt.Sprintf(format, args...))
	}
}

// tally brings the statistics up to date, and tells them once a second.
func (f *Fuzzer) tally(doing string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Elapsed = time.Since(f.start)
	f.stats.Conversations, f.stats.Messages = f.convs.Load(), f.msgs.Load()
	f.stats.Again = int(f.again.Load())
	f.stats.Starts = int(f.lives.Load())
	f.stats.Pool, f.stats.Edges = f.pool.size()
	f.stats.Doing = doing
	if f.cfg.Progress != nil && (time.Since(f.told) > time.Second || doing == "over") {
		f.told = time.Now()
		f.cfg.Progress(f.stats)
	}
}
