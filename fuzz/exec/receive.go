package exec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
)

// answered records that the request to which a message replies no longer waits. f is nil if the message cannot be
// decoded.
func (x *execution) answered(k *conn, f *codec.Frame) {
	switch {
	case x.traits.InOrder:
		if len(k.queue) > 0 && (f == nil || f.Type == nil || f.Type.Does != codec.Published) {
			if k.queue[0] {
				k.busy--
			}
			k.queue = k.queue[:copy(k.queue, k.queue[1:])]
		}
	case k.busy > 0 && f != nil && x.traits.Unblocks(f):
		k.busy--
	}
}

// room returns at least 4 KiB of free space after the received bytes.
func (c *conn) room() []byte {
	if cap(c.in)-len(c.in) < 4<<10 {
		in := make([]byte, len(c.in), 2*cap(c.in)+(16<<10))
		copy(in, c.in)
		c.in = in
	}
	return c.in[len(c.in):cap(c.in)]
}

// receive reads from a connection once and decodes the bytes. It reports whether it read any. It waits for bytes if
// wait is set, and reports a fault if none arrive before the timeout.
func (x *execution) receive(k *conn, wait bool) bool {
	n, err := x.read(k, wait)
	return x.process(k, n, err, wait)
}

// receiveWithin is like receive, but waits for at most the given duration, after which it reports no fault.
func (x *execution) receiveWithin(k *conn, within time.Duration) bool {
	n, err := k.s.read(k.room(), within)
	return x.process(k, n, err, false)
}

// process decodes n bytes that were read into the room of the connection, or handles the error of the read.
func (x *execution) process(k *conn, n int, err error, wait bool) bool {
	k.in = k.in[:len(k.in)+n]
	if n > 0 {
		x.digest(k)
		if len(k.in) > maxIn {
			x.fault(Fault{Oracle: Framing, Law: "endless reply",
				Text: "expected a reply of at most 64 MiB, got more than 64 MiB and no end of the reply", Conn: k.id})
		}
		return true
	}
	switch {
	case err == errTimeout && !wait:
	case err == errTimeout:
		x.reportNoReply(k)
	default:
		x.disconnected(k)
		if err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			x.lost = true
		}
	}
	return false
}

// read reads from a connection. If wait is set, it waits for bytes until the timeout. After checkOthersAfter it also
// reads from the other connections, and after pingDelay it pings the server.
func (x *execution) read(k *conn, wait bool) (int, error) {
	if !wait {
		return k.s.peek(k.room())
	}
	n, err := x.wait(k, min(checkOthersAfter, k.within))
	if err != errTimeout || k.within <= checkOthersAfter {
		return n, err
	}
	if x.readOthers(k); x.record.Fault != nil {
		return 0, err
	}
	n, err = x.wait(k, k.within-checkOthersAfter)
	if err == errTimeout {
		within := time.Millisecond // the reply may have arrived during the ping
		if x.isLate(k) {
			within = k.within
		}
		n, err = x.wait(k, within)
	}
	more := x.extraTime()
	if err == errTimeout && more > 0 {
		n, err = x.wait(k, more)
	}
	for more > 0 && err == errTimeout && more < maxExtraTime && x.busy != nil && x.busy() && !x.isOver() {
		n, err = x.wait(k, busyTime) // a slow server still handles the messages
		more, x.delayed = more+busyTime, x.delayed+busyTime
	}
	return n, err
}

// A server handles many messages one after the other, so the reply to the last one may take longer than the timeout. A
// slow server needs requestTime for a message, on a busy machine, and as long for each requestBytes of its data. As
// long as it has something to do, it gets busyTime more, again and again, up to maxExtraTime in all. The number of
// messages in bytes that are not decoded is their length divided by uncountedRequest.
const (
	manyRequests     = 1000
	requestTime      = 300 * time.Microsecond
	maxExtraTime     = 40 * time.Second
	busyTime         = time.Second
	requestBytes     = 1 << 10
	uncountedRequest = 8
)

