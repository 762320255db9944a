// Package model defines what a job queue server must do, as far as clients and workers can observe it. Each model is a
// small state machine and shares no code with the reference servers. A model receives all events on the connections of
// one conversation, and reports messages that the server must not send and required messages that are missing.
//
// Where the specification leaves a choice to the server, for example which of two sleeping workers gets a job, a model
// allows every choice and updates its state according to the server's choice.
package model

import (
	"fmt"
	"regexp"
	"time"

	"jobwire/codec"
)

// Model checks one conversation. The caller must report all events in the order in which they happened, one message of
// a peer at a time: it reports all messages that the server sends because of a message before the next call of Sent,
// Closed or Garbled. The reply to the message, a barrier after it, and CheckMissing prove that these messages have
// arrived. To a model, a barrier is an ordinary message.
//
// The caller identifies connections by small numbers, which it may use again after Gone or Closed. A model does not
// keep a Frame after the call. A model is not safe for concurrent use.
type Model interface {
	Opened(conn int)               // a peer has connected
	Begins(conn int)               // a peer has sent the beginning of a message; those of others may come before its end
	Sent(conn int, f *codec.Frame) // a peer has sent a legal message
	Garbled(conn int)              // a peer has sent bytes whose effect is unknown: see Tainted

	// A peer has sent an illegal message. Illegal reports whether the model knows how the server may reply, and that its
	// next message begins after this one. Otherwise the effect is unknown, as for Garbled.
	Illegal(conn int, f *codec.Frame, e *codec.Error) bool

	Accepts(size int) // the server has said that this is the largest size of data that it accepts
	// a peer has closed or half-closed the connection; later messages on it are not checked
	Closed(conn int)
	Received(conn int, f *codec.Frame) error // the server has sent a message; the error is nil or a *Complaint
	// the server has closed or reset the connection; the error is nil or a *Complaint
	Gone(conn int) error

	// CheckMissing returns a *Complaint if a required message has not arrived. If all connections have received the
	// reply to a barrier, the message is missing. Otherwise, for example because a request blocks a connection, the
	// message may still arrive: the caller reads on until CheckMissing returns nil or a timeout expires.
	CheckMissing() error

	began(now time.Time)

	// Elapsed adds the time since the last call, or since New. The caller calls it before Sent and before CheckMissing.
	// The model allows an action that is scheduled for a time from Slack before that time on, and requires it Slack
	// after that time.
	Elapsed(d time.Duration)

	// Blocked reports whether the server may wait before it replies to the last request of the connection, as it may
	// for a reserve. Until it replies, it does not reply to a barrier on this connection either.
	Blocked(conn int) bool

	// Leaving reports whether the server must close the connection. The caller waits for the close before it sends
	// anything else, because the close may have effects on other connections.
	Leaving(conn int) bool

	// Tainted reports whether a peer has sent bytes whose effect is unknown. From then on, a model checks only what no
	// request can change: the data of jobs and echo replies, and the types of replies.
	Tainted() bool

	// State returns an abstraction of the state of the connection, or of all connections with Everything: a hash of the
	// numbers of jobs and peers in each state, each reduced to none, one, or more than one. The state of a connection
	// is that of its peer and of the jobs that the peer holds, waits for or may receive, if the model knows them.
	State(conn int) uint64
}

// Everything stands for all connections.
const Everything = -1

// Slack is how much earlier or later than a scheduled time a server may act. It includes the time that messages take to
// arrive.
const Slack = 400 * time.Millisecond

// Complaint describes a difference between the behavior of a server and its model.
type Complaint struct {
	Conn int          // number of the connection; -1: none
	Rule codec.RuleID // the broken rule of the protocol, or ""
	Law  string       // the kind of difference in a few words, such as "missing message"
	Text string       // the expected and the observed behavior

	Timed bool // the server should have acted because a time has come, not because of a message

	certain bool // it does not depend on the state of the server
}

// ChangedData is the Law of a complaint about job data that differs from the data that a client submitted.
const ChangedData = "changed job data"

func (c *Complaint) Error() string {
	if c.Rule != "" {
		return fmt.Sprintf("connection %d: %s: %s [%s]", c.Conn, c.Law, c.Text, c.Rule)
	}
	return fmt.Sprintf("connection %d: %s: %s", c.Conn, c.Law, c.Text)
}

// Quirk is a known deviation of a real server that a model accepts, or a property of the test setup. docs/findings.md
// describes the deviations, and the profiles in conform/profiles list the deviations of each server.
type Quirk string

// Shared says that other clients use the server at the same time, with other names. Lists and totals may contain
// objects that the model does not know.
const Shared Quirk = "shared"

// Lingering says that the server may not have noticed yet that the clients of earlier inputs have disconnected. Lists of
// clients, and of what exists because of them, may contain more than the model knows.
const Lingering Quirk = "lingering"

// Watched says that another client connects from time to time and sends barriers, and that other clients have used the
// server before. The number of connections and the totals since the start of the server are unknown to the model.
const Watched Quirk = "watched"

// Adapter creates the models of a protocol.
type Adapter struct {
	New func(p *codec.Protocol, quirks map[Quirk]bool) Model

	// Excuses matches the bytes of error replies that depend on state that the model does not represent. Complaints
	// after such a reply are ignored. It is nil if there are no such replies.
	Excuses *regexp.Regexp
}

var adapters = map[string]*Adapter{}

// Register sets the adapter of a protocol. It must be called before New.
func Register(p *codec.Protocol, a *Adapter) { adapters[p.Name] = a }

// Has reports whether the protocol has a model of its own, which represents everything that inputs leave on a server.
func Has(p *codec.Protocol) bool { return adapters[p.Name] != nil }

// New returns a model of a server that has just started and whose clock shows now. If the protocol has no model, it
// knows only which requests are answered.
func New(p *codec.Protocol, now time.Time, quirks ...Quirk) Model {
	set := map[Quirk]bool{}
	for _, q := range quirks {
		set[q] = true
	}
	create := newContract
	if a := adapters[p.Name]; a != nil {
		create = a.New
	}
	m := create(p, set)
	m.began(now)
	return m
}

// Excused reports whether complaints after the reply must be ignored, according to Adapter.Excuses of the protocol.
func Excused(p *codec.Protocol, reply []byte) bool {
	a := adapters[p.Name]
	return a != nil && a.Excuses != nil && a.Excuses.Match(reply)
}
