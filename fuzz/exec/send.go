package exec

import (
	"bytes"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
)

// encode returns the bytes of a step, or nil if it cannot be encoded or must not be sent.
func (x *execution) encode(s *input.Step) []byte {
	if s.Verb == transcript.Raw {
		if x.prefix == "" {
			return s.Bytes
		}
		return bytes.ReplaceAll(s.Bytes, []byte(input.Placeholder), []byte(x.prefix))
	}
	x.msg.Type, x.msg.CRLF, x.msg.Args = s.Type, s.CRLF, x.msg.Args[:0]
	for i := range s.Args {
		a := &s.Args[i]
		v := a.Value
		got, known := x.chosen[a.Of]
		if known && a.Of > 0 {
			v = got
		} else if x.prefix != "" && x.traits.HasNumbers && input.AssignedField(s.Type, i) != nil {
			return nil // the job number may belong to another input
		}
		if a.Now {
			x.timed = true
			v = x.clock.at(v)
		}
		x.msg.Args = append(x.msg.Args, x.traits.Own(s.Type.FieldAt(i), v, x.prefix))
	}
	b, err := x.session.Append(x.out[:0], codec.Peer, &x.msg)
	if err != nil {
		return nil // the message cannot be encoded, even with all rules waived
	}
	x.out = b
	if x.prefix != "" {
		return bytes.ReplaceAll(b, []byte(input.Placeholder), []byte(x.prefix))
	}
	return b
}

// sendBytes sends the bytes of a step: one message at a time with a barrier after each or, in a burst, all bytes
// without barriers.
func (x *execution) sendBytes(k *conn, b []byte) {
	if len(b) == 0 || x.mustNotSend(k, &x.c.Steps[x.step], b) {
		return
	}
	if x.traits.InOrder && k.busy > 0 {
		x.common = true // some servers read further requests while a request blocks, others do not
	}
	if k.streams[codec.Peer].Lost() || k.desynced {
		if k.unreadableSteps++; k.unreadableSteps > 2 {
			return // more bytes are useless, because their effects are unknown
		}
	}
	if k.unread {
		x.record.add(Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(b), Step: x.step})
		k.sentAll, k.pending = append(k.sentAll, b...), append(k.pending, b...)
		x.requests += len(b) / uncountedRequest
		x.flush(k)
		return
	}
	if x.c.Mode == input.Burst {
		x.put(k, b, false)
		return
	}
	for len(b) > 0 && k.open && !k.ended && x.record.Fault == nil {
		n := len(b)
		if !x.traits.InOrder || k.busy == 0 {
			n = x.first(k, b)
		}
		x.put(k, b[:n], false)
		b = b[n:]
		if len(b) == 0 && k.bare > 0 {
			k.bare--
			x.awaitReply(k)
		} else {
			x.barrierConn(k)
		}
	}
}

// mustNotSend reports whether bytes must not be sent on the connection, because they could shut down the server or are
// known to cause a failure.
func (x *execution) mustNotSend(k *conn, s *input.Step, b []byte) bool {
	return x.traits.IsUnsafe(k.sentAll, b) && !x.traits.IsSafe(s, b) || x.known.Forbids(s, k.sentAll, b)
}

// first returns the length of the part of b that completes the first message, or len(b) if the end of that message is
// unknown.
func (x *execution) first(k *conn, b []byte) int {
	if n := k.streams[codec.Peer].Skip(); n > 0 {
		return min(n, len(b))
	}
	if k.streams[codec.Peer].Lost() || len(k.early) > 0 {
		return len(b)
	}
	all := b
	if len(k.partial) > 0 {
		all = append(k.partial, b...)
	}
	// A session must not decode a request twice, so a new one determines the end of the message.
	n, err := x.p.NewSession(codec.Options{Waive: x.known.Waive}).Decode(codec.Peer, all, &x.frame)
	if err == codec.ErrShort || n <= len(k.partial) || n >= len(all) {
		return len(b)
	}
	return n - len(k.partial)
}

// flush writes the pending bytes. Several messages share one write where possible, because each write takes time.
func (x *execution) flush(k *conn) {
	if len(k.pending) == 0 || !k.open || x.arrived(k) {
		return
	}
	var err error
	for b := k.pending; len(b) > 0 && err == nil && k.open; {
		n := len(b)
		if x.c.Mode == input.Burst && n > maxPipelinedBytes { // read too, so that the server can write its replies
			n = maxPipelinedBytes
			x.receive(k, false)
		}
		err = k.s.write(b[:n])
		b = b[n:]
	}
	k.pending = k.pending[:0]
	switch {
	case err == nil:
	case err == errTimeout && (k.unread || x.extraTime() > 0):
		k.ended = true // the server need not read while it cannot write, or handles earlier messages
	case err == errTimeout:
		x.fault(Fault{Oracle: HangConn, Law: "not read", Text: "the server reads no more data from the connection",
			Conn: k.id})
		k.s.close(withReset)
		k.open = false
	default:
		x.drain(k)
		if k.open {
			x.disconnected(k)
		}
	}
}

