// Package faults makes faulty clients and workers of the reference programs. Each is a row of a file ROLE.yaml:
//
//	# worker.yaml
//	- name: completes-twice
//	  about: The worker sends each result twice.
//	  rule: work.final
//	  edit: after WORK_COMPLETE WORK_COMPLETE {HANDLE} {RESULT}
//
// Each line of edit is an action that changes the program. STEP is the step of a sequence whose message type is STEP:
//
//	drop STEP                    removes the step
//	twice STEP                   repeats it
//	before STEP MESSAGE          sends another message before it, under the same condition
//	after STEP MESSAGE           sends another message after it
//	instead STEP MESSAGE         sends another message instead of it
//	when STEP EXPRESSION         changes its condition
//	first STEP TARGET = VALUE    sets TARGET before the step
//	join SEQUENCE FIRST SECOND   moves the steps of two sequences into one
//	set FIELD VALUE              sets a field of the program
//
// MESSAGE may end with "when EXPRESSION". TARGET is a field of the task, or notes.NAME, which remembers a value as long
// as the program runs. Expressions can use the same names, and have the language of the faults of servers. [Line] and
// the packages of the protocols add actions.
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
	"jobwire/refserver/inject"
)

// Kit contains what the faulty programs of a protocol are made of: programs P, whose sequences contain steps S about
// tasks T.
type Kit[P, S, T any] struct {
	Protocol *codec.Protocol
	Rows     fs.FS // contains ROLE.yaml
	Document func() *P
	Drive    func(*P) mutant.Program

	Step      func(*S) (do *string, condition *func(*T) bool) // returns the parts of a step
	Actions   map[string]Action[P, S, T]                      // in addition to those above
	Functions map[string]any                                  // of expressions, in addition to those of package inject
	Sets      map[string]string                               // of cases; $NAME in killed-by stands for one of them
}

// Action changes a program. name is the first argument, and rest is the text after it.
type Action[P, S, T any] = func(e *Edit[P, S, T], name, rest string)

// Edit is the edit of one program.
type Edit[P, S, T any] struct {
	Program *P
	kit     *Kit[P, S, T]
	notes   map[string]any
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

// Mutants returns the faulty programs of a role, for example "Client". They panic if an edit is malformed.
func (k *Kit[P, S, T]) Mutants(role string) []mutant.Mutant {
	var all []mutant.Mutant
	for _, r := range inject.Rows[row](k.Rows, strings.ToLower(role)+".yaml") {
		m := mutant.Mutant{
			Name: r.Name, About: r.About, Role: role, Condition: r.Condition, Verdict: r.Verdict, Fragile: r.Fragile,
			Program: func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
				return k.Drive(k.edited(r.Edit))(ctx, addr, tasks, answers)
			},
		}
		for _, name := range strings.Fields(os.Expand(r.KilledBy, func(set string) string { return k.Sets[set] })) {
			m.KilledBy = append(m.KilledBy, k.Protocol.Name+"."+name)
		}
		if r.Rule != "" {
			m.Rule = k.Protocol.Name + "." + r.Rule
		}
		all = append(all, m)
	}
	return all
}

// edited returns the correct program after the actions of a script.
func (k *Kit[P, S, T]) edited(script string) *P {
	e := &Edit[P, S, T]{Program: k.Document(), kit: k, notes: map[string]any{}}
	for line := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, rest, _ := strings.Cut(rest, " ")
		if do := k.Actions[verb]; do != nil {
			do(e, name, rest)
		} else {
			e.perform(verb, name, rest)
		}
	}
	return e.Program
}

// perform performs one of the actions that all protocols have.
func (e *Edit[P, S, T]) perform(verb, name, rest string) {
	switch verb {
	case "join":
		first, second, _ := strings.Cut(rest, " ")
		a, b := e.sequence(first), e.sequence(second)
		all := slices.Concat(*a, *b)
		*a, *b = nil, nil
		*e.sequence(name) = all
		return
	case "set":
		e.Set(e.Program, name, e.Expression(rest)(nil))
		return
	}
	e.Change(name, func(s S) []S {
		_, condition := e.kit.Step(&s)
		other := e.step(rest, *condition)
		switch verb {
		case "drop":
			return nil
		case "twice":
			return []S{s, s}
		case "before":
			return []S{other, s}
		case "after":
			return []S{s, other}
		case "instead":
			return []S{other}
		case "when":
			*condition = e.condition(rest)
		case "first":
			was := *condition
			target, value := e.Assignment(rest)
			*condition = func(t *T) bool {
				yes := was == nil || was(t)
				if yes {
					e.Set(t, target, value(e.Variables(t)))
				}
				return yes
			}
		default:
			panic("unknown action " + verb)
		}
		return []S{s}
	})
}

