package judge

import (
	"strings"

	"jobwire/codec"
)

// Coverage contains the number of times that a rule applied to messages of one side.
type Coverage struct {
	Rule             *codec.Rule
	Side             codec.Side
	Roles            codec.Role // roles that must follow the rule; 0: all
	Passed, Violated int
	// by role: number of messages to which the rule applied and that a client or worker in this role may have sent
	// (messages to the server) or received (messages of the server)
	ByRole [8]int
}

// Applied returns the number of messages to which the rule applied.
func (c *Coverage) Applied() int { return c.Passed + c.Violated }

// Add adds the counts of other traffic.
func (c *Coverage) Add(o *Coverage) {
	c.Roles |= o.Roles
	c.Passed += o.Passed
	c.Violated += o.Violated
	for i := range c.ByRole {
		c.ByRole[i] += o.ByRole[i]
	}
}

// add counts messages that passed or violated the rule. roles are the roles that the client or worker of these messages
// may have.
func (c *Coverage) add(roles codec.Role, passed, violated int) {
	c.Roles |= roles
	c.Passed += passed
	c.Violated += violated
	for i := range c.ByRole {
		if roles&(1<<i) != 0 {
			c.ByRole[i] += passed + violated
		}
	}
}

// subject is a rule together with the side that must follow it.
type subject struct {
	rule codec.RuleID
	side codec.Side
}

// coverage counts the messages to which each rule applied.
type coverage struct {
	rules map[subject]*Coverage // rules of checkers, and violated rules of the message format
	forms [2][]form             // by sender and message type
}

// form counts the messages of a type and their fields.
type form struct {
	seen   int
	fields []*codec.Field
	given  []int // by field: number of messages that contained the field
	filled []int // by field: number of messages in which the field was not empty
}

// newCoverage returns coverage without counts, and with a form for each message type and each sender.
func newCoverage(p *codec.Protocol) coverage {
	c := coverage{rules: map[subject]*Coverage{}}
	for side := range c.forms {
		c.forms[side] = make([]form, len(p.Types))
		for _, t := range p.Types {
			n := &c.forms[side][t.Index]
			for _, list := range [...][]codec.Field{t.Fields, t.Repeat} {
				for i := range list {
					n.fields = append(n.fields, &list[i])
				}
			}
			n.given, n.filled = make([]int, len(n.fields)), make([]int, len(n.fields))
		}
	}
	return c
}

// Declare records the rules that a checker checks for a side, so that Rules includes them even if they never apply.
// rules contains the IDs, separated by spaces, without the name of the protocol. roles are the roles of clients and
// workers that must follow the rules.
func (m *Monitor) Declare(side codec.Side, roles codec.Role, rules string) {
	for id := range strings.FieldsSeq(rules) {
		m.rule(subject{codec.RuleID(m.protocol.Name + "." + id), side}).Roles |= roles
	}
}

// rule returns the counts of a rule for a side. It creates them if there are none.
func (c *coverage) rule(s subject) *Coverage {
	n := c.rules[s]
	if n == nil {
		n = &Coverage{Side: s.side}
		c.rules[s] = n
	}
	return n
}

// count counts that the current message passed (ok is true) or violated a rule. It does nothing unless Counts is set.
func (m *Monitor) count(rule codec.RuleID, side codec.Side, roles codec.Role, ok bool) {
	if !m.Counts {
		return
	}
	n := m.rule(subject{rule, side})
	if ok {
		n.add(roles, 1, 0)
	} else {
		n.add(roles, 0, 1)
	}
}

// countForm counts the rules of the message format that apply to a message. In an invalid message, these are the rules
// of the fields before the violation, and the violated rule.
func (m *Monitor) countForm(f *codec.Frame, err *codec.Error) {
	spans := f.Spans
	if err != nil {
		if n := m.rule(subject{err.Rule, f.From}); f.Type == nil { // the sender may have any role
			n.add(0, 0, 1)
			for i := range n.ByRole {
				n.ByRole[i]++
			}
		} else {
			n.add(m.roles, 0, 1)
		}
		spans = spans[:max(0, len(spans)-1)]
	}
	if f.Type == nil || f.Head > len(spans) {
		return
	}
	n := &m.forms[f.From][f.Type.Index]
	if err == nil {
		n.seen++
	}
	for i := f.Head; i < len(spans); i++ {
		for k, fd := range n.fields {
			if fd == spans[i].Field {
				n.given[k]++
				if spans[i].End > spans[i].Off {
					n.filled[k]++
				}
				break
			}
		}
	}
}

// Rules returns the coverage of each rule that can be checked, for each side, if Counts is set. The result is in the
// order of the protocol's rules; the rules for clients and workers come first.
func (m *Monitor) Rules() []Coverage {
	all := coverage{rules: map[subject]*Coverage{}}
	for s, n := range m.rules {
		c := *n
		all.rules[s] = &c
	}
	for side := range codec.Server + 1 {
		for _, t := range m.protocol.Types {
			if !t.Sends(side) {
				continue
			}
			n, roles := &m.forms[side][t.Index], t.Roles(side)
			for k, fd := range n.fields {
				all.rule(subject{fd.Rule, side}).add(roles, n.filled[k], 0)
				all.rule(subject{fd.MaxRule, side}).add(roles, n.filled[k], 0)
				all.rule(subject{fd.NonEmpty, side}).add(roles, n.given[k], 0)
			}
			for _, rule := range t.FormRules(side) {
				all.rule(subject{rule, side}).add(roles, n.seen, 0)
			}
		}
	}
	var out []Coverage
	for side := range codec.Server + 1 {
		for i := range m.protocol.Rules {
			r := &m.protocol.Rules[i]
			if n := all.rules[subject{r.ID, side}]; n != nil {
				n.Rule = r
				out = append(out, *n)
			}
		}
	}
	return out
}
