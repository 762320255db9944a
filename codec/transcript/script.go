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
	Params   []Param  // the values of the parameters, for an instance of a case
	Setups   []string // the names of the setups that it uses, also in other setups
	Checks   []string // the names of the setups that it uses only with "check"
	Tests    []Tests  // the @tests lines
	Steps    []Step

	again func(Ways) (*Script, error) // parses the script again with other ways of its setups
}

// Tests is an @tests line: it names the rules that the steps below it test.
type Tests struct {
	Rules     []codec.RuleID
	Line, Col int // of the first rule
}

// Meta is an "@key value" line.
type Meta struct {
	Key, Value string
	Line, Col  int // of the key
}

// Value returns the value of the last @-line with that key, or "" if there is none. A line of the script
// therefore overrides a line of the file.
func (s *Script) Value(key string) string {
	for i := len(s.Meta) - 1; i >= 0; i-- {
		if s.Meta[i].Key == key {
			return s.Meta[i].Value
		}
	}
	return ""
}

// Actor is a connecting end, by its name in the transcript. The server is not an Actor: it is the other end
// of every step.
type Actor struct {
	Name string     // "Worker 2"
	Role codec.Role // one bit
}

// Actors returns an actor for each connection. Its role is the one with most messages in counts, which has the number
// of messages for each connection and role. Later actors of a role have numbers from 2.
func Actors(p *codec.Protocol, counts [][]int) []Actor {
	actors, number := make([]Actor, len(counts)), map[int]int{}
	for i, n := range counts {
		role := slices.Index(n, slices.Max(n))
		actors[i] = Actor{Name: p.Roles[role], Role: 1 << role}
		if number[role]++; number[role] > 1 {
			actors[i].Name += fmt.Sprintf(" %d", number[role])
		}
	}
	return actors
}

// Step is one action of one end of a connection.
type Step struct {
	Line   int        // of its first line
	Source string     // as written, without "or" lines; for reports
	Setup  string     // the setup that contains the step, or ""
	Peer   Actor      // the actor whose connection it is
	From   codec.Side // the end that acts

	Tests []codec.RuleID // the rules of the last @tests line above the step; nil if there is none

	// Choices are the alternatives, the preferred one first. A step to be performed has one; an expectation accepts any
	// of them.
	Choices []Choice

	Within time.Duration // deadline; 0: the default of the performer
	After  time.Duration // earliest time, measured from the end of the previous step or the sending of Of
	Until  time.Duration // time after the sending of Of within which an unexpected message proves a fault; 0: no limit
	// for an expected message: the type of the last message before it that starts a time limit, or nil
	Since   *codec.Type
	Ignored []*codec.Type // types that may come before the expected message and are ignored

	Sample Sample // the lines below "measure NAME at SIZE:" that contain the step
}

// Sample is a part of a script whose cost for the server is compared with that of others of the same name.
type Sample struct {
	Number int    // from 1 in each source; 0: none
	Name   string // what is measured
	Size   int    // how many jobs, queues or connections the server has
}

// Verb is the action of a step.
type Verb uint8

const (
	Send         Verb = iota // a message
	Raw                      // bare bytes
	Nothing                  // silence
	Opens                    // connects
	Closes                   // ends the connection
	HalfCloses               // ends its own direction of the connection
	Resets                   // resets the connection
	Urgent                   // bytes as urgent data of TCP
	StopsReading             // reads nothing more from the connection
)

// Grade is how well a choice meets the specification.
type Grade uint8

const (
	Strict    Grade = iota // conforms to the specification
	NonStrict              // accepted, but not preferred
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
	Bytes     []byte        // bytes of a Raw or Urgent; for a Send in byte form, the bytes of the recorded message
	For       time.Duration // of a Nothing
}

// Open reports whether a message has an argument without a fixed value, or a variable number of arguments.
func (c *Choice) Open() bool {
	return slices.ContainsFunc(c.Args, func(a Arg) bool { return a.Kind == Any || a.Kind == Version || a.Kind == Rest })
}

// ArgKind is the form of an argument.
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

// Error is an error in the text of a transcript.
type Error struct {
	File      string
	Line, Col int // from 1; a column counts bytes
	Msg       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}
