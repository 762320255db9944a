package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/model"
)

// performer holds conversations with one server, one after the other.
type performer struct {
	d        *dialect
	p        *codec.Protocol
	to       endpoint
	known    *Known
	patience time.Duration // for a sentinel
	useModel bool
	thorough bool        // see how others fare behind every conversation
	stop     func() bool // whether a wait is to end early; nil is never

	loose  codec.Session // encodes what we say
	prefix string
	conns  []*conn
	record Record
	model  model.Model
	chosen map[int][]byte // by the ID of a step: what the server chose behind it
	nonce  uint64
	step   int // index of the step under way
	stepID int
	last   uint64 // hash of what happened last, for feedback
	common bool   // others may have to do with what is done here
	proved bool   // all has come that the last step leads to
	quiet  bool   // as far as can be told without asking everybody
	exact  bool   // every connection proves for every step that all has come
	saying bool   // a sentinel is being sent
	quit   bool   // the conversation is not gone on with
	lost   bool   // a connection ended or could not be made: is the server still there?
	told   time.Time

	unnoticed int // connections that the server may keep by rights

	bystander *conn
	frame     codec.Frame
	msg       codec.Message
	out, out2 []byte
}

// conn is one connection of a performance.
type conn struct {
	id       int
	s        socket
	open     bool
	sess     codec.Session // strict, and sees both directions
	ours     []byte        // that are not a whole message yet
	said     []byte        // everything of ours, to find the source of what comes back
	told     int           // of ours, that are in the record
	skip     int           // bytes of a refused message of ours that are still to be sent
	out      []byte        // of ours, not sent yet
	early    []byte        // sent ahead of the steps that they belong to
	in       []byte        // what came, unread
	need     int           // bytes of in that are worth another look
	drop     int           // bytes of a refused message of the server's that are still to come
	waiting  int           // sentinels that are not answered
	nonces   [][]byte
	tainted  bool   // something was sent that is no message
	soft     bool   // and nobody can tell what the server makes of it
	lostUs   bool   // where the next message of ours begins, the server cannot know
	deaf     bool   // nothing that comes is understood any more
	ended    bool   // our direction is closed
	queue    []bool // requests that are not answered, where replies keep their order: whether they may wait
	busy     int    // requests on which the server may keep silent
	earlier  int    // requests before the sentinel whose reply is of its type
	muttered int    // steps since it was lost where messages begin
}

// soon is within what time an answer is expected as long as nobody objects to anything.
const soon = 250 * time.Millisecond

// atFirst is how long an answer may take until others are asked.
func (x *performer) atFirst() time.Duration {
	if x.thorough {
		return x.patience
	}
	return min(x.patience, soon)
}

const (
	maxIn   = 64 << 20 // of one reply
	maxIdle = 1 << 20  // of what is kept for the next conversation
)

func newPerformer(p *codec.Protocol, to endpoint, known *Known, patience time.Duration) *performer {
	x := &performer{d: dialectOf(p), p: p, to: to, known: known, patience: patience, useModel: true}
	x.loose = p.NewSession(codec.Options{WaiveAll: true})
	x.chosen = map[int][]byte{}
	return x
}

// newModel returns the model of a conversation, or nil if the protocol has none.
func (x *performer) newModel() (m model.Model) {
	if !x.useModel {
		return nil
	}
	defer func() {
		if recover() != nil {
			m = nil
		}
	}()
	quirks := append([]model.Quirk(nil), x.known.Quirks...)
	if x.prefix != "" {
		quirks = append(quirks, model.Shared)
	}
	return model.New(x.p, quirks...)
}

// perform holds a conversation. The record is good until the next one. Where others use the
// server, prefix tells ones own names from theirs.
func (x *performer) perform(c *Conv, prefix string) *Record {
	x.prefix = prefix
	x.record.reset()
	clear(x.chosen)
	x.step, x.stepID, x.last, x.lost, x.common, x.quit = -1, 0, 0, false, false, false
	x.loose = x.p.NewSession(codec.Options{WaiveAll: true})
	x.exact = x.thorough || x.nonce%8 == 0
	x.proved, x.quiet = false, false
	x.model = nil
	if !c.Burst {
		x.model = x.newModel()
	}
	for _, k := range x.conns {
		k.ended = false
		if k.said = k.said[:0]; cap(k.said) > maxIdle {
			k.said = nil
		}
	}
	for len(x.conns) < c.conns() {
		x.conns = append(x.conns, &conn{})
	}
	x.told = time.Now()
	for i := range c.Steps {
		x.step, x.stepID, x.proved, x.quiet = i, c.Steps[i].ID, false, false
		x.tick()
		x.do(c, &c.Steps[i])
		if x.record.Fault != nil || x.quit {
			break
		}
	}
	switch {
	case x.record.Fault != nil, x.quit:
	case c.Burst:
		x.finishBurst()
	case !x.exact && !x.proved && (!x.quiet || x.nonce%4 == 1):
		x.exact = true
		x.settleAll(nil, false)
	}
	x.leave()
	return &x.record
}

// tick tells the model how late it is.
func (x *performer) tick() {
	if x.model != nil {
		now := time.Now()
		x.model.Elapsed(now.Sub(x.told))
		x.told = now
	}
}

func (x *performer) fault(f Fault) {
	if x.record.Fault == nil {
		if f.Step == 0 {
			f.Step = x.step
		}
		x.record.Fault = &f
	}
}

