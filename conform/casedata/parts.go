package casedata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Part is a part of a message: fixed bytes, a value, the end of a line, the length of values, or repeated parts.
type Part struct {
	Bytes   Bytes   `json:"bytes,omitempty"`
	Times   int     `json:"times,omitempty"`    // how often Bytes are repeated, if more than once
	LineEnd bool    `json:"line_end,omitempty"` // LF or CR LF
	Length  *Length `json:"length,omitempty"`
	Value   *Value  `json:"value,omitempty"`
	Repeat  []*Part `json:"repeat,omitempty"` // any number of times, also 0
}

// Bytes are bytes that are written as a string in which each character from U+0000 to U+00FF is one byte.
type Bytes []byte

// MarshalJSON implements [encoding/json.Marshaler].
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(latin1(b)) }

func latin1(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return s.String()
}

// Length is a number of bytes: the sizes of values of the message, and a constant.
type Length struct {
	Of    []int `json:"of"` // indexes of the values in the list of parts
	Plus  int   `json:"plus,omitempty"`
	Width int   `json:"width,omitempty"` // bytes of a big-endian number; 0: decimal text

	of []*Part
}

// Value is a value that is not known before the case runs, or that may be any value.
type Value struct {
	Field    string `json:"field"`              // what the value means
	Variable string `json:"variable,omitempty"` // name of a value that occurs several times
	Initial  *Bytes `json:"initial,omitempty"`  // the value of a variable that is sent before the server has chosen it
	Assigned bool   `json:"assigned,omitempty"` // the server chooses it: variables with this mark have different values
	Now      *int64 `json:"now,omitempty"`      // a time in Unix seconds, relative to the current time
	Width    int    `json:"width,omitempty"`    // number of bytes; a time of this width is a big-endian number
	Until    Bytes  `json:"until,omitempty"`    // the value ends before these bytes

	Patterns []string `json:"patterns,omitempty"`   // regular expressions: the whole value matches each
	Not      []string `json:"not,omitempty"`        // regular expressions: no part of the value matches one
	Min      int      `json:"min_length,omitempty"` // bytes
	Max      int      `json:"max_length,omitempty"` // bytes
}

// encoder converts messages of a protocol to parts. It encodes samples with the codec, and finds out which bytes depend
// on which values.
type encoder struct {
	protocol *codec.Protocol
	requests map[*codec.Type][]*codec.Type // the requests that a reply may answer
	known    map[string][]*Part            // results by side, type and arguments
}

func newEncoder(p *codec.Protocol) *encoder {
	e := &encoder{protocol: p, requests: map[*codec.Type][]*codec.Type{}, known: map[string][]*Part{}}
	for _, q := range p.Types {
		for _, t := range q.Answers {
			if q.Ordered {
				e.requests[t] = append(e.requests[t], q)
			}
		}
	}
	return e
}

// message returns the parts of the message of a choice. ok is false if parts cannot describe it.
func (e *encoder) message(from codec.Side, c *transcript.Choice) (parts []*Part, ok bool) {
	switch {
	case c.Verb == transcript.Raw || c.Verb == transcript.Urgent:
		return literal(nil, c.Bytes), true
	case c.Verb != transcript.Send:
		return nil, true
	}
	key := fmt.Sprint(from, c.Type.Name, c.Unchecked, c.CRLF)
	for _, a := range c.Args {
		key += fmt.Sprintf(" %d %q %q %d", a.Kind, a.Value, a.Name, a.Delta)
	}
	parts, ok = e.known[key]
	if !ok {
		parts = e.describe(from, c)
		e.known[key] = parts
	}
	return parts, parts != nil
}

// slot is an argument of a sample: that of a choice, or one that "..." stands for.
type slot struct {
	arg   *transcript.Arg // nil: any value
	group int             // number of the "..." from 1, or 0
	value []byte
}

