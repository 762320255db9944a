package faults

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

// Line completes the kit of a protocol whose programs contain [line.Quirks] and steps of package line. header is the
// length of a packet's header in bytes, and lengthAt is the offset of the four bytes in it that contain the length of
// the rest. It adds actions:
//
//	bytes STEP VALUE                 sends other bytes; in VALUE, "it" is the bytes of the message
//	data STEP VALUE                  the same for the bytes after the header, with their length in the header
//	word STEP N VALUE                the same for one word of a line; the command is word 0
//	read all EXPRESSION              gives up if it is true of a part of a message, "it", and the number of "reads"
//	read alone EXPRESSION            the same, and drops bytes that were received together with the end of a message
//	received TYPES TARGET = VALUE    sets TARGET when a message of one of the types is received
//
// In received, "name" is the type of the message, "args" is the list of its arguments, and "it" is the last of them if
// TARGET is "last", otherwise the first. TARGET is a field of the program, a note, "first" or "last" (that argument),
// "ignored" (the message is dropped), "become" (a list of a type and arguments, instead of the message) or "fail".
func Line[P, T any](k Kit[P, line.Step[T], T], header, lengthAt int) *Kit[P, line.Step[T], T] {
	type edit = *Edit[P, line.Step[T], T]
	send := func(e edit, step string, change func(b []byte) []byte) {
		e.Change(step, func(s line.Step[T]) []line.Step[T] {
			s.Raw = func(_ *T, b []byte) []byte { return change(b) }
			return []line.Step[T]{s}
		})
	}
	k.Step = func(s *line.Step[T]) (*string, *func(*T) bool) { return &s.Do, &s.If }
	k.Actions = map[string]Action[P, line.Step[T], T]{
		"bytes": func(e edit, step, rest string) { send(e, step, replacement(e, rest)) },
		"data": func(e edit, step, rest string) {
			change := replacement(e, rest)
			send(e, step, func(b []byte) []byte {
				data := change(b[header:])
				binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(data)))
				return append(b[:header:header], data...)
			})
		},
		"word": func(e edit, step, rest string) {
			at, expression, _ := strings.Cut(rest, " ")
			i, err := strconv.Atoi(at)
			if err != nil {
				panic(err)
			}
			change := replacement(e, expression)
			send(e, step, func(b []byte) []byte {
				text, rest, _ := strings.Cut(string(b), "\r\n")
				words := strings.Split(text, " ")
				words[i] = string(change([]byte(words[i])))
				return []byte(strings.Join(words, " ") + "\r\n" + rest)
			})
		},
		"read": func(e edit, how, rest string) {
			quirks(e.Program).Read = reader(how == "alone", e.Expression(rest))
		},
		"received": func(e edit, types, rest string) { received(e, strings.Split(types, ","), rest) },
	}
	return &k
}

// quirks returns the quirks of a program.
func quirks(program any) *line.Quirks {
	return reflect.ValueOf(program).Elem().FieldByName("Quirks").Addr().Interface().(*line.Quirks)
}

// replacement returns a function that returns the value of an expression about bytes.
func replacement[P, T any](e *Edit[P, line.Step[T], T], expression string) func(b []byte) []byte {
	value := e.Expression(expression)
	return func(b []byte) []byte { return []byte(value(map[string]any{"it": string(b)}).(string)) }
}

// reader returns a function that reads a message in a faulty way.
func reader(alone bool, givesUp func(map[string]any) any) func(c *line.Conn) (*codec.Message, error) {
	return func(c *line.Conn) (*codec.Message, error) {
		if alone {
			c.In = nil
		}
		for reads := 0; ; reads++ {
			if m, err := c.Decode(); m != nil || err != nil {
				return m, err
			}
			if givesUp(map[string]any{"it": string(c.In), "reads": reads}) == true {
				return nil, fmt.Errorf("%w: %d bytes after %d reads", line.ErrProtocol, len(c.In), reads)
			}
			if err := c.Fill(); err != nil {
				return nil, err
			}
		}
	}
}

// received performs the action of that name.
func received[P, T any](e *Edit[P, line.Step[T], T], types []string, assignment string) {
	target, value := e.Assignment(assignment)
	q := quirks(e.Program)
	read := q.Read
	if read == nil {
		read = line.Read
	}
	q.Read = func(c *line.Conn) (*codec.Message, error) {
		for {
			m, err := read(c)
			if err != nil || !slices.Contains(types, m.Type.Name) {
				return m, err
			}
			args, it := Texts(m.Args), ""
			if n := len(args); n > 0 && target == "last" {
				it = args[n-1]
			} else if n > 0 {
				it = args[0]
			}
			vars := map[string]any{"name": m.Type.Name, "args": args, "it": it}
			switch v := value(vars); target {
			case "ignored":
				if v == true {
					continue
				}
			case "first":
				if len(args) > 0 {
					m.Args[0] = []byte(v.(string))
				}
			case "last":
				m.Args[len(m.Args)-1] = []byte(v.(string))
			case "become":
				words := v.([]any)
				m.Type, m.Args = e.kit.Protocol.TypeNamed(words[0].(string)), nil
				for _, w := range words[1:] {
					m.Args = append(m.Args, []byte(w.(string)))
				}
			default:
				err = e.Set(e.Program, target, v)
			}
			return m, err
		}
	}
}
