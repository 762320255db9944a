package watch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobwire/internal/target"
)

// The subjects of checks, as in the values of @watch in transcripts.
const (
	Processor   = "processor"
	Memory      = "memory"
	Descriptors = "descriptors"
	Cost        = "cost"
)

// Check is one check of the process of a server. A zero Limit means no limit.
type Check struct {
	What  string // Processor, Memory, Descriptors or Cost
	Limit int64  // of Memory: bytes
}

// ParseCheck parses the value of @watch:
//
//	processor           the server uses at most [restShare] of a processor core after the conversation, while its
//	                    connections are open and after they are closed
//	memory              the server does not keep memory for each repetition of the conversation
//	memory under 64MiB  after the conversation, while its connections are open, the server uses less than 64 MiB more
//	                    memory than before
//	descriptors         the server does not keep file descriptors for each repetition of the conversation
//	cost                for the steps below "measure NAME at SIZE:", the server uses at the largest size at most
//	                    [costFactor] times as much processor time as at the smallest
func ParseCheck(value string) (Check, error) {
	what, limit, limited := strings.Cut(value, " under ")
	c := Check{What: what}
	mib, inMiB := strings.CutSuffix(limit, "MiB")
	n, err := strconv.ParseUint(mib, 10, 20)
	c.Limit = int64(n) << 20
	if !slices.Contains([]string{Processor, Memory, Descriptors, Cost}, what) ||
		limited && (what != Memory || !inMiB || err != nil || n == 0) {
		return Check{}, fmt.Errorf("@watch %s: expected processor, memory, memory under NUMBERMiB, descriptors or cost",
			value)
	}
	return c, nil
}

// Watcher performs checks before and after a conversation with a server.
type Watcher struct {
	target target.Target
	checks []Check
	before Usage
	costs  costs
	amiss  string
	err    error
}

// New returns a watcher. It is called before the conversation.
func New(t target.Target, checks []Check) (*Watcher, error) {
	w := &Watcher{target: t, checks: checks}
	var ok bool
	if w.before, ok = Of(t); !ok {
		return nil, ErrNoProcess
	}
	return w, nil
}

// AtEnd performs the checks of open connections. It is called after the conversation, before its connections are
// closed.
func (w *Watcher) AtEnd() {
	for _, c := range w.checks {
		switch {
		case c.What == Processor:
			w.rests("although no client waits for a reply")
		case c.What == Cost:
			amiss, err := w.costs.check()
			if w.note(err); amiss != "" {
				w.found("%s", amiss)
			}
		case c.Limit > 0:
			more, err := memoryAtRest(w.target, w.before, c.Limit)
			if w.note(err); more > c.Limit {
				w.found("the server uses %d MiB more memory than before the conversation; the limit is %d MiB", more>>20,
					c.Limit>>20)
			}
		}
	}
}

// After performs the other checks. It is called after the connections are closed. again repeats the conversation; After
// calls it often enough to detect a leak. After returns the first problem, or "".
func (w *Watcher) After(again func() error) (amiss string, err error) {
	for _, c := range w.checks {
		if w.amiss != "" || w.err != nil {
			break
		}
		switch {
		case c.What == Processor:
			w.rests("although all connections are closed")
		case c.What == Memory && c.Limit == 0:
			at, _ := Of(w.target)
			round := rounds(w.target, again)
			n, repetitions, err := MemoryLeak(at.Resident, leakRuns, func() (Usage, error) { return round(leakRuns) })
			if w.note(err); n > 0 {
				w.found("memory leak: the server uses %d KiB more after %d repetitions of the transcript, with all connections closed", n>>10, repetitions)
			}
		case c.What == Descriptors:
			n, repetitions, err := descriptorLeak(w.target, rounds(w.target, again))
			if w.note(err); n > 0 {
				w.found("file descriptor leak: the server has %d more open file descriptors after %d repetitions of the transcript, with all connections closed", n, repetitions)
			}
		}
	}
	return w.amiss, w.err
}

// rests checks that the server uses little processor time. although is the end of the message about a violation.
func (w *Watcher) rests(although string) {
	share, err := loadAtRest(w.target)
	if w.note(err); share > restShare {
		w.found("the server uses %.0f %% of a processor core, %s", 100*share, although)
	}
}

func (w *Watcher) found(format string, args ...any) {
	if w.amiss == "" {
		w.amiss = fmt.Sprintf(format, args...)
	}
}

func (w *Watcher) note(err error) { w.err = errors.Join(w.err, err) }
