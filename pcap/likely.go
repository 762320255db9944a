package pcap

import (
	"slices"

	"jobwire/codec"
	"jobwire/pcap/internal/reassembly"
)

// Limits of the search for likely messages.
const (
	likelyChain = 16        // messages in a row that make message boundaries likely, whatever follows
	likelyEnd   = 4         // messages in a row that make them likely if the sender changes after them, or nothing follows
	maxLikely   = 256 << 10 // bytes in which such a chain must be found
)

// likely finds messages in the bytes of a direction in which no message boundary is proved. They are likely if the
// first of them begins a packet, if they follow one another without a byte between them, and if the last of them ends
// where the other end sends again, or before a gap, or at the end. Four messages suffice. One suffices if the
// protocol is that of the server or of its port, and if the sender has changed before or after it or it is more than a
// line of text in a binary protocol. Without such an end, 16 messages are needed.
type likely struct {
	buf     []byte
	packets []packetMark
	start   bool // the first byte of buf begins a packet or follows a likely message
	conn    Conn // with the protocol that the messages probably have
	session codec.Session

	expected bool // the server is known to have this protocol, or the port is that of the protocol

	need int    // length that an incomplete message must have before it is decoded again
	skip int    // number of bytes to leave out, because they belong to a message of which a part is missing
	rest *large // what follows them in the message, or nil
}

// packetMark is the part of a packet in the bytes.
type packetMark struct {
	off  int
	at   position
	turn bool // the sender changed before this packet, and off is its first byte
}

// scan lists the likely messages in bytes that would be left out, and leaves the others out.
func (c *conn) scan(w *chunk) {
	h, d := w.h, c.d
	if len(w.data) == 0 {
		if w.missing == 0 || !c.scanGap(w) {
			h.endScan()
			c.leaveOut(w)
		}
		return
	}
	if h.likely == nil {
		h.likely = &likely{start: true}
	}
	g := h.likely
	g.packets = append(g.packets, packetMark{len(g.buf), w.at, w.turn != reassembly.NoTurn})
	g.buf = append(g.buf, w.data...)
	d.buffered += len(w.data)
	h.scanMore(false)
	if len(g.buf) > maxLikely || d.buffered > maxBuffered {
		h.leave(len(g.buf))
	}
}

// scanGap reports whether a gap is in a message that follows likely ones, so that its end is likely, too. If so, the
// search continues after this message.
func (c *conn) scanGap(w *chunk) bool {
	g := w.h.likely
	if g == nil {
		return false
	}
	w.h.scanMore(true)
	skip, left := -1, []int(nil)
	switch {
	case g.session == nil:
	case g.rest != nil:
		skip, left = g.rest.after(g.conn.Protocol, g.buf, g.skip, w.missing)
	case g.skip > 0:
		skip = g.skip - w.missing
	case len(g.buf) > 0:
		skip, left = g.conn.after(g.conn.side(w.h.end), g.buf, g.need, w.missing)
	}
	if skip < 0 {
		return false
	}
	w.h.leave(len(g.buf))
	c.leaveOut(w)
	g.skipAfter(skip, left)
	return true
}

// leaveRest leaves out the next bytes of a message of which a part is missing or that is too large. It reports whether
// it could.
func (h *half) leaveRest() bool {
	g := h.likely
	if m := g.rest; m != nil && g.skip == 0 {
		n, skip, need, ok := m.next(g.conn.Protocol, g.buf)
		m.kept, m.shortened = m.kept[:0], m.shortened[:0]
		h.leave(n)
		switch {
		case !ok:
			g.rest, g.session, g.start = nil, nil, false
		case need > 0:
			return false
		case skip == 0:
			g.rest = nil
		}
		g.skip = skip
	}
	n := min(g.skip, len(g.buf))
	h.leave(n)
	g.skip -= n
	return true
}

// leaveLarge leaves out a message that is too large. It reports whether its end is known.
func (h *half) leaveLarge() bool {
	g := h.likely
	skip, left := g.conn.after(g.conn.side(h.end), g.buf, g.need, 0)
	if g.need <= maxLikely || skip < 0 {
		return false
	}
	h.leave(len(g.buf))
	g.skipAfter(skip, left)
	return true
}

