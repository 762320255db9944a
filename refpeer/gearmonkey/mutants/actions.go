package mutants

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/gearmonkey"
	"jobwire/refpeer/internal/faults"
)

// Actions of edits in addition to those of package faults. In reply, "reply" is the type of the reply and args its
// arguments; the target "accept" makes the program accept the reply without its own check. In then, job.NAME is a field
// of the job that Client.get returns.

type edit = *faults.Edit[program, step, task]

// ask sends another command instead of the step, with the same check of the reply.
func ask(e edit, name, do string) {
	e.Change(name, func(s step) []step { s.Do = do; return []step{s} })
}

// cure replaces the code of an error that a step cures, and the command that cures it.
func cure(e edit, name, rest string) {
	e.Change(name, func(s step) []step {
		code, do, _ := strings.Cut(rest, " ")
		s.For, s.Cure = code, nil
		if do != "" {
			s.Cure = gearmonkey.Sequence{{Do: do}}
		}
		return []step{s}
	})
}

// first sets a target before a step.
func first(e edit, name, rest string) {
	target, value := e.Assignment(rest)
	e.Change(name, func(s step) []step {
		return []step{{Do: "before-" + name, If: s.If, Local: func(_ context.Context, t *task) error {
			return e.Set(t, target, value(e.Variables(t)))
		}}, s}
	})
}

// reply sets a target when the reply to a step arrives, before the program checks the reply.
func reply(e edit, name, rest string) {
	target, value := e.Assignment(rest)
	e.Change(name, func(s step) []step {
		check := s.Then
		s.Then = func(t *task, m *codec.Message) error {
			vars := e.Variables(t)
			vars["reply"], vars["args"] = m.Type.Name, faults.Texts(m.Args)
			err := e.Set(t, target, value(vars))
			switch {
			case errors.Is(err, faults.ErrAccepted):
				return nil
			case err == nil && check != nil:
				return check(t, m)
			}
			return err
		}
		return []step{s}
	})
}

// then sets a target after a step with a valid reply.
func then(e edit, name, rest string) {
	target, value := e.Assignment(rest)
	set := func(t *task) error {
		vars, job := e.Variables(t), map[string]string{}
		for _, f := range t.Job.Fields {
			job[f.Name] = f.Value
		}
		vars["job"] = job
		if field, ok := strings.CutPrefix(target, "job."); ok {
			setField(&t.Job, field, value(vars))
			return nil
		}
		return e.Set(t, target, value(vars))
	}
	e.Change(name, func(s step) []step {
		local, check := s.Local, s.Then
		if local != nil {
			s.Local = func(ctx context.Context, t *task) error {
				if err := local(ctx, t); err != nil {
					return err
				}
				return set(t)
			}
		} else {
			s.Then = func(t *task, m *codec.Message) error {
				if check != nil {
					if err := check(t, m); err != nil {
						return err
					}
				}
				return set(t)
			}
		}
		return []step{s}
	})
}

// setField sets a field of a job; nil removes it. An empty text does not add one.
func setField(job *gearmonkey.Job, name string, value any) {
	text, _ := value.(string)
	i := slices.IndexFunc(job.Fields, func(f gearmonkey.Field) bool { return f.Name == name })
	switch {
	case i >= 0 && value == nil:
		job.Fields = slices.Delete(job.Fields, i, i+1)
	case i >= 0:
		job.Fields[i].Value = text
	case text != "":
		job.Fields = append(job.Fields, gearmonkey.Field{Name: name, Value: text})
	}
}

// swap exchanges two steps of a sequence. A pause precedes the one that is now the second.
func swap(e edit, a, b string) {
	var first, second step
	e.Change(a, func(s step) []step { first = s; return []step{{Do: "swapped"}} })
	e.Change(b, func(s step) []step { second = s; return []step{pause, first} })
	e.Change("swapped", func(step) []step { return []step{second} })
}

// pause is a step in which other clients can see the effects of the steps before.
var pause = step{Do: "pause", Local: func(ctx context.Context, _ *task) error {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}}
