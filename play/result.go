package play

import (
	"fmt"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Result is how a performance went.
type Result struct {
	Grade    transcript.Grade // the worst of the choices that were taken
	Failure  *Failure         // nil if everything came as written
	Accepted *Accepted        // the first step that was met by a non-strict choice; nil if there is none
	Events   []Event          // the conversation as it went
	Took     time.Duration
	Names    map[string]string // what the script's names stood for
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

// Accepted is a step that was met by a non-strict choice.
type Accepted struct {
	Step   *transcript.Step
	Choice *transcript.Choice
}

// Expected names the choices of the step that are strict, as in "ERROR * * or the end of the connection".
func (a *Accepted) Expected() string {
	var all []string
	for i := range a.Step.Choices {
		if c := &a.Step.Choices[i]; c.Grade == transcript.Strict {
			all = append(all, describe(c))
		}
	}
	return strings.Join(all, " or ")
}

// Got names the choice that was met.
func (a *Accepted) Got() string { return describe(a.Choice) }

// maxDescription is the length, in bytes, of the descriptions of raw bytes.
const maxDescription = 60

// describe names a choice with its arguments.
func describe(c *transcript.Choice) string {
	switch s := c.String(); {
	case c.Verb == transcript.Raw && len(s) > maxDescription:
		return fmt.Sprintf("%s ... (%d bytes)", s[:maxDescription], len(c.Bytes))
	case c.Verb == transcript.Send || c.Verb == transcript.Raw:
		return s
	}
	return name(c)
}

// name names a choice without its arguments.
func name(c *transcript.Choice) string {
	switch c.Verb {
	case transcript.Send:
		return c.Type.Name
	case transcript.Raw:
		return fmt.Sprintf("%d raw bytes", len(c.Bytes))
	case transcript.Nothing:
		return fmt.Sprintf("silence for %v", c.For)
	case transcript.Urgent:
		return fmt.Sprintf("%d bytes of urgent data", len(c.Bytes))
	case transcript.Opens:
		return "a connection"
	}
	return "the end of the connection"
}

// Event is one thing that happened on one connection.
type Event struct {
	At    time.Duration // since the beginning
	Actor transcript.Actor
	From  codec.Side
	Verb  transcript.Verb // Send for a message, Raw for bytes that are none
	Frame codec.Frame     // of a Send, Raw or Urgent: Frame.Raw holds the bytes
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
	TooLate                   // something else came, but after the time in which this proves a fault ("until")
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

// Err returns the failure as an error, or nil.
func (r *Result) Err() error {
	if r.Failure == nil {
		return nil
	}
	return r.Failure
}

func (f *Failure) Error() string { return f.Text }
func (f *Failure) Unwrap() error { return f.Err }

// Wanted names what the step expected, as in "JOB_CREATED or ERROR".
func (f *Failure) Wanted() string { return wanted(f.Step) }

// Rule returns the codec's rule that the other side broke, or "".
func (f *Failure) Rule() codec.RuleID {
	if f.Event != nil && f.Event.Err != nil {
		return f.Event.Err.Rule
	}
	return ""
}
