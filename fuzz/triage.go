package fuzz

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
)

// triage reproduces, minimizes and reports the failures that the workers observe.
type triage struct {
	f            *Fuzzer
	ctx          context.Context
	ending       sync.WaitGroup // servers that start or stop in the background
	onlyExaminer *examiner      // the examiner of a run whose only worker waits for it
	spent        time.Duration  // time that onlyExaminer has used

	first atomic.Bool  // Config.First is set and there is a finding
	leaks atomic.Int32 // candidates for memory leaks that are waiting or being examined

	mu       sync.Mutex
	waiting  []*candidate
	more     chan struct{}  // add sends a value to wake an examiner
	closed   bool           // no more candidates are accepted
	observed map[string]int // number of observations, by key
	tried    map[string]int // number of examined candidates, by kind
	findings []*Finding     // in order of discovery
}

// examiner examines candidates, one after the other, on servers of its own.
type examiner struct {
	*triage
	replay *replayer
}

// examiners is the number of candidates that are examined at the same time. Most of the time, an examiner waits for a
// server to start or for a missing reply.
const examiners = 6

// candidate is a failure that a worker has observed, with the log of the server.
type candidate struct {
	key     string
	fault   *exec.Fault
	log     *input.Log // the entries until the failure
	from    int        // number of entries that had run when the server was last checked without this failure
	finding *Finding
}

func newTriage(ctx context.Context, f *Fuzzer) *triage {
	t := &triage{f: f, ctx: ctx, more: make(chan struct{}, 1), observed: map[string]int{}, tried: map[string]int{}}
	t.onlyExaminer = t.examiner()
	return t
}

func (t *triage) examiner() *examiner {
	return &examiner{t, t.replayer(&t.f.cfg)}
}

func (t *triage) replayer(cfg *Config) *replayer {
	return &replayer{f: t.f, cfg: cfg, ctx: t.ctx, timeout: cfg.Timeout, Servers: exec.Servers{Start: cfg.Start, Ending: &t.ending}}
}

// last returns the last input of the log.
func (m *candidate) last() *input.Input {
	if len(m.log.Entries) == 0 {
		return &input.Input{}
	}
	return m.log.Entries[len(m.log.Entries)-1].Input
}

// keyOf returns the key of an observation, before the failure is reproduced. It consists of the oracle, the rule and
// the kind of failure. Unless the fault has a stack, it also contains the effect of the step at which the failure was
// observed.
func (m *candidate) keyOf(p *codec.Protocol) string {
	v, c := m.fault, m.last()
	key := v.Oracle + "|" + string(v.Rule) + "|" + v.Law
	if v.Oracle == exec.Memory {
		return key + "|" + c.Shape(p) // the leak may be in any of the repeated inputs, which differ between observations
	}
	if len(v.Stack) == 0 && v.Step >= 0 && v.Step < len(c.Steps) {
		key += "|" + effect(p, &c.Steps[v.Step])
		if v.Law == closedLaw {
			key += fmt.Sprint(sizeClass(&c.Steps[v.Step]))
		}
	}
	return key
}

// examined reports whether the n-th observation with the same key is examined. The first, the fourth, the sixteenth and
// so on are, because observations with the same key may have several causes.
func examined(n int) bool { return bits.OnesCount(uint(n)) == 1 && bits.TrailingZeros(uint(n))%2 == 0 }

// add counts an observation and queues it as a candidate. It reports whether the observation is the first with its key.
// It reports a crash as a finding at once.
func (t *triage) add(m *candidate) bool {
	m.key = m.keyOf(t.f.cfg.Protocol)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observed[m.key]++
	n := t.observed[m.key]
	if t.closed || !examined(n) || len(m.fault.Stack) > 0 && t.reproduced(m.key) {
		return false
	}
	if m.fault.Ends() {
		m.finding = t.crash(m, n == 1)
	}
	t.waiting = append(t.waiting, m)
	select {
	case t.more <- struct{}{}:
	default:
	}
	return n == 1
}

// reproduced reports whether a finding with the key was reproduced. The caller holds the lock.
func (t *triage) reproduced(key string) bool {
	return slices.ContainsFunc(t.findings, func(fd *Finding) bool { return fd.Reproduced && fd.keys[key] })
}

// crash returns the finding for a crash that is not reproduced yet. If the observation is the first with its key and
// there is no similar finding, it creates and reports a finding. Crashes without a stack are similar if their oracle
// and signal are the same, because the cause of the crash may not be in the input.
func (t *triage) crash(m *candidate, first bool) *Finding {
	alike := "not reproduced|" + m.fault.Oracle + "|" + m.fault.Law + "|" + m.fault.Signal
	for _, fd := range t.findings {
		if fd.Key == alike && (first || fd.keys[m.key]) {
			fd.keys[m.key] = true
			return fd
		}
	}
	if !first {
		return nil // a crash with this key was already reproduced
	}
	fd := t.f.crash(m, alike)
	t.findings = append(t.findings, fd)
	return fd
}

