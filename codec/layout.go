package codec

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// Layout cuts and joins fields as a protocol's rows declare them. It is shared
// by the sessions of all protocols, which add framing.
type Layout struct {
	Missing  RuleID // broken by a message with too few fields
	Surplus  RuleID // broken by a message with too many
	Trailing RuleID // broken by a separator behind the last field
	Spacing  RuleID // if set, broken by separators in a row, which otherwise enclose an empty field
	Options  *Options
}

// Split reads the fields from f.Raw[at:end] and appends their spans to f. more
// tells whether a first field begins at at; it is false where a text line ends
// with its command word.
func (l *Layout) Split(f *Frame, fields []Field, sep string, at, end int, more bool) *Error {
	for i := range fields {
		fd := &fields[i]
		if !more {
			if fd.Optional || l.Options.Waived(l.Missing) {
				return nil
			}
			return &Error{Rule: l.Missing, Offset: at, Field: fd.Name, Detail: "the message ends before this argument"}
		}
		for l.Spacing != "" && bytes.HasPrefix(f.Raw[at:end], []byte(sep)) {
			if !l.Options.Waived(l.Spacing) {
				return &Error{Rule: l.Spacing, Offset: at, Field: fd.Name, Detail: "one separator too many"}
			}
			at += len(sep)
		}
		if fd.plain && len(sep) == 1 {
			if i < len(fields)-1 {
				if k := bytes.IndexByte(f.Raw[at:end], sep[0]); k >= 0 && fd.fits(k) {
					f.Spans = append(f.Spans, Span{fd, at, at + k, at + k + 1})
					at += k + 1
					continue
				}
			} else if fd.fits(end-at) && (fd.Kind == Opaque || bytes.IndexByte(f.Raw[at:end], sep[0]) < 0) {
				f.Spans = append(f.Spans, Span{fd, at, end, end})
				return nil
			}
		}
		next, stop := at, end
		if len(fd.Lead) > 0 {
			if !bytes.HasPrefix(f.Raw[at:end], []byte(fd.Lead)) {
				return &Error{Rule: fd.Rule, Offset: at, Field: fd.Name, Detail: fmt.Sprintf("does not begin with %q", fd.Lead)}
			}
			next += len(fd.Lead)
		}
		at = next
		more = false
		if fd.Width > 0 {
			if stop = at + fd.Width; stop > end {
				return &Error{Rule: l.Missing, Offset: end, Field: fd.Name, Detail: fmt.Sprintf("%d bytes of %d", end-at, fd.Width)}
			}
			next, more = stop, true
		} else if i < len(fields)-1 || fd.Term != "" {
			term := sep
			if fd.Term != "" {
				term = fd.Term
			}
			if k := index(f.Raw[at:end], term); k >= 0 {
				stop, more = at+k, true
				next = stop + len(term)
			} else {
				next = end
			}
		} else {
			next = end
			if fd.Kind != Opaque {
				if k := index(f.Raw[at:end], sep); k >= 0 {
					var err *Error
					if stop, err = l.surplus(fd, at+k, end, len(sep)); err != nil {
						f.Spans = append(f.Spans, Span{fd, at, end, end}) // it is this field that is wrong
						return err
					}
				}
			}
		}
		f.Spans = append(f.Spans, Span{fd, at, stop, next})
		if fd.checked() {
			if err := l.check(fd, f.Raw[at:stop], at); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// surplus judges a separator found at k in the last field: behind it stands
// either nothing, and it is a needless terminator, or an argument too many.
func (l *Layout) surplus(fd *Field, k, end, width int) (stop int, err *Error) {
	if k+width == end {
		if l.Options.Waived(l.Trailing) {
			return k, nil
		}
		return 0, &Error{Rule: l.Trailing, Offset: k, Field: fd.Name, Detail: "the last argument is followed by a separator"}
	}
	if l.Options.Waived(l.Surplus) {
		return end, nil
	}
	return 0, &Error{Rule: l.Surplus, Offset: k + width, Field: fd.Name, Detail: "another argument follows the last one"}
}

// Prepare notes which fields of the rows are plain: bytes between separators, of which
// nothing is demanded but their number. Most are, and quick to read and write where that
// is known.
func Prepare(types []*Type) {
	for _, t := range types {
		t.plain = len(t.Repeat) == 0 && len(t.Sep) == 1 && t.End == ""
		for i := range t.Fields {
			f := &t.Fields[i]
			f.plain = f.Kind <= Text && f.Lead == "" && f.Term == "" && f.Width == 0 && f.Chars == "" && f.Values == nil
			t.plain = t.plain && f.plain
		}
	}
}

// fits reports whether a value of the field may be that long.
func (f *Field) fits(size int) bool {
	return (f.Max == 0 || size <= f.Max) && (size > 0 || f.NonEmpty == "")
}

// checked reports whether a value of the field can be illegal at all.
func (f *Field) checked() bool {
	return f.Kind >= Number || f.Max > 0 || f.NonEmpty != "" || f.Chars != "" || f.Values != nil
}

// has reports whether a value is one of the field's Values.
func (f *Field) has(v []byte) bool {
	for _, s := range f.Values {
		if s == string(v) {
			return true
		}
	}
	return false
}

// check judges a value against its field's declaration.
func (l *Layout) check(fd *Field, v []byte, at int) *Error {
	if fd.Max > 0 && len(v) > fd.Max && !l.Options.Waived(fd.MaxRule) {
		return &Error{Rule: fd.MaxRule, Offset: at + fd.Max, Field: fd.Name, Detail: fmt.Sprintf("%d bytes, at most %d are allowed", len(v), fd.Max)}
	}
	if len(v) == 0 && fd.NonEmpty != "" && !l.Options.Waived(fd.NonEmpty) {
		return &Error{Rule: fd.NonEmpty, Offset: at, Field: fd.Name, Detail: "is empty"}
	}
	switch fd.Kind {
	case Text:
		if fd.Values != nil && !fd.has(v) && !l.Options.Waived(fd.Rule) {
			return &Error{Rule: fd.Rule, Offset: at, Field: fd.Name, Detail: fmt.Sprintf("%s is none of %s", quote(v), strings.Join(fd.Values, ", "))}
		}
		if fd.Chars == "" || l.Options.Waived(fd.Rule) {
			break
		}
		for i := range v {
			if strings.IndexByte(fd.Chars, v[i]) < 0 {
				return &Error{Rule: fd.Rule, Offset: at + i, Field: fd.Name, Detail: fmt.Sprintf("%q is not allowed here", v[i:i+1])}
			}
		}
		if len(v) > 0 && strings.IndexByte(fd.NotFirst, v[0]) >= 0 {
			return &Error{Rule: fd.Rule, Offset: at, Field: fd.Name, Detail: fmt.Sprintf("begins with %q", v[:1])}
		}
	case Length:
		// Nothing behind a length can be read without it, so there is no waiver.
		if n, bad := ParseNumber(v); fd.Width == 0 && (bad >= 0 || fd.Hi > 0 && n > fd.Hi) {
			return numberError(fd, v, at, bad)
		}
	case Number:
		n, bad := ParseNumber(v)
		if (bad >= 0 || n < fd.Lo || fd.Hi > 0 && n > fd.Hi) && !l.Options.Waived(fd.Rule) {
			return numberError(fd, v, at, bad)
		}
	case Uint:
		if fd.Hi > 0 && !l.Options.Waived(fd.Rule) {
			if n := bigEndian(v); n < fd.Lo || n > fd.Hi {
				return &Error{Rule: fd.Rule, Offset: at, Field: fd.Name, Detail: fmt.Sprintf("%d is outside %d to %d", n, fd.Lo, fd.Hi)}
			}
		}
	case Signed:
		digits, sign := v, 0
		if len(v) > 0 && v[0] == '-' {
			digits, sign = v[1:], 1
		}
		if n, bad := ParseNumber(digits); (bad >= 0 || n > math.MaxInt64+uint64(sign)) && !l.Options.Waived(fd.Rule) {
			return &Error{Rule: fd.Rule, Offset: at + max(bad, 0) + sign, Field: fd.Name, Detail: fmt.Sprintf("%s is not a decimal number", quote(v))}
		}
	}
	return nil
}

func numberError(fd *Field, v []byte, at, bad int) *Error {
	e := &Error{Rule: fd.Rule, Offset: at + max(bad, 0), Field: fd.Name}
	switch {
	case len(v) == 0:
		e.Detail = "is empty where a decimal number is due"
	case bad >= 0:
		e.Detail = fmt.Sprintf("%s is not a decimal number of 64 bits", quote(v))
	case fd.Hi > 0:
		e.Detail = fmt.Sprintf("%s is outside %d to %d", v, fd.Lo, fd.Hi)
	default:
		e.Detail = fmt.Sprintf("%s is below %d", v, fd.Lo)
	}
	return e
}

// bigEndian reads a binary number of at most 8 bytes.
func bigEndian(v []byte) (n uint64) {
	for _, c := range v {
		n = n<<8 | uint64(c)
	}
	return n
}

// ParseNumber reads unsigned decimal text. bad is the offset of the first byte
// that keeps v from being a number of 64 bits, or -1; an empty v is bad at 0.
func ParseNumber(v []byte) (n uint64, bad int) {
	if len(v) == 0 {
		return 0, 0
	}
	for i, c := range v {
		d := uint64(c - '0')
		if d > 9 || i >= 19 && n > (math.MaxUint64-d)/10 { // 19 digits always fit
			return 0, i
		}
		n = n*10 + d
	}
	return n, -1
}

// Join appends the fields of m's row behind dst, whose first start bytes are
// not part of the message. Framing fields among them are left to the caller.
// Values that the row's separators could not carry are refused, unless the
// rule is waived.
func (l *Layout) Join(dst []byte, start int, m *Message) ([]byte, *Error) {
	if m.joined != nil {
		return append(dst, m.joined...), nil
	}
	t := m.Type
	args := m.Args
	if t.plain && len(args) == len(t.Fields) {
		if out, ok := joinPlain(dst, t, args); ok {
			return out, nil
		}
	}
	var err *Error
	if t.End != "" && !l.Options.Waived(l.Surplus) {
		for i, a := range args {
			if bytes.IndexByte(a, '\n') >= 0 {
				return nil, &Error{Rule: l.Surplus, Offset: len(dst) - start, Field: t.FieldAt(i).label(), Detail: "the value contains the end of a line"}
			}
		}
	}
	if n := len(t.Fields); n > 0 {
		k := min(n, len(args))
		if dst, err = l.JoinFields(dst, start, t.Fields, t.Sep, args[:k]); err != nil {
			return nil, err
		}
		args = args[k:]
		if t.End != "" {
			if err = l.checkEnd(dst, start, m); err != nil {
				return nil, err
			}
		}
	}
	if n := len(t.Repeat); n > 0 {
		for len(args) > 0 {
			k, line := min(n, len(args)), len(dst)
			if dst, err = l.JoinFields(dst, start, t.Repeat, t.Sep, args[:k]); err == nil {
				err = l.checkEnd(dst, start, m)
			}
			if err == nil && string(dst[line:]) == t.Stop && !l.Options.Waived(l.Surplus) {
				err = &Error{Rule: l.Surplus, Offset: line - start, Field: t.Repeat[0].Name, Detail: "the value would end the list"}
			}
			if err != nil {
				return nil, err
			}
			dst, args = m.AppendEnd(dst), args[k:]
		}
	}
	if len(args) > 0 {
		if !l.Options.Waived(l.Surplus) {
			return nil, &Error{Rule: l.Surplus, Offset: len(dst) - start, Field: t.Name, Detail: fmt.Sprintf("%d arguments too many", len(args))}
		}
		for i, a := range args {
			if i > 0 || len(t.Fields) > 0 {
				dst = append(dst, t.Sep...)
			}
			dst = append(dst, a...)
		}
	}
	return dst, nil
}

// joinPlain appends the fields of a row that are all plain. It appends nothing where one
// of them would be illegal, and says so.
func joinPlain(dst []byte, t *Type, args [][]byte) (out []byte, ok bool) {
	sep, last := t.Sep[0], len(args)-1
	out = dst
	for i, a := range args {
		fd := &t.Fields[i]
		if !fd.fits(len(a)) || (i < last || fd.Kind != Opaque) && bytes.IndexByte(a, sep) >= 0 {
			return dst, false
		}
		out = append(out, a...)
		if i < last {
			out = append(out, sep)
		}
	}
	return out, true
}

// JoinFields appends some of a row's fields, none of them framing, with what
// stands between them.
func (l *Layout) JoinFields(dst []byte, start int, fields []Field, sep string, args [][]byte) ([]byte, *Error) {
	for i := range fields {
		fd := &fields[i]
		if i == len(args) {
			if fd.Optional || l.Options.Waived(l.Missing) {
				break
			}
			return nil, &Error{Rule: l.Missing, Offset: len(dst) - start, Field: fd.Name, Detail: "this argument is missing"}
		}
		if i > 0 && fields[i-1].Term == "" && fields[i-1].Width == 0 {
			if len(sep) == 1 {
				dst = append(dst, sep[0])
			} else {
				dst = append(dst, sep...)
			}
		}
		if fd.Lead != "" {
			dst = append(dst, fd.Lead...)
		}
		v, last := args[i], i == len(fields)-1
		if fd.Width > 0 {
			if len(v) != fd.Width && !(fd.Kind == Text && l.Options.Waived(fd.Rule)) {
				return nil, &Error{Rule: fd.Rule, Offset: len(dst) - start, Field: fd.Name, Detail: fmt.Sprintf("%d bytes, not %d", len(v), fd.Width)}
			}
		} else if term := fd.Term; !last || fd.Kind != Opaque {
			if term == "" {
				term = sep
			}
			if k := index(v, term); k >= 0 && !l.Options.Waived(l.Surplus) {
				return nil, &Error{Rule: l.Surplus, Offset: len(dst) - start + k, Field: fd.Name, Detail: fmt.Sprintf("the value contains the separator %q", term)}
			}
		}
		if fd.checked() {
			if err := l.check(fd, v, len(dst)-start); err != nil {
				return nil, err
			}
		}
		dst = append(dst, v...)
		if fd.Term != "" {
			dst = append(dst, fd.Term...)
		}
	}
	return dst, nil
}

// checkEnd refuses a line whose last value would be read as part of its end.
func (l *Layout) checkEnd(dst []byte, start int, m *Message) *Error {
	if m.Type.End != "\n" || m.CRLF || len(dst) == start || dst[len(dst)-1] != '\r' || l.Options.Waived(l.Surplus) {
		return nil
	}
	return &Error{Rule: l.Surplus, Offset: len(dst) - start - 1, Field: m.Type.Name, Detail: "the last value ends with a carriage return"}
}

// AppendEnd appends the row's line end in the form the message asks for.
func (m *Message) AppendEnd(dst []byte) []byte {
	if m.CRLF && m.Type.End == "\n" {
		dst = append(dst, '\r')
	}
	return append(dst, m.Type.End...)
}

// index is bytes.Index, quick for the usual separator of one byte.
func index(b []byte, sep string) int {
	switch len(sep) {
	case 0:
		return -1
	case 1:
		return bytes.IndexByte(b, sep[0])
	}
	return bytes.Index(b, []byte(sep))
}

// quote shows a value in an error, shortened.
func quote(v []byte) string {
	if len(v) > 40 {
		return fmt.Sprintf("%q...", v[:40])
	}
	return fmt.Sprintf("%q", v)
}

// FieldAt returns the declaration of the i-th argument of a message of this
// row, repetitions included, or nil if the row has no such argument.
func (t *Type) FieldAt(i int) *Field {
	for k := range t.Fields {
		if t.Fields[k].Derived() {
			continue
		}
		if i == 0 {
			return &t.Fields[k]
		}
		i--
	}
	group := 0
	for k := range t.Repeat {
		if !t.Repeat[k].Derived() {
			group++
		}
	}
	if group == 0 {
		return nil
	}
	i %= group
	for k := range t.Repeat {
		if t.Repeat[k].Derived() {
			continue
		}
		if i == 0 {
			return &t.Repeat[k]
		}
		i--
	}
	return nil
}

// label names the field in an error; an argument beyond the row has none.
func (f *Field) label() string {
	if f == nil {
		return "argument"
	}
	return f.Name
}

// Signature writes the row's arguments in a line, for help and for errors:
// "SUBMIT_JOB function unique-id workload".
func (t *Type) Signature() string {
	var b strings.Builder
	b.WriteString(t.Name)
	slug := func(f Field) string { return strings.ReplaceAll(strings.ToLower(f.Name), " ", "-") }
	for _, f := range t.Fields {
		switch {
		case f.Derived():
		case f.Optional:
			fmt.Fprintf(&b, " [%s]", slug(f))
		default:
			fmt.Fprintf(&b, " %s", slug(f))
		}
	}
	if len(t.Repeat) > 0 {
		b.WriteString(" {")
		sep := ""
		for _, f := range t.Repeat {
			if !f.Derived() {
				b.WriteString(sep + slug(f))
				sep = " "
			}
		}
		b.WriteString("}...")
	}
	return b.String()
}
