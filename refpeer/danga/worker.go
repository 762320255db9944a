package danga

import (
	"bytes"

	"jobwire/refpeer/internal/line"
)

// work does jobs over a connection and returns how many. It leaves behind so many, or, if that is
// 0, when there is none.
func (c *conn) work(t Task, jobs int) (done int, err error) {
	c.Within(0)
	asleep := false
	todo := append(append(Sequence(nil), c.program.Enter...), c.program.Ask...)
	for {
		if err := c.send(todo, &t); err != nil {
			return done, err
		}
		m, err := c.Next()
		if err != nil {
			return done, c.Endured(err)
		}
		todo = nil
		switch {
		case m.Type.Name == "noop" && asleep:
			for range c.program.Naps {
				todo = append(todo, c.program.Sleep...)
			}
			todo, asleep = append(todo, c.program.Ask...), false
		case m.Type.Name == "noop" && jobs == 0:
			return done, c.leave(&t)
		case m.Type.Name == "noop":
			todo, asleep = c.program.Sleep, true
		case m.Type.Name == "job_assign_res":
			t.Name, t.Args = bytes.Clone(m.Args[0]), bytes.Clone(m.Args[1])
			t.Result, t.Progress = line.Results[t.How](t.Args), half
			if err := c.send(c.program.Tell, &t); err != nil {
				return done, err
			}
			if err := c.send(c.program.End, &t); err != nil {
				return done, err
			}
			if done++; done == jobs {
				return done, c.leave(&t)
			}
			todo, asleep = c.program.Ask, false
		}
	}
}

func (c *conn) leave(t *Task) error {
	if err := c.send(c.program.Leave, t); err != nil {
		return err
	}
	return c.Endured(c.Flush())
}
