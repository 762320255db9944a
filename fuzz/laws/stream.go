package laws

import (
	"bytes"
	"slices"

	"jobwire/codec"
)

// stream reads both directions of a connection as bytes arrive.
type stream struct {
	session codec.Session
	sides   [2]side
	frame   codec.Frame
}

// side is one direction of it.
type side struct {
	rest []byte // not read yet
	need int    // length of rest worth another call
	skip int    // bytes still to come of a message that was refused
	dead bool   // the end of a message is unknown
}

// reset makes it one of another connection.
func (s *stream) reset(session codec.Session) {
	s.session = session
	for i := range s.sides {
		s.sides[i] = side{rest: s.sides[i].rest[:0]}
	}
}

// feed adds bytes that have arrived and tells of each message that is there as a
// whole: its bytes, as far as they are there, its length, and what the decoder
// made of it. The frame is good until the next.
func (s *stream) feed(from codec.Side, b []byte, tell func(raw []byte, n int, f *codec.Frame, err error) error) error {
	d := &s.sides[from]
	d.rest = append(d.rest, b...)
	b = d.rest
	for !d.dead {
		n := min(d.skip, len(b))
		b, d.skip = b[n:], d.skip-n
		if len(b) < max(d.need, 1) {
			break
		}
		n, err := s.session.Decode(from, b, &s.frame)
		if err == codec.ErrShort {
			d.need = n
			break
		}
		d.need = 0
		raw := b[:min(n, len(b))]
		if e, ok := err.(*codec.Error); ok && e.Fatal {
			d.dead, raw = true, b
		}
		if err := tell(raw, n, &s.frame, err); err != nil {
			return err
		}
		d.skip = n - len(raw)
		if d.dead {
			break
		}
		b = b[len(raw):]
	}
	d.rest = append(d.rest[:0], b...)
	return nil
}

// canonical returns a message as the writer writes it: decimal sizes
// have no leading zeros there, and words that tell the type have its letter case.
// These are framing, which no message carries. Whatever else differs is a fault. The
// second result is false if the spans do not hold every byte exactly once.
func canonical(dst []byte, f *codec.Frame, written []byte) ([]byte, bool) {
	start, end := len(dst), 0
	for i := range f.Spans {
		s := &f.Spans[i]
		if s.Off < end || s.End < s.Off || s.Next < s.End || s.Next > len(f.Raw) {
			return dst, false
		}
		row := f.Raw[end:s.Next]
		end = s.Next
		at := len(dst) - start
		switch {
		case s.Field.Width > 0 || s.Field.Kind != codec.Length && s.Field.Kind != codec.Code:
		case s.Field.Kind == codec.Length:
			lead := s.Off - (s.Next - len(row))
			digits := row[lead : lead+s.End-s.Off]
			if trimmed := bytes.TrimLeft(digits, "0"); len(trimmed) < len(digits) {
				if len(trimmed) == 0 {
					trimmed = digits[len(digits)-1:]
				}
				dst = append(dst, row[:lead]...)
				dst = append(dst, trimmed...)
				row = row[lead+len(digits):]
			}
		case at+len(row) <= len(written) && bytes.EqualFold(row, written[at:at+len(row)]):
			row = written[at : at+len(row)]
		}
		dst = append(dst, row...)
	}
	return dst, end == len(f.Raw)
}

// cut splits bytes at places that next chooses.
func cut(b []byte, next func(n int) int) (pieces [][]byte) {
	for len(b) > 0 {
		n := 1 + next(len(b))
		pieces, b = append(pieces, slices.Clip(b[:n])), b[n:]
	}
	return pieces
}
