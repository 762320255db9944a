package play

import (
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Result is how a performance went.
type Result struct {
	Grade   transcript.Grade // the worst of the choices that were taken
	Failure *Failure         // nil if everything came as written
	Events  []Event          // the conversation as it went
	Took    time.Duration
	Names   map[string]string // what the script's names stood for
}

// Messages counts the messages of the conversation, broken ones too.
func (r *Result) Messages() int {
	n := 0
	for i := range r.Events {
		if r.Events[i].Verb <= transcript.Raw {
			n++
		}
	}
	return n
}

// Event is one thing that happened on one connection.
type Event struct {
	At    time.Duration // since the beginning
	Actor transcript.Actor
	From  codec.Side
	Verb  transcript.Verb // Send for a message, Raw for bytes that are none
	Frame codec.Frame     // of a Send or Raw: Frame.Raw holds the bytes
	Err   *codec.Error    // why the bytes are no message
	For   time.Duration   // of a Nothing
	Step  int             // index of the step it belongs to; -1 if the transcript does not know of it
}

// Reason says how a performance fell short.
type Reason uint8

const (
	Mismatched  Reason = iota // something else came
	TooEarly                  // it came before its time
	TimedOut                  // nothing came
	Broken                    // what came is no message
	Ended                     // the connection ended
	CannotSend                // the step could not be sent
	Unreachable               // there was no connection
)

// Failure is the step at which a performance fell short, and why.
type Failure struct {
	Reason Reason
	Step   *transcript.Step
	Index  int                  // of the step
	Event  *Event               // what came instead; nil if nothing did
	Diff   *transcript.Mismatch // of a Mismatched: what differs from the nearest choice
	Waited time.Duration        // the time that it took too long or too little of; 0 where no time counts
	Text   string               // one sentence: what was due and what came
	Err    error                // the cause, where there is one
}

func (f *Failure) Error() string { return f.Text }
func (f *Failure) Unwrap() error { return f.Err }

// Rule returns the codec's rule that the other side broke, or "".
func (f *Failure) Rule() codec.RuleID {
	if f.Event != nil && f.Event.Err != nil {
		return f.Event.Err.Rule
	}
	return ""
}