// extraTime returns how much longer than the timeout a reply may take, because the server may still handle the messages
// that this input has sent. It is 0 for an ordinary input.
func (x *execution) extraTime() time.Duration {
	if x.requests < manyRequests {
		return 0
	}
	return min(maxExtraTime, time.Duration(x.requests)*requestTime)
}

// overAfter is how long the executor waits before it checks whether the run has ended.
const overAfter = 100 * time.Millisecond

// wait waits for bytes until the timeout or the end of the run, and reads them. The time for which the server waits for a
// processor does not count, up to maxBusy times the timeout: other programs delay the reply.
func (x *execution) wait(k *conn, within time.Duration) (int, error) {
	most, before := maxBusy*within, time.Duration(-1)
	for ; within > 0 && !x.isOver(); within -= overAfter {
		if n, err := k.s.read(k.room(), min(within, overAfter)); err != errTimeout {
			return n, err
		}
		if x.waited == nil || before < 0 && within < overAfter {
			continue // the time is unknown, or no read follows for which it would be needed
		}
		now := x.waited()
		if before >= 0 {
			more := min(now-before, most)
			within, most = within+more, most-more
			x.delayed += more
		}
		before = now
	}
	return 0, errTimeout
}

// maxBusy is how many timeouts a server may wait for a processor, in addition to the timeout.
const maxBusy = 10

// readOthers reads from the other connections of the input, so that the model does not miss their messages.
func (x *execution) readOthers(k *conn) {
	if k == x.canary || len(k.early) > 0 {
		// The canary takes no part in the input. Messages that pipeline has sent may already have effects on other
		// connections, which the model does not expect yet.
		return
	}
	for _, o := range x.conns {
		if o != k && o.open {
			x.drain(o)
		}
	}
}

// isLate reports whether to wait longer for a reply, until the timeout. It returns false if the server replies to a
// ping meanwhile, because the reply is then missing rather than late. A thorough or steady executor has already waited
// for the whole timeout.
func (x *execution) isLate(k *conn) bool {
	if x.Thorough || x.Steady || k == x.canary || k.effectUnknown || x.Timeout <= pingDelay || x.ping() {
		return false
	}
	k.within = x.Timeout - pingDelay
	return true
}

// reportNoReply reports a fault because the server has not replied to a barrier or a request within the timeout.
func (x *execution) reportNoReply(k *conn) {
	k.desynced = true
	if x.isOver() {
		x.quit = true
		return
	}
	x.feature(k, coverSilence, boolHash(k.effectUnknown), 0)
	if k.effectUnknown || x.extraTime() == maxExtraTime { // the server may handle so many messages for any time
		return
	}
	request := "a request"
	if k.waiting > 0 {
		request = x.barrier.request.Name
	}
	x.fault(Fault{Oracle: HangConn, Law: "no answer", Rule: x.lastBrokenRule(k), Conn: k.id,
		Text: fmt.Sprintf("the server did not reply to %s within %v", request, x.Timeout)})
}

// lastBrokenRule returns the rule that the last illegal message on the connection broke.
func (x *execution) lastBrokenRule(k *conn) codec.RuleID {
	for i := len(x.record.Events) - 1; i >= 0; i-- {
		if e := &x.record.Events[i]; e.Conn == k.id && e.From == codec.Peer && e.Err != nil {
			return e.Err.Rule
		}
	}
	return ""
}

// disconnected handles the end of a connection by the server: it records the event and checks whether the model allows
// it.
func (x *execution) disconnected(k *conn) {
	k.s.close(withReset)
	k.open = false
	x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Closes, Step: x.step})
	x.feature(k, coverGone, uint64(bits.Len(uint(len(k.partial)))), boolHash(k.tainted))
	x.lost = true
	early := len(k.in) > 0 && x.isEarly(k)
	if len(k.in) > 0 && !k.desynced && !k.tainted && !early {
		x.fault(Fault{Oracle: Framing, Law: "cut off",
			Text: fmt.Sprintf("the server closed the connection in the middle of a message, after %d bytes of the message",
				len(k.in)), Conn: k.id})
	}
	if x.model != nil {
		if early || x.undecidable(k.partial) {
			x.model.Garbled(k.id)
		}
		x.reportError(x.model.Gone(k.id))
	}
}

