package pcap

import (
	"slices"

	"jobwire/codec"
)

// maxMagic is how much of a connection's first message is kept, to find others.
const maxMagic = 16

// resume looks for the beginning of a message in a stream that was lost, in b, which
// stands at off in the buffer if that is in use. It returns how many bytes can be passed
// over, and whether a message begins there. start says that b[0] may begin one.
func (d *Decoder) resume(c *Conn, end, off int, b []byte, start bool) (n int, found bool) {
	p, from, h := c.Protocol, c.side(end), &c.half[end]
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

// packet returns where the first packet after the byte at off begins in the buffer, 0
// if there is none. A packet may well begin with a message.
func (h *half) packet(off int) int {
	for _, m := range h.marks {
		if m.off > off {
			return m.off
		}
	}
	return 0
}

// reads reports whether what seems to be a message can be read, as far as it is there.
func (c *Conn) reads(from codec.Side, b []byte) bool {
	probe := c.Protocol.NewSession(codec.Options{MaxData: maxMessage, Waive: c.Protocol.Unpaired})
	var f codec.Frame
	_, err := probe.Decode(from, b, &f)
	e, bad := err.(*codec.Error)
	return !bad || c.isPairing(e) && !e.Fatal
}

// isPairing reports whether an error may only mean that requests or replies are missing in the capture.
func (c *Conn) isPairing(e *codec.Error) bool { return slices.Contains(c.Protocol.Pairing, e.Rule) }
