package exec

import (
	"fmt"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// conn is a connection of an execution to the server.
type conn struct {
	id       int
	s        link
	open     bool
	ended    bool            // half-closed by the executor
	unread   bool            // the executor reads nothing more
	streams  [2]codec.Stream // decoders of both directions, by sender; strict
	in       []byte          // received bytes that are not decoded
	desynced bool            // received bytes can no longer be decoded
	within   time.Duration   // timeout of a reply
	last     uint64          // hash of the previous coverage event of the connection
	sending
	pipelined
	awaited
}

// sending is what was sent on a connection.
type sending struct {
	pending       []byte // bytes to send
	partial       []byte // bytes that were sent and are not a complete message yet
	recorded      int    // number of bytes of partial that the record already contains
	sentAll       []byte // all bytes that were sent, to find the source of received values
	tainted       bool   // illegal bytes were sent
	effectUnknown bool   // illegal bytes were sent whose effect is unknown
	// the rule that says where the next message begins, if servers differ in that after an illegal message
	resync          codec.RuleID
	unreadableSteps int // number of steps since it became unknown where the next message begins
}

// pipelined is what pipeline has sent on a connection before the execution of the steps.
type pipelined struct {
	early      []byte // the bytes
	earlyIndex int    // index of the first event of early
	bare       int    // number of messages in early that no barrier follows
}

// awaited are the replies that a connection waits for.
type awaited struct {
	waiting int // barriers without a reply
	nonces  [][]byte
	// expected types of the reply to a message without a barrier; only used if replies have no order
	replies []*codec.Type
	queue   []bool // for each request without a reply, if replies are in order: whether the reply may come late
	busy    int    // requests whose reply may come late
	earlier int    // earlier requests whose replies have the same type as the reply to a barrier
	slept   bool   // a worker has sent a request to sleep, so the server may send messages at any time
}

// renewed returns a connection that is not open, with the memory of k.
func (c *conn) renewed() conn {
	return conn{in: reusable(c.in), sending: sending{pending: c.pending[:0], partial: c.partial[:0], sentAll: reusable(c.sentAll)},
		pipelined: pipelined{early: c.early[:0]}, awaited: awaited{nonces: c.nonces[:0], queue: c.queue[:0]}}
}

// reusable returns the memory of a buffer, or nil if it is too much to keep.
func reusable(b []byte) []byte {
	if cap(b) > maxIdle {
		return nil
	}
	return b[:0]
}

// pingDelay is how long the executor waits for a reply before it sends a ping to check whether the server still
// replies.
const pingDelay = 250 * time.Millisecond

// checkOthersAfter is how long the executor waits for a reply before it reads the other connections of the input.
const checkOthersAfter = 2 * time.Millisecond

// pingDelay returns how long the executor waits for a reply before it sends a ping. A thorough or steady executor waits
// for the whole timeout.
func (x *Executor) pingDelay() time.Duration {
	if x.Thorough || x.Steady {
		return x.Timeout
	}
	return min(x.Timeout, pingDelay)
}

const (
	maxIn   = 64 << 20 // bytes of one reply
	maxIdle = 1 << 20  // bytes of a buffer that the next input reuses
)

// recordOwnClose reports to the model, and as coverage, that the executor has closed or half-closed a connection.
func (x *execution) recordOwnClose(k *conn) {
	if x.model != nil {
		x.model.Closed(k.id)
	}
	x.feature(k, coverLeft, 0, uint64(min(k.busy, 3)))
}

// connect opens a connection and reports whether it is open. If several inputs share the server, connect also queues
// the preamble, which is written together with the first message.
func (x *execution) connect(k *conn, id int) bool {
	s, err := x.to.dial(x.Timeout)
	if err != nil {
		x.lost = true
		x.fault(Fault{Oracle: HangAll, Law: "no connection", Text: fmt.Sprintf("cannot connect to the server: %v", err),
			Conn: id})
		return false
	}
	sent := append(k.sentAll, 0xff)
	*k = k.renewed()
	k.id, k.s, k.open, k.within, k.streams, k.sentAll = id, s, true, x.pingDelay(), x.streams(), sent
	x.record.add(Event{Conn: id, Verb: transcript.Opens, Step: x.step})
	if x.model != nil {
		x.model.Opened(id)
	}
	if x.prefix == "" {
		return true
	}
	for i := range x.traits.Preamble {
		b := x.encode(&x.traits.Preamble[i])
		x.put(k, b, false) // written together with the first message
	}
	return true
}

// streams returns the decoders of both directions of a new connection.
func (x *Executor) streams() [2]codec.Stream {
	return codec.Streams(x.p.NewSession(codec.Options{Waive: x.known.Waive, MaxData: codec.DefaultMaxData}))
}

// serverNoticed waits until the server closes a connection that the executor has half-closed. This proves that the
// server has noticed the half-close. Some servers keep such a connection open, for example because the client still
// waits for a result. If the server does not close the connection in time, the executor no longer checks for missing
// messages.
func (x *execution) serverNoticed(k *conn) {
	most := 30 * time.Millisecond
	if x.Thorough || x.Steady {
		most = min(x.Timeout, 300*time.Millisecond)
	}
	for end := time.Now().Add(most); k.open && x.record.Fault == nil && !x.isOver() && time.Now().Before(end); {
		n, err := k.s.read(k.room(), checkOthersAfter)
		k.in = k.in[:len(k.in)+n]
		switch {
		case n > 0:
			x.digest(k)
		case err == errTimeout:
			x.readOthers(k)
		default:
			x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Closes, Step: x.step})
			k.s.close(withReset)
			k.open = false
		}
	}
	if k.open {
		x.common = true
	}
}

// resetNoticed waits until the server has noticed a reset. Nothing proves this. The reset arrives at once, but the
// server may read it after later messages on other connections. On a busy machine, a thorough executor waits longer.
func (x *execution) resetNoticed() {
	x.handshake()
	for n := 0; x.Thorough && n < maxResetWaits; n++ {
		begun := time.Now()
		time.Sleep(resetTime)
		if x.handshake(); time.Since(begun) < 2*resetTime {
			break
		}
	}
}

// A thorough executor waits resetTime after a reset, and again, at most maxResetWaits times, if that took twice as long.
const (
	resetTime     = 20 * time.Millisecond
	maxResetWaits = 10
)

// end closes a connection, with a reset if reset is set. The server may keep a connection that was half-closed before
// or that is closed without a reset, so end counts such connections in MaybeKept.
func (x *execution) end(k *conn, reset bool) {
	if k.ended || !reset {
		x.MaybeKept++
	}
	k.s.close(reset)
	k.open = false
}
