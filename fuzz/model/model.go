// Package model specifies what a job queue server must do, as far as clients and workers can observe it. Each model is a
// specification written as a small state machine that shares no code with the reference servers. A model observes
// everything that happens on the connections of one conversation, and reports messages that the server must not send and
// messages that are missing.
//
// Where a server may choose, for example which of two sleeping workers gets a job, a model allows each choice and follows
// the one that the server made.
package model

import (
	"fmt"
	"regexp"
	"time"

	"jobwire/codec"
)

// Model follows one conversation. The caller must report everything in the order in which it happened, one message at a
// time: all messages that the server sends because of a message have arrived before the next call of Sent, Closed or
// Garbled. The reply to the message, a barrier after it, and CheckMissing prove that. Barriers are messages like any other.
//
// The caller numbers the connections, with small numbers, and may use a number again after Gone or Closed. A model keeps no
// Frame after the call. A model is not safe for concurrent use.
type Model interface {
	Opened(conn int)                         // the caller has connected
	Sent(conn int, f *codec.Frame)           // the caller has sent a message, as a strict session decodes it
	Garbled(conn int)                        // the caller has sent bytes that are not a message: see Tainted
	Closed(conn int)                         // the caller has closed or half-closed the connection; later messages on it are not checked
	Received(conn int, f *codec.Frame) error // the server has sent a message. The error is a *Complaint
	Gone(conn int) error                     // the server has closed the connection, or it was lost

	// CheckMissing reports an expected message that has not arrived. After barriers on all connections the message is
	// missing. Without this proof, because a request blocks a connection, the caller reads on until the error is nil or
	// a timeout expires.
	CheckMissing() error

	began(now time.Time)

	// Elapsed adds the time since its last call, or since New. The caller calls it before Sent and before CheckMissing. If
	// the server does something at a time, the model allows it from Slack before that time, and expects it at the
	// latest Slack after that time.
	Elapsed(d time.Duration)

	// Blocked reports whether the reply to the last request of the connection may come late, as the reply to a reserve
	// may. Until then, the server does not reply to a barrier either.
	Blocked(conn int) bool

	// Leaving reports whether the server must close the connection. The caller waits for that before it sends anything
	// else, because other connections may notice it.
	Leaving(conn int) bool

	// Tainted reports whether the caller has sent bytes whose effect is unknown. From then on, a model checks only what
	// no request can change: delivered and echoed data is data that was sent, and the types of replies belong to the
	// requests.
	Tainted() bool

	// State is an abstraction of the state, for coverage: how many jobs and workers of each kind there are, as none,
	// one or more.
	State() uint64
}

// Slack is how much earlier or later than its time a server may do something. It includes the time that messages take.
const Slack = 400 * time.Millisecond

// Complaint is a difference between a server and its model.
type Complaint struct {
	Conn int          // number of the connection; -1: none
	Rule codec.RuleID // of the protocol, if there is one
	Law  string       // the kind of difference in a few words, such as "missing message"
	Text string       // what was expected, and what happened
}

// ChangedData is the Law of a complaint about the data of a job that is not what a client submitted.
const ChangedData = "changed job data"

func (c *Complaint) Error() string {
	if c.Rule != "" {
		return fmt.Sprintf("connection %d: %s: %s [%s]", c.Conn, c.Law, c.Text, c.Rule)
	}
	return fmt.Sprintf("connection %d: %s: %s", c.Conn, c.Law, c.Text)
}

// Quirk is a known deviation of a real server, or a property of the setup, that a model accepts. docs/findings.md describes the
// deviations, and the profiles in conform/profiles list those of each server.
type Quirk string

// Shared says that other clients use the server at the same time, with other names: lists and totals contain more than the
// model knows.
const Shared Quirk = "shared"

// Watched says that another client connects now and then and sends barriers, and that clients have used the server before.
// The number of connections, and what the server has counted since its start, are therefore unknown.
const Watched Quirk = "watched"

// Adapter makes the models of a protocol.
type Adapter struct {
	New func(p *codec.Protocol, quirks map[Quirk]bool) Model

	// Excuses matches the bytes of an error reply that depends on state that the model does not follow. Complaints
	// after such a reply do not count. It is nil if there is no such reply.
	Excuses *regexp.Regexp
}

var adapters = map[string]*Adapter{}

// Register adds the model of a protocol. It is called before models are made.
func Register(p *codec.Protocol, a *Adapter) { adapters[p.Name] = a }

// New returns the model of a server that has just been started and whose clock shows the time now. It returns nil if the
// protocol has no model.
func New(p *codec.Protocol, now time.Time, quirks ...Quirk) Model {
	a := adapters[p.Name]
	if a == nil {
		return nil
	}
	set := map[Quirk]bool{}
	for _, q := range quirks {
		set[q] = true
	}
	m := a.New(p, set)
	m.began(now)
	return m
}

// Excused reports whether complaints of the protocol's model do not count after the reply.
func Excused(p *codec.Protocol, reply []byte) bool {
	a := adapters[p.Name]
	return a != nil && a.Excuses != nil && a.Excuses.Match(reply)
}
