package codec

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

const (
	magicSize = 4
	sizeLimit = 1 << 30 // a header with a greater length is hardly that of a message

	provisional = 1 << 32 // marks a magic that the first message may replace
)

// Link prepares the header for messages of the given types, and sets the separator and the form rules of the types. It
// panics if the declaration of a list is incomplete.
func (h *Header) Link(types []Type) {
	at := 0
	for i, f := range h.Fields {
		h.spans[i] = Span{f, at, at + f.Width, at + f.Width}
		at += f.Width
	}
	h.size, h.shift = at, 32-8*h.Fields[1].Width
	for i := range types {
		t := &types[i]
		t.Sep, t.Form = "\x00", [2]*Form{h.Form, h.Form}
		for uint32(len(h.types)) <= t.Code {
			h.types = append(h.types, nil)
		}
		h.types[t.Code] = t
		if len(t.Repeat) > 0 && (t.Repeat[0].Prefix == "" || h.MaxRepeat == 0) {
			panic("codec: a list of packets needs a prefix of its elements and a limit: " + t.Name)
		}
		n := len(t.Fields)
		t.fills = n > 0 && len(t.Repeat) == 0 && !t.Fields[0].Optional && t.Fields[n-1].Width == 0
	}
}

// typeOf returns the type with the number, or nil.
func (h *Header) typeOf(code uint32) *Type {
	if code < uint32(len(h.types)) {
		return h.types[code]
	}
	return nil
}

// Packets is the session of a protocol with binary messages. It passes other messages on to a session for text
// messages. Its only state is the magic, if the header does not declare it. The first message then fixes it for both
// directions.
type Packets struct {
	Layout
	header *Header
	text   Session   // nil: there are no text messages
	magic  [2]uint64 // by sender; provisional or less than provisional
}

// Session returns a session. text is the session for text messages, or nil if the protocol has none.
func (h *Header) Session(o *Options, text Session) *Packets {
	p := &Packets{Layout: Layout{Form: h.Form, Options: o}, header: h, text: text}
	for side := range p.magic {
		p.magic[side] = BigEndian([]byte(h.magicOf(Side(side), nil)))
		if h.First != "" {
			p.magic[side] |= provisional
		}
	}
	return p
}

// Decode implements [Session].
func (p *Packets) Decode(from Side, b []byte, f *Frame) (int, error) {
	h := p.header
	if len(b) < h.size || uint64(binary.BigEndian.Uint32(b)) != p.magic[from] {
		return p.decodeOther(from, b, f)
	}
	size, code := binary.BigEndian.Uint32(b[h.size-4:]), binary.BigEndian.Uint32(b[magicSize:])>>(h.shift&31)
	if uint64(size) > uint64(p.Options.MaxData) {
		f.Reset(from)
		return 0, p.tooLong(uint64(size), "a packet length of at most %d bytes", true)
	}
	n := h.size + int(size)
	if len(b) < n {
		f.Reset(from)
		return n, ErrShort
	}
	if c := cap(f.Spans); len(h.spans) <= c && c <= maxIdleSpans && f.Spans[:1][0].Field == h.Fields[0] {
		f.Spans = f.Spans[:len(h.spans)] // these spans were set for the previous message
		f.Spans[len(h.spans)-1].Next = h.size
	} else {
		f.Reset(from)
		f.Spans = append(f.Spans, h.spans[:]...)
	}
	t := h.typeOf(code)
	f.Type, f.From, f.Raw, f.Head, f.CRLF = t, from, b[:n:n], len(h.spans), false
	if t == nil || !t.Sends(from) {
		if err := p.checkType(t, code, from); err != nil {
			return n, err
		}
	}
	if t.fills {
		if err := p.Split(f, t.Fields, t.Sep, h.size, n, true); err != nil {
			return n, err
		}
		return n, nil
	}
	return n, p.arguments(f)
}

// arguments decodes the bytes after the header, for types that the length of the message ends: those without fields,
// lists, and those whose last field is an integer.
func (p *Packets) arguments(f *Frame) error {
	h, t, n := p.header, f.Type, len(f.Raw)
	var err *Error
	if len(t.Repeat) > 0 {
		err = p.repetitions(f)
	} else if len(t.Fields) > 0 {
		err = p.Split(f, t.Fields, t.Sep, h.size, n, n > h.size || !t.Fields[0].Optional)
	}
	if err != nil {
		return err
	}
	last := &f.Spans[len(f.Spans)-1]
	if last.Next < n && !p.Options.Waived(p.Extra) {
		return &Error{Rule: p.Extra, Offset: last.Next, Field: t.Name, Detail: fmt.Sprintf(h.ExtraDetail, n-last.Next)}
	}
	last.Next = n
	return nil
}

