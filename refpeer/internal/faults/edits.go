package faults

import (
	"bytes"
	"encoding/binary"
	"strings"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

// Editor makes edits of programs P whose tasks are of type T.
type Editor[P, T any] struct {
	Sequences func(*P) []*line.Sequence[T] // all sequences of a program
	Quirks    func(*P) *line.Quirks
	Header    int // length of a packet's header in bytes
	LengthAt  int // offset of the four bytes in the header that contain the length of the rest
}

// Change replaces the steps that send a message of the type by other steps.
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

// SendInstead sends another message instead, under the same condition.
func (e Editor[P, T]) SendInstead(typ, do string) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] {
		st.Do = do
		return []line.Step[T]{st}
	})
}

// Before sends another message before each message of the type.
func (e Editor[P, T]) Before(typ, do string) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] { return []line.Step[T]{{Do: do, If: st.If}, st} })
}

// After sends another message after each message of the type.
func (e Editor[P, T]) After(typ, do string) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] { return []line.Step[T]{st, {Do: do, If: st.If}} })
}

// Raw changes the bytes of a message.
func (e Editor[P, T]) Raw(typ string, edit func(b []byte) []byte) func(*P) {
	return e.Change(typ, func(st line.Step[T]) []line.Step[T] {
		st.Raw = func(_ *T, b []byte) []byte { return edit(b) }
		return []line.Step[T]{st}
	})
}

// Data changes the bytes after the header of a message, and sets the length in the header.
func (e Editor[P, T]) Data(typ string, edit func(b []byte) []byte) func(*P) {
	return e.Raw(typ, func(b []byte) []byte {
		d := edit(b[e.Header:])
		binary.BigEndian.PutUint32(b[e.LengthAt:], uint32(len(d)))
		return append(b[:e.Header:e.Header], d...)
	})
}

// EditReceived changes the arguments of received messages of the types.
func (e Editor[P, T]) EditReceived(edit func(args [][]byte), types ...string) func(*P) {
	return func(p *P) {
		e.Quirks(p).Edit = func(m *codec.Message) error {
			for _, t := range types {
				if m.Type.Name == t {
					edit(m.Args)
				}
			}
			return nil
		}
	}
}

// Has returns a function that applies edit to the quirks of a program, its deviations from a correct client or worker.
func (e Editor[P, T]) Has(edit func(*line.Quirks)) func(*P) {
	return func(p *P) { edit(e.Quirks(p)) }
}

// Last changes the last argument of a message.
func Last(edit func([]byte) []byte) func([][]byte) {
	return func(args [][]byte) { args[len(args)-1] = edit(args[len(args)-1]) }
}

// First changes the first argument of a message, if there is one.
func First(edit func([]byte) []byte) func([][]byte) {
	return func(args [][]byte) {
		if len(args) > 0 {
			args[0] = edit(args[0])
		}
	}
}

// WithoutFirstNUL removes the first NUL.
func WithoutFirstNUL(b []byte) []byte { return bytes.Replace(b, []byte{0}, nil, 1) }

// AppendNUL appends a NUL.
func AppendNUL(b []byte) []byte { return append(b, 0) }

// ToNUL truncates a value at its first NUL, as C strings are.
func ToNUL(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{0})
	return b
}

// UpTo truncates a value to n bytes.
func UpTo(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:min(n, len(b))] } }

// Null replaces an empty value by the word null.
func Null(b []byte) []byte {
	if len(b) == 0 {
		return []byte("null")
	}
	return b
}
