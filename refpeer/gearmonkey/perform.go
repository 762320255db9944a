package gearmonkey

import (
	"context"

	"jobwire/codec"
)

// performer performs sequences over a connection.
type performer struct {
	conn  *Conn
	after func(step string)

	args [][]byte
	text []byte // of the arguments that consist of several parts
}

// perform performs a sequence. Its errors are of type [*StepError].
func (p *performer) perform(ctx context.Context, c cycle, t *Task) error {
	for i := range c {
		cmd := &c[i]
		if cmd.If != nil && !cmd.If(t) {
			continue
		}
		err := p.step(ctx, cmd, t)
		if err != nil {
			if at, ok := err.(*StepError); ok {
				return at // the error is from a step of Cure
			}
			return &StepError{cmd.name, err}
		}
	}
	return nil
}

func (p *performer) step(ctx context.Context, cmd *command, t *Task) error {
	if cmd.Local != nil {
		err := cmd.Local(ctx, t)
		p.finish(cmd)
		return err
	}
	m, err := p.ask(ctx, cmd, t)
	if err == nil && cmd.cure != nil && m.Type == typeError && string(m.Args[0]) == cmd.For {
		if err = p.perform(ctx, cmd.cure, t); err == nil {
			m, err = p.ask(ctx, cmd, t)
		}
	}
	switch {
	case err != nil:
		return err
	case m.Type == typeError:
		return refusal(m)
	case cmd.Then != nil:
		return cmd.Then(t, m)
	}
	return nil
}

// ask sends a command and returns the reply of the server.
func (p *performer) ask(ctx context.Context, cmd *command, t *Task) (*codec.Message, error) {
	p.args, p.text = p.args[:0], p.text[:0]
	for _, w := range cmd.words {
		p.args = append(p.args, p.value(w, t))
	}
	m, err := p.conn.Do(ctx, cmd.msgType, p.args...)
	if err == nil {
		p.finish(cmd)
	}
	return m, err
}

// value returns the value of an argument for a task.
func (p *performer) value(w word, t *Task) []byte {
	if len(w) == 1 {
		return w[0].partValue(t)
	}
	from := len(p.text)
	for i := range w {
		p.text = append(p.text, w[i].partValue(t)...)
	}
	return p.text[from:]
}

func (p *argPart) partValue(t *Task) []byte {
	if p.value != nil {
		return p.value(t)
	}
	return p.text
}

func (p *performer) finish(cmd *command) {
	if p.after != nil {
		p.after(cmd.name)
	}
}
