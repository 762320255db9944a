package loadgen

import (
	"fmt"
	"slices"
	"strconv"

	"jobwire/codec"
)

// client submits jobs on a connection. It works for every protocol whose message types cover the steps of a job.
type client struct {
	*ClientConn
	queues  [][]byte // names of the functions or tubes
	types   *messageTypes
	submits [2][Priorities]*message // messages that submit foreground [0] and background [1] jobs, by priority
	using   int                     // index of the queue named in the last message of type types.use; -1: none
	pending queue                   // jobs whose submission the server has not answered, in order

	perUnique int    // Scenario.PerUnique
	unique    []byte // buffer for the unique ID of a job
	// submissions by job ID, if the server combines several submissions into one job; nil otherwise
	sharing map[string][]*Job
}

// newClient returns the general client, with a message for each priority of foreground and background jobs. It keeps
// the sharing submissions of a job only if the scenario makes the server combine submissions.
func newClient(c *ClientConn, s *Scenario) *client {
	l := &client{ClientConn: c, queues: c.Queues(), types: c.run.adapter.types, using: -1, perUnique: s.PerUnique}
	if s.PerUnique > 1 {
		l.sharing = map[string][]*Job{}
	}
	for i := range Priorities {
		l.submits[0][i] = newMessage(l.types.submit(i, foreground), i, foreground)
		l.submits[1][i] = newMessage(l.types.submit(i, background), i, background)
	}
	return l
}

// Submit implements [Client]. If the submission has no field for the queue, Submit names the queue in a message
// before it.
func (c *client) Submit(j *Job, payload []byte) {
	m := c.submits[0][j.Priority]
	number := j.number.Load()
	if c.run.scenario.background(number) {
		m = c.submits[1][j.Priority]
	}
	if c.using != int(j.Queue) && c.types.use != nil && m.queue == len(m.Args) {
		c.using = int(j.Queue)
		c.Send(c.types.use, c.queues[j.Queue])
	}
	c.unique = c.unique[:0]
	if c.run.scenario.unique(number) {
		c.unique = append(append(c.unique[:0], c.run.cfg.Prefix...), '-')
		c.unique = append(strconv.AppendInt(c.unique, int64(c.place), 10), '-')
		c.unique = strconv.AppendInt(c.unique, int64(j.seq)/int64(max(1, c.perUnique)), 10)
	}
	c.pending.Push(j)
	m.args[m.queue], m.args[m.unique], m.args[m.payload] = c.queues[j.Queue], c.unique, payload
	c.send(&m.Message)
}

// Handle implements [Client]. A message that a client should not receive ends the run.
func (c *client) Handle(f *codec.Frame) {
	switch f.Type.Does {
	case codec.Accept:
		c.accepted(f)
	case codec.Complete:
		c.completed(f)
	case codec.Data:
		c.Result(f, f.Get(codec.Payload))
	case codec.Status:
	case codec.Refuse, codec.Bury:
		c.Refused(Pop(&c.pending), f)
	case codec.Answer:
		if c.types.use != nil && slices.Contains(c.types.use.Answers, f.Type) {
			return
		}
		fallthrough
	default:
		c.unexpected(f)
	}
}

// accepted handles the acknowledgement of the oldest submission without a reply.
func (c *client) accepted(f *codec.Frame) {
	j := Pop(&c.pending)
	if j == nil {
		c.countFault(&c.run.ledger.AnsweredTwice, f, "the server sent a reply, but no submission waits for a reply")
		return
	}
	if c.sharing != nil {
		id := string(f.Get(codec.JobID))
		c.sharing[id] = append(c.sharing[id], j)
	}
	c.Accepted(j)
}

// completed handles the result of a job.
func (c *client) completed(f *codec.Frame) {
	if c.sharing != nil {
		c.shared(f)
	} else if j := c.Result(f, f.Get(codec.Payload)); j != nil {
		c.Ended(j)
	}
}

// shared handles a result for a job that several submissions share: it ends the oldest of them that
// has no result. The result contains the payload of the first submission, which may differ from the
// payload of this one. So shared checks only that a checksum in the payload is correct.
func (c *client) shared(f *codec.Frame) {
	id := string(f.Get(codec.JobID))
	if _, whole := c.run.filler.numberOf(f.Get(codec.Payload)); !whole {
		c.countFault(&c.run.ledger.Corrupted, f, "the result is not the payload that was sent")
	}
	jobs := c.sharing[id]
	if len(jobs) == 0 {
		c.countFault(&c.run.ledger.AnsweredTwice, f, "all submissions of this job had already received their result")
		return
	}
	if c.sharing[id] = jobs[1:]; len(jobs) == 1 {
		delete(c.sharing, id)
	}
	c.finish(jobs[0])
}

// requester is a client that sends echo or status requests instead of jobs. The server replies in the order of the
// requests.
type requester struct {
	*ClientConn
	*message
	echoes  bool          // the last argument of the reply must be the payload of the request
	pending queue         // requests without a reply, in order
	reply   codec.Message // memory for the reply
}

func newRequester(c *ClientConn, s *Scenario) *requester {
	return &requester{ClientConn: c, message: c.run.adapter.types.request(s.Request), echoes: s.Request == codec.Echo}
}

// Submit implements [Client]. It sends one request.
func (r *requester) Submit(j *Job, payload []byte) {
	r.pending.Push(j)
	r.args[r.message.payload] = payload
	r.send(&r.Message)
}

// Handle implements [Client]. Each message is the reply to the oldest request without a reply.
func (r *requester) Handle(f *codec.Frame) {
	j := Pop(&r.pending)
	if j == nil {
		r.countFault(&r.run.ledger.AnsweredTwice, f, "the server sent a reply, but no request waits for a reply")
		return
	}
	if r.echoes {
		f.Message(&r.reply)
		number, whole := uint64(0), false
		if n := len(r.reply.Args); n > 0 {
			number, whole = r.run.filler.numberOf(r.reply.Args[n-1])
		}
		if !whole || number != j.number.Load() {
			r.countFault(&r.run.ledger.Corrupted, f, "the data of the reply differs from the data that was sent")
		}
	}
	j.created = r.now
	r.finish(j)
}

// unexpected ends the run because the server sent a message that is not allowed here.
func (c *Conn) unexpected(f *codec.Frame) { c.end(fmt.Errorf("unexpected message %s", f.Type.Name)) }
