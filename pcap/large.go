package pcap

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"

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

	// Of a message that is decoded with shortened values: an array or value of Redis, or a reply with a body.
	kept      []byte // the message so far, with shortened values
	shortened []value
	left      []int // number of values that are still to come, by depth
	inside    bool  // a line end, which ends the last value, is still to come

	broken bool // a part is missing: the rest is passed on as unread bytes
}

// value is a shortened value in large.kept.
type value struct {
	at   int // offset of its size
	size int
}

// shortSize is the size of a shortened value, as text.
var shortSize = strconv.Itoa(largeBytes)

// more reports whether lines are still to come, from which the size of the message is computed.
func (l *large) more() bool { return l.inside || len(l.left) > 0 }

// dataLimit returns the limit on the data of one message with which messages are decoded. Without a binary header, the
// length so far shows that a message is large. The limit is the same for bodies of both directions, and also limits the
// elements of Redis's arrays.
func dataLimit(p *codec.Protocol) int {
	if p.Framing.Header == nil {
		return codec.DefaultMaxData
	}
	return maxMessage
}

// shortens reports whether the message at the beginning of b is larger than this decoder reads, and can be decoded with
// shortened values. d.frame has its fields so far, and n is its length so far.
func (h *half) shortens(b []byte, n int) bool {
	frame, f := &h.c.d.frame, &h.c.Protocol.Framing
	switch {
	case h.guess || h.lost:
	case f.Values != nil:
		h.large = &large{left: []int{1}}
		return true
	case f.Lines != nil && len(frame.Spans) > 0:
		last := &frame.Spans[len(frame.Spans)-1]
		size := n - last.Next - len(f.Lines.End)
		if last.Field.Kind != codec.Length || size <= largeBytes {
			return false
		}
		h.large = &large{kept: bytes.Clone(b[:last.Off])}
		h.large.shorten(size, b[last.End:last.Next], b[last.Next:last.Next+largeBytes])
		h.large.size, h.skip = last.Next+size, size-largeBytes
		return true
	}
	return false
}

// shorten keeps the size of a value, the bytes after the size, and the beginning of the value.
func (l *large) shorten(size int, between, begin []byte) {
	l.shortened = append(l.shortened, value{len(l.kept), size})
	l.kept = append(append(append(l.kept, shortSize...), between...), begin...)
	l.inside = true
}

// next reads values from b until a long one begins. It returns the number of bytes read, and of those after them that
// are skipped. If need is not 0, it needs so many bytes after those read. ok is false if the values are illegal.
func (l *large) next(p *codec.Protocol, b []byte) (n, skip, need int, ok bool) {
	const end = "\r\n"
	if l.inside {
		if len(b) < len(end) {
			return 0, 0, len(end), true
		}
		if string(b[:len(end)]) != end {
			return 0, 0, 0, false
		}
		n, l.inside, l.kept = len(end), false, append(l.kept, end...)
	}
	for len(l.left) > 0 {
		depth, v := len(l.left)-1, p.Framing.Values
		if l.left[depth] == 0 {
			l.left = l.left[:depth]
			continue
		}
		b := b[n:]
		line, _, whole := bytes.Cut(b, []byte(end))
		if !whole {
			return n, 0, len(b) + 1, len(b) < v.MaxLine
		}
		if len(line) == 0 {
			return n, 0, 0, false
		}
		kind, known := v.Kinds[line[0]]
		size, err := strconv.Atoi(string(line[1:]))
		if !known || !kind.Line && (err != nil || size < -1) || len(l.kept) > maxMessage || depth > v.MaxDepth {
			return n, 0, 0, false
		}
		head, body := len(line)+len(end), 0
		if kind.Bulk && size >= 0 {
			body = size + len(end)
		}
		short := min(body, largeBytes)
		if len(b) < head+short {
			return n, 0, head + short, true
		}
		n += head + short
		if line[0] != '|' { // attributes come before a value
			l.left[depth]--
		}
		if kind.Array > 0 && size > 0 {
			l.left = append(l.left, size*kind.Array)
		}
		if body > largeBytes {
			l.kept = append(l.kept, line[0])
			l.shorten(size, []byte(end), b[head:head+short])
			return n, size - largeBytes, 0, true
		}
		l.kept = append(l.kept, b[:head+short]...)
	}
	return n, 0, 0, true
}

// restore replaces the sizes of shortened values by the real ones.
func (l *large) restore() {
	var raw []byte
	from := 0
	longer := make([]int, 1+len(l.shortened)) // how many bytes the first sizes are longer than shortSize
	for i, v := range l.shortened {
		size := strconv.Itoa(v.size)
		raw = append(append(raw, l.kept[from:v.at]...), size...)
		from = v.at + len(shortSize)
		longer[i+1] = longer[i] + len(size) - len(shortSize)
	}
	f := &l.frame
	f.Raw = append(raw, l.kept[from:]...)
	for k := range f.Spans {
		s := &f.Spans[k]
		for _, off := range []*int{&s.Off, &s.End, &s.Next} {
			n, _ := slices.BinarySearchFunc(l.shortened, *off, func(v value, off int) int {
				if v.at+len(shortSize) <= off {
					return -1
				}
				return 1
			})
			*off += longer[n]
		}
	}
}

