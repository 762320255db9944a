package codec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// RuleID is the permanent name of a rule: "gearman.handle.length". IDs do not depend on the position of a
// rule and are never reused.
type RuleID string

// Level is the requirement level of a rule.
type Level string

const (
	Must      Level = "MUST"      // the words of the specification require it
	Should    Level = "SHOULD"    // the words of the specification recommend it
	May       Level = "MAY"       // the words of the specification permit it
	DeFacto   Level = "DE-FACTO"  // the specification does not state it, but all known servers agree on it
	Extension Level = "EXTENSION" // not in the specification, implemented by some servers
	Resource  Level = "RESOURCE"  // not in the specification: the resources of its machine that a server may use
	// what jobwire assumes where the specification is silent and servers may differ
	Interpretation Level = "INTERPRETATION"
	// not in the specification: what a client or worker does over time, such as how often it asks for jobs
	Behavioral Level = "BEHAVIOR"
)

// Levels are all levels, the most binding first.
var Levels = []Level{Must, Should, May, DeFacto, Extension, Resource, Interpretation, Behavioral}

// Rule is one requirement of a protocol: a statement of its specification in our own words. The file
// rules.txt of the protocol's package contains all rules.
type Rule struct {
	ID      RuleID
	Section string // of the specification
	Level   Level
	Text    string // what is required
	Reading string // the interpretation, if the specification is silent or contradicts itself

	Untestable string // why no test over a connection can check it; "" if a test can
}

// ParseRules parses the file rules.txt of a protocol. It panics if the file is
// malformed. A rule is a line with its ID, level and section, followed by
// indented prose:
//
//	gearman.handle.length MUST, Binary Packet
//	  A job handle is at most 64 bytes long, including its terminating NUL
//	  byte.
//	  Reading: A handle that is the last argument has no NUL byte.
//
// The text comes first. "Reading: " and "Untestable: " begin these fields, which
// are optional. Each line is indented by two spaces, and the lines of a field are
// joined by one space. Empty lines and lines that begin with # are ignored.
func ParseRules(text string) []Rule {
	var rules []Rule
	var field *string // the field that the next indented line continues
	for i, line := range strings.Split(text, "\n") {
		fail := func(expected string) {
			panic(fmt.Sprintf("rules.txt:%d: expected %s, got %q", i+1, expected, line))
		}
		prose, indented := strings.CutPrefix(line, "  ")
		switch {
		case line == "" || line[0] == '#':
		case strings.TrimSpace(prose) != prose || prose == "":
			fail("an indent of two spaces and no space at the end")
		case !indented:
			id, rest, _ := strings.Cut(line, " ")
			level, section, _ := strings.Cut(rest, ", ")
			if !slices.Contains(Levels, Level(level)) || section == "" {
				fail("ID LEVEL, SECTION")
			}
			rules = append(rules, Rule{ID: RuleID(id), Level: Level(level), Section: section})
			field = &rules[len(rules)-1].Text
		case field == nil:
			fail("ID LEVEL, SECTION")
		default:
			r := &rules[len(rules)-1]
			label, rest, _ := strings.Cut(prose, ":")
			switch label {
			case "Reading":
				field = &r.Reading
			case "Untestable":
				field = &r.Untestable
			default:
				*field = strings.TrimPrefix(*field+" "+prose, " ")
				continue
			}
			if *field != "" || rest == "" {
				fail("one Reading and one Untestable with a text")
			}
			*field = strings.TrimPrefix(rest, " ")
		}
	}
	for _, r := range rules {
		if r.Text == "" {
			panic(fmt.Sprintf("rules.txt: rule %s has no text", r.ID))
		}
	}
	return rules
}

// ErrShort means that the input ends before the message does.
var ErrShort = errors.New("message is incomplete")

// Error is a violation of the specification: the rule, the offset and the field.
type Error struct {
	Rule   RuleID
	Offset int    // of the first offending byte, from the start of the message
	Field  string // label of the field that contains the offset
	Detail string // what was expected and what was found
	Fatal  bool   // the end of the message is unknown: the bytes after it cannot be decoded
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s [%s]", e.Place(), e.Detail, e.Rule) }

// Place returns the position of the violation in the message: its byte and, if it is in a field, the name of the field.
func (e *Error) Place() string {
	if e.Field == "" {
		return fmt.Sprintf("byte %d", e.Offset)
	}
	return fmt.Sprintf("byte %d, %s", e.Offset, e.Field)
}
