// Package casedata describes test cases as data that a program in any language can run: the steps of each case, the
// bytes to send, and the messages to expect. docs/json.md describes the meaning of the data.
package casedata

import (
	"cmp"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
)

// Case is one instance of a case.
type Case struct {
	ID             string            `json:"id"`
	Rules          []codec.RuleID    `json:"rules"`
	Level          codec.Level       `json:"level"`
	About          string            `json:"about"`
	Section        string            `json:"section"`
	Interpretation string            `json:"interpretation,omitempty"`
	Parameters     map[string]string `json:"parameters,omitempty"` // name to value, as in ID
	Connections    []string          `json:"connections"`          // names of the clients and workers
	Needs          []Need            `json:"needs,omitempty"`      // besides connections
	Capabilities   []string          `json:"capabilities,omitempty"`
	Steps          []Step            `json:"steps"`
}

// Need is something that a case needs besides connections to a server.
type Need string

// What a case may need.
const (
	NewServer Need = "new-server" // a server that no other case uses
	Process   Need = "process"    // the process of the server: its memory, its processor time or its descriptors
	Program   Need = "program"    // a client or worker under test in place of the connections
	Codec     Need = "codec"      // the codec of jobwire, because the parts cannot describe a message of a step
)

// Step is one action of one end of a connection.
type Step struct {
	Connection string         `json:"connection"`
	Action     string         `json:"action"` // "expect", or what the client or worker does
	Text       string         `json:"text"`   // in the notation of transcripts
	Setup      string         `json:"setup,omitempty"`
	Rules      []codec.RuleID `json:"rules,omitempty"`   // rules that the step tests; none: the first rule of the case
	Level      codec.Level    `json:"level,omitempty"`   // of the first of Rules, if it is not that of the case
	Message    []*Part        `json:"message,omitempty"` // to send

	// Of "expect":
	Alternatives []Alternative `json:"alternatives,omitempty"` // the preferred one first
	Ignore       [][]*Part     `json:"ignore,omitempty"`       // messages that may come before
	Since        *int          `json:"since,omitempty"`        // index of the step from whose end After and Until count

	Within float64 `json:"within,omitempty"` // seconds
	After  float64 `json:"after,omitempty"`
	Until  float64 `json:"until,omitempty"`
}

// Alternative is something that the server may do in a step.
type Alternative struct {
	Event     string  `json:"event"` // what the server does
	Message   []*Part `json:"message,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"` // of silence
	NonStrict bool    `json:"non_strict,omitempty"`
}

// The actions of clients and workers, by verb.
var actions = map[transcript.Verb]string{transcript.Send: "send", transcript.Raw: "send", transcript.Opens: "connect",
	transcript.Closes: "close", transcript.HalfCloses: "half-close", transcript.Resets: "reset",
	transcript.Urgent: "send-urgent", transcript.StopsReading: "stop-reading"}

// The events of servers, by verb. A server that closes its direction of the connection only is not distinguished from
// one that closes the connection.
var events = map[transcript.Verb]string{transcript.Send: "sends", transcript.Raw: "sends",
	transcript.Nothing: "silent", transcript.Closes: "closes", transcript.HalfCloses: "closes",
	transcript.Resets: "resets"}

// Cases returns the data of all cases of a suite.
func Cases(s *conform.Suite) []Case {
	all, e := make([]Case, 0, len(s.Cases)), newEncoder(s.Protocol)
	for _, c := range s.Cases {
		all = append(all, e.newCase(c))
	}
	return all
}

