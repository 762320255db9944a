package gen

import (
	"math"
	"strconv"
	"strings"

	"jobwire/codec"
)

// examples returns values that peers commonly send in a field, or nil. Messages that use these few values refer to the
// same objects.
func examples(f *codec.Field) []string {
	if f.Examples != nil {
		return f.Examples
	}
	switch f.Means {
	case codec.Queue:
		return []string{"a", "b", "c"}
	case codec.UniqueID:
		return []string{"", "u", "v"}
	case codec.JobID:
		return []string{"1", "2", "3"}
	case codec.Delay:
		return []string{"0", "0", "1"}
	case codec.TimeLimit, codec.Timeout:
		return []string{"0", "1", "1000"}
	}
	return nil
}

// value generates the value of a field that carries an argument.
func (m *messageGenerator) value(f *codec.Field) []byte {
	if len(f.Values) > 0 {
		return []byte(oneOf(m, f.Values))
	}
	if all := examples(f); all != nil && (m.o.Safe || f.Only || m.r.IntN(2) == 0) {
		if v := []byte(oneOf(m, all)); m.fits(f, v) {
			return v
		}
	}
	switch f.Kind {
	case codec.Number:
		return strconv.AppendUint(nil, m.number(f.Lo, f.Hi), 10)
	case codec.Signed:
		return strconv.AppendInt(nil, m.signed(), 10)
	case codec.Uint:
		hi := f.Hi
		if hi == 0 {
			hi = math.MaxUint64 >> (64 - 8*f.Width)
		}
		return BigEndian(f.Width, m.number(f.Lo, hi))
	}
	for {
		if v := m.text(f); m.fits(f, v) {
			return v
		}
	}
}

func oneOf(m *messageGenerator, all []string) string { return all[m.r.IntN(len(all))] }

// number returns a number from lo to hi, usually one near lo, near hi, or as far from lo as a limit of an integer type;
// with Safe always near lo. If hi is 0, the number has no upper limit.
func (m *messageGenerator) number(lo, hi uint64) uint64 {
	if hi == 0 {
		hi = math.MaxUint64
	}
	offset := uint64(m.r.IntN(4))
	if !m.o.Safe {
		switch m.r.IntN(4) {
		case 0: // near hi
			offset = hi - lo - offset
		case 1:
			offset = limit(m.r)
		}
	}
	if offset > hi-lo {
		offset %= hi - lo + 1
	}
	return lo + offset
}

// signed generates a signed number, often one near the limits of 64 bits. One in three is negative.
func (m *messageGenerator) signed() int64 {
	n := m.number(0, math.MaxInt64)
	if m.r.IntN(3) == 0 {
		return -int64(n)
	}
	if n == math.MaxInt64 && m.r.IntN(2) == 0 {
		return math.MinInt64
	}
	return int64(n)
}

// maxLen returns the maximum length of a field's value in bytes. Data may be longer than a field in a line.
func (m *messageGenerator) maxLen(f *codec.Field) int {
	switch {
	case f.Max > 0:
		return f.Max
	case m.msgType.End != "" && !m.sized || f.Kind == codec.Text:
		return m.o.MaxLine
	}
	return m.o.MaxData
}

// text generates bytes whose length and content often reveal errors: lengths near limits, random bytes and special
// characters. With Safe, it generates short lower-case words, or characters of f.Chars.
func (m *messageGenerator) text(f *codec.Field) []byte {
	maxLen := m.maxLen(f)
	n := 1 + m.r.IntN(8)
	if !m.o.Safe {
		switch m.r.IntN(16) {
		case 0:
			n = 0
		case 1: // at the limit
			n = maxLen - m.r.IntN(2)
		case 2:
			n = length(m.r, maxLen)
		}
	}
	if f.Width > 0 {
		n = f.Width
	} else {
		n = min(n, maxLen)
	}
	v := make([]byte, n)
	binary := m.r.IntN(2) == 0 && !m.o.Safe
	for i := range v {
		switch {
		case f.Chars != "":
			v[i] = f.Chars[m.r.IntN(len(f.Chars))]
		case binary:
			v[i] = byte(m.r.Uint32())
		default:
			v[i] = 'a' + byte(m.r.IntN(26))
		}
	}
	if n > 0 && !m.o.Safe && m.r.IntN(8) == 0 {
		v[m.r.IntN(n)] = "\x00\r\n \t.:\"\\$*#\xff"[m.r.IntN(13)]
	}
	return v
}

// fits reports whether the field of the message type may contain the value.
func (m *messageGenerator) fits(f *codec.Field, v []byte) bool {
	s, end := string(v), f.Term
	if end == "" && f.Width == 0 {
		end = m.msgType.Sep
	}
	switch {
	case !f.Legal(v, &codec.Options{}), f.Kind == codec.Text && end != "" && strings.Contains(s, end):
		return false
	case m.msgType.End == "" || m.sized:
		return true
	case f.Term != "" && f.Kind == codec.Opaque && strings.HasSuffix(s, f.Term[:1]):
		return false
	}
	return !strings.ContainsAny(s, "\r\n") && !strings.HasPrefix(s, "\x00") &&
		(m.msgType.Stop == "" || s != m.msgType.Stop)
}
