package pcap

import (
	"slices"

	"jobwire/codec"
	"jobwire/judge"
	"jobwire/pcap/internal/reassembly"
)

type position = reassembly.Position

// conn is the state of a connection.
type conn struct {
	Conn // as items show it

	d    *Decoder
	tcp  *reassembly.Conn
	half [2]half
	turn reassembly.Turn // whether the sender has just changed
	tls  *secured        // state of the decryption; nil unless the connection is TLS and there are key logs

	decided bool    // Protocol is final
	early   []chunk // data before the protocol is decided
	shown   bool    // the protocol was reported as unknown, and the bytes are passed on as unread
	search  *search // non-nil while the beginning of the connection is missing and no message boundary is proved
	skips   bool    // bytes of the connection were skipped

	session codec.Session
	blame   codec.Blame
	calm    bool           // when the peer last began to send, both directions were at the end of a message
	audited bool           // the rule checker knows the connection
	monitor *judge.Monitor // of the server, or nil if it was not needed yet
}

// half is one direction of a connection. It is the [reassembly.Stream] of the direction.
type half struct {
	c     *conn
	end   int8 // index of the sender in the ends of the connection
	ended bool // no data follows

	buf   []byte // the beginning of an incomplete message
	marks []mark // the offsets in buf at which packets begin
	need  int    // length that buf must have before it is decoded again
	skip  int    // number of bytes to skip, because they belong to a message that cannot be decoded
	large *large // the message to which these bytes belong, if it is passed on later
	lost  bool   // the position at which the next message begins is unknown
	start bool   // the next byte may begin a message
	guess bool   // message boundaries are not proved

	likely *likely // bytes in which messages are only likely, or nil

	resumed bool // a message boundary was proved, and no message was decoded since
}

// mark records that the bytes of a packet begin at an offset of a buffer.
type mark struct{ off, frame int }

// chunk is a part of a stream that is kept until it can be decoded: data, a gap, or the end of the stream.
type chunk struct {
	h       *half
	data    []byte
	missing int  // number of bytes of a gap
	fin     bool // the direction ends
	at      position
	turn    reassembly.Turn // value of conn.turn for the chunk
}

// cost returns the approximate memory that a chunk takes, in bytes.
func (c *chunk) cost() int { return len(c.data) + 128 }

// accept is called for each new connection. server is the end that the handshake shows to be the server, or -1.
func (d *Decoder) accept(tcp *reassembly.Conn, server int) {
	c := &conn{d: d, tcp: tcp}
	c.server, c.state = unknown, c
	for end := range c.half {
		h := &c.half[end]
		h.c, h.end = c, int8(end)
		tcp.Streams[end] = h
	}
	tcp.Close = c.close
	if server >= 0 {
		c.settle(int8(server))
	} else if len(d.opts.Ports) > 0 {
		c.settleLikely(nil)
	}
}

// settle records which end is the server.
func (c *conn) settle(server int8) {
	c.monitor = nil
	c.setServer(server)
}

func (h *half) other() *half     { return &h.c.half[1-h.end] }
func (h *half) side() codec.Side { return h.c.side(h.end) }

// item returns an item of the direction, in the packet at a position.
func (h *half) item(kind ItemKind, at position) *Item {
	it := &h.c.d.item
	*it = Item{Kind: kind, Conn: &h.c.Conn, From: h.side(), First: at.Frame, Last: at.Frame, At: at.At}
	return it
}

// reset starts a new decoder session after a loss, because it is unknown which requests wait for a reply.
func (c *conn) reset() {
	c.Uncertain, c.calm = true, false
	if c.Protocol != nil && c.Protocol.NewSession != nil {
		c.session = c.Protocol.NewSession(codec.Options{MaxData: dataLimit(c.Protocol), Waive: c.Protocol.Unpaired})
	}
}

// Data processes the next bytes of a stream, which may be encrypted.
func (h *half) Data(b []byte, turn reassembly.Turn, at position) {
	c, st := h.c, &h.c.d.stats
	c.turn = turn
	st.StreamBytes += int64(len(b))
	if c.ID == 0 {
		st.Connections++
		c.ID = c.tcp.ID
		h.beginsSecure(b)
	}
	if c.tls.active() {
		c.secured(&chunk{h: h, data: b, at: at})
		return
	}
	h.flow(b, at)
}

