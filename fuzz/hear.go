package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// answered notes a reply.
func (x *performer) answered(k *conn, f *codec.Frame) {
	switch {
	case x.d.inOrder:
		if len(k.queue) > 0 && (f == nil || f.Type == nil || !has(x.d.pushes, f.Type.Name)) {
			if k.queue[0] {
				k.busy--
			}
			k.queue = k.queue[:copy(k.queue, k.queue[1:])]
		}
	case k.busy > 0 && f != nil && x.d.releases != nil && x.d.releases(f):
		k.busy--
	}
}

// room is where the next bytes that come are read to.
func (k *conn) room() []byte {
	if cap(k.in)-len(k.in) < 4<<10 {
		in := make([]byte, len(k.in), 2*cap(k.in)+(16<<10))
		copy(in, k.in)
		k.in = in
	}
	return k.in[len(k.in):cap(k.in)]
}

// receive reads once. It reports whether anything came.
func (x *performer) receive(k *conn, wait bool) bool {
	n, err := x.read(k, wait)
	k.in = k.in[:len(k.in)+n]
	if n > 0 {
		x.digest(k)
		if len(k.in) > maxIn {
			x.fault(Fault{Oracle: Framing, Law: "endless reply", Text: "a reply of more than 64 MiB", Conn: k.id})
		}
		return true
	}
	switch {
	case err == errTimeout && !wait:
	case err == errTimeout:
		x.silent(k)
	default:
		x.gone(k)
		if err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			x.lost = true
		}
	}
	return false
}

// read reads from a connection, and waits for something to come if it is to.
func (x *performer) read(k *conn, wait bool) (int, error) {
	if !wait {
		return k.s.peek(k.room())
	}
	n, err := k.s.read(k.room(), min(atOnce, k.within))
	if err != errTimeout || k.within <= atOnce {
		return n, err
	}
	if x.lookRound(k); x.record.Fault != nil {
		return 0, err
	}
	n, err = k.s.read(k.room(), k.within-atOnce)
	if err == errTimeout && x.isLate(k) {
		n, err = k.s.read(k.room(), k.within)
	}
	return n, err
}

// lookRound reads what has come on the other connections of the conversation.
func (x *performer) lookRound(k *conn) {
	if k == x.bystander {
		return // it has no part in it
	}
	for _, o := range x.conns {
		if o != k && o.open {
			x.drain(o)
		}
	}
}

// isLate reports whether a connection that has not been answered for a while is worth waiting for as
// long as the patience lasts. Where somebody who asks later has his answer, it is not: it is
// suspected, and whoever examines that has all patience.
func (x *performer) isLate(k *conn) bool {
	if x.thorough || k == x.bystander || k.soft || x.patience <= soon || x.ask() {
		return false
	}
	k.within = x.patience - soon
	return true
}

// silent judges a connection whose sentinel is not answered.
func (x *performer) silent(k *conn) {
	k.deaf = true
	x.edge(4, boolHash(k.soft), 0)
	if k.soft {
		return
	}
	x.fault(Fault{Oracle: HangConn, Law: "no answer", Rule: x.provoked(k), Conn: k.id,
		Text: fmt.Sprintf("a %s is not answered within %v", x.d.sentinel, x.patience)})
}

// provoked returns the rule that was broken last on a connection before it behaved so.
func (x *performer) provoked(k *conn) codec.RuleID {
	for i := len(x.record.Events) - 1; i >= 0; i-- {
		if e := &x.record.Events[i]; e.Conn == k.id && e.From == codec.Peer && e.Err != nil {
			return e.Err.Rule
		}
	}
	return ""
}

// gone notes that the server has ended a connection.
func (x *performer) gone(k *conn) {
	k.s.close(true)
	k.open = false
	x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Closes, Step: x.step})
	x.edge(5, uint64(len(k.ours)), boolHash(k.tainted))
	x.lost = true
	if len(k.in) > 0 && !k.deaf && !k.tainted {
		x.fault(Fault{Oracle: Framing, Law: "cut off", Text: fmt.Sprintf("the connection ends within a message, behind %d of its bytes", len(k.in)), Conn: k.id})
	}
	if x.model != nil {
		x.complain(x.model.Gone(k.id))
	}
}

