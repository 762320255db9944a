package faults

import (
	"fmt"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

// ReadWhole expects each read to return exactly one message. It drops the rest of the read, and returns an error if the message
// is incomplete.
func ReadWhole(c *line.Conn) (*codec.Message, error) {
	c.In = nil
	if err := c.Fill(); err != nil {
		return nil, err
	}
	m, err := c.Decode()
	if m == nil && err == nil {
		err = fmt.Errorf("%w: %d bytes are not a packet", line.ErrProtocol, len(c.In))
	}
	return m, err
}

// Alone reads a message and drops the bytes after it that were received with it.
func Alone(c *line.Conn) (*codec.Message, error) {
	c.In = nil
	for {
		if err := c.Fill(); err != nil {
			return nil, err
		}
		if m, err := c.Decode(); m != nil || err != nil {
			c.In = nil
			return m, err
		}
	}
}

// Once reads at most twice for a message, and then returns an error.
func Once(c *line.Conn) (*codec.Message, error) {
	for reads := 0; ; reads++ {
		if m, err := c.Decode(); m != nil || err != nil {
			return m, err
		}
		if reads > 1 {
			return nil, fmt.Errorf("%w: a body of %d bytes", line.ErrProtocol, len(c.In))
		}
		if err := c.Fill(); err != nil {
			return nil, err
		}
	}
}

// Together returns an error if it receives a header without any bytes of the body.
func Together(header int) func(c *line.Conn) (*codec.Message, error) {
	return func(c *line.Conn) (*codec.Message, error) {
		for {
			if m, err := c.Decode(); m != nil || err != nil {
				return m, err
			}
			if len(c.In) == header {
				return nil, fmt.Errorf("%w: a header without a body", line.ErrProtocol)
			}
			if err := c.Fill(); err != nil {
				return nil, err
			}
		}
	}
}
