package fuzz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// Config describes the server to fuzz, the limits of the run and the functions that receive the results.
type Config struct {
	Protocol *codec.Protocol
	triage.Server
	triage.Reports

	// Sequential examines each failure before the next input, with one worker. A run in virtual time needs this, because
	// time would not pass for the examination while a worker is busy.
	Sequential bool

	Seeds    []*input.Input
	Seed     uint64
	Duration time.Duration // of the whole run; 0: no limit
	Count    int64         // number of inputs; 0: no limit
	Workers  int           // number of workers, each with its own server; 0: 4
	Timeout  time.Duration // timeout of a reply; 0: 2 s
	Minimize time.Duration // time limit for minimizing a finding; 0: 30 s
	First    bool          // stop at the first finding
	Known    input.Known
	KnownAs  []string // keys of findings that were reported before

	Progress func(Stats)          // called about once a second
	Note     func(string)         // called with a line about the result of each candidate
	Keep     func([]*input.Input) // called at the end with the new inputs of the corpus

	// Log is called with the log of each server when the server is stopped. It may be nil.
	Log func(*input.Log)

	// Check is called if the server does not answer the preferred barrier. It may return an error that says why. It may
	// be nil.
	Check func(context.Context, target.Target) error

	// Works is called when the server has answered a barrier, before Run fuzzes it. It may be nil.
	Works func()
}

// Stats are the statistics of a run.
type Stats struct {
	Elapsed          time.Duration
	Executions       int64
	Repeats          int64 // further executions that repeat an earlier one, in search of memory leaks
	Timed            int64 // executions with pauses
	Messages         int64
	Corpus, Features int
	triage.Counts
	Starts int // number of servers started
	Doing  string
}

// Fuzzer is the state of one run.
type Fuzzer struct {
	cfg     Config
	barrier *exec.Barrier // the first of the protocol that the server answers
	corpus  *input.Corpus
	triage  *triage.Triage
	start   time.Time
	claimed atomic.Int64   // number of inputs claimed by workers
	repeats atomic.Int64   // number of executions that repeat an earlier one, in search of memory leaks
	slow    int            // number of slow workers
	timed   atomic.Int64   // number of executed inputs with pauses
	msgs    atomic.Int64   // number of events
	servers atomic.Uint64  // number of servers started
	names   atomic.Uint64  // prefixes used at a fixed address, including those of earlier runs
	ending  sync.WaitGroup // servers that start or stop in the background
	stopped func() bool    // reports whether the run has ended
	stopRun func()         // ends the run when called

	mu         sync.Mutex // protects the fields below
	stats      Stats
	reportedAt time.Time
}

// defaultWorkers is the default number of workers, which is enough to keep two CPU cores busy.
const defaultWorkers = 4

// slowWorkers is the number of additional workers, for each worker, that run inputs with pauses. They mostly wait, so
// many of them use little processor time. maxSlowMemory limits the memory of their servers, of which each is assumed to
// use unknownMemory if the system does not say.
const (
	slowWorkers   = 8
	maxSlowMemory = 1 << 30
	unknownMemory = 128 << 20
)

// maxEnding limits the part of the duration of a run that is reserved for stopping servers and saving candidates.
const maxEnding = time.Second

// Run fuzzes a server until a limit of the run is reached or ctx is canceled. It returns an error if the server cannot
// be started or reached, if the protocol has no barrier, or if the server answers none of them.
func Run(ctx context.Context, cfg Config) (Stats, error) {
	if len(cfg.Protocol.Barriers) == 0 {
		return Stats{}, fmt.Errorf("%s cannot be fuzzed: its contract has no barrier, a request that the server answers at once", cfg.Protocol.Title)
	}
	f := newFuzzer(cfg)
	if !model.Has(cfg.Protocol) {
		f.Logf("jobwire has no model of a server for %s: replies are checked only against the rules of its messages, and requests must be answered",
			cfg.Protocol.Title)
	}
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration-min(cfg.Duration/20, maxEnding))
		defer cancel()
	}
	ctx, f.stopRun = context.WithCancel(ctx)
	defer f.stopRun()
	f.stopped = func() bool { return ctx.Err() != nil }
	err := f.calibrate(ctx)
	f.triage = f.newTriage(ctx)
	if err == nil {
		if cfg.Works != nil {
			cfg.Works()
		}
		err = f.run(ctx)
	}
	f.ending.Wait()
	f.triage.Finish()
	f.tally("finished")
	if (err == nil || ctx.Err() != nil) && f.servers.Load() == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: the server had not started when the run ended", target.ErrUnreachable)
	}
	if cfg.Keep != nil {
		cfg.Keep(f.corpus.Added())
	}
	return f.stats, err
}

// calibrate chooses the barrier of the run.
func (f *Fuzzer) calibrate(ctx context.Context) error {
	t, err := f.cfg.Start(ctx)
	if err != nil {
		return err
	}
	if !f.cfg.Fixed {
		defer target.Kill(t)
	}
	if err := target.Alive(ctx, t); err != nil {
		return err
	}
	f.servers.Add(1)
	u, _ := watch.Of(t)
	f.slow = max(2, min(slowWorkers*f.cfg.Workers, int(maxSlowMemory/cmp.Or(u.Resident, unknownMemory))))
	b, refused, err := exec.FindBarrier(ctx, t, f.cfg.Protocol, &f.cfg.Known, f.cfg.Timeout, f.cfg.Check)
	if err != nil {
		return err
	}
	if f.barrier = b; len(refused) > 0 {
		f.Logf("the probe is %s, because the server does not answer %s", b.Name(), strings.Join(refused, " and "))
	}
	return nil
}

