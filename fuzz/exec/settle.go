package exec

import (
	"errors"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/fuzz/model"
)

// ready reports whether a barrier can be sent on the connection, and the server must reply to it at once.
func (x *execution) ready(k *conn) bool {
	return k.open && !k.ended && !k.unread && !k.desynced && !k.streams[codec.Peer].Lost() &&
		k.streams[codec.Peer].Skip() == 0 &&
		len(k.partial) == 0 && k.busy == 0 &&
		!(x.model != nil && x.model.Blocked(k.id))
}

// sendBarrier queues a barrier on the connection. flush writes it.
func (x *execution) sendBarrier(k *conn) {
	x.nonce++
	nonce := nonceOf(x.nonce)
	b := x.appendBarrier(x.out2[:0], nonce)
	x.out2 = b
	k.waiting++
	k.nonces = append(k.nonces, nonce)
	x.put(k, b, true)
}

// barrierConn waits until the effects of the current step have arrived, and checks for missing messages. k is the
// connection of the step. It is nil if a barrier on that connection cannot follow the step.
func (x *execution) barrierConn(k *conn) {
	if k == nil {
		// check before the barrier, because a barrier may make the server send messages that it otherwise forgets
		x.checkMissing(true)
	} else if k.open {
		x.awaitBarrier(k)
	}
	if x.record.Fault != nil {
		return
	}
	if !x.exact && x.model != nil && !x.Thorough {
		// After the reply to the barrier on the sender's connection, the effects on other connections have usually
		// arrived. The other connections send barriers only if a message is missing, and at the end of the input.
		quiet, alone := true, true
		for _, o := range x.conns {
			if o != k && o.open {
				x.drain(o)
				quiet = quiet && x.ready(o)
				alone = false
			}
		}
		vague := x.common || x.model.Tainted() // the model does not know which messages are missing
		if vague || quiet && (k == nil || !k.open || x.ready(k)) && x.record.Fault == nil && x.model.CheckMissing() == nil {
			x.noteState()
			if x.settled = seemsSettled; alone && k != nil && k.open && x.ready(k) {
				x.settled = isSettled
			}
			return
		}
	}
	x.barrierAll(k, k == nil || !k.open || !x.ready(k))
}

// barrierAll sends a barrier on every connection except k, waits for the replies, and checks for missing messages. If a
// connection cannot send a barrier, or unproved is set, barrierAll pings the server and then waits for missing
// messages.
func (x *execution) barrierAll(k *conn, unproved bool) {
	for _, o := range x.conns {
		if o != k && x.ready(o) {
			x.awaitEarlier(o)
			x.sendBarrier(o)
			x.flush(o)
		}
	}
	for _, o := range x.conns {
		if o != k && o.open {
			if o.waiting > 0 {
				x.await(o)
			} else {
				unproved = true
			}
		}
		if x.record.Fault != nil {
			return
		}
	}
	if unproved && (x.Thorough || x.model == nil || !x.model.Tainted()) {
		x.handshake()
		for _, o := range x.conns {
			if o.open && !x.ready(o) {
				x.drain(o)
			}
		}
	}
	x.checkMissing(unproved)
}

// checkMissing reports a fault if the model says that a message is missing. If unproved is set, the message may still
// be on its way, so checkMissing first waits for it until the timeout.
func (x *execution) checkMissing(unproved bool) {
	if x.model == nil || x.record.Fault != nil {
		return
	}
	if x.model.Tainted() || x.common {
		return // the model does not know which messages are missing
	}
	x.tick()
	err := x.model.CheckMissing()
	within := 200 * time.Microsecond
	for end := time.Now().Add(x.Timeout); err != nil && unproved && time.Now().Before(end) && x.record.Fault == nil &&
		!x.isOver(); err = x.model.CheckMissing() {
		k := x.lacking(err)
		if k == nil {
			break
		}
		x.receiveWithin(k, within) // the other connections may lack messages too
		within = min(2*within, 5*time.Millisecond)
		for _, o := range x.conns {
			if o.open {
				x.drain(o)
			}
		}
	}
	x.reportError(err)
	x.noteState()
}

// lacking returns the connection on which a message is missing. If it is not open, lacking returns another one, or nil
// if none is open.
func (x *execution) lacking(err error) (open *conn) {
	c, _ := errors.AsType[*model.Complaint](err)
	for id, k := range x.conns {
		if k.open && (open == nil || c != nil && id == c.Conn) {
			open = k
		}
	}
	return open
}

// awaitBarrier sends a barrier on the connection and waits for the reply. If the server need not reply to a barrier,
// awaitBarrier reads what has arrived, and waits for the server to close the connection if it must.
func (x *execution) awaitBarrier(k *conn) {
	if !k.open {
		return
	}
	if x.ready(k) {
		x.sendBarrier(k)
		x.await(k)
		return
	}
	if k.early, k.bare = k.early[:0], 0; len(k.in) > 0 { // the server closes the connection without reading the bytes that pipeline sent
		x.digest(k)
	}
	x.drain(k)
	for end := time.Now().Add(x.Timeout); x.model != nil && x.model.Leaving(k.id) && k.open && x.record.Fault == nil &&
		!x.isOver() && time.Now().Before(end); {
		x.receiveWithin(k, overAfter)
	}
}

