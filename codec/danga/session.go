package danga

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"jobwire/codec"
)

// headerSize counts four bytes of magic, one of type, four of length ("Packet
// types", "Generic header").
const headerSize = 9

// DefaultMagic is the magic that a session writes until the first packet of the connection fixes another one.
// The draft does not define the four bytes.
const DefaultMagic = "GEAR"

// session decodes and encodes the messages of one connection. Its only state is the magic, which the first
// packet fixes for both directions.
type session struct {
	opts   codec.Options
	layout codec.Layout
	magic  [4]byte
	fixed  bool
}

func newSession(o codec.Options) codec.Session { return startSession(o, [4]byte([]byte(DefaultMagic))) }

// startSession creates a session that writes the given magic until a packet fixes another one.
func startSession(o codec.Options, magic [4]byte) *session {
	s := &session{opts: o.WithDefaults(), magic: magic}
	s.layout = codec.Layout{Form: &form, Options: &s.opts}
	return s
}

func (s *session) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	f.Reset(from)
	if s.fixed && !(len(b) >= 4 && [4]byte(b) == s.magic) {
		if err := s.checkMagic(b); err != nil {
			return 0, err
		}
	}
	switch {
	case s.fixed && len(b) < 4:
		return len(b) + 1, codec.ErrShort // the next byte may already be illegal
	case len(b) < headerSize:
		return headerSize, codec.ErrShort
	}
	size := binary.BigEndian.Uint32(b[5:])
	if uint64(size) > uint64(s.opts.MaxData) {
		return 0, &codec.Error{Rule: RuleSizeCap, Offset: 5, Field: lengthField.Name, Fatal: true,
			Detail: fmt.Sprintf("expected a packet length of at most %[2]d bytes, got %[1]d", size, s.opts.MaxData)}
	}
	n := headerSize + int(size)
	if len(b) < n {
		return n, codec.ErrShort
	}
	if !s.fixed {
		s.magic, s.fixed = [4]byte(b), true
	}
	f.Raw, f.Head = b[:n:n], 3
	f.Spans = append(f.Spans,
		codec.Span{Field: &magicField, Off: 0, End: 4, Next: 4},
		codec.Span{Field: &codeField, Off: 4, End: 5, Next: 5},
		codec.Span{Field: &lengthField, Off: 5, End: 9, Next: 9})
	code := b[4]
	if int(code) >= len(types) {
		return n, &codec.Error{Rule: RuleTypeKnown, Offset: 4, Field: codeField.Name, Detail: fmt.Sprintf("expected a packet type from 0x00 to 0x0d, got %#02x", code)}
	}
	f.Type = types[code]
	if err := s.direction(f.Type, from); err != nil {
		return n, err
	}
	if err := s.arguments(f); err != nil {
		return n, err
	}
	return n, nil
}

// checkMagic compares the bytes of the magic that have arrived.
func (s *session) checkMagic(b []byte) error {
	for i := range min(len(b), 4) {
		if b[i] != s.magic[i] && !s.opts.Waived(RuleMagic) {
			return &codec.Error{Rule: RuleMagic, Offset: i, Field: magicField.Name, Fatal: true,
				Detail: fmt.Sprintf("expected %#02[2]x, because every packet has the magic of the first packet, got %#02[1]x", b[i], s.magic[i])}
		}
	}
	return nil
}

// direction returns an error if the side does not send the message type according to the table of types,
// unless the rule is waived.
func (s *session) direction(t *codec.Type, from codec.Side) error {
	if t.Sends(from) || s.opts.Waived(RuleTypeDirection) {
		return nil
	}
	return &codec.Error{Rule: RuleTypeDirection, Offset: 4, Field: codeField.Name, Detail: fmt.Sprintf("expected a message that the %[2]s sends, got %[1]s", t.Name, from)}
}

// arguments decodes the bytes after the header.
func (s *session) arguments(f *codec.Frame) error {
	t, n := f.Type, len(f.Raw)
	if len(t.Repeat) > 0 {
		return s.names(f)
	}
	if len(t.Fields) > 0 {
		given := n > headerSize || !t.Fields[0].Optional
		if err := s.layout.Split(f, t.Fields, t.Sep, headerSize, n, given); err != nil {
			return err
		}
	}
	// Only the length of the packet ends a type whose last field is an integer, or that has no fields.
	last := &f.Spans[len(f.Spans)-1]
	if last.Next < n && !s.opts.Waived(RuleArgsExtra) {
		return &codec.Error{Rule: RuleArgsExtra, Offset: last.Next, Field: t.Name, Detail: fmt.Sprintf("expected the end of the packet after the last argument, got %d more bytes", n-last.Next)}
	}
	last.Next = n
	return nil
}

// names decodes a list of names. Each name has a span of its own, which includes the separator before the
// name. An empty list has no span.
func (s *session) names(f *codec.Frame) error {
	at, n := headerSize, len(f.Raw)
	if at == n {
		return nil
	}
	fields := f.Type.Fields
	for count := 0; ; count++ {
		if count == MaxNames && !s.opts.Waived(RuleNamesCap) {
			return &codec.Error{Rule: RuleNamesCap, Offset: at, Field: jobName.Name, Detail: fmt.Sprintf("expected at most %d names, got more", MaxNames)}
		}
		end, value := n, at+len(fields[0].Prefix)
		if k := bytes.IndexByte(f.Raw[value:], 0); k >= 0 {
			end = value + k
		}
		if err := s.layout.Split(f, fields, f.Type.Sep, at, end, true); err != nil {
			return err
		}
		switch {
		case end == n:
			return nil
		case end+1 < n:
		case s.opts.Waived(RuleArgsTrailing):
			f.Spans[len(f.Spans)-1].Next = n
			return nil
		default:
			return &codec.Error{Rule: RuleArgsTrailing, Offset: end, Field: jobName.Name, Detail: "expected the end of the packet after the last name, got a NUL byte"}
		}
		at, fields = end, f.Type.Repeat
	}
}

func (s *session) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	start, t := len(dst), m.Type
	if err := s.direction(t, from); err != nil {
		return dst, err
	}
	if len(t.Repeat) > 0 && len(m.Args) > MaxNames && !s.opts.Waived(RuleNamesCap) {
		return dst, &codec.Error{Rule: RuleNamesCap, Offset: headerSize, Field: jobName.Name, Detail: fmt.Sprintf("expected at most %[2]d names, got %[1]d", len(m.Args), MaxNames)}
	}
	var head [headerSize]byte
	copy(head[:], s.magic[:])
	head[4] = byte(t.Code)
	out, err := s.layout.Join(append(dst, head[:]...), start, m)
	if err != nil {
		return dst, err
	}
	size := len(out) - start - headerSize
	if size > s.opts.MaxData {
		return dst, &codec.Error{Rule: RuleSizeCap, Offset: 5, Field: lengthField.Name, Detail: fmt.Sprintf("expected at most %[2]d bytes of data, got %[1]d", size, s.opts.MaxData)}
	}
	binary.BigEndian.PutUint32(out[start+5:], uint32(size))
	s.fixed = true
	return out, nil
}
