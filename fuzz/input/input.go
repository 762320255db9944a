package input

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Input is a sequence of messages and actions of several peers. Connections are numbered from 0. The first step of a
// connection opens it.
type Input struct {
	Steps []Step
	Mode  Mode
}

// Mode determines how the messages of an input are sent.
type Mode uint8

const (
	OneByOne  Mode = iota // each message after all effects of the previous message have arrived
	Pipelined             // several messages in one write, a barrier after each message
	Joined                // several messages in one write, a barrier after the last message
	Burst                 // all messages without waiting for replies; no model checks these inputs
)

var modes = [...]string{"one-by-one", "pipelined", "joined", "burst"}

// MarshalText returns the name of the mode.
func (m Mode) MarshalText() ([]byte, error) { return []byte(modes[m]), nil }

// UnmarshalText reads the name of a mode.
func (m *Mode) UnmarshalText(b []byte) error {
	at := slices.Index(modes[:], string(b))
	if at < 0 {
		return fmt.Errorf("expected one of the modes %s, got %q", strings.Join(modes[:], ", "), b)
	}
	*m = Mode(at)
	return nil
}

// Step is one message or action of a peer.
type Step struct {
	// number by which other steps refer to this step; unique in an input; 0: no step refers to it
	ID   int             `json:"id"`
	Conn int             `json:"conn"`
	Verb transcript.Verb `json:"verb"` // one of a peer, or Nothing for a pause

	Type  *codec.Type   `json:"-"`               // if Verb is Send
	Args  []Arg         `json:"args,omitempty"`  // if Verb is Send
	CRLF  bool          `json:"crlf,omitempty"`  // if Verb is Send
	Bytes []byte        `json:"bytes,omitempty"` // if Verb is Raw or Urgent
	For   time.Duration `json:"for,omitempty"`
}

// Arg is an argument: a value, a time, or a value that the server chose in the reply to another step, such as the
// handle of the job that the step submitted. If the server chose nothing, Value is used.
type Arg struct {
	Value []byte `json:"v"`
	Of    int    `json:"of,omitempty"`  // ID of a step; 0: none
	Now   bool   `json:"now,omitempty"` // Value is the number of seconds from the time at which the step is executed
}

// Message returns the message of a step. A value that the server chooses is the one that is used if it chooses none.
func (s *Step) Message() codec.Message {
	m := codec.Message{Type: s.Type, CRLF: s.CRLF}
	for _, a := range s.Args {
		m.Args = append(m.Args, a.Value)
	}
	return m
}

// MaxConns is the maximum number of connections of an input.
const MaxConns = 6

// Clone returns a copy whose steps and arguments may be changed. The copy shares the bytes of values with in.
func (in *Input) Clone() *Input {
	d := &Input{Steps: slices.Clone(in.Steps), Mode: in.Mode}
	for i := range d.Steps {
		d.Steps[i].Args = slices.Clone(d.Steps[i].Args)
	}
	return d
}

// Conns returns the number of connections: the highest connection number plus one.
func (in *Input) Conns() int {
	n := 0
	for i := range in.Steps {
		n = max(n, in.Steps[i].Conn+1)
	}
	return n
}

// nextID returns a new ID for a step, greater than all IDs in the input.
func (in *Input) nextID() int {
	id := 0
	for i := range in.Steps {
		id = max(id, in.Steps[i].ID)
	}
	return id + 1
}

// Waits returns the sum of all pauses.
func (in *Input) Waits() (d time.Duration) {
	for i := range in.Steps {
		if in.Steps[i].Verb == transcript.Nothing {
			d += in.Steps[i].For
		}
	}
	return d
}

// WithoutPauses returns a copy of the input without its pauses.
func (in *Input) WithoutPauses() *Input {
	d := in.Clone()
	d.Steps = slices.DeleteFunc(d.Steps, func(s Step) bool { return s.Verb == transcript.Nothing })
	return d
}

// splice inserts copies of steps at the given index and gives them new IDs. place maps the connection numbers of the
// steps to those of in.
func (in *Input) splice(at int, steps []Step, place func(conn int) int) {
	base := in.nextID()
	more := (&Input{Steps: steps}).Clone().Steps
	for i := range more {
		s := &more[i]
		s.ID += base
		s.Conn = place(s.Conn)
		for k := range s.Args {
			if s.Args[k].Of > 0 {
				s.Args[k].Of += base
			}
		}
	}
	in.Steps = slices.Insert(in.Steps, at, more...)
}

