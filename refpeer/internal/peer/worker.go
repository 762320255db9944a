package peer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// PollTime is the pause before a client or worker that polls asks again.
const PollTime = 20 * time.Millisecond

// Results return the result of a job for its payload, by the word for what the worker does.
var Results = map[string]func(payload string) string{
	"echo": same, "data": same, "warning": same, "status": same, "exception": same, "progress": same,
	"fail":  func(string) string { return "" },
	"empty": func(string) string { return "" },
	"reverse": func(s string) string {
		b := []byte(s)
		slices.Reverse(b)
		return string(b)
	},
}

func same(s string) string { return s }

// Work is the task of a worker: it does the given number of jobs, or all jobs that the server has if the number is 0.
func Work(ctx context.Context, d *Driver, t Task, _ []string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, err := strconv.Atoi(t["JOBS"])
	if err != nil {
		return nil, errors.Join(ErrUsage, err)
	}
	queues := strings.Split(t["QUEUES"], ",")
	if d.Drops {
		c, err := d.enter(ctx, t, queues)
		if err != nil {
			return nil, err
		}
		_, err = c.take(t, jobs > 0)
		if err := c.leave(t, err); err != nil {
			return nil, err
		}
	}
	done, err := d.work(ctx, t, queues, jobs)
	return []string{strconv.Itoa(done)}, err
}

// work does jobs of the queues until it has done the given number, or, if the number is 0, until the server has no
// more. It uses one connection per queue if d.PerQueue is set, and a new connection for each job if d.PerJob is set. It
// polls every PollTime while there is no job.
func (d *Driver) work(ctx context.Context, t Task, queues []string, jobs int) (done int, err error) {
	lists := [][]string{queues}
	if d.PerQueue {
		lists = slices.Collect(slices.Chunk(queues, 1))
	}
	conns := make([]*Conn, len(lists))
	defer func() {
		for _, c := range conns {
			if c != nil {
				err = c.leave(t, err)
			}
		}
	}()
	for ctx.Err() == nil {
		before := done
		for i, list := range lists {
			if conns[i] == nil {
				if conns[i], err = d.enter(ctx, t, list); err != nil {
					return done, err
				}
			}
			most := max(0, jobs-done)
			if d.PerJob {
				most = 1
			}
			n, err := conns[i].work(t, most, jobs > 0 && !d.PerQueue)
			if done += n; err != nil || jobs > 0 && done == jobs {
				return done, err
			}
			if d.PerJob {
				err = conns[i].leave(t, nil)
				if conns[i] = nil; err != nil {
					return done, err
				}
			}
		}
		switch {
		case done > before && (d.PerJob || d.PerQueue): // there may be more jobs
		case jobs == 0:
			return done, nil
		default:
			select {
			case <-ctx.Done():
			case <-time.After(PollTime):
			}
		}
	}
	return done, nil
}

// round is the state of a worker's connection.
type round struct {
	ctx     context.Context
	stop    func() bool // keeps the end of ctx from aborting the connection
	entered []string    // queues
	turn    int         // counts the polls of a sequential worker
}

// enter connects as a worker of queues.
func (d *Driver) enter(ctx context.Context, t Task, queues []string) (*Conn, error) {
	c, err := dial(ctx, d.addr, d.Program)
	if err != nil {
		return nil, err
	}
	c.ctx, c.stop = ctx, context.AfterFunc(ctx, func() {
		if d.Grace > 0 {
			time.AfterFunc(d.Grace, c.abort)
		} else {
			c.abort()
		}
	})
	c.SetLimit(0)
	t["QUEUES"] = strings.Join(queues, ",")
	err = c.perform("Start", t)
	for _, q := range queues {
		if slices.Contains(c.entered, q) || err != nil {
			continue
		}
		t["QUEUE"] = q
		if err = c.perform("Enter", t); err == nil {
			c.entered = append(c.entered, q)
		}
	}
	if err != nil {
		return nil, c.leave(t, err)
	}
	return c, nil
}

// leave leaves the queues, sends what was not sent yet, and closes the connection. It returns the first error, which may
// be err. After an error of the connection, leave sends nothing.
func (c *Conn) leave(t Task, err error) error {
	last := err
	for _, q := range c.entered {
		if works(last) {
			t["QUEUE"] = q
			last = c.perform("Exit", t)
			err = cmp.Or(err, last)
		}
	}
	if works(last) {
		err = cmp.Or(err, c.perform("Leave", t), c.afterEOF(c.flush()))
	}
	c.stop()
	c.close()
	return err
}

