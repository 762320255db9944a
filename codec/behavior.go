package codec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Effect is the effect of a message on a job, a worker or the connection. The pages in docs/protocols contain
// the comments on the effects and meanings. A type that a worker sends to the server and that the server
// forwards to the client, such as a result, has one effect for both directions: the sending side determines
// the direction.
type Effect uint8

const (
	NoEffect Effect = iota // has no effect that the contract describes

	// Requests about jobs.

	Submit  // asks for a new job
	Ask     // asks for a job to work on
	Wait    // asks for the end of a job, which the reply reports
	Query   // asks for information, and changes nothing
	Release // gives a job back to its queue
	Bury    // puts a job aside until it is kicked; from the server: the job was put aside
	Kick    // puts buried or delayed jobs back into their queue
	Touch   // restarts the time limit of a job
	Delete  // removes a job; from the worker that has the job, this is its end
	Cancel  // removes a job, on behalf of an operator
	Store   // writes a part of a job or of its record
	Pause   // stops the assignment of jobs of a queue for some time

	// Reports about a job: from the worker to the server, and from the server to the client.

	Data      // reports a part of the result
	Warning   // reports a part of the result that is a warning
	Status    // reports the progress of the work
	Complete  // reports the end of the job, with its outcome if a field contains it
	Fail      // reports that the job has failed
	Exception // reports that the job has failed, with a text

	// Requests about the connection and the server.

	Register   // registers the worker for jobs of a queue
	Unregister // ends the registration for a queue, or for all queues if it names none
	Use        // names the queue of the jobs submitted from now on
	Sleep      // announces that the worker waits until the server wakes it
	Configure  // changes how the server handles later requests
	Echo       // asks for the same bytes
	Notify     // makes the server publish an event
	Leave      // ends the connection: the server closes it
	Shutdown   // ends the server

	// Replies, and messages that the server sends without a request.

	Accept    // confirms that a job was created, and contains its ID
	Assign    // gives a job to the worker that requested one
	NoJob     // says that there is no job to assign
	Wake      // asks the worker to request a job; in reply to a request for a job it says that there is none
	Answer    // says that the server has performed the request, and contains the value if one was requested
	Refuse    // rejects the request, which has changed nothing
	Published // delivers an event that a peer published
)

var effects = strings.Fields("none submit ask wait query release bury kick touch delete cancel store pause data warning status complete fail exception " +
	"register unregister use sleep configure echo notify leave shutdown accept assign no-job wake answer refuse published")

// String returns the name of the effect in small letters: "submit".
func (e Effect) String() string { return effects[e] }

// Meaning is the meaning of a field's value.
type Meaning uint8

const (
	Uninterpreted Meaning = iota
	JobID                 // the job's handle or number
	Queue                 // the function, tube or list of the job
	UniqueID              // jobs of one queue with the same unique ID may become one job
	Payload               // data that the receiver passes on or returns unchanged, such as the data of a job
	PriorityOf            // the priority of a job, in the protocol's own notation
	Delay                 // how long a job or a queue has to wait before jobs are assigned, in units of Field.Unit
	StartTime             // time before which the job is not assigned, in seconds since 1970
	Schedule              // part of the time at which the job is assigned, such as the hour
	TimeLimit             // how long a worker may have a job, in units of Field.Unit
	Timeout               // how long the reply may wait for something to happen, in units of Field.Unit
	Outcome               // the outcome of a job: success is 0 or "success"
	Attachment            // how a client follows its job: 0 is until its end, other values are in the background
	Ended                 // whether the job has ended; 0 if it has not
	Running               // whether a worker has the job
	Known                 // whether the server knows the job
	OptionName            // the name of an option
	WorkerID              // the ID of a worker, which differs for all connections
	Clock                 // the sender's own time, in seconds since 1970
	Chosen                // text or figures that each server chooses: two servers need not agree
	meanings
)

// Priority is the level of a job's priority that a type requests.
type Priority int8

const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

// Blocking says whether the reply to a request may wait for actions of other peers. In protocols that reply
// in order, such a wait also delays the replies to later requests.
type Blocking uint8

const (
	Never Blocking = iota
	// the reply may wait for other peers, for as long as the timeout says; without a limit if that is 0 or there is none
	Always
	UnlessZero // the reply may wait for other peers, for as long as the timeout says; not at all if that is 0
	// if the client waits for the result of its job, the server handles further requests of the connection only after the
	// end of the job
	Attached
)

// At returns the argument index of the first field with the meaning, or -1.
func (t *Type) At(m Meaning) int { return int(t.at[m]) - 1 }

// Has reports whether the type has a field with the meaning.
func (t *Type) Has(m Meaning) bool { return t.at[m] > 0 }

// Get returns the value of the first field with the meaning, or nil if the message has none.
func (f *Frame) Get(m Meaning) []byte {
	if i := int(f.Type.at[m]) - 1; i >= 0 {
		return f.Arg(i)
	}
	return nil
}

// Number returns the value of the first field with the meaning as a number, whether text or binary. It
// returns 0 if there is none.
func (f *Frame) Number(m Meaning) uint64 {
	i := int(f.Type.at[m]) - 1
	if i < 0 {
		return 0
	}
	if fd := f.Type.FieldAt(i); fd.Kind == Uint {
		return BigEndian(f.Arg(i))
	}
	n, _ := ParseNumber(f.Arg(i))
	return n
}

// Duration returns the value of the first field with the meaning as a duration, or 0. The field must have a
// Unit.
func (f *Frame) Duration(m Meaning) time.Duration {
	n := min(f.Number(m), 1<<32)
	if n == 0 {
		return 0
	}
	return time.Duration(n) * f.Type.FieldAt(f.Type.At(m)).Unit
}