// Join returns one input that runs the inputs of entries one after the other, each with its own connections. Entries
// with different prefixes have different names.
func (tr *Traits) Join(entries []Entry) *Input {
	all := &Input{}
	base := 0
	for _, e := range entries {
		in := tr.apart(e.Input, Nth(slices.IndexFunc(entries, func(o Entry) bool { return o.Prefix == e.Prefix })))
		all.Mode = max(all.Mode, in.Mode)
		all.splice(len(all.Steps), in.Steps, func(conn int) int { return conn + base })
		n := all.Conns()
		for conn := base; conn < n; conn++ {
			if !in.Ends(conn-base, len(in.Steps), transcript.Closes, transcript.Resets) {
				// the executor waits until the server has noticed the close
				all.Steps = append(all.Steps, Step{ID: all.nextID(), Conn: conn, Verb: transcript.Closes})
			}
		}
		base = n
	}
	return all
}

// Together returns a copy of the input in a mode that sends several messages in one write, or nil if the input has no
// adjacent messages on one connection.
func (in *Input) Together(mode Mode) *Input {
	for i := 1; i < len(in.Steps) && in.Mode == OneByOne; i++ {
		if in.Follows(i) {
			d := in.Clone()
			d.Mode = mode
			return d
		}
	}
	return nil
}

// Follows reports whether step i and the previous step both send a message on the same connection.
func (in *Input) Follows(i int) bool {
	return i > 0 && i < len(in.Steps) && in.Steps[i].Verb == transcript.Send && in.Steps[i-1].Verb == transcript.Send &&
		in.Steps[i].Conn == in.Steps[i-1].Conn
}

// Ends reports whether one of the first n steps ends the connection by one of the given actions.
func (in *Input) Ends(conn, n int, ways ...transcript.Verb) bool {
	return slices.ContainsFunc(in.Steps[:n], func(s Step) bool { return s.Conn == conn && slices.Contains(ways, s.Verb) })
}

// Equal reports whether two inputs have the same mode and steps.
func (in *Input) Equal(d *Input) bool {
	return in.Mode == d.Mode && slices.EqualFunc(in.Steps, d.Steps, func(a, b Step) bool {
		return a.ID == b.ID && a.Conn == b.Conn && a.Verb == b.Verb && a.Type == b.Type && a.CRLF == b.CRLF &&
			a.For == b.For &&
			bytes.Equal(a.Bytes, b.Bytes) && slices.EqualFunc(a.Args, b.Args, func(x, y Arg) bool {
			return x.Of == y.Of && x.Now == y.Now && bytes.Equal(x.Value, y.Value)
		})
	})
}

// Bytes returns the approximate size of the input in memory, in bytes.
func (in *Input) Bytes() int {
	n := 128 * len(in.Steps)
	for i := range in.Steps {
		n += len(in.Steps[i].Bytes)
		for _, a := range in.Steps[i].Args {
			n += 32 + len(a.Value)
		}
	}
	return n
}

// Size returns the measure that the minimizer reduces: each step counts 1000, and each byte and each millisecond of a
// pause counts 1.
func (in *Input) Size() int {
	n := 0
	for i := range in.Steps {
		s := &in.Steps[i]
		n += 1000 + len(s.Bytes) + int(s.For/time.Millisecond)
		for _, a := range s.Args {
			n += len(a.Value)
		}
	}
	return n
}

// Shape returns the classes of all steps in order, separated by spaces. A class is a message type, a broken rule or an
// action.
func (in *Input) Shape(p *codec.Protocol) string {
	var b strings.Builder
	for i := range in.Steps {
		b.WriteString(Class(p, &in.Steps[i]) + " ")
	}
	return b.String()
}

