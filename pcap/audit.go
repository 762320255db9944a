package pcap

import (
	"net/netip"

	"jobwire/codec"
	"jobwire/judge"
)

// auditor hands items on, and makes violations of the messages that break a rule by what
// went before them.
type auditor struct {
	d      *Decoder
	handle func(*Item)
	judges map[judged]*judge.Judge
	now    *Item
}

// judged is a server, and what it speaks.
type judged struct {
	server   netip.AddrPort
	protocol *codec.Protocol
}

const maxJudges = 1 << 10

func newAuditor(d *Decoder, handle func(*Item)) *auditor {
	return &auditor{d: d, handle: handle, judges: map[judged]*judge.Judge{}}
}

// judge returns the judge of a connection's server, or nil.
func (a *auditor) judge(c *Conn) *judge.Judge {
	key := judged{c.Server, c.Protocol}
	j, ok := a.judges[key]
	if !ok && len(a.judges) < maxJudges {
		if j = judge.New(c.Protocol); j != nil {
			j.Keep = func() any { return a.now.clone() }
		}
		a.judges[key] = j
	}
	return j
}

// add judges an item.
func (a *auditor) add(it *Item) {
	c := it.Conn
	var j *judge.Judge
	if c.Protocol != nil {
		j = a.judge(c)
	}
	if j == nil {
		a.handle(it)
		return
	}
	a.now = it
	if !c.judged {
		c.judged = true
		if !c.Uncertain {
			j.Opens(c.ID)
		}
	}
	var found []judge.Violation
	switch it.Kind {
	case Message, Violates:
		if c.Uncertain {
			j.Loses(c.ID)
		}
		found = j.Message(c.ID, it.Frame, it.At, it.Err)
	case Gap, Unread:
		j.Loses(c.ID)
	case Ends, Breaks:
		found = j.Ends(c.ID, it.From, it.Kind == Breaks, it.At)
	}
	broken := false
	for i := range found {
		v := &found[i]
		switch kept, later := v.Kept.(*Item); {
		case later:
			a.accuse(kept, v)
		case !broken && it.Kind == Message:
			broken = true
			a.accuse(it, v)
		}
	}
	if !broken {
		a.handle(it)
	}
}

// accuse hands on a message as one that breaks a rule.
func (a *auditor) accuse(it *Item, v *judge.Violation) {
	e := &codec.Error{Rule: v.Rule, Field: v.Field, Detail: v.Detail}
	for i := range it.Frame.Spans {
		if s := &it.Frame.Spans[i]; s.Field.Name == v.Field && s.Off < len(it.Raw) {
			e.Offset = s.Off
			break
		}
	}
	x := *it
	x.Kind, x.Err = Violates, e
	a.d.stats.Violations++
	a.d.rules[v.Rule]++
	a.handle(&x)
}