// digest reads the messages that have come.
func (x *performer) digest(k *conn) {
	at := 0
	for at < len(k.in) && x.record.Fault == nil {
		if n := min(k.drop, len(k.in)-at); n > 0 {
			k.drop -= n
			at += n
			continue
		}
		rest := k.in[at:]
		if k.deaf {
			x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Raw, Raw: x.record.keep(rest), Step: x.step})
			at = len(k.in)
			break
		}
		if len(rest) < k.need {
			break
		}
		n, err := k.sess.Decode(codec.Server, rest, &x.frame)
		if err == codec.ErrShort {
			k.need = n
			break
		}
		k.need = 0
		if err == nil {
			at += n
			if x.heard(k); k.waiting == 0 && len(k.early) > 0 {
				break // what follows is for the next step
			}
			continue
		}
		var e *codec.Error
		errors.As(err, &e)
		if n <= 0 || n > len(rest) || e == nil || e.Fatal {
			n = len(rest)
			k.deaf = true
			x.common = true // what is due here cannot be seen any more
		}
		x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Raw, Raw: x.record.keep(rest[:n]), Step: x.step, Err: e})
		at += n
		x.answered(k, nil)
		x.edge(6, errHash(err), 0)
		if x.prefix != "" && x.d.ofAll != "" && !x.d.binary(rest) {
			x.common = true // a list of what all have named
			continue
		}
		if e != nil && !slices.Contains(x.d.caps, e.Rule) && (!k.soft && len(k.ours) == 0 || x.d.binary(rest)) {
			x.fault(Fault{Oracle: Framing, Rule: e.Rule, Law: e.Field, Text: e.Error(), Conn: k.id})
		}
	}
	k.in = k.in[:copy(k.in, k.in[at:])]
}

// heard takes in a message of the server's.
func (x *performer) heard(k *conn) {
	f := &x.frame
	e := Event{Conn: k.id, From: codec.Server, Verb: transcript.Send, Type: f.Type, Raw: x.record.keep(f.Raw), Step: x.step}
	f.Message(&x.msg)
	x.answered(k, f)
	if k.waiting > 0 && x.answersSentinel(k, f) {
		e.Sentinel = true
		k.waiting--
		k.nonces = k.nonces[:copy(k.nonces, k.nonces[1:])]
	} else {
		if k.earlier > 0 && f.Type.Name == x.d.reply {
			k.earlier--
		}
		for i, a := range x.msg.Args {
			e.Args = append(e.Args, x.record.keep(a))
			if fd := assignedField(f.Type, i); fd != nil && (x.chosen[x.stepID] == nil) {
				x.chosen[x.stepID] = e.Args[i]
			}
		}
	}
	x.record.add(e)
	if !e.Sentinel {
		state := uint64(0)
		if x.model != nil {
			state = x.model.State()
		}
		x.edge(7, typeHash(f.Type), state)
	}
	if x.d.excuses != nil && x.d.excuses.Match(f.Raw) {
		x.common = true
	}
	if x.model != nil {
		x.tick()
		x.complain(x.model.Received(k.id, f))
	}
	if x.record.Fault == nil && !e.Sentinel && !x.common {
		x.disclosed(k, f)
	}
}

// answersSentinel reports whether a reply is that to the oldest sentinel.
func (x *performer) answersSentinel(k *conn, f *codec.Frame) bool {
	if x.d.nonced {
		return bytes.Contains(f.Raw, k.nonces[0])
	}
	return f.Type.Name == x.d.reply && (x.d.isSentinel == nil || x.d.isSentinel(f)) && k.earlier == 0
}

// disclosed judges whether the values of a reply that must come from peers do.
func (x *performer) disclosed(k *conn, f *codec.Frame) {
	if len(f.Type.Repeat) > 0 {
		return
	}
	for i := range f.Spans {
		fd := f.Spans[i].Field
		if !x.d.fromPeers(f, fd) {
			continue
		}
		if v := f.Value(i); len(v) >= 4 && !x.anySaid(v) {
			x.fault(Fault{Oracle: Disclosure, Law: f.Type.Name + " " + fd.Name, Conn: k.id,
				Text: fmt.Sprintf("%s, %s: %.60q was never sent", f.Type.Name, fd.Name, v)})
			return
		}
	}
}

// anySaid reports whether a peer has sent these bytes.
func (x *performer) anySaid(v []byte) bool {
	for _, k := range x.conns {
		if bytes.Contains(k.said, v) {
			return true
		}
	}
	return false
}