// put appends bytes to the pending bytes of the connection, and passes the messages in them to the session, the model
// and the record. barrier says that the bytes are those of a barrier.
func (x *execution) put(k *conn, b []byte, barrier bool) {
	k.sentAll = append(k.sentAll, b...)
	k.pending = append(k.pending, b...)
	k.partial = append(k.partial, b...)
	x.requests += len(b) / requestBytes
	at := 0
	for at < len(k.partial) {
		rest := k.partial[at:]
		n, found, e := k.streams[codec.Peer].Read(rest, &x.frame)
		if found == codec.Nothing {
			if x.model != nil && k.recorded == 0 {
				x.model.Begins(k.id)
			}
			x.recordSent(k, rest, nil, nil, barrier)
			k.recorded = len(rest)
			break
		}
		at += n
		x.requests++
		switch found {
		case codec.Skipped:
			x.requests += n / uncountedRequest
			x.recordSent(k, rest[:n], nil, nil, barrier)
			continue
		case codec.Whole:
			if !barrier {
				x.feature(k, coverSent, typeHash(x.frame.Type), 0)
			}
			k.slept = k.slept || x.frame.Type.Does == codec.Sleep
			if x.known.Exceeded(&x.frame) {
				x.abandon(k)
				return
			}
			x.recordSent(k, rest[:n], x.frame.Type, nil, barrier)
			x.foreign = x.foreign || x.prefix != "" && !barrier && x.isForeign(&x.frame)
			others := x.traits.NamesOthers(&x.frame, x.prefix)
			x.common = x.common || others
			switch {
			case x.model == nil:
			case others: // other inputs may have changed the object with that name
				x.model.Garbled(k.id)
			default:
				x.model.Sent(k.id, &x.frame)
			}
			x.noteBusy(k, barrier)
			continue
		}
		if !barrier {
			x.feature(k, coverSent, typeHash(x.frame.Type), errHash(e))
		}
		if slices.Contains(x.known.Avoid, e.Rule) {
			x.abandon(k)
			return
		}
		k.tainted = true
		known := x.noteIllegal(k, e)
		x.recordSent(k, rest[:n], nil, e, barrier)
		if !x.traits.IsBinary(rest) {
			k.expect(x.traits.InOrder, !known)
			if known {
				continue
			}
			k.effectUnknown = true
			if k.within = min(x.Timeout, 50*time.Millisecond); x.Steady {
				k.within = min(x.Timeout, pingDelay)
			}
		}
	}
	k.partial = k.partial[:copy(k.partial, k.partial[at:])]
	if len(k.in) > 0 && len(k.partial)+len(k.early) == 0 { // the server has replied before it received the whole request
		x.digest(k)
	}
}

// noteIllegal passes the illegal message in x.frame to the model. It reports whether the reply and the effect of the
// message are known.
func (x *execution) noteIllegal(k *conn, e *codec.Error) bool {
	switch {
	case x.model == nil:
		return false
	case k.effectUnknown:
		x.model.Garbled(k.id)
		return false
	case !x.model.Illegal(k.id, &x.frame, e):
		return false
	}
	if r := x.p.Framing.Lines.Reject(&x.frame, e); r.Resync != "" {
		k.resync = r.Resync
	}
	return true
}

// isForeign reports whether a request contains a value that servers assign, such as a handle, and that the server has
// not assigned in this input.
func (x *execution) isForeign(f *codec.Frame) bool {
	for i := range f.Spans {
		if !f.Spans[i].Field.Assigned {
			continue
		}
		own := false
		for _, v := range x.chosen {
			own = own || bytes.Equal(v, f.Value(i))
		}
		if !own {
			return true
		}
	}
	return false
}

// sendUrgent sends bytes as urgent data. It is unknown whether the server receives them among the other bytes. If the
// connection has no urgent data, sendUrgent does nothing.
func (x *execution) sendUrgent(k *conn, b []byte) {
	if x.flush(k); !k.open || k.s.writeUrgent(b) != nil {
		return
	}
	x.record.add(Event{Conn: k.id, Verb: transcript.Urgent, Raw: x.record.keep(b), Step: x.step})
	k.sentAll = append(k.sentAll, b...)
	k.tainted, k.effectUnknown, x.common, x.urgent = true, true, true, true
}

// stopReading reads nothing more from the connection. The model cannot know which messages are missing there.
func (x *execution) stopReading(k *conn) {
	if x.flush(k); !k.open {
		return
	}
	x.record.add(Event{Conn: k.id, Verb: transcript.StopsReading, Step: x.step})
	k.s.stopReading()
	k.unread, x.common = true, true
}

// abandon resets a connection instead of sending bytes that are known to cause a failure.
func (x *execution) abandon(k *conn) {
	k.pending = k.pending[:0]
	x.record.add(Event{Conn: k.id, Verb: transcript.Resets, Step: x.step})
	x.recordOwnClose(k)
	x.end(k, withReset)
	x.common = true
}

// recordSent records bytes that were sent, except those that the record already contains.
func (x *execution) recordSent(k *conn, b []byte, t *codec.Type, err *codec.Error, barrier bool) {
	e := Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(b[min(k.recorded, len(b)):]), Step: x.step,
		Barrier: barrier, Err: err}
	e.Ahead = len(k.early) > 0 && len(x.record.Events) > k.earlyIndex
	if t != nil && k.recorded == 0 {
		e.Verb, e.Type = transcript.Send, t
	}
	k.recorded = 0
	if len(e.Raw) > 0 {
		x.record.add(e)
	}
}

// noteBusy updates the number of replies that are expected on the connection after a request.
func (x *execution) noteBusy(k *conn, barrier bool) {
	t := x.frame.Type
	if !x.barrier.Nonced && t != nil && !barrier && slices.Contains(t.Answers, x.barrier.Reply) {
		k.earlier++
	}
	if blocks := t != nil && !barrier && x.traits.Blocks(&x.frame); blocks || x.traits.InOrder {
		k.expect(x.traits.InOrder, blocks)
	}
}

// expect records that a request waits for a reply. blocks says that the reply may come late.
func (c *conn) expect(inOrder, blocks bool) {
	if blocks {
		c.busy++
	}
	if inOrder {
		c.queue = append(c.queue, blocks)
	}
}
