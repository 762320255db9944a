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
var actions = []struct {
	action Action
	args   string
}{
	{Drop, "TYPE"},
	{Delay, "TYPE DURATION"},
	{Duplicate, "TYPE"},
	{Split, "TYPE SIZE [PAUSE]"},
	{Alter, "TYPE FIELD=VALUE"},
	{Retype, "TYPE NEWTYPE"},
	{Answer, "TYPE REPLY [ARG...]"},
	{Follow, "TYPE OTHER [ARG...]"},
	{Close, "TYPE"},
}

// FaultSyntax says how faults are written, one form to a line.
func FaultSyntax() string {
	var b strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&b, "%s [from-peer|from-server] %s [CONDITION] [nth=N]\n", a.action, a.args)
	}
	b.WriteString("CONDITION is: when FIELD=VALUE, or: when FIELD~GLOB, where * is any bytes and ? one\n")
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
		t, err := rowNamed(p, f.Type)
		if err != nil {
			return fail("%w", err)
		}
		if !directed && !t.Sends(codec.Server) {
			f.Side = codec.Peer
		}
		if !t.Sends(f.Side) {
			return fail("%s is never sent by the %s", t.Name, f.Side)
		}
	}
	var err error
	if words, err = f.parseLimits(p, words); err != nil {
		return fail("%w", err)
	}
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
		if err = hasField(p, f.Type, f.Field); err != nil {
			return fail("%w", err)
		}
	case Retype, Answer, Follow:
		if f.To, err = rowNamed(p, next()); err != nil {
			return fail("%w", err)
		}
		if f.Action == Answer && f.Side != codec.Peer {
			return fail("only what the peer sends can be answered")
		}
		if by := f.Side; f.Action == Retype && !f.To.Sends(by) || f.Action != Retype && !f.To.Sends(codec.Server) {
			return fail("%s is not to be sent by the other side", f.To.Name)
		}
		if f.Action != Retype {
			f.Value, words = strings.Join(words, " "), nil
		}
	}
	if len(words) > 0 {
		return fail("%q is one word too many: %s %s", words[0], f.Action, actions[form].args)
	}
	return f, nil
}

// parseLimits takes "when CONDITION" and "nth=N" off the end.
func (f *Fault) parseLimits(p *codec.Protocol, words []string) ([]string, error) {
	if n := len(words); n > 0 {
		if v, ok := strings.CutPrefix(words[n-1], "nth="); ok {
			var err error
			if f.Nth, err = strconv.Atoi(v); err != nil || f.Nth < 1 {
				return nil, fmt.Errorf("nth is %q; it must be a number from 1", v)
			}
			words = words[:n-1]
		}
	}
	n := len(words)
	if n > 0 && words[n-1] == "when" {
		return nil, errors.New("FIELD=VALUE or FIELD~GLOB is due behind when")
	}
	if n < 2 || words[n-2] != "when" {
		return words, nil
	}
	at := strings.IndexAny(words[n-1], "=~")
	if at < 0 {
		return nil, errors.New("FIELD=VALUE or FIELD~GLOB is due behind when")
	}
	f.When = Condition{words[n-1][:at], words[n-1][at+1:], words[n-1][at] == '~'}
	return words[:n-2], hasField(p, f.Type, f.When.Field)
}

func rowNamed(p *codec.Protocol, name string) (*codec.Type, error) {
	if t := p.TypeNamed(name); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s has no type %q; its types are %s", p.Title, name, typeNames(p))
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
	return fmt.Errorf("%s has no field %q: it is %s", t.Name, field, t.Signature())
}

func typeNames(p *codec.Protocol) string {
	names := make([]string, len(p.Types))
	for i, t := range p.Types {
		names[i] = t.Name
	}
	return strings.Join(names, " ")
}
