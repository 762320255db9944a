package pcap

import (
	"fmt"
	"strconv"

	"jobwire/codec"
)

// The rows of packets as [transcript.Printer] sets them, by tables: where a capture is
// large they are most of the work. Text, broken messages and colour are left to the
// printer; a test holds both to the same output.

const (
	rowBytes    = 8
	textColumn  = 27
	labelColumn = 40
)

var (
	hexOf    [256][2]byte
	escapeOf [256]string // "" for bytes that stand for themselves
	blanks   = fmt.Sprintf("%*s", labelColumn, "")
)

func init() {
	for i := range 256 {
		hexOf[i] = [2]byte{hexDigits[i>>4], hexDigits[i&15]}
		if i < ' ' || i > '~' {
			escapeOf[i] = fmt.Sprintf(`\x%02x`, i)
		}
	}
	for c, s := range map[byte]string{0: `\0`, '\t': `\t`, '\n': `\n`, '\r': `\r`, '\\': `\\`} {
		escapeOf[c] = s
	}
}

// labelKey is a field in a row, which share a label.
type labelKey struct {
	t  *codec.Type
	fd *codec.Field
}

// label returns a field's label, with its parentheses.
func (l *Listing) label(t *codec.Type, fd *codec.Field) string {
	key := labelKey{nil, fd}
	if fd.Kind == codec.Code {
		key.t = t
	}
	s, ok := l.labels[key]
	if !ok {
		if s = "(" + fd.Name + ")"; fd.Kind == codec.Code {
			s = "(" + fd.Name + ": " + t.Name + ")"
		}
		if len(l.labels) < maxWords {
			l.labels[key] = s
		}
	}
	return s
}

// packet appends the rows of a packet.
func (l *Listing) packet(dst []byte, f *codec.Frame) []byte {
	at := 0
	for i := range f.Spans {
		s := &f.Spans[i]
		b := f.Raw[at:s.Next]
		at = s.Next
		if len(b) == 0 {
			continue
		}
		label := l.label(f.Type, s.Field)
		if len(b) <= 8 && s.Field.Width > 0 && s.Field.Width <= 8 && (s.Field.Kind == codec.Uint || s.Field.Kind == codec.Code || s.Field.Kind == codec.Length) {
			n := uint64(0)
			for _, c := range b {
				n = n<<8 | uint64(c)
			}
			line := len(dst)
			dst = padTo(appendHex(dst, b), line+textColumn)
			dst = strconv.AppendUint(dst, n, 10)
			dst = append(padTo(append(dst, "  "...), line+labelColumn), label...)
			dst = append(dst, '\n')
			continue
		}
		dst = l.rows(dst, b, label)
	}
	return dst
}

// rows appends the rows of a field, or as many as are shown.
func (l *Listing) rows(dst, b []byte, label string) []byte {
	name := label
	for n, at := 0, 0; at < len(b); n++ {
		line := len(dst)
		end := min(at+rowBytes, len(b))
		if l.pr.Fold > 0 && n >= l.pr.Fold && end < len(b) {
			dst = padTo(append(dst, "..."...), line+textColumn)
			dst = strconv.AppendInt(dst, int64(len(b)-at), 10)
			dst = append(dst, " bytes more"...)
			name, end = label, len(b)
		} else {
			dst = padTo(appendHex(dst, b[at:end]), line+textColumn)
			dst = appendText(dst, b[at:end])
		}
		if name != "" {
			dst = append(padTo(append(dst, "  "...), line+labelColumn), name...)
		}
		dst = append(dst, '\n')
		at, name = end, ""
	}
	return dst
}

func appendHex(dst, b []byte) []byte {
	for _, c := range b {
		h := hexOf[c]
		dst = append(dst, h[0], h[1], ' ')
	}
	return dst[:len(dst)-1]
}

// appendText appends bytes as text; blanks at the ends are escaped.
func appendText(dst, b []byte) []byte {
	first, last := 0, len(b)
	for first < last && b[first] == ' ' {
		first++
		dst = append(dst, `\x20`...)
	}
	for last > first && b[last-1] == ' ' {
		last--
	}
	for _, c := range b[first:last] {
		if e := escapeOf[c]; e != "" {
			dst = append(dst, e...)
		} else {
			dst = append(dst, c)
		}
	}
	for range len(b) - last {
		dst = append(dst, `\x20`...)
	}
	return dst
}

// padTo appends blanks up to a length.
func padTo(dst []byte, n int) []byte {
	if k := n - len(dst); k > 0 {
		dst = append(dst, blanks[:k]...)
	}
	return dst
}
