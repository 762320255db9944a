package fuzz

import (
	"fmt"
)

// canaryID is the connection number of the canary in records.
const canaryID = 99

// handshake sends one or two pings. After the replies, the server has most likely handled the earlier messages of other
// connections.
func (x *executor) handshake() {
	for n := 0; n < 2 && (n == 0 || x.thorough) && x.ping(); n++ {
	}
}

// ping sends a barrier on the connection of the canary, a client that takes no part in the input, and reports whether
// the server replied.
func (x *executor) ping() bool {
	if x.isOver() {
		return false
	}
	k := x.canary
	m, r := x.model, len(x.record.Events)
	x.model = nil // the canary takes no part in the input
	defer func() {
		x.model = m
		x.record.Events = x.record.Events[:r]
	}()
	fault, features := x.record.Fault, len(x.record.features)
	defer func() { x.record.features = x.record.features[:features] }()
	if k == nil || !k.open {
		s, err := x.to.dial(x.timeout)
		if err != nil {
			x.lost = true
			return false
		}
		k = &conn{id: canaryID, s: s, open: true, within: x.timeout, streams: x.streams()}
		x.canary = k
	}
	x.record.Fault = nil
	x.barrier(k)
	x.await(k)
	bad := x.record.Fault
	x.record.Fault = fault
	return k.open && k.waiting == 0 && bad == nil
}

// checkServer checks after an input that the server still serves others: the canary, whose connection is older than the
// input, and a new connection.
func (x *executor) checkServer() {
	had := x.canary != nil && x.canary.open
	if x.ping() {
		if f := x.record.Fault; f != nil && f.Oracle == HangAll {
			x.record.Fault = nil // the server replied late
		}
		return
	}
	x.closeCanary()
	if x.ping() {
		if had {
			x.fault(Fault{Oracle: Disturbed, Law: "other connection disturbed", Text: "the server closed the idle connection of another client, or did not reply on it", Conn: canaryID})
		}
		return
	}
	x.closeCanary()
	if x.isOver() {
		return
	}
	x.record.Fault = &Fault{Oracle: HangAll, Law: "no connection answered", Step: x.step, Conn: -1,
		Text: fmt.Sprintf("the server did not reply to %s on a new connection within %v", x.d.barrier.Name, x.timeout)}
}

// closeCanary closes the connection of the canary.
func (x *executor) closeCanary() {
	if x.canary != nil && x.canary.open {
		x.canary.s.close(true)
	}
	x.canary = nil
}
