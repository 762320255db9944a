package gearman

import (
	"bytes"

	"jobwire/refpeer/internal/line"
)

// work does jobs over a connection and returns how many. It leaves behind so many, or, if that is
// 0, when there is none.
func (c *Conn) work(functions [][]byte, t Task, jobs int) (done int, err error) {
	c.Within(0)
	for _, f := range functions {
		t.Function = f
		if err := c.send(c.program.Enter, &t); err != nil {
			return 0, err
		}
	}
	for jobs == 0 || done < jobs {
		if err := c.send(c.program.Ask, &t); err != nil {
			return done, err
		}
		m, err := c.until("NO_JOB", "JOB_ASSIGN", "JOB_ASSIGN_UNIQ", "JOB_ASSIGN_ALL")
		switch {
		case err != nil:
			return done, c.Endured(err)
		case m.Type.Name == "NO_JOB" && jobs == 0:
			return done, nil
		case m.Type.Name == "NO_JOB":
			if err := c.sleep(&t); err != nil {
				return done, c.Endured(err)
			}
			continue
		}
		t.Handle, t.Function = bytes.Clone(m.Args[0]), bytes.Clone(m.Args[1])
		t.Workload = bytes.Clone(m.Args[len(m.Args)-1])
		t.Result = line.Results[t.How](t.Workload)
		if err := c.send(c.program.Tell, &t); err != nil {
			return done, err
		}
		if err := c.send(c.program.End, &t); err != nil {
			return done, err
		}
		if err := c.Flush(); err != nil {
			return done, c.Endured(err)
		}
		done++
	}
	return done, nil
}

func (c *Conn) sleep(t *Task) error {
	for range 1 + c.program.Naps {
		if err := c.send(c.program.Sleep, t); err != nil {
			return err
		}
		if _, err := c.until("NOOP"); err != nil {
			return err
		}
	}
	return nil
}
