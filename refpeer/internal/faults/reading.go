package faults

import (
	"fmt"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

// Whole reads messages as long as each read brings one.
func Whole(c *line.Conn) (*codec.Message, error) {
	c.In = nil
	if err := c.Fill(); err != nil {
		return nil, err
	}
	m, err := c.Take()
	if m == nil && err == nil {
		err = fmt.Errorf("%w: %d bytes are not a packet", line.ErrProtocol, len(c.In))
	}
	return m, err
}

// Alone reads a message and drops what came with it.
func Alone(c *line.Conn) (*codec.Message, error) {
	c.In = nil
	for {
		if err := c.Fill(); err != nil {
			return nil, err
		}
		if m, err := c.Take(); m != nil || err != nil {
			c.In = nil
			return m, err
		}
	}
}

// Once reads a header, and then once for all that follows.
func Once(c *line.Conn) (*codec.Message, error) {
	for reads := 0; ; reads++ {
		if m, err := c.Take(); m != nil || err != nil {
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

// Together takes a header only if its body came with it.
func Together(header int) func(c *line.Conn) (*codec.Message, error) {
	return func(c *line.Conn) (*codec.Message, error) {
		for {
			if m, err := c.Take(); m != nil || err != nil {
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