// Conflict passes on data that was sent again with other bytes.
func (h *half) Conflict(earlier, later []byte, offset uint32, at position) {
	d := h.c.d
	d.stats.Conflicts++
	if h.c.ID > 0 && h.c.server != unknown {
		it := h.item(Conflicts, at)
		it.Raw, it.Conflict = later, &Conflict{earlier, offset}
		d.handle(it)
	}
}

// End processes the end of a direction that its sender has closed.
func (h *half) End(at position) {
	h.ended = true
	if h.c.search != nil {
		h.c.seek(&chunk{h: h, fin: true, at: at})
	} else {
		h.finish(true, at)
		h.closing(Ends, at)
	}
	if h.other().ended {
		h.c.conclude()
	}
}

// Reset passes on that the sender has reset the connection.
func (h *half) Reset(at position) { h.closing(Breaks, at) }

// closing passes on the end of a direction or of the connection.
func (h *half) closing(kind ItemKind, at position) {
	if h.c.ID > 0 && h.c.Protocol != nil {
		h.c.d.handle(h.item(kind, at))
	}
}

// close passes on the remaining data of a connection.
func (c *conn) close(at position) {
	c.conclude()
	c.half[0].finish(false, at)
	c.half[1].finish(false, at)
}

// flow processes the next bytes of a stream after decryption.
func (h *half) flow(b []byte, at position) {
	c := h.c
	if c.search != nil {
		c.seek(&chunk{h: h, data: b, at: at, turn: c.turn})
		return
	}
	if !c.decided {
		h.decide(b, at)
		return
	}
	h.read(b, at)
}

// read processes the next bytes of a stream whose protocol is decided.
func (h *half) read(b []byte, at position) {
	c, d := h.c, h.c.d
	if c.turn == reassembly.SureTurn && h.side() == codec.Peer {
		c.calm = c.agrees()
	}
	if c.turn == reassembly.SureTurn && c.agrees() {
		c.half[0].guess, c.half[1].guess = false, false
	}
	if c.session == nil {
		if c.secure() {
			c.secured(&chunk{h: h, data: b, at: at})
			return
		}
		h.unread(b, at.Frame, at)
		return
	}
	if len(h.buf) == 0 {
		n := h.messages(b, at)
		if n < len(b) {
			h.buffer(b[n:], mark{0, at.Frame})
		}
		return
	}
	h.buffer(b, mark{len(h.buf), at.Frame})
	if len(h.buf) < h.need && len(h.buf) <= maxMessage && d.buffered <= maxBuffered {
		return
	}
	n := h.messages(h.buf, at)
	h.consume(n)
	if len(h.buf) > maxMessage+maxLine || d.buffered > maxBuffered {
		d.stats.GivenUp++
		skip := h.need - len(h.buf)
		h.cutOff(at)
		h.skip, h.lost = max(skip, 0), true
		c.reset()
	}
}

// agrees reports whether both directions are at the end of a message.
func (c *conn) agrees() bool { return c.half[0].atEnd() && c.half[1].atEnd() }

// atEnd reports whether a direction is at the end of a message.
func (h *half) atEnd() bool { return !h.lost && h.skip == 0 && len(h.buf) == 0 && h.large == nil }

// buffer keeps bytes until the rest of their message arrives.
func (h *half) buffer(b []byte, m mark) {
	d := h.c.d
	d.buffered += len(b)
	if n := len(d.spare); h.buf == nil && n > 0 {
		h.buf, d.spare = d.spare[n-1], d.spare[:n-1]
	}
	h.buf = append(h.buf, b...)
	h.marks = append(h.marks, m)
}

// consume removes the first n bytes of the buffer after they were decoded.
func (h *half) consume(n int) {
	d := h.c.d
	d.buffered -= n
	if n == len(h.buf) {
		if cap(h.buf) <= keptBuffer && len(d.spare) < maxSpare {
			d.spare = append(d.spare, h.buf[:0])
		}
		h.buf, h.marks = nil, h.marks[:0]
		if cap(h.marks) > maxSpare {
			h.marks = nil
		}
		return
	}
	if n == 0 {
		return
	}
	h.buf = h.buf[:copy(h.buf, h.buf[n:])]
	kept := h.marks[:0]
	for i, m := range h.marks {
		if i+1 < len(h.marks) && h.marks[i+1].off <= n {
			continue
		}
		kept = append(kept, mark{max(0, m.off-n), m.frame})
	}
	h.marks = kept
}

// first returns the number of the packet that contains the byte at offset off of the buffer, or that at a position if
// the buffer is empty.
func (h *half) first(off int, at position) int {
	for i := len(h.marks) - 1; i >= 0; i-- {
		if h.marks[i].off <= off {
			return h.marks[i].frame
		}
	}
	return at.Frame
}

