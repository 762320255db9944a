package triage

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/internal/reduce"
)

// minimizer reduces an input while the fault still appears: it removes connections, steps, arguments and bytes.
type minimizer struct {
	best  *input.Input
	holds func(*input.Input) bool
	start time.Time
	tries int

	budget time.Duration
	proto  *codec.Protocol
	stop   func() bool // reports whether to end early; nil: the minimizer does not end early

	// fewest is called once, with an input from which no message can be removed. It may be nil.
	fewest func(*input.Input)
}

// Minimize returns the smallest input that it finds within a budget and for which holds is true, beginning with in.
func Minimize(p *codec.Protocol, in *input.Input, budget time.Duration, stop func() bool,
	holds func(*input.Input) bool) *input.Input {
	m := &minimizer{best: in, holds: holds, stop: stop, budget: budget, proto: p}
	return m.minimize()
}

// Limits in addition to the budget. On a busy machine, the minimizer exceeds its budget until it has made reducedTries
// attempts or has used reducedRuns times the budget.
const (
	reducedTries = 100
	reducedRuns  = 4
)

// late reports whether the minimization must end: the run ends, or the time budget is used up and enough reductions
// were tried. It ends in any case after reducedRuns budgets.
func (m *minimizer) late() bool {
	if m.stop != nil && m.stop() {
		return true
	}
	over := time.Since(m.start)
	return over > m.budget && (m.tries >= reducedTries || over > reducedRuns*m.budget)
}

// try makes in the best input if it differs from the best input and the fault appears with in. It reports whether it
// has done so.
func (m *minimizer) try(in *input.Input) bool {
	if m.late() || len(in.Steps) == 0 || in.Equal(m.best) {
		return false
	}
	if m.tries++; !m.holds(in) {
		return false
	}
	m.best = in
	return true
}

// change applies a change to a copy of the best input and tries the copy.
func (m *minimizer) change(change func(in *input.Input)) bool {
	in := m.best.Clone()
	change(in)
	return m.try(in)
}

// minimize returns the smallest input that it finds within its budget.
func (m *minimizer) minimize() *input.Input {
	m.start = time.Now()
	m.waits() // shorten the pauses first, because each attempt takes as long as they do
	m.noPipelining()
	m.order(1) // try other orders later, when few steps are left
	m.plain()
	for before := -1; before != m.best.Size() && !m.late(); {
		before = m.best.Size()
		m.connections()
		reduce.List(m.best.Steps, m.late, m.takes)
		m.merge()
		if m.fewest != nil {
			m.fewest(m.best)
			m.fewest = nil
		}
		m.joinRaw()
		m.rename()
		m.types()
		m.waits()
		m.values()
		m.removeRaw()
		m.order(12)
		if before == m.best.Size() && len(m.best.Steps) <= 12 {
			reduce.Pairs(m.best.Steps, m.late, m.takes)
		}
	}
	return m.best
}

// noPipelining tries to send the messages without pipelining.
func (m *minimizer) noPipelining() {
	if m.best.Mode != input.Burst {
		m.change(func(in *input.Input) { in.Mode = input.OneByOne })
	}
}

// order tries to send the messages of a burst one after the other. If the input has at most most steps, it also tries
// to swap each pair of steps.
func (m *minimizer) order(most int) {
	if m.best.Mode != input.Burst {
		return
	}
	in := m.best.Clone()
	in.Mode = input.OneByOne
	if m.try(in) || m.change(func(in *input.Input) { in.Mode = input.Joined }) || len(in.Steps) > most {
		return
	}
	for i := range in.Steps {
		for k := i + 1; k < len(in.Steps) && m.best.Mode == input.Burst; k++ {
			m.change(func(d *input.Input) {
				d.Mode = input.OneByOne
				d.Steps[i], d.Steps[k] = d.Steps[k], d.Steps[i]
			})
		}
	}
}

// connections tries to remove each connection with its steps.
func (m *minimizer) connections() {
	for conn := m.best.Conns() - 1; conn >= 0; conn-- {
		in := m.best.Clone()
		in.Steps = slices.DeleteFunc(in.Steps, func(s input.Step) bool { return s.Conn == conn })
		for i := range in.Steps {
			if in.Steps[i].Conn > conn {
				in.Steps[i].Conn--
			}
		}
		if len(in.Steps) < len(m.best.Steps) {
			m.try(in)
		} else {
			m.best = in // the connection has no steps, so no attempt is needed
		}
	}
}