// after returns what is still to come of a message after a gap of n bytes: skip is the number of bytes up to the end of
// the value with the gap, and left the number of values after it, by depth. rest has the bytes before the gap that next
// has not read yet, and skipped is the number of bytes that next has skipped and that were not captured before the gap.
// If the end of the value is unknown, skip is negative.
func (l *large) after(p *codec.Protocol, rest []byte, skipped, n int) (skip int, left []int) {
	const end = "\r\n"
	l = &large{left: slices.Clone(l.left), inside: l.inside}
	for {
		known := skipped
		if l.inside {
			known += len(end)
		}
		if len(rest) < known {
			return known - len(rest) - n, l.remaining()
		}
		rest = rest[skipped:]
		read, more, need, ok := l.next(p, rest)
		rest, skipped = rest[read:], more
		if !ok || need == 0 && more == 0 {
			return -1, nil
		}
		if need == 0 {
			continue
		}
		line, _, whole := bytes.Cut(rest, []byte(end))
		if !whole || !p.Framing.Values.Kinds[line[0]].Bulk {
			return -1, nil
		}
		size, _ := strconv.Atoi(string(line[1:]))
		l.left[len(l.left)-1]--
		return len(line) + len(end) + size + len(end) - len(rest) - n, l.remaining()
	}
}

// remaining returns the number of values that are still to come, by depth, or nil.
func (l *large) remaining() []int {
	for n := len(l.left); n > 0 && l.left[n-1] == 0; n-- {
		l.left = l.left[:n-1]
	}
	if len(l.left) == 0 {
		return nil
	}
	return l.left
}

// continueLarge reads the next bytes of a message with shortened values. It returns the number of bytes read, and
// false if it needs more. first is the packet of the first byte.
func (h *half) continueLarge(b []byte, first int, at position) (n int, ok bool) {
	m := h.large
	n, skip, need, legal := m.next(h.c.Protocol, b)
	if m.broken {
		h.unread(b[:n], first, at)
		m.kept, m.shortened = m.kept[:0], m.shortened[:0]
	}
	m.size += n + skip
	switch {
	case !legal:
		if !m.broken {
			h.c.d.stats.GivenUp++
		}
		h.finishLarge(at, false)
		h.lost = true
		h.c.reset()
	case need > 0:
		h.need = need
		return n, false
	case skip > 0:
		h.skip = skip
	default:
		h.finishLarge(at, false)
	}
	return n, true
}

// breakOff passes on a large message of which no more bytes will be read. The bytes that were kept for the next value
// are omitted.
func (h *half) breakOff(at position, closed bool) {
	n := len(h.buf)
	if h.large.broken {
		first, _ := h.frames(0, at.Frame)
		h.unread(h.buf, first, at)
	}
	h.large.size += n
	h.consume(n)
	h.finishLarge(at, closed)
}

// readShortened decodes a message with shortened values, all of which has arrived.
func (c *conn) readShortened(from codec.Side, m *large) {
	_, err := c.session.Decode(from, m.kept, &m.frame)
	e, bad := err.(*codec.Error)
	m.read = !bad
	if bad && c.Protocol.Framing.Values != nil && !slices.Contains(c.Protocol.Caps, e.Rule) {
		m.err = e // the error of a reply with a body may be that the body is shortened
	}
}

// skipsLarge reports whether the error e, with the length n of the illegal message in b, is only that the message is
// larger than this decoder reads. It then begins to skip the message, and returns the number of bytes consumed. If
// they are 0, h.need bytes are needed.
func (h *half) skipsLarge(b []byte, e *codec.Error, n int) (consumed int, ok bool) {
	c := h.c
	f, from := &c.Protocol.Framing, h.side()
	switch {
	case h.guess || h.lost:
		return 0, false
	case f.Header != nil && e.Rule == f.Header.Size && e.Field == f.Header.Fields[2].Name:
		if len(b) < largeHead {
			h.need = largeHead
			return 0, true
		}
		h.large = c.largePacket(from, b[:largeHead])
	case f.Lines != nil && e.Rule == f.Lines.Body[from].Size && !e.Fatal && n > maxMessage:
		line := c.d.frame.Clone()
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
func (c *conn) largePacket(from codec.Side, b []byte) *large {
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
	copy(head[length:header], b[length:]) // the real length again
	m.frame.Raw = head
	if e, bad := err.(*codec.Error); bad {
		// Fields may be missing only because b is the beginning of the packet.
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
func (h *half) finishLarge(at position, closed bool) {
	c, d, m := h.c, h.c.d, h.large
	if m.broken {
		h.large, h.skip = nil, 0
		return
	}
	if m.kept != nil || m.more() {
		if !m.more() {
			c.readShortened(h.side(), m)
		}
		m.restore()
	}
	it := h.item(Message, at)
	it.Frame, it.Raw, it.Omitted = &m.frame, m.frame.Raw, h.omitted()
	it.First, it.Last = min(m.first, at.Frame), max(m.first, at.Frame)
	d.stats.Omitted += int64(it.Omitted)
	missing := h.skip
	if m.more() {
		missing = max(missing, 1)
	}
	h.large, h.skip = nil, 0
	switch {
	case missing > 0 && closed:
		it.Err = c.Protocol.CutShort(it.Size(), it.Size()+missing, 0)
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
		c.violation(it)
	default:
		h.pass(it)
	}
}
