package loadgen

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
)

// messageTypes are the message types that clients and workers send. A field is nil if the protocol has no such type.
type messageTypes struct {
	protocol *codec.Protocol
	submits  []*codec.Type // submit a job with a payload, for which the server chooses the job ID
	use      *codec.Type   // names the queue of later submissions
	result   bool          // the server sends results to the client that submitted the job

	register   *codec.Type   // registers a worker for a queue
	unregister *codec.Type   // removes a worker from the default queue of the protocol; nil if there is no default queue
	poll       *codec.Type   // asks for a job; the server replies at once, if the protocol has such a type
	wait       *codec.Type   // asks for a job; the server replies when it has one
	sleep      *codec.Type   // sent before the worker waits until the server wakes it
	finish     *codec.Type   // completes a job, or deletes it if the protocol has no results
	updates    []*codec.Type // progress reports of a worker about a job, or one touch command
}

// messageTypesOf finds the message types by their fields Does and Means. If several types match, the first one is
// used, except for submits and updates.
func messageTypesOf(p *codec.Protocol) *messageTypes {
	r := &messageTypes{protocol: p}
	var touch, remove *codec.Type
	first := func(to **codec.Type, t *codec.Type, ok bool) {
		if *to == nil && ok {
			*to = t
		}
	}
	for _, t := range p.Types {
		if t.Req == 0 {
			r.result = r.result || t.Res != 0 && t.Does == codec.Complete && t.Has(codec.Payload)
			continue
		}
		queue, job, payload := t.Has(codec.Queue), t.Has(codec.JobID), t.Has(codec.Payload)
		switch t.Does {
		case codec.Submit:
			if payload && !job {
				r.submits = append(r.submits, t)
			}
		case codec.Use:
			first(&r.use, t, queue)
		case codec.Register:
			first(&r.register, t, queue)
		case codec.Unregister:
			first(&r.unregister, t, queue && p.DefaultQueue != "")
		case codec.Ask:
			plain := len(t.Fields) == 0 || len(t.Fields) == 1 && t.Has(codec.Timeout)
			first(&r.poll, t, plain && t.Blocks != codec.Always)
			first(&r.wait, t, plain && t.Blocks == codec.Always)
		case codec.Sleep:
			first(&r.sleep, t, true)
		case codec.Status, codec.Data:
			if !slices.ContainsFunc(r.updates, func(u *codec.Type) bool { return u.Does == t.Does }) {
				r.updates = append(r.updates, t)
			}
		case codec.Touch:
			first(&touch, t, job)
		case codec.Complete:
			r.result = r.result || t.Res != 0 && payload
			first(&r.finish, t, payload)
		case codec.Delete:
			first(&remove, t, job)
		}
	}
	first(&r.finish, remove, true)
	first(&r.poll, r.wait, true)
	if len(r.updates) == 0 && touch != nil {
		r.updates = []*codec.Type{touch}
	}
	return r
}

// oneGrab reports whether a worker can have only one request for a job outstanding: if the message that completes a
// job has no job ID, or if the server blocks the connection while a request for a job waits.
func (m *messageTypes) oneGrab() bool {
	return m.poll == m.wait || m.finish == nil || !m.finish.Has(codec.JobID)
}

// allow reports whether the protocol has all message types that a scenario needs.
func (m *messageTypes) allow(s *Scenario) bool {
	if s.NoWorkers() {
		return m.request(s.Request) != nil
	}
	enough := len(m.submits) > 0 && m.finish != nil && m.poll != nil
	switch {
	case !enough, s.PerUnique > 0, s.Kinds:
		return false
	case s.Mixed:
		return m.submits[0].Has(codec.PriorityOf) || m.submit(0, foreground) != m.submit(normal, foreground)
	}
	return s.Updates == 0 || len(m.updates) > 0
}

// Whether a client waits for the result of a job.
const (
	foreground = false
	background = true
)

// submit returns the type that submits a job with this priority, in foreground or background, or the most similar
// type if there is no such type.
func (m *messageTypes) submit(priority int, background bool) (best *codec.Type) {
	most := -1
	for _, t := range m.submits {
		fit := 0
		if t.Background == background {
			fit += 2
		}
		if int(t.Priority) == normal-priority {
			fit++
		}
		if fit > most {
			best, most = t, fit
		}
	}
	return best
}

// request returns a message to which the server replies without a worker (an echo request, or a query about a job
// that does not exist), or nil if the protocol has none.
func (m *messageTypes) request(effect codec.Effect) *message {
	for _, t := range m.protocol.Types {
		if t.Req != 0 && t.Does == effect && (effect == codec.Echo || t.Has(codec.JobID)) {
			return newMessage(t, normal, foreground)
		}
	}
	anyCommand := slices.IndexFunc(m.protocol.Types, func(t *codec.Type) bool { return t.AnyCommand })
	for _, word := range slices.Sorted(maps.Keys(m.protocol.Commands)) {
		if effect == codec.Echo && anyCommand >= 0 && m.protocol.Commands[word].Does == effect {
			args := [][]byte{[]byte(word), nil}
			return &message{Message: codec.Message{Type: m.protocol.Types[anyCommand], Args: args}, args: args, payload: 1}
		}
	}
	return nil
}

// message is a message that is sent many times with changed arguments. Args is args without the last element. Values
// for fields that the message type does not have are stored in this last element, which is not sent.
type message struct {
	codec.Message
	args                        [][]byte
	queue, unique, job, payload int // indexes in args
}

// newMessage returns a message of type t with default values for all required arguments.
func newMessage(t *codec.Type, priority int, background bool) *message {
	var fields []*codec.Field
	m := &message{Message: codec.Message{Type: t}}
	for i := range t.Fields {
		if fd := &t.Fields[i]; !fd.Derived() && !fd.Optional {
			m.args = append(m.args, argument(t, fd, len(fields), priority, background))
			fields = append(fields, fd)
		}
	}
	m.args = append(m.args, nil)
	m.Args = m.args[:len(fields)]
	at := func(means codec.Meaning) int {
		if i := slices.IndexFunc(fields, func(fd *codec.Field) bool { return fd.Means == means }); i >= 0 {
			return i
		}
		return len(fields)
	}
	m.queue, m.unique, m.job, m.payload = at(codec.Queue), at(codec.UniqueID), at(codec.JobID), at(codec.Payload)
	return m
}

// timeLimit is the time after which the server takes a job away from its worker. It is longer than any job of a run
// takes.
const timeLimit = 10 * time.Minute

// argument returns the default value of argument i of a message.
func argument(t *codec.Type, fd *codec.Field, i, priority int, background bool) []byte {
	n, text := fd.Lo, ""
	switch fd.Means {
	case codec.JobID:
		text = "H:jobwire:0" // ID of a job that does not exist
	case codec.Queue:
		text = "jobwire"
	case codec.Outcome:
		text = "success"
	case codec.TimeLimit:
		n = uint64(timeLimit / fd.Unit)
	case codec.Attachment:
		if background {
			n = fd.Hi
		}
	case codec.PriorityOf:
		if len(fd.Values) > 0 {
			text = fd.Values[priority]
		}
		n = [Priorities]uint64{fd.Lo, 1024, fd.Hi}[priority]
	case codec.Uninterpreted:
		if t.Does == codec.Status {
			n = uint64(i + 1) // progress: numerator, then denominator
		}
	}
	switch fd.Kind {
	case codec.Uint:
		return binary.BigEndian.AppendUint64(nil, n)[8-fd.Width:]
	case codec.Number, codec.Signed:
		return strconv.AppendUint(nil, n, 10)
	}
	return []byte(text)
}
