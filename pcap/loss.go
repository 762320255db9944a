package pcap

import (
	"slices"

	"jobwire/codec"
)

// gap records that n bytes of a stream are missing: they were lost or, if snapped is set, the packet was cut
// short.
func (d *Decoder) gap(c *Conn, end, n, frame int, at int64, snapped bool) {
	if snapped {
		d.stats.CutPackets++
	} else {
		d.stats.Gaps++
	}
	d.stats.Missing += int64(n)
	if c.lastSender = unknown; c.missed == int8(1-end) {
		c.missed = bothEnds // it is unknown which end sent first
	} else if c.missed == unknown {
		c.missed = int8(end)
	}
	if c.tls.active() {
		d.secured(c, &chunk{end: end, missing: n, frame: frame, at: at})
		return
	}
	d.interrupt(c, end, n, frame, at)
}

// interrupt processes a gap of n bytes in a stream.
func (d *Decoder) interrupt(c *Conn, end, n, frame int, at int64) {
	if s := c.search; s != nil {
		d.restart(c)
		if !s.whole[end] {
			d.skip(c, &chunk{end: end, missing: n, frame: frame, at: at})
			d.reset(c)
			return
		}
	}
	if !c.decided {
		c.Uncertain = true
		c.early = append(c.early, chunk{end: end, missing: n, frame: frame, at: at})
		c.half[end].lost = true
		return
	}
	d.lose(c, end, n, frame, at)
}

// lose ends the current message of a stream at a gap of n bytes, and continues after the gap.
func (d *Decoder) lose(c *Conn, end, n, frame int, at int64) {
	h := &c.half[end]
	inside, left := -1, []int(nil)
	switch {
	case h.lost:
	case h.large != nil && h.large.more():
		inside, left = h.large.after(c.Protocol, h.buf, h.skip, n)
	case h.skip > 0:
		inside = h.skip - n
	case len(h.buf) > 0 && d.opts.guesses():
		inside = h.need - len(h.buf) - n
	case len(h.buf) > 0:
		inside, left = c.after(c.side(end), h.buf, h.need, n)
	}
	d.endScan(c, end)
	d.cutOff(c, end, frame, at)
	d.missing(c, end, n, frame, frame, at)
	h.skip = max(0, inside)
	if inside >= 0 && left != nil && !d.opts.guesses() {
		h.large = &large{left: left, broken: true}
	}
	if inside < 0 || d.opts.guesses() {
		h.lost, h.start, h.guess = true, true, true
	}
	d.reset(c)
	if h.lost && c.session != nil && !d.opts.guesses() {
		d.searchAfter(c, end)
	}
}

// missing passes on a gap of n bytes.
func (d *Decoder) missing(c *Conn, end, n, first, last int, at int64) {
	if n > 0 {
		d.item = Item{Kind: Gap, Conn: c, From: c.side(end), Missing: n, First: first, Last: last, At: at}
		d.handle(&d.item)
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