// perform performs a sequence of a worker.
func (c *Conn) perform(name string, t Task) error {
	if c.program.Sequential {
		return c.oneByOne(c.program.Steps[name], t)
	}
	return c.send(c.program.Steps[name], t, nil)
}

// work does at most the given number of jobs (0: no limit) and returns how many it has done. It returns when the server
// has no job, unless wait is true.
func (c *Conn) work(t Task, most int, wait bool) (done int, err error) {
	for most == 0 || done < most {
		got, err := c.take(t, wait)
		if err != nil || !got {
			return done, err
		}
		jobs := []Task{maps.Clone(t)}
		for len(jobs) < c.program.MaxJobs && (most == 0 || done+len(jobs) < most) {
			if got, err = c.take(t, false); err != nil {
				return done, err
			}
			if !got {
				break
			}
			jobs = append(jobs, maps.Clone(t))
		}
		for _, job := range slices.Backward(jobs) {
			if err := c.perform("Report", job); err != nil {
				return done, err
			}
			if err := c.perform("End", job); err != nil {
				return done, err
			}
			if done++; c.program.Pipelined && done != most {
				continue
			}
			if err := c.flush(); err != nil {
				return done, c.afterEOF(err)
			}
		}
	}
	return done, nil
}

// take asks for a job and sets the values of the task. If the server has none, take waits for one or returns false.
func (c *Conn) take(t Task, wait bool) (bool, error) {
	if c.program.Sequential {
		return c.poll(t, wait)
	}
	todo, asleep, sleeps := "Ask", false, 0
	for {
		if err := c.perform(todo, t); err != nil {
			return false, err
		}
		m, err := c.nextAsleep(asleep)
		if asleep && c.program.SleepLimit > 0 && errors.Is(err, ErrTimedOut) {
			todo, asleep = "Ask", false
			continue
		}
		if err != nil {
			return false, err
		}
		switch todo = ""; m.Type.Does {
		case codec.Assign:
			t.learn(m)
			t["RESULT"] = Results[t["HOW"]](t["PAYLOAD"])
			return true, nil
		case codec.Refuse:
			if !c.program.IgnoresErrors {
				return false, c.program.Refusal(m)
			}
		case codec.NoJob, codec.Wake:
			switch wakes := m.Type.Does == codec.Wake; {
			case asleep && wakes && sleeps < c.program.ExtraSleeps:
				todo, sleeps = "Sleep", sleeps+1
			case asleep && wakes:
				todo, asleep, sleeps = "Ask", false, 0
			case asleep || wakes && !c.answersAsk(m.Type): // needless
			case !wait:
				return false, nil
			case c.program.Polls:
				c.Pause(PollTime)
				todo = "Ask"
			default:
				todo, asleep = "Sleep", true
			}
		}
	}
}

// nextAsleep returns the next message. A worker that is asleep waits for it at most as long as the program says.
func (c *Conn) nextAsleep(asleep bool) (*codec.Message, error) {
	if asleep && c.program.SleepLimit > 0 {
		c.SetLimit(c.program.SleepLimit)
		defer c.SetLimit(0)
	}
	return c.next()
}

// answersAsk reports whether a message may be the reply to a request for a job.
func (c *Conn) answersAsk(m *codec.Type) bool {
	return slices.ContainsFunc(c.program.Protocol.Types, func(t *codec.Type) bool {
		return t.Does == codec.Ask && slices.Contains(t.Answers, m)
	})
}

// poll is take for a sequential worker: it asks for a job of each queue in turn.
func (c *Conn) poll(t Task, wait bool) (bool, error) {
	for {
		for range c.entered {
			if c.ctx.Err() != nil {
				return false, nil
			}
			t["QUEUE"], t["JOB_ID"] = c.entered[c.turn%len(c.entered)], ""
			c.turn++
			if err := c.perform("Ask", t); err != nil || t["JOB_ID"] != "" {
				return err == nil, err
			}
		}
		if !wait {
			return false, nil
		}
	}
}