// open reports whether the slot is a value in the parts.
func (s *slot) open(fd *codec.Field) bool {
	return s.arg == nil || s.arg.Kind != transcript.Literal || fd != nil && fd.Assigned
}

// slots returns the arguments of a sample. Each "..." stands for one group of repeated arguments, after the arguments
// that the type has once. ok is false if it may also stand for fewer arguments.
func slots(c *transcript.Choice) (all []slot, ok bool) {
	least, once, group := c.Type.Arity()
	rests := 0
	for i := range c.Args {
		if c.Args[i].Kind != transcript.Rest {
			all = append(all, slot{arg: &c.Args[i]})
			continue
		}
		rests++
		for ; len(all) < once; all = append(all, slot{}) {
			if len(all) >= least {
				return nil, false
			}
		}
		for range group {
			all = append(all, slot{group: rests})
		}
	}
	for i := range all {
		fd := c.Type.FieldAt(i)
		switch a := all[i].arg; {
		case a != nil && a.Kind == transcript.Literal:
			all[i].value = a.Value
		case a != nil && a.Kind == transcript.Version:
			all[i].value = []byte("1.2.3")
		default:
			all[i].value = fd.Sample("x")
		}
	}
	return all, true
}

// sample encodes a message and decodes it again. It returns false if the codec does not do both.
func (e *encoder) sample(from codec.Side, c *transcript.Choice, all []slot) (*codec.Frame, bool) {
	m := codec.Message{Type: c.Type, CRLF: c.CRLF}
	for _, s := range all {
		m.Args = append(m.Args, s.value)
	}
	requests := []*codec.Type{nil}
	if from == codec.Server && e.requests[c.Type] != nil {
		requests = e.requests[c.Type]
	}
	for _, q := range requests {
		sender, receiver := e.session(), e.session()
		var f codec.Frame
		if q != nil {
			b, err := sender.Append(nil, codec.Peer, q.Sample())
			if err != nil {
				continue
			}
			if _, err := receiver.Decode(codec.Peer, b, &f); err != nil {
				continue
			}
		}
		b, err := sender.Append(nil, from, &m)
		if err != nil {
			continue
		}
		n, err := receiver.Decode(from, b, &f)
		if err != nil || n != len(b) || f.Type != c.Type || len(values(&f)) != len(all) {
			f = codec.Frame{Raw: b} // the bytes are all that is known
		}
		if f.Spans != nil || !slices.ContainsFunc(all, func(s slot) bool { return s.open(nil) }) {
			return &f, true
		}
	}
	return nil, false
}

func (e *encoder) session() codec.Session {
	return e.protocol.NewSession(codec.Options{WaiveAll: true})
}

// values returns the indexes of the spans with arguments.
func values(f *codec.Frame) []int {
	var all []int
	for i := range f.Spans {
		if !f.Spans[i].Field.Derived() {
			all = append(all, i)
		}
	}
	return all
}