// takes tries other steps and reports whether the fault still appears.
func (m *minimizer) takes(steps []input.Step) bool {
	return m.change(func(in *input.Input) { in.Steps = steps })
}

// merge tries to move the steps of each connection to the connection with the previous number.
func (m *minimizer) merge() {
	for conn := m.best.Conns() - 1; conn > 0; conn-- {
		m.change(func(in *input.Input) {
			for i := range in.Steps {
				if in.Steps[i].Conn >= conn {
					in.Steps[i].Conn--
				}
			}
		})
	}
}

// joinRaw tries to combine adjacent steps with raw bytes on the same connection.
func (m *minimizer) joinRaw() {
	for i := 0; i+1 < len(m.best.Steps); i++ {
		a, b := &m.best.Steps[i], &m.best.Steps[i+1]
		if a.Verb == transcript.Raw && b.Verb == transcript.Raw && a.Conn == b.Conn {
			m.change(func(in *input.Input) {
				in.Steps[i].Bytes = slices.Concat(a.Bytes, b.Bytes)
				in.Steps = slices.Delete(in.Steps, i+1, i+2)
			})
		}
	}
}

// rename tries to remove the placeholder from the names, and to replace values that occur several times with one
// letter.
func (m *minimizer) rename() {
	m.replace(func(v []byte) []byte { return bytes.ReplaceAll(v, []byte(input.Placeholder), nil) })
	uses := map[string]int{}
	for i := range m.best.Steps {
		for _, a := range m.best.Steps[i].Args {
			uses[string(a.Value)]++
		}
	}
	short := byte('a')
	for _, long := range slices.Sorted(maps.Keys(uses)) {
		if len(long) < 2 || uses[long] < 2 {
			continue
		}
		for uses[string(short)] > 0 && short < 'z' {
			short++
		}
		name := []byte{short}
		if m.replace(func(v []byte) []byte {
			if string(v) == long {
				return name
			}
			return v
		}) {
			uses[string(short)] = uses[long]
		}
	}
}

// plain tries to replace all unusual values at once, because few failures need one of them: numbers greater than 1 with
// 1, and long texts and texts with special characters with letters. Equal values remain equal.
func (m *minimizer) plain() {
	letters := map[string][]byte{}
	m.change(func(in *input.Input) {
		for i := range in.Steps {
			s := &in.Steps[i]
			for k := range s.Args {
				a, f := &s.Args[k], s.Type.FieldAt(k)
				if f == nil || a.Of > 0 || a.Now || f.Width > 0 {
					continue
				}
				if n, ok := codec.ParseNumber(a.Value); ok && (f.Kind == codec.Number || f.Kind == codec.Signed) {
					if n > 1 {
						a.Value = []byte("1")
					}
				} else if isUnusualText(f, a.Value) {
					v := string(a.Value)
					if letters[v] == nil {
						letters[v] = []byte{'a' + byte(len(letters)%26)}
					}
					a.Value = letters[v]
				}
			}
		}
	})
}

// replace tries to replace every value with the result of a function.
func (m *minimizer) replace(with func(v []byte) []byte) bool {
	return m.change(func(in *input.Input) {
		for i := range in.Steps {
			for k := range in.Steps[i].Args {
				a := &in.Steps[i].Args[k]
				a.Value = with(a.Value)
			}
		}
	})
}

// types tries to replace each message with a message of a simpler type.
func (m *minimizer) types() {
	for i := range m.best.Steps {
		for _, in := range withSimplerType(m.proto, m.best, i) {
			if m.try(in) {
				break
			}
		}
	}
}

// withSimplerType returns the input with a message of a simpler type at step i, for each such type. A type is simpler
// if its name is the beginning of the other name, as SUBMIT_JOB is the beginning of SUBMIT_JOB_BG.
func withSimplerType(p *codec.Protocol, in *input.Input, i int) (all []*input.Input) {
	s := &in.Steps[i]
	for _, t := range p.Types {
		if s.Type == nil || t.Req&s.Type.Req == 0 || !strings.HasPrefix(s.Type.Name, t.Name+"_") {
			continue
		}
		d := in.Clone()
		d.Steps[i].Type, d.Steps[i].Args = t, nil
		for k := range t.NumArgs() {
			d.Steps[i].Args = append(d.Steps[i].Args, fieldArg(s, t.FieldAt(k).Name))
		}
		all = append(all, d)
	}
	return all
}

