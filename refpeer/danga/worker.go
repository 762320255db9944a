package danga

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"jobwire/refpeer/internal/line"
)

// perform connects as a worker, does the given number of jobs and returns how many it has done. If jobs is 0, it does all
// jobs that the server has.
func (d *Driver) perform(ctx context.Context, t Task, jobs int) (done int, err error) {
	p := d.Program
	if p.Drops {
		c, err := d.enter(ctx, &t)
		if err != nil {
			return 0, err
		}
		first := t
		if _, err = c.take(&first, jobs > 0); err != nil {
			c.Close()
			return 0, err
		}
		if err := c.leave(&t); err != nil {
			return 0, err
		}
	}
	lists := [][][]byte{t.Names}
	if p.PerName {
		lists = slices.Collect(slices.Chunk(t.Names, 1))
	}
	conns := make([]*conn, len(lists))
	defer func() {
		for _, c := range conns {
			switch {
			case c == nil:
			case err != nil:
				c.Close()
			default:
				err = c.leave(&t)
			}
		}
	}()
	for {
		before := done
		for i, list := range lists {
			if conns[i] == nil {
				t.Names = list
				if conns[i], err = d.enter(ctx, &t); err != nil {
					return done, err
				}
			}
			most := max(0, jobs-done)
			if p.PerJob {
				most = 1
			}
			n, err := conns[i].work(t, most, jobs > 0 && !p.PerName)
			if done += n; err != nil || jobs > 0 && done == jobs {
				return done, err
			}
			if p.PerJob {
				err = conns[i].leave(&t)
				if conns[i] = nil; err != nil {
					return done, err
				}
			}
		}
		switch {
		case done > before:
		case jobs == 0:
			return done, nil
		default:
			conns[0].Pause(pollTime)
		}
	}
}

// enter connects as a worker and announces the job names of the task. The end of ctx aborts the connection.
func (d *Driver) enter(ctx context.Context, t *Task) (*conn, error) {
	c, err := dial(ctx, d.addr, d.Program)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, c.Abort)
	c.SetLimit(0)
	if err := c.send(d.Program.Enter, t); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// leave sends the messages that were not sent yet, and closes the connection.
func (c *conn) leave(t *Task) error {
	err := c.send(c.program.Leave, t)
	if err == nil {
		err = c.AfterEOF(c.Flush())
	}
	c.Close()
	return err
}

// work does at most the given number of jobs (0: no limit) and returns how many it has done. It returns when the server has
// no job, unless wait is true. When it returns, the result of the last job may still be unsent.
func (c *conn) work(t Task, most int, wait bool) (done int, err error) {
	for most == 0 || done < most {
		got, err := c.take(&t, wait)
		if err != nil || !got {
			return done, err
		}
		if err := c.send(c.program.Report, &t); err != nil {
			return done, err
		}
		if err := c.send(c.program.End, &t); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// take asks for a job and sets the values of the task. If the server has none, take waits for one or returns false.
func (c *conn) take(t *Task, wait bool) (bool, error) {
	todo, asleep, limit := c.program.Ask, false, c.program.SleepLimit
	for {
		if err := c.send(todo, t); err != nil {
			return false, err
		}
		if asleep && limit > 0 {
			c.SetLimit(limit)
		}
		m, err := c.Next()
		if asleep && limit > 0 {
			c.SetLimit(0)
			if errors.Is(err, line.ErrTimedOut) {
				todo, asleep = c.program.Ask, false
				continue
			}
		}
		if err != nil {
			return false, c.AfterEOF(err)
		}
		todo = nil
		switch {
		case m.Type.Name == "job_assign_res":
			t.Name, t.Args = bytes.Clone(m.Args[0]), bytes.Clone(m.Args[1])
			t.Result, t.Progress = line.Results[t.How](t.Args), half
			return true, nil
		case m.Type.Name != "noop":
		case asleep:
			for range c.program.ExtraSleeps {
				todo = append(todo, c.program.Sleep...)
			}
			todo, asleep = append(todo, c.program.Ask...), false
		case !wait:
			return false, nil
		case c.program.Polls:
			c.Pause(pollTime)
			todo = c.program.Ask
		default:
			todo, asleep = c.program.Sleep, true
		}
	}
}
