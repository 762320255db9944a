package laws

import (
	"bytes"
	"slices"
)

// Smaller yields cases that are like c but have less: a step, an argument, bytes.
// Some may not be valid.
func (c *Case) Smaller(yield func(*Case) bool) {
	for i := range c.Steps {
		if len(c.Steps) > 1 && !yield(c.with(slices.Delete(slices.Clone(c.Steps), i, i+1))) {
			return
		}
		for k := i + 1; k < len(c.Steps); k++ { // a request and its reply
			if len(c.Steps) > 2 && c.Steps[i].From != c.Steps[k].From &&
				!yield(c.with(slices.Delete(slices.Delete(slices.Clone(c.Steps), k, k+1), i, i+1))) {
				return
			}
		}
	}
	for i := range c.Steps {
		for s := range c.Steps[i].smaller {
			steps := slices.Clone(c.Steps)
			steps[i] = s
			if !yield(c.with(steps)) {
				return
			}
		}
	}
}

func (c *Case) with(steps []Step) *Case {
	d := *c
	d.Steps = steps
	return &d
}

// smaller yields steps that are like s but have less.
func (s Step) smaller(yield func(Step) bool) {
	if s.Message.Type == nil {
		for raw := range shorter(s.Raw) {
			s.Raw = raw
			if !yield(s) {
				return
			}
		}
		return
	}
	args := s.Message.Args
	replaced := func(i, n int, with ...[]byte) bool {
		t := s
		t.Message.Args = slices.Replace(slices.Clone(args), i, i+n, with...)
		return yield(t)
	}
	if s.Message.CRLF {
		t := s
		t.Message.CRLF = false
		if !yield(t) {
			return
		}
	}
	group := max(1, len(s.Message.Type.Repeat))
	for _, n := range []int{group, 1} {
		for i := len(args) - n; i >= 0; i-- {
			if !replaced(i, n) {
				return
			}
		}
	}
	for i, v := range args {
		for w := range shorter(v) {
			if !replaced(i, 1, w) {
				return
			}
		}
	}
}

// shorter yields bytes that are fewer, or plainer. Of long ones it does not try
// each: as many are left only where it is the length that matters.
func shorter(b []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for n := len(b); n > len(b)/64; n /= 2 {
			for at := 0; at+n <= len(b); at += n {
				if !yield(slices.Delete(slices.Clone(b), at, at+n)) {
					return
				}
			}
		}
		if plain := bytes.Repeat([]byte{'a'}, len(b)); !bytes.Equal(b, plain) && !yield(plain) {
			return
		}
		for i, c := range b[:min(len(b), 64)] {
			if c == 'a' || c >= '0' && c <= '9' {
				continue
			}
			d := slices.Clone(b)
			if d[i] = 'a'; !yield(d) {
				return
			}
		}
	}
}

// Valid returns what keeps a message of the case from being written, or nil.
func (c *Case) Valid() error {
	s := c.Protocol.NewSession(c.Options)
	for i := range c.Steps {
		if _, err := c.append(s, nil, i); err != nil {
			return err
		}
	}
	return nil
}
