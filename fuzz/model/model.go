// Package model tells what a job queue has to do, as far as that can be told from
// outside: its documents as small state machines, which share nothing with the
// reference servers. A model is told everything that happens on the connections of one
// conversation and complains of what must not happen, and of what should have happened.
//
// Where a server may choose, as which of two sleeping workers is given a job, a model
// allows the choice and then goes by what was chosen; nothing is overlooked.
package model

import (
	"fmt"
	"regexp"
	"time"

	"jobwire/codec"
)

// Model follows one conversation. It is told everything in the order in which it
// happened, in lockstep: whatever a server does of a message has come before the next
// Sent, Closed or Garbled, which the reply to the message, a sentinel behind it, and
// Settled prove. Sentinels are messages as any other, and are told likewise.
//
// Connections are small numbers of the caller's choice; a number may be used again
// after Gone or Closed. Frames are not kept. A model is not safe for concurrent use.
type Model interface {
	Opened(conn int)                         // we connected
	Sent(conn int, f *codec.Frame)           // a whole message of ours, as a strict session decoded it
	Garbled(conn int)                        // bytes of ours that are no message: from here little is predicted, see Tainted
	Closed(conn int)                         // we left, or ended our direction; what comes after it is not judged
	Received(conn int, f *codec.Frame) error // a whole message of the server's. The error is a *Complaint
	Gone(conn int) error                     // the server closed the connection, or lost it

	// Settled complains of what is due and has not come. A caller who has proved by
	// sentinels that all has come takes it as a fault at once; one who cannot, since
	// a connection is blocked, goes on reading until it is nil or his patience ends.
	Settled() error

	// Elapsed tells that time has passed since it was last called, or the model was
	// made. Call it before Sent and before Settled. What a server does by the clock is
	// allowed from Slack before its time, and due from Slack behind it.
	Elapsed(d time.Duration)

	// Blocked reports whether the connection's last request is one that may wait, as a
	// reserve does: a sentinel behind it would not be answered.
	Blocked(conn int) bool

	// Tainted reports whether bytes have been sent whose effect nobody can tell.
	// From then on a model judges only what no request can change: that what is
	// delivered or echoed is what was sent, and that a connection's replies are of the
	// types that its requests have.
	Tainted() bool

	// State is an abstract of the state for feedback: how many of each kind are queued,
	// running, waiting, in classes of none, one and more.
	State() uint64
}

// Slack is how much a server may be early or late with what it does by the clock, the
// time that messages take included.
const Slack = 400 * time.Millisecond

// Complaint is what a model found wrong.
type Complaint struct {
	Conn int          // where; -1 is nowhere in particular
	Rule codec.RuleID // of the protocol, if there is one for it
	Law  string       // what was broken, in a few words that are the same for all such complaints
	Text string       // what happened, and what was due
}

func (c *Complaint) Error() string {
	if c.Rule != "" {
		return fmt.Sprintf("connection %d: %s: %s [%s]", c.Conn, c.Law, c.Text, c.Rule)
	}
	return fmt.Sprintf("connection %d: %s: %s", c.Conn, c.Law, c.Text)
}

// Quirk names a divergence of a real server, or of a setup, that is known and told in
// docs/findings.md, so that a model can be held against that server without telling it again. The
// profiles in conform/profiles list those of each server.
type Quirk string

// Shared says that others use the server at the same time, who have names of their own:
// lists and totals hold more than is known here.
const Shared Quirk = "shared"

// Watched says that somebody without names of his own is connected now and then, and asks
// whether the server is there, and that it was used before: what it has counted since its start,
// and connections, are not known.
const Watched Quirk = "watched"

// Adapter makes the models of a protocol.
type Adapter struct {
	New func(p *codec.Protocol, quirks map[Quirk]bool) Model

	// Excuses matches the bytes of a refusal that depends on what the model does not follow. The
	// model's complaints after such a refusal are void. It is nil if there is none.
	Excuses *regexp.Regexp
}

var adapters = map[string]*Adapter{}

// Register adds the model of a protocol. It is called before models are made.
func Register(p *codec.Protocol, a *Adapter) { adapters[p.Name] = a }

// New returns the model of a server that has just been started. It is nil if the protocol has no model.
func New(p *codec.Protocol, quirks ...Quirk) Model {
	a := adapters[p.Name]
	if a == nil {
		return nil
	}
	set := map[Quirk]bool{}
	for _, q := range quirks {
		set[q] = true
	}
	return a.New(p, set)
}

// Excused reports whether complaints of the protocol's model are void after the reply.
func Excused(p *codec.Protocol, reply []byte) bool {
	a := adapters[p.Name]
	return a != nil && a.Excuses != nil && a.Excuses.Match(reply)
}
