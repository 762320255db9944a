package loadgen

import (
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
)

// worker processes jobs, by the message types of any protocol. It has several requests for a job
// outstanding, as long as most of them get a job: a request without a job costs as much as one with a job. When the server has no job for any of them, the worker sleeps, or sends a request whose
// reply may wait. It does not do so earlier, since that would delay the replies to later requests.
type worker struct {
	*WorkerConn
	types   *messageTypes
	poll    *message
	finish  *message
	updates []*message
	repeat  int   // how many times the updates are sent
	grabs   int   // the limit of busy
	busy    int   // requests for a job without a reply, and jobs that are not finished
	target  int   // how many of both the worker wants: more after each job, fewer after each reply that there is none
	waiting bool  // the reply to rows.wait is outstanding
	asleep  bool  // rows.sleep was sent
	pending queue // requests that the server confirms, in order: the job that each finishes, or nil
}

func newWorker(c *WorkerConn, s *Scenario) *worker {
	r := c.run.adapter.types
	w := &worker{WorkerConn: c, types: r, poll: newMessage(r.poll, normal, false), finish: newMessage(r.finish, normal, false),
		repeat: s.Updates, grabs: c.run.cfg.Grabs, target: 1}
	for _, t := range r.updates {
		w.updates = append(w.updates, newMessage(t, normal, false))
	}
	return w
}

// request sends a request that the server may confirm. j is the job that it finishes, or nil.
func (w *worker) request(j *Job, m *codec.Message) {
	if len(m.Type.Answers) > 0 {
		w.pending.push(j)
	}
	w.send(m)
}

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

// requestJobs asks for jobs until there are as many requests and jobs as the worker wants.
func (w *worker) requestJobs() {
	for ; w.busy < w.target; w.busy++ {
		w.Ask()
		w.send(&w.poll.Message)
	}
}

// pollInterval is how often a worker asks for a job if the server cannot wake it.
const pollInterval = 10 * time.Millisecond

// awaitJob lets the worker wait for a job.
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
		if j := w.pending.pop(); j != nil {
			w.EndSeen(j)
		}
	case codec.Refuse:
		if !slices.Contains(w.finish.Type.Answers, f.Type) || slices.Contains(w.poll.Type.Answers, f.Type) {
			w.unexpected(f)
			return
		}
		w.pending.pop()
		w.countFault(&w.run.ledger.Duplicated, f, fmt.Sprintf("the server replied %s for a job that this worker has reserved", f.Type.Name))
	default:
		w.unexpected(f)
	}
}

// answered notes the reply to a request for a job.
func (w *worker) answered() {
	if w.waiting {
		w.waiting = false
	} else {
		w.busy--
	}
}

func (w *worker) noJob() {
	w.NoJob()
	w.target = max(1, w.target-1)
	if w.answered(); w.busy == 0 {
		w.awaitJob()
	}
}

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

// complete finishes a job and asks for others.
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
		j = nil // its client receives the result
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

// unconfirmed returns the jobs that the worker has finished without an answer of the server.
func (w *worker) unconfirmed() (jobs []*Job) {
	for w.pending.n > 0 {
		if j := w.pending.pop(); j != nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}