// kind returns the properties that candidates with the same cause probably have in common.
func (m *candidate) kind() string {
	return m.fault.Oracle + "|" + string(m.fault.Rule) + "|" + m.fault.Law + "|" + m.fault.Refusal
}

// maxFresh is the number of candidates of one kind that are examined before later candidates of this kind count as
// probable duplicates.
const maxFresh = 3

// nextCandidate removes and returns the candidate to examine next, or nil: the one whose kind was examined least often
// and, among those, the most severe. A candidate is stale if maxFresh candidates of its kind were examined before.
// nextCandidate returns stale candidates only if anyway is set.
func (t *triage) nextCandidate(anyway bool) (m *candidate, stale bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	best, least := -1, 0
	for i, m := range t.waiting {
		tried := t.tried[m.kind()]
		if tried >= maxFresh && !anyway {
			continue
		}
		if rank := tried*len(severities) + int(SeverityOf(m.fault)); best < 0 || rank < least {
			best, least = i, rank
		}
	}
	if best < 0 {
		return nil, false
	}
	m = t.waiting[best]
	t.tried[m.kind()]++
	t.waiting = slices.Delete(t.waiting, best, best+1)
	return m, t.tried[m.kind()] > maxFresh
}

// endIfIdle makes work return after the last candidate.
func (t *triage) endIfIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	close(t.more)
}

// work examines candidates until ctx ends, or until all candidates are examined after endIfIdle.
func (t *triage) work(ctx context.Context) {
	var all sync.WaitGroup
	for range examiners {
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

func (t *examiner) work(ctx context.Context) {
	closed := false
	var rest time.Time // until then, the examiner skips probable duplicates
	for ctx.Err() == nil {
		if m, stale := t.nextCandidate(closed || time.Now().After(rest)); m != nil {
			start := time.Now()
			if t.examine(m); stale {
				rest = time.Now().Add((duplicateShare - 1) * time.Since(start))
			}
			continue
		}
		var rested <-chan time.Time
		if d := time.Until(rest); d > 0 {
			rested = time.After(d)
		}
		select {
		case _, open := <-t.more:
			if !open && closed {
				return
			}
			closed = !open
		case <-rested:
		case <-ctx.Done():
		}
	}
}

// busy reports whether so many candidates wait that workers should pause to give the triage CPU time.
func (t *triage) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, m := range t.waiting {
		if t.tried[m.kind()] < maxFresh {
			n++
		}
	}
	return n > 4*examiners
}

// examineBetween examines candidates between the inputs of the only worker. The triage gets at most half of the time of
// the run, unless Config.First or Config.Sequential is set.
func (t *triage) examineBetween(ctx context.Context) {
	unlimited := t.f.cfg.First || t.f.cfg.Sequential
	for ctx.Err() == nil && (t.spent < time.Since(t.f.start)/2 || unlimited) {
		m, _ := t.nextCandidate(unlimited || t.spent < time.Since(t.f.start)/(2*duplicateShare))
		if m == nil {
			return
		}
		start := time.Now()
		t.onlyExaminer.examine(m)
		t.spent += time.Since(start)
	}
}

// finish reports the candidates that were not examined, and counts the observations of each finding. It is called at
// the end of the run.
func (t *triage) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	saved := map[string]bool{}
	for _, m := range t.waiting {
		if m.finding != nil || saved[m.key] {
			continue // the crash is a finding already, or another candidate with this key was reported
		}
		saved[m.key] = true
		t.f.updateStats(func(s *Stats) { s.Unexamined++ })
		if t.f.cfg.Candidate == nil {
			continue
		}
		fd := &Finding{Key: m.key, Fault: m.fault, Input: m.last(), Inputs: 1, Log: m.log.Last(candidateInputs)}
		t.f.write(fd)
		t.f.cfg.Candidate(fd)
	}
	t.joinCauses()
	for _, fd := range t.findings {
		for key := range fd.keys {
			fd.Count += t.observed[key]
		}
		t.f.updateStats(func(s *Stats) { s.Duplicates += max(0, fd.Count-1) })
	}
}

// joinCauses assigns findings to one cause if a later finding shows that their causes are the same.
func (t *triage) joinCauses() {
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
			t.f.updateStats(func(s *Stats) { s.Findings-- })
		}
	}
}

// candidateInputs is the number of inputs before a failure that are saved with a candidate.
const candidateInputs = 16

// A fault counts as reproduced if it appears in minReproductions of at most tries attempts.
const (
	tries            = 5
	minReproductions = 3
)

