package audit

import (
	"strings"

	"jobwire/codec"
)

// alike gives each of several types its row.
func alike(rows map[string]noted) map[string]noted {
	out := map[string]noted{}
	for names, n := range rows {
		for name := range strings.FieldsSeq(names) {
			out[name] = n
		}
	}
	return out
}

// Statement is what the document says that one side is bound to.
type Statement struct {
	Rule  *codec.Rule
	Bound codec.Side
	Times int // messages that were an occasion

	roles codec.Role // whose messages may be one
	by    [8]int     // Times by role
}

// counts are how often there was occasion to break rules.
type counts struct {
	protocol *codec.Protocol
	types    [2][]counted // by side and type
	sight    sight
}

// counted is a type that one side sends.
type counted struct {
	note      noted
	seen      int
	present   []int // by field: how often it was there
	filled    []int // and not empty
	fields    []*codec.Field
	occasions []*occasion // those with a condition
	met       []int       // how often that was so
}

func newCounts(p *codec.Protocol) *counts {
	c := &counts{protocol: p}
	c.sight.reset()
	for side := range c.types {
		c.types[side] = make([]counted, len(p.Types))
		for _, t := range p.Types {
			n := &c.types[side][t.Index]
			n.note = sights[p][side][t.Name]
			for _, list := range [...][]codec.Field{t.Fields, t.Repeat} {
				for i := range list {
					n.fields = append(n.fields, &list[i])
				}
			}
			n.present, n.filled = make([]int, len(n.fields)), make([]int, len(n.fields))
			for i, list := 0, occasions[p]; i < len(list); i++ {
				if o := &list[i]; o.when != nil && o.heard == codec.Side(side) && o.matches(t) {
					n.occasions = append(n.occasions, o)
				}
			}
			n.met = make([]int, len(n.occasions))
		}
	}
	return c
}

// hear counts a message. One that breaks a rule of its form is an occasion to break those of fields that it has, and no
// more is made of it.
func (c *counts) hear(l *line, f *codec.Frame, sound bool) {
	n := &c.types[f.From][f.Type.Index]
	n.seen++
	for i := f.Head; i < len(f.Spans); i++ {
		for k, fd := range n.fields {
			if fd != f.Spans[i].Field {
				continue
			}
			n.present[k]++
			if f.Spans[i].End > f.Spans[i].Off {
				n.filled[k]++
			}
			break
		}
	}
	if !sound {
		return
	}
	if n.note.do != nil && n.note.first {
		n.note.do(&c.sight, l, f)
	}
	for i, o := range n.occasions {
		if o.when(&c.sight, l, f) {
			n.met[i]++
		}
	}
	if n.note.do != nil && !n.note.first {
		n.note.do(&c.sight, l, f)
	}
}

// exercised tells, for each statement that an audit can judge, how many messages were an occasion
// to break it. They stand in the order of the manifest, those of the peers first.
func (c *counts) exercised(servers bool) []Statement {
	type of struct {
		rule  codec.RuleID
		bound codec.Side
	}
	p := c.protocol
	all := map[of]*Statement{}
	note := func(rule codec.RuleID, bound codec.Side, t *codec.Type, heard codec.Side, times int) {
		if rule == "" {
			return
		}
		st := all[of{rule, bound}]
		if st == nil {
			st = &Statement{Bound: bound}
			all[of{rule, bound}] = st
		}
		roles := t.Req
		if heard == server {
			roles = t.Res
		}
		st.roles |= roles
		st.Times += times
		for i := range st.by {
			if roles&(1<<i) != 0 {
				st.by[i] += times
			}
		}
	}
	for _, t := range p.Types {
		for _, side := range [...]codec.Side{peer, server} {
			if !t.Sends(side) {
				continue
			}
			n := &c.types[side][t.Index]
			for k, fd := range n.fields {
				note(fd.Rule, side, t, side, n.filled[k])
				note(fd.MaxRule, side, t, side, n.filled[k])
				note(fd.NonEmpty, side, t, side, n.present[k])
			}
			for i, list := 0, occasions[p]; i < len(list); i++ {
				o := &list[i]
				if o.heard != side || !o.matches(t) {
					continue
				}
				times := n.seen
				for k, with := range n.occasions {
					if with == o {
						times = n.met[k]
					}
				}
				for id := range strings.FieldsSeq(o.rules) {
					note(codec.RuleID(p.Name+"."+id), o.bound, t, side, times)
				}
			}
		}
	}
	var out []Statement
	for _, bound := range [...]codec.Side{peer, server} {
		for i := range p.Rules {
			if st := all[of{p.Rules[i].ID, bound}]; st != nil && (bound == peer || servers) {
				st.Rule = &p.Rules[i]
				out = append(out, *st)
			}
		}
	}
	return out
}
