package pcap

import (
	"slices"

	"jobwire/codec"
)

// Limits of the search for likely messages.
const (
	likelyChain = 16        // messages in a row that make message boundaries likely, whatever follows
	likelyEnd   = 4         // messages in a row that make them likely if no other bytes follow up to a gap or the end
	maxLikely   = 256 << 10 // bytes in which such a chain must be found
)

// likely finds messages in the bytes of a direction in which no message boundary is proved. Boundaries are likely if
// several messages follow one another without a byte between them, the first of which begins a packet.
type likely struct {
	buf     []byte
	marks   []mark
	times   []int64 // of the packets of marks
	start   bool    // the first byte of buf begins a packet or follows a likely message
	conn    Conn    // with the protocol that the messages probably have
	session codec.Session
}

// scan lists the likely messages in bytes that would be left out, and leaves the others out.
func (d *Decoder) scan(c *Conn, w *chunk) {
	h := &c.half[w.end]
	if len(w.data) == 0 {
		d.endScan(c, w.end)
		d.leaveOut(c, w)
		return
	}
	if h.likely == nil {
		h.likely = &likely{start: true}
	}
	g := h.likely
	g.marks = append(g.marks, mark{len(g.buf), w.frame})
	g.buf, g.times = append(g.buf, w.data...), append(g.times, w.at)
	d.buffered += len(w.data)
	d.scanMore(c, w.end, false)
	if len(g.buf) > maxLikely || d.buffered > maxBuffered {
		d.leave(c, w.end, len(g.buf))
	}
}

// endScan ends the search in a direction: the next bytes do not follow, or their messages are proved.
func (d *Decoder) endScan(c *Conn, end int) {
	if g := c.half[end].likely; g != nil {
		d.scanMore(c, end, true)
		d.leave(c, end, len(g.buf))
		c.half[end].likely = nil
	}
}

// scanMore lists what can be listed of the bytes so far. last is true if no bytes follow.
func (d *Decoder) scanMore(c *Conn, end int, last bool) {
	g := c.half[end].likely
	for len(g.buf) > 0 {
		if g.session != nil {
			n, ok := g.next(d, g.conn.side(end), g.buf)
			if ok && n == 0 {
				return
			}
			if ok {
				d.listLikely(c, end, n)
				continue
			}
			g.session, g.start = nil, false
		}
		d.leave(c, end, d.findChain(c, end, last))
		if g.session == nil {
			return
		}
	}
}

// next decodes the first message of b. It returns its length, or 0 if more bytes are needed.
func (g *likely) next(d *Decoder, from codec.Side, b []byte) (n int, ok bool) {
	p := g.conn.Protocol
	switch p.Begins(from, b, g.conn.first, !p.AnyMagic || g.conn.first != nil) {
	case codec.NoMatch:
		return 0, false
	case codec.MayMatch:
		return 0, true
	}
	n, err := g.session.Decode(from, b, &d.frame)
	if err == codec.ErrShort {
		return 0, n <= maxLikely
	}
	e, bad := err.(*codec.Error)
	unpaired := bad && (g.conn.isPairing(e) || from == codec.Server && slices.Contains(p.Dependent, e.Rule))
	switch {
	case isAnyLine(d.frame.Type), bad && (e.Fatal || !unpaired):
		return 0, false
	case n > len(b):
		return 0, n <= maxLikely
	}
	d.frame.Raw = b[:n]
	return n, true
}

// findChain searches for the first packet that begins a chain of messages. It returns the number of bytes before
// it, and sets session unless more bytes must complete the chain.
func (d *Decoder) findChain(c *Conn, end int, last bool) (at int) {
	g, wait := c.half[end].likely, false
	for i := range g.marks {
		at = g.marks[i].off
		if at == 0 && !g.start {
			continue
		}
		for _, conn := range c.candidates(d, end) {
			if v := conn.Protocol.Framing.Values; v != nil && v.Kinds[g.buf[at]].Bulk {
				continue // an array that began earlier may have this element
			}
			g.conn = conn
			n, whole := g.chain(d, conn.side(end), g.buf[at:])
			if n >= likelyChain || last && whole && n >= likelyEnd || last && n > likelyEnd {
				g.session = conn.Protocol.NewSession(codec.Options{MaxData: maxLikely, Waive: conn.Protocol.Unpaired})
				g.start = true
				return at
			}
			wait = wait || n >= 0 && !last
		}
		if wait {
			return at
		}
	}
	return len(g.buf)
}

