package fuzz

import (
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// The oracles.
const (
	Exit        = "exit"        // the process has ended
	Signal      = "signal"      // a signal has ended the process
	Sanitizer   = "sanitizer"   // the process has printed a sanitizer report
	LeakReport  = "leak-report" // the process has printed when it ended that memory was not freed
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
	Rule    codec.RuleID // of the codec or the model, if there is one
	Law     string       // a few words, the same for all such faults
	Text    string       // what happened, in one line
	Conn    int          // -1: none
	Step    int          // index in the input; -1: none
	Output  string       // end of the server's output
	Stack   []string     // functions in a crash report, innermost first
	Refusal string       // the unexpected reply by which the server rejected a message: its type and first field
	Signal  string       // the signal that ended the server, such as "segmentation fault"; "" if unknown
}

// same reports whether two faults are of one kind.
func (f *Fault) same(g *Fault) bool {
	return f != nil && g != nil && f.Oracle == g.Oracle && f.Rule == g.Rule && f.Law == g.Law
}

// maybeCrashed reports whether the server may have crashed.
func (f *Fault) maybeCrashed() bool { return f.Oracle == HangAll || f.Oracle == Disturbed }

// ends reports whether the process of the server has ended.
func (f *Fault) ends() bool {
	return f.Oracle == Exit || f.Oracle == Signal || f.Oracle == Sanitizer
}

func (f *Fault) String() string {
	s := f.Oracle
	if f.Rule != "" {
		s += " [" + string(f.Rule) + "]"
	}
	return fmt.Sprintf("%s: %s", s, f.Text)
}

// Event is one event in an execution.
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
	Ahead   bool         // sent together with the message before it
	Err     *codec.Error // why the bytes are illegal
}

// Record is the record of an execution.
type Record struct {
	Events         []Event
	Fault          *Fault
	Clean          bool // according to the model, the input has left nothing
	OrderUncertain bool // the order of the events depends on time
	Vague          bool // the model does not know, because illegal bytes were sent

	features []uint64 // coverage, which does not depend on time
	arena    []byte   // memory that contains the bytes of the events
	start    time.Time
}

func (r *Record) reset() {
	clear(r.Events) // the events refer to arenas
	if cap(r.arena) > maxIdle {
		r.arena = nil
	}
	r.Events, r.Fault, r.Clean, r.Vague, r.features, r.arena = r.Events[:0], nil, false, false, r.features[:0], r.arena[:0]
	r.start = time.Now()
}

// keep copies bytes into the record.
func (r *Record) keep(b []byte) []byte {
	if cap(r.arena)-len(r.arena) < len(b) {
		r.arena = make([]byte, 0, max(64<<10, len(b))) // the events keep the old one
	}
	at := len(r.arena)
	r.arena = append(r.arena, b...)
	return r.arena[at:len(r.arena):len(r.arena)]
}

func (r *Record) add(e Event) {
	e.At = time.Since(r.start)
	r.Events = append(r.Events, e)
}

// asSent returns the events in the order in which they happened. Messages that were sent ahead are recorded later.
func (r *Record) asSent() []Event {
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

// clone returns a copy that stays valid after the next execution.
func (r *Record) clone() *Record {
	c := &Record{Events: slices.Clone(r.Events), Fault: r.Fault, Clean: r.Clean, features: slices.Clone(r.features), start: r.start}
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
