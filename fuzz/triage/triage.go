package triage

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/target"
)

// Triage reproduces, minimizes and reports the failures that the workers observe.
type Triage struct {
	cfg          Config
	run          Run
	ctx          context.Context
	ending       sync.WaitGroup // servers that start or stop in the background
	servers      exec.Servers   // for all examiners
	fast         exec.Servers   // with fast clocks
	references   exec.Servers
	onlyExaminer *examiner     // the examiner of a run whose only worker waits for it
	spent        time.Duration // time that onlyExaminer has used

	first atomic.Bool  // Config.First is set and there is a finding
	leaks atomic.Int32 // candidates for memory leaks that are waiting or being examined

	counting sync.Mutex // protects counts
	counts   Counts

	mu sync.Mutex // protects the fields below
	queue
	findings []*Finding // in order of discovery
}

// Config says how failures are examined.
type Config struct {
	Protocol *codec.Protocol
	Server
	Reports
	Barrier    *exec.Barrier // the first of the protocol that the server answers
	Known      input.Known
	KnownAs    []string // keys of findings that were reported before
	Seed       uint64   // of the run, for logs
	Timeout    time.Duration
	Minimize   time.Duration // time limit for minimizing a finding
	First      bool          // end the run at the first finding
	Sequential bool          // the run waits while failures are examined
	Begun      time.Time     // when the run began
}

// Server says how servers are started.
type Server struct {
	// Start starts a server in a process of its own. If Fixed is set, there is only one server, at a fixed address,
	// which cannot be restarted. Then only faults that the server survives can be reproduced.
	Start func(context.Context) (target.Target, error)
	Fixed bool

	// StartFast starts a server whose clock runs FastClock times as fast as the clock of the machine. Inputs with
	// pauses run on such servers, and their failures are reproduced on servers that Start starts. It may be nil.
	StartFast func(context.Context) (target.Target, error)
	FastClock int

	// Reference starts a correct server, whose replies are the expected replies in findings. It may be nil.
	Reference func(context.Context) (target.Target, error)
}

// Reports receives the findings. Its functions may be nil.
type Reports struct {
	// Found is called for each finding. A crash is reported before it is reproduced, and again, under the same name,
	// after it is reproduced.
	Found   func(*Finding)
	Dropped func(*Finding) // called for a reported finding that another finding replaces
	// Candidate is called at the end with one candidate of each class that was not examined or not reproduced. Count is
	// the number of observations, and Tried the number of examinations in which the failure did not appear.
	Candidate func(*Finding)
}

// Run is the run whose failures are examined.
type Run interface {
	Doing(what string)               // notes what the triage does
	Logf(format string, args ...any) // logs a line about a candidate
	Prefix() string                  // returns an unused prefix for a server at a fixed address
	End()                            // ends the run
}

// Counts are the results of a triage. Observations with the same signature are one candidate, and each candidate is
// examined: Candidates is the sum of Examined and Unexamined.
type Counts struct {
	Findings       int
	Duplicates     int // observations of findings beyond the first
	Candidates     int // different signatures of observations
	Examined       int // candidates that were examined
	ReferenceFails int // candidates with a fault that the reference server has too
	NotReproduced  int // candidates that were examined and did not appear on a new server
	Unexamined     int // candidates that wait to be examined
}

// examiner examines candidates, one after the other, on servers of its own.
type examiner struct {
	*Triage
	replay *replayer
}

// New returns the triage of a run, which ends with ctx.
func New(ctx context.Context, run Run, cfg Config) *Triage {
	t := &Triage{cfg: cfg, run: run, ctx: ctx, queue: newQueue()}
	// Starting a server is most of the work of the triage. More starts at the same time than there are processors would
	// delay the replies of all servers.
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for s, start := range map[*exec.Servers]func(context.Context) (target.Target, error){
		&t.servers: cfg.Start, &t.fast: cfg.StartFast, &t.references: cfg.Reference} {
		s.Start, s.Ending, s.Slots = start, &t.ending, slots
	}
	t.onlyExaminer = t.examiner()
	return t
}

// Counts returns the counts so far.
func (t *Triage) Counts() Counts {
	t.counting.Lock()
	c := t.counts
	t.counting.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Candidates, c.Examined, c.NotReproduced, c.Unexamined = t.numbers()
	return c
}

// update changes the counts under their lock.
func (t *Triage) update(change func(*Counts)) {
	t.counting.Lock()
	defer t.counting.Unlock()
	change(&t.counts)
}