// fieldArg returns the argument of a step for the field with the given name, or an empty Arg if there is none.
func fieldArg(s *input.Step, label string) input.Arg {
	for i := range s.Args {
		if f := s.Type.FieldAt(i); f != nil && f.Name == label {
			return s.Args[i]
		}
	}
	return input.Arg{}
}

// waits tries to halve the length of each wait until it is at most 20 ms.
func (m *minimizer) waits() {
	for i := range m.best.Steps {
		for m.best.Steps[i].Verb == transcript.Nothing && m.best.Steps[i].For > 20*time.Millisecond {
			if !m.change(func(in *input.Input) { in.Steps[i].For /= 2 }) {
				break
			}
		}
	}
}

// values tries to make arguments shorter and simpler.
func (m *minimizer) values() {
	for i := range m.best.Steps {
		for k := range m.best.Steps[i].Args {
			if m.late() {
				return
			}
			m.value(i, k)
		}
		if m.best.Steps[i].CRLF {
			m.change(func(in *input.Input) { in.Steps[i].CRLF = false })
		}
	}
}

// value tries to simplify one argument of a step: a literal instead of a reference to a reply, zero bytes, 0 or 1 for
// numbers, and fewer and simpler bytes.
func (m *minimizer) value(i, k int) {
	with := func(v []byte) bool {
		return m.change(func(in *input.Input) { in.Steps[i].Args[k] = input.Arg{Value: v} })
	}
	a := m.best.Steps[i].Args[k]
	if a.Of > 0 {
		if !with([]byte("1")) {
			m.source(i, k)
			return
		}
		a = m.best.Steps[i].Args[k]
	}
	f := m.best.Steps[i].Type.FieldAt(k)
	if f != nil && f.Width > 0 {
		if zero := make([]byte, len(a.Value)); !bytes.Equal(zero, a.Value) {
			with(zero)
		}
		return
	}
	if f != nil && (f.Kind == codec.Number || f.Kind == codec.Signed) {
		if v := string(a.Value); v != "0" && !with([]byte("0")) && v != "1" {
			with([]byte("1"))
		}
		return
	}
	reduce.Bytes(a.Value, m.late, with)
}

// source tries to take a value that the server chose from the reply to an earlier step, so that the original step can
// be removed.
func (m *minimizer) source(i, k int) {
	for at := range i {
		if s := &m.best.Steps[at]; s.ID == m.best.Steps[i].Args[k].Of {
			return
		} else if s.Verb == transcript.Send {
			if m.change(func(in *input.Input) { in.Steps[i].Args[k].Of = s.ID }) {
				return
			}
		}
	}
}

// removeRaw tries to replace steps with raw bytes with messages, or otherwise to shorten the bytes.
func (m *minimizer) removeRaw() {
	for i := range m.best.Steps {
		if m.best.Steps[i].Verb != transcript.Raw {
			continue
		}
		if m.asMessage(i) {
			continue
		}
		reduce.List(m.best.Steps[i].Bytes, m.late, func(b []byte) bool { return m.change(func(in *input.Input) { in.Steps[i].Bytes = b }) })
		m.asMessage(i)
	}
}

// asMessage tries to replace raw bytes with the message that the codec decodes from them without checking rules.
func (m *minimizer) asMessage(i int) bool {
	s := &m.best.Steps[i]
	var f codec.Frame
	var msg codec.Message
	n, err := m.proto.NewSession(codec.Options{WaiveAll: true}).Decode(codec.Peer, s.Bytes, &f)
	if err != nil || n != len(s.Bytes) || f.Type == nil || f.Type.Does == codec.Shutdown {
		return false
	}
	f.Message(&msg)
	step := input.Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Send, Type: msg.Type, CRLF: msg.CRLF}
	for _, a := range msg.Args {
		step.Args = append(step.Args, input.Arg{Value: slices.Clone(a)})
	}
	return m.change(func(in *input.Input) { in.Steps[i] = step })
}
