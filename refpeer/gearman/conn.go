package gearman

import (
	"context"
	"fmt"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refpeer/internal/line"
)

// ServerError is an ERROR that the server sent instead of the expected reply.
type ServerError struct{ Code, Text string }

func (e *ServerError) Error() string { return fmt.Sprintf("the server: %s: %s", e.Code, e.Text) }

// Conn is one connection to a server. It is not safe for concurrent use, except for Abort.
type Conn struct {
	*line.Conn
	program *Program
}

// Dial connects to the server at addr, which is host:port.
func Dial(ctx context.Context, addr string, p *Program) (*Conn, error) {
	c, err := line.Dial(ctx, addr, protocol.Protocol, &p.Quirks)
	if err != nil {
		return nil, err
	}
	return &Conn{c, p}, nil
}

// send appends the messages of a sequence.
func (c *Conn) send(s Sequence, t *Task) error { return line.Send(c.Conn, s, t, placeholders) }

// until returns the next message of one of the types. An ERROR or the end of the time limit ends the wait with an error.
func (c *Conn) until(names ...string) (*codec.Message, error) {
	for {
		m, err := c.Next()
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if m.Type.Name == n {
				return m, nil
			}
		}
		if m.Type.Name == "ERROR" && !c.program.IgnoresErrors {
			return nil, refusal(m)
		}
	}
}

// refusal returns the error of an ERROR message.
func refusal(m *codec.Message) error {
	return &ServerError{string(m.Args[0]), string(m.Args[1])}
}
