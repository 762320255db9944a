package gen

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"

	"jobwire/codec"
)

// Mutate returns a mutated copy of raw. f is the decoded message, or nil if raw cannot be decoded. If f is not nil,
// Mutate usually changes fields, otherwise bytes. The result may be legal, and it is seldom equal to raw.
func Mutate(r *rand.Rand, p *codec.Protocol, raw []byte, f *codec.Frame) []byte {
	for range 3 {
		if b := mutate(r, p, raw, f); !bytes.Equal(b, raw) {
			return b
		}
	}
	return slices.Clone(raw)
}

// mutate applies one mutation of fields, if the message can be decoded, or up to three mutations of bytes, or both. The
// result may be equal to raw.
func mutate(r *rand.Rand, p *codec.Protocol, raw []byte, f *codec.Frame) []byte {
	b := slices.Clone(raw)
	if f != nil && len(f.Spans) > 0 && r.IntN(4) > 0 {
		m := fieldMutator{r: r, p: p, f: f}
		b = m.mutate()
		if r.IntN(3) > 0 {
			return b
		}
	}
	for range 1 << r.IntN(3) / 2 {
		b = byteMutators[r.IntN(len(byteMutators))](r, b)
	}
	return byteMutators[r.IntN(len(byteMutators))](r, b)
}

// byteMutators are mutations of bytes without regard to their meaning.
var byteMutators = []func(r *rand.Rand, b []byte) []byte{
	func(r *rand.Rand, b []byte) []byte { // change a bit
		if len(b) > 0 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		return b
	},
	func(r *rand.Rand, b []byte) []byte { // replace a byte with one that has a meaning in some protocol
		if len(b) > 0 {
			b[r.IntN(len(b))] = specialBytes[r.IntN(len(specialBytes))]
		}
		return b
	},
	func(r *rand.Rand, b []byte) []byte { // insert such a byte, up to four times
		at := r.IntN(len(b) + 1)
		return slices.Insert(b, at, bytes.Repeat([]byte{specialBytes[r.IntN(len(specialBytes))]}, 1+r.IntN(4))...)
	},
	func(r *rand.Rand, b []byte) []byte { // truncate
		return b[:r.IntN(len(b)+1)]
	},
	func(r *rand.Rand, b []byte) []byte { // remove a part
		at, end := part(r, b)
		return slices.Delete(b, at, end)
	},
	func(r *rand.Rand, b []byte) []byte { // repeat a part, once or many times
		at, end := part(r, b)
		n := 1
		if r.IntN(4) == 0 {
			n = 1 << r.IntN(8)
		}
		return slices.Insert(b, end, bytes.Repeat(b[at:end], min(n, 1+(16<<10)/(end-at+1)))...)
	},
	func(r *rand.Rand, b []byte) []byte { // copy a part to another place
		at, end := part(r, b)
		return slices.Insert(b, r.IntN(len(b)+1), slices.Clone(b[at:end])...)
	},
	func(r *rand.Rand, b []byte) []byte { // change a binary number
		if len(b) >= 4 {
			at := r.IntN(len(b) - 3)
			binary.BigEndian.PutUint32(b[at:], uint32(bound(r, uint64(binary.BigEndian.Uint32(b[at:])))))
		}
		return b
	},
}

// specialBytes are bytes that end, separate or begin a part of a message in some protocol.
const specialBytes = "\x00\x01\x7f\x80\xff\r\n \t.:-+*$0129\"'\\"

// part returns a random range of bytes, usually a short one.
func part(r *rand.Rand, b []byte) (at, end int) {
	at = r.IntN(len(b) + 1)
	return at, at + r.IntN(min(len(b)-at, 1<<r.IntN(8))+1)
}

// bound returns a number next to n, or at the limit of an integer type.
func bound(r *rand.Rand, n uint64) uint64 {
	switch r.IntN(4) {
	case 0:
		return n + 1
	case 1:
		return n - 1
	}
	return limit(r)
}

// fieldMutator changes the fields of a message.
type fieldMutator struct {
	r *rand.Rand
	p *codec.Protocol
	f *codec.Frame
}

// fieldBytes contains the bytes of one field: the value and the framing around it.
type fieldBytes struct {
	before, value, after []byte
}