// skipAfter begins to leave out the rest of a message: skip bytes and the values after them.
func (l *likely) skipAfter(skip int, left []int) {
	l.skip, l.rest = skip, nil
	if left != nil {
		l.rest = &large{left: left}
	}
}

// endScan ends the search in a direction: the next bytes do not follow, or their messages are proved.
func (h *half) endScan() {
	if g := h.likely; g != nil {
		h.scanMore(true)
		h.leave(len(g.buf))
		h.likely = nil
	}
}

// scanMore lists what can be listed of the bytes so far. last is true if no bytes follow.
func (h *half) scanMore(last bool) {
	g := h.likely
	for len(g.buf) > 0 {
		if g.skip > 0 || g.rest != nil {
			if !h.leaveRest() {
				return
			}
			continue
		}
		if g.session != nil {
			n, ok := g.next(h.c.d, g.conn.side(h.end), g.buf)
			switch {
			case ok && n > 0:
				h.listLikely(n)
				continue
			case ok && g.need <= maxLikely:
				return
			case ok && h.leaveLarge():
				continue
			}
			g.session, g.start = nil, false
		}
		h.leave(h.findChain(last))
		if g.session == nil {
			return
		}
	}
}

// next decodes the first message of b. It returns its length, or 0 if more bytes are needed: need in total.
func (l *likely) next(d *Decoder, from codec.Side, b []byte) (n int, ok bool) {
	p := l.conn.Protocol
	l.need = 0
	switch p.Begins(from, b, l.conn.first, !p.AnyMagic || l.conn.first != nil) {
	case codec.NoMatch:
		return 0, false
	case codec.MayMatch:
		return 0, true
	}
	n, err := l.session.Decode(from, b, &d.frame)
	if err == codec.ErrShort {
		l.need = n
		return 0, true
	}
	e, bad := err.(*codec.Error)
	unpaired := bad && (l.conn.isPairing(e) || from == codec.Server && slices.Contains(p.Dependent, e.Rule))
	switch {
	case isAnyLine(d.frame.Type) && hasLists(p), bad && (e.Fatal || !unpaired):
		return 0, false
	case n > len(b):
		l.need = n
		return 0, true
	}
	d.frame.Raw = b[:n]
	return n, true
}

// findChain searches for the first packet that begins a chain of messages. It returns the number of bytes before
// it, and sets session unless more bytes must complete the chain.
func (h *half) findChain(last bool) (at int) {
	g, wait := h.likely, false
	for i := range g.packets {
		at = g.packets[i].off
		if at == 0 && !g.start {
			continue
		}
		for _, conn := range h.c.candidates() {
			if v := conn.Protocol.Framing.Values; v != nil && v.Kinds[g.buf[at]].Bulk && !g.packets[i].turn {
				continue // an array that began earlier may have this element
			}
			g.conn, g.expected = conn, h.c.expects(&conn)
			switch g.chain(h.c.d, conn.side(h.end), i, last) {
			case codec.Matches:
				p := conn.Protocol
				g.session = p.NewSession(codec.Options{MaxData: dataLimit(p), Waive: p.Unpaired})
				g.start = true
				return at
			case codec.MayMatch:
				wait = true
			}
		}
		if wait {
			return at
		}
	}
	return len(g.buf)
}