// finishBurst sends a barrier on every connection and waits for the replies, so that the server has processed the whole
// burst.
func (x *execution) finishBurst() {
	for _, k := range x.conns {
		if x.ready(k) {
			x.sendBarrier(k)
		}
		x.flush(k)
	}
	for _, k := range x.conns {
		if k.open && k.waiting > 0 && x.record.Fault == nil {
			x.await(k)
		}
	}
}

// await reads until the server has replied to all barriers of the connection or the timeout expires. A server that
// sends nothing has Timeout; one that sends other messages has four times as long.
func (x *execution) await(k *conn) {
	until, delayed := time.Now().Add(4*x.Timeout), x.delayed
	x.flush(k)
	if len(k.in) > 0 && k.open {
		x.digest(k) // the reply has arrived together with earlier replies
	}
	for k.open && k.waiting > 0 && !k.desynced && x.record.Fault == nil {
		if !x.receive(k, true) {
			return
		}
		if time.Now().After(until.Add(x.delayed - delayed)) {
			x.reportNoReply(k)
			return
		}
	}
}

// awaitEarlier waits for the replies to requests that were sent while an earlier request blocked. It sends no barrier,
// because a barrier may make the server send replies that it otherwise forgets.
func (x *execution) awaitEarlier(k *conn) {
	for len(k.queue) > 0 && x.ready(k) && x.record.Fault == nil && x.receive(k, true) {
	}
}

// awaitReply waits for the reply to the last message, which no barrier follows, if that message has a reply.
func (x *execution) awaitReply(k *conn) {
	if e := &x.record.Events[len(x.record.Events)-1]; !x.traits.InOrder && e.Type != nil {
		k.replies = e.Type.Answers
	}
	x.flush(k)
	if x.replyMissing(k) && len(k.in) > 0 {
		x.digest(k)
	}
	for k.open && x.replyMissing(k) && !k.desynced && x.record.Fault == nil && x.receive(k, true) {
	}
	k.replies = nil
}

// replyMissing reports whether the reply to a barrier, or to a message without a barrier, has not arrived.
func (x *execution) replyMissing(k *conn) bool {
	return k.waiting > 0 || len(k.queue) > 0 || len(k.replies) > 0
}

// drain writes the pending bytes, and reads all bytes that have arrived, without waiting.
func (x *execution) drain(k *conn) {
	for x.flush(k); k.open && !k.unread && x.record.Fault == nil && x.receive(k, false); {
	}
}

// reportError records a complaint of the model as a fault. It ignores complaints in executions that other inputs or
// unknown effects may influence (common).
func (x *execution) reportError(err error) {
	if err == nil || x.common {
		return
	}
	var c *model.Complaint
	if !errors.As(err, &c) {
		return
	}
	x.fault(Fault{Oracle: Law, Rule: c.Rule, Law: c.Law, Text: c.Text, Conn: c.Conn, Timed: c.Timed})
}

// closeTime is how long awaitClose waits for the server to close a connection.
const closeTime = 100 * time.Millisecond

// awaitClose half-closes a connection, waits until the server closes it, and reports whether the server has done so.
// Until the server closes the connection, it may still count the connection and keep its names, and the next input
// would observe them.
func (x *execution) awaitClose(k *conn) bool {
	k.s.halfClose()
	for end := time.Now().Add(closeTime); time.Now().Before(end) && !x.isOver(); {
		if n, err := k.s.read(k.room(), closeTime); n == 0 {
			return err != errTimeout
		}
	}
	return false
}

// leave ends an input: it closes all connections, completes the record, and checks from time to time, or after a
// suspicious event, whether the server still replies.
func (x *execution) leave() {
	// messages on different connections arrive in an order that depends on time
	defer func() { slices.Sort(x.record.Features) }()
	x.recordPipelined()
	noticed := true
	for _, k := range x.conns {
		if x.flush(k); k.open {
			if x.prefix == "" && (!x.ready(k) || x.Steady && !x.awaitClose(k)) {
				noticed = false // the server may still wait for data or for the end of a request, and keep the connection
			}
			x.end(k, x.runs%64 != 0)
			if x.model != nil {
				x.model.Closed(k.id)
			}
		}
	}
	x.record.Vague = x.model == nil || x.model.Tainted() || !model.Has(x.p)
	x.record.OrderUncertain = x.timingDependent()
	if !x.record.Vague && !x.common {
		x.record.Clean = noticed && x.newModel().State(model.Everything) == x.model.State(model.Everything)
	}
	if f := x.record.Fault; f != nil && f.Oracle != HangConn && f.Oracle != HangAll && !x.lost && !x.Thorough {
		return
	}
	if x.lost || x.Thorough || x.record.Fault != nil || x.runs%8 == 0 {
		x.checkServer()
	}
}
