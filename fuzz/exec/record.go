package exec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
)

// The oracles, each with the failure that it reports.
const (
	Exit        = "exit"        // the process has ended
	Signal      = "signal"      // a signal has ended the process
	Sanitizer   = "sanitizer"   // the process has printed a sanitizer report
	LeakReport  = "leak-report" // at its end, the process has printed a report about memory that was not freed
	HangConn    = "hang"        // no reply on one connection
	HangAll     = "server-hang" // no reply on any connection
	Processor   = "spin"        // the process is busy without requests
	Memory      = "memory"      // memory leaks
	Descriptors = "descriptors" // file descriptors leak
	Framing     = "rule"        // a reply breaks a rule of the codec
	Law         = "law"         // a message or its absence contradicts the model
	Disclosure  = "disclosure"  // a reply contains data that no peer has sent
	Disturbed   = "disturbed"   // the server closed the connection of another client
)

// Fault is a failure that an oracle reports.
type Fault struct {
	Oracle  string
	Rule    codec.RuleID // the broken rule of the protocol, or ""
	Law     string       // the kind of failure in a few words, or the bucket of a crash
	Text    string       // the failure in one line
	Conn    int          // -1: none
	Step    int          // index in the input; -1: none
	Output  string       // end of the server's output
	Stack   []string     // functions in a crash report, innermost first
	Refusal string       // the unexpected reply by which the server rejected a message: its type and first field
	Signal  string       // the signal that ended the server, such as "segmentation fault"; "" if unknown
	Resync  bool         // the server has read the bytes after an illegal message as others, against Rule
	Proved  bool         // Disclosure: there is evidence that the data comes from another client or from memory
	Got     string       // the effect of the wrong message of the server; "" if the fault is not about a message
	Timed   bool         // the server should have acted because a time has come, not because of a message
	State   uint64       // the state of the connection in the model when the fault was observed: see model.Model.State

	Unsent Unsent // data in the message that shows the fault
}

// Unsent is data that no peer has sent, in a message of the server that should only contain data of peers.
type Unsent struct {
	Data []byte // nil: none
	Does string // the effect of the message
	Text string // what is wrong with the message

	Barrier bool // the message is the reply to a barrier, whose data differs in each execution
}

// Same reports whether two faults have the same oracle, rule and kind of failure, and the same kind of wrong message.
// It returns false if one of them is nil. What a server does with bytes that it should have skipped depends on them, so
// only the rule counts then.
func (f *Fault) Same(g *Fault) bool {
	if f != nil && g != nil && f.Resync && g.Resync {
		return f.Rule == g.Rule
	}
	return f != nil && g != nil && f.Oracle == g.Oracle && f.Rule == g.Rule && f.Law == g.Law && f.Got == g.Got
}

// MaybeCrashed reports whether a crash of the server may be the cause of the fault.
func (f *Fault) MaybeCrashed() bool { return f.Oracle == HangAll || f.Oracle == Disturbed }

// Ends reports whether the fault is a crash of the server or a sanitizer report.
func (f *Fault) Ends() bool {
	return f.Oracle == Exit || f.Oracle == Signal || f.Oracle == Sanitizer
}

func (f *Fault) String() string {
	s := f.Oracle
	if f.Rule != "" {
		s += " [" + string(f.Rule) + "]"
	}
	return fmt.Sprintf("%s: %s", s, f.Text)
}

// FreesNames reports whether another input may use the names of the input in again: the model knows that no job is
// left, and the state of the queues is as before.
func (r *Record) FreesNames(p *codec.Protocol, in *input.Input) bool {
	return r.Clean && !r.OrderUncertain && r.Fault == nil && input.TraitsOf(p).Reuse && !input.ChangesQueues(in)
}

// Event is one message, action or disconnect in an execution.
type Event struct {
	At      time.Duration
	Conn    int
	From    codec.Side
	Verb    transcript.Verb
	Type    *codec.Type // if Verb is Send
	Raw     []byte      // if Verb is Send or Raw
	Args    [][]byte    // if Verb is Send and the server sent it
	Step    int         // index of the step to which it belongs
	Barrier bool
	Ahead   bool         // sent in one write with the previous message of the connection
	Err     *codec.Error // the reason why the bytes are illegal, or nil
}