// mutate returns the message with one field removed, repeated, without the framing after it, or with another value. In
// most cases it corrects the length fields before it, so that the server reads the message to its end.
func (m *fieldMutator) mutate() []byte {
	f, parts := m.f, make([]fieldBytes, len(m.f.Spans))
	for i := range parts {
		all, s := f.SpanBytes(i), &f.Spans[i]
		head := len(all) - (s.Next - s.Off)
		parts[i] = fieldBytes{all[:head], all[head : head+s.End-s.Off], all[head+s.End-s.Off:]}
	}
	i := m.r.IntN(len(parts))
	if m.r.IntN(2) == 0 && f.Head < len(parts) {
		i = f.Head + m.r.IntN(len(parts)-f.Head)
	}
	at := &parts[i]
	was := len(at.value)
	grown := 0
	switch m.r.IntN(10) {
	case 0: // remove the field
		grown = -len(at.before) - was - len(at.after)
		*at = fieldBytes{}
	case 1: // repeat the field, once or many times
		n := 1
		if m.r.IntN(4) == 0 {
			n = 1 << m.r.IntN(8)
		}
		whole := slices.Concat(at.before, at.value, at.after)
		at.after = slices.Concat(at.after, bytes.Repeat(whole, min(n, 1+(16<<10)/(len(whole)+1))))
		grown = len(at.after) + len(at.before) + was - len(whole)
	case 2: // use the value of another field
		at.value = parts[m.r.IntN(len(parts))].value
		grown = len(at.value) - was
	case 3: // remove the framing after the value
		grown = -len(at.after)
		at.after = nil
	default:
		at.value = m.value(f.Spans[i].Field, at.value)
		grown = len(at.value) - was
	}
	if grown != 0 && m.r.IntN(3) > 0 && f.Spans[i].Field.Kind != codec.Length {
		for k := i - 1; k >= 0; k-- {
			if fd := f.Spans[k].Field; fd.Kind == codec.Length {
				parts[k].value = lengthPlus(fd, parts[k].value, grown)
				break
			}
		}
	}
	var b []byte
	for _, r := range parts {
		b = append(append(append(b, r.before...), r.value...), r.after...)
	}
	return b
}

// lengthPlus returns the length v plus grown, in the encoding of the length field fd. It returns v if v is not a
// number.
func lengthPlus(fd *codec.Field, v []byte, grown int) []byte {
	if fd.Width > 0 {
		return BigEndian(fd.Width, codec.BigEndian(v)+uint64(grown))
	}
	if n, ok := codec.ParseNumber(v); ok {
		return strconv.AppendInt(nil, max(0, int64(n)+int64(grown)), 10)
	}
	return v
}

// BigEndian encodes a number in big-endian order with the given number of bytes.
func BigEndian(width int, n uint64) []byte {
	v := binary.BigEndian.AppendUint64(make([]byte, width), n)
	return v[len(v)-width:]
}

// value returns another value for a field, legal or illegal.
func (m *fieldMutator) value(fd *codec.Field, v []byte) []byte {
	if fd.Kind != codec.Code {
		return Value(m.r, fd, v)
	}
	t := m.p.Types[m.r.IntN(len(m.p.Types))]
	switch {
	case fd.Width > 0 && m.r.IntN(2) == 0:
		return BigEndian(fd.Width, uint64(t.Code))
	case fd.Width > 0:
		return BigEndian(fd.Width, bound(m.r, codec.BigEndian(v)))
	case m.r.IntN(4) > 0:
		return []byte(t.Word)
	}
	return swapCase(m.r, v)
}

// Value returns another value for a field, legal or not. fd is nil for an argument that does not belong to a field.
func Value(r *rand.Rand, fd *codec.Field, v []byte) []byte {
	if fd == nil {
		fd = new(codec.Field)
	}
	switch {
	case fd.Width > 0 && fd.Kind != codec.Text && fd.Kind != codec.Literal:
		return BigEndian(fd.Width, bound(r, codec.BigEndian(v)))
	case fd.Kind == codec.Number || fd.Kind == codec.Signed || fd.Kind == codec.Length:
		return decimal(r, fd, v)
	case r.IntN(4) == 0 && fd.Max > 0:
		return bytes.Repeat([]byte{'x'}, fd.Max-1+r.IntN(3))
	case r.IntN(4) == 0 && examples(fd) != nil:
		all := examples(fd)
		return []byte(all[r.IntN(len(all))])
	case r.IntN(8) == 0:
		return bytes.Repeat([]byte{"x\x00 \xff%"[r.IntN(5)]}, length(r, 8193))
	case r.IntN(8) == 0:
		return nil
	}
	return byteMutators[r.IntN(len(byteMutators))](r, slices.Clone(v))
}

// decimal returns a number at a limit, or a text that only some parsers accept as a number.
func decimal(r *rand.Rand, fd *codec.Field, v []byte) []byte {
	n, _ := codec.ParseNumber(v)
	switch r.IntN(8) {
	case 0:
		return slices.Concat([]byte{"-+0 "[r.IntN(4)]}, v)
	case 1:
		return append(slices.Clone(v), "0 .x\x00"[r.IntN(5)])
	case 2:
		return []byte([]string{"", "-", "-0", "0x10", "1e3", "-1", "18446744073709551616", "99999999999999999999999",
			"\xb2"}[r.IntN(9)])
	case 3:
		return strconv.AppendUint(nil, fd.Lo-1+uint64(r.IntN(2)), 10)
	case 4:
		return strconv.AppendUint(nil, fd.Hi+uint64(r.IntN(2)), 10)
	}
	return strconv.AppendUint(nil, bound(r, n), 10)
}

// swapCase changes the letter case of some letters.
func swapCase(r *rand.Rand, v []byte) []byte {
	v = slices.Clone(v)
	for i, c := range v {
		if (c|0x20) >= 'a' && (c|0x20) <= 'z' && r.IntN(2) == 0 {
			v[i] ^= 0x20
		}
	}
	return v
}
