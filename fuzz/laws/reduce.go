package laws

import (
	"slices"

	"jobwire/internal/reduce"
)

// Reduce returns a smaller case, with fewer steps, arguments and bytes, for which fails still returns true. fails must
// return true for c.
func (c *Case) Reduce(fails func(*Case) bool) *Case {
	never := func() bool { return false }
	holds := func(steps []Step) bool {
		d := *c
		if d.Steps = steps; !fails(&d) {
			return false
		}
		c = &d
		return true
	}
	reduce.List(c.Steps, never, holds)
	reduce.Pairs(c.Steps, never, holds)
	for i := range c.Steps {
		change := func(change func(*Step)) bool {
			steps := slices.Clone(c.Steps)
			change(&steps[i])
			return holds(steps)
		}
		m := &c.Steps[i].Message
		if m.Type == nil {
			reduce.Bytes(c.Steps[i].Raw, never, func(b []byte) bool { return change(func(s *Step) { s.Raw = b }) })
			continue
		}
		if m.CRLF {
			change(func(s *Step) { s.Message.CRLF = false })
		}
		once := min(m.Type.NumArgs(), len(m.Args))
		groups := slices.Collect(slices.Chunk(m.Args[once:], max(1, len(m.Type.Repeat))))
		reduce.List(groups, never, func(groups [][][]byte) bool {
			return change(func(s *Step) { s.Message.Args = slices.Concat(append([][][]byte{m.Args[:once]}, groups...)...) })
		})
		for k := range c.Steps[i].Message.Args {
			reduce.Bytes(c.Steps[i].Message.Args[k], never, func(b []byte) bool {
				return change(func(s *Step) {
					s.Message.Args = slices.Clone(s.Message.Args)
					s.Message.Args[k] = b
				})
			})
		}
	}
	return c
}

// Valid returns an error if a message of the case cannot be encoded, and otherwise nil.
func (c *Case) Valid() error {
	s := c.Protocol.NewSession(c.Options)
	for i := range c.Steps {
		if _, err := c.append(s, nil, i); err != nil {
			return err
		}
	}
	return nil
}
