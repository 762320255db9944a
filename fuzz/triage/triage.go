package triage

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/bits"
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
	onlyExaminer *examiner      // the examiner of a run whose only worker waits for it
	spent        time.Duration  // time that onlyExaminer has used

	first atomic.Bool  // Config.First is set and there is a finding
	leaks atomic.Int32 // candidates for memory leaks that are waiting or being examined

	counting sync.Mutex // protects counts
	counts   Counts

	mu       sync.Mutex // protects the fields below
	waiting  []*Candidate
	more     chan struct{}  // add sends a value to wake an examiner
	closed   bool           // no more candidates are accepted
	observed map[string]int // number of observations, by signature
	tried    map[string]int // number of examined candidates, by kind
	findings []*Finding     // in order of discovery
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
	Found     func(*Finding)
	Dropped   func(*Finding) // called for a reported finding that another finding replaces
	Candidate func(*Finding) // called at the end with each candidate that was not examined
}

// Run is the run whose failures are examined.
type Run interface {
	Doing(what string)               // notes what the triage does
	Logf(format string, args ...any) // logs a line about a candidate
	Prefix() string                  // returns an unused prefix for a server at a fixed address
	End()                            // ends the run
}

// Counts are the results of a triage.
type Counts struct {
	Findings       int
	Duplicates     int // observations of findings beyond the first
	ReferenceFails int // faults that the reference server has too
	NotReproduced  int // candidates that did not appear on a new server
	Unexamined     int // candidates that were waiting at the end
}

// examiner examines candidates, one after the other, on servers of its own.
type examiner struct {
	*Triage
	replay *replayer
}

// numExaminers is the number of candidates that are examined at the same time. Most of the time, an examiner waits for a
// server to start or for a missing reply.
const numExaminers = 6

// New returns the triage of a run, which ends with ctx.
func New(ctx context.Context, run Run, cfg Config) *Triage {
	t := &Triage{cfg: cfg, run: run, ctx: ctx, more: make(chan struct{}, 1), observed: map[string]int{},
		tried: map[string]int{}}
	t.onlyExaminer = t.examiner()
	return t
}

