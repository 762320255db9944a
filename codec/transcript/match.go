package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"jobwire/codec"
)

// nowSlack is the maximum difference between the time in a message and the expected $now.
const nowSlack = 2 * time.Second

// Bindings maps the names in a transcript, and the literals for values that the server chooses, to their
// values while the transcript is performed. The zero value is empty and ready for use. All connections of a
// transcript share its Bindings. Bindings is not safe for concurrent use.
type Bindings struct {
	live  map[key]string // the value of each key on the wire
	taken map[string]key // the key of each value that a server chose
}

// key is a name, or a literal that represents a value that the server chooses.
type key struct {
	kind ArgKind
	text string
}

func (k key) String() string {
	if k.kind == Name {
		return "$" + k.text
	}
	return string(appendValue(nil, nil, []byte(k.text), showBytes))
}

// Set binds a name before the transcript begins, or changes its value.
func (b *Bindings) Set(name string, value []byte) {
	b.bind(binding{key{Name, name}, string(value), false})
}

// Value returns the value of a name, and whether the name is bound.
func (b *Bindings) Value(name string) ([]byte, bool) {
	v, ok := b.live[key{Name, name}]
	return []byte(v), ok
}

// Names returns the values of all bound names.
func (b *Bindings) Names() map[string]string {
	all := map[string]string{}
	for k, v := range b.live {
		if k.kind == Name {
			all[k.text] = v
		}
	}
	return all
}

// binding is a binding that has not been added yet.
type binding struct {
	key    key
	value  string
	chosen bool // chosen by a server, so that other keys must not have the same value
}

// bind adds a binding or replaces the value of its key. It records a value that a server chose in taken, so that
// another key with the same value is detected.
func (b *Bindings) bind(n binding) {
	if b.live == nil {
		b.live, b.taken = map[key]string{}, map[string]key{}
	}
	b.live[n.key] = n.value
	if n.chosen {
		b.taken[n.value] = n.key
	}
}

// valueOf returns the value of a key. It includes the bindings in added, which are not stored yet.
func (b *Bindings) valueOf(added []binding, k key) (value string, bound bool) {
	for _, n := range slices.Backward(added) {
		if n.key == k {
			return n.value, true
		}
	}
	value, bound = b.live[k]
	return value, bound
}

// ownerOf returns the key for which the server has chosen the value. It includes the bindings in added.
func (b *Bindings) ownerOf(added []binding, value string) (owner key, owned bool) {
	for _, n := range slices.Backward(added) {
		if n.chosen && n.value == value {
			return n.key, true
		}
	}
	owner, owned = b.taken[value]
	return owner, owned
}

// Mismatch describes why a message differs from the expected message.
type Mismatch struct {
	Arg    int    // index of the argument, or -1
	Field  string // label of the field, or another part that differs
	Offset int    // offset in the frame of the first byte that differs
	Want   string // expected value in the notation of transcripts
	Got    string
}

func (m *Mismatch) String() string {
	return fmt.Sprintf("byte %d, %s: expected %s, got %s", m.Offset, m.Field, m.Want, m.Got)
}

// showBytes is the maximum number of bytes of a value in a mismatch.
const showBytes = 64

// Match compares a message with a choice whose verb is [Send]. If the message matches, Match binds the names,
// and the literals for values that the server chooses, and returns nil. Otherwise it binds nothing. A value
// for $now may differ from now by [nowSlack].
//
// If exact is true, literals match only themselves, lines must end as written, and a recorded message must
// match byte for byte.
func (b *Bindings) Match(c *Choice, f *codec.Frame, now time.Time, exact bool) *Mismatch {
	added, bad := b.match(c, f, now, exact)
	if bad == nil {
		for _, n := range added {
			b.bind(n)
		}
	}
	return bad
}

// Fits reports whether Match would return nil. It binds nothing.
func (b *Bindings) Fits(c *Choice, f *codec.Frame, now time.Time, exact bool) bool {
	_, bad := b.match(c, f, now, exact)
	return bad == nil
}

