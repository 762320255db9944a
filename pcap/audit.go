package pcap

import (
	"jobwire/codec"
	"jobwire/judge"
)

// auditor passes items on, after checking the messages against the messages before them on all connections of
// their server. If the current message violates a rule, auditor passes it on as a violation. If it shows that
// an earlier message violated a rule, auditor passes the earlier message on again, as a violation.
type auditor struct {
	d        *Decoder
	handle   func(*Item)
	monitors map[monitored]*judge.Monitor
	budget   judge.Budget // of all servers together
	now      *Item
}

// monitored is the key of a monitor: a server and its protocol.
type monitored struct {
	server   Service
	protocol *codec.Protocol
}

const maxMonitors = 1 << 10

// monitor returns the rule checker for the server of a connection, or nil if there are too many servers.
func (a *auditor) monitor(c *Conn) *judge.Monitor {
	if c.state.monitor != nil {
		return c.state.monitor
	}
	key := monitored{c.Service(), c.Protocol}
	j := a.monitors[key]
	if j == nil && len(a.monitors) < maxMonitors {
		j = judge.New(c.Protocol)
		j.Snapshot, j.Budget = a.snapshot, &a.budget
		a.monitors[key] = j
	}
	c.state.monitor = j
	return j
}

// snapshot returns a copy of the current item, or nil if it is needed only for counting.
func (a *auditor) snapshot() any {
	if !a.d.opts.Audit {
		return (*Item)(nil)
	}
	return a.now.Clone()
}

// add checks an item and passes it on.
func (a *auditor) add(it *Item) {
	c := it.Conn
	var j *judge.Monitor
	if c.Protocol != nil && it.Kind != Likely {
		j = a.monitor(c)
	}
	if j == nil {
		a.handle(it)
		return
	}
	a.now = it
	if !c.state.audited {
		c.state.audited = true
		if !c.Uncertain {
			j.Open(c.ID)
		}
	}
	var found []judge.Violation
	switch it.Kind {
	case Message, Violates:
		if c.Uncertain || it.Unpaired {
			j.Gap(c.ID)
		}
		found = j.Message(c.ID, it.Frame, it.At, it.Err)
	case Gap, Unread, Skipped:
		j.Gap(c.ID)
	case Ends, Breaks:
		found = j.End(c.ID, it.From, it.Kind == Breaks, it.At)
	}
	broken := false
	for i := range found {
		v := &found[i]
		switch kept, later := v.Snapshot.(*Item); {
		case later:
			a.report(kept, v)
		case !broken && it.Kind == Message:
			broken = true
			a.report(it, v)
		}
	}
	if !broken || !a.d.opts.Audit {
		a.handle(it)
	}
}

// report counts a violation, and passes the message on.
func (a *auditor) report(it *Item, v *judge.Violation) {
	a.d.stats.Violations++
	a.d.rules[v.Rule]++
	if a.d.opts.Audit {
		x := *it
		x.Kind, x.Err = Violates, v.Err()
		a.handle(&x)
	}
}