// step returns a step that sends a message if condition and the condition of the message are true.
func (e *Edit[P, S, T]) step(message string, condition func(*T) bool) (s S) {
	do, when := e.kit.Step(&s)
	text, expression, limited := strings.Cut(message, " when ")
	*do, *when = text, condition
	if limited {
		own := e.condition(expression)
		*when = func(t *T) bool { return (condition == nil || condition(t)) && own(t) }
	}
	return s
}

func (e *Edit[P, S, T]) condition(expression string) func(*T) bool {
	value := e.Expression(expression)
	return func(t *T) bool { return value(e.Variables(t)) == true }
}

// Change replaces the steps whose message type has the name by other steps. It panics if there is no such step.
func (e *Edit[P, S, T]) Change(name string, with func(S) []S) {
	found := false
	program := reflect.ValueOf(e.Program).Elem()
	for i := range program.NumField() {
		if !program.Field(i).Type().ConvertibleTo(reflect.TypeFor[[]S]()) {
			continue
		}
		var all []S
		s := e.sequence(program.Type().Field(i).Name)
		for _, step := range *s {
			do, _ := e.kit.Step(&step)
			if word, _, _ := strings.Cut(*do, " "); word == name {
				found = true
				all = append(all, with(step)...)
			} else {
				all = append(all, step)
			}
		}
		*s = all
	}
	if !found {
		panic("no sequence has a step " + name)
	}
}

// sequence returns the sequence with the name of a field of the program.
func (e *Edit[P, S, T]) sequence(name string) *[]S {
	field := reflect.ValueOf(e.Program).Elem().FieldByName(name)
	return field.Addr().Convert(reflect.TypeFor[*[]S]()).Interface().(*[]S)
}

// Variables returns the variables of expressions about a task: its fields.
func (e *Edit[P, S, T]) Variables(t *T) map[string]any {
	all := map[string]any{}
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Type == reflect.TypeFor[[]byte]() {
			all[f.Name] = string(v.Field(i).Bytes())
		} else if f.IsExported() {
			all[f.Name] = v.Field(i).Interface()
		}
	}
	return all
}

// Expression compiles an expression about variables and notes.
func (e *Edit[P, S, T]) Expression(source string) func(variables map[string]any) any {
	value := inject.Expression(source)
	return func(variables map[string]any) any {
		all := map[string]any{"notes": e.notes}
		maps.Copy(all, e.kit.Functions)
		maps.Copy(all, variables)
		return value(all)
	}
}

// Assignment parses TARGET = VALUE.
func (e *Edit[P, S, T]) Assignment(text string) (target string, value func(variables map[string]any) any) {
	target, source, _ := strings.Cut(text, " = ")
	return target, e.Expression(source)
}

// ErrAccepted is what Set returns for the target "accept".
var ErrAccepted = errors.New("accepted")

// Set sets a note, or a field of the struct that in points to. A target "fail" or "accept" sets nothing: if the value
// is true or an error, Set returns an error.
func (e *Edit[P, S, T]) Set(in any, target string, value any) error {
	if note, ok := strings.CutPrefix(target, "notes."); ok {
		e.notes[note] = value
		return nil
	}
	switch err, isError := value.(error); {
	case target == "fail" && isError:
		return err
	case target == "fail" && value == true:
		return errors.New("the program gives up")
	case target == "accept" && value == true:
		return ErrAccepted
	case target == "fail" || target == "accept":
		return nil
	}
	field := reflect.ValueOf(in).Elem().FieldByName(target)
	switch {
	case !field.IsValid():
		panic("there is no field " + target)
	case value == nil:
		field.SetZero()
	default:
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
	}
	return nil
}

// Texts returns arguments as expressions use them.
func Texts(args [][]byte) []string {
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = string(arg)
	}
	return texts
}
