package fuzz

import (
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// The oracles, by what they watch.
const (
	Exit        = "exit"        // the process has ended
	Signal      = "signal"      // by a signal
	Sanitizer   = "sanitizer"   // it has printed a report of undefined behaviour
	HangConn    = "hang"        // one connection is not answered any more
	HangAll     = "server-hang" // nobody is
	Processor   = "spin"        // it works though there is nothing to do
	Memory      = "memory"      // memory grows and stays
	Descriptors = "descriptors" // descriptors grow and stay
	Framing     = "rule"        // a reply breaks a rule of the codec
	Law         = "law"         // what came, or did not come, breaks a law of the model
	Disclosure  = "disclosure"  // a reply holds bytes that nobody has sent
	Disturbed   = "disturbed"   // somebody else's connection was
)

// Fault is what an oracle objects to.
type Fault struct {
	Oracle string
	Rule   codec.RuleID // of the codec or the model, if there is one
	Law    string       // in a few words that are always the same for such a fault
	Text   string       // what happened, in one line
	Conn   int          // -1 is none in particular
	Step   int          // of the conversation, -1 is none in particular
	Words  string       // the server's last ones
}

// same reports whether two faults are of one kind.
func (f *Fault) same(g *Fault) bool {
	return f != nil && g != nil && f.Oracle == g.Oracle && f.Rule == g.Rule && f.Law == g.Law
}

// grave reports whether the server may have ended.
func (f *Fault) grave() bool { return f.Oracle == HangAll || f.Oracle == Disturbed }

// ends reports whether it has to do with the end of the server's process.
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

// Event is one thing that happened in a performance.
type Event struct {
	At       time.Duration
	Conn     int
	From     codec.Side
	Verb     transcript.Verb
	Type     *codec.Type // of a Send
	Raw      []byte      // of a Send or Raw
	Args     [][]byte    // of a Send that the server sent
	Step     int         // index of the step that it belongs to, or came behind
	Sentinel bool
	Ahead    bool         // it went with what was sent before it on the connection
	Err      *codec.Error // why the server's bytes are no message
}

// Record is a performance of a conversation.
type Record struct {
	Events []Event
	Fault  *Fault
	Clean  bool // the model says that nothing is left of it
	Vague  bool // bytes were sent that are no message, so that it cannot say

	edges []uint64 // what it went through, for feedback
	arena []byte   // of the events' bytes
	start time.Time
}

func (r *Record) reset() {
	clear(r.Events) // they keep arenas
	if cap(r.arena) > maxIdle {
		r.arena = nil
	}
	r.Events, r.Fault, r.Clean, r.Vague, r.edges, r.arena = r.Events[:0], nil, false, false, r.edges[:0], r.arena[:0]
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

// asSent returns the events in the order in which they happened: while a conversation is held, what
// was sent ahead is noted where its turn has come.
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

// clone returns a copy that the next performance leaves alone.
func (r *Record) clone() *Record {
	c := &Record{Events: slices.Clone(r.Events), Fault: r.Fault, Clean: r.Clean, start: r.start}
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