// chain reports whether messages that follow one another begin with a packet. MayMatch means that more bytes are
// needed, which is never so if no bytes follow (last).
func (l *likely) chain(d *Decoder, from codec.Side, first int, last bool) codec.Match {
	p := l.conn.Protocol
	l.session = p.NewSession(codec.Options{MaxData: dataLimit(p), Waive: p.Unpaired})
	defer func() { l.session = nil }()
	at, k, turn := l.packets[first].off, first, l.packets[first].turn
	framed := 0 // number of messages that are not lines of a protocol with binary messages
	for n := 0; n < likelyChain; n++ {
		if at == len(l.buf) && !last {
			return codec.MayMatch
		}
		turns := n > 0 && l.turnAt(&k, at)
		ends := n > 0 && at == len(l.buf) || turns
		if ends && (n >= likelyEnd || l.expected && (turn || framed > 0 || turns)) {
			return codec.Matches
		}
		if at == len(l.buf) {
			return codec.NoMatch
		}
		size, ok := l.next(d, from, l.buf[at:])
		switch {
		case !ok:
			return codec.NoMatch
		case size == 0 && l.need <= maxLikely && !last:
			return codec.MayMatch
		case size == 0 && (n > likelyEnd || n > 0 && turn && l.expected):
			return codec.Matches
		case size == 0:
			return codec.NoMatch
		}
		if t := d.frame.Type; t != nil && (t.End == "" || p.Framing.Header == nil) {
			framed++
		}
		at += size
	}
	return codec.Matches
}

// turnAt reports whether the sender changed before the packet that begins at an offset. k is the index of a packet that
// begins no later.
func (l *likely) turnAt(k *int, at int) bool {
	for *k < len(l.packets) && l.packets[*k].off < at {
		*k++
	}
	return *k < len(l.packets) && l.packets[*k].off == at && l.packets[*k].turn
}

// expects reports whether a protocol that a connection may have is that of its server, or that of its port.
func (c *conn) expects(candidate *Conn) bool {
	p := candidate.Protocol
	known, _ := c.knownOf()
	return p == c.Protocol || p == c.d.opts.Protocol || p == known || int(candidate.Server.Port()) == p.DefaultPort
}

// candidates returns the connection with each protocol that it may have.
func (c *conn) candidates() (all []Conn) {
	of := codec.Protocols()
	if p := c.expected(); p != nil {
		of = []*codec.Protocol{p}
	}
	for _, p := range of {
		if p.NewSession == nil {
			continue
		}
		conn := c.Conn
		conn.Protocol, conn.Role = p, codec.Role(1<<len(p.Roles)-1)
		if conn.server == unknown {
			conn.setServer(c.likelyServer(p))
		}
		all = append(all, conn)
	}
	return all
}

// listLikely passes on the first n bytes as a likely message, which is in d.frame.
func (h *half) listLikely(n int) {
	g, d := h.likely, h.c.d
	d.stats.Likely++
	if s := h.c.search; s != nil {
		h.showSkipped(&g.conn, s)
	}
	first, at := g.place(n)
	g.conn.Last, h.c.Last = h.c.Last, at.At
	it := h.item(Likely, at)
	it.Conn, it.From, it.Frame, it.Raw, it.First = &g.conn, d.frame.From, &d.frame, d.frame.Raw, first
	d.handle(it)
	d.cut(g, n)
}

// place returns the number of the first packet with the first n bytes, and the number of the last one and the time of the
// packet with the last byte.
func (l *likely) place(n int) (first int, at position) {
	first = l.packets[0].at.Frame
	for i, m := range l.packets {
		if i == 0 || m.off < n {
			first, at = min(first, m.at.Frame), position{Frame: max(at.Frame, m.at.Frame), At: m.at.At}
		}
	}
	return first, at
}

// leave leaves the first n bytes out.
func (h *half) leave(n int) {
	g := h.likely
	for n > 0 {
		k := n
		if len(g.packets) > 1 {
			k = min(n, g.packets[1].off)
		}
		h.c.leaveOut(&chunk{h: h, data: g.buf[:k], at: g.packets[0].at})
		h.c.d.cut(g, k)
		n -= k
	}
}

// cut removes the first n bytes.
func (d *Decoder) cut(g *likely, n int) {
	d.buffered -= n
	g.buf = g.buf[n:]
	for len(g.packets) > 1 && g.packets[1].off <= n {
		g.packets = g.packets[1:]
	}
	g.start = len(g.packets) > 0 && g.packets[0].off == n || g.session != nil
	for i := range g.packets {
		m := &g.packets[i]
		m.turn = m.turn && m.off >= n
		m.off = max(0, m.off-n)
	}
	if len(g.buf) == 0 {
		g.packets = g.packets[:0]
		g.start = true // the next byte begins a packet
	}
}
