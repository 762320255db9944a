package gearman

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"jobwire/refpeer/internal/line"
)

// pollTime is the pause of a worker that polls before it asks for a job again.
const pollTime = 20 * time.Millisecond

// perform connects as a worker, does the given number of jobs and returns how many it has done. If jobs is 0, it does all
// jobs that the server has.
func (d *Driver) perform(ctx context.Context, functions [][]byte, t Task, jobs int) (done int, err error) {
	p := d.Program
	if p.Drops {
		c, err := d.enter(ctx, functions, &t)
		if err != nil {
			return 0, err
		}
		_, err = c.take(&t, jobs > 0)
		if c.Close(); err != nil {
			return 0, err
		}
	}
	lists := [][][]byte{functions}
	if p.PerFunction {
		lists = slices.Collect(slices.Chunk(functions, 1))
	}
	conns := make([]*Conn, len(lists))
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	for {
		before := done
		for i, list := range lists {
			if conns[i] == nil {
				if conns[i], err = d.enter(ctx, list, &t); err != nil {
					return done, err
				}
			}
			most := max(0, jobs-done)
			if p.PerJob {
				most = 1
			}
			n, err := conns[i].work(t, most, jobs > 0 && !p.PerFunction)
			if done += n; err != nil || jobs > 0 && done == jobs {
				return done, err
			}
			if p.PerJob {
				conns[i].Close()
				conns[i] = nil
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

// enter connects as a worker and registers functions. The end of ctx aborts the connection.
func (d *Driver) enter(ctx context.Context, functions [][]byte, t *Task) (*Conn, error) {
	c, err := Dial(ctx, d.addr, d.Program)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, c.Abort)
	c.SetLimit(0)
	err = c.send(d.Program.Start, t)
	for _, f := range functions {
		t.Function = f
		err = errors.Join(err, c.send(d.Program.Enter, t))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// work does at most the given number of jobs (0: no limit) and returns how many it has done. It returns when the server has
// no job, unless wait is true.
func (c *Conn) work(t Task, most int, wait bool) (done int, err error) {
	for most == 0 || done < most {
		got, err := c.take(&t, wait)
		if err != nil || !got {
			return done, err
		}
		jobs := []Task{t}
		for len(jobs) < c.program.MaxJobs && (most == 0 || done+len(jobs) < most) {
			if got, err = c.take(&t, false); err != nil {
				return done, err
			}
			if !got {
				break
			}
			jobs = append(jobs, t)
		}
		for _, job := range slices.Backward(jobs) {
			if err := c.send(c.program.Report, &job); err != nil {
				return done, err
			}
			if err := c.send(c.program.End, &job); err != nil {
				return done, err
			}
			if done++; c.program.Pipelined && done != most {
				continue
			}
			if err := c.Flush(); err != nil {
				return done - 1, c.AfterEOF(err)
			}
		}
	}
	return done, nil
}

// take asks for a job and sets the values of the task. If the server has none, take waits for one or returns false.
func (c *Conn) take(t *Task, wait bool) (bool, error) {
	for {
		if err := c.send(c.program.Ask, t); err != nil {
			return false, err
		}
		m, err := c.until("NO_JOB", "JOB_ASSIGN", "JOB_ASSIGN_UNIQ", "JOB_ASSIGN_ALL")
		switch {
		case err != nil:
			return false, c.AfterEOF(err)
		case m.Type.Name != "NO_JOB":
			t.Handle, t.Function = bytes.Clone(m.Args[0]), bytes.Clone(m.Args[1])
			t.Workload = bytes.Clone(m.Args[len(m.Args)-1])
			t.Result = line.Results[t.How](t.Workload)
			return true, nil
		case !wait:
			return false, nil
		case c.program.Polls:
			c.Pause(pollTime)
			continue
		}
		if err := c.sleep(t); err != nil {
			return false, c.AfterEOF(err)
		}
	}
}

// sleep announces that the worker sleeps and waits until it has to ask for a job.
func (c *Conn) sleep(t *Task) error {
	for range 1 + c.program.ExtraSleeps {
		if err := c.send(c.program.Sleep, t); err != nil {
			return err
		}
		if c.program.SleepLimit > 0 {
			c.SetLimit(c.program.SleepLimit)
		}
		_, err := c.until("NOOP")
		if c.program.SleepLimit > 0 {
			c.SetLimit(0)
			if errors.Is(err, line.ErrTimedOut) {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
