package loadgen

import (
	"fmt"
	"sync/atomic"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Account is what became of the jobs.
type Account struct {
	Submitted int64 // to the server
	Finished  int64 // came to their end
	Censored  int64 // were still under way when the run was ended, and not waited for
	Lost      int64 // acknowledged, or sent, and never heard of again

	Unacknowledged int64 // came to their end, but nobody answered their submission

	Redelivered   int64 // run again because their worker was killed: this is as it should be
	Duplicated    int64 // run again for no reason, or after their end
	AnsweredTwice int64 // results of jobs that had ended
	Misdirected   int64 // answers that belong to another client's job
	Corrupted     int64 // payloads that are not what was sent
	OutOfOrder    int64 // taken by a worker before an older one of the same client, function and priority
	Refused       int64 // answered by an error

	First string // the first thing that went wrong, as a transcript
}

// Sound reports whether nothing happened to any job that should not.
func (a *Account) Sound() bool {
	return a.Lost+a.Unacknowledged+a.Duplicated+a.AnsweredTwice+a.Misdirected+a.Corrupted+a.Refused == 0
}

// ledger is the account while the run goes on.
type ledger struct {
	redelivered, duplicated, twice, misdirected, corrupted, disordered, refused atomic.Int64
	first                                                                       atomic.Pointer[string]
}

func (l *ledger) account() Account {
	a := Account{
		Redelivered: l.redelivered.Load(), Duplicated: l.duplicated.Load(), AnsweredTwice: l.twice.Load(), Misdirected: l.misdirected.Load(),
		Corrupted: l.corrupted.Load(), OutOfOrder: l.disordered.Load(), Refused: l.refused.Load(),
	}
	if s := l.first.Load(); s != nil {
		a.First = *s
	}
	return a
}

// note counts something that went wrong. The first is kept with its message.
func (c *conn) note(counter *atomic.Int64, f *codec.Frame, why string) {
	counter.Add(1)
	l := &c.run.ledger
	if l.first.Load() != nil {
		return
	}
	text := fmt.Sprintf("# %s: %s\n", c.name, why)
	if f != nil && f.Raw != nil {
		p := &transcript.Printer{Protocol: c.run.cfg.Protocol, Fold: 4}
		text += string(p.AppendLine(nil, c.name, f))
	}
	l.first.CompareAndSwap(nil, &text)
}

// took enters that a worker got the job with this payload. It returns nil if there is no such
// job.
func (c *conn) took(f *codec.Frame, payload []byte) *slot {
	number, whole := numberOf(payload)
	if !whole {
		c.note(&c.run.ledger.corrupted, f, "the payload is not one that was sent")
		return nil
	}
	s := c.run.slots.find(number)
	if s == nil && c.run.wasDoubted(number) {
		c.run.ledger.redelivered.Add(1)
		return nil
	}
	if s == nil {
		c.note(&c.run.ledger.duplicated, f, "this job had ended already")
		return nil
	}
	c.given(number)
	if s.ran.Swap(number) == number {
		if c.run.wasKilled(int(s.holder.Load())) {
			c.run.ledger.redelivered.Add(1)
		} else {
			c.note(&c.run.ledger.duplicated, f, "another worker has this job, and is alive")
		}
	} else if !c.inOrder(s, number) {
		c.note(&c.run.ledger.disordered, f, "a younger job of the same client, function and priority came before it")
	}
	s.holder.Store(int32(c.id))
	s.taken.Store(c.now)
	return s
}

// inOrder reports whether the job is younger than those that the worker has had of the same
// client, function and priority.
func (c *conn) inOrder(s *slot, number uint64) bool {
	if c.seen == nil {
		return true
	}
	owner := int(number&(maxSlots-1)) / c.run.perClient
	last := &c.seen[(owner*c.run.cfg.Functions+int(s.function))*priorities+int(s.priority)]
	if s.seq < *last {
		return false
	}
	*last = s.seq
	return true
}

// heard finds the job of a result that came to a client, or notes what is wrong with it.
func (c *conn) heard(f *codec.Frame, payload []byte) *slot {
	number, whole := numberOf(payload)
	s := c.run.slots.find(number)
	switch {
	case !whole:
		c.note(&c.run.ledger.corrupted, f, "the result is not the payload that was sent")
		if s != nil && !c.pool.has(s) {
			return nil
		}
	case s == nil:
		c.note(&c.run.ledger.twice, f, "this job had its result already")
	case !c.pool.has(s):
		c.note(&c.run.ledger.misdirected, f, "this is another client's job")
		return nil
	}
	return s
}