// undecidable reports whether an incomplete message is illegal whatever its remaining data is. It completes the message
// with two different kinds of data of the announced length. A server may act on such a message before it has received
// all of it. It need not accept a very long message, so that one is undecidable too.
func (x *Executor) undecidable(b []byte) bool {
	if len(b) == 0 || !x.traits.IsBinary(b) {
		return false
	}
	const (
		most = 32 << 20 // bytes of data
		kept = 1 << 20  // bytes of memory that is kept for reuse
	)
	var broken codec.RuleID
	for _, first := range []byte{1, 0} {
		sess := x.p.NewSession(codec.Options{Waive: x.known.Waive})
		n, err := sess.Decode(codec.Peer, b, &x.frame)
		if err != codec.ErrShort {
			return false
		}
		if n-len(b) > most {
			return true
		}
		whole := append(slices.Grow(x.whole[:0], n+1), b...)
		for len(whole) < n {
			whole = append(whole, first, 1)
		}
		if cap(whole) <= kept {
			x.whole = whole
		}
		_, err = sess.Decode(codec.Peer, whole[:n], &x.frame)
		e, illegal := err.(*codec.Error)
		if !illegal || broken != "" && e.Rule != broken {
			return false // the message is legal with some data, or its length is still unknown
		}
		broken = e.Rule
	}
	return true
}

// digest decodes the received bytes into messages and handles each of them. It keeps an incomplete message.
func (x *execution) digest(k *conn) {
	at := 0
	for at < len(k.in) && x.record.Fault == nil && !x.isEarly(k) {
		rest := k.in[at:]
		n, found, e := len(rest), codec.Skipped, (*codec.Error)(nil)
		if !k.desynced {
			if n, found, e = k.streams[codec.Server].Read(rest, &x.frame); found == codec.Nothing {
				break
			}
		}
		if n > maxIdle {
			collect(n + len(x.frame.Spans)*int(unsafe.Sizeof(codec.Span{})))
		}
		if at += n; found == codec.Whole {
			if x.handleMessage(k); len(k.early) > 0 && !x.replyMissing(k) {
				break // the remaining messages belong to the next step of the pipeline
			}
			continue
		}
		x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Raw, Raw: x.record.keep(rest[:n]), Step: x.step,
			Err: e})
		if found == codec.Skipped {
			continue
		}
		if k.streams[codec.Server].Lost() {
			k.desynced, x.common = true, true // without message boundaries, missing messages cannot be detected
		}
		k.effectUnknown = k.effectUnknown || len(k.partial) > 0 // the server has replied to an incomplete message
		x.answered(k, nil)
		x.feature(k, coverIllegal, errHash(e), 0)
		if x.prefix != "" && x.traits.OpenLists && !x.traits.IsBinary(rest) {
			x.common = true // the reply is probably a list with names of other inputs that break its format
			continue
		}
		if !slices.Contains(x.p.Caps, e.Rule) && (!k.effectUnknown && len(k.partial) == 0 || x.traits.IsBinary(rest)) {
			f := Fault{Oracle: Framing, Rule: e.Rule, Law: e.Field, Text: e.Error(), Conn: k.id}
			if t := x.frame.Type; t != nil {
				f.Got = t.Does.String()
			}
			x.fault(f)
		}
	}
	k.in = k.in[:copy(k.in, k.in[at:])]
}

// isEarly reports whether received bytes are the reply to a request that is not complete yet, such as one whose size the
// server refuses. They are decoded after the rest of the request was sent.
func (x *execution) isEarly(k *conn) bool {
	return x.traits.InOrder && !x.traits.Pushes && len(k.partial) > 0 && len(k.queue) == 0 && !k.effectUnknown && !k.desynced
}

// large is the memory in bytes that large messages have needed since the last garbage collection for them.
var large atomic.Int64

// collect runs the garbage collector after large messages, of n bytes of memory now: with the settings of a fuzzer it
// runs rarely, because most messages are small.
func collect(n int) {
	if large.Add(int64(n)) > maxIn/2 {
		large.Store(0)
		runtime.GC()
	}
}

