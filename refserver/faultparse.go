package refserver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// actions are the forms in which faults are written, for help and for errors.
var actions = []form{
	{Drop, "TYPE", "do not process or send the message"},
	{Delay, "TYPE DURATION", "process or send it later; others overtake it"},
	{Duplicate, "TYPE", "process or send it twice"},
	{Split, "TYPE SIZE [PAUSE]", "write it in pieces of SIZE bytes"},
	{Alter, "TYPE FIELD=VALUE", "change the value of a field"},
	{Retype, "TYPE NEWTYPE", "change its type; keep fields of the same name"},
	{Answer, "TYPE REPLY [ARG...]", "do not process the request; send REPLY"},
	{Follow, "TYPE OTHER [ARG...]", "send OTHER after it"},
	{Close, "TYPE", "close the connection instead"},
}

type form struct {
	action Action
	args   string
	effect string
}

func (f *form) String() string { return string(f.action) + " " + f.args }

// FaultSyntax describes the notation of faults for help texts.
func FaultSyntax() string {
	var b strings.Builder
	b.WriteString("  ACTION [from-peer|from-server] ARGUMENTS [CONDITION] [nth=N]\n\nACTION and ARGUMENTS:\n")
	for _, a := range actions {
		fmt.Fprintf(&b, "  %-29s %s\n", a.String(), a.effect)
	}
	b.WriteString(`
TYPE is a message type of the protocol, or * for all types. FIELD is the name of a
field in lower case, with hyphens for spaces (job-handle). from-peer selects messages
that the server receives, from-server messages that it sends. The default is
from-server, or from-peer if the server never sends this type.
CONDITION selects messages by a field: "when FIELD=VALUE", or "when FIELD~GLOB", where
* matches any bytes and ? matches one byte. nth=N selects the Nth matching message
of each connection.
`)
	return b.String()
}

// ParseFault reads a fault as users write it:
//
//	drop NOOP
//	drop from-peer WORK_DATA nth=2
//	drop ERROR when error-text~*length*
//	delay WORK_COMPLETE 500ms
//	split * 1 2ms
//	alter JOB_CREATED job-handle=H:x:1
//	alter STATUS_RES known=1 when known=0
//	retype SUBMIT_JOB_HIGH SUBMIT_JOB
//	answer GRAB_JOB NO_JOB nth=1
//	follow JOB_ASSIGN NOOP
//
// Without a direction it concerns what the server sends, unless only the peer
// sends messages of the type. What is retyped keeps the values of the fields that both
// types have, and the last one if it may hold any bytes. An empty argument of an
// answer is written "".
func ParseFault(p *codec.Protocol, text string) (Fault, error) {
	f, err := parseFault(p, strings.Fields(text))
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	return f, nil
}

