// Package faults makes faulty clients and workers of the reference programs. Each is a row of a file ROLE.yaml:
//
//	# worker.yaml
//	- name: completes-twice
//	  about: The worker sends each result twice.
//	  rule: work.final
//	  edit: after WORK_COMPLETE WORK_COMPLETE {JOB_ID} {RESULT}
//
// Each line of edit is an action that changes the program. STEP is the step of a sequence whose message type is STEP:
//
//	drop STEP                    removes the step
//	twice STEP                   repeats it
//	before STEP MESSAGE          sends another message before it, under the same condition
//	after STEP MESSAGE           sends another message after it
//	instead STEP MESSAGE         sends another message instead of it
//	ask STEP MESSAGE             the same, with the same check of the reply
//	when STEP EXPRESSION         changes its condition
//	first STEP TARGET = VALUE    sets TARGET before the step
//	reply STEP TARGET = VALUE    sets TARGET when the reply arrives, before the program checks it
//	then STEP TARGET = VALUE     sets TARGET after the step, if its reply is valid
//	cure STEP [CODE MESSAGE]     replaces the failure that the step cures, and the message that cures it
//	swap STEP STEP               exchanges two steps of a sequence, with a pause between them
//	join SEQUENCE FIRST SECOND   moves the steps of two sequences into one
//
// and these change the bytes that the program sends, and how it receives:
//
//	bytes STEP VALUE                 sends other bytes; in VALUE, "it" is the bytes of the message
//	data STEP VALUE                  the same for the bytes after the header, with their length in the header
//	word STEP N VALUE                the same for one word of a line; the command is word 0
//	read all EXPRESSION              gives up if it is true of a part of a message, "it", and the number of "reads"
//	read alone EXPRESSION            the same, and drops bytes that were received together with the end of a message
//	received TYPES TARGET = VALUE    sets TARGET when a message of one of the types is received
//	set FIELD VALUE                  sets a field of the program
//
// MESSAGE may end with "when EXPRESSION". TARGET is a value of the task; notes.NAME, which remembers a value as long as
// the program runs; "fail" (if VALUE is true or an error); or, in reply, "accept" (if VALUE is true, the program does
// not check the reply). Expressions can use the values of the task and the notes, and have the language of the faults
// of servers. A group of values, such as job.status and job.output, is a map. The actions reply and then are for
// sequential programs; in reply, "reply" is the type of the reply and "args" is the list of its arguments.
//
// In received, "name" is the type of the message, "args" is the list of its arguments, and "it" is the last of them if
// TARGET is "last", otherwise the first. TARGET is a field of the program, a note, "first" or "last" (that argument),
// "ignored" (the message is dropped), "become" (a list of a type and arguments, instead of the message) or "fail".
package faults

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/internal/mutant"
	"jobwire/refpeer/internal/peer"
	"jobwire/refserver/inject"
)

// Kit contains what the faulty programs of a protocol are made of.
type Kit struct {
	Document  func() *peer.Program
	Rows      fs.FS             // contains ROLE.yaml
	Header    int               // the length of a packet's header in bytes
	LengthAt  int               // where the header contains the length of the rest
	Functions map[string]any    // of expressions, in addition to those of package inject
	Sets      map[string]string // of cases; $NAME in killed-by stands for one of them
}

// edit is the edit of one program.
type edit struct {
	*peer.Program
	kit   *Kit
	notes map[string]any
}

// row is a faulty program. The fields are those of [mutant.Mutant]; KilledBy and Rule do not contain the name of the
// protocol.
type row struct {
	Name      string `yaml:"name"`
	About     string `yaml:"about"`
	KilledBy  string `yaml:"killed-by"`
	Rule      string `yaml:"rule"`
	Condition string `yaml:"condition"`
	Verdict   string `yaml:"verdict"`
	Fragile   bool   `yaml:"fragile"`
	Edit      string `yaml:"edit"`
}

// Mutants returns the faulty programs of roles, for example "Client". They panic if an edit is malformed.
func (k *Kit) Mutants(roles ...string) []mutant.Mutant {
	protocol := k.Document().Protocol.Name
	var all []mutant.Mutant
	for _, role := range roles {
		for _, r := range inject.Rows[row](k.Rows, strings.ToLower(role)+".yaml") {
			m := mutant.Mutant{
				Name: r.Name, About: r.About, Role: role, Condition: r.Condition, Verdict: r.Verdict, Fragile: r.Fragile,
				Program: func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
					return k.edited(r.Edit).Drive(ctx, addr, tasks, answers)
				},
			}
			for _, name := range strings.Fields(os.Expand(r.KilledBy, func(set string) string { return k.Sets[set] })) {
				m.KilledBy = append(m.KilledBy, protocol+"."+name)
			}
			if r.Rule != "" {
				m.Rule = protocol + "." + r.Rule
			}
			all = append(all, m)
		}
	}
	return all
}

