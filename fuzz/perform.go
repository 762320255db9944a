package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	exact  bool   // every connection proves for every step that all has come
	saying bool   // a sentinel is being sent
	lost   bool   // a connection ended or could not be made: is the server still there?

	bystander *conn
	frame     codec.Frame
	msg       codec.Message
	out       []byte
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
	in       []byte        // what came, unread
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

const maxIn = 64 << 20

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
	x.step, x.stepID, x.last, x.lost, x.common = -1, 0, 0, false, false
	x.loose = x.p.NewSession(codec.Options{WaiveAll: true})
	x.exact = x.thorough || x.nonce%4 == 0
	x.model = nil
	if !c.Burst {
		x.model = x.newModel()
	}
	for _, k := range x.conns {
		k.said = k.said[:0]
	}
	for len(x.conns) < c.conns() {
		x.conns = append(x.conns, &conn{})
	}
	start := time.Now()
	var told time.Duration
	for i := range c.Steps {
		x.step, x.stepID = i, c.Steps[i].ID
		if x.model != nil {
			now := time.Since(start)
			x.model.Elapsed(now - told)
			told = now
		}
		x.do(c, &c.Steps[i])
		if x.record.Fault != nil {
			break
		}
	}
	switch {
	case x.record.Fault != nil:
	case c.Burst:
		x.finishBurst()
	case !x.exact && !x.thorough:
		x.exact = true
		x.settle(nil)
	}
	x.leave()
	return &x.record
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
		x.record.add(Event{Conn: s.Conn, Verb: transcript.Nothing, Step: x.step})
		if !c.Burst {
			x.settle(nil)
		}
		return
	}
	if !k.open {
		if s.Verb == transcript.Closes || s.Verb == transcript.HalfCloses || s.Verb == transcript.Resets {
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
		k.s.halfClose()
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		x.ours(k)
		if !c.Burst {
			x.settle(nil)
		}
	default:
		if x.flush(k); !k.open {
			return
		}
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		k.s.close(s.Verb == transcript.Resets)
		k.open = false
		x.ours(k)
		if !c.Burst {
			x.settle(nil)
		}
	}
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
	s, err := dial(x.to, x.patience)
	if err != nil {
		x.lost = true
		x.fault(Fault{Oracle: HangAll, Law: "no connection", Text: fmt.Sprintf("a connection could not be made: %v", err), Conn: id})
		return false
	}
	*k = conn{id: id, s: s, open: true, in: k.in[:0], out: k.out[:0], ours: k.ours[:0], nonces: k.nonces[:0], said: append(k.said, 0xff), queue: k.queue[:0]}
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
		x.settleOne(k)
	}
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
		n := x.first(k, b)
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
	if k.lostUs {
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
	if len(k.out) == 0 || !k.open {
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
		k.tainted = true
		if x.model != nil {
			x.model.Garbled(k.id)
		}
		var e *codec.Error
		errors.As(err, &e)
		if k.lostUs = n <= 0 || e == nil || e.Fatal; k.lostUs {
			n = len(rest)
		}
		k.skip = max(0, n-len(rest))
		n = min(n, len(rest))
		x.said(k, rest[:n], nil, e)
		if !x.d.binary(rest) {
			k.expect(x.d.inOrder, true)
			k.soft = true
			k.s.patience(min(x.patience, 50*time.Millisecond))
		}
		at += n
	}
	k.ours = k.ours[:copy(k.ours, k.ours[at:])]
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

// ready reports whether the connection must answer a sentinel.
func (x *performer) ready(k *conn) bool {
	return k.open && !k.ended && !k.deaf && !k.lostUs && k.skip == 0 && len(k.ours) == 0 && k.busy == 0 &&
		!(x.model != nil && x.model.Blocked(k.id))
}

// sentinel sends the request that proves that those before it were handled.
func (x *performer) sentinel(k *conn) {
	t := x.p.TypeNamed(x.d.sentinel)
	x.nonce++
	nonce := strconv.AppendUint([]byte("nonce"), x.nonce, 36)
	m := codec.Message{Type: t, Args: x.d.sentinelArgs(nonce)}
	b, err := x.loose.Append(nil, codec.Peer, &m)
	if err != nil {
		panic(err) // a row of ours
	}
	k.waiting++
	k.nonces = append(k.nonces, nonce)
	n := len(x.record.Events)
	x.saying = true
	x.put(k, b)
	x.saying = false
	for i := n; i < len(x.record.Events); i++ {
		x.record.Events[i].Sentinel = true
	}
}

// settle waits until everything has come that the step under way, taken on connection k if
// that is not nil, leads to.
func (x *performer) settle(k *conn) {
	if k != nil && k.open {
		x.settleOne(k)
	}
	if x.record.Fault != nil {
		return
	}
	if !x.exact && x.model != nil && !x.thorough {
		// A message on one connection is mostly seen on the others when its sender has its
		// sentinel back. Where something is missing, or at the end, they are asked too.
		quiet := true
		for _, o := range x.conns {
			if o != k && o.open {
				x.drain(o)
				quiet = quiet && x.ready(o)
			}
		}
		if quiet && k != nil && (!k.open || x.ready(k)) && x.record.Fault == nil && x.model.Settled() == nil {
			x.edge(3, x.model.State(), 0)
			return
		}
	}
	unproved := false
	for _, o := range x.conns {
		if o != k && x.ready(o) {
			x.sentinel(o)
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
	if k == nil || !k.open || !x.ready(k) {
		unproved = true
	}
	if unproved && (x.thorough || x.model == nil || !x.model.Tainted()) {
		x.handshake()
		for _, o := range x.conns {
			if o.open && !x.ready(o) {
				x.drain(o)
			}
		}
	}
	x.judge(unproved)
}

// judge asks the model whether something is due. Where nobody has proved that all has come,
// it is given time.
func (x *performer) judge(unproved bool) {
	if x.model == nil || x.record.Fault != nil {
		return
	}
	if x.model.Tainted() || x.common {
		return // it cannot tell what is due
	}
	err := x.model.Settled()
	for end := time.Now().Add(x.patience); err != nil && unproved && time.Now().Before(end) && x.record.Fault == nil; err = x.model.Settled() {
		time.Sleep(200 * time.Microsecond)
		for _, o := range x.conns {
			if o.open {
				x.drain(o)
			}
		}
	}
	x.complain(err)
	x.edge(3, x.model.State(), 0)
}

// settleOne waits for a sentinel on one connection, if it can answer one.
func (x *performer) settleOne(k *conn) {
	if !k.open {
		return
	}
	if x.ready(k) {
		x.sentinel(k)
		x.await(k)
		return
	}
	x.drain(k)
}

// finishBurst proves that all was handled.
func (x *performer) finishBurst() {
	for _, k := range x.conns {
		if x.ready(k) {
			x.sentinel(k)
		}
		x.flush(k)
	}
	for _, k := range x.conns {
		if k.open && k.waiting > 0 && x.record.Fault == nil {
			x.await(k)
		}
	}
}

// await reads until the connection's sentinels are answered.
func (x *performer) await(k *conn) {
	for x.flush(k); k.open && k.waiting > 0 && !k.deaf && x.record.Fault == nil; {
		if !x.receive(k, true) {
			return
		}
	}
}

// drain reads what has come already.
func (x *performer) drain(k *conn) {
	for x.flush(k); k.open && x.record.Fault == nil && x.receive(k, false); {
	}
}

// receive reads once. It reports whether anything came.
func (x *performer) receive(k *conn, wait bool) bool {
	if cap(k.in)-len(k.in) < 4<<10 {
		in := make([]byte, len(k.in), 2*cap(k.in)+(16<<10))
		copy(in, k.in)
		k.in = in
	}
	n, err := k.s.read(k.in[len(k.in):cap(k.in)], wait)
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

func (x *performer) complain(err error) {
	if err == nil || x.common {
		return
	}
	var c *model.Complaint
	if !errors.As(err, &c) || x.prefix != "" && x.d.ofAll != "" && strings.HasPrefix(string(c.Rule), x.d.ofAll) {
		return
	}
	x.fault(Fault{Oracle: Law, Rule: c.Rule, Law: c.Law, Text: c.Text, Conn: c.Conn})
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
		n, err := k.sess.Decode(codec.Server, rest, &x.frame)
		if err == codec.ErrShort {
			break
		}
		if err == nil {
			at += n
			x.heard(k)
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
	if x.model != nil {
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

// leave ends all connections, and judges whether the server is still there.
func (x *performer) leave() {
	for _, k := range x.conns {
		if x.flush(k); k.open {
			k.s.close(x.nonce%16 != 0)
			k.open = false
			if x.model != nil {
				x.model.Closed(k.id)
			}
		}
	}
	if x.model != nil && !x.model.Tainted() && !x.common {
		fresh := x.newModel()
		x.record.Clean = fresh != nil && fresh.State() == x.model.State()
	}
	if f := x.record.Fault; f != nil && f.Oracle != HangConn && f.Oracle != HangAll && !x.lost && !x.thorough {
		return
	}
	if x.lost || x.thorough || x.record.Fault != nil || x.nonce%8 == 0 {
		x.visit()
	}
}

// edge notes what happened, for feedback: what follows what.
func (x *performer) edge(kind, a, b uint64) {
	h := mix(mix(kind, a), b)
	x.record.edges = append(x.record.edges, mix(x.last, h))
	x.last = h
}

func mix(h, v uint64) uint64 {
	h ^= v + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func typeHash(t *codec.Type) uint64 {
	if t == nil {
		return 0
	}
	return uint64(t.Index) + 1
}

func errHash(err error) (h uint64) {
	var e *codec.Error
	if !errors.As(err, &e) {
		return 0
	}
	for _, c := range []byte(e.Rule) {
		h = h*31 + uint64(c)
	}
	return h
}

func boolHash(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