// Blocks reports whether the reply to the message may wait for actions of other peers and thereby delay the
// replies to later requests.
func (f *Frame) Blocks() bool {
	switch f.Type.Blocks {
	case Always:
		return true
	case UnlessZero:
		v := f.Get(Timeout)
		return len(v) > 0 && string(v) != "0"
	case Attached:
		return f.Attached()
	}
	return false
}

// Attached reports whether the server reports the end of the job to the peer that submits it with this
// message.
func (f *Frame) Attached() bool {
	return !f.Type.Background && f.Number(Attachment) == 0
}

// Failed reports whether the message, which reports the end of a job, reports a failure.
func (f *Frame) Failed() bool {
	switch f.Type.Does {
	case Fail, Exception:
		return true
	}
	i := f.Type.At(Outcome)
	if i < 0 {
		return false
	}
	if f.Type.FieldAt(i).Kind == Uint {
		return f.Number(Outcome) != 0
	}
	return string(f.Arg(i)) != "success" && len(f.Arg(i)) > 0
}

// Behavior returns the type that declares the effect of the message: the type of the frame or, if that type
// represents any command, the type of its command in Protocol.Commands.
func (p *Protocol) Behavior(f *Frame) *Type {
	if f.Type == nil || !f.Type.AnyCommand {
		return f.Type
	}
	var buf [24]byte
	word := buf[:0]
	for _, c := range f.Arg(0) {
		if c == ' ' && len(word) == 0 {
			continue
		}
		if c <= ' ' || len(word) == cap(buf) {
			break
		}
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		word = append(word, c)
	}
	if t := p.Commands[string(word)]; t != nil {
		return t
	}
	return f.Type
}

// JoinTypes concatenates the groups of a protocol's message types and calls Link.
func JoinTypes(groups ...[]Type) (all []*Type) {
	for _, g := range groups {
		for i := range g {
			all = append(all, &g[i])
		}
	}
	Link(all)
	return all
}

// Link numbers the types of a protocol, resolves their Replies, and records the position of the field of each
// meaning. It panics if a reply names an unknown type.
func Link(all []*Type) {
	for i, t := range all {
		t.Index = i
		t.prepare()
		for _, name := range t.Replies {
			t.Answers = append(t.Answers, Named(all, name))
		}
	}
	for _, t := range all {
		for _, a := range t.Answers {
			a.Ordered = a.Ordered || t.Ordered
		}
	}
}

// Named returns the type with that name. It panics if there is none.
func Named(types []*Type, name string) *Type {
	for _, t := range types {
		if t.Name == name {
			return t
		}
	}
	panic("no message type " + name)
}

// Label returns what texts for users call a message of the type: the word on the wire, where the name only
// distinguishes two types with one word.
func (t *Type) Label() string {
	if t.Res != 0 && t.Word != "" && !t.Varies {
		return t.Word
	}
	return t.Name
}

// Union returns the types of two lists, each once: first those of a, then the others of b in the order of their
// contract.
func Union(a, b []*Type) []*Type {
	all := slices.Clone(a)
	b = slices.SortedFunc(slices.Values(b), func(s, t *Type) int { return s.Index - t.Index })
	for _, t := range b {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// prepare records which fields are arguments, and the position of the field of each meaning.
func (t *Type) prepare() {
	t.args = nil
	for i := range t.Fields {
		if !t.Fields[i].Derived() {
			t.args = append(t.args, i)
		}
	}
	t.once = len(t.args)
	for i := range t.Repeat {
		if !t.Repeat[i].Derived() {
			t.args = append(t.args, len(t.Fields)+i)
		}
	}
	t.plain = len(t.Repeat) == 0 && t.End == ""
	for i := range t.Fields {
		t.Fields[i].prepare(t.Sep)
		t.plain = t.plain && t.Fields[i].plain
	}
	for i := range t.Repeat {
		t.Repeat[i].prepare(t.Sep)
	}
	for i := range len(t.Fields) + len(t.Repeat) {
		if fd := t.FieldAt(i); fd != nil && t.at[fd.Means] == 0 {
			t.at[fd.Means] = uint8(i + 1)
		}
	}
	t.at[Uninterpreted] = 0
}

// checkBehavior reports the first contradiction in the declared behavior of the type.
func (t *Type) checkBehavior() error {
	answered := func(by Effect) bool {
		return slices.ContainsFunc(t.Answers, func(a *Type) bool { return a.Does == by })
	}
	switch {
	case len(t.Answers) != len(t.Replies):
		return errors.New("Link was not called")
	case len(t.Answers) > 0 && t.Req == 0:
		return errors.New("it has replies but is not a request")
	case t.Blocks != Never && len(t.Answers) == 0:
		return errors.New("it blocks but has no reply")
	case t.Does == Ask && !answered(Assign):
		return errors.New("no reply assigns a job")
	case t.Does == Submit && !t.Has(JobID) && !answered(Accept):
		return errors.New("no reply returns the ID of the job")
	case t.Does == Wait && !answered(Complete):
		return errors.New("no reply reports the end of the job")
	}
	for i, a := range t.Answers {
		if a.Res == 0 {
			return fmt.Errorf("the reply %s is not sent by the server", t.Replies[i])
		}
	}
	for _, m := range []Meaning{Delay, TimeLimit, Timeout} {
		if i := t.At(m); i >= 0 && t.FieldAt(i).Unit == 0 {
			return fmt.Errorf("the field %s has no unit", t.FieldAt(i).Name)
		}
	}
	return nil
}
