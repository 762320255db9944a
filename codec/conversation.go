package codec

import "slices"

// Event is the effect of a message on a job or on the connection.
type Event struct {
	Does *Type  // the type that declares its effect; see Protocol.Behavior
	Side Side   // the side that sent it
	Job  []byte // the ID of the job that the message names, or nil; preceded by the queue in protocols with ScopedIDs

	Queue, Unique, Payload []byte // nil if the message has none
}

// Set sets the job ID or the queue of the event. It ignores other meanings.
func (e *Event) Set(m Meaning, v []byte) {
	switch m {
	case JobID:
		e.Job = v
	case Queue:
		e.Queue = v
	}
}

// Event returns the effect of a message. Its values alias the frame.
func (p *Protocol) Event(f *Frame) Event {
	return Event{Does: p.Behavior(f), Side: f.From, Job: f.Get(JobID), Queue: f.Get(Queue), Unique: f.Get(UniqueID),
		Payload: f.Get(Payload)}
}

// Conversation matches the requests of one connection with their replies. The user can store a value with
// each request until its reply arrives. The zero value is an empty conversation.
type Conversation[V any] struct {
	waiting FIFO[Request[V]]
}

// Request is a request that waits for its reply.
type Request[V any] struct {
	Type  *Type
	Value V
}

// maxSearched limits the number of waiting requests that are compared with a reply.
const maxSearched = 1 << 10

// unreadRequest represents a request that could not be decoded. Only in line-based protocols can decoding continue
// after such a request.
var unreadRequest = &Type{Ordered: true, Answers: []*Type{nil}}

// Add adds a request and returns a pointer to it, valid until the next call, in which the user can set the
// value. A nil t means a request that could not be decoded. Add returns nil if the type has no reply, or if
// DefaultMaxPending requests are already waiting.
func (c *Conversation[V]) Add(t *Type) *Request[V] {
	if t == nil {
		t = unreadRequest
	}
	if len(t.Answers) == 0 || c.Len() >= DefaultMaxPending {
		return nil
	}
	return c.waiting.Push(Request[V]{Type: t})
}

// Reply removes the request that a message of the server answers and returns it, or false if there is none.
// An ordered reply answers the oldest ordered request. Any other reply answers the oldest request that allows
// it; any request can be answered by a refusal, and any request for a job by a job.
func (c *Conversation[V]) Reply(t *Type) (Request[V], bool) {
	for i := range min(c.Len(), maxSearched) {
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

// answeredBy reports whether a message of type t may be the reply to the request. A nil t is a reply that could not be
// decoded, which answers any request whose replies come in order.
func (r *Request[V]) answeredBy(t *Type) bool {
	switch {
	case t == nil: // the reply could not be decoded
		return r.Type.Ordered
	case t.Push:
		return slices.Contains(r.Type.Answers, t)
	case t.Ordered || r.Type.Ordered:
		return t.Ordered && r.Type.Ordered
	}
	return t.Does == Refuse || t.Does == Assign && r.Type.Does == Ask || slices.Contains(r.Type.Answers, t)
}

// Len returns the number of waiting requests.
func (c *Conversation[V]) Len() int { return c.waiting.Len() }

// At returns the i-th waiting request, counted from the oldest.
func (c *Conversation[V]) At(i int) *Request[V] { return c.waiting.At(i) }

// Forget removes all requests, for example after bytes were lost.
func (c *Conversation[V]) Forget() { *c = Conversation[V]{} }
