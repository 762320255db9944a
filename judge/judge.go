// Package judge tells which rules of its protocol a conversation breaks that no single
// message shows: replies that answer nothing, jobs that two workers have, results of
// jobs that nobody was given. It listens to all connections of one server, at one place
// of the network, and takes no part.
//
// It says only what follows from what it has heard. Whoever listens does not hear
// everybody, and hears two connections in another order than the server: what the
// server has said may have been decided long before it was heard, and what was heard
// on its way to the server may not have arrived. So it holds against a server only what
// cannot be explained by a delay, nor by connections that were not heard. What the parties
// of a conversation know only later is held back until it is known ([Judge.Keep]).
package judge

import (
	"fmt"
	"slices"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// Violation is a message that breaks a rule, by what went before it. Whoever sent it has
// broken the rule.
type Violation struct {
	Rule   codec.RuleID
	Conn   int
	Field  string // the label of the field in question; "" is the message as a whole
	Detail string

	// Kept is what Keep returned for the message, if another one has proved it; nil if it
	// is the message that was just heard.
	Kept any
}

// Judge judges one server and all who talk to it. It is not safe for concurrent use. Its
// memory is bounded: of what becomes too much it says no more.
type Judge struct {
	// Keep, if it is not nil, is called during Message for one that may turn out to break a
	// rule, and returns what its user needs to tell of it later.
	Keep func() any

	// Conduct has it judge, too, how clients and workers go about what is not forbidden. It
	// takes a place through which messages pass on their way.
	Conduct bool

	court court
	conns map[int]*conn
	live  int // of them, on which the server may still speak
	out   []Violation
	at    int64
}

// court is what a protocol has to be judged by.
type court interface {
	join(c *conn)
	hear(c *conn, f *codec.Frame)                   // a message that keeps to the form
	broken(c *conn, f *codec.Frame, r codec.RuleID) // one that does not, or is not understood
	leave(c *conn, from codec.Side, reset bool)
	forget() // the server has ended all connections: it may be another one
}

// courts are those of the protocols.
var courts = map[*codec.Protocol]func(*Judge) court{
	gearman.Protocol:    newGearman,
	beanstalk.Protocol:  newBeanstalk,
	danga.Protocol:      newDanga,
	gearmonkey.Protocol: newGearMonkey,
}

// Bounds of what is remembered.
const (
	maxConns   = 1 << 16
	maxPending = 1 << 12 // of each kind on a connection
	maxJobs    = 1 << 15
	maxPerConn = 1 << 12 // jobs, functions and tubes of a connection
	maxDoubts  = 1 << 8  // on a connection
)

// conn is a connection as it was heard.
type conn struct {
	id      int
	certain bool // all of it was heard, and its requests can be told from each other
	over    bool // the peer has closed
	ended   [2]bool
	doubts  []*doubt

	gm *gearmanConn
	bs *beanstalkConn
	dg *dangaConn
	mk *monkeyConn
}

// doubt is a violation unless one of the parties gives a reason until it is heard next.
type doubt struct {
	v     Violation
	at    int64
	holds func(*conn) bool // the party is still what makes it a violation
	left  int              // parties that are still to be heard
}

// New returns a judge of a server, nil if there is nothing to judge the protocol by.
func New(p *codec.Protocol) *Judge {
	make := courts[p]
	if make == nil {
		return nil
	}
	j := &Judge{conns: map[int]*conn{}}
	j.court = make(j)
	return j
}

// Opens notes a connection that is heard from its first byte on. Of one that was not
// announced so little is said.
func (j *Judge) Opens(id int) {
	if c := j.conn(id); c != nil {
		c.certain = true
	}
}

func (j *Judge) conn(id int) *conn {
	c := j.conns[id]
	if c == nil {
		if len(j.conns) >= maxConns {
			return nil
		}
		c = &conn{id: id}
		j.conns[id] = c
		j.live++
		j.court.join(c)
	}
	return c
}

// Loses notes that bytes of a connection were not heard.
func (j *Judge) Loses(id int) {
	if c := j.conns[id]; c != nil {
		c.lose()
	}
}

func (c *conn) lose() {
	c.certain = false
	c.doubts = nil
}

// Message hears a message, at a time in nanoseconds. err is the rule of its form that it
// breaks, if it does. What it returns is valid until the next call.
func (j *Judge) Message(id int, f *codec.Frame, at int64, err *codec.Error) []Violation {
	j.out, j.at = j.out[:0], at
	c := j.conn(id)
	if c == nil {
		return nil
	}
	if f.From == codec.Peer {
		j.confirm(c)
	}
	if err != nil || f.Type == nil {
		rule := codec.RuleID("")
		if err != nil {
			rule = err.Rule
		}
		j.court.broken(c, f, rule)
	} else {
		j.court.hear(c, f)
	}
	return j.out
}

// Ends hears that a side has closed its direction, or both if it is a reset.
func (j *Judge) Ends(id int, from codec.Side, reset bool, at int64) []Violation {
	j.out, j.at = j.out[:0], at
	c := j.conns[id]
	if c == nil {
		return nil
	}
	if from == codec.Peer {
		j.confirm(c)
	}
	c.over = c.over || from == codec.Peer || reset
	j.court.leave(c, from, reset)
	mute := c.ended[codec.Server]
	c.ended[from] = true
	if reset || c.ended[from.Other()] {
		delete(j.conns, id)
	}
	if (reset || from == codec.Server) && !mute {
		if j.live--; j.live == 0 {
			for _, c := range j.conns { // whose peers have not closed yet
				c.lose()
				j.court.join(c)
			}
			j.court.forget()
		}
	}
	return j.out
}

// accuse reports the message that was just heard, of a connection that was heard as a whole.
func (j *Judge) accuse(c *conn, rule codec.RuleID, field, format string, args ...any) {
	if c.certain {
		j.out = append(j.out, Violation{Rule: rule, Conn: c.id, Field: field, Detail: fmt.Sprintf(format, args...)})
	}
}

// suspect reports it once all parties have been heard later, if they have all been heard
// as a whole and still hold what makes it a violation.
func (j *Judge) suspect(c *conn, rule codec.RuleID, field string, holds func(*conn) bool, parties []*conn, format string, args ...any) {
	if !c.certain || slices.ContainsFunc(parties, func(p *conn) bool { return !p.certain || p.over || len(p.doubts) >= maxDoubts }) {
		return
	}
	d := &doubt{v: Violation{Rule: rule, Conn: c.id, Field: field, Detail: fmt.Sprintf(format, args...)}, at: j.at, holds: holds, left: len(parties)}
	if j.Keep != nil {
		d.v.Kept = j.Keep()
	}
	for _, p := range parties {
		p.doubts = append(p.doubts, d)
	}
}

// confirm looks at what is doubted of a peer that is heard again.
func (j *Judge) confirm(c *conn) {
	if len(c.doubts) == 0 {
		return
	}
	kept := c.doubts[:0]
	for _, d := range c.doubts {
		switch {
		case d.at >= j.at: // it said this before
			kept = append(kept, d)
		case !d.holds(c):
			d.left = -1
		default:
			if d.left--; d.left == 0 {
				j.out = append(j.out, d.v)
			}
		}
	}
	clear(c.doubts[len(kept):])
	c.doubts = kept
}

// take removes the first of the pending requests that a reply can belong to. slack is how
// many of them may have been answered otherwise.
func take[T any](pending *[]T, slack *int, fits func(T) bool) (T, bool) {
	for i, p := range *pending {
		if i > *slack {
			break
		}
		if fits(p) {
			*slack -= i
			*pending = (*pending)[i+1:]
			return p, true
		}
	}
	var none T
	return none, false
}

// await adds a request. One too many and nothing is said of the connection any more.
func await[T any](c *conn, pending *[]T, p T) {
	if len(*pending) >= maxPending {
		c.lose()
		return
	}
	*pending = append(*pending, p)
}

// behind drops those of ascending numbers that a message has overtaken.
func behind(seqs []int, seq int) []int {
	for len(seqs) > 0 && seqs[0] < seq {
		seqs = seqs[1:]
	}
	return seqs
}

// verdicts are what a court does on a type, by the side that sends it.
type verdicts[C any] map[*codec.Type][2]func(C, *conn, *codec.Frame)

// on fills a table by the names of types.
func on[C any](p *codec.Protocol, peer, server map[string]func(C, *conn, *codec.Frame)) verdicts[C] {
	v := verdicts[C]{}
	for side, rows := range [2]map[string]func(C, *conn, *codec.Frame){peer, server} {
		for name, do := range rows {
			t := p.TypeNamed(name)
			both := v[t]
			both[side] = do
			v[t] = both
		}
	}
	return v
}