// handleMessage records a message of the server, assigns it to a barrier or request, and checks it.
func (x *execution) handleMessage(k *conn) {
	f := &x.frame
	e := Event{Conn: k.id, From: codec.Server, Verb: transcript.Send, Type: f.Type, Raw: x.record.keep(f.Raw),
		Step: x.step}
	f.Message(&x.msg)
	x.answered(k, f)
	if f.Type.Does == codec.Refuse || slices.Contains(k.replies, f.Type) {
		k.replies = nil
	}
	if k.waiting > 0 && x.barrier.answered(f, k.nonces[0]) && (x.barrier.Nonced || k.earlier == 0) {
		e.Barrier = true
		k.waiting--
		k.nonces = k.nonces[:copy(k.nonces, k.nonces[1:])]
	} else {
		if k.earlier > 0 && f.Type == x.barrier.Reply {
			k.earlier--
		}
		e.Args = make([][]byte, 0, len(x.msg.Args))
		for i, a := range x.msg.Args {
			e.Args = append(e.Args, x.record.keep(a))
			if fd := input.AssignedField(f.Type, i); fd != nil && (x.chosen[x.stepID] == nil) {
				x.chosen[x.stepID] = e.Args[i]
			}
		}
	}
	x.record.add(e)
	if !e.Barrier {
		x.feature(k, coverReceived, typeHash(f.Type), x.barrierState)
	}
	if model.Excused(x.p, f.Raw) {
		x.common = true
	}
	if x.model != nil {
		x.tick()
		err := x.model.Received(k.id, f)
		x.common = x.common || err != nil && len(f.Type.Repeat) > 0 && x.hasIncomplete(k)
		x.reportError(err)
		if v := x.record.Fault; v != nil && v.Oracle == Law && v.Got == "" {
			if v.Got = f.Type.Does.String(); f.Type.Does == codec.Refuse {
				v.Refusal = fmt.Sprintf("%s %.40q", f.Type.Name, f.Arg(0))
			}
		}
	}
	x.checkUnsent(k, &e)
}

// checkUnsent reports a fault if the message in x.frame contains data that no peer has sent. It adds the data to the
// fault if the model has reported the message. e is the event of the message.
func (x *execution) checkUnsent(k *conn, e *Event) {
	v := x.record.Fault
	if x.common || x.foreign && !e.Barrier || v == nil && e.Barrier || v != nil && v.Oracle != Law {
		return
	}
	switch data := x.unsentData(&x.frame); {
	case data.Data == nil:
	case v == nil:
		x.fault(Fault{Oracle: Disclosure, Law: data.Does, Conn: k.id, Text: data.Text, Unsent: data})
	default:
		data.Barrier = e.Barrier
		v.Unsent = data
	}
}

// hasIncomplete reports whether another connection has sent the beginning of a message. Lists and statistics may
// already count that message.
func (x *execution) hasIncomplete(k *conn) bool {
	return slices.ContainsFunc(x.conns, func(o *conn) bool { return o != k && o.open && len(o.partial) > 0 })
}

// unsentData returns the first name or payload in a message that must come from a peer and that no peer has sent in
// this input. It ignores values of less than 4 bytes.
func (x *execution) unsentData(f *codec.Frame) (none Unsent) {
	if len(f.Type.Repeat) > 0 {
		return none
	}
	for i := range f.Spans {
		fd := f.Spans[i].Field
		if !x.traits.IsFromPeers(fd, f.Value(i)) {
			continue
		}
		if v := f.Value(i); len(v) >= 4 && !x.sentByPeer(v) {
			return Unsent{Data: bytes.Clone(v), Does: f.Type.Does.String(),
				Text: fmt.Sprintf("expected the %s of %s to be data that a client or worker had sent, got %.60q", fd.Name,
					f.Type.Name, v)}
		}
	}
	return none
}

// sentByPeer reports whether the bytes are part of what a peer has sent in this input.
func (x *execution) sentByPeer(v []byte) bool {
	for _, k := range x.conns {
		if bytes.Contains(k.sentAll, v) {
			return true
		}
	}
	return false
}
