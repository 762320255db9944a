package gearmonkey

import (
	"context"
	"fmt"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
	"jobwire/refpeer/internal/line"
)

// Conn is one connection to a Redis server. It is not safe for concurrent use, except for Abort, which ends all waits.
//
// After an error, except from a rejected command, the connection cannot be used any more, because it is unknown what the
// server has received and which replies will still arrive. Every later call returns the same error.
type Conn struct {
	*line.Conn
	err error
}

// Dial connects to the server at addr, which is host:port or unix:path.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	c, err := line.Dial(ctx, addr, protocol.Protocol, &line.Quirks{})
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}

// Err returns the error after which the connection cannot be used any more, or nil.
func (c *Conn) Err() error { return c.err }

// Do sends a command and returns its reply, which is valid until the next call. A Redis error is a reply, too. The end
// of ctx aborts the connection. If the command cannot be encoded, the error matches [ErrUsage].
func (c *Conn) Do(ctx context.Context, msgType *codec.Type, args ...[]byte) (*codec.Message, error) {
	if c.err != nil {
		return nil, c.err
	}
	if err := c.Append(msgType, args...); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.Abort)
	m, err := c.Next()
	switch {
	case !stop():
		c.err = ctx.Err()
	case err != nil:
		c.err = fmt.Errorf("no valid reply: %v", err)
	}
	return m, c.err
}

// perform performs a sequence. Its errors are of type [*StepError].
func (c *Conn) perform(ctx context.Context, s Sequence, t *Task) error {
	for i := range s {
		if s[i].If != nil && !s[i].If(t) {
			continue
		}
		err := c.step(ctx, &s[i], t)
		if _, ok := err.(*StepError); ok {
			return err // of a step of Cure
		}
		if err != nil {
			return &StepError{s[i].name(), err}
		}
	}
	return nil
}

func (c *Conn) step(ctx context.Context, s *Step, t *Task) error {
	if s.Local != nil {
		return s.Local(ctx, t)
	}
	m, err := c.ask(ctx, s, t)
	if err == nil && s.Cure != nil && m.Type == typeError && string(m.Args[0]) == s.For {
		if err = c.perform(ctx, s.Cure, t); err == nil {
			m, err = c.ask(ctx, s, t)
		}
	}
	switch {
	case err != nil:
		return err
	case m.Type == typeError:
		return refusal(m)
	case s.Then != nil:
		return s.Then(t, m)
	}
	return nil
}

// ask sends the command of a step and returns the reply of the server.
func (c *Conn) ask(ctx context.Context, s *Step, t *Task) (*codec.Message, error) {
	msgType, args, err := s.command(t)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, msgType, args...)
}