// do takes one step.
func (x *performer) do(c *Conv, s *Step) {
	k := x.conns[s.Conn]
	if s.Verb == transcript.Nothing {
		x.sleep(s.For)
		x.tick()
		x.record.add(Event{Conn: s.Conn, Verb: transcript.Nothing, Step: x.step})
		if !c.Burst {
			x.settle(nil)
		}
		return
	}
	if !k.open {
		if k.ended || s.Verb == transcript.Closes || s.Verb == transcript.HalfCloses || s.Verb == transcript.Resets {
			return
		}
		if !x.connect(k, s.Conn) {
			return
		}
	}
	switch s.Verb {
	case transcript.Send, transcript.Raw:
		if k.ended {
			return
		}
		x.ahead(c, k, x.step)
		x.say(c, k, x.encode(s))
	case transcript.Opens:
		if !c.Burst {
			x.settle(k)
		}
	case transcript.HalfCloses:
		if k.ended {
			return
		}
		if x.flush(k); !k.open {
			return
		}
		k.ended = true
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		x.ours(k)
		k.s.halfClose()
		if !c.Burst {
			x.noticed(k)
			x.settle(nil)
		}
	default:
		if x.flush(k); !k.open {
			return
		}
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		x.ours(k)
		if !c.Burst && s.Verb == transcript.Closes {
			// To the server it looks like a half-close, the end of which can be seen.
			k.ended = true
			k.s.halfClose()
			x.noticed(k)
		} else {
			x.common = true // when it is noticed nobody can tell
		}
		if k.open {
			x.end(k, s.Verb == transcript.Resets)
		}
		k.ended = false
		if !c.Burst {
			x.settle(nil)
		}
	}
}

// noticed waits for the server to end a connection whose other direction we have ended, which
// proves that it knows. Some keep it, as a client's who waits for a result: then what others are
// due is not judged any more.
func (x *performer) noticed(k *conn) {
	most := 30 * time.Millisecond
	if x.thorough {
		most = min(x.patience, 300*time.Millisecond)
	}
	k.s.readWithin(most)
	for end := time.Now().Add(most); k.open && x.record.Fault == nil && time.Now().Before(end); {
		n, err := k.s.read(k.room(), true)
		k.in = k.in[:len(k.in)+n]
		switch {
		case n > 0:
			x.digest(k)
		case err != errTimeout:
			x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Closes, Step: x.step})
			k.s.close(true)
			k.open = false
		}
	}
	if k.open {
		x.common = true
		k.s.readWithin(x.atFirst())
	}
}

// end closes a connection of ours. A server that keeps one whose other direction has ended never
// learns of it.
func (x *performer) end(k *conn, reset bool) {
	if k.ended || !reset {
		x.unnoticed++
	}
	k.s.close(reset)
	k.open = false
}

// sleep lets time pass, unless everybody is to stop.
func (x *performer) sleep(d time.Duration) {
	const piece = 20 * time.Millisecond
	for ; d > piece && x.stop != nil; d -= piece {
		if x.stop() {
			return
		}
		time.Sleep(piece)
	}
	time.Sleep(d)
}

// ours tells the model that we have ended a connection, or our direction.
func (x *performer) ours(k *conn) {
	if x.model != nil {
		x.model.Closed(k.id)
	}
	x.edge(1, 0, uint64(k.busy))
}

// connect opens a connection, and says what makes it ones own where others use the server.
func (x *performer) connect(k *conn, id int) bool {
	s, err := dial(x.to, x.patience, x.atFirst())
	if err != nil {
		x.lost = true
		x.fault(Fault{Oracle: HangAll, Law: "no connection", Text: fmt.Sprintf("a connection could not be made: %v", err), Conn: id})
		return false
	}
	if cap(k.in) > maxIdle {
		k.in = nil
	}
	*k = conn{id: id, s: s, open: true, in: k.in[:0], out: k.out[:0], ours: k.ours[:0], nonces: k.nonces[:0], early: k.early[:0], said: append(k.said, 0xff), queue: k.queue[:0]}
	k.sess = x.p.NewSession(codec.Options{Waive: x.known.Waive})
	x.record.add(Event{Conn: id, Verb: transcript.Opens, Step: x.step})
	if x.model != nil {
		x.model.Opened(id)
	}
	if x.prefix == "" {
		return true
	}
	for _, row := range x.d.prelude {
		t := x.p.TypeNamed(row[0])
		m := codec.Message{Type: t}
		for i, a := range row[1:] {
			v := []byte(a)
			if x.d.names[argField(t, i).Name] != nil && !has(x.d.keep, a) {
				v = []byte(x.prefix + a)
			}
			m.Args = append(m.Args, v)
		}
		b, err := x.loose.Append(nil, codec.Peer, &m)
		if err != nil {
			panic(err) // a row of ours
		}
		x.put(k, b)
	}
	x.settleOne(k)
	return k.open
}

// encode returns the bytes of a step.
func (x *performer) encode(s *Step) []byte {
	if s.Verb == transcript.Raw {
		if x.prefix == "" {
			return s.Bytes
		}
		if x.d.shared != nil && x.d.shared.Match(s.Bytes) {
			return nil
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
	if len(b) == 0 || x.d.forbidden(b) {
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
			k.s.readWithin(min(x.patience, 50*time.Millisecond))
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
