package mutants

import (
	"bytes"
	"encoding/binary"
	"strings"

	"jobwire/codec"
	"jobwire/refpeer/gearman"
)

type (
	program = gearman.Program
	task    = gearman.Task
)

// sequences are all that a program sends.
func sequences(p *program) []*gearman.Sequence {
	return []*gearman.Sequence{&p.Option, &p.Submit, &p.Status, &p.Echo, &p.Enter, &p.Ask, &p.Sleep, &p.Tell, &p.End}
}

// change puts other steps in the place of those that send a message of the type.
func change(typ string, with func(gearman.Step) []gearman.Step) func(*program) {
	return func(p *program) {
		for _, s := range sequences(p) {
			var out gearman.Sequence
			for _, st := range *s {
				if name, _, _ := strings.Cut(st.Do, " "); name == typ {
					out = append(out, with(st)...)
				} else {
					out = append(out, st)
				}
			}
			*s = out
		}
	}
}

// says sends something else under the same condition.
func says(typ, do string) func(*program) {
	return change(typ, func(st gearman.Step) []gearman.Step {
		st.Do = do
		return []gearman.Step{st}
	})
}

// before sends something else first, and behind it the message.
func before(typ, do string) func(*program) {
	return change(typ, func(st gearman.Step) []gearman.Step { return []gearman.Step{{Do: do, If: st.If}, st} })
}

// behind sends something else behind the message.
func behind(typ, do string) func(*program) {
	return change(typ, func(st gearman.Step) []gearman.Step { return []gearman.Step{st, {Do: do, If: st.If}} })
}

// raw alters the bytes of a message.
func raw(typ string, edit func(b []byte) []byte) func(*program) {
	return change(typ, func(st gearman.Step) []gearman.Step {
		st.Raw = func(_ *task, b []byte) []byte { return edit(b) }
		return []gearman.Step{st}
	})
}

// header is the length of a packet's header; at lengthAt stands the length of what follows.
const (
	header   = 12
	lengthAt = 8
)

// data alters what stands behind the header of a message, whose length stays right.
func data(typ string, edit func(b []byte) []byte) func(*program) {
	return raw(typ, func(b []byte) []byte {
		d := edit(b[header:])
		binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(d)))
		return append(b[:header:header], d...)
	})
}

// joined takes the first NUL away.
func joined(b []byte) []byte { return bytes.Replace(b, []byte{0}, nil, 1) }

func nulBehind(b []byte) []byte { return append(b, 0) }

// heard alters messages that have come, by their types.
func heard(edit func(args [][]byte), types ...string) func(*program) {
	return func(p *program) {
		p.Heard = func(m *codec.Message) error {
			for _, t := range types {
				if m.Type.Name == t {
					edit(m.Args)
				}
			}
			return nil
		}
	}
}

func last(edit func([]byte) []byte) func([][]byte) {
	return func(args [][]byte) { args[len(args)-1] = edit(args[len(args)-1]) }
}

func first(edit func([]byte) []byte) func([][]byte) {
	return func(args [][]byte) { args[0] = edit(args[0]) }
}

// toNUL ends a value at its first NUL, as strings of C do.
func toNUL(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{0})
	return b
}

// upTo cuts a value.
func upTo(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:min(n, len(b))] } }