// describe returns the parts of a message, or nil.
func (e *encoder) describe(from codec.Side, c *transcript.Choice) []*Part {
	all, ok := slots(c)
	if !ok {
		return nil
	}
	f, ok := e.sample(from, c, all)
	if !ok {
		return nil
	}
	b := &builder{lines: from == codec.Server && c.Type.End == "\n"}
	if f.Spans == nil {
		b.literal(f.Raw)
		return b.list
	}
	of := e.lengths(from, c, f, all)
	arg, group, at := 0, 0, 0
	for i := range f.Spans {
		s := &f.Spans[i]
		fd := s.Field
		if in := arg < len(all) && all[arg].group > 0; !fd.Derived() && in && all[arg].group != group {
			group = all[arg].group
			b.begin()
		} else if group > 0 && !in {
			group = 0
			b.end()
		}
		b.literal(f.Raw[at:s.Off])
		value := f.Raw[s.Off:s.End]
		switch {
		case fd.Derived() && of[i] != nil:
			b.list = append(b.list, &Part{Length: of[i]})
		case fd.Derived() || !all[arg].open(fd):
			b.literal(value)
		case fd.Scalar:
			return nil
		default:
			p := &Part{Value: newValue(c, from, all[arg].arg, fd, arg)}
			if fd.Width > 0 {
				p.Value.Width = fd.Width
			} else {
				p.Value.Until = terminator(f, i, b.lines)
			}
			for _, n := range of {
				if k := slices.Index(n.indexes(), arg); k >= 0 {
					n.of[k] = p
					if k == len(n.of)-1 {
						p.Value.Until = nil
					}
				}
			}
			b.list = append(b.list, p)
		}
		b.literal(f.Raw[s.End:s.Next])
		at = s.Next
		if !fd.Derived() {
			arg++
		}
	}
	if group > 0 {
		b.end()
	}
	b.literal(f.Raw[at:])
	if b.nested {
		return nil
	}
	for _, n := range of {
		if n != nil {
			for k, p := range n.of {
				if n.Of[k] = slices.Index(b.list, p); p == nil || n.Of[k] < 0 {
					return nil
				}
			}
		}
	}
	return b.list
}

func (n *Length) indexes() []int {
	if n == nil {
		return nil
	}
	return n.Of
}

// lengths returns the lengths, by span, that depend on open values. Their Of has the numbers of the arguments.
func (e *encoder) lengths(from codec.Side, c *transcript.Choice, f *codec.Frame, all []slot) []*Length {
	of := make([]*Length, len(f.Spans))
	for arg := range all {
		if i := values(f)[arg]; f.Spans[i].Field.Width > 0 || !all[arg].open(f.Spans[i].Field) {
			continue
		}
		longer := slices.Clone(all)
		longer[arg].value = append(slices.Clone(all[arg].value), '0')
		g, ok := e.sample(from, c, longer)
		if !ok || len(g.Spans) != len(f.Spans) {
			continue
		}
		for i := range f.Spans {
			if f.Spans[i].Field.Kind != codec.Length {
				continue
			}
			before, after := lengthOf(f, i), lengthOf(g, i)
			if after != before+1 {
				continue
			}
			if of[i] == nil {
				of[i] = &Length{Width: f.Spans[i].Field.Width, Plus: before}
			}
			of[i].Of, of[i].of = append(of[i].Of, arg), append(of[i].of, nil)
			of[i].Plus -= len(all[arg].value)
		}
	}
	return of
}

// lengthOf returns the number in a span with a length.
func lengthOf(f *codec.Frame, i int) int {
	v := f.Raw[f.Spans[i].Off:f.Spans[i].End]
	if f.Spans[i].Field.Width > 0 {
		return int(codec.BigEndian(v))
	}
	n, _ := strconv.Atoi(string(v))
	return n
}

// terminator returns the bytes between the value of the i-th span and the next one.
func terminator(f *codec.Frame, i int, lines bool) []byte {
	s := &f.Spans[i]
	end := f.Raw[s.End:s.Next]
	if len(end) == 0 && i+1 < len(f.Spans) {
		next := &f.Spans[i+1]
		if end = f.Raw[s.Next:next.Off]; len(end) == 0 && next.Field.Derived() {
			end = f.Raw[next.Off:next.End]
		}
	}
	if lines && bytes.HasPrefix(end, []byte("\n")) {
		end = end[:1]
	}
	return end
}

// builder collects the parts of a message.
type builder struct {
	list   []*Part
	outer  []*Part // while the parts of a repetition are collected
	lines  bool    // a line feed may follow a carriage return
	nested bool
}

func (b *builder) begin() {
	b.nested = b.nested || b.outer != nil
	b.outer, b.list = append(b.list, &Part{}), nil
}

func (b *builder) end() {
	b.outer[len(b.outer)-1].Repeat = b.list
	b.list, b.outer = b.outer, nil
}

