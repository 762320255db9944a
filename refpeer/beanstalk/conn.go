package beanstalk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	protocol "jobwire/codec/beanstalk"
	"jobwire/refpeer/internal/peer"
)

// Types of replies that tasks and waiting clients distinguish.
const (
	notFound    = "NOT_FOUND"
	timedOut    = "TIMED_OUT"
	outOfMemory = "BURIED" // in response to release: the server has buried the job
)

// extraTime is added to the timeout of a task if the client measures the timeout itself (Options.OwnLimit). fetchTime
// is how long a client that has connected again tries to reserve its jobs by their IDs.
const (
	extraTime = 500 * time.Millisecond
	fetchTime = 2 * time.Second
)

// conn is one connection to a server.
type conn struct {
	*peer.Conn
	*tubes
	*Options
	program *peer.Program
}

// tubes is what a client knows of a connection.
type tubes struct {
	used    string
	watched []string
	asked   bool // the client has sent reserve
}

// action performs a task over a connection, and returns the words of the answer.
type action = func(ctx context.Context, c *conn, t peer.Task) ([]string, error)

// task returns a kind of task. The answer contains the named values after the words of the action.
func task(form string, do action, values ...string) peer.Verb {
	perform := func(ctx context.Context, d *peer.Driver, t peer.Task, _ []string) (answer []string, err error) {
		for _, name := range []string{"DELAY", "TIMEOUT"} {
			if n, err := strconv.ParseUint(t[name+"_MS"], 10, 32); err == nil {
				t[name] = fmt.Sprintf("%d.%03d", n/1000, n%1000)
			}
		}
		if d.Own.(*Options).Reconnects {
			if err := reconnect(ctx, d, t); err != nil {
				return nil, err
			}
		}
		err = d.With(ctx, t, func(c *peer.Conn) error {
			answer, err = do(ctx, attach(d, c), t)
			if d.Own.(*Options).EOFEndsTask && peer.IsDisconnect(err) {
				c.Broken, err = true, nil
			}
			return err
		})
		for _, name := range values {
			answer = append(answer, t[name])
		}
		return answer, err
	}
	return peer.Verb{Form: form, Do: perform}
}

// attach returns a connection of the driver.
func attach(d *peer.Driver, c *peer.Conn) *conn {
	own := d.Own.(*Options)
	if c.Own == nil {
		first := &tubes{protocol.Protocol.DefaultQueue, []string{protocol.Protocol.DefaultQueue}, false}
		if last, again := d.Last.(*tubes); again && own.KeepsUsed {
			first.used = last.used
		}
		if last, again := d.Last.(*tubes); again && own.KeepsWatched {
			first.watched = last.watched
		}
		c.Own = first
	}
	return &conn{c, c.Own.(*tubes), own, d.Program}
}

// reconnect replaces the connection that has reserved the job of a task by a new one, which reserves the same jobs by
// their IDs. It waits until the server has noticed the end of the connection.
func reconnect(ctx context.Context, d *peer.Driver, t peer.Task) error {
	var jobs map[string]bool
	err := d.With(ctx, t, func(c *peer.Conn) error {
		if c.Jobs[t["JOB_ID"]] {
			jobs, c.Jobs = c.Jobs, nil
			d.Leave(c)
		}
		return nil
	})
	if err != nil || jobs == nil {
		return err
	}
	return d.With(ctx, peer.Task{}, func(c *peer.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, fetchTime)
		defer cancel()
		for id := range jobs {
			for {
				_, err := c.Request("Fetch", peer.Task{"JOB_ID": id})
				if err == nil {
					c.Jobs[id] = true
					break
				}
				if !peer.FailedWith(err, notFound) {
					return err
				}
				if c.Pause(peer.PollTime); ctx.Err() != nil {
					return err
				}
			}
		}
		return nil
	})
}

// roundUp returns a step that rounds a value of the task up to whole seconds, if it has parts of a second.
func roundUp(name string) func(*peer.Conn, peer.Task) error {
	return func(_ *peer.Conn, t peer.Task) error {
		if _, part, ok := strings.Cut(t[name], "."); ok && part != "" {
			seconds, err := strconv.ParseFloat(t[name], 64)
			if err != nil {
				return peer.ErrUsage
			}
			t[name] = strconv.FormatFloat(math.Ceil(seconds), 'f', 0, 64)
		}
		return nil
	}
}

// request returns the action that performs a sequence.
func request(sequence string) action {
	return func(_ context.Context, c *conn, t peer.Task) ([]string, error) {
		_, err := c.Request(sequence, t)
		return nil, err
	}
}

func kick(_ context.Context, c *conn, t peer.Task) ([]string, error) {
	return c.Ask("Kick", "KICKED", 0, t)
}

// inTube returns an action that makes the connection use the tube of the task first.
func inTube(do action) action {
	return func(ctx context.Context, c *conn, t peer.Task) ([]string, error) {
		if err := c.use(t); err != nil {
			return nil, err
		}
		return do(ctx, c, t)
	}
}

// owned returns an action about a job that the connection must have reserved.
func owned(do action) action {
	return func(ctx context.Context, c *conn, t peer.Task) ([]string, error) {
		if !c.Jobs[t["JOB_ID"]] {
			return nil, peer.Failure{Words: []string{"not-found", "the connection has not reserved the job"}}
		}
		return do(ctx, c, t)
	}
}