// stopped reports whether the run has ended.
func (t *Triage) stopped() bool { return t.ctx.Err() != nil }

// left returns the time until the end of the run.
func (t *Triage) left() time.Duration {
	until, limited := t.ctx.Deadline()
	if !limited {
		return math.MaxInt64
	}
	return time.Until(until)
}

// endsSoon reports whether the run probably ends before another failure can be minimized. A failure that is not would
// appear as a finding of its own although its cause is known.
func (t *Triage) endsSoon() bool {
	until, limited := t.ctx.Deadline()
	return limited && time.Until(until) < min(t.cfg.Minimize, until.Sub(t.cfg.Begun)/20)
}

// SearchingLeaks reports whether a candidate for a memory leak is waiting or being examined.
func (t *Triage) SearchingLeaks() bool { return t.leaks.Load() > 0 }

// Close stops the servers of a run whose only worker waits for the examiner.
func (t *Triage) Close() {
	t.onlyExaminer.replay.discard()
	t.closeServers()
}

// closeServers stops the servers that were started in the background.
func (t *Triage) closeServers() {
	for _, s := range []*exec.Servers{&t.servers, &t.fast, &t.references} {
		s.Close()
	}
}

func (t *Triage) examiner() *examiner {
	e := &examiner{t, t.replayer(&t.cfg)}
	e.replay.fast = &t.fast
	return e
}

func (t *Triage) replayer(cfg *Config) *replayer {
	return &replayer{triage: t, cfg: cfg, ctx: t.ctx, timeout: cfg.Timeout, servers: &t.servers}
}

// Add counts an observation and, if its signature is new, queues it as a candidate. It reports whether the signature is
// new. It reports a crash as a finding at once.
func (t *Triage) Add(candidate *Candidate) bool {
	if candidate.Fault.Oracle == exec.Memory {
		t.leaks.Add(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	isNew, queued := t.queue.add(candidate, candidate.sign(t.cfg.Protocol))
	if !queued && candidate.Fault.Oracle == exec.Memory {
		t.leaks.Add(-1)
	}
	if o := candidate.of; queued && o.finding == nil && candidate.Fault.Ends() {
		o.finding = t.crash(candidate)
	}
	return isNew
}

// crash returns the finding for a crash before it is reproduced: a similar one, or else a new one, which it reports.
// Crashes without a stack are similar if their oracle and signal are the same, because the cause of the crash may not
// be in the input.
func (t *Triage) crash(candidate *Candidate) *Finding {
	alike := "not reproduced|" + candidate.Fault.Oracle + "|" + candidate.Fault.Law + "|" + candidate.Fault.Signal
	for _, fd := range t.findings {
		if fd.Key == alike {
			return fd
		}
	}
	fd := t.newCrash(candidate, alike)
	t.findings = append(t.findings, fd)
	return fd
}

// EndIfIdle makes Work return after the last candidate.
func (t *Triage) EndIfIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wake()
}

// Work reproduces, minimizes and reports the candidates in the queue, in several goroutines for each pace. It returns when
// ctx ends or, once EndIfIdle was called, when the queue is empty.
func (t *Triage) Work(ctx context.Context) {
	var all sync.WaitGroup
	for p := range either {
		for range p.examiners() {
			all.Go(func() {
				e := t.examiner()
				defer e.replay.discard()
				e.work(ctx, p)
			})
		}
	}
	all.Wait()
	t.closeServers()
}

// work examines candidates of a pace until ctx ends or, after EndIfIdle, candidates of any pace until none is left.
func (e *examiner) work(ctx context.Context, p pace) {
	for ctx.Err() == nil && !e.endsSoon() {
		e.mu.Lock()
		if e.closed {
			p = either
		}
		candidate, changed := e.next(p), e.changed
		done := candidate == nil && e.closed && e.idle()
		e.mu.Unlock()
		switch {
		case done:
			return
		case candidate != nil:
			e.examine(candidate)
		default:
			select {
			case <-changed:
			case <-time.After(time.Second): // a candidate may have been deferred until now
			case <-ctx.Done():
			}
		}
	}
}

// Busy reports whether so many candidates of new classes wait that workers should pause to give the triage CPU time.
func (t *Triage) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.numNew() > 4*quickExaminers
}

// ExamineBetween examines candidates between the inputs of the only worker. The triage gets at most half of the time of
// the run, unless Config.First or Config.Sequential is set.
func (t *Triage) ExamineBetween(ctx context.Context) {
	unlimited := t.cfg.First || t.cfg.Sequential
	for ctx.Err() == nil && (t.spent < time.Since(t.cfg.Begun)/2 || unlimited) {
		t.mu.Lock()
		candidate := t.next(either)
		t.mu.Unlock()
		if candidate == nil {
			return
		}
		start := time.Now()
		t.onlyExaminer.examine(candidate)
		t.spent += time.Since(start)
	}
}

