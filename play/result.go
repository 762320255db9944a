package play

import (
	"fmt"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Result is the result of a run.
type Result struct {
	Grade    transcript.Grade // the worst grade of the accepted choices
	Failure  *Failure         // nil if the run passed
	Accepted *Accepted        // the first step that matched a non-strict choice; nil if there is none
	Events   []Event          // the actual conversation
	Took     time.Duration
	Names    map[string]string // the values of the script's names
}

// Messages returns the number of messages in the conversation, including invalid ones.
func (r *Result) Messages() int {
	n := 0
	for i := range r.Events {
		if r.Events[i].Verb <= transcript.Raw {
			n++
		}
	}
	return n
}

// Accepted is a step that matched a non-strict choice.
type Accepted struct {
	Step   *transcript.Step
	Choice *transcript.Choice
}

// Expected describes the strict choices of the step, as in "ERROR * * or the end of the connection".
func (a *Accepted) Expected() string {
	var all []string
	for i := range a.Step.Choices {
		if c := &a.Step.Choices[i]; c.Grade == transcript.Strict {
			all = append(all, describe(c))
		}
	}
	return strings.Join(all, " or ")
}

// Got describes the choice that matched.
func (a *Accepted) Got() string { return describe(a.Choice) }

// maxDescription is the maximum length, in bytes, of a description of raw bytes.
const maxDescription = 60

// describe describes a choice with its arguments.
func describe(c *transcript.Choice) string {
	switch s := c.String(); {
	case c.Verb == transcript.Raw && len(s) > maxDescription:
		return fmt.Sprintf("%s ... (%d bytes)", s[:maxDescription], len(c.Bytes))
	case c.Verb == transcript.Send || c.Verb == transcript.Raw:
		return s
	}
	return name(c)
}

// name describes a choice without its arguments.
func name(c *transcript.Choice) string {
	switch c.Verb {
	case transcript.Send:
		return c.Type.Label()
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

// Event is one event on one connection.
type Event struct {
	At    time.Duration // since the start of the run
	Actor transcript.Actor
	From  codec.Side
	Verb  transcript.Verb // Send for a message, Raw for other bytes
	Frame codec.Frame     // of a Send, Raw or Urgent; Frame.Raw contains the bytes
	Cut   int             // how many bytes at the end of the message Frame does not contain
	Err   *codec.Error    // why the bytes are not a valid message
	For   time.Duration   // duration of a Nothing
	Step  int             // index of its step; -1 if it has none
}

// Reason is the kind of a failure.
type Reason uint8

const (
	Mismatched  Reason = iota // another message was received
	TooEarly                  // the message was received before its time
	TimedOut                  // no message was received in time
	Broken                    // the received bytes are not a valid message
	Ended                     // the connection ended
	CannotSend                // the step could not be sent
	Unreachable               // the actor could not connect
	Unsupported               // the transport of the connection does not have what the step does
	TooLate                   // another message was received, but after the time in which this proves a fault ("until")
)

// Failure is the step at which a run failed, with the reason.
type Failure struct {
	Reason Reason
	Step   *transcript.Step
	Index  int                  // of the step
	Event  *Event               // what was received instead; nil if nothing was
	Diff   *transcript.Mismatch // of a Mismatched: the difference from the nearest choice
	Waited time.Duration        // the time limit that was not met; 0 if the failure is not about time
	Text   string               // one sentence: what was expected and what was received
	Err    error                // the cause, if there is one
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

// Wanted describes what the step expected, as in "JOB_CREATED or ERROR".
func (f *Failure) Wanted() string { return wanted(f.Step) }

// Rule returns the ID of the codec rule that the other side violated, or "".
func (f *Failure) Rule() codec.RuleID {
	if f.Event != nil && f.Event.Err != nil {
		return f.Event.Err.Rule
	}
	return ""
}