// give returns the action that gives a reserved job back or deletes it.
func give(sequence string) action {
	return func(_ context.Context, c *conn, t peer.Task) ([]string, error) {
		if c.Jobs[t["JOB_ID"]] {
			t["RESERVED"] = "reserved"
		}
		_, err := c.Request(sequence, t)
		if err == nil || peer.FailedWith(err, notFound, outOfMemory) {
			delete(c.Jobs, t["JOB_ID"])
		}
		return nil, err
	}
}

func stats(_ context.Context, c *conn, t peer.Task) ([]string, error) {
	pairs, err := c.Ask("Stats", "stats-reply", 0, t)
	values := peer.Task{}
	for pair := range slices.Chunk(pairs, 2) {
		values[pair[0]] = pair[len(pair)-1]
	}
	return []string{values["state"], values["tube"]}, err
}

// reserve reserves a job from the tubes of the task.
func reserve(ctx context.Context, c *conn, t peer.Task) ([]string, error) {
	if err := c.wait(ctx, t); err != nil {
		return nil, err
	}
	c.Jobs[t["JOB_ID"]] = true
	if _, err := c.Request("Reserved", t); err != nil && !peer.FailedWith(err) { // the job is reserved nevertheless
		return nil, err
	}
	return nil, nil
}

// ways contains the actions of a worker on a job, by the word of the task.
var ways = map[string][]action{
	"delete":  {give("Delete")},
	"release": {give("Release")},
	"bury":    {give("Bury")},
	"touch":   {request("Touch"), give("Delete")},
}

// work reserves jobs and does with each what the task says.
func work(ctx context.Context, c *conn, t peer.Task) ([]string, error) {
	jobs, err := strconv.Atoi(t["JOBS"])
	if err != nil {
		return nil, errors.Join(peer.ErrUsage, err)
	}
	done := 0
	for ; jobs == 0 || done < jobs; done++ {
		one := maps.Clone(t)
		if jobs == 0 {
			one["TIMEOUT"] = "0"
		}
		_, err := reserve(ctx, c, one)
		if jobs == 0 && peer.FailedWith(err, timedOut) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, do := range ways[t["HOW"]] {
			if _, err := do(ctx, c, one); err != nil {
				return nil, err
			}
		}
	}
	return []string{strconv.Itoa(done)}, nil
}

// prepare sends a request on which the next one depends. A pipelining client does not wait for the reply.
func (c *conn) prepare(sequence string, t peer.Task) error {
	if c.program.Pipelined {
		return c.Send(sequence, &peer.Call{Task: t, Required: true})
	}
	_, err := c.Request(sequence, t)
	return err
}

// use makes the connection use the tube of the task.
func (c *conn) use(t peer.Task) error {
	if c.used == t["QUEUE"] {
		return nil
	}
	err := c.prepare("Use", t)
	if err == nil {
		c.used = t["QUEUE"]
	}
	return err
}

// watch makes the connection watch the tubes of the task and no others.
func (c *conn) watch(t peer.Task) error {
	names := strings.Split(t["QUEUES"], ",")
	for _, name := range names {
		if slices.Contains(c.watched, name) {
			continue
		}
		if err := c.prepare("Watch", peer.Task{"QUEUE": name}); err != nil {
			return err
		}
		c.watched = append(c.watched, name)
	}
	for _, name := range slices.Clone(c.watched) {
		if slices.Contains(names, name) || c.LateIgnore && !c.asked && name == protocol.Protocol.DefaultQueue {
			continue
		}
		if err := c.prepare("Ignore", peer.Task{"QUEUE": name}); err != nil {
			return err
		}
		c.watched = slices.DeleteFunc(c.watched, func(w string) bool { return w == name })
	}
	return nil
}

// wait waits for a job in the way that the program selects.
func (c *conn) wait(ctx context.Context, t peer.Task) error {
	limited := t["TIMEOUT"] != ""
	seconds, _ := strconv.ParseUint(t["TIMEOUT"], 10, 31)
	deadline := time.Now().Add(time.Duration(seconds) * time.Second)
	expired := func() bool { return limited && !time.Now().Before(deadline) }
	noJob := peer.Failure{Code: timedOut, Words: []string{"timed-out", "no job was ready in time"}}
	if c.ByID {
		for {
			err := c.find(t)
			if !peer.FailedWith(err, notFound) {
				return err
			}
			if expired() {
				return noJob
			}
			if c.Pause(peer.PollTime); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	if err := c.watch(t); err != nil {
		return err
	}
	c.asked = true
	one := maps.Clone(t)
	switch {
	case c.InPieces:
		one["TIMEOUT"] = strconv.Itoa(c.Piece)
	case c.OwnLimit && limited:
		one["TIMEOUT"] = ""
		c.SetLimit(time.Until(deadline) + extraTime)
		defer c.SetLimit(0)
	}
	for {
		_, err := c.Request("Reserve", one)
		t["JOB_ID"], t["PAYLOAD"] = one["JOB_ID"], one["PAYLOAD"]
		switch {
		case c.OwnLimit && errors.Is(err, peer.ErrTimedOut): // the server may still reserve a job for this connection
			c.Broken = !c.program.ReusesFailed
			return noJob
		case !c.InPieces || !peer.FailedWith(err, timedOut) || expired():
			return err
		}
		if c.Pause(peer.PollTime); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// find reserves a job that is ready in one of the tubes of the task. It fails with notFound if there is none.
func (c *conn) find(t peer.Task) (err error) {
	for _, name := range strings.Split(t["QUEUES"], ",") {
		t["QUEUE"] = name
		if err := c.use(t); err != nil {
			return err
		}
		if _, err = c.Request("PeekReady", t); err == nil {
			_, err = c.Request("Fetch", t)
		}
		if !peer.FailedWith(err, notFound) {
			return err
		}
	}
	return err
}
