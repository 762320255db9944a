package laws

import (
	"fmt"

	"jobwire/codec"
)

// OneFieldDamaged checks that one damaged number in the messages of the server is one violation, at its field, and
// that all other messages are decoded as before. A message that the server pushes is recognized by its form, so its
// violation need not be at the field. A conversation without such a number satisfies the law.
func OneFieldDamaged(c *Case) error {
	writer, reader := c.Protocol.NewSession(c.Options), c.Protocol.NewSession(c.Options)
	type message struct {
		raw   []byte
		typ   *codec.Type
		spans []codec.Span
	}
	all := make([]message, len(c.Steps))
	var f codec.Frame
	var candidates [][2]int // message and span
	for i := range c.Steps {
		raw, err := writer.Append(nil, c.Steps[i].From, &c.Steps[i].Message)
		if err != nil {
			return err
		}
		if _, err := reader.Decode(c.Steps[i].From, raw, &f); err != nil {
			return err
		}
		all[i] = message{raw, f.Type, append([]codec.Span(nil), f.Spans...)}
		for k, s := range f.Spans {
			if c.Steps[i].From == codec.Server && s.Field.Kind == codec.Number && s.End > s.Off && isDigit(raw[s.Off]) {
				candidates = append(candidates, [2]int{i, k})
			}
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	r := c.random()
	at := candidates[r.IntN(len(candidates))]
	hurt := all[at[0]].spans[at[1]]
	all[at[0]].raw[hurt.Off] = "-x"[r.IntN(2)]

	streams := codec.Streams(c.Protocol.NewSession(c.Options))
	for i, m := range all {
		whole, illegal := 0, 0
		for p := range streams[c.Steps[i].From].Feed(m.raw, &f) {
			switch p.Found {
			case codec.Whole:
				whole++
				if f.Type == m.typ {
					continue
				}
				if i == at[0] && illegal == 0 {
					return nil // it is another legal message now, such as an error message of any form
				}
				return fmt.Errorf("%q: expected %s, got %s", m.raw, m.typ.Name, f.Type.Name)
			case codec.Illegal:
				illegal++
				if i != at[0] {
					return fmt.Errorf("%q after the message with the damaged %s: %w", m.raw, hurt.Field.Name, p.Err)
				}
				if !m.typ.Push && (p.Err.Offset < hurt.Off || p.Err.Offset > hurt.End) {
					return fmt.Errorf("%q: expected a violation of the field %s at byte %d, got %w",
						m.raw, hurt.Field.Name, hurt.Off, p.Err)
				}
				if p.Err.Fatal {
					return nil // the end of the message is unknown
				}
			}
		}
		if damaged := i == at[0]; damaged && illegal != 1 || !damaged && whole != 1 {
			return fmt.Errorf("%q: expected one message or violation, got %d and %d", m.raw, whole, illegal)
		}
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
