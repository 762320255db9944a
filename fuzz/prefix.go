package fuzz

import (
	"bytes"
	"fmt"
	"time"

	"jobwire/codec/transcript"
)

// apart returns a copy of an input that can share a server with other inputs: its names have the prefix, and each
// connection begins with the preamble.
func (d *contractTraits) apart(c *Input, prefix string) *Input {
	out := &Input{Mode: c.Mode}
	id := c.nextID()
	open := make([]bool, c.conns())
	for _, s := range c.clone().Steps {
		if !open[s.Conn] {
			open[s.Conn] = true
			for _, first := range (&Input{Steps: d.preamble}).clone().Steps {
				first.ID, first.Conn = id, s.Conn
				id++
				d.place(&first, prefix)
				out.Steps = append(out.Steps, first)
			}
		}
		if d.place(&s, prefix) {
			out.Steps = append(out.Steps, s)
		}
	}
	return out
}

// alone returns the variants of an input to try on a server of its own, after the input failed on a shared server: the
// unchanged input, and the input with the preamble on its connections.
func (d *contractTraits) alone(c *Input) []*Input {
	if len(d.preamble) == 0 {
		return []*Input{c}
	}
	return []*Input{c, d.apart(c, placeholder)}
}

// place replaces the placeholder in a step with a prefix. It returns false if the step contains a job number that the
// server has not assigned to this peer. Such a step must not be sent, because the job may belong to another input.
func (d *contractTraits) place(s *Step, prefix string) bool {
	own := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(placeholder), []byte(prefix)) }
	s.Bytes = own(s.Bytes)
	for i := range s.Args {
		a := &s.Args[i]
		if a.Of == 0 && d.hasNumbers && assignedField(s.Type, i) != nil {
			return false
		}
		a.Value = own(d.own(s.Type.FieldAt(i), a.Value, prefix))
	}
	return s.Verb != transcript.Raw || !d.namesNumbers(nil, s.Bytes)
}

// prefixOf returns the n-th prefix; there are 26 * 30^5 different ones. A prefix is as long as the placeholder. It
// cannot be mistaken for a command, because every command contains a vowel or a y and a prefix contains neither.
func prefixOf(letter byte, n uint64) string {
	const digits = "0123456789bcdfghjklmnpqrstvwxz"
	b := []byte(placeholder)
	for i := len(b) - 2; i > 0; i-- {
		b[i] = digits[n%uint64(len(digits))]
		n /= uint64(len(digits))
	}
	b[0], b[len(b)-1] = letter+byte(n%26), '.'
	return string(b)
}

// unusedNames returns the number of the first prefix to use on a server that cannot be restarted and may still have
// names of earlier runs. The number depends on the current time and grows faster than a run uses prefixes.
func unusedNames() uint64 { return uint64(time.Now().UnixMicro() / 100) }

// nth returns the prefix of the i-th of the inputs that join combines.
func nth(i int) string { return fmt.Sprintf("z%0*x.", len(placeholder)-2, i) }
