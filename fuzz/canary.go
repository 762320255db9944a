package fuzz

import (
	"fmt"
)

// canaryID is the connection number of the canary in records.
const canaryID = 99

// handshake sends a ping, or two pings if the executor is thorough. After the replies, the server has most likely
// processed the earlier messages on other connections.
func (x *executor) handshake() {
	for n := 0; n < 2 && (n == 0 || x.thorough) && x.ping(); n++ {
	}
}

// ping sends a barrier on the canary connection, which belongs to a client that takes no part in the input. It reports
// whether the server replied. The record does not contain the ping.
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

// checkServer checks, after an input, that the server still replies to other clients: on the canary connection, which
// the executor opened before the input, or on a new connection.
func (x *executor) checkServer() {
	had := x.canary != nil && x.canary.open
	if x.ping() {
		if f := x.record.Fault; f != nil && f.Oracle == HangAll {
			x.record.Fault = nil // the server replied after the timeout, so it does not hang
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

// closeCanary closes the canary connection.
func (x *executor) closeCanary() {
	if x.canary != nil && x.canary.open {
		x.canary.s.close(true)
	}
	x.canary = nil
}