// literal appends fixed bytes.
func (b *builder) literal(v []byte) {
	for b.lines {
		line, rest, found := bytes.Cut(v, []byte("\n"))
		b.list = literal(b.list, line)
		if !found {
			return
		}
		b.list, v = append(b.list, &Part{LineEnd: true}), rest
	}
	b.list = literal(b.list, v)
}

// longRun is the length from which equal bytes are written once, with their number.
const longRun = 64

// literal appends fixed bytes to a list of parts.
func literal(list []*Part, v []byte) []*Part {
	for len(v) > 0 {
		from, n := longest(v)
		if from > 0 {
			if k := len(list) - 1; k >= 0 && list[k].Bytes != nil && list[k].Times == 0 {
				list[k] = &Part{Bytes: append(slices.Clip(list[k].Bytes), v[:from]...)}
			} else {
				list = append(list, &Part{Bytes: v[:from:from]})
			}
		}
		if n > 0 {
			list = append(list, &Part{Bytes: v[from : from+1], Times: n})
		}
		v = v[from+n:]
	}
	return list
}

// longest returns the offset and the length of the first long run of equal bytes in v, or the length of v and 0.
func longest(v []byte) (from, n int) {
	for from < len(v) {
		for n = 1; from+n < len(v) && v[from+n] == v[from]; n++ {
		}
		if n >= longRun {
			return from, n
		}
		from += n
	}
	return from, 0
}

// newValue returns the value of an argument, which is nil for any value.
func newValue(c *transcript.Choice, from codec.Side, a *transcript.Arg, fd *codec.Field, arg int) *Value {
	v := &Value{Field: fd.Name, Assigned: fd.Assigned}
	if a != nil {
		switch a.Kind {
		case transcript.Name:
			v.Variable = "$" + a.Name
		case transcript.Now:
			v.Now = &a.Delta
		case transcript.Literal:
			initial := Bytes(a.Value)
			v.Variable, v.Initial = `"`+latin1(a.Value)+`"`, &initial
		case transcript.Version:
			contains, not := transcript.VersionPatterns()
			v.Patterns, v.Not = []string{"(?s:.*)" + contains + "(?s:.*)"}, []string{not}
		}
	}
	if from == codec.Peer || c.Unchecked {
		return v
	}
	if free := c.Type.Free; free != nil && arg == 0 {
		v.Not = append(v.Not, free.Unlike)
	}
	v.constrain(fd, c.Type)
	return v
}

// constrain sets which values the field may have.
func (v *Value) constrain(fd *codec.Field, t *codec.Type) {
	if v.Max = fd.Max; fd.NonEmpty != "" {
		v.Min = 1
	}
	pattern := ""
	switch {
	case fd.Kind == codec.Signed:
		pattern = "-?[0-9]+"
	case fd.Kind == codec.Number && fd.Hi > 0 && fd.Hi < 10:
		pattern = fmt.Sprintf("0*[%d-%d]", fd.Lo, fd.Hi)
	case fd.Kind == codec.Number && fd.Canonical:
		pattern = "0|[1-9][0-9]*"
	case fd.Kind == codec.Number:
		pattern = "[0-9]+"
	case fd.Values != nil:
		var quoted []string
		for _, s := range fd.Values {
			quoted = append(quoted, regexp.QuoteMeta(s))
		}
		pattern = strings.Join(quoted, "|")
	case fd.Chars != "":
		pattern = "[" + class(fd.Chars) + "]*"
	case fd.Kind == codec.Text && t.Sep == "\x00":
		pattern = `[^\x00]*`
	}
	if pattern != "" {
		v.Patterns = append(v.Patterns, pattern)
	}
	if fd.NotFirst != "" {
		v.Not = append(v.Not, "^["+class(fd.NotFirst)+"]")
	}
}

// class returns the characters as the content of a character class.
func class(chars string) string {
	var s strings.Builder
	for i := range len(chars) {
		fmt.Fprintf(&s, `\x%02x`, chars[i])
	}
	return s.String()
}
