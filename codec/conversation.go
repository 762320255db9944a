package codec

import "slices"

// Event is what a message does to a job, or to the connection.
type Event struct {
	Does *Type  // how it behaves; see Protocol.Behavior
	Side Side   // who sent it
	Job  []byte // the ID of the job that it names, nil if none; with the queue before it where IDs are scoped

	Queue, Unique, Payload []byte // nil if it has none
}

// Set sets the value with a meaning, if an event has it.
func (e *Event) Set(m Meaning, v []byte) {
	switch m {
	case JobID:
		e.Job = v
	case Queue:
		e.Queue = v
	}
}

// Event returns what a message does. Its values are parts of the frame.
func (p *Protocol) Event(f *Frame) Event {
	return Event{Does: p.Behavior(f), Side: f.From, Job: f.Get(JobID), Queue: f.Get(Queue), Unique: f.Get(UniqueID), Payload: f.Get(Payload)}
}

// Conversation pairs the requests of one connection with their replies. A request may carry a value of its
// user's until then. The zero value is one without requests.
type Conversation[V any] struct {
	waiting FIFO[Request[V]]
}

// Request waits for its reply.
type Request[V any] struct {
	Type  *Type
	Value V
}

// searched bounds how many requests are looked at for the one that a reply answers.
const searched = 1 << 10

// unread stands for a request that could not be read. Only lines can be that and be followed by others.
var unread = &Type{Ordered: true, Answers: []*Type{nil}}

// Add takes a request, if it has a reply, and returns where its value is kept until the next call. A nil t is one
// that could not be read. Add returns nil if it has no reply, or if DefaultMaxPending requests wait already.
func (c *Conversation[V]) Add(t *Type) *Request[V] {
	if t == nil {
		t = unread
	}
	if len(t.Answers) == 0 || c.Len() >= DefaultMaxPending {
		return nil
	}
	return c.waiting.Push(Request[V]{Type: t})
}

// Reply removes the request that a message of the server answers, and reports whether there is one. Where
// replies come in order that is the oldest. Else it is the oldest with such a reply; any request may be refused,
// and any request for a job may be answered by a job.
func (c *Conversation[V]) Reply(t *Type) (Request[V], bool) {
	for i := range min(c.Len(), searched) {
		if r := *c.waiting.At(i); r.answeredBy(t) {
			for ; i > 0; i-- {
				*c.waiting.At(i) = *c.waiting.At(i - 1)
			}
			*c.waiting.At(0) = Request[V]{}
			c.waiting.Pop()
			return r, true
		}
	}
	return Request[V]{}, false
}

func (r *Request[V]) answeredBy(t *Type) bool {
	switch {
	case t == nil: // it could not be read
		return r.Type.Ordered
	case t.Push:
		return slices.Contains(r.Type.Answers, t)
	case t.Ordered || r.Type.Ordered:
		return t.Ordered && r.Type.Ordered
	}
	return t.Does == Refuse || t.Does == Assign && r.Type.Does == Ask || slices.Contains(r.Type.Answers, t)
}

// Len returns the number of requests that wait.
func (c *Conversation[V]) Len() int { return c.waiting.Len() }

// At returns the i-th of the requests that wait, the oldest first.
func (c *Conversation[V]) At(i int) *Request[V] { return c.waiting.At(i) }

// Forget drops all requests, such as after a loss of bytes.
func (c *Conversation[V]) Forget() { *c = Conversation[V]{} }
