package pcap

import (
	"slices"

	"jobwire/codec"
)

// maxMagic is the number of bytes of a connection's first message that are kept, to recognize later messages.
const maxMagic = 16

// resume searches b, from offset off on, for the beginning of a message, after message boundaries were lost. It passes
// the bytes before it on as unread, and returns their number, and whether a message begins after them.
func (h *half) resume(b []byte, off int, at position) (n int, found bool) {
	n, found = h.boundary(off, b[off:], off == 0 || h.start)
	h.start, h.lost = false, !found
	h.unread(b[off:off+n], h.first(off, at), at, false)
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