// frames returns the lowest and the highest number of the packets that contain the bytes from offset off of the
// buffer on. The packets may be out of order.
func (h *half) frames(off, frame int) (first, last int) {
	first, last = frame, frame
	for _, m := range slices.Backward(h.marks) {
		first, last = min(first, m.frame), max(last, m.frame)
		if m.off <= off {
			break
		}
	}
	return first, last
}

// messages decodes the complete messages in b and returns their length in bytes. The last byte of b is in the packet at a
// position.
func (h *half) messages(b []byte, at position) (n int) {
	h.need = 0
	for more := true; more && n < len(b); {
		k := 0
		k, more = h.next(b, n, at)
		n += k
	}
	return n
}

// next processes the bytes from offset off of b on: a message, a part of one, or bytes before a message boundary. It
// returns their number, and false if more bytes are needed to continue after them.
func (h *half) next(b []byte, off int, at position) (n int, more bool) {
	switch {
	case h.skip > 0:
		return h.skipRest(b[off:], h.first(off, at), at), true
	case h.lost && h.c.d.opts.guesses():
		return h.resume(b, off, at)
	case h.lost:
		h.searchAfter()
		w := &chunk{h: h, data: b[off:], at: at}
		if off == 0 && len(h.buf) == 0 {
			w.turn = h.c.turn
		}
		h.c.skip(w)
		return len(w.data), true
	case h.large != nil:
		return h.continueLarge(b[off:], h.first(off, at), at)
	}
	return h.message(b, off, at)
}

// message decodes the message at offset off of b. It returns the number of bytes that it has processed, and false if
// more bytes are needed.
func (h *half) message(b []byte, off int, at position) (n int, ok bool) {
	c, d := h.c, h.c.d
	n, err := c.session.Decode(h.side(), b[off:], &d.frame)
	if err == codec.ErrShort {
		if n > maxMessage && len(b)-off >= largeHead && h.shortens(b[off:], n) {
			h.large.first = h.first(off, at)
			return h.large.size - h.skip, true
		}
		if h.need = n; n > maxMessage && len(b)-off < largeHead {
			h.need = largeHead
		}
		return 0, false
	}
	it := h.item(Message, at)
	it.Frame, it.Raw = &d.frame, d.frame.Raw
	if len(h.marks) > 0 {
		it.First, it.Last = h.frames(off, at.Frame)
	}
	switch {
	case err != nil:
		return h.illegal(b, off, n, err.(*codec.Error), it)
	case c.Uncertain && !c.calm && it.From == codec.Server && isAnyLine(d.frame.Type) && c.mayBeList():
		h.notMessage(it)
		c.reset()
	default:
		c.blame.Proved(c.Protocol, &d.frame, nil)
		h.pass(it)
	}
	return n, true
}

// illegal processes the message of n bytes at offset off of b, which violates a rule. It returns the number of bytes that
// it has processed, and false if more bytes are needed.
func (h *half) illegal(b []byte, off, n int, e *codec.Error, it *Item) (processed int, ok bool) {
	c, d := h.c, h.c.d
	b = b[off:]
	if v := c.Protocol.Framing.Values; v != nil && e.Rule == v.Cap && e.Field == "Size" && h.shortens(b, n) {
		h.large.first = it.First
		return 0, true
	}
	if k, skips := h.skipsLarge(b, e, n); skips && k == 0 {
		h.need += off
		return 0, false
	} else if skips {
		h.large.first = it.First
		return k, true
	}
	pairing := c.isPairing(e)
	if e.Fatal && pairing { // there are too many requests without replies, because only one direction was captured
		c.reset()
		return 0, true
	}
	if e.Fatal {
		n, h.lost = min(len(b), e.Offset+1), true
	}
	if pairing && len(h.other().buf) > 0 { // the reply belongs to a request that is not complete yet, for example one that is too large
		c.Uncertain = true
	}
	guess := c.Uncertain && (pairing || it.From == codec.Server && slices.Contains(c.Protocol.Dependent, e.Rule))
	if guess && n > len(b) && n <= maxMessage {
		h.need = n
		return 0, false
	}
	have := max(1, min(n, len(b)))
	it.Raw = b[:have]
	h.skip = max(0, n-have)
	checks := d.opts.Audit || d.opts.Check // a listing shows what each message violates by itself
	h.showIllegal(it, e, guess, guess || !checks || c.blame.Proved(c.Protocol, &d.frame, e))
	return have, true
}