// edited returns the correct program after the actions of a script.
func (k *Kit) edited(script string) *peer.Program {
	e := &edit{Program: k.Document(), kit: k, notes: map[string]any{}}
	for line := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, rest, _ := strings.Cut(rest, " ")
		if do := whole[verb]; do != nil {
			do(e, name, rest)
		} else if do := steps[verb]; do != nil {
			e.change(name, func(s peer.Step) []peer.Step { return do(e, s, rest) })
		} else {
			panic("unknown action " + verb)
		}
	}
	return e.Program
}

// change replaces the steps whose message type has the name by other steps. It panics if there is no such step.
func (e *edit) change(name string, with func(peer.Step) []peer.Step) {
	found := false
	for key, s := range e.Steps {
		var all []peer.Step
		for _, step := range s {
			if word, _, _ := strings.Cut(step.Do, " "); word == name {
				found = true
				all = append(all, with(step)...)
			} else {
				all = append(all, step)
			}
		}
		e.Steps[key] = all
	}
	if !found {
		panic("no sequence has a step " + name)
	}
}

// expression compiles an expression about variables and notes.
func (e *edit) expression(source string) func(variables map[string]any) any {
	value := inject.Expression(source)
	return func(variables map[string]any) any {
		all := map[string]any{"notes": e.notes}
		maps.Copy(all, e.kit.Functions)
		maps.Copy(all, variables)
		return value(all)
	}
}

func (e *edit) condition(expression string) func(peer.Task) bool {
	value := e.expression(expression)
	return func(t peer.Task) bool { return value(variables(t)) == true }
}

// variables returns the values of a task for expressions.
func variables(t peer.Task) map[string]any {
	all := map[string]any{}
	for name, value := range t {
		group, member, grouped := strings.Cut(name, ".")
		if !grouped {
			all[name] = value
			continue
		}
		if all[group] == nil {
			all[group] = map[string]string{}
		}
		all[group].(map[string]string)[member] = value
	}
	return all
}

// Results of assignments to "accept" and "fail".
var (
	errAccepted = errors.New("accepted")
	errGivesUp  = errors.New("the program gives up")
)

// assignment returns a function that performs TARGET = VALUE for a task. It returns an error for the targets "fail" and
// "accept".
func (e *edit) assignment(text string) func(t peer.Task, more map[string]any) error {
	target, source, _ := strings.Cut(text, " = ")
	value := e.expression(source)
	return func(t peer.Task, more map[string]any) error {
		all := variables(t)
		maps.Copy(all, more)
		v := value(all)
		done, err := e.note(target, v)
		if err == errGivesUp { // the connection still works
			err = peer.Failure{Words: []string{"other", err.Error()}}
		}
		if done {
			return err
		}
		if text, is := v.(string); is {
			t[target] = text
		} else {
			delete(t, target)
		}
		return nil
	}
}

// note performs an assignment to a target that is not a value of a task or a program.
func (e *edit) note(target string, value any) (done bool, err error) {
	note, is := strings.CutPrefix(target, "notes.")
	failure, failed := value.(error)
	switch {
	case is:
		e.notes[note] = value
	case target == "fail" && failed:
		return true, failure
	case target == "fail" && value == true:
		return true, errGivesUp
	case target == "accept" && value == true:
		return true, errAccepted
	}
	return is || target == "fail" || target == "accept", nil
}

// set sets a field of the program.
func (e *edit) set(name string, value any) {
	field := reflect.ValueOf(e.Program).Elem().FieldByName(name)
	if !field.IsValid() {
		field = reflect.ValueOf(e.Own).Elem().FieldByName(name)
	}
	field.Set(reflect.ValueOf(value).Convert(field.Type()))
}

// received performs the action of that name.
func (e *edit) received(types []string, assignment string) {
	target, source, _ := strings.Cut(assignment, " = ")
	value, read := e.expression(source), e.Read
	if read == nil {
		read = peer.Read
	}
	e.Read = func(c *peer.Conn) (*codec.Message, error) {
		for {
			m, err := read(c)
			if err != nil || !slices.Contains(types, m.Type.Name) {
				return m, err
			}
			args, it := texts(m), ""
			if n := len(args); n > 0 && target == "last" {
				it = args[n-1]
			} else if n > 0 {
				it = args[0]
			}
			v := value(map[string]any{"name": m.Type.Name, "args": args, "it": it})
			if done, err := e.note(target, v); done {
				return m, err
			}
			switch target {
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
				m.Type, m.Args = e.Protocol.TypeNamed(words[0].(string)), nil
				for _, w := range words[1:] {
					m.Args = append(m.Args, []byte(w.(string)))
				}
			default:
				e.set(target, v)
			}
			return m, nil
		}
	}
}

// texts returns the bytes of the arguments of a message.
func texts(m *codec.Message) []string {
	all := make([]string, len(m.Args))
	for i, arg := range m.Args {
		all[i] = string(arg)
	}
	return all
}