// Counts returns the counts so far.
func (t *Triage) Counts() Counts {
	t.counting.Lock()
	defer t.counting.Unlock()
	return t.counts
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

// SearchingLeaks reports whether a candidate for a memory leak is waiting or being examined.
func (t *Triage) SearchingLeaks() bool { return t.leaks.Load() > 0 }

// Close stops the servers of a run whose only worker waits for the examiner.
func (t *Triage) Close() { t.onlyExaminer.replay.close() }

func (t *Triage) examiner() *examiner {
	return &examiner{t, t.replayer(&t.cfg)}
}

func (t *Triage) replayer(cfg *Config) *replayer {
	return &replayer{triage: t, cfg: cfg, ctx: t.ctx, timeout: cfg.Timeout, Servers: exec.Servers{Start: cfg.Start, Ending: &t.ending}}
}

// examined reports whether the n-th observation with the same key is examined. The first, the fourth, the sixteenth and
// so on are, because observations with the same key may have several causes.
func examined(n int) bool { return bits.OnesCount(uint(n)) == 1 && bits.TrailingZeros(uint(n))%2 == 0 }

// Add counts an observation and queues it as a candidate. It reports whether the observation is the first with its key.
// It reports a crash as a finding at once.
func (t *Triage) Add(candidate *Candidate) bool {
	candidate.signature = candidate.sign(t.cfg.Protocol)
	if candidate.Fault.Oracle == exec.Memory {
		t.leaks.Add(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observed[candidate.signature]++
	n := t.observed[candidate.signature]
	if t.closed || !examined(n) || len(candidate.Fault.Stack) > 0 && t.reproduced(candidate.signature) {
		return false
	}
	if candidate.Fault.Ends() {
		candidate.finding = t.crash(candidate, n == 1)
	}
	t.waiting = append(t.waiting, candidate)
	select {
	case t.more <- struct{}{}:
	default:
	}
	return n == 1
}

// reproduced reports whether a finding with the key was reproduced. The caller holds the lock.
func (t *Triage) reproduced(key string) bool {
	return slices.ContainsFunc(t.findings, func(fd *Finding) bool { return fd.Reproduced && fd.signatures[key] })
}

// crash returns the finding for a crash that is not reproduced yet. If the observation is the first with its key and
// there is no similar finding, it creates and reports a finding. Crashes without a stack are similar if their oracle
// and signal are the same, because the cause of the crash may not be in the input.
func (t *Triage) crash(candidate *Candidate, first bool) *Finding {
	alike := "not reproduced|" + candidate.Fault.Oracle + "|" + candidate.Fault.Law + "|" + candidate.Fault.Signal
	for _, fd := range t.findings {
		if fd.Key == alike && (first || fd.signatures[candidate.signature]) {
			fd.signatures[candidate.signature] = true
			return fd
		}
	}
	if !first {
		return nil // a crash with this key was already reproduced
	}
	fd := t.newCrash(candidate, alike)
	t.findings = append(t.findings, fd)
	return fd
}

// maxFresh is the number of candidates of one kind that are examined before later candidates of this kind count as
// probable duplicates.
const maxFresh = 3

// nextCandidate removes and returns the candidate to examine next, or nil: the one whose kind was examined least often
// and, among those, the most severe. A candidate is stale if maxFresh candidates of its kind were examined before.
// nextCandidate returns stale candidates only if anyway is set.
func (t *Triage) nextCandidate(anyway bool) (candidate *Candidate, stale bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	best, least := -1, 0
	for i, candidate := range t.waiting {
		tried := t.tried[candidate.kind()]
		if tried >= maxFresh && !anyway {
			continue
		}
		if rank := tried*len(severities) + int(FaultSeverity(candidate.Fault)); best < 0 || rank < least {
			best, least = i, rank
		}
	}
	if best < 0 {
		return nil, false
	}
	candidate = t.waiting[best]
	t.tried[candidate.kind()]++
	t.waiting = slices.Delete(t.waiting, best, best+1)
	return candidate, t.tried[candidate.kind()] > maxFresh
}

// EndIfIdle makes Work return after the last candidate.
func (t *Triage) EndIfIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	close(t.more)
}

// Work reproduces, minimizes and reports the candidates in the queue, in numExaminers goroutines. It returns when ctx
// ends or, once EndIfIdle was called, when the queue is empty.
func (t *Triage) Work(ctx context.Context) {
	var all sync.WaitGroup
	for range numExaminers {
		all.Go(func() {
			e := t.examiner()
			defer e.replay.close()
			e.work(ctx)
		})
	}
	all.Wait()
}

// duplicateShare limits the part of its time that an examiner spends on probable duplicates: one divided by
// duplicateShare.
const duplicateShare = 4

// work examines candidates, new ones before probable duplicates, until ctx ends or, after EndIfIdle, until no candidate
// is left. After a probable duplicate, it examines only others for three times as long as the examination took.
func (e *examiner) work(ctx context.Context) {
	closed := false
	var rest time.Time // until then, the examiner skips probable duplicates
	for ctx.Err() == nil {
		if candidate, stale := e.nextCandidate(closed || time.Now().After(rest)); candidate != nil {
			start := time.Now()
			if e.examine(candidate); stale {
				rest = time.Now().Add((duplicateShare - 1) * time.Since(start))
			}
			continue
		}
		var rested <-chan time.Time
		if d := time.Until(rest); d > 0 {
			rested = time.After(d)
		}
		select {
		case _, open := <-e.more:
			if !open && closed {
				return
			}
			closed = !open
		case <-rested:
		case <-ctx.Done():
		}
	}
}

// Busy reports whether so many candidates wait that workers should pause to give the triage CPU time.
func (t *Triage) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, candidate := range t.waiting {
		if t.tried[candidate.kind()] < maxFresh {
			n++
		}
	}
	return n > 4*numExaminers
}

// ExamineBetween examines candidates between the inputs of the only worker. The triage gets at most half of the time of
// the run, unless Config.First or Config.Sequential is set.
func (t *Triage) ExamineBetween(ctx context.Context) {
	unlimited := t.cfg.First || t.cfg.Sequential
	for ctx.Err() == nil && (t.spent < time.Since(t.cfg.Begun)/2 || unlimited) {
		candidate, _ := t.nextCandidate(unlimited || t.spent < time.Since(t.cfg.Begun)/(2*duplicateShare))
		if candidate == nil {
			return
		}
		start := time.Now()
		t.onlyExaminer.examine(candidate)
		t.spent += time.Since(start)
	}
}

// Finish waits for the servers to end, reports the candidates that were not examined, and counts the observations of
// each finding. It is called at the end of the run.
func (t *Triage) Finish() {
	t.ending.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	saved := map[string]bool{}
	for _, candidate := range t.waiting {
		if candidate.finding != nil || saved[candidate.signature] {
			continue // the crash is a finding already, or another candidate with this key was reported
		}
		saved[candidate.signature] = true
		t.update(func(c *Counts) { c.Unexamined++ })
		if t.cfg.Candidate == nil {
			continue
		}
		fd := &Finding{Key: candidate.signature, Fault: candidate.Fault, Input: candidate.last(), Inputs: 1, Log: candidate.Log.Last(candidateInputs)}
		t.write(fd)
		t.cfg.Candidate(fd)
	}
	t.joinCauses()
	for _, fd := range t.findings {
		for key := range fd.signatures {
			fd.Count += t.observed[key]
		}
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
		if old.Reproduced && old != candidate.finding && old.Key == fd.Key {
			if fd.Input != nil && fd.Fault.Proved && !old.Fault.Proved {
				maps.Copy(fd.signatures, old.signatures)
				t.drop(old)
				replaced = old
				break
			}
			old.signatures[candidate.signature] = true
			t.setOutcome(candidate)
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
	t.findings = append(t.findings, fd)
	return false
}

// setOutcome removes a candidate from the finding for crashes that were not reproduced, because the candidate belongs
// to another finding. It removes that finding if no candidates are left.
func (t *Triage) setOutcome(candidate *Candidate) {
	fd := candidate.finding
	if fd == nil || !slices.Contains(t.findings, fd) {
		return
	}
	if delete(fd.signatures, candidate.signature); len(fd.signatures) == 0 {
		t.drop(fd)
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
