package triage

import (
	"runtime"
	"slices"
	"time"

	"jobwire/fuzz/exec"
)

// queue contains the observations of a run by signature. The candidates among them are examined in turn.
type queue struct {
	all     []*observation // in the order in which they were first made
	by      map[signature]*observation
	tried   map[string]int // number of examinations, by class
	again   [3]int         // number of observations being examined whose class was examined often, by pace
	running int            // number of observations being examined
	closed  bool           // the workers have ended
	changed chan struct{}  // closed when there may be a new candidate for an examiner that waits
}

// observation is what is known about the observations with one signature.
type observation struct {
	signature    signature
	count        int        // number of observations
	latest       *Candidate // the last observation with a log
	waiting      bool       // latest is to be examined
	fromLog      bool       // the last input of latest was tried alone; next, its log is repeated
	busy         bool       // latest is being examined
	deferred     time.Time  // when a failure that needs several inputs may become a finding; zero: unknown
	renewed      bool       // latest was observed after the last examination
	sequences    bool       // the examination may result in a finding with several inputs
	again        bool       // the class had been examined often before this examination
	at           pace       // of the examination
	examinations int        // number of complete examinations
	settled      bool       // the examination had a result: a finding or a fault that the reference server has too
	finding      *Finding   // nil: none
}

// maxExaminations is the number of observations with one signature that are examined while none of them is reproduced.
const maxExaminations = 3

// A pace says how long one execution takes. The candidates of each pace have their own examiners, so that those that
// mostly wait do not delay the others.
type pace uint8

const (
	quick  pace = iota
	slow        // the input has pauses, or the failure is a reply that does not arrive
	long        // a log is repeated, which uses the processor all the time
	either      // any of them
)

// examiners returns the number of candidates of a pace that are examined at the same time. Most of the time, the
// examiner of a single input waits for a server to start, for the end of a pause or for a missing reply. An examiner that
// repeats a log takes a processor from the run.
func (p pace) examiners() int {
	switch p {
	case quick:
		return quickExaminers
	case slow:
		return 2 * quickExaminers
	}
	return max(2, runtime.GOMAXPROCS(0)/2)
}

const quickExaminers = 12

// pace returns the pace of the next examination.
func (o *observation) pace() pace {
	if o.fromLog {
		return long
	}
	switch o.latest.Fault.Oracle {
	case exec.HangConn, exec.HangAll, exec.Processor, exec.Memory:
		return slow
	}
	if o.latest.last().Waits() > 0 {
		return slow
	}
	return quick
}

// Limits so that a fault that appears in many circumstances does not delay the others. A class was examined often when
// maxFresh of its candidates were. Candidates of such classes are examined after the others, and a few of each pace at a
// time.
const maxFresh = 3

// maxAgain returns the number of candidates of a pace and of such classes that are examined at the same time.
func (p pace) maxAgain() int { return min(quickExaminers/3, p.examiners()/2) }

func newQueue() queue {
	return queue{by: map[signature]*observation{}, tried: map[string]int{}, changed: make(chan struct{})}
}

// add counts an observation with the signature s. It queues the candidate if the signature is new, or if the earlier
// observations with it were examined and not reproduced.
func (q *queue) add(candidate *Candidate, s signature) (isNew, queued bool) {
	o := q.by[s]
	if isNew = o == nil; isNew {
		o = &observation{signature: s}
		q.by[s] = o
		q.all = append(q.all, o)
	}
	o.count++
	candidate.of = o
	if o.waiting && o.examinations > 0 {
		o.latest, o.renewed, o.fromLog = candidate, true, false
	}
	if o.settled || o.waiting || o.busy || o.examinations >= maxExaminations {
		return isNew, false
	}
	o.latest, o.waiting, o.fromLog = candidate, true, false
	q.wake()
	return isNew, true
}

// wake wakes the examiners that wait.
func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// next returns the candidate of a pace to examine next, or nil: one whose signature and class were examined least often
// and, among those, the most severe.
func (q *queue) next(p pace) *Candidate {
	var best *observation
	var rank [3]int
	now := time.Now()
	for _, o := range q.all {
		if !o.waiting || !o.renewed && !q.closed && now.Before(o.deferred) {
			continue
		}
		if of := o.pace(); p != either && of != p || q.again[of] >= of.maxAgain() && q.often(o) {
			continue
		}
		r := [3]int{o.examinations, q.tried[o.signature.class], int(FaultSeverity(o.latest.Fault))}
		if best == nil || slices.Compare(r[:], rank[:]) < 0 {
			best, rank = o, r
		}
	}
	if best == nil {
		return nil
	}
	best.at = best.pace()
	if best.again = q.often(best); best.again {
		q.again[best.at]++
	}
	if !best.fromLog {
		q.tried[best.signature.class]++
	}
	best.waiting, best.busy, best.renewed = false, true, false
	best.sequences = q.closed || !best.deferred.IsZero() && !now.Before(best.deferred)
	q.running++
	return best.latest
}

// often reports whether candidates of the class of o were examined often.
func (q *queue) often(o *observation) bool { return q.tried[o.signature.class] >= maxFresh }

// An outcome is the result of an examination.
type outcome uint8

const (
	interrupted   outcome = iota // the run has ended
	notReproduced                // the failure did not appear again, or only a related one did
	needsLog                     // the failure did not appear with the last input alone, and the log was not repeated
	deferred                     // the failure needs several inputs
	settled                      // it is a finding, or the reference server fails in the same way
)

// deferral is how long a candidate whose failure needs several inputs waits for an observation of the same failure that
// is easier to understand.
const deferral = 30 * time.Second

// examined records the result of an examination.
func (q *queue) examined(o *observation, result outcome) {
	q.running--
	o.busy = false
	if o.again {
		q.again[o.at]--
	}
	switch result {
	case interrupted:
		o.waiting = true
	case settled:
		o.settled = true
		o.examinations++
	case notReproduced:
		o.examinations++
	case needsLog:
		o.waiting, o.fromLog = true, true
	case deferred:
		o.examinations++
		o.waiting = o.examinations < maxExaminations
		if o.deferred.IsZero() {
			o.deferred = time.Now().Add(deferral)
		}
	}
	q.wake()
}

// idle reports whether no candidate waits or is being examined.
func (q *queue) idle() bool {
	return q.running == 0 && !slices.ContainsFunc(q.all, func(o *observation) bool { return o.waiting })
}

// numNew returns the number of waiting candidates whose class was not examined often.
func (q *queue) numNew() (n int) {
	for _, o := range q.all {
		if o.waiting && !q.often(o) {
			n++
		}
	}
	return n
}

// numbers returns the numbers of observed signatures, of those that were examined, of those that were examined and have
// no result, and of those that wait for their first examination. A signature for which only a related failure was
// reproduced has a result: the finding about that failure.
func (q *queue) numbers() (all, examined, notReproduced, unexamined int) {
	for _, o := range q.all {
		switch {
		case o.examinations == 0:
			unexamined++
			continue
		case !o.settled && (o.finding == nil || !o.finding.Reproduced):
			notReproduced++
		}
		examined++
	}
	return len(q.all), examined, notReproduced, unexamined
}

// has reports whether there are observations of a finding.
func (q *queue) has(fd *Finding) bool {
	return slices.ContainsFunc(q.all, func(o *observation) bool { return o.finding == fd })
}

// reassign makes the observations of one finding those of another.
func (q *queue) reassign(from, to *Finding) {
	for _, o := range q.all {
		if o.finding == from {
			o.finding = to
		}
	}
}