// match returns the bindings that Match would add.
func (b *Bindings) match(c *Choice, f *codec.Frame, now time.Time, exact bool) ([]binding, *Mismatch) {
	if c.Verb != Send || f.Type != c.Type {
		return nil, typeMismatch(c, f)
	}
	_, _, group := c.Type.Arity()
	m := matcher{b: b, f: f, now: now, exact: exact, group: max(1, group), values: make([]int, 0, len(f.Spans))}
	for i := range f.Spans {
		if !f.Spans[i].Field.Derived() {
			m.values = append(m.values, i)
		}
	}
	if bad := m.args(c, 0, 0); bad != nil {
		return nil, bad
	}
	if exact {
		if c.Type.End == "\n" && c.CRLF != f.CRLF {
			at := len(f.Raw) - 1
			if f.CRLF {
				at--
			}
			return nil, &Mismatch{Arg: -1, Field: "end of line", Offset: at, Want: lineEnd(c.CRLF), Got: lineEnd(f.CRLF)}
		}
		if c.Bytes != nil && !bytes.Equal(c.Bytes, f.Raw) {
			k := common(c.Bytes, f.Raw)
			return nil, &Mismatch{Arg: -1, Field: "bytes", Offset: k, Want: show(c.Bytes[k:]), Got: show(f.Raw[k:])}
		}
	}
	return m.added, nil
}

func lineEnd(crlf bool) string {
	if crlf {
		return `"\r\n"`
	}
	return `"\n"`
}

// typeMismatch returns the mismatch of a frame whose message type is not the expected one. It refers to the bytes of
// the field that determines the type, if the frame has one.
func typeMismatch(c *Choice, f *codec.Frame) *Mismatch {
	m := &Mismatch{Arg: -1, Field: "message type", Want: c.Verb.String(), Got: "unknown"}
	if c.Verb == Send {
		m.Want = c.Type.Label()
	}
	if f.Type != nil {
		m.Got = f.Type.Label()
	}
	for _, s := range f.Spans {
		if s.Field.Kind == codec.Code {
			m.Field, m.Offset = s.Field.Name, s.Off
			break
		}
	}
	return m
}

// matcher is the state of the comparison of one message.
type matcher struct {
	b     *Bindings
	f     *codec.Frame
	now   time.Time
	exact bool
	added []binding

	values []int // indexes of the spans that contain arguments
	group  int   // number of arguments that "..." skips at a time
}

// args compares the arguments from the i-th with the values from the k-th. It returns nil if they match, and
// otherwise the mismatch of the attempt that got furthest.
func (m *matcher) args(c *Choice, i, k int) *Mismatch {
	for ; i < len(c.Args) && c.Args[i].Kind != Rest; i++ {
		if k == len(m.values) {
			return m.wrongCount(c, len(m.f.Raw))
		}
		if bad := m.arg(&c.Args[i], m.values[k]); bad != nil {
			bad.Arg = i
			if key := m.key(k); key != "" {
				bad.Field = key
			}
			return bad
		}
		k++
	}
	switch {
	case i == len(c.Args) && k < len(m.values) && c.given(i) < i:
		bad := m.differs(m.values[k], "no further argument", "", nil)
		bad.Arg = i
		return bad
	case i == len(c.Args) && k < len(m.values):
		return m.wrongCount(c, m.f.Spans[m.values[k]].Off)
	case i == len(c.Args), i == len(c.Args)-1:
		return nil
	}
	var far *Mismatch
	need := m.needed(c, i+1)
	for bound := len(m.added); k+need <= len(m.values); k += m.group {
		bad := m.args(c, i+1, k)
		if bad == nil {
			return nil
		}
		if far == nil || bad.Arg > far.Arg {
			far = bad
		}
		m.added = m.added[:bound]
	}
	if at := m.identifier(c, i+1); far == nil || far.Arg <= at {
		return m.absentEntry(c, at)
	}
	return far
}

// needed returns the number of arguments from the i-th to the next "...".
func (m *matcher) needed(c *Choice, i int) int {
	n := 0
	for i+n < len(c.Args) && c.Args[i+n].Kind != Rest {
		n++
	}
	return n
}