// Record contains the events and the result of one execution.
type Record struct {
	Events         []Event
	Fault          *Fault
	Clean          bool // according to the model, the input has left nothing on the server
	OrderUncertain bool // the order of the events depends on time
	// the model does not know whether the input has left something, because there is no model or illegal bytes were sent
	Vague bool

	Features []uint64 // coverage, which does not depend on time
	arena    []byte   // memory that contains the bytes of the events
	start    time.Time
}

// reset prepares the record for another execution and keeps its memory, unless an input has made the arena larger than
// maxIdle bytes.
func (r *Record) reset() {
	clear(r.Events) // release the memory to which the events refer
	if cap(r.arena) > maxIdle {
		r.arena = nil
	}
	r.Events, r.Fault, r.Clean, r.Vague, r.Features, r.arena = r.Events[:0], nil, false, false, r.Features[:0], r.arena[:0]
	r.start = time.Now()
}

// keep returns a copy of b that is valid until the record is reset.
func (r *Record) keep(b []byte) []byte {
	if cap(r.arena)-len(r.arena) < len(b) {
		r.arena = make([]byte, 0, max(64<<10, len(b))) // earlier events still refer to the old memory
	}
	at := len(r.arena)
	r.arena = append(r.arena, b...)
	return r.arena[at:len(r.arena):len(r.arena)]
}

func (r *Record) add(e Event) {
	e.At = time.Since(r.start)
	r.Events = append(r.Events, e)
}

// AddChosen passes the values that the server chose in the replies to an input to a generator. certain is as for
// [input.Generator.AddChosen].
func (r *Record) AddChosen(g *input.Generator, in *input.Input, certain bool) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.From != codec.Server || e.Step < 0 || e.Step >= len(in.Steps) || in.Steps[e.Step].Type == nil {
			continue
		}
		for k := range e.Args {
			if f := input.AssignedField(e.Type, k); f != nil {
				g.AddChosen(in.Steps[e.Step].Type, f, e.Args[k], certain)
			}
		}
	}
}

// AsSent returns the events in the order in which they happened. The executor records messages that pipeline has sent
// later than it sent them.
func (r *Record) AsSent() []Event {
	all := make([]Event, 0, len(r.Events))
	for _, e := range r.Events {
		at := len(all)
		for k := len(all) - 1; e.Ahead && k >= 0; k-- {
			if o := &all[k]; o.Conn == e.Conn && o.From == codec.Peer {
				at, e.At = k+1, o.At
				break
			}
		}
		all = slices.Insert(all, at, e)
	}
	return all
}

// Clone returns a copy that stays valid after the next execution.
func (r *Record) Clone() *Record {
	c := &Record{Events: slices.Clone(r.Events), Fault: r.Fault, Clean: r.Clean, Features: slices.Clone(r.Features),
		start: r.start}
	for i := range c.Events {
		e := &c.Events[i]
		e.Raw = slices.Clone(e.Raw)
		if e.Args != nil {
			args := make([][]byte, len(e.Args))
			for k, a := range e.Args {
				args[k] = slices.Clone(a)
			}
			e.Args = args
		}
	}
	return c
}

// Outcome returns the value of Entry.Events for a record.
func (r *Record) Outcome() string {
	if r.OrderUncertain {
		return ""
	}
	var b strings.Builder
	conns := 0
	for i := range r.Events {
		if r.Events[i].Conn != canaryID {
			conns = max(conns, r.Events[i].Conn+1)
		}
	}
	for conn := range conns {
		if conn > 0 {
			b.WriteString("; ")
		}
		for i := range r.Events {
			e := &r.Events[i]
			switch {
			case e.Conn != conn || e.From != codec.Server || e.Barrier:
				continue
			case e.Verb == transcript.Send:
				b.WriteString(e.Type.Name)
			default:
				b.WriteString(e.Verb.String())
			}
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String())
}