func (e *encoder) newCase(c *conform.Case) Case {
	d := Case{ID: c.ID, Rules: c.Rules, Level: c.Level, About: c.About, Section: c.Section,
		Interpretation: c.Interpretation, Capabilities: c.Needs, Connections: []string{}, Steps: []Step{}}
	for _, p := range c.Params {
		if d.Parameters == nil {
			d.Parameters = map[string]string{}
		}
		d.Parameters[p.Name] = p.Label
	}
	if c.OwnServer {
		d.Needs = append(d.Needs, NewServer)
	}
	if len(c.Watch) > 0 || c.Descriptors > 0 {
		d.Needs = append(d.Needs, Process)
	}
	if c.Program != "" {
		d.Needs = append(d.Needs, Program)
	}
	whole := true
	for i := range c.Script.Steps {
		st, ok := e.step(c.Script.Steps, i)
		whole = whole && ok
		if level := levelOf(c, &st); level != c.Level {
			st.Level = level
		}
		d.Steps = append(d.Steps, st)
		if !slices.Contains(d.Connections, st.Connection) {
			d.Connections = append(d.Connections, st.Connection)
		}
	}
	if !whole {
		d.Needs = append(d.Needs, Codec)
	}
	return d
}

// levelOf returns the level of the rule that a step tests: the first rule of the step, or else of the case.
func levelOf(c *conform.Case, st *Step) codec.Level {
	if len(st.Rules) == 0 || st.Rules[0] == c.Rules[0] {
		return c.Level
	}
	return c.Script.Protocol.Rule(st.Rules[0]).Level
}

// step returns the data of the i-th step. ok is false if the parts cannot describe a message of the step.
func (e *encoder) step(steps []transcript.Step, i int) (d Step, ok bool) {
	st := &steps[i]
	first := &st.Choices[0]
	d = Step{Connection: st.Peer.Name, Action: "expect", Text: st.Source, Setup: st.Setup, Rules: st.Tests,
		Within: st.Within.Seconds(), After: st.After.Seconds(), Until: st.Until.Seconds()}
	ok = true
	if st.From == codec.Peer && first.Verb != transcript.Nothing {
		d.Action = actions[first.Verb]
		d.Message, ok = e.message(codec.Peer, first)
		return d, ok
	}
	if st.Since != nil {
		for k := range steps[:i] {
			if steps[k].From == codec.Peer && steps[k].Choices[0].Type == st.Since {
				d.Since = &k
			}
		}
	}
	for _, one := range st.Choices {
		for _, c := range counted(one) {
			parts, described := e.message(st.From, &c)
			ok = ok && described
			d.Alternatives = append(d.Alternatives, Alternative{Event: events[c.Verb], Message: parts,
				Seconds: c.For.Seconds(), NonStrict: c.Grade == transcript.NonStrict})
		}
	}
	for _, t := range st.Ignored {
		strict := func(c transcript.Choice) bool { return c.Type == t && c.Grade == transcript.Strict }
		if slices.ContainsFunc(st.Choices, strict) {
			continue // play.Peers compares such a message
		}
		for _, c := range counted(transcript.Choice{Type: t, Args: []transcript.Arg{{Kind: transcript.Rest}}}) {
			if parts, described := e.message(st.From, &c); described {
				d.Ignore = append(d.Ignore, parts)
			} else {
				ok = false
			}
		}
	}
	return d, ok
}

// counted returns a choice for each number of arguments that "..." at the end of the choice can stand for. If the
// number has no limit, or the choice does not end with "...", the result is the choice itself.
func counted(c transcript.Choice) (all []transcript.Choice) {
	given := len(c.Args) - 1
	if c.Type == nil || given < 0 || c.Args[given].Kind != transcript.Rest {
		return []transcript.Choice{c}
	}
	least, once, group := c.Type.Arity()
	if group > 0 {
		return []transcript.Choice{c}
	}
	for n := max(given, least); n <= once; n++ {
		one := c
		one.Args = slices.Clone(c.Args[:given])
		for len(one.Args) < n {
			one.Args = append(one.Args, transcript.Arg{Kind: transcript.Any})
		}
		all = append(all, one)
	}
	return all
}

// Protocol is the protocol of the cases.
type Protocol struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Port   int    `json:"port"`
	Server string `json:"server"` // the name of the server in the notation of transcripts
}

// ProtocolOf returns the data of a protocol.
func ProtocolOf(p *codec.Protocol) Protocol {
	return Protocol{Name: p.Name, Title: cmp.Or(p.Title, p.Name), Port: p.DefaultPort, Server: p.ServerName}
}