// identifier returns the index of the argument, from the i-th, that identifies an entry of a list: the first with a
// fixed value.
func (m *matcher) identifier(c *Choice, i int) int {
	for k := i; k < len(c.Args) && c.Args[k].Kind != Rest; k++ {
		switch a := &c.Args[k]; a.Kind {
		case Name:
			if _, bound := m.b.valueOf(m.added, key{Name, a.Name}); bound {
				return k
			}
		case Literal:
			return k
		}
	}
	return i
}

// absentEntry returns the mismatch of a list that has no entry with the i-th argument of c. It shows a variable with its
// value.
func (m *matcher) absentEntry(c *Choice, i int) *Mismatch {
	fd, a := c.field(i), &c.Args[i]
	want := string(appendArg(nil, fd, a, showBytes))
	if value, bound := m.b.valueOf(m.added, key{a.Kind, a.Name}); a.Kind == Name && bound {
		want = string(appendValue(nil, fd, []byte(value), showBytes))
	}
	return &Mismatch{Arg: i, Field: "arguments", Offset: len(m.f.Raw),
		Want: fmt.Sprintf("an entry with %s %s", fd.Name, want), Got: "none"}
}

// key returns the key before the k-th value if that value belongs to a key with unique values, and ""
// otherwise.
func (m *matcher) key(k int) string {
	if k == 0 || !m.f.Spans[m.values[k-1]].Field.Unique {
		return ""
	}
	return string(m.f.Value(m.values[k-1]))
}

// wrongCount returns the mismatch of a message with too few or too many arguments.
func (m *matcher) wrongCount(c *Choice, off int) *Mismatch {
	got, want := len(m.values), c.given(len(c.Args))
	if want < len(c.Args) {
		return &Mismatch{Arg: min(got, want), Field: "arguments", Offset: off, Want: fmt.Sprintf("at least %d", want),
			Got: fmt.Sprint(got)}
	}
	return &Mismatch{Arg: min(got, want), Field: "arguments", Offset: off, Want: fmt.Sprint(want), Got: fmt.Sprint(got)}
}

// arg compares an argument with the value in the i-th span.
func (m *matcher) arg(a *Arg, i int) *Mismatch {
	fd, v := m.f.Spans[i].Field, m.f.Value(i)
	switch a.Kind {
	case Any:
		return nil
	case Version:
		if isVersion(v) {
			return nil
		}
		return m.differs(i, "a version number such as 1.1.20", "", nil)
	case Now:
		const slack = int64(nowSlack / time.Second)
		if n, ok := numberOf(fd, v); ok {
			if d := n - a.Delta - m.now.Unix(); d >= -slack && d <= slack {
				return nil
			}
		}
		want := fmt.Sprintf("%s (%d)", appendArg(nil, fd, a, 0), m.now.Unix()+a.Delta)
		return m.differs(i, want, "", nil)
	case Literal:
		if m.exact || !fd.Assigned {
			return m.compareValue(i, a.Value, "")
		}
		return m.compareOrBind(i, key{Literal, string(a.Value)})
	}
	return m.compareOrBind(i, key{Name, a.Name})
}

// compareValue compares the i-th value with a known value. why is appended to the expected value and names its
// origin.
func (m *matcher) compareValue(i int, want []byte, why string) *Mismatch {
	fd, v := m.f.Spans[i].Field, m.f.Value(i)
	if !bytes.Equal(v, want) {
		return m.differs(i, string(appendValue(nil, fd, want, showBytes))+why, "", want)
	}
	return nil
}

// compareOrBind compares the i-th value with the value of a key, or binds the key.
func (m *matcher) compareOrBind(i int, k key) *Mismatch {
	fd := m.f.Spans[i].Field
	v := string(m.f.Value(i))
	value, ok := m.b.valueOf(m.added, k)
	owner, owned := m.b.ownerOf(m.added, v)
	switch {
	case ok:
		why := ""
		if k.kind == Name || value != k.text {
			why = fmt.Sprintf(" (in this run the value of %s)", k)
		}
		return m.compareValue(i, []byte(value), why)
	case fd.Assigned && owned:
		return m.differs(i, "a new value for "+k.String(), fmt.Sprintf(" (in this run the value of %s)", owner), nil)
	}
	m.added = append(m.added, binding{k, v, fd.Assigned})
	return nil
}