// String returns the input as one line for logs, with long values cut short. "of N" after a value means that the server
// chose the value in the reply to step N.
func (in *Input) String() string {
	var b strings.Builder
	for i := range in.Steps {
		s := &in.Steps[i]
		what := s.Verb.String()
		if s.Type != nil {
			what = s.Type.Name
		}
		fmt.Fprintf(&b, "%d: client %d: %s", s.ID, s.Conn, what)
		for _, a := range s.Args {
			if fmt.Fprintf(&b, " %.32q", a.Value); a.Of > 0 {
				fmt.Fprintf(&b, " of %d", a.Of)
			} else if a.Now {
				b.WriteString(" s from now")
			}
		}
		if len(s.Bytes) > 0 {
			fmt.Fprintf(&b, " %.32q", s.Bytes)
		}
		if s.For > 0 {
			fmt.Fprintf(&b, " %v", s.For)
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// Class returns the class of a step: the rule that its bytes break, otherwise its message type or, if there is none,
// its action.
func Class(p *codec.Protocol, s *Step) string {
	sess := p.NewSession(codec.Options{})
	name := s.Verb.String()
	var err error
	switch {
	case s.Verb == transcript.Raw:
		var f codec.Frame
		if _, err = sess.Decode(codec.Peer, s.Bytes, &f); f.Type != nil {
			name = f.Type.Name
		}
	case s.Type != nil:
		name = s.Type.Name
		m := s.Message()
		_, err = sess.Append(nil, codec.Peer, &m)
	}
	if e, ok := err.(*codec.Error); ok {
		return string(e.Rule)
	}
	return name
}

// AssignedField returns the field of the i-th argument if the server chooses its value, or nil.
func AssignedField(t *codec.Type, i int) *codec.Field {
	if f := t.FieldAt(i); f != nil && f.Assigned {
		return f
	}
	return nil
}

// words maps the names in a script to a small set of words, which all inputs use.
type words struct {
	of     map[string][]byte
	queues int // number of words that are names of queues
}

// word returns the word for a name in a script, and chooses one that fits the field at the first use of the name: a
// queue name from the common set, a number, or the name itself.
func (w *words) word(name string, f *codec.Field) []byte {
	v, ok := w.of[name]
	switch {
	case ok:
		return v
	case isName(f):
		v = []byte(Placeholder + names[w.queues%len(names)])
		w.queues++
	case f != nil && (f.Kind == codec.Number || f.Kind == codec.Signed):
		v = []byte("1")
	default:
		v = []byte(name)
	}
	w.of[name] = v
	return v
}

// FromScript converts the messages and actions of the peers in a transcript to an input. It returns nil if there are
// none.
func FromScript(s *transcript.Script) *Input {
	in := &Input{}
	conns := map[string]int{}
	lastOf := map[string]int{} // the last step of each actor
	chosen := map[string]int{} // the step whose reply contains the value, by name or value
	words := &words{of: map[string][]byte{}}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.From == codec.Server {
			noteChosen(st, lastOf[st.Peer.Name], chosen)
			for k := range st.Choices {
				if ch := &st.Choices[k]; ch.Verb == transcript.Nothing && ch.For >= time.Second && len(st.Choices) == 1 {
					if conn, ok := conns[st.Peer.Name]; ok {
						in.Steps = append(in.Steps, Step{ID: len(in.Steps) + 1, Conn: conn, Verb: transcript.Nothing, For: ch.For})
					}
				}
			}
			continue
		}
		if _, ok := conns[st.Peer.Name]; !ok {
			if len(conns) == MaxConns {
				continue
			}
			conns[st.Peer.Name] = len(conns)
		}
		if st.After >= time.Millisecond {
			in.Steps = append(in.Steps, Step{ID: len(in.Steps) + 1, Conn: conns[st.Peer.Name], Verb: transcript.Nothing,
				For: st.After})
		}
		ch := &st.Choices[0]
		step := Step{ID: len(in.Steps) + 1, Conn: conns[st.Peer.Name], Verb: ch.Verb, Type: ch.Type, CRLF: ch.CRLF,
			Bytes: ch.Bytes}
		if ch.Verb == transcript.Send {
			step.Bytes = nil
			for k := range ch.Args {
				step.Args = append(step.Args, fromArg(&ch.Args[k], ch.Type.FieldAt(k), chosen, words))
			}
		}
		lastOf[st.Peer.Name] = step.ID
		in.Steps = append(in.Steps, step)
	}
	if len(in.Steps) == 0 {
		return nil
	}
	return in
}

// noteChosen records in chosen, for each value that the server chooses in an expected message, the ID of the step
// before the message.
func noteChosen(st *transcript.Step, after int, chosen map[string]int) {
	for i := range st.Choices {
		ch := &st.Choices[i]
		for k := range ch.Args {
			if key := argKey(&ch.Args[k]); key != "" && AssignedField(ch.Type, k) != nil {
				if _, ok := chosen[key]; !ok && after > 0 {
					chosen[key] = after
				}
			}
		}
	}
}

// argKey returns the key of an argument in the map of values that the server has chosen: "$" and the name, or the
// literal value. It returns "" for other kinds of arguments.
func argKey(a *transcript.Arg) string {
	switch a.Kind {
	case transcript.Name:
		return "$" + a.Name
	case transcript.Literal:
		return string(a.Value)
	}
	return ""
}

// fromArg converts an argument of a script to an argument of an input. chosen contains the steps whose replies contain
// values that the server chooses: an argument with such a value refers to the step.
func fromArg(a *transcript.Arg, f *codec.Field, chosen map[string]int, words *words) Arg {
	if key := argKey(a); key != "" {
		if of := chosen[key]; of > 0 && f != nil && f.Assigned {
			return Arg{Value: []byte("1"), Of: of}
		}
	}
	switch a.Kind {
	case transcript.Literal:
		return Arg{Value: a.Value}
	case transcript.Name:
		return Arg{Value: words.word(a.Name, f)}
	case transcript.Now:
		if f != nil && f.Width > 0 {
			return Arg{Value: make([]byte, f.Width)}
		}
		return Arg{Value: strconv.AppendInt(nil, a.Delta, 10), Now: true}
	}
	return Arg{Value: []byte("x")}
}