// showIllegal passes on a message that violates a rule. guess is set if it may be valid, because its request is missing.
// proved is not set if it may be wrong only because an earlier message is.
func (h *half) showIllegal(it *Item, e *codec.Error, guess, proved bool) {
	c, typ := h.c, it.Frame.Type
	switch {
	case !proved && (e.Fatal || typ == nil):
		h.notMessage(it)
	case guess && typ == nil && c.mayBeList():
		h.notMessage(it)
		c.reset()
	case guess, !proved:
		it.Unpaired = true
		it.Frame.Raw = it.Raw
		h.pass(it)
	case h.guess: // do not report a violation, because the bytes may be part of a payload
		h.notMessage(it)
		h.lost, h.skip = true, 0
	default:
		it.Kind, it.Err = Violates, e
		c.violation(it)
	}
}

// notMessage passes on the bytes of an item as unread.
func (h *half) notMessage(it *Item) {
	h.unread(it.Raw, it.First, position{Frame: it.Last, At: it.At})
}

// pass passes on a message. It may be the first one after a gap.
func (h *half) pass(it *Item) {
	it.Resumed, h.resumed = h.resumed, false
	h.c.message(it)
}

// mayBeList reports whether a line of a server may belong to a list whose beginning is unknown.
func (c *conn) mayBeList() bool { return hasLists(c.Protocol) && !c.d.opts.guesses() }

// skipRest skips bytes of a message that is not decoded, and returns their number.
func (h *half) skipRest(b []byte, first int, at position) int {
	n := min(h.skip, len(b))
	if h.large == nil || h.large.broken {
		h.unread(b[:n], first, at)
	}
	h.skip -= n
	h.start = true
	if h.large != nil && h.skip == 0 && !h.large.more() {
		h.finishLarge(at, false)
	}
	return n
}

// violation passes on a message that violates a rule, and counts the violation.
func (c *conn) violation(it *Item) {
	c.d.stats.Violations++
	c.d.rules[it.Err.Rule]++
	c.message(it)
}

// message passes on a message, valid or not.
func (c *conn) message(it *Item) {
	if c.first == nil {
		c.first = append([]byte{}, it.Raw[:min(len(it.Raw), maxMagic)]...)
	}
	if t := it.Frame.Type; t != nil {
		if role := t.Roles(it.From) & c.Role; role != 0 {
			c.Role = role
		}
	}
	c.d.stats.Messages++
	c.d.handle(it)
	c.Last = it.At
}

// unread passes on bytes that are not a message, in the packets from first to that at a position.
func (h *half) unread(b []byte, first int, at position) { h.unreadPart(b, first, at, false) }

// unreadPart is unread for bytes that may be a message whose end was not captured: cut is set.
func (h *half) unreadPart(b []byte, first int, at position, cut bool) {
	if len(b) == 0 {
		return
	}
	s := h.c.search
	it := h.item(Unread, at)
	it.Raw, it.Cut, it.Unproved = b, cut, s != nil && s.lossy && !s.whole[h.end]
	it.First, it.Last = min(first, at.Frame), max(first, at.Frame) // the order in the stream may differ
	h.c.d.handle(it)
}

// finish passes on the remaining bytes of a direction that ends. closed is true if the sender closed the
// direction, and false if the capture ended or the connection was reset.
func (h *half) finish(closed bool, at position) {
	c, d := h.c, h.c.d
	h.finishSecured()
	if !c.decided {
		c.giveUpDeciding()
	}
	whole := closed && !h.guess && !h.lost && !h.other().ended
	if h.large != nil {
		h.breakOff(at, whole)
	}
	if len(h.buf) > 0 && whole {
		d.frame = codec.Frame{From: h.side(), Raw: h.buf}
		it := h.item(Violates, at)
		it.Frame, it.Raw, it.Err = &d.frame, h.buf, c.Protocol.CutShort(len(h.buf), h.need, 0)
		it.First, it.Last = h.frames(0, at.Frame)
		d.stats.Truncated++
		c.violation(it)
		h.consume(len(h.buf))
	}
	h.cutOff(at)
	h.buf, h.marks = nil, nil
}

// cutOff passes on the beginning of an incomplete message, if there is one: the rest of it will not be decoded.
func (h *half) cutOff(at position) {
	if h.large != nil {
		h.breakOff(at, false)
	}
	if len(h.buf) > 0 {
		h.c.d.stats.Truncated++
		h.unreadPart(h.buf, h.marks[0].frame, at, true)
		h.consume(len(h.buf))
	}
}
