package transcript

import (
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
)

// Script is one transcript.
type Script struct {
	Protocol *codec.Protocol
	File     string
	Line     int // of its first line
	Meta     []Meta
	Params   []Param  // of an instance of a case
	Setups   []string // the names of the setups that it uses
	Steps    []Step

	again func(Ways) (*Script, error) // reads it again with other ways to its setups
}

// Meta is an "@key value" line.
type Meta struct {
	Key, Value string
	Line, Col  int // of the key
}

// Value returns the value of the last @-line with that key, so that a script's
// own line counts more than its file's; "" if there is none.
func (s *Script) Value(key string) string {
	for i := len(s.Meta) - 1; i >= 0; i-- {
		if s.Meta[i].Key == key {
			return s.Meta[i].Value
		}
	}
	return ""
}

// Actor is a connecting end, by the name that the transcript gives it. The
// server needs none: it is the other end of every step.
type Actor struct {
	Name string     // "Worker 2"
	Role codec.Role // one bit
}

// Step is one thing that one end of a connection does.
type Step struct {
	Line   int        // of its first line
	Source string     // as it was written, without "or" lines; for reports
	Setup  string     // the setup that it is part of; "" if none
	Peer   Actor      // whose connection
	From   codec.Side // which end of it acts

	// Choices are what may happen, best first. A step to be performed has one;
	// the end that watches accepts any of them.
	Choices []Choice

	Within time.Duration // deadline; 0 is the performer's default
	After  time.Duration // earliest time, from the end of the step before or from the sending of Of
	Until  time.Duration // how long after the sending of Of another message than the expected one proves a fault; 0 is without a limit
	Of     *codec.Type   // of a message that is expected: the last message of this type before it, which starts a time limit; nil if none
	Past   []*codec.Type // may come before it and are passed over
}

// Verb is what a step does.
type Verb uint8

const (
	Send         Verb = iota // a message
	Raw                      // bare bytes
	Nothing                  // silence
	Opens                    // connects
	Closes                   // ends the connection
	HalfCloses               // ends its direction
	Resets                   // breaks off
	Urgent                   // bytes as urgent data of TCP
	StopsReading             // reads nothing more from the connection
)

// Grade is how good a choice is.
type Grade uint8

const (
	Strict Grade = iota // as it should be
	Lax                 // tolerable
)

// Choice is one alternative of a step.
type Choice struct {
	Line      int
	Grade     Grade
	Verb      Verb
	Type      *codec.Type   // of a Send
	Args      []Arg         // of a Send
	Unchecked bool          // of a Send
	CRLF      bool          // of a Send
	Bytes     []byte        // of a Raw or Urgent; of a Send written in byte form, the message as it was recorded
	For       time.Duration // of a Nothing
}

// Open reports whether a message leaves a value open, or how many there are.
func (c *Choice) Open() bool {
	return slices.ContainsFunc(c.Args, func(a Arg) bool { return a.Kind == Any || a.Kind == Version || a.Kind == Rest })
}

// ArgKind tells the forms of an argument apart.
type ArgKind uint8

const (
	Literal ArgKind = iota
	Any             // *
	Version         // *version
	Name            // $name
	Now             // $now+2
	Rest            // ...
)

// Arg is one argument of a step.
type Arg struct {
	Kind      ArgKind
	Value     []byte // of a Literal
	Name      string // of a Name
	Delta     int64  // of a Now, in seconds
	Line, Col int
}

// Error is a fault in a transcript's text.
type Error struct {
	File      string
	Line, Col int // from 1; a column counts bytes
	Msg       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}
