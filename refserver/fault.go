package refserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// Fault is one way for the server to misbehave.
type Fault struct {
	Action Action
	Side   codec.Side // who sends the message
	Type   string     // which messages: a row's name, or "*"
	Nth    int        // only the n-th of them on each connection; 0 is every one

	Delay time.Duration // of a Delay; of a Split, the pause behind each piece
	Size  int           // of a Split, in bytes
	Field string        // of an Alter: a field's name with hyphens
	Value string        // of an Alter
}

// Action is what a fault does to a message.
type Action string

const (
	Drop      Action = "drop"      // it is never handled, or never sent
	Delay     Action = "delay"     // it alone is late: others overtake it
	Duplicate Action = "duplicate" // it comes twice
	Split     Action = "split"     // it is written in pieces
	Alter     Action = "alter"     // one of its fields has another value
	Close     Action = "close"     // the connection is closed instead
)

// actions are the forms in which faults are written, for help and for errors.
var actions = []struct {
	action Action
	args   string
}{
	{Drop, "TYPE"},
	{Delay, "TYPE DURATION"},
	{Duplicate, "TYPE"},
	{Split, "TYPE SIZE [PAUSE]"},
	{Alter, "TYPE FIELD=VALUE"},
	{Close, "TYPE"},
}

// maxPause is the longest pause between the pieces of a split message, which
// the end of a connection has to wait for.
const maxPause = time.Second

// FaultSyntax says how faults are written, one form to a line.
func FaultSyntax() string {
	var b strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&b, "%s [from-peer|from-server] %s [nth=N]\n", a.action, a.args)
	}
	return b.String()
}

// ParseFault reads a fault as users write it:
//
//	drop NOOP
//	drop from-peer WORK_DATA nth=2
//	delay WORK_COMPLETE 500ms
//	split * 1 2ms
//	alter JOB_CREATED job-handle=H:x:1
//
// Without a direction it concerns what the server sends, unless only the peer
// sends messages of the type.
func ParseFault(p *codec.Protocol, text string) (Fault, error) {
	words := strings.Fields(text)
	f := Fault{Side: codec.Server}
	next := func() (w string) {
		if len(words) > 0 {
			w, words = words[0], words[1:]
		}
		return w
	}
	fail := func(format string, args ...any) (Fault, error) {
		return Fault{}, fmt.Errorf("fault %q: %s", text, fmt.Sprintf(format, args...))
	}

	f.Action = Action(next())
	form := slices.IndexFunc(actions, func(a struct {
		action Action
		args   string
	}) bool {
		return a.action == f.Action
	})
	if form < 0 {
		return fail("%q is no action; there are these:\n%s", f.Action, FaultSyntax())
	}
	var directed bool
	f.Type = next()
	if f.Type == "from-peer" || f.Type == "from-server" {
		directed = true
		if f.Type == "from-peer" {
			f.Side = codec.Peer
		}
		f.Type = next()
	}
	if f.Type == "" {
		return fail("the type is missing: %s %s", f.Action, actions[form].args)
	}
	if f.Type != "*" {
		t := p.TypeNamed(f.Type)
		if t == nil {
			return fail("%s has no type %q; its types are %s", p.Title, f.Type, typeNames(p))
		}
		if !directed && !t.Sends(codec.Server) {
			f.Side = codec.Peer
		}
		if !t.Sends(f.Side) {
			return fail("%s is never sent by the %s", t.Name, f.Side)
		}
	}
	if n := len(words); n > 0 {
		if v, ok := strings.CutPrefix(words[n-1], "nth="); ok {
			var err error
			if f.Nth, err = strconv.Atoi(v); err != nil || f.Nth < 1 {
				return fail("nth is %q; it must be a number from 1", v)
			}
			words = words[:n-1]
		}
	}

	var err error
	switch f.Action {
	case Delay:
		if f.Delay, err = time.ParseDuration(next()); err != nil || f.Delay < 0 {
			return fail("a duration is due behind the type, such as 500ms")
		}
	case Split:
		if f.Side == codec.Peer {
			return fail("only what the server sends can be split")
		}
		if f.Size, err = strconv.Atoi(next()); err != nil || f.Size < 1 {
			return fail("a size in bytes is due behind the type, from 1")
		}
		if w := next(); w != "" {
			if f.Delay, err = time.ParseDuration(w); err != nil || f.Delay < 0 || f.Delay > maxPause {
				return fail("the pause is %q; it must be a duration up to %s", w, maxPause)
			}
		}
	case Alter:
		var ok bool
		if f.Field, f.Value, ok = strings.Cut(strings.Join(words, " "), "="); !ok {
			return fail("FIELD=VALUE is due behind the type")
		}
		words = nil
		if t := p.TypeNamed(f.Type); t != nil && fieldIndex(t, f.Field) < 0 {
			return fail("%s has no field %q: it is %s", t.Name, f.Field, t.Signature())
		}
	}
	if len(words) > 0 {
		return fail("%q is one word too many: %s %s", words[0], f.Action, actions[form].args)
	}
	return f, nil
}

func typeNames(p *codec.Protocol) string {
	names := make([]string, len(p.Types))
	for i, t := range p.Types {
		names[i] = t.Name
	}
	return strings.Join(names, " ")
}

// fieldIndex returns the index among a row's arguments of the field with that
// name, in its hyphened form, or -1.
func fieldIndex(t *codec.Type, name string) int {
	n := 0
	for _, f := range t.Fields {
		if f.Derived() {
			continue
		}
		if strings.ReplaceAll(strings.ToLower(f.Name), " ", "-") == name {
			return n
		}
		n++
	}
	return -1
}

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
		if i := fieldIndex(frame.Type, f.Field); i >= 0 {
			var m codec.Message
			frame.Message(&m)
			if i < len(m.Args) {
				m.Args[i] = []byte(f.Value)
				return Verdict{Replace: &m}
			}
		}
	}
	return Verdict{}
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
			if f.Side != from || f.Type != "*" && f.Type != frame.Type.Name {
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
