package codec

import (
	"bytes"
	"fmt"
	"strings"
)

// Layout decodes and encodes the fields of messages as the protocol's message types declare them. The
// sessions of all protocols use it and add the framing.
type Layout struct {
	*Form
	Options *Options
}

// Split decodes the fields from f.Raw[at:end] and appends their spans to f. more reports whether a first
// field begins at offset at; it is false if a text line ends after its command word.
func (l *Layout) Split(f *Frame, fields []Field, sep string, at, end int, more bool) *Error {
	for i := range fields {
		fd := &fields[i]
		if !more {
			if fd.Optional || l.Options.Waived(l.Missing) {
				return nil
			}
			return &Error{Rule: l.Missing, Offset: at, Field: fd.Name,
				Detail: "expected a value for this argument, got the end of the message"}
		}
		for l.Spacing != "" && bytes.HasPrefix(f.Raw[at:end], []byte(sep)) {
			if !l.Options.Waived(l.Spacing) {
				return &Error{Rule: l.Spacing, Offset: at, Field: fd.Name,
					Detail: "expected one separator before the argument, got several"}
			}
			at += len(sep)
		}
		if fd.plain { // common case: the same as below, but faster
			if i < len(fields)-1 {
				if k := bytes.IndexByte(f.Raw[at:end], sep[0]); k >= 0 && fd.legalLength(k) {
					f.Spans = append(f.Spans, Span{fd, at, at + k, at + k + 1})
					at += k + 1
					continue
				}
			} else if fd.legalLength(end-at) && (fd.Kind == Opaque || bytes.IndexByte(f.Raw[at:end], sep[0]) < 0) {
				f.Spans = append(f.Spans, Span{fd, at, end, end})
				return nil
			}
		}
		if fd.Prefix != "" {
			if !bytes.HasPrefix(f.Raw[at:end], []byte(fd.Prefix)) {
				return &Error{Rule: fd.Rule, Offset: at, Field: fd.Name,
					Detail: fmt.Sprintf("expected %q before the value, got something else", fd.Prefix)}
			}
			at += len(fd.Prefix)
		}
		stop, next, last := end, end, i == len(fields)-1
		more = false
		if fd.Width > 0 {
			if stop = at + fd.Width; stop > end {
				return &Error{Rule: l.Missing, Offset: end, Field: fd.Name,
					Detail: fmt.Sprintf("expected %[2]d bytes, got %[1]d", end-at, fd.Width)}
			}
			next, more = stop, true
		} else if !last || fd.Kind != Opaque || fd.Term != "" {
			term := sep
			if fd.Term != "" {
				term = fd.Term
			}
			k := index(f.Raw[at:end], term)
			switch {
			case k < 0:
			case !last || fd.Term != "":
				stop, next, more = at+k, at+k+len(term), true
			default:
				var err *Error
				if stop, err = l.extra(fd, at+k, end, len(sep)); err != nil {
					f.Spans = append(f.Spans, Span{fd, at, end, end}) // this field is the invalid one
					return err
				}
			}
		}
		f.Spans = append(f.Spans, Span{fd, at, stop, next})
		if v := f.Raw[at:stop]; !fd.legalLength(len(v)) && !fd.decimal(v) {
			if err := fd.Check(v, at, l.Options); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// extra checks a separator found at offset k in the last field. If nothing follows the separator, it is a
// trailing separator; otherwise an extra argument follows.
func (l *Layout) extra(fd *Field, k, end, width int) (stop int, err *Error) {
	if k+width == end {
		if l.Options.Waived(l.Trailing) {
			return k, nil
		}
		return 0, &Error{Rule: l.Trailing, Offset: k, Field: fd.Name,
			Detail: "expected the end of the message after the last argument, got a separator"}
	}
	if l.Options.Waived(l.Extra) {
		return end, nil
	}
	return 0, &Error{Rule: l.Extra, Offset: k + width, Field: fd.Name,
		Detail: "expected no more arguments, got another one"}
}

// Join appends the fields of m to dst. The first start bytes of dst are not part of the message. The caller
// adds the framing fields. Join returns an error for values that contain the type's separators, unless the
// rule is waived.
func (l *Layout) Join(dst []byte, start int, m *Message) ([]byte, *Error) {
	t, args := m.Type, m.Args
	if t.plain {
		if out, ok := joinPlain(dst, m); ok {
			return out, nil
		}
	}
	var err *Error
	if t.End != "" && !l.Options.Waived(l.Extra) {
		for i, a := range args {
			if bytes.IndexByte(a, '\n') >= 0 {
				return nil, &Error{Rule: l.Extra, Offset: len(dst) - start, Field: t.FieldAt(i).label(),
					Detail: "expected a value without a line feed, got a value that contains one"}
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
			if err == nil && string(dst[line:]) == t.Stop && !l.Options.Waived(l.Extra) {
				err = &Error{Rule: l.Extra, Offset: line - start, Field: t.Repeat[0].Name,
					Detail: "expected a value other than the line that ends the list, got this line"}
			}
			if err != nil {
				return nil, err
			}
			dst, args = m.AppendEnd(dst), args[k:]
		}
	}
	if len(args) > 0 {
		if !l.Options.Waived(l.Extra) {
			return nil, &Error{Rule: l.Extra, Offset: len(dst) - start, Field: t.Name,
				Detail: fmt.Sprintf("expected fewer arguments, got %d more than the message type has", len(args))}
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

// joinPlain is a fast way to do what Join does, for a message whose fields have no prefix or terminator of their own (see
// Field.plain). If the message has other fields, or if one of the values may be illegal, it appends nothing and returns
// false.
func joinPlain(dst []byte, m *Message) (out []byte, ok bool) {
	t, args := m.Type, m.Args
	if !t.plain || len(args) != len(t.Fields) {
		return dst, false
	}
	sep, last := t.Sep[0], len(args)-1
	out = dst
	for i, a := range args {
		fd := &t.Fields[i]
		// A separator within a value would end it, except in an opaque last field, which extends to the end.
		if !fd.legalLength(len(a)) || (i < last || fd.Kind != Opaque) && bytes.IndexByte(a, sep) >= 0 {
			return dst, false
		}
		out = append(out, a...)
		if i < last {
			out = append(out, sep)
		}
	}
	return out, true
}

// JoinFields appends the values of some of a type's fields, none of which is framing, and the separators
// between them.
func (l *Layout) JoinFields(dst []byte, start int, fields []Field, sep string, args [][]byte) ([]byte, *Error) {
	between := false // a separator comes before the next value
	for i := range fields {
		fd := &fields[i]
		if i == len(args) {
			if fd.Optional || l.Options.Waived(l.Missing) {
				break
			}
			return nil, &Error{Rule: l.Missing, Offset: len(dst) - start, Field: fd.Name,
				Detail: "expected a value for this argument, got none"}
		}
		v := args[i]
		if between {
			if len(sep) == 1 {
				dst = append(dst, sep[0])
			} else {
				dst = append(dst, sep...)
			}
		}
		between = fd.Term == "" && fd.Width == 0
		if fd.Prefix != "" {
			dst = append(dst, fd.Prefix...)
		}
		decimal := fd.decimal(v) // if true, the value contains no separator
		if !decimal && fd.Width == 0 && (i < len(fields)-1 || fd.Kind != Opaque) {
			term := sep
			if fd.Term != "" {
				term = fd.Term
			}
			k := index(v, term)
			if k >= 0 && !l.Options.Waived(l.Extra) {
				return nil, &Error{Rule: l.Extra, Offset: len(dst) - start + k, Field: fd.Name,
					Detail: fmt.Sprintf("expected a value without the separator %q, got a value that contains it", term)}
			}
		}
		if !decimal && !fd.legalLength(len(v)) {
			if err := fd.Check(v, len(dst)-start, l.Options); err != nil {
				return nil, err
			}
		}
		if dst = append(dst, v...); fd.Term != "" {
			dst = append(dst, fd.Term...)
		}
	}
	return dst, nil
}

// checkEnd returns an error if the last value ends with CR, which a decoder would read as part of the line
// end.
func (l *Layout) checkEnd(dst []byte, start int, m *Message) *Error {
	if m.Type.End != "\n" || m.CRLF || len(dst) == start || dst[len(dst)-1] != '\r' || l.Options.Waived(l.Extra) {
		return nil
	}
	return &Error{Rule: l.Extra, Offset: len(dst) - start - 1, Field: m.Type.Name,
		Detail: "expected a value that does not end with CR, got a value that ends with CR"}
}

// AppendEnd appends the line end of the message's type; m.CRLF selects CR LF where the type also allows LF.
func (m *Message) AppendEnd(dst []byte) []byte {
	if m.CRLF && m.Type.End == "\n" {
		dst = append(dst, '\r')
	}
	return append(dst, m.Type.End...)
}

// index is bytes.Index, optimized for separators of one byte; it returns -1 for an empty separator.
func index(b []byte, sep string) int {
	switch len(sep) {
	case 0:
		return -1
	case 1:
		return bytes.IndexByte(b, sep[0])
	}
	return bytes.Index(b, []byte(sep))
}

// NumArgs returns the number of arguments of the type that are not repeated.
func (t *Type) NumArgs() int { return t.once }

// Arity returns the smallest number of arguments of a message of the type, the number of arguments before the
// repeated ones, and the number of arguments that each repetition adds.
func (t *Type) Arity() (least, once, group int) {
	for _, k := range t.args[:t.once] {
		if !t.Fields[k].Optional {
			least++
		}
	}
	return least, t.once, len(t.args) - t.once
}

// FieldAt returns the declaration of the i-th argument of a message of this type, repetitions included. It
// returns nil if the type has no such argument or t is nil.
func (t *Type) FieldAt(i int) *Field {
	if t == nil {
		return nil
	}
	k := t.spanIndex(i)
	switch {
	case k < len(t.Fields):
		return &t.Fields[k]
	case k == noSpan:
		return nil
	}
	return &t.Repeat[(k-len(t.Fields))%len(t.Repeat)]
}

// noSpan is the position of an argument that a type does not have. It is greater than the index of any span.
const noSpan = 1 << 30

// spanIndex returns the position of the i-th argument among the type's fields followed by its
// repeated fields, derived fields included. It returns noSpan if the type has no such argument.
func (t *Type) spanIndex(i int) int {
	if i < len(t.args) {
		return t.args[i]
	}
	group := len(t.args) - t.once
	if group == 0 {
		return noSpan
	}
	i -= t.once
	return t.args[t.once+i%group] + i/group*len(t.Repeat)
}

// label returns the name of the field for an error, or "argument" if f is nil.
func (f *Field) label() string {
	if f == nil {
		return "argument"
	}
	return f.Name
}

// Signature returns the type's name and arguments in one line, for help texts and errors: "SUBMIT_JOB
// function unique-id workload".
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
