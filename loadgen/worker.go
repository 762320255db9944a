package loadgen

import (
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
)

// worker processes jobs on a connection. It works for every protocol whose message types cover the steps of a job.
//
// The worker keeps several requests for a job outstanding, as long as most of them receive a job: a request that
// receives none costs as much time as one that does. When the server has no job for any of them, the worker sleeps
// until the server wakes it, or sends a request to which the server replies only when it has a job. It does neither
// earlier, because the replies to later requests would be delayed.
type worker struct {
	*WorkerConn
	types   *messageTypes
	poll    *message   // asks for a job; the server replies at once, if it has such a request
	finish  *message   // completes or deletes a job
	updates []*message // progress reports (or touch commands)
	repeat  int        // number of times that the updates are sent for each job
	grabs   int        // maximum of target
	busy    int        // requests for a job without a reply, plus jobs that are not finished
	target  int        // desired value of busy: one more after each job, one fewer after each reply without a job
	waiting bool       // types.wait was sent and has no reply yet
	asleep  bool       // types.sleep was sent, and the server has not woken the worker
	pending queue      // requests to which the server replies, in order: the job that the request completes, or nil
}

// newWorker returns the general worker, which begins with one request for a job and may then increase the number of
// requests to Config.Grabs.
func newWorker(c *WorkerConn, s *Scenario) *worker {
	r := c.run.adapter.types
	w := &worker{WorkerConn: c, types: r, poll: newMessage(r.poll, normal, foreground),
		finish: newMessage(r.finish, normal, foreground),
		repeat: s.Updates, grabs: c.run.cfg.Grabs, target: 1}
	for _, t := range r.updates {
		w.updates = append(w.updates, newMessage(t, normal, foreground))
	}
	return w
}

// request sends a message to which the server may reply. j is the job that the message completes, or nil.
func (w *worker) request(j *Job, m *codec.Message) {
	if len(m.Type.Answers) > 0 {
		w.pending.Push(j)
	}
	w.send(m)
}

// Begin implements [Worker]. It registers the functions and asks for jobs.
func (w *worker) Begin() {
	queues := w.Queues()
	switch t := w.types.register; {
	case t == nil:
	case len(t.Repeat) > 0:
		w.request(nil, &codec.Message{Type: t, Args: queues})
	default:
		for i := range queues {
			w.request(nil, &codec.Message{Type: t, Args: queues[i : i+1]})
		}
	}
	if t := w.types.unregister; t != nil {
		w.request(nil, &codec.Message{Type: t, Args: [][]byte{[]byte(w.types.protocol.DefaultQueue)}})
	}
	if w.types.wait != nil {
		w.awaitJob()
	} else {
		w.requestJobs()
	}
}

// requestJobs asks for jobs until busy has reached target.
func (w *worker) requestJobs() {
	for ; w.busy < w.target; w.busy++ {
		w.Ask()
		w.send(&w.poll.Message)
	}
}

// pollInterval is the time between requests for a job if the server has no job and cannot wake the worker.
const pollInterval = 10 * time.Millisecond

// awaitJob makes the worker wait for a job: it sends a request to which the server replies only when it has a job, or
// sleeps, or asks again after pollInterval.
func (w *worker) awaitJob() {
	switch {
	case w.types.wait != nil:
		w.waiting = true
		w.Ask()
		w.Send(w.types.wait)
	case w.types.sleep != nil:
		w.asleep = true
		w.Send(w.types.sleep)
	default:
		w.After(pollInterval, w.requestJobs)
	}
}

// Handle implements [Worker]. A message that a worker should not receive ends the run.
func (w *worker) Handle(f *codec.Frame) {
	switch f.Type.Does {
	case codec.Assign:
		w.assigned(f)
	case codec.NoJob:
		w.noJob()
	case codec.Wake:
		if !w.asleep && slices.Contains(w.poll.Type.Answers, f.Type) {
			w.noJob()
			return
		}
		w.asleep = false
		w.requestJobs()
	case codec.Answer:
		if j := Pop(&w.pending); j != nil {
			w.EndSeen(j)
		}
	case codec.Refuse:
		if !slices.Contains(w.finish.Type.Answers, f.Type) || slices.Contains(w.poll.Type.Answers, f.Type) {
			w.unexpected(f)
			return
		}
		Pop(&w.pending)
		w.countFault(&w.run.ledger.Duplicated, f, fmt.Sprintf("the server replied %s for a job that this worker has reserved", f.Type.Name))
	default:
		w.unexpected(f)
	}
}

// answered records the reply to a request for a job.
func (w *worker) answered() {
	if w.waiting {
		w.waiting = false
	} else {
		w.busy--
	}
}

// noJob handles a reply that the server has no job.
func (w *worker) noJob() {
	w.NoJob()
	w.target = max(1, w.target-1)
	if w.answered(); w.busy == 0 {
		w.awaitJob()
	}
}

// assigned handles a job that the server has assigned, and completes it after Config.Work.
func (w *worker) assigned(f *codec.Frame) {
	id, payload := f.Get(codec.JobID), f.Get(codec.Payload)
	j := w.Assigned(f, payload)
	if d := w.run.cfg.Work; d > 0 {
		id, payload = slices.Clone(id), slices.Clone(payload)
		w.After(d, func() { w.complete(j, id, payload) })
		return
	}
	w.complete(j, id, payload)
}

// complete sends the updates and the result of a job, and asks for more jobs. j is nil if the payload is not that of
// a job in flight.
func (w *worker) complete(j *Job, id, payload []byte) {
	for range w.repeat {
		for _, m := range w.updates {
			m.args[m.job], m.args[m.payload] = id, payload
			w.request(nil, &m.Message)
		}
	}
	m := w.finish
	m.args[m.job], m.args[m.payload] = id, payload
	if j != nil && !w.run.scenario.background(j.number.Load()) {
		j = nil // the server sends the result to the client
	}
	w.request(j, &m.Message)
	if j != nil && len(m.Type.Answers) == 0 {
		w.EndSeen(j)
	}
	w.answered()
	w.target = min(w.grabs, w.target+1)
	if w.types.wait != nil && w.grabs == 1 {
		w.awaitJob()
	} else {
		w.requestJobs()
	}
}

// unconfirmed removes and returns the jobs that the worker has completed, but whose completion the server has not
// confirmed.
func (w *worker) unconfirmed() (jobs []*Job) {
	for w.pending.Len() > 0 {
		if j := Pop(&w.pending); j != nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}
