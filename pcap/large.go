package pcap

import (
	"bytes"
	"encoding/binary"

	"jobwire/codec"
)

// Parts of a message of more than maxMessage bytes that are kept.
const (
	largeHead  = 16 << 10 // bytes from which the fields before the payload are decoded
	largeBytes = 4 << 10  // bytes of the payload
)

// large is a message of more than maxMessage bytes whose rest is skipped, because only its length matters.
type large struct {
	frame codec.Frame // the beginning; the last field is cut
	err   *codec.Error
	read  bool // the fields before the payload could be decoded
	size  int
	first int // number of the first packet
}

// skipsLarge reports whether the error e, with the length n of the illegal message in b, is only that the message is
// larger than this decoder reads. It then begins to skip the message, and returns the number of bytes consumed. If
// they are 0, h.need bytes are needed.
func (d *Decoder) skipsLarge(c *Conn, end int, b []byte, e *codec.Error, n int) (consumed int, ok bool) {
	h, f := &c.half[end], &c.Protocol.Framing
	from := c.side(end)
	switch {
	case h.guess || h.lost:
		return 0, false
	case f.Header != nil && e.Rule == f.Header.Size && e.Field == f.Header.Fields[2].Name:
		if len(b) < largeHead {
			h.need = largeHead
			return 0, true
		}
		h.large = d.largePacket(c, from, b[:largeHead])
	case f.Lines != nil && e.Rule == f.Lines.Body[from].Size && !e.Fatal && n > maxMessage:
		line := d.frame.Clone()
		line.Raw = line.Raw[:line.Spans[len(line.Spans)-1].Next]
		h.large = &large{frame: line, read: true, size: n}
	default:
		return 0, false
	}
	consumed = len(h.large.frame.Raw)
	h.skip = h.large.size - consumed
	return consumed, true
}

// largePacket decodes the beginning of a packet as if it were the whole packet.
func (d *Decoder) largePacket(c *Conn, from codec.Side, b []byte) *large {
	length := 0 // position of the length
	fields := c.Protocol.Framing.Header.Fields
	for _, f := range fields[:2] {
		length += f.Width
	}
	header := length + fields[2].Width
	head := bytes.Clone(b)
	m := &large{size: header + int(binary.BigEndian.Uint32(b[length:]))}
	binary.BigEndian.PutUint32(head[length:], uint32(len(b)-header))
	_, err := c.session.Decode(from, head, &m.frame)
	copy(head[length:header], b[length:])
	m.frame.Raw = head
	if e, bad := err.(*codec.Error); bad {
		if t := m.frame.Type; t == nil || t.Form[from] == nil || e.Rule != t.Form[from].Missing {
			m.err = e
		}
		return m
	}
	last := &m.frame.Spans[len(m.frame.Spans)-1]
	if cut := last.Off + largeBytes; cut <= len(head) { // payloads in several messages must be cut after the same byte
		m.read = true
		last.End, last.Next, m.frame.Raw = cut, cut, head[:cut]
	}
	return m
}

// omitted returns the number of bytes of the message that were captured and are not in its frame.
func (h *half) omitted() int { return h.large.size - h.skip - len(h.large.frame.Raw) }

// finishLarge passes on a large message. It is incomplete unless all its bytes have been skipped.
func (d *Decoder) finishLarge(c *Conn, end, frame int, at int64, closed bool) {
	h := &c.half[end]
	m := h.large
	it := &d.item
	*it = Item{Conn: c, From: c.side(end), Frame: &m.frame, Raw: m.frame.Raw, Omitted: h.omitted(), At: at}
	it.First, it.Last = min(m.first, frame), max(m.first, frame)
	d.stats.Omitted += int64(it.Omitted)
	missing := h.skip
	h.large, h.skip = nil, 0
	switch {
	case missing > 0 && closed:
		it.Err = c.Protocol.CutShort(m.size-missing, m.size, 0)
	case missing > 0 || !m.read && m.err == nil:
		it.Kind, it.Frame, it.Cut = Unread, nil, missing > 0
	default:
		it.Err = m.err
	}
	if missing > 0 {
		d.stats.Truncated++
	}
	switch {
	case it.Kind == Unread:
		d.handle(it)
	case it.Err != nil:
		it.Kind = Violates
		d.violation(c, it)
	default:
		it.Resumed, h.resumed = h.resumed, false
		d.message(c, it)
	}
}

// Size returns the length of a message in bytes.
func (it *Item) Size() int { return len(it.Raw) + it.Omitted }
