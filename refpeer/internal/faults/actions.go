package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/internal/peer"
)

// pauseTime is a time in which other clients can see the effects of the steps before.
const pauseTime = 20 * time.Millisecond

// whole contains the actions that do not change one step.
var whole = map[string]func(e *edit, name, rest string){
	"join": func(e *edit, name, rest string) {
		first, second, _ := strings.Cut(rest, " ")
		all := slices.Concat(e.Steps[first], e.Steps[second])
		e.Steps[first], e.Steps[second] = nil, nil
		e.Steps[name] = all
	},
	"swap": func(e *edit, a, b string) {
		var first, second peer.Step
		pause := peer.Step{Do: "pause", Local: func(c *peer.Conn, _ peer.Task) error {
			c.Pause(pauseTime)
			return nil
		}}
		e.change(a, func(s peer.Step) []peer.Step { first = s; return []peer.Step{{Do: "swapped"}} })
		e.change(b, func(s peer.Step) []peer.Step { second = s; return []peer.Step{pause, first} })
		e.change("swapped", func(peer.Step) []peer.Step { return []peer.Step{second} })
	},
	"set":      func(e *edit, name, rest string) { e.set(name, e.expression(rest)(nil)) },
	"read":     func(e *edit, how, rest string) { e.Read = reader(how == "alone", e.expression(rest)) },
	"received": func(e *edit, types, rest string) { e.received(strings.Split(types, ","), rest) },
}

// steps contains the actions that replace a step.
var steps = map[string]func(e *edit, s peer.Step, rest string) []peer.Step{
	"drop":    func(*edit, peer.Step, string) []peer.Step { return nil },
	"twice":   func(_ *edit, s peer.Step, _ string) []peer.Step { return []peer.Step{s, s} },
	"before":  func(e *edit, s peer.Step, rest string) []peer.Step { return []peer.Step{e.step(rest, s.If), s} },
	"after":   func(e *edit, s peer.Step, rest string) []peer.Step { return []peer.Step{s, e.step(rest, s.If)} },
	"instead": func(e *edit, s peer.Step, rest string) []peer.Step { return []peer.Step{e.step(rest, s.If)} },
	"ask":     func(_ *edit, s peer.Step, rest string) []peer.Step { s.Do = rest; return []peer.Step{s} },
	"when":    func(e *edit, s peer.Step, rest string) []peer.Step { s.If = e.condition(rest); return []peer.Step{s} },
	"cure": func(_ *edit, s peer.Step, rest string) []peer.Step {
		code, do, _ := strings.Cut(rest, " ")
		s.For, s.Cure = code, peer.Sequence{{Do: do}}
		return []peer.Step{s}
	},
	"first": func(e *edit, s peer.Step, rest string) []peer.Step {
		assign := e.assignment(rest)
		return []peer.Step{{Do: "first", If: s.If, Local: func(_ *peer.Conn, t peer.Task) error { return assign(t, nil) }}, s}
	},
	"reply": func(e *edit, s peer.Step, rest string) []peer.Step {
		assign, check := e.assignment(rest), s.Then
		s.Then = func(t peer.Task, m *codec.Message) error {
			var err error
			if m.Type.Does != codec.Refuse {
				err = assign(t, map[string]any{"reply": m.Type.Name, "args": texts(m)})
			}
			switch {
			case errors.Is(err, errAccepted):
				return nil
			case err == nil && check != nil:
				return check(t, m)
			}
			return err
		}
		return []peer.Step{s}
	},
	"then": func(e *edit, s peer.Step, rest string) []peer.Step {
		assign, check, local := e.assignment(rest), s.Then, s.Local
		if local != nil {
			s.Local = func(c *peer.Conn, t peer.Task) error { return errors.Join(local(c, t), assign(t, nil)) }
			return []peer.Step{s}
		}
		s.Then = func(t peer.Task, m *codec.Message) error {
			if check != nil {
				if err := check(t, m); err != nil {
					return err
				}
			}
			return assign(t, nil)
		}
		return []peer.Step{s}
	},
	"bytes": func(e *edit, s peer.Step, rest string) []peer.Step { return sends(s, e.replacement(rest)) },
	"data": func(e *edit, s peer.Step, rest string) []peer.Step {
		change, header := e.replacement(rest), e.kit.Header
		return sends(s, func(b []byte) []byte {
			data := change(b[header:])
			binary.BigEndian.PutUint32(b[e.kit.LengthAt:], uint32(len(data)))
			return append(b[:header:header], data...)
		})
	},
	"word": func(e *edit, s peer.Step, rest string) []peer.Step {
		at, expression, _ := strings.Cut(rest, " ")
		i, err := strconv.Atoi(at)
		if err != nil {
			panic(err)
		}
		change := e.replacement(expression)
		return sends(s, func(b []byte) []byte {
			text, rest, _ := strings.Cut(string(b), "\r\n")
			words := strings.Split(text, " ")
			words[i] = string(change([]byte(words[i])))
			return []byte(strings.Join(words, " ") + "\r\n" + rest)
		})
	},
}

// step returns a step that sends a message if condition and the condition of the message are true.
func (e *edit) step(message string, condition func(peer.Task) bool) peer.Step {
	text, expression, limited := strings.Cut(message, " when ")
	s := peer.Step{Do: text, If: condition}
	if limited {
		own := e.condition(expression)
		s.If = func(t peer.Task) bool { return (condition == nil || condition(t)) && own(t) }
	}
	return s
}

func sends(s peer.Step, change func(b []byte) []byte) []peer.Step {
	s.Raw = func(_ peer.Task, b []byte) []byte { return change(b) }
	return []peer.Step{s}
}

// replacement returns a function that returns the value of an expression about bytes.
func (e *edit) replacement(expression string) func(b []byte) []byte {
	value := e.expression(expression)
	return func(b []byte) []byte { return []byte(value(map[string]any{"it": string(b)}).(string)) }
}

// reader returns a function that reads a message in a faulty way.
func reader(alone bool, givesUp func(map[string]any) any) func(c *peer.Conn) (*codec.Message, error) {
	return func(c *peer.Conn) (*codec.Message, error) {
		if alone {
			c.In = nil
		}
		for reads := 0; ; reads++ {
			if m, err := c.Decode(); m != nil || err != nil {
				return m, err
			}
			if givesUp(map[string]any{"it": string(c.In), "reads": reads}) == true {
				return nil, fmt.Errorf("%w: %d bytes after %d reads", peer.ErrProtocol, len(c.In), reads)
			}
			if err := c.Fill(); err != nil {
				return nil, err
			}
		}
	}
}
