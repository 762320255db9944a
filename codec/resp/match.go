package resp

import (
	"bytes"
	"slices"
	"strings"

	"jobwire/codec"
)

// maxIdleSpans is the number of spans for which a session keeps memory between messages.
const maxIdleSpans = 64 << 10

// maxNamed is the number of arguments at the beginning of a message that later words can repeat.
const maxNamed = 16

// first finds the first of the forms that matches the spans that scan stored in f. It sets the type and the
// spans of f and returns the form, or nil.
func (s *session) first(f *codec.Frame, v value, forms []*form) (found *form) {
	for _, fm := range forms {
		if fm.kind == v.kind && fm.null == v.null && s.fits(f, fm, v) {
			f.Type, f.Spans, s.spans = fm.msgType, s.spans, f.Spans // swapped, not copied: there may be many spans
			found = fm
			break
		}
	}
	if cap(s.spans) > maxIdleSpans {
		s.spans = nil
	}
	return found
}

// reread decodes a list again as a reply of a specific type that assigns a job or reports its end.
func (g *grammar) reread(f *codec.Frame) (e codec.Event, ok bool) {
	if fm := g.forms[f.Type.Index]; fm == nil || !fm.general || fm.kind != '*' {
		return e, false
	}
	for _, fm := range g.events {
		if e = (codec.Event{Does: fm.msgType, Side: codec.Server}); fm.reads(f, &e) {
			return e, true
		}
	}
	return e, false
}

// reads sets the values of an event from a list, if the list has the form.
func (fm *form) reads(f *codec.Frame, e *codec.Event) bool {
	for i := range fm.words {
		w, text := &fm.words[i], f.Arg(i)
		if len(w.Parts) == 0 {
			return false
		}
		fields := w.fields[1:] // after the size
		text, ok := w.inner(text)
		if !ok {
			return false
		}
		if len(w.Parts) == 2 {
			k := bytes.LastIndexByte(text, w.Parts[1].Prefix[0])
			if k < 0 {
				return false
			}
			e.Set(fields[0].Means, text[:k])
			fields, text = fields[1:], text[k+1:]
		}
		e.Set(fields[0].Means, text)
	}
	return f.Arg(len(fm.words)) == nil
}

// fits reports whether a frame matches a form of its kind. It stores the spans of the form in s.spans.
func (s *session) fits(f *codec.Frame, fm *form, v value) bool {
	src := f.Spans
	s.spans, s.named = s.spans[:0], s.named[:0]
	switch {
	case fm.null:
		s.spans, f.Head = append(s.spans, codec.Span{Field: &typeField, End: src[1].End, Next: src[1].Next}), 1
		return true
	case !isArray(fm.kind):
		s.spans, f.Head = append(s.spans, src[0]), 1
		return s.fitsWord(f, &fm.words[0], src[1:], false)
	}
	n := len(fm.words)
	once := n - fm.group
	if v.count < once || fm.group == 0 && v.count > n || fm.group > 0 && (v.count-once)%fm.group != 0 {
		return false
	}
	head := src[1]
	if fm.command {
		head.Field = &wordsField
		s.spans, f.Head = append(s.spans, head), 3
	} else {
		head.Field = &countField
		s.spans, f.Head = append(s.spans, src[0], head), 2
	}
	if len(src) > maxIdleSpans {
		return s.fitsLong(f, fm, v)
	}
	src = src[2:]
	for i := range v.count {
		w := fm.word(i)
		if !s.fitsWord(f, w, src, true) {
			return false
		}
		src = src[w.spans():]
	}
	return true
}

// fitsLong is fits for a long array. The spans of the form replace those that scan stored, if there are not more of
// them.
func (s *session) fitsLong(f *codec.Frame, fm *form, v value) bool {
	head, in, out, more := len(s.spans), 2, len(s.spans), false
	for i := range v.count {
		w := fm.word(i)
		if !s.fitsWord(f, w, f.Spans[in:], true) {
			return false
		}
		in, out, s.spans = in+w.spans(), out+len(s.spans)-head, s.spans[:head]
		more = more || out > in
	}
	if more {
		s.spans = slices.Grow(s.spans, out)
	} else {
		s.spans = append(f.Spans[:0], s.spans...)
	}
	in = 2
	for i := range v.count {
		w := fm.word(i)
		s.fitsWord(f, w, f.Spans[in:], true)
		in += w.spans()
	}
	return true
}

