package pcap

import (
	"slices"

	"jobwire/codec"
)

// LacksStart records that the beginning of a direction was not captured. The messages of the other direction are decoded
// from its first byte if its SYN was captured.
func (h *half) LacksStart() {
	c := h.c
	h.lost, h.start, h.guess, c.Uncertain = true, true, true, true
	if !c.tcp.HasSYN(1-h.end) && c.search == nil && !c.decided && len(c.early) == 0 && !c.d.opts.guesses() {
		c.search = &search{}
	}
}

// HasStart records that the beginning of a direction was captured after all.
func (h *half) HasStart() {
	if h.lost && h.c.search == nil {
		h.beginsMessage()
	}
}

// beginsMessage records that the next byte of a direction certainly begins a message.
func (h *half) beginsMessage() { h.lost, h.start, h.guess = false, false, false }

// beginsAnywhere records that the next byte of a direction is at an unknown position of a message, which may be its
// beginning.
func (h *half) beginsAnywhere() { h.lost, h.start, h.guess = true, true, true }

// Gap records that n bytes of a stream are missing: they were lost or, if cut is set, the packet was cut short.
func (h *half) Gap(n int, cut bool, at position) {
	st := &h.c.d.stats
	if cut {
		st.CutPackets++
	} else {
		st.Gaps++
	}
	st.Missing += int64(n)
	if h.c.tls.active() {
		h.c.secured(&chunk{h: h, missing: n, at: at})
		return
	}
	h.interrupt(n, at)
}

// interrupt processes a gap of n bytes in a stream.
func (h *half) interrupt(n int, at position) {
	c := h.c
	if s := c.search; s != nil {
		c.restart()
		if !s.whole[h.end] {
			c.skip(&chunk{h: h, missing: n, at: at})
			c.reset()
			return
		}
	}
	if !c.decided {
		c.Uncertain = true
		c.early = append(c.early, chunk{h: h, missing: n, at: at})
		h.lost = true
		return
	}
	h.lose(n, at)
}

// lose ends the current message of a stream at a gap of n bytes, and continues after the gap.
func (h *half) lose(n int, at position) {
	c, guesses := h.c, h.c.d.opts.guesses()
	inside, left := -1, []int(nil)
	switch {
	case h.lost:
	case h.large != nil && h.large.more():
		inside, left = h.large.after(c.Protocol, h.buf, h.skip, n)
	case h.skip > 0:
		inside = h.skip - n
	case len(h.buf) > 0 && guesses:
		inside = h.need - len(h.buf) - n
	case len(h.buf) > 0:
		inside, left = c.after(h.side(), h.buf, h.need, n)
	}
	h.endScan()
	h.cutOff(at)
	h.missing(n, at.Frame, at)
	h.skip = max(0, inside)
	if inside >= 0 && left != nil && !guesses {
		h.large = &large{left: left, broken: true}
	}
	if inside < 0 || guesses {
		h.beginsAnywhere()
	}
	c.reset()
	if h.lost && c.session != nil && !guesses {
		h.searchAfter()
	}
}

// missing passes on a gap of n bytes, in the packets from first to that at a position.
func (h *half) missing(n, first int, at position) {
	if n > 0 {
		it := h.item(Gap, at)
		it.Missing, it.First = n, first
		h.c.d.handle(it)
	}
}

// after returns what certainly is still to come of an incomplete message after a gap of n bytes: skip is the number of
// bytes up to the end of the message or of the value with the gap, and left the number of values after it, by depth.
// buf is the beginning of the message, and need the length that it must have before it is decoded again. If the end of
// the message is unknown, skip is negative.
func (c *Conn) after(from codec.Side, buf []byte, need, n int) (skip int, left []int) {
	switch {
	case c.Protocol.Framing.Values == nil && c.endsAt(from, buf, need):
		return need - len(buf) - n, nil
	case c.Protocol.Framing.Values == nil, from == codec.Peer && buf[0] != '*': // a line
		return -1, nil
	}
	m := large{left: []int{1}}
	return m.after(c.Protocol, buf, 0, n)
}

// endsAt reports whether an incomplete message certainly ends after size bytes, whatever the missing bytes are.
// buf is the beginning of the message.
func (c *Conn) endsAt(from codec.Side, buf []byte, size int) bool {
	const end = "\r\n"
	if size > maxMessage || size < len(buf)+len(end) {
		return false
	}
	whole := append(make([]byte, 0, size), buf...)
	var f codec.Frame
	for _, filler := range []byte{0, '1', '\n', 0xff} {
		whole = whole[:size]
		for i := len(buf); i < size-len(end); i++ {
			whole[i] = filler
		}
		copy(whole[size-len(end):], end)
		n, err := c.Protocol.NewSession(codec.Options{MaxData: maxMessage, Waive: c.Protocol.Unpaired}).Decode(from, whole,
			&f)
		if e, bad := err.(*codec.Error); n != size || err != nil && (!bad || e.Fatal) {
			return false
		}
	}
	return true
}

// hasLists reports whether a protocol has replies of several lines whose end depends on the request.
func hasLists(p *codec.Protocol) bool {
	return slices.ContainsFunc(p.Types, func(t *codec.Type) bool { return t.Stop != "" })
}

// isAnyLine reports whether a reply is a line without a word by which it could be recognized.
func isAnyLine(t *codec.Type) bool { return t != nil && t.End != "" && t.Word == "" && t.Stop == "" }

// maxMagic is the number of bytes of a connection's first message that are kept, to recognize later messages.
const maxMagic = 16

// resume searches b, from offset off on, for the beginning of a message, after message boundaries were lost. It passes
// the bytes before it on as unread, and returns their number, and whether a message begins after them.
func (h *half) resume(b []byte, off int, at position) (n int, found bool) {
	n, found = h.boundary(off, b[off:], off == 0 || h.start)
	h.start, h.lost = false, !found
	h.unread(b[off:off+n], h.first(off, at), at)
	return n, found
}

// boundary returns the number of bytes of b that can be skipped, and whether a message begins after them. If the buffer
// is in use, b is at off in it. start reports whether b[0] may begin a message.
func (h *half) boundary(off int, b []byte, start bool) (n int, found bool) {
	c, p, from := h.c, h.c.Protocol, h.side()
	for {
		if start || n > 0 {
			m := p.Begins(from, b[n:], c.first, true)
			if m == codec.Matches && c.reads(from, b[n:]) {
				return n, true
			}
			if m == codec.MayMatch && len(b)-n < maxLine {
				return n, false
			}
		}
		k := p.Next(from, b[n:], c.first)
		if next := h.packet(off+n) - off - n; next > 0 && (next < k || k <= 0) {
			k = next
		}
		if k <= 0 {
			return len(b), false
		}
		n += k
	}
}

// packet returns the offset in the buffer of the first packet that begins after off, or 0. A packet often
// begins with a message.
func (h *half) packet(off int) int {
	for _, m := range h.marks {
		if m.off > off {
			return m.off
		}
	}
	return 0
}

// reads reports whether the bytes can be decoded as a message or as the beginning of one.
func (c *conn) reads(from codec.Side, b []byte) bool {
	probe := c.Protocol.NewSession(codec.Options{MaxData: maxMessage, Waive: c.Protocol.Unpaired})
	var f codec.Frame
	_, err := probe.Decode(from, b, &f)
	e, bad := err.(*codec.Error)
	return !bad || c.isPairing(e) && !e.Fatal
}

// isPairing reports whether the only cause of an error may be that requests or replies are missing in the
// capture.
func (c *Conn) isPairing(e *codec.Error) bool { return slices.Contains(c.Protocol.Pairing, e.Rule) }
