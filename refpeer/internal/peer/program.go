package peer

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Program contains everything that a client or worker sends, and how it handles what it receives.
type Program struct {
	Protocol *codec.Protocol
	Steps    map[string]Sequence
	Tasks    map[string]Verb                // the kinds of tasks, by their first word
	Defaults Task                           // values of options that a task does not contain; otherwise they are empty
	Refusal  func(m *codec.Message) Failure // returns the failure of a task for a message that reports no success

	// Sequential is whether each step is sent after the reply to the step before. A sequential worker does not sleep: it
	// polls its queues in turn.
	Sequential bool

	// Grace is how long a worker may go on after the end of the context, to end its job and to leave. Then its connection
	// is aborted.
	Grace time.Duration

	Own any // a pointer to the options of the protocol
	Options
	Quirks
}

// Options are what protocols leave to clients and workers.
type Options struct {
	PerTask   bool // each task of a client, and each job of a batch, has its own connection, as long as this has jobs
	Waits     bool // the client waits for the reply to a submission before the next one
	Doubles   bool // the client submits each job twice, over two connections
	Silent    bool // the driver does not report progress
	Drops     bool // the connection is closed when a job was accepted (worker: assigned), and the task starts again
	Pipelined bool // a request is sent together with the next one; the end of a worker's job with its next request

	Polls      bool          // the worker does not sleep: it asks again after a pause
	SleepLimit time.Duration // a sleeping worker asks again after this time; 0: it waits until the server wakes it
	PerJob     bool          // each job of a worker has its own connection
	PerQueue   bool          // each queue has its own connection; the worker polls them in turn
	MaxJobs    int           // how many jobs the worker has at most at a time (0: one); it ends the last one first
}

// Quirks are how a program sends and receives. The zero value has no fault.
type Quirks struct {
	// Pieces is the size in bytes of the first writes, with pauses between them; 0: one write sends everything. It is not
	// a fault.
	Pieces int

	Read func(*Conn) (*codec.Message, error) // returns the next message; nil: Read
	Edit func(*codec.Message) error          // if it is set, may change a received message

	Timeout       time.Duration // the longest wait for a message; 0: no limit
	IgnoresEOF    bool          // the end of a connection is not noticed
	ReusesFailed  bool          // a connection that has failed is used again
	ExitsOnEOF    bool          // the end of a connection ends the driver without an answer
	EOFEndsJob    bool          // the end of a connection is taken for the end of the job
	IgnoresErrors bool          // refusals are ignored
	MixesResults  bool          // the client uses each result as that of the first job that it waits for, whatever the ID
	ExtraSleeps   int           // how often a worker that was woken sleeps again before it asks for a job
}

// Task contains the values of a task and of its job, by name. These names have a meaning for all protocols:
//
//	JOB_ID, QUEUE, PAYLOAD   of the job
//	RESULT                   its result
//	QUEUES, HOW, JOBS        of a worker: its queues, what it does with a job (see Results), and how many jobs it does
//	LIMIT                    of a client: how long it waits for the end of the task, in seconds
type Task map[string]string

// Step is one message of a sequence.
type Step struct {
	// Do is the name of the message type and the arguments of the message; words may be quoted. {NAMES} are replaced by
	// values of the task. A word followed by ... stands for several arguments, which commas separate in the value.
	Do string

	If    func(Task) bool                      // whether to perform the step; nil: always
	Raw   func(t Task, b []byte) []byte        // returns the bytes to send instead of the message's; nil: no change
	Then  func(t Task, m *codec.Message) error // handles the reply; nil: the effect of the reply says what it means
	Local func(c *Conn, t Task) error          // called instead of sending a message

	// Cure contains the steps that a sequential program performs after a failure with the code For, before it sends the
	// message once more.
	For  string
	Cure Sequence
}

// Sequence contains the messages that are sent in one write, unless the program is sequential.
type Sequence []Step

// Is returns the condition that a value of the task is one of the words.
func Is(name, words string) func(Task) bool {
	return func(t Task) bool { return slices.Contains(strings.Fields(words), t[name]) }
}

// Has returns the condition that a value of the task is not empty.
func Has(name string) func(Task) bool { return func(t Task) bool { return t[name] != "" } }

// Not returns the opposite of a condition.
func Not(condition func(Task) bool) func(Task) bool {
	return func(t Task) bool { return !condition(t) }
}

// send appends the messages of a sequence about a task. It records those to which the server replies as requests of the
// call, if there is one.
func (c *Conn) send(s Sequence, t Task, call *Call) error {
	for i := range s {
		st := &s[i]
		if st.If != nil && !st.If(t) {
			continue
		}
		if st.Local != nil {
			if err := st.Local(c, t); err != nil {
				return err
			}
			continue
		}
		m, err := c.program.message(st.Do, t)
		if err != nil {
			return err
		}
		before := len(c.out)
		if err := c.append(m); err != nil {
			return err
		}
		if st.Raw != nil {
			c.out = append(c.out[:before], st.Raw(t, slices.Clone(c.out[before:]))...)
		}
		if call == nil {
			continue
		}
		if r := c.waiting.Add(m.Type); r != nil {
			r.Value = request{call, st, attached(m)}
			call.waiting++
		} else if len(m.Type.Answers) > 0 {
			return Failure{Words: []string{"other", "too many requests without a reply"}}
		}
	}
	return nil
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// message returns the message of a step about a task.
func (p *Program) message(do string, t Task) (*codec.Message, error) {
	words, err := transcript.ParseWords(do)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("%w: invalid step %q: %v", ErrUsage, do, err)
	}
	m := &codec.Message{Type: p.Protocol.TypeNamed(words[0])}
	if m.Type == nil {
		return nil, fmt.Errorf("%w: unknown message type %s", ErrUsage, words[0])
	}
	for _, w := range words[1:] {
		w, several := strings.CutSuffix(w, "...")
		value := []string{placeholder.ReplaceAllStringFunc(w, func(name string) string { return t[name[1:len(name)-1]] })}
		if several {
			value = strings.Split(value[0], ",")
		}
		for _, v := range value {
			m.Args = append(m.Args, encode(m.Type.FieldAt(len(m.Args)), v))
		}
	}
	return m, nil
}

// encode returns the value of an argument; integers are in decimal. decode is the inverse.
func encode(fd *codec.Field, value string) []byte {
	if n, err := strconv.ParseUint(value, 10, 64); err == nil && fd != nil && fd.Kind == codec.Uint {
		return binary.BigEndian.AppendUint64(nil, n)[8-fd.Width:]
	}
	return []byte(value)
}

func decode(fd *codec.Field, value []byte) string {
	if fd != nil && fd.Kind == codec.Uint {
		return strconv.FormatUint(codec.BigEndian(value), 10)
	}
	return string(value)
}

// Texts returns the arguments of a message.
func Texts(m *codec.Message) []string {
	all := make([]string, len(m.Args))
	for i, a := range m.Args {
		all[i] = decode(m.Type.FieldAt(i), a)
	}
	return all
}

// get returns the argument with the meaning, or "".
func get(m *codec.Message, means codec.Meaning) string {
	if i := m.Type.At(means); i >= 0 && i < len(m.Args) {
		return decode(m.Type.FieldAt(i), m.Args[i])
	}
	return ""
}

// learn sets the values of the job that a message names.
func (t Task) learn(m *codec.Message) {
	names := map[string]codec.Meaning{"JOB_ID": codec.JobID, "QUEUE": codec.Queue, "PAYLOAD": codec.Payload}
	for name, means := range names {
		if m.Type.Has(means) {
			t[name] = get(m, means)
		}
	}
}