// newFuzzer returns the state of a new run with the default values of cfg filled in.
func newFuzzer(cfg Config) *Fuzzer {
	if cfg.Workers = cmp.Or(cfg.Workers, defaultWorkers); cfg.Sequential {
		cfg.Workers = 1
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Second)
	cfg.Minimize = cmp.Or(cfg.Minimize, 30*time.Second)
	f := &Fuzzer{cfg: cfg, corpus: input.NewCorpus(cfg.Seeds), start: time.Now()}
	if cfg.Fixed {
		f.names.Store(input.UnusedNames())
	}
	return f
}

// run runs the workers and the triage until the run ends.
func (f *Fuzzer) run(ctx context.Context) error {
	if f.cfg.Fixed || f.cfg.Sequential {
		// While a candidate is examined, nothing else may use the only server.
		defer f.triage.Close()
		return f.newWorker(0, false).run(ctx)
	}
	workers := []*worker{}
	for id := range f.cfg.Workers {
		workers = append(workers, f.newWorker(id, false))
	}
	if f.cfg.Workers > 1 { // a single worker also runs inputs with pauses
		for id := range f.slow {
			workers = append(workers, f.newWorker(f.cfg.Workers+id, true))
		}
	}
	var all sync.WaitGroup
	errs := make([]error, len(workers))
	for i, w := range workers {
		all.Go(func() {
			if err := w.run(ctx); err != nil && !f.stopped() {
				errs[i] = err
				f.stopRun()
			}
		})
	}
	examined := make(chan struct{})
	go func() {
		defer close(examined)
		f.triage.Work(ctx)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
		f.ending.Wait() // servers may print reports when they end
		f.triage.EndIfIdle()
		<-examined
	}()
	for running := true; running; {
		select {
		case <-tick.C:
			f.tally("")
		case <-ended:
			running = false
		}
	}
	return errors.Join(errs...)
}

// newWorker returns the worker with a number, which determines its random numbers. A slow worker generates inputs that
// take longer, on a server whose clock runs faster if the configuration has one.
func (f *Fuzzer) newWorker(id int, slow bool) *worker {
	r := input.NewRand(f.cfg.Seed + uint64(id)<<32)
	w := &worker{f: f, id: id, slow: slow, r: r, g: input.NewGenerator(f.cfg.Protocol, r, &f.cfg.Known),
		Servers: exec.Servers{Start: f.cfg.Start, Ending: &f.ending}}
	if slow && f.cfg.StartFast != nil {
		w.Start, w.clock, w.g.Long = f.cfg.StartFast, f.cfg.FastClock, true
	}
	return w
}

// claim counts one more input and reports whether the limit of inputs allows it.
func (f *Fuzzer) claim() bool {
	n := f.claimed.Add(1)
	return f.cfg.Count == 0 || n <= f.cfg.Count
}

// done reports whether the limit of inputs is reached.
func (f *Fuzzer) done() bool { return f.cfg.Count > 0 && f.claimed.Load() >= f.cfg.Count }

// Logf passes a line about a candidate, with the time since the start of the run, to Config.Note.
func (f *Fuzzer) Logf(format string, args ...any) {
	if f.cfg.Note != nil {
		f.cfg.Note(fmt.Sprintf("%.1f s: ", time.Since(f.start).Seconds()) + fmt.Sprintf(format, args...))
	}
}

// newTriage returns the triage of the run, which ends with ctx.
func (f *Fuzzer) newTriage(ctx context.Context) *triage.Triage {
	c := &f.cfg
	return triage.New(ctx, f, triage.Config{Protocol: c.Protocol, Server: c.Server, Reports: c.Reports, Barrier: f.barrier,
		Known: c.Known, KnownAs: c.KnownAs, Seed: c.Seed, Timeout: c.Timeout, Minimize: c.Minimize, First: c.First,
		Sequential: c.Sequential, Begun: f.start})
}

// Doing reports what the run does to Config.Progress.
func (f *Fuzzer) Doing(what string) { f.tally(what) }

// End ends the run.
func (f *Fuzzer) End() { f.stopRun() }

// tally updates the statistics and passes them to Config.Progress at most once a second.
func (f *Fuzzer) tally(doing string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Elapsed = time.Since(f.start)
	f.stats.Executions, f.stats.Repeats, f.stats.Messages = f.claimed.Load(), f.repeats.Load(), f.msgs.Load()
	if f.cfg.Count > 0 {
		f.stats.Executions = min(f.stats.Executions, f.cfg.Count)
	}
	f.stats.Timed = f.timed.Load()
	f.stats.Starts = int(f.servers.Load())
	f.stats.Counts = f.triage.Counts()
	f.stats.Corpus, f.stats.Features = f.corpus.Size()
	if doing != "" {
		f.stats.Doing = doing
	}
	if f.cfg.Progress != nil && (time.Since(f.reportedAt) > time.Second || doing == "finished") {
		f.reportedAt = time.Now()
		f.cfg.Progress(f.stats)
	}
}

// Prefix returns an unused prefix for a server at a fixed address.
func (f *Fuzzer) Prefix() string { return input.PrefixOf('a', f.names.Add(1)) }