// decodeOther decodes a text message, a message whose magic is not that of the sender, or the beginning of a message.
func (p *Packets) decodeOther(from Side, b []byte, f *Frame) (int, error) {
	h, magic := p.header, p.magic
	if p.text != nil && (len(b) == 0 || b[0] != byte(magic[from]>>24)) {
		return p.text.Decode(from, b, f)
	}
	f.Reset(from)
	fixed := magic[from] < provisional
	for i, c := range b[:min(len(b), magicSize)] {
		one, two := byte(magic[Peer]>>(24-8*i)), byte(magic[Server]>>(24-8*i))
		if fixed && c != one && c != two && (h.First == "" || !p.Options.Waived(h.Other)) {
			return 0, &Error{Rule: h.Other, Offset: i, Field: h.Fields[0].Name, Detail: h.otherDetail(one, two, c), Fatal: true}
		}
	}
	switch {
	case fixed && len(b) < magicSize:
		return len(b) + 1, ErrShort // the next byte may already be illegal
	case len(b) < h.size:
		return h.size, ErrShort
	}
	p.fix(binary.BigEndian.Uint32(b)) // decode the message as if the magic were that of the sender
	n, err := p.Decode(from, b, f)
	if fixed || f.Raw == nil {
		p.magic = magic
	}
	if fixed && f.Raw != nil && h.Reversed != "" && !p.Options.Waived(h.Reversed) {
		f.Spans = append(f.Spans[:0], h.spans[:]...)
		err = &Error{Rule: h.Reversed, Offset: magicSize - 1, Field: h.Fields[0].Name,
			Detail: fmt.Sprintf("expected the magic of a packet that the %s sends, got %s", from,
				strings.ReplaceAll(string(b[:magicSize]), "\x00", `\0`))}
	}
	return n, err
}

func (p *Packets) fix(magic uint32) { p.magic = [2]uint64{uint64(magic), uint64(magic)} }

// otherDetail describes the byte c of a magic, where one or two are expected.
func (h *Header) otherDetail(one, two, c byte) string {
	switch {
	case h.First != "":
		return fmt.Sprintf("expected %#02x, because every packet has the magic of the first packet, got %#02x", one, c)
	case one == two:
		return fmt.Sprintf("expected %q in the magic, got %#02x", one, c)
	}
	return fmt.Sprintf("expected %q or %q in the magic, got %#02x", one, two, c)
}

// tooLong returns the error for a message with n bytes after its header.
func (p *Packets) tooLong(n uint64, expected string, fatal bool) error {
	h := p.header
	return &Error{Rule: h.Size, Offset: h.size - 4, Field: h.Fields[2].Name,
		Detail: fmt.Sprintf("expected "+expected+", got %d", p.Options.MaxData, n), Fatal: fatal}
}

// checkType returns an error if the type with the number code is unknown, or if the side does not send it.
func (p *Packets) checkType(t *Type, code uint32, from Side) error {
	h, at := p.header, magicSize
	switch {
	case t == nil:
		return &Error{Rule: h.Known, Offset: at, Field: h.Fields[1].Name, Detail: fmt.Sprintf(h.KnownDetail, code)}
	case t.Sends(from) || p.Options.Waived(h.Direction):
		return nil
	case t.End != "":
		at = 0
	}
	return &Error{Rule: h.Direction, Offset: at, Field: h.Fields[1].Name,
		Detail: fmt.Sprintf("expected a message that the %s sends, got %s", from, t.Name)}
}