// Finish waits for the servers to end, reports the candidates that were not examined or not reproduced, one of each
// class, and counts the observations of each finding. It is called at the end of the run.
func (t *Triage) Finish() {
	t.ending.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	classes := map[string]*Finding{}
	var open []*Finding
	for _, o := range t.all {
		if o.finding != nil {
			o.finding.Count += o.count
		}
		if o.finding != nil || o.settled {
			continue
		}
		fd := classes[o.signature.class]
		if fd == nil {
			ca := o.latest
			fd = &Finding{Key: o.signature.class, Fault: ca.Fault, Input: ca.last(), Inputs: 1,
				Log: ca.Log.Last(candidateInputs)}
			classes[fd.Key] = fd
			open = append(open, fd)
		}
		fd.Count += o.count
		fd.Tried = max(fd.Tried, o.examinations)
	}
	for _, fd := range open {
		if t.cfg.Candidate != nil {
			t.write(fd)
			t.cfg.Candidate(fd)
		}
	}
	t.joinCauses()
	for _, fd := range t.findings {
		t.update(func(c *Counts) { c.Duplicates += max(0, fd.Count-1) })
	}
}

// joinCauses assigns findings to one cause if a later finding shows that their causes are the same.
func (t *Triage) joinCauses() {
	first := func(fd *Finding) *Finding { return cmp.Or(fd.Of, fd) }
	for i, fd := range t.findings {
		for _, old := range t.findings[:i] {
			from, to := first(fd), first(old)
			if from == to || !fd.Reproduced || !old.Reproduced || !fd.cause.same(&old.cause) {
				continue
			}
			if slices.Index(t.findings, from) < slices.Index(t.findings, to) {
				from, to = to, from
			}
			for _, o := range t.findings {
				if first(o) == from {
					o.Of = to
				}
			}
			t.update(func(c *Counts) { c.Findings-- })
		}
	}
}

// candidateInputs is the number of inputs before a failure that are saved with a candidate.
const candidateInputs = 16

// isUnproved reports whether the finding with the key may be a disclosure, for which there is no evidence so far.
func (t *Triage) isUnproved(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.findings, func(fd *Finding) bool {
		return fd.Reproduced && fd.Key == key && fd.Fault.Unsent.Data != nil && !fd.Fault.Proved
	})
}

// isKnown reports whether a reproduced finding, or a finding of an earlier report, has the key of fd. If so, it adds
// the observations of the candidate to that finding. Otherwise it adds fd to the findings, if fd has an input.
func (t *Triage) isKnown(candidate *Candidate, fd *Finding) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.cfg.KnownAs, fd.Key) {
		return true
	}
	var replaced *Finding
	for _, old := range t.findings {
		if old.Reproduced && old != candidate.of.finding && old.Key == fd.Key {
			if fd.Input != nil && fd.Fault.Proved && !old.Fault.Proved {
				t.drop(old)
				replaced = old
				break
			}
			t.assign(candidate.of, old)
			return true
		}
	}
	if fd.Input == nil {
		return false
	}
	for _, old := range t.findings {
		if old.Reproduced && fd.cause.same(&old.cause) {
			fd.Of = cmp.Or(old.Of, old)
			break
		}
	}
	for _, o := range t.findings {
		if replaced != nil && o.Of == replaced {
			o.Of = cmp.Or(fd.Of, fd)
		}
	}
	if replaced != nil {
		t.reassign(replaced, fd)
	}
	t.findings = append(t.findings, fd)
	return false
}

// assign makes the observations of o those of the finding fd. It drops a finding for a crash that was not reproduced if
// it has no observations left.
func (t *Triage) assign(o *observation, fd *Finding) {
	before := o.finding
	o.finding = fd
	if before != nil && before != fd && slices.Contains(t.findings, before) && !t.queue.has(before) {
		t.drop(before)
	}
}

// drop removes a finding. The caller holds the lock.
func (t *Triage) drop(fd *Finding) {
	t.findings = slices.DeleteFunc(t.findings, func(o *Finding) bool { return o == fd })
	if fd.Of == nil {
		t.update(func(c *Counts) { c.Findings-- })
	}
	if t.cfg.Dropped != nil {
		t.cfg.Dropped(fd)
	}
}