func (m *matcher) differs(i int, want, why string, known []byte) *Mismatch {
	s, v := &m.f.Spans[i], m.f.Value(i)
	// a value may be longer than its escape sequences
	return &Mismatch{Field: s.Field.Name, Offset: min(s.Off+common(known, v), s.End), Want: want,
		Got: string(appendValue(nil, s.Field, v, showBytes)) + why}
}

// common returns the length of the common prefix of a and b.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func show(b []byte) string { return string(appendQuoted(nil, b, showBytes)) }

var (
	digit     = regexp.MustCompile(`[0-9]`)
	errorText = regexp.MustCompile(`(?i)\b(err|error|unknown|unrecogni[sz]ed|unsupported|invalid|illegal|bad|not|cannot|failed)\b`)
)

// isVersion reports whether a value is the version of a program: it contains a digit and does not
// read as an error message.
func isVersion(v []byte) bool { return digit.Match(v) && !errorText.Match(v) }

// VersionPatterns returns the regular expressions by which *version recognizes a version: a part of the value matches the
// first one, and no part matches the second one.
func VersionPatterns() (contains, not string) { return digit.String(), errorText.String() }

// numberOf returns the number of seconds that a value represents.
func numberOf(fd *codec.Field, v []byte) (int64, bool) {
	if isUint(fd) && len(v) <= 8 {
		return int64(uintOf(v)), true
	}
	n, ok := codec.ParseNumber(v)
	return int64(n), ok && int64(n) >= 0
}

// Resolve returns the message that a choice whose verb is [Send] sends now, with names replaced by their
// values. A literal for a value that the server chooses is replaced by the value bound to it; if there is
// none, it is bound to itself. If exact is true, literals are sent as written, and the bytes in c.Bytes, if
// any, must be sent instead.
//
// Resolve returns an error for wildcards and unbound names. The values of the message alias the choice.
func (b *Bindings) Resolve(c *Choice, now time.Time, exact bool) (codec.Message, error) {
	if c.Verb != Send || c.Type == nil {
		return codec.Message{}, errors.New("expected a line that sends a message, got a line with another action")
	}
	m := codec.Message{Type: c.Type, CRLF: c.CRLF}
	var added []binding
	for i := range c.Args {
		a, fd := &c.Args[i], c.field(i)
		v := a.Value
		switch a.Kind {
		case Any, Version, Rest:
			return codec.Message{}, fmt.Errorf("expected a value to send, got %s, which matches any value",
				appendArg(nil, fd, a, 0))
		case Now:
			v = timeValue(fd, now.Unix()+a.Delta)
		case Name:
			live, ok := b.live[key{Name, a.Name}]
			if !ok {
				return codec.Message{}, fmt.Errorf("variable $%s has no value: an earlier message in the transcript must contain $%[1]s", a.Name)
			}
			v = []byte(live)
		case Literal:
			if exact || fd == nil || !fd.Assigned {
				break
			}
			k := key{Literal, string(v)}
			live, bound := b.valueOf(added, k)
			owner, owned := b.ownerOf(added, k.text)
			switch {
			case bound:
				v = []byte(live)
			case owned:
				return codec.Message{}, fmt.Errorf("expected different values for %s and %s, got %q for both", k, owner, k.text)
			default:
				added = append(added, binding{k, k.text, true})
			}
		}
		m.Args = append(m.Args, v)
	}
	for _, n := range added {
		b.bind(n)
	}
	return m, nil
}

// timeValue returns a time in the number format of a field.
func timeValue(fd *codec.Field, seconds int64) []byte {
	if isUint(fd) {
		return appendUint(nil, fd.Width, uint64(seconds))
	}
	return fmt.Append(nil, seconds)
}

// Record returns a step that expects or sends exactly the message of a frame. It shares no memory with the
// frame, whose type must be known.
func Record(peer Actor, f *codec.Frame) Step {
	raw := f.Clone()
	c := Choice{Type: f.Type, CRLF: f.CRLF, Bytes: raw.Raw}
	for i := range raw.Spans {
		if !raw.Spans[i].Field.Derived() {
			c.Args = append(c.Args, Arg{Value: raw.Value(i)})
		}
	}
	return Step{Peer: peer, From: f.From, Choices: []Choice{c}}
}
