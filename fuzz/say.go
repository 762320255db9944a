package fuzz

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// encode returns the bytes of a step.
func (x *performer) encode(s *Step) []byte {
	if s.Verb == transcript.Raw {
		if x.prefix == "" {
			return s.Bytes
		}
		return bytes.ReplaceAll(s.Bytes, []byte(place), []byte(x.prefix))
	}
	x.msg.Type, x.msg.CRLF, x.msg.Args = s.Type, s.CRLF, x.msg.Args[:0]
	for i := range s.Args {
		a := &s.Args[i]
		v := a.Value
		got, known := x.chosen[a.Of]
		if known && a.Of > 0 {
			v = got
		} else if x.prefix != "" && x.d.shared != nil && assignedField(s.Type, i) != nil {
			return nil // it would be somebody else's
		}
		x.msg.Args = append(x.msg.Args, x.d.own(argField(s.Type, i), v, x.prefix))
	}
	b, err := x.loose.Append(x.out[:0], codec.Peer, &x.msg)
	if err != nil {
		return nil // not even loosely can it be written
	}
	x.out = b
	if x.prefix != "" {
		return bytes.ReplaceAll(b, []byte(place), []byte(x.prefix))
	}
	return b
}

// say sends bytes: in lockstep message by message, else at once.
func (x *performer) say(c *Conv, k *conn, b []byte) {
	if len(b) == 0 || x.barred(k, b) {
		return
	}
	if x.d.inOrder && k.busy > 0 {
		x.common = true // servers differ in when they read what is said while they let wait
	}
	if k.lostUs || k.deaf {
		if k.muttered++; k.muttered > 2 {
			return // nobody can tell what it leads to
		}
	}
	if c.Burst {
		x.put(k, b)
		return
	}
	for len(b) > 0 && k.open && !k.ended && x.record.Fault == nil {
		n := len(b)
		if !x.d.inOrder || k.busy == 0 {
			n = x.first(k, b)
		}
		x.put(k, b[:n])
		b = b[n:]
		x.settle(k)
	}
}

// barred reports whether bytes are not to be sent behind what was.
func (x *performer) barred(k *conn, b []byte) bool {
	return x.d.forbidden(k.said, b) || x.known.Never != nil && x.known.Never.Match(behind(k.said, b))
}

// first returns how many of the bytes make the first message, together with what was sent
// before, or all.
func (x *performer) first(k *conn, b []byte) int {
	if k.skip > 0 {
		return min(k.skip, len(b))
	}
	if k.lostUs || len(k.early) > 0 {
		return len(b)
	}
	all := append(k.ours, b...)
	// A session remembers requests, so it must not read them twice: a new one tells where a
	// message ends.
	n, err := x.p.NewSession(codec.Options{Waive: x.known.Waive}).Decode(codec.Peer, all, &x.frame)
	if err == codec.ErrShort || n <= len(k.ours) || n >= len(all) {
		return len(b)
	}
	return n - len(k.ours)
}

// flush sends what waits to be. A write costs more than all else, so what belongs together
// goes with one.
func (x *performer) flush(k *conn) {
	if len(k.out) == 0 || !k.open || x.arrived(k) {
		return
	}
	err := k.s.write(k.out)
	k.out = k.out[:0]
	switch {
	case err == nil:
	case err == errTimeout:
		x.fault(Fault{Oracle: HangConn, Law: "not read", Text: "the server does not read any more", Conn: k.id})
		k.s.close(true)
		k.open = false
	default:
		x.drain(k)
		if k.open {
			x.gone(k)
		}
	}
}

// put notes bytes to be sent, and tells session and model of the messages in them.
func (x *performer) put(k *conn, b []byte) {
	k.said = append(k.said, b...)
	k.out = append(k.out, b...)
	if n := min(k.skip, len(b)); n > 0 {
		k.skip -= n
		x.record.add(Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(b[:n]), Step: x.step})
		if b = b[n:]; len(b) == 0 {
			return
		}
	}
	if k.lostUs {
		x.record.add(Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(b), Step: x.step})
		return
	}
	k.ours = append(k.ours, b...)
	at := 0
	for at < len(k.ours) {
		rest := k.ours[at:]
		n, err := k.sess.Decode(codec.Peer, rest, &x.frame)
		if err == codec.ErrShort {
			x.said(k, rest, nil, nil)
			k.told = len(rest)
			break
		}
		x.edge(2, typeHash(x.frame.Type), errHash(err))
		if err == nil {
			if x.known.exceeded(&x.frame) {
				x.abandon(k)
				return
			}
			x.said(k, rest[:n], x.frame.Type, nil)
			x.common = x.common || x.d.common(&x.frame, x.prefix)
			if x.model != nil {
				x.model.Sent(k.id, &x.frame)
			}
			x.noteBusy(k)
			at += n
			continue
		}
		var e *codec.Error
		errors.As(err, &e)
		if e != nil && slices.Contains(x.known.Avoid, e.Rule) {
			x.abandon(k)
			return
		}
		k.tainted = true
		if x.model != nil {
			x.model.Garbled(k.id)
		}
		if k.lostUs = n <= 0 || e == nil || e.Fatal; k.lostUs {
			n = len(rest)
		}
		k.skip = max(0, n-len(rest))
		n = min(n, len(rest))
		x.said(k, rest[:n], nil, e)
		if !x.d.binary(rest) {
			k.expect(x.d.inOrder, true)
			k.soft = true
			k.within = min(x.patience, 50*time.Millisecond)
		}
		at += n
	}
	k.ours = k.ours[:copy(k.ours, k.ours[at:])]
}

// abandon breaks a connection off rather than send what is known not to end well.
func (x *performer) abandon(k *conn) {
	k.out = k.out[:0]
	x.record.add(Event{Conn: k.id, Verb: transcript.Resets, Step: x.step})
	x.ours(k)
	x.end(k, true)
	x.common = true
}

// said records what was sent, but for what was recorded when a message had begun.
func (x *performer) said(k *conn, b []byte, t *codec.Type, err *codec.Error) {
	e := Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(b[min(k.told, len(b)):]), Step: x.step, Err: err}
	e.Ahead = len(k.early) > 0 && len(x.record.Events) > k.led
	if t != nil && k.told == 0 {
		e.Verb, e.Type = transcript.Send, t
	}
	k.told = 0
	if len(e.Raw) > 0 {
		x.record.add(e)
	}
}

// noteBusy notes that a request may wait, as far as no model tells.
func (x *performer) noteBusy(k *conn) {
	t := x.frame.Type
	if !x.d.nonced && t != nil && !x.saying && (has(t.Replies, x.d.reply) || t.Name == x.d.sentinel) {
		k.earlier++
	}
	if blocks := x.d.blocks != nil && t != nil && !x.saying && x.d.blocks(&x.frame); blocks || x.d.inOrder {
		k.expect(x.d.inOrder, blocks)
	}
}

// expect notes a request, and whether the server may be silent on it for a while.
func (k *conn) expect(inOrder, blocks bool) {
	if blocks {
		k.busy++
	}
	if inOrder {
		k.queue = append(k.queue, blocks)
	}
}