// chain returns the number of messages that follow one another from the beginning of b on, and whether they are
// all of b. It is -1 if other bytes follow them.
func (g *likely) chain(d *Decoder, from codec.Side, b []byte) (n int, whole bool) {
	g.session = g.conn.Protocol.NewSession(codec.Options{MaxData: maxLikely, Waive: g.conn.Protocol.Unpaired})
	defer func() { g.session = nil }()
	for len(b) > 0 && n < likelyChain {
		k, ok := g.next(d, from, b)
		switch {
		case !ok:
			return -1, false
		case k == 0:
			return n, false
		}
		b = b[k:]
		n++
	}
	return n, len(b) == 0
}

// candidates returns the connection with each protocol that it may have.
func (c *Conn) candidates(d *Decoder, end int) (all []Conn) {
	p := c.Protocol
	if p == nil {
		if p = d.opts.Protocol; p == nil {
			p, _ = d.knownOf(c)
		}
	}
	of := codec.Protocols()
	if p != nil {
		of = []*codec.Protocol{p}
	}
	for _, p := range of {
		if p.NewSession == nil {
			continue
		}
		conn := *c
		conn.Protocol, conn.Role = p, codec.Role(1<<len(p.Roles)-1)
		if conn.server == unknown {
			conn.settle(d.likelyServer(c, p))
		}
		all = append(all, conn)
	}
	return all
}

// listLikely passes on the first n bytes as a likely message, which is in d.frame.
func (d *Decoder) listLikely(c *Conn, end, n int) {
	g := c.half[end].likely
	d.stats.Likely++
	if s := c.search; s != nil {
		d.showSkippedOf(&g.conn, s, end)
	}
	g.conn.Last = c.Last
	d.item = Item{Kind: Likely, Conn: &g.conn, From: d.frame.From, Frame: &d.frame, Raw: d.frame.Raw}
	d.item.First, d.item.Last, d.item.At = g.packets(n)
	c.Last = d.item.At
	d.handle(&d.item)
	d.cut(g, n)
}

// packets returns the numbers of the packets with the first n bytes, and the time of the last of them.
func (g *likely) packets(n int) (first, last int, at int64) {
	first = g.marks[0].frame
	for i, m := range g.marks {
		if i == 0 || m.off < n {
			first, last, at = min(first, m.frame), max(last, m.frame), g.times[i]
		}
	}
	return first, last, at
}

// leave leaves the first n bytes out.
func (d *Decoder) leave(c *Conn, end, n int) {
	g := c.half[end].likely
	for n > 0 {
		k := n
		if len(g.marks) > 1 {
			k = min(n, g.marks[1].off)
		}
		d.leaveOut(c, &chunk{end: end, data: g.buf[:k], frame: g.marks[0].frame, at: g.times[0]})
		d.cut(g, k)
		n -= k
	}
}

// cut removes the first n bytes.
func (d *Decoder) cut(g *likely, n int) {
	d.buffered -= n
	g.buf = g.buf[n:]
	for len(g.marks) > 1 && g.marks[1].off <= n {
		g.marks, g.times = g.marks[1:], g.times[1:]
	}
	g.start = len(g.marks) > 0 && g.marks[0].off == n || g.session != nil
	for i := range g.marks {
		g.marks[i].off = max(0, g.marks[i].off-n)
	}
	if len(g.buf) == 0 {
		g.marks, g.times = g.marks[:0], g.times[:0]
		g.start = true // the next byte begins a packet
	}
}
