package mutants

import (
	"context"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/gearmonkey"
)

type (
	program = gearmonkey.Program
	step    = gearmonkey.Step
	task    = gearmonkey.Task
	message = codec.Message
	check   = func(*task, *message) error
)

// change replaces the step with the name by the steps that edit returns. The step may be in any sequence.
func change(p *program, name string, edit func(step) []step) {
	for _, s := range []*gearmonkey.Sequence{&p.Run, &p.Get, &p.Load, &p.Enter, &p.Look, &p.Work, &p.Update, &p.Leave} {
		for i := range *s {
			if (*s)[i].Name() == name {
				*s = s.Edit(name, edit)
				return
			}
		}
	}
	panic("mutants: no sequence has a step " + name)
}

// The edits of most mutants.

func drop(name string) func(*program) {
	return func(p *program) { change(p, name, func(step) []step { return nil }) }
}

func twice(name string) func(*program) {
	return func(p *program) { change(p, name, func(s step) []step { return []step{s, s} }) }
}

// sendInstead sends another command instead. Any reply is accepted.
func sendInstead(name, do string) func(*program) {
	return func(p *program) {
		change(p, name, func(s step) []step { return []step{{Do: do, If: s.If}} })
	}
}

// ask sends another command instead, with the same check of the reply.
func ask(name, do string) func(*program) {
	return func(p *program) {
		change(p, name, func(s step) []step { s.Do = do; return []step{s} })
	}
}

// after sends another command after the step.
func after(name, do string) func(*program) {
	return func(p *program) {
		change(p, name, func(s step) []step { return []step{s, {Do: do, If: s.If}} })
	}
}

// before sends another command before the step.
func before(name, do string) func(*program) {
	return func(p *program) {
		change(p, name, func(s step) []step { return []step{{Do: do, If: s.If}, s} })
	}
}

// when changes the condition of a step.
func when(name string, condition func(*task) bool) func(*program) {
	return func(p *program) {
		change(p, name, func(s step) []step { s.If = condition; return []step{s} })
	}
}

// first calls do before a step.
func first(name string, do func(*task) error) func(*program) {
	return func(p *program) {
		change(p, name, func(s step) []step {
			return []step{{Do: "before-" + name, If: s.If, Local: func(_ context.Context, t *task) error { return do(t) }}, s}
		})
	}
}

// recheck replaces the check of a step's reply.
func recheck(name string, by func(was check) check) func(*program) {
	return func(p *program) {
		change(p, name, func(s step) []step { s.Then = by(s.Then); return []step{s} })
	}
}

// then calls do after a step with a valid reply.
func then(name string, do func(*task)) func(*program) {
	return recheck(name, func(was check) check {
		return func(t *task, m *message) error {
			err := was(t, m)
			if err == nil {
				do(t)
			}
			return err
		}
	})
}

// swap exchanges two steps of Run or of Work. A pause precedes the one that is now the second.
func swap(a, b string) func(*program) {
	return func(p *program) {
		sequence := &p.Work
		if slices.ContainsFunc(p.Run, func(s step) bool { return s.Name() == a }) {
			sequence = &p.Run
		}
		*sequence = sequence.Swap(a, b).Edit(a, func(s step) []step { return []step{pause, s} })
	}
}

// pause is a step in which other clients can see the effects of the steps before.
var pause = step{Do: "pause", Local: func(ctx context.Context, _ *task) error {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}}

// finished changes the result of the handler.
func finished(do func(*task)) func(*program) {
	return func(p *program) {
		change(p, "work", func(s step) []step {
			return []step{s, {Do: "worked", Local: func(_ context.Context, t *task) error { do(t); return nil }}}
		})
	}
}

// both applies two edits.
func both(a, b func(*program)) func(*program) {
	return func(p *program) { a(p); b(p) }
}

// stateful makes an edit with state. Each program that is edited has its own state.
func stateful[T any](edit func(memory *T) func(*program)) func(*program) {
	return func(p *program) { edit(new(T))(p) }
}
