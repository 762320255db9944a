package pcap

import (
	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// resume looks for the beginning of a message in a stream that was lost, in b, which
// stands at off in the buffer if that is in use. It returns how many bytes can be passed
// over, and whether a message begins there. start says that b[0] may begin one.
func (d *Decoder) resume(c *Conn, end, off int, b []byte, start bool) (n int, found bool) {
	dl, from, h := dialectOf(c.Protocol), c.side(end), &c.half[end]
	for {
		if start || n > 0 {
			f, side, told := dl.begins(c, b[n:])
			if told && side != from {
				f = no
			}
			if f == no && dl.text != "" && from == codec.Server {
				f = beginsLine(b[n:], c.Protocol, from, dl.text)
			}
			if f == yes && d.firm(c, from, b[n:], n == 0) {
				return n, true
			}
			if f == maybe && len(b)-n < endless {
				return n, false
			}
		}
		k := dl.next(c, from, b[n:])
		if p := h.packet(off+n) - off - n; p > 0 && (p < k || k <= 0) {
			k = p
		}
		if k <= 0 {
			return len(b), false
		}
		n += k
	}
}

// packet returns where the first packet behind the byte at off begins in the buffer, 0
// if there is none. A packet may well begin with a message.
func (h *half) packet(off int) int {
	for _, m := range h.marks {
		if m.off > off {
			return m.off
		}
	}
	return 0
}

// firm reports whether a place at which a message seems to begin can be trusted: it
// can be read, as far as it is there, and it is of a known type if all that can be told
// is its header. In the middle of a packet a Redis reply could be a part of another, or
// of data.
func (d *Decoder) firm(c *Conn, from codec.Side, b []byte, start bool) bool {
	if c.Protocol == gearmonkey.Protocol && from == codec.Server && !start {
		return false
	}
	if dl := dialectOf(c.Protocol); dl.header != nil && !known(c.Protocol, from, b, dl.header) {
		return false
	}
	probe := c.Protocol.NewSession(codec.Options{MaxData: maxMessage, Waive: unpaired[c.Protocol]})
	var f codec.Frame
	_, err := probe.Decode(from, b, &f)
	if e, ok := err.(*codec.Error); ok {
		return pairing[e.Rule] && !e.Fatal
	}
	return true
}

// known reports whether b begins with a message of text, or with one that has a row.
func known(p *codec.Protocol, from codec.Side, b []byte, header func(b []byte) uint32) bool {
	if p == gearman.Protocol && b[0] != 0 {
		return true
	}
	code := header(b)
	for _, t := range p.Types {
		if t.End == "" && uint32(t.Code) == code && t.Sends(from) {
			return true
		}
	}
	return false
}
