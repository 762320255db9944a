package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/internal/target"
)

// Config says what to fuzz and how.
type Config struct {
	Protocol *codec.Protocol

	// Start starts a server in a process of its own. Fixed says that the server cannot be restarted. Then only faults that
	// the server survives can be reproduced.
	Start func(context.Context) (target.Target, error)
	Fixed bool

	// Reference starts a correct server. Findings state its replies as expected. It may be nil.
	Reference func(context.Context) (target.Target, error)

	Seeds    []*Input
	Seed     uint64
	Duration time.Duration // 0: no limit
	Count    int64         // inputs; 0: no limit
	Workers  int           // inputs at the same time; 0: 20
	Patience time.Duration // timeout of a reply; 0: 2 s
	Minimize time.Duration // time limit for minimizing a finding; 0: 30 s
	First    bool          // stop at the first finding
	Known    Known
	KnownAs  []string // keys of findings that were reported before

	Found    func(*Finding)
	Progress func(Stats)    // called about once a second
	Log      func(string)   // called with what became of each observation
	Keep     func([]*Input) // called at the end with the new inputs of the corpus

	// Candidate is called at the end with each candidate that was not examined. It may be nil.
	Candidate func(*Finding)
}

// Stats are the statistics of a run.
type Stats struct {
	Elapsed          time.Duration
	Executions       int64
	Messages         int64
	Corpus, Features int
	Findings         int
	Duplicates       int // duplicates of findings
	ReferenceFails   int // faults that the reference server has too
	NotReproduced    int // faults that did not appear on a new server
	Unexamined       int // candidates that were queued at the end
	Starts           int // of servers
	Doing            string
}

// Fuzzer is one run.
type Fuzzer struct {
	cfg         Config
	corpus      *corpus
	start       time.Time
	inputs      atomic.Int64
	msgs        atomic.Int64
	again       atomic.Int64
	lives       atomic.Uint64 // of servers
	stopped     func() bool   // whether the run has ended
	deadline    time.Time     // end of the run; zero: none
	enough      func()        // ends the run
	replayer    *replayer
	triageQueue *triageQueue

	mu       sync.Mutex // of the following fields
	stats    Stats
	told     time.Time
	buckets  map[string]int // how many findings are in each bucket
	known    map[string]bool
	quick    map[string]bool // provisional keys of reproduced observations
	backoffs map[string]backoff
	deaths   []*Finding      // crashes, one for each signature
	causes   map[string]bool // signatures of findings
}

// observation is a fault that was seen once.
type observation struct {
	input  *Input
	fault  *Fault
	at     int      // number of the input in the slice
	beside []*Input // inputs that ran before it or at the same time
}

// errOver ends a run.
var errOver = errors.New("the run has ended")

// Run fuzzes until its limits are reached or ctx is canceled. The error is about the server: it could not be started or
// reached.
func Run(ctx context.Context, cfg Config) (Stats, error) {
	if cfg.Protocol.Barrier.Request == nil {
		return Stats{}, fmt.Errorf("%s cannot be fuzzed: its contract has no barrier, a request that the server answers at once", cfg.Protocol.Title)
	}
	if cfg.Workers == 0 {
		cfg.Workers = 20
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2 * time.Second
	}
	if cfg.Minimize == 0 {
		cfg.Minimize = 30 * time.Second
	}
	f := &Fuzzer{cfg: cfg, corpus: newCorpus(cfg.Seeds), start: time.Now(), known: map[string]bool{}, buckets: map[string]int{}, quick: map[string]bool{}, backoffs: map[string]backoff{}, causes: map[string]bool{}}
	for _, k := range cfg.KnownAs {
		f.known[k] = true
	}
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	ctx, f.enough = context.WithCancel(ctx)
	defer f.enough()
	f.stopped = func() bool { return ctx.Err() != nil }
	f.deadline, _ = ctx.Deadline()
	f.replayer = &replayer{cfg: &f.cfg, ctx: ctx, patience: cfg.Patience, died: f.observe}
	defer f.replayer.close()
	f.triageQueue = newTriageQueue(f)
	err := f.run(ctx)
	f.leftOver()
	f.tally("finished")
	if cfg.Keep != nil {
		cfg.Keep(f.corpus.inputs[len(cfg.Seeds):])
	}
	if errors.Is(err, errOver) {
		err = nil
	}
	return f.stats, err
}

// run runs the instances and the triage queue.
func (f *Fuzzer) run(ctx context.Context) error {
	fast := &instance{f: f, size: f.cfg.Workers, slice: fastSlice}
	if f.cfg.Fixed {
		// There is one server, which fuzzing must not use while an observation is examined.
		fast.slow = slowWorkers
		return fast.run(ctx)
	}
	beside, over := context.WithCancel(ctx)
	defer over()
	var all sync.WaitGroup
	slow := &instance{f: f, id: 1, slow: slowWorkers, slice: slowSlice}
	all.Go(func() { slow.run(beside) })
	soaker := &instance{f: f, id: 2, size: 1}
	all.Go(func() { soaker.soak(beside) })
	all.Go(func() { f.alone(beside) })
	examined := make(chan struct{})
	go func() {
		defer close(examined)
		f.triageQueue.work(ctx)
	}()
	err := fast.run(ctx)
	over()
	all.Wait()
	close(f.triageQueue.more)
	<-examined
	return err
}

func randOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x66757a7a)) }

// left returns the time until the end of the run.
func (f *Fuzzer) left() time.Duration {
	if f.deadline.IsZero() {
		return math.MaxInt64
	}
	return time.Until(f.deadline)
}

// done reports whether the requested number of inputs was executed.
func (f *Fuzzer) done() bool { return f.cfg.Count > 0 && f.inputs.Load() >= f.cfg.Count }

// note changes the shared state of the triage.
func (f *Fuzzer) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// logf logs what became of an observation.
func (f *Fuzzer) logf(format string, args ...any) {
	if f.cfg.Log != nil {
		f.cfg.Log(fmt.Sprintf("%.1f s: ", time.Since(f.start).Seconds()) + fmt.Sprintf(format, args...))
	}
}

// tally updates the statistics, and reports them once a second.
func (f *Fuzzer) tally(doing string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Elapsed = time.Since(f.start)
	f.stats.Executions, f.stats.Messages = f.inputs.Load(), f.msgs.Load()
	f.stats.Duplicates = int(f.again.Load())
	f.stats.Starts = int(f.lives.Load())
	f.stats.Corpus, f.stats.Features = f.corpus.size()
	f.stats.Doing = doing
	if f.cfg.Progress != nil && (time.Since(f.told) > time.Second || doing == "finished") {
		f.told = time.Now()
		f.cfg.Progress(f.stats)
	}
}
