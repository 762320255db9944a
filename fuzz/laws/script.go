package laws

import (
	"bytes"
	"fmt"
	"reflect"

	"jobwire/codec/transcript"
)

// Transcripts checks that printing and parsing the transcript of a case yields the same transcript, in one-line
// notation and in bytes. It checks the bytes only if the transcript can be expressed in bytes.
func Transcripts(c *Case) error {
	s := c.Script()
	if len(s.Steps) == 0 {
		return nil
	}
	text, err := Inverse(s)
	if err != nil || text == nil {
		return err
	}
	back, err := one(s, text)
	if err != nil {
		return err
	}
	writer := c.Protocol.NewSession(c.Options)
	k := 0
	var raw []byte
	for i := range c.Steps {
		if raw, err = c.append(writer, raw[:0], i); err != nil {
			return err
		}
		if c.Steps[i].Message.Type == nil && len(raw) == 0 {
			continue
		}
		if got := back.Steps[k].Choices[0].Bytes; !bytes.Equal(got, raw) {
			return fmt.Errorf("message %d: expected %.200q after printing and parsing, got %.200q:\n%s", i, raw, got, text)
		}
		k++
	}
	return nil
}

// Inverse checks that parsing is the inverse of printing a script: in one-line notation, and in bytes if the script can
// be expressed in bytes. It returns the script in bytes, or nil.
func Inverse(s *transcript.Script) ([]byte, error) {
	var text bytes.Buffer
	if err := transcript.Lines(&text, s); err != nil {
		return nil, fmt.Errorf("cannot print the transcript in one-line notation: %w", err)
	}
	if back, err := one(s, text.Bytes()); err != nil {
		return nil, err
	} else if !Same(s, back, false) {
		return nil, fmt.Errorf("parsing the printed lines gives another transcript:\n%s", text.Bytes())
	}
	text.Reset()
	if err := transcript.Bytes(&text, s); err != nil {
		return nil, nil // some steps cannot be expressed in bytes
	}
	back, err := one(s, text.Bytes())
	if err != nil {
		return nil, err
	}
	var again bytes.Buffer
	if err := transcript.Bytes(&again, back); err != nil || !bytes.Equal(text.Bytes(), again.Bytes()) ||
		!Same(s, back, false) {
		return nil, fmt.Errorf("parsing the printed bytes gives another transcript (%v):\n%s", err, text.Bytes())
	}
	return text.Bytes(), nil
}

// one parses a source that must contain exactly one script.
func one(s *transcript.Script, text []byte) (*transcript.Script, error) {
	scripts, err := transcript.Parse(s.Protocol, "law.wire", text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the printed transcript: %w\n%s", err, text)
	}
	if len(scripts) != 1 {
		return nil, fmt.Errorf("expected 1 transcript after printing and parsing, got %d:\n%s", len(scripts), text)
	}
	return scripts[0], nil
}

// Same reports whether two scripts are equal apart from positions in the source and, unless countBytes is set, the
// bytes of recorded messages.
func Same(a, b *transcript.Script, countBytes bool) bool {
	return reflect.DeepEqual(withoutPositions(a, countBytes), withoutPositions(b, countBytes))
}

// withoutPositions returns a copy of a script without positions in the source and, unless keepBytes is set, without the
// bytes of recorded messages.
func withoutPositions(s *transcript.Script, keepBytes bool) transcript.Script {
	c := transcript.Script{Protocol: s.Protocol}
	for _, m := range s.Meta {
		c.Meta = append(c.Meta, transcript.Meta{Key: m.Key, Value: m.Value})
	}
	for _, st := range s.Steps {
		st.Line, st.Source = 0, ""
		st.Choices = append([]transcript.Choice(nil), st.Choices...)
		for i := range st.Choices {
			ch := &st.Choices[i]
			ch.Line = 0
			if ch.Verb == transcript.Send && !keepBytes {
				ch.Bytes = nil
			}
			args := ch.Args
			ch.Args = nil
			for _, a := range args {
				a.Line, a.Col = 0, 0
				if len(a.Value) == 0 {
					a.Value = nil
				}
				ch.Args = append(ch.Args, a)
			}
		}
		c.Steps = append(c.Steps, st)
	}
	return c
}
