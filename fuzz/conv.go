package fuzz

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Conv is a conversation of several peers with a server: what the peers do. Connections are
// numbered from 0 and opened by their first step.
type Conv struct {
	Steps []Step

	// Burst conversations are sent without waiting for replies before the end; models
	// cannot follow them.
	Burst bool

	// Ahead conversations send messages ahead of the replies to those before them, as far as no
	// value of the server's is needed.
	Ahead bool
}

// Step is one thing that a peer does.
type Step struct {
	ID   int // what other steps refer to; unique in a conversation, 0 is none
	Conn int
	Verb transcript.Verb // Send, Raw, Opens, Closes, HalfCloses, Resets; Nothing waits

	Type  *codec.Type // of a Send
	Args  []Arg       // of a Send
	CRLF  bool        // of a Send
	Bytes []byte      // of a Raw
	For   time.Duration
}

// Arg is a value: itself, or what the server chose when another step was taken, such as the
// handle of the job that it submitted. Value then stands for it where the server chose
// nothing.
type Arg struct {
	Value []byte
	Of    int // ID of a step; 0 is none
}

// maxConns is how many connections a conversation may have.
const maxConns = 6

// clone returns a copy whose steps may be changed; the bytes are shared.
func (c *Conv) clone() *Conv {
	d := &Conv{Steps: slices.Clone(c.Steps), Burst: c.Burst, Ahead: c.Ahead}
	for i := range d.Steps {
		d.Steps[i].Args = slices.Clone(d.Steps[i].Args)
	}
	return d
}

// conns returns how many connections there are.
func (c *Conv) conns() int {
	n := 0
	for i := range c.Steps {
		n = max(n, c.Steps[i].Conn+1)
	}
	return n
}

// nextID returns an ID that no step has.
func (c *Conv) nextID() int {
	id := 0
	for i := range c.Steps {
		id = max(id, c.Steps[i].ID)
	}
	return id + 1
}

// waits returns how long a conversation does nothing on purpose.
func (c *Conv) waits() (d time.Duration) {
	for i := range c.Steps {
		if c.Steps[i].Verb == transcript.Nothing {
			d += c.Steps[i].For
		}
	}
	return d
}

// splice inserts the steps of another conversation, as they are but for their IDs and
// connections, which map says.
func (c *Conv) splice(at int, steps []Step, place func(conn int) int) {
	base := c.nextID()
	more := (&Conv{Steps: steps}).clone().Steps
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
	c.Steps = slices.Insert(c.Steps, at, more...)
}

// join returns the conversations one behind the other, each on connections and with names of its own.
func (d *dialect) join(convs []*Conv) *Conv {
	all := &Conv{}
	base := 0
	for i, c := range convs {
		c = d.apart(c, nth(i))
		all.Burst = all.Burst || c.Burst
		all.Ahead = all.Ahead || c.Ahead
		all.splice(len(all.Steps), c.Steps, func(conn int) int { return conn + base })
		n := all.conns()
		for conn := base; conn < n; conn++ {
			if !c.closes(conn - base) {
				all.Steps = append(all.Steps, Step{ID: all.nextID(), Conn: conn, Verb: transcript.Closes}) // which is seen to be noticed
			}
		}
		base = n
	}
	return all
}

// hurried returns the conversation with messages sent ahead, or nil if there are none to send so.
func (c *Conv) hurried() *Conv {
	for i := 1; i < len(c.Steps) && !c.Burst && !c.Ahead; i++ {
		if c.follows(i) {
			d := c.clone()
			d.Ahead = true
			return d
		}
	}
	return nil
}

// follows reports whether a step says more on a connection that has just spoken.
func (c *Conv) follows(i int) bool {
	return i > 0 && i < len(c.Steps) && c.Steps[i].Verb == transcript.Send && c.Steps[i-1].Verb == transcript.Send && c.Steps[i].Conn == c.Steps[i-1].Conn
}

// closes reports whether the conversation ends a connection itself.
func (c *Conv) closes(conn int) bool {
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Conn == conn && (s.Verb == transcript.Closes || s.Verb == transcript.Resets) {
			return true
		}
	}
	return false
}

// equal reports whether two conversations are the same.
func (c *Conv) equal(d *Conv) bool {
	return c.Burst == d.Burst && c.Ahead == d.Ahead && slices.EqualFunc(c.Steps, d.Steps, func(a, b Step) bool {
		return a.ID == b.ID && a.Conn == b.Conn && a.Verb == b.Verb && a.Type == b.Type && a.CRLF == b.CRLF && a.For == b.For &&
			bytes.Equal(a.Bytes, b.Bytes) && slices.EqualFunc(a.Args, b.Args, func(x, y Arg) bool {
			return x.Of == y.Of && bytes.Equal(x.Value, y.Value)
		})
	})
}

// bytes is about what it takes to keep.
func (c *Conv) bytes() int {
	n := 128 * len(c.Steps)
	for i := range c.Steps {
		n += len(c.Steps[i].Bytes)
		for _, a := range c.Steps[i].Args {
			n += 32 + len(a.Value)
		}
	}
	return n
}

