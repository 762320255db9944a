package faults

import (
	"bytes"
	"encoding/binary"
	"strings"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

// Editor makes edits of programs P that are about tasks T.
type Editor[P, T any] struct {
	Sequences func(*P) []*line.Sequence[T] // all that a program sends
	Habits    func(*P) *line.Habits
	Header    int // length of a packet's header
	LengthAt  int // where in it the length of what follows stands, four bytes
}

// Change puts other steps in the place of those that send a message of the type.
func (e Editor[P, T]) Change(typ string, with func(line.Step[T]) []line.Step[T]) func(*P) {
	return func(p *P) {
		for _, s := range e.Sequences(p) {
			var out line.Sequence[T]
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

// Says sends something else under the same condition.
func (e Editor[P, T]) Says(typ, do string) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] {
		st.Do = do
		return []line.Step[T]{st}
	})
}

// Before sends another message before the message.
func (e Editor[P, T]) Before(typ, do string) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] { return []line.Step[T]{{Do: do, If: st.If}, st} })
}

// After sends another message after the message.
func (e Editor[P, T]) After(typ, do string) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] { return []line.Step[T]{st, {Do: do, If: st.If}} })
}

// Raw alters the bytes of a message.
func (e Editor[P, T]) Raw(typ string, edit func(b []byte) []byte) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] {
		st.Raw = func(_ *T, b []byte) []byte { return edit(b) }
		return []line.Step[T]{st}
	})
}

// Data changes what follows the header of a message, and the length in the header.
func (e Editor[P, T]) Data(typ string, edit func(b []byte) []byte) func(*P) {
	return e.Raw(typ, func(b []byte) []byte {
		d := edit(b[e.Header:])
		binary.BigEndian.PutUint32(b[e.LengthAt:], uint32(len(d)))
		return append(b[:e.Header:e.Header], d...)
	})
}

// Heard alters messages that have come, by their types.
func (e Editor[P, T]) Heard(edit func(args [][]byte), types ...string) func(*P) {
	return func(p *P) {
		e.Habits(p).Heard = func(m *codec.Message) error {
			for _, t := range types {
				if m.Type.Name == t {
					edit(m.Args)
				}
			}
			return nil
		}
	}
}

// Has alters the habits of a program.
func (e Editor[P, T]) Has(edit func(*line.Habits)) func(*P) {
	return func(p *P) { edit(e.Habits(p)) }
}

// Last alters the last argument of a message.
func Last(edit func([]byte) []byte) func([][]byte) {
	return func(args [][]byte) { args[len(args)-1] = edit(args[len(args)-1]) }
}

// First alters the first one, if there is any.
func First(edit func([]byte) []byte) func([][]byte) {
	return func(args [][]byte) {
		if len(args) > 0 {
			args[0] = edit(args[0])
		}
	}
}

// Joined takes the first NUL away.
func Joined(b []byte) []byte { return bytes.Replace(b, []byte{0}, nil, 1) }

// NULBehind puts one at the end.
func NULBehind(b []byte) []byte { return append(b, 0) }

// ToNUL ends a value at its first NUL, as strings of C do.
func ToNUL(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{0})
	return b
}

// UpTo cuts a value.
func UpTo(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:min(n, len(b))] } }

// Null makes a word of an empty value.
func Null(b []byte) []byte {
	if len(b) == 0 {
		return []byte("null")
	}
	return b
}