// examine reproduces and minimizes a candidate, and reports a finding if the failure is reproducible, new, and absent
// from the reference server.
func (t *examiner) examine(m *candidate) {
	f := t.f
	if m.fault.Oracle == exec.Memory {
		defer t.leaks.Add(-1)
	}
	f.tally("reproducing")
	t.replay.timeout = f.cfg.Timeout
	t.replay.setClock(m.log.Clock)
	defer t.replay.setClock(0)
	c, got := t.reproduce(m)
	if f.stopped() {
		t.again(m)
		return
	}
	if got == nil {
		f.logf("not reproduced: %s, after %s; the last: %s", m.fault, counted(len(m.log.Entries)), m.last())
		f.updateStats(func(s *Stats) { s.NotReproduced++ })
		return
	}
	f.logf("reproduced with a sequence of %s: %s", steps(len(c.Steps)), got)
	if t.disputed(c, got) {
		f.logf("not counted, because the reference server fails in the same way: %s", got)
		f.updateStats(func(s *Stats) { s.ReferenceFails++ })
		return
	}
	if t.duplicate(m, c, got) {
		return
	}
	f.tally("minimizing")
	small := t.minimize(c, got)
	t.replay.timeout = f.cfg.Timeout
	n, of, last := t.count(small, got)
	if last == nil && small != c {
		f.logf("the minimized message sequence causes this failure only %d of %d times: %s", n, of, got)
		small = c
		n, of, last = t.count(c, got)
	}
	switch {
	case f.stopped():
		t.again(m)
	case last == nil:
		f.logf("not counted as reproduced, because it appeared only %d of %d times: %s", n, of, got)
		f.updateStats(func(s *Stats) { s.NotReproduced++ })
	case t.disputed(small, last):
		f.logf("not counted, because the reference server fails in the same way: %s", last)
		f.updateStats(func(s *Stats) { s.ReferenceFails++ })
	case f.stopped():
		t.again(m)
	default:
		t.report(m, small, t.disclosureOf(small, last), n, of)
	}
}

// again returns a candidate to the queue because its examination was not completed.
func (t *triage) again(m *candidate) {
	t.mu.Lock()
	t.waiting = append(t.waiting, m)
	t.mu.Unlock()
}

// minimizeTimeout is the timeout of a reply while an input is minimized. Each attempt that still causes a hang takes
// this long.
const minimizeTimeout = 150 * time.Millisecond

// minimize returns the smallest input that it finds with which the fault appears.
func (t *examiner) minimize(c *input.Input, got *exec.Fault) *input.Input {
	f := t.f
	test := t.replay.test(got)
	budget := f.cfg.Minimize
	switch got.Oracle {
	case exec.HangConn, exec.HangAll, exec.Law: // count later runs the minimized input with the full timeout
		t.replay.timeout = min(t.replay.timeout, minimizeTimeout)
		budget /= 2
	case exec.Framing, exec.Disclosure:
		budget /= 2
	}
	// Reserve half of the remaining time for reproducing the minimized input.
	until := time.Now().Add(f.left() / 2)
	stop := func() bool { return f.stopped() || time.Now().After(until) }
	m := &minimizer{best: c, holds: func(d *input.Input) bool { return got.Same(test(d)) }, stop: stop, budget: budget,
		proto: f.cfg.Protocol}
	return m.minimize()
}

// disputed reports whether the reference server has the fault too. The oracle may then be wrong.
func (t *examiner) disputed(c *input.Input, v *exec.Fault) bool {
	if t.f.cfg.Reference == nil {
		return false
	}
	ref := t.reference()
	defer ref.close()
	for range 2 {
		if v.Same(ref.test(v)(c)) {
			return true
		}
	}
	return false
}

// reference returns a replayer that runs inputs on the reference server.
func (t *examiner) reference() *replayer {
	cfg := t.f.cfg
	cfg.Start, cfg.Known, cfg.Fixed = cfg.Reference, input.Known{}, false
	return t.replayer(&cfg)
}

// matches reports whether f may have the same cause as the expected fault. A crash matches if it is in the same place,
// or if the expected place is unknown. A hang or crash matches a hang, even on another connection, and a wrong reply
// matches another wrong reply.
func matches(f, expected *exec.Fault) bool {
	if expected.Ends() || expected.Oracle == exec.LeakReport {
		return (f.Ends() || f.Oracle == exec.LeakReport) && (len(expected.Stack) == 0 || f.Law == expected.Law)
	}
	group := map[string]int{exec.Exit: 1, exec.Signal: 1, exec.Sanitizer: 1, exec.HangAll: 1, exec.HangConn: 1, exec.Disturbed: 1, exec.Law: 2, exec.Framing: 2,
		exec.Disclosure: 2}
	return f.Oracle == expected.Oracle || group[f.Oracle] != 0 && group[f.Oracle] == group[expected.Oracle]
}