// size is what minimising makes smaller: first steps, then bytes.
func (c *Conv) size() int {
	n := 0
	for i := range c.Steps {
		s := &c.Steps[i]
		n += 1000 + len(s.Bytes) + int(s.For/time.Millisecond)
		for _, a := range s.Args {
			n += len(a.Value)
		}
	}
	return n
}

// String returns the conversation in one line, for logs: the steps, long values cut short. Where a
// value is what the server chose behind another step, that step's number is behind it.
func (c *Conv) String() string {
	var b strings.Builder
	for i := range c.Steps {
		s := &c.Steps[i]
		what := s.Verb.String()
		if s.Type != nil {
			what = s.Type.Name
		}
		fmt.Fprintf(&b, "%d: client %d: %s", s.ID, s.Conn, what)
		for _, a := range s.Args {
			if fmt.Fprintf(&b, " %.32q", a.Value); a.Of > 0 {
				fmt.Fprintf(&b, " of %d", a.Of)
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

// assignedField returns the row's field of the i-th argument if the server chooses its value.
func assignedField(t *codec.Type, i int) *codec.Field {
	if f := argField(t, i); f != nil && f.Assigned {
		return f
	}
	return nil
}

// argField returns the field of the row's i-th argument, derived ones not counted, or nil.
func argField(t *codec.Type, i int) *codec.Field {
	if t == nil {
		return nil
	}
	for k := range t.Fields {
		if t.Fields[k].Derived() {
			continue
		}
		if i == 0 {
			return &t.Fields[k]
		}
		i--
	}
	var group []*codec.Field
	for k := range t.Repeat {
		if !t.Repeat[k].Derived() {
			group = append(group, &t.Repeat[k])
		}
	}
	if len(group) == 0 {
		return nil
	}
	return group[i%len(group)]
}

// wordFor maps the names of a script to words of the pool that conversations share.
type wordFor struct {
	words map[string][]byte
	next  map[string]int // by the field's label
	pool  func(label string) []string
}

func (w *wordFor) word(name string, f *codec.Field) []byte {
	if v, ok := w.words[name]; ok {
		return v
	}
	v := []byte(name)
	if f != nil {
		if pool := w.pool(f.Name); len(pool) > 0 {
			v = []byte(place + pool[w.next[f.Name]%len(pool)])
			w.next[f.Name]++
		} else if f.Kind == codec.Number || f.Kind == codec.Signed {
			v = []byte("1")
		}
	}
	w.words[name] = v
	return v
}

// FromScript makes a conversation of what the peers do in a transcript. It returns nil if
// they do nothing.
func FromScript(s *transcript.Script) *Conv {
	d := dialectOf(s.Protocol)
	c := &Conv{}
	conns := map[string]int{}
	lastOf := map[string]int{} // the last step of each actor
	chosen := map[string]int{} // by the name, or literal, of a value that the server chose: the step behind which it came
	words := wordFor{words: map[string][]byte{}, next: map[string]int{}, pool: d.namesFor}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.From == codec.Server {
			noteChosen(st, lastOf[st.Peer.Name], chosen)
			for k := range st.Choices {
				if ch := &st.Choices[k]; ch.Verb == transcript.Nothing && ch.For >= time.Second && len(st.Choices) == 1 {
					if conn, ok := conns[st.Peer.Name]; ok {
						c.Steps = append(c.Steps, Step{ID: len(c.Steps) + 1, Conn: conn, Verb: transcript.Nothing, For: ch.For})
					}
				}
			}
			continue
		}
		if _, ok := conns[st.Peer.Name]; !ok {
			if len(conns) == maxConns {
				continue
			}
			conns[st.Peer.Name] = len(conns)
		}
		if st.After >= time.Millisecond {
			c.Steps = append(c.Steps, Step{ID: len(c.Steps) + 1, Conn: conns[st.Peer.Name], Verb: transcript.Nothing, For: st.After})
		}
		ch := &st.Choices[0]
		step := Step{ID: len(c.Steps) + 1, Conn: conns[st.Peer.Name], Verb: ch.Verb, Type: ch.Type, CRLF: ch.CRLF, Bytes: ch.Bytes}
		if ch.Verb == transcript.Send {
			step.Bytes = nil
			for k := range ch.Args {
				step.Args = append(step.Args, fromArg(&ch.Args[k], argField(ch.Type, k), chosen, &words))
			}
		}
		lastOf[st.Peer.Name] = step.ID
		c.Steps = append(c.Steps, step)
	}
	if len(c.Steps) == 0 {
		return nil
	}
	return c
}

// noteChosen notes the values that an expectation binds.
func noteChosen(st *transcript.Step, after int, chosen map[string]int) {
	for i := range st.Choices {
		ch := &st.Choices[i]
		for k := range ch.Args {
			if key := argKey(&ch.Args[k]); key != "" && assignedField(ch.Type, k) != nil {
				if _, ok := chosen[key]; !ok && after > 0 {
					chosen[key] = after
				}
			}
		}
	}
}

func argKey(a *transcript.Arg) string {
	switch a.Kind {
	case transcript.Name:
		return "$" + a.Name
	case transcript.Literal:
		return string(a.Value)
	}
	return ""
}

func fromArg(a *transcript.Arg, f *codec.Field, chosen map[string]int, words *wordFor) Arg {
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
		return Arg{Value: []byte("1")}
	}
	return Arg{Value: []byte("x")}
}