// word returns the form of the i-th element.
func (fm *form) word(i int) *word {
	if once := len(fm.words) - fm.group; i >= once && fm.group > 0 {
		i = once + (i-once)%fm.group
	}
	return &fm.words[i]
}

// spans returns the number of spans that scan stores for a word.
func (w *word) spans() int {
	if isBulk(w.Kind) {
		return 2
	}
	return 1
}

// isBulk reports whether values of the kind have a size.
func isBulk(c byte) bool { return kinds[c].Bulk }

// fitsWord compares a word with the spans that scan stored for it, and appends the spans of the form. In an
// array, the span of a line includes its first byte.
func (s *session) fitsWord(f *codec.Frame, w *word, src []codec.Span, inArray bool) bool {
	fields, val := w.fields, src[0]
	switch {
	case isBulk(w.Kind):
		if val.Field != &sizeMark || f.Raw[val.Off-1] != w.Kind {
			return false
		}
		if val.Field = &sizeField; !w.command {
			val.Field, fields = &fields[0], fields[1:]
		}
		s.spans, val = append(s.spans, val), src[1]
	case inArray:
		if val.Field != &tokenMark || f.Raw[val.Off] != w.Kind {
			return false
		}
		val.Off++
	}
	text := f.Raw[val.Off:val.End]
	if len(w.Parts) == 0 {
		if string(text) != w.Tail && !(w.Fold && strings.EqualFold(string(text), w.Tail)) {
			return false
		}
		switch {
		case w.command:
			val.Field = &commandField
		case len(fields) == 0: // a null consists only of its type
			s.spans[len(s.spans)-1].Next = val.Next
			return true
		default:
			val.Field = &fields[0]
		}
		s.spans = append(s.spans, val)
		return true
	}
	inner, ok := w.inner(text)
	if !ok {
		return false
	}
	p := &w.Parts[0]
	if p.Again {
		val.Field = &fields[0]
		s.spans = append(s.spans, val)
		return bytes.Equal(inner, f.Raw[s.named[p.Same].Off:s.named[p.Same].End])
	}
	val.Off += len(p.Prefix)
	val.End -= len(w.Tail)
	if len(w.Parts) == 2 {
		second := &fields[1]
		k := bytes.LastIndexByte(inner, w.Parts[1].Prefix[0])
		if second.Kind == codec.Opaque {
			k = bytes.IndexByte(inner, w.Parts[1].Prefix[0])
		}
		if k < 0 {
			return second.Optional && s.fitsField(f, &fields[0], val)
		}
		next := val
		next.Off += k + 1
		val.End, val.Next = val.Off+k, next.Off
		return s.fitsField(f, &fields[0], val) && s.fitsField(f, second, next)
	}
	return s.fitsField(f, &fields[0], val)
}

// inner returns the part of a text between the prefix of the word's first argument and the tail of the word. ok is
// false if the text lacks one of the two.
func (w *word) inner(text []byte) (inner []byte, ok bool) {
	prefix, end := w.Parts[0].Prefix, len(text)-len(w.Tail)
	if end < len(prefix) || string(text[:len(prefix)]) != prefix || string(text[end:]) != w.Tail {
		return nil, false
	}
	return text[len(prefix):end], true
}

// fitsField appends the span of an argument, if its value is legal.
func (s *session) fitsField(f *codec.Frame, fd *codec.Field, val codec.Span) bool {
	v := f.Raw[val.Off:val.End]
	if !fd.Legal(v, &s.opts) {
		return false
	}
	val.Field = fd
	s.spans = append(s.spans, val)
	if len(s.named) < maxNamed { // a list has many arguments
		s.named = append(s.named, val)
	}
	return true
}
