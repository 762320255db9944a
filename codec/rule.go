package codec

import (
	"errors"
	"fmt"
)

// RuleID names a rule for ever: "gearman.handle.length". IDs are never
// positional and never reused.
type RuleID string

// Level is how binding a rule is.
type Level string

const (
	Must      Level = "MUST"
	Should    Level = "SHOULD"
	May       Level = "MAY"
	DeFacto   Level = "DE-FACTO"  // the document is silent, real servers agree
	Extension Level = "EXTENSION" // beyond the document, spoken by some
)

// Rule is one entry of a protocol's manifest: a statement of its document in
// our own words.
type Rule struct {
	ID      RuleID
	Section string // of the document
	Level   Level
	Text    string // what is required
	Reading string // why we read it so, where the document is silent or at odds with itself

	Untestable string // why nothing that passes over a wire can test it; "" if something can
}

// ErrShort says that the input ends before the message does.
var ErrShort = errors.New("message is incomplete")

// Error is a departure from the document: which rule, where, and in what field.
type Error struct {
	Rule   RuleID
	Offset int    // of the first offending byte, from the start of the message
	Field  string // label of the field it stands in
	Detail string // what was found and what was due
	Fatal  bool   // the message's end is unknown: nothing behind it can be read
}

func (e *Error) Error() string {
	return fmt.Sprintf("byte %d, %s: %s [%s]", e.Offset, e.Field, e.Detail, e.Rule)
}
