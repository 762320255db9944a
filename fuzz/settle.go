package fuzz

import (
	"errors"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/fuzz/model"
)

// ready reports whether the server must reply to a barrier on the connection at once.
func (x *executor) ready(k *conn) bool {
	return k.open && !k.ended && !k.desynced && !k.streams[codec.Peer].Lost() && k.streams[codec.Peer].Skip() == 0 && len(k.partial) == 0 && k.busy == 0 &&
		!(x.model != nil && x.model.Blocked(k.id))
}

// barrier sends a barrier.
func (x *executor) barrier(k *conn) {
	x.nonce++
	nonce := nonceOf(x.nonce)
	b := x.appendBarrier(x.out2[:0], nonce)
	x.out2 = b
	k.waiting++
	k.nonces = append(k.nonces, nonce)
	n := len(x.record.Events)
	x.sendingBarrier = true
	x.put(k, b)
	x.sendingBarrier = false
	for i := n; i < len(x.record.Events); i++ {
		x.record.Events[i].Barrier = true
	}
}

// barrierConn waits until the effects of the current step have arrived. k is the connection on which the step was executed, or
// nil.
func (x *executor) barrierConn(k *conn) {
	if k == nil {
		x.checkMissing(true) // the messages must arrive without a barrier, which may wake the server
	} else if k.open {
		x.awaitBarrier(k)
	}
	if x.record.Fault != nil {
		return
	}
	if !x.exact && x.model != nil && !x.thorough {
		// After the reply to the sender's barrier, the effects on other connections have usually arrived. If a
		// message is missing, and at the end of the input, the other connections send barriers too.
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
			x.settledMost = true
			x.settledAll = alone && k != nil && k.open && x.ready(k)
			return
		}
	}
	x.barrierAll(k, k == nil || !k.open || !x.ready(k))
}

// barrierAll sends a barrier on all connections except k. If a connection cannot send a barrier, barrierAll gives the server
// time instead.
func (x *executor) barrierAll(k *conn, unproved bool) {
	for _, o := range x.conns {
		if o != k && x.ready(o) {
			x.awaitEarlier(o)
			x.barrier(o)
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
	if unproved && (x.thorough || x.model == nil || !x.model.Tainted()) {
		x.handshake()
		for _, o := range x.conns {
			if o.open && !x.ready(o) {
				x.drain(o)
			}
		}
	}
	x.checkMissing(unproved)
}

// checkMissing asks the model whether a message is missing. If unproved is set, some messages may
// not have arrived yet, and it waits for them.
func (x *executor) checkMissing(unproved bool) {
	if x.model == nil || x.record.Fault != nil {
		return
	}
	if x.model.Tainted() || x.common {
		return // the model does not know which messages are missing
	}
	x.tick()
	err := x.model.CheckMissing()
	for end := time.Now().Add(x.timeout); err != nil && unproved && time.Now().Before(end) && x.record.Fault == nil && !x.isOver(); err = x.model.CheckMissing() {
		time.Sleep(200 * time.Microsecond)
		for _, o := range x.conns {
			if o.open {
				x.drain(o)
			}
		}
	}
	x.reportError(err)
	x.noteState()
}

// awaitBarrier waits for the reply to a barrier on one connection, if the server must reply.
func (x *executor) awaitBarrier(k *conn) {
	if !k.open {
		return
	}
	if x.ready(k) {
		x.barrier(k)
		x.await(k)
		return
	}
	if k.early, k.bare = k.early[:0], 0; len(k.in) > 0 { // the server closes without reading what was sent ahead
		x.digest(k)
	}
	x.drain(k)
	for end := time.Now().Add(x.timeout); x.model != nil && x.model.Leaving(k.id) && k.open && x.record.Fault == nil && !x.isOver() && time.Now().Before(end); x.drain(k) {
		time.Sleep(50 * time.Microsecond)
	}
}

// finishBurst waits until the server has handled a burst.
func (x *executor) finishBurst() {
	for _, k := range x.conns {
		if x.ready(k) {
			x.barrier(k)
		}
		x.flush(k)
	}
	for _, k := range x.conns {
		if k.open && k.waiting > 0 && x.record.Fault == nil {
			x.await(k)
		}
	}
}

// await reads until all barriers of the connection are answered or the timeout expires.
func (x *executor) await(k *conn) {
	until := time.Now().Add(4 * x.timeout)
	x.flush(k)
	if len(k.in) > 0 && k.open {
		x.digest(k) // the reply arrived with earlier ones
	}
	for k.open && k.waiting > 0 && !k.desynced && x.record.Fault == nil {
		if !x.receive(k, true) {
			return
		}
		if time.Now().After(until) {
			x.reportNoReply(k)
			return
		}
	}
}

// awaitEarlier waits for the replies to requests that were sent while an earlier request blocked. The replies must arrive
// without a barrier, because a barrier may wake the server.
func (x *executor) awaitEarlier(k *conn) {
	for len(k.queue) > 0 && x.ready(k) && x.record.Fault == nil && x.receive(k, true) {
	}
}

// awaitReply waits for the reply to a message that has no barrier, if it has a reply.
func (x *executor) awaitReply(k *conn) {
	if e := &x.record.Events[len(x.record.Events)-1]; !x.d.inOrder && e.Type != nil {
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
func (x *executor) replyMissing(k *conn) bool {
	return k.waiting > 0 || len(k.queue) > 0 || len(k.replies) > 0
}

// drain reads what has arrived.
func (x *executor) drain(k *conn) {
	for x.flush(k); k.open && x.record.Fault == nil && x.receive(k, false); {
	}
}

func (x *executor) reportError(err error) {
	if err == nil || x.common {
		return
	}
	var c *model.Complaint
	if !errors.As(err, &c) {
		return
	}
	x.fault(Fault{Oracle: Law, Rule: c.Rule, Law: c.Law, Text: c.Text, Conn: c.Conn})
}

// closeTime is how long a server may take to close a connection that its peer closes.
const closeTime = 100 * time.Millisecond

// awaitClose ends the sending direction of a connection and waits until the server closes the connection. It reports
// whether the server closed it. Until then, the server may count the connection and keep its names, and the next input
// would find them.
func (x *executor) awaitClose(k *conn) bool {
	if k.ended || !x.ready(k) {
		return false // the server may wait for more data
	}
	k.s.halfClose()
	for end := time.Now().Add(closeTime); time.Now().Before(end) && !x.isOver(); {
		if n, err := k.s.read(k.room(), closeTime); n == 0 {
			return err != errTimeout
		}
	}
	return false
}

// leave closes all connections and checks whether the server is still there.
func (x *executor) leave() {
	defer func() { slices.Sort(x.record.features) }() // messages on different connections arrive in any order
	x.recordPipelined()
	noticed := true
	for _, k := range x.conns {
		if x.flush(k); k.open {
			noticed = !x.steady || x.prefix != "" || x.awaitClose(k) && noticed
			x.end(k, x.runs%64 != 0)
			if x.model != nil {
				x.model.Closed(k.id)
			}
		}
	}
	x.record.Vague = x.model == nil || x.model.Tainted()
	x.record.OrderUncertain = x.timingDependent()
	if x.model != nil && !x.model.Tainted() && !x.common {
		fresh := x.newModel()
		x.record.Clean = noticed && fresh != nil && fresh.State() == x.model.State()
	}
	if f := x.record.Fault; f != nil && f.Oracle != HangConn && f.Oracle != HangAll && !x.lost && !x.thorough {
		return
	}
	if x.lost || x.thorough || x.record.Fault != nil || x.runs%8 == 0 {
		x.checkServer()
	}
}