func parseFault(p *codec.Protocol, words []string) (Fault, error) {
	f := Fault{Side: codec.Server}
	next := func() (w string) {
		if len(words) > 0 {
			w, words = words[0], words[1:]
		}
		return w
	}
	fail := func(format string, args ...any) (Fault, error) { return Fault{}, fmt.Errorf(format, args...) }

	f.Action = Action(next())
	k := slices.IndexFunc(actions, func(a form) bool { return a.action == f.Action })
	if k < 0 {
		var names []string
		for _, a := range actions {
			names = append(names, string(a.action))
		}
		return fail("expected an action, got %q; the actions are %s", f.Action, strings.Join(names, ", "))
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
		return fail("expected a message type after %s; the notation is: %s", f.Action, &actions[k])
	}
	if f.Type != "*" {
		t, err := rowNamed(p, f.Type)
		if err != nil {
			return fail("%w", err)
		}
		if !directed && !t.Sends(codec.Server) {
			f.Side = codec.Peer
		}
		if !t.Sends(f.Side) {
			return fail("the %s never sends %s", f.Side, t.Name)
		}
	}
	var err error
	if words, err = f.parseLimits(p, words); err != nil {
		return fail("%w", err)
	}
	switch f.Action {
	case Delay:
		if f.Delay, err = time.ParseDuration(next()); err != nil || f.Delay < 0 {
			return fail("expected a duration after the message type, such as 500ms")
		}
	case Split:
		if f.Side == codec.Peer {
			return fail("split works only on messages that the server sends: remove from-peer")
		}
		if f.Size, err = strconv.Atoi(next()); err != nil || f.Size < 1 {
			return fail("expected a size in bytes after the message type, at least 1")
		}
		if w := next(); w != "" {
			if f.Delay, err = time.ParseDuration(w); err != nil || f.Delay < 0 || f.Delay > maxPause {
				return fail("expected a pause of at most %s after the size, got %q", maxPause, w)
			}
		}
	case Alter:
		var ok bool
		if f.Field, f.Value, ok = strings.Cut(strings.Join(words, " "), "="); !ok {
			return fail("expected FIELD=VALUE after the message type")
		}
		words = nil
		if err = hasField(p, f.Type, f.Field); err != nil {
			return fail("%w", err)
		}
	case Retype, Answer, Follow:
		if f.To, err = rowNamed(p, next()); err != nil {
			return fail("%w", err)
		}
		if f.Action == Answer && f.Side != codec.Peer {
			return fail("answer works only on messages that the peer sends, and the server sends %s: use drop and follow, or retype", f.Type)
		}
		if by := f.Side; f.Action == Retype && !f.To.Sends(by) || f.Action != Retype && !f.To.Sends(codec.Server) {
			if f.Action != Retype {
				by = codec.Server
			}
			return fail("the %s never sends %s", by, f.To.Name)
		}
		if f.Action != Retype {
			f.Value, words = strings.Join(words, " "), nil
		}
	}
	if len(words) > 0 {
		return fail("unexpected word %q; the notation is: %s", words[0], &actions[k])
	}
	return f, nil
}

// parseLimits takes "when CONDITION" and "nth=N" off the end.
func (f *Fault) parseLimits(p *codec.Protocol, words []string) ([]string, error) {
	if n := len(words); n > 0 {
		if v, ok := strings.CutPrefix(words[n-1], "nth="); ok {
			var err error
			if f.Nth, err = strconv.Atoi(v); err != nil || f.Nth < 1 {
				return nil, fmt.Errorf("expected a number of at least 1 after nth=, got %q", v)
			}
			words = words[:n-1]
		}
	}
	n := len(words)
	if n > 0 && words[n-1] == "when" {
		return nil, errors.New("expected FIELD=VALUE or FIELD~GLOB after when")
	}
	if n < 2 || words[n-2] != "when" {
		return words, nil
	}
	at := strings.IndexAny(words[n-1], "=~")
	if at < 0 {
		return nil, errors.New("expected FIELD=VALUE or FIELD~GLOB after when")
	}
	f.When = Condition{words[n-1][:at], words[n-1][at+1:], words[n-1][at] == '~'}
	return words[:n-2], hasField(p, f.Type, f.When.Field)
}

func rowNamed(p *codec.Protocol, name string) (*codec.Type, error) {
	if t := p.TypeNamed(name); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s has no message type %q; its types are %s", p.Title, name, typeNames(p))
}

// hasField refuses a field that messages of the type cannot have.
func hasField(p *codec.Protocol, typ, field string) error {
	t := p.TypeNamed(typ)
	if t == nil {
		return nil // any type
	}
	for i := range len(t.Fields) + len(t.Repeat) {
		if fd := t.FieldAt(i); fd != nil && hyphened(fd) == field {
			return nil
		}
	}
	return fmt.Errorf("%s has no field %q; expected a field of: %s", t.Name, field, t.Signature())
}

func typeNames(p *codec.Protocol) string {
	names := make([]string, len(p.Types))
	for i, t := range p.Types {
		names[i] = t.Name
	}
	return strings.Join(names, " ")
}
