package input

import (
	"bytes"
	"fmt"
	"time"

	"jobwire/codec/transcript"
)

// apart returns a copy of an input that can share a server with other inputs: its names have the prefix, and each
// connection begins with the preamble.
func (tr *Traits) apart(in *Input, prefix string) *Input {
	out := &Input{Mode: in.Mode}
	id := in.nextID()
	open := make([]bool, in.Conns())
	for _, s := range in.Clone().Steps {
		if !open[s.Conn] {
			open[s.Conn] = true
			for _, first := range (&Input{Steps: tr.Preamble}).Clone().Steps {
				first.ID, first.Conn = id, s.Conn
				id++
				tr.place(&first, prefix)
				out.Steps = append(out.Steps, first)
			}
		}
		if tr.place(&s, prefix) {
			out.Steps = append(out.Steps, s)
		}
	}
	return out
}

// Alone returns the variants of an input to try on a server of its own, after the input failed on a shared server: the
// unchanged input, and the input with the preamble on its connections.
func (tr *Traits) Alone(in *Input) []*Input {
	if len(tr.Preamble) == 0 {
		return []*Input{in}
	}
	return []*Input{in, tr.apart(in, Placeholder)}
}

// place replaces the placeholder in a step with a prefix. It returns false if the step contains a job number that the
// server has not assigned to this peer. Such a step must not be sent, because the job may belong to another input.
func (tr *Traits) place(s *Step, prefix string) bool {
	own := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(Placeholder), []byte(prefix)) }
	s.Bytes = own(s.Bytes)
	for i := range s.Args {
		a := &s.Args[i]
		if a.Of == 0 && tr.HasNumbers && AssignedField(s.Type, i) != nil {
			return false
		}
		a.Value = own(tr.Own(s.Type.FieldAt(i), a.Value, prefix))
	}
	return s.Verb != transcript.Raw || !tr.NamesNumbers(nil, s.Bytes)
}

// PrefixOf returns the n-th prefix; there are 26 * 30^5 different ones. A prefix is as long as the placeholder. It
// cannot be mistaken for a command, because every command contains a vowel or a y and a prefix contains neither.
func PrefixOf(letter byte, n uint64) string {
	const digits = "0123456789bcdfghjklmnpqrstvwxz"
	b := []byte(Placeholder)
	for i := len(b) - 2; i > 0; i-- {
		b[i] = digits[n%uint64(len(digits))]
		n /= uint64(len(digits))
	}
	b[0], b[len(b)-1] = letter+byte(n%26), '.'
	return string(b)
}

// UnusedNames returns the number of the first prefix to use on a server that cannot be restarted and may still have
// names of earlier runs. The number depends on the current time and grows faster than a run uses prefixes.
func UnusedNames() uint64 { return uint64(time.Now().UnixMicro() / 100) }

// Nth returns the prefix of the i-th of the inputs that join combines.
func Nth(i int) string { return fmt.Sprintf("z%0*x.", len(Placeholder)-2, i) }