// count runs an input several times. It returns how often the fault appeared, the number of attempts, and the last
// fault, which is nil if the fault did not appear in minReproductions attempts. It stops as soon as the result is
// certain. The last attempt runs on a server with normal clock speed. A memory leak is tried once, because each attempt
// consists of many executions.
func (t *examiner) count(c *input.Input, v *exec.Fault) (n, of int, last *exec.Fault) {
	if v.Oracle == exec.Memory {
		if last = t.replay.grows(c); last != nil {
			n = 1
		}
		return n, 1, last
	}
	test := t.replay.test(v)
	clock := t.replay.clock
	defer t.replay.setClock(clock)
	for of < tries && n < minReproductions && of-n <= tries-minReproductions && !t.f.stopped() {
		if n == minReproductions-1 {
			t.replay.setClock(0)
		}
		of++
		if got := test(c); v.Same(got) {
			if n++; n == minReproductions {
				last = got
			}
		}
	}
	return n, of, last
}

// duplicate reports whether the fault is already a finding. It detects this before the input is minimized only if the
// fault alone determines the key.
func (t *examiner) duplicate(m *candidate, c *input.Input, got *exec.Fault) bool {
	if !inputFree(got) {
		return false
	}
	fd := &Finding{Key: key(t.f.cfg.Protocol, c, got)}
	if t.isUnproved(fd.Key) && t.disclosureOf(c, got).Proved {
		return false // this input proves more than the input of the finding
	}
	return t.isKnown(m, fd)
}

// isUnproved reports whether the finding with the key may be a disclosure, for which there is no evidence so far.
func (t *triage) isUnproved(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.findings, func(fd *Finding) bool {
		return fd.Reproduced && fd.Key == key && fd.Fault.Unsent.Data != nil && !fd.Fault.Proved
	})
}

// isKnown reports whether a reproduced finding, or a finding of an earlier report, has the key of fd. If so, it adds
// the observations of the candidate to that finding. Otherwise it adds fd to the findings, if fd has an input.
func (t *triage) isKnown(m *candidate, fd *Finding) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.f.cfg.KnownAs, fd.Key) {
		return true
	}
	var replaced *Finding
	for _, old := range t.findings {
		if old.Reproduced && old != m.finding && old.Key == fd.Key {
			if fd.Input != nil && fd.Fault.Proved && !old.Fault.Proved {
				maps.Copy(fd.keys, old.keys)
				t.drop(old)
				replaced = old
				break
			}
			old.keys[m.key] = true
			t.setOutcome(m)
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
func (t *triage) setOutcome(m *candidate) {
	fd := m.finding
	if fd == nil || !slices.Contains(t.findings, fd) {
		return
	}
	if delete(fd.keys, m.key); len(fd.keys) == 0 {
		t.drop(fd)
	}
}

// drop removes a finding. The caller holds the lock.
func (t *triage) drop(fd *Finding) {
	t.findings = slices.DeleteFunc(t.findings, func(o *Finding) bool { return o == fd })
	if fd.Of == nil {
		t.f.updateStats(func(s *Stats) { s.Findings-- })
	}
	if t.f.cfg.Dropped != nil {
		t.f.cfg.Dropped(fd)
	}
}

// report reports a finding for a reproduced candidate, unless the finding is a duplicate.
func (t *examiner) report(m *candidate, c *input.Input, v *exec.Fault, shown, tried int) {
	f := t.f
	fd := &Finding{Key: key(f.cfg.Protocol, c, v), cause: causeOf(f.cfg.Protocol, c, v), Fault: v, Input: c, Shown: shown,
		Tried: tried, Reproduced: true, Inputs: 1, Log: m.log, keys: map[string]bool{m.key: true}}
	if t.isKnown(m, fd) {
		f.logf("a duplicate: %s", v)
		return
	}
	if f.cfg.First && !t.first.CompareAndSwap(false, true) {
		t.again(m)
		return
	}
	fd.Name = nameOf(f.cfg.Protocol, fd)
	t.replay.setClock(0)
	if fd.Of == nil {
		f.updateStats(func(s *Stats) { s.Findings++ })
	}
	t.describe(fd)
	if f.cfg.Found != nil {
		f.cfg.Found(fd)
	}
	t.mu.Lock()
	t.setOutcome(m)
	t.mu.Unlock()
	if f.cfg.First {
		f.stopRun()
	}
}

// steps returns the text for a number of steps.
func steps(n int) string {
	if n == 1 {
		return "1 message or action"
	}
	return fmt.Sprintf("%d messages and actions", n)
}

// counted returns the text for a number of message sequences.
func counted(n int) string {
	if n == 1 {
		return "1 message sequence"
	}
	return fmt.Sprintf("%d message sequences", n)
}
