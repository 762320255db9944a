package refserver

import (
	"strings"
	"time"

	"jobwire/codec"
)

// Fault is one way for the server to misbehave.
type Fault struct {
	Action Action
	Side   codec.Side // who sends the message
	Type   string     // which messages: a row's name, or "*"
	When   Condition  // only those that meet it
	Nth    int        // only the n-th of them on each connection; 0 is every one

	Delay time.Duration // of a Delay; of a Split, the pause behind each piece
	Size  int           // of a Split, in bytes
	Field string        // of an Alter: a field's name with hyphens
	Value string        // of an Alter; of an Answer or a Follow, the arguments, blanks between them
	To    *codec.Type   // of a Retype, what the message becomes; of an Answer or a Follow, what is sent
}

// Condition is a demand on one of a message's fields. The zero Condition is
// met by every message.
type Condition struct {
	Field string // its name with hyphens
	Value string
	Glob  bool // Value is a pattern, in which * stands for any bytes and ? for one
}

// Action is what a fault does to a message.
type Action string

const (
	Drop      Action = "drop"      // it is never handled, or never sent
	Delay     Action = "delay"     // it alone is late: others overtake it
	Duplicate Action = "duplicate" // it comes twice
	Split     Action = "split"     // it is written in pieces
	Alter     Action = "alter"     // one of its fields has another value
	Retype    Action = "retype"    // it is another message, with the same values in fields of the same name
	Answer    Action = "answer"    // it is never handled, but answered so
	Follow    Action = "follow"    // the server sends something else behind it
	Close     Action = "close"     // the connection is closed instead
)

// maxPause is the longest pause between the pieces of a split message, which
// the end of a connection has to wait for.
const maxPause = time.Second

// verdict turns the fault into what is to be done with one message it concerns.
func (f *Fault) verdict(frame *codec.Frame) Verdict {
	switch f.Action {
	case Drop:
		return Verdict{Drop: true}
	case Close:
		return Verdict{Drop: true, Close: true}
	case Delay:
		return Verdict{Delay: f.Delay}
	case Duplicate:
		return Verdict{Extra: 1}
	case Split:
		return Verdict{Split: f.Size, Pause: f.Delay}
	case Alter:
		if m := altered(frame, f.Field, f.Value); m != nil {
			return Verdict{Replace: m}
		}
	case Retype:
		return Verdict{Replace: Retyped(frame, f.To)}
	case Answer:
		return Verdict{Drop: true, Also: f.message()}
	case Follow:
		return Verdict{Also: f.message()}
	}
	return Verdict{}
}

// message is what an Answer or a Follow sends.
func (f *Fault) message() *codec.Message {
	m := &codec.Message{Type: f.To}
	for _, a := range strings.Fields(f.Value) {
		if a == `""` {
			a = ""
		}
		m.Args = append(m.Args, []byte(a))
	}
	return m
}

// altered returns what the frame says with another value in every field of that name,
// or nil if it has none.
func altered(frame *codec.Frame, field, value string) *codec.Message {
	var m codec.Message
	frame.Message(&m)
	found := false
	for i := range m.Args {
		if fd := frame.Type.FieldAt(i); fd != nil && hyphened(fd) == field {
			m.Args[i], found = []byte(value), true
		}
	}
	if !found {
		return nil
	}
	return &m
}

// Retyped returns a message of another type that says what the frame says: fields of the
// same name keep their values, and so does the last one if it may hold any bytes.
func Retyped(frame *codec.Frame, to *codec.Type) *codec.Message {
	var was codec.Message
	frame.Message(&was)
	values := map[string][]byte{}
	var last []byte
	for i, v := range was.Args {
		if fd := frame.Type.FieldAt(i); fd != nil {
			values[fd.Name] = v
			last = v
		}
	}
	m := &codec.Message{Type: to, CRLF: was.CRLF}
	for i := range to.NumArgs() {
		fd := to.FieldAt(i)
		v, ok := values[fd.Name]
		switch {
		case ok:
		case fd.Optional:
			return m
		case i == to.NumArgs()-1 && fd.Kind == codec.Opaque && opaqueEnd(frame.Type):
			v = last
		}
		m.Args = append(m.Args, v)
	}
	return m
}

// opaqueEnd reports whether the row's last field may hold any bytes.
func opaqueEnd(t *codec.Type) bool {
	n := len(t.Fields)
	return n > 0 && t.Fields[n-1].Kind == codec.Opaque
}

// met reports whether the frame meets the condition.
func (w *Condition) met(frame *codec.Frame) bool {
	if w.Field == "" {
		return true
	}
	var m codec.Message
	frame.Message(&m)
	for i, v := range m.Args {
		fd := frame.Type.FieldAt(i)
		if fd == nil || hyphened(fd) != w.Field {
			continue
		}
		if string(v) == w.Value || w.Glob && glob(w.Value, string(v)) {
			return true
		}
	}
	return false
}

// glob reports whether s is of the pattern's form: * is any bytes, ? is one.
func glob(pattern, s string) bool {
	star, mark := -1, 0 // the last *, and where what it stands for ends by now
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// hyphened is a field's name as faults write it.
func hyphened(f *codec.Field) string {
	return strings.ReplaceAll(strings.ToLower(f.Name), " ", "-")
}

// combine makes one interceptor of a hook and a list of faults. The first that
// has something to say about a message decides.
func combine(hook Intercept, faults []Fault) Intercept {
	if len(faults) == 0 {
		return hook
	}
	return func(c *Conn, from codec.Side, frame *codec.Frame) Verdict {
		if hook != nil {
			if v := hook(c, from, frame); v != (Verdict{}) {
				return v
			}
		}
		if frame.Type == nil {
			return Verdict{}
		}
		for i := range faults {
			f := &faults[i]
			if f.Side != from || f.Type != "*" && f.Type != frame.Type.Name || !f.When.met(frame) {
				continue
			}
			if c.counts == nil {
				c.counts = make([]int, len(faults))
			}
			c.counts[i]++
			if f.Nth == 0 || f.Nth == c.counts[i] {
				return f.verdict(frame)
			}
		}
		return Verdict{}
	}
}