// repetitions decodes a list. Each element has a span of its own, which includes the separator before the element. An
// empty list has no span.
func (p *Packets) repetitions(f *Frame) *Error {
	h, t, at, n := p.header, f.Type, p.header.size, len(f.Raw)
	fields := t.Fields
	for count := 0; at < n; count++ {
		if count == h.MaxRepeat && !p.Options.Waived(h.RepeatRule) {
			return h.tooMany(t, at, "more")
		}
		end, value := n, at+len(fields[0].Prefix)
		if k := index(f.Raw[value:], t.Sep); k >= 0 {
			end = value + k
		}
		if err := p.Split(f, fields, t.Sep, at, end, true); err != nil {
			return err
		}
		if end == n-1 {
			if !p.Options.Waived(p.Trailing) {
				return &Error{Rule: p.Trailing, Offset: end, Field: fields[0].Name,
					Detail: "expected the end of the packet after the last " + h.Element + ", got a NUL byte"}
			}
			f.Spans[len(f.Spans)-1].Next, end = n, n
		}
		at, fields = end, t.Repeat
	}
	return nil
}

// tooMany returns the error for a list with too many elements.
func (h *Header) tooMany(t *Type, at int, got string) *Error {
	return &Error{Rule: h.RepeatRule, Offset: at, Field: t.Repeat[0].Name,
		Detail: fmt.Sprintf("expected at most %d %ss, got %s", h.MaxRepeat, h.Element, got)}
}

// Append implements [Session].
func (p *Packets) Append(dst []byte, from Side, m *Message) ([]byte, error) {
	start, t, h := len(dst), m.Type, p.header
	if !t.fills || !t.Sends(from) {
		if err := p.checkType(t, t.Code, from); err != nil {
			return dst, err
		}
		if t.End != "" {
			return p.text.Append(dst, from, m)
		}
		if len(t.Repeat) > 0 && len(m.Args) > h.MaxRepeat && !p.Options.Waived(h.RepeatRule) {
			return dst, h.tooMany(t, h.size, fmt.Sprint(len(m.Args)))
		}
	}
	magic, at := p.magic[from], start+h.size
	out := binary.BigEndian.AppendUint64(dst, magic<<32|uint64(t.Code)<<(h.shift&31))
	out = append(out, 0, 0, 0, 0)[:at] // 0 is a placeholder for the length
	out, ok := joinPlain(out, m)
	if !ok {
		var err *Error
		if out, err = p.Join(out, start, m); err != nil {
			return dst, err
		}
	}
	size := len(out) - at
	if size > p.Options.MaxData {
		return dst, p.tooLong(uint64(size), "at most %d bytes of data", false)
	}
	binary.BigEndian.PutUint32(out[at-4:], uint32(size))
	if magic >= provisional {
		p.fix(uint32(magic))
	}
	return out, nil
}

// Forward implements [Forwarder]. All bytes but the magic are the same in both directions.
func (p *Packets) Forward(dst []byte, from Side, f *Frame) ([]byte, bool) {
	if f.Type.End != "" || !f.Type.Sends(from) {
		return dst, false
	}
	dst = append(dst, f.Raw...)
	binary.BigEndian.PutUint32(dst[len(dst)-len(f.Raw):], uint32(p.magic[from]))
	return dst, true
}

// Expect implements [Expecter]. A packet does not answer a text message.
func (p *Packets) Expect(replies ...*Type) {
	if s, ok := p.text.(Expecter); ok {
		s.Expect(slices.DeleteFunc(slices.Clone(replies), func(t *Type) bool { return t.End == "" })...)
	}
}

// magicOf returns the magic of the side on a connection whose first message is first. If the header does not declare
// it, and first is too short or begins with zeros, which cannot be searched for, magicOf returns First.
func (h *Header) magicOf(from Side, first []byte) string {
	if h.First == "" {
		return h.Magic[from]
	}
	if len(first) < magicSize || BigEndian(first[:magicSize]) == 0 {
		return h.First
	}
	return string(first[:magicSize])
}

// Begins is [Recognition].Begins for binary messages. A message of a known type may have an illegal size on a new
// connection.
func (h *Header) Begins(from Side, b, first []byte, resumed bool) Match {
	if n := min(len(b), magicSize); string(b[:n]) != h.magicOf(from, first)[:n] {
		return NoMatch
	}
	if len(b) < h.size {
		return MayMatch
	}
	code, small := binary.BigEndian.Uint32(b[magicSize:])>>h.shift, binary.BigEndian.Uint32(b[h.size-4:]) <= sizeLimit
	t := h.typeOf(code)
	known := t != nil && t.Sends(from)
	if known && (small || !resumed) || small && !resumed && code < h.Unassigned {
		return Matches
	}
	return NoMatch
}

// Next is [Recognition].Next for binary messages.
func (h *Header) Next(from Side, b, first []byte) int { return nextMagic(b, h.magicOf(from, first)) }
