package fuzz

import (
	"fmt"

	"jobwire/codec"
)

// bystanderID is the connection's number in records.
const bystanderID = 99

// handshake has the bystander exchange a sentinel or two with the server. Whatever others had
// sent before has then most likely been handled.
func (x *performer) handshake() {
	for n := 0; n < 2 && (n == 0 || x.thorough) && x.ask(); n++ {
	}
}

// ask has the bystander send a sentinel and wait for the answer. It reports whether that came.
func (x *performer) ask() bool {
	k := x.bystander
	m, r := x.model, len(x.record.Events)
	x.model = nil // it plays no part in the conversation
	defer func() {
		x.model = m
		x.record.Events = x.record.Events[:r]
	}()
	fault, edges, last := x.record.Fault, len(x.record.edges), x.last
	defer func() { x.record.edges, x.last = x.record.edges[:edges], last }()
	if k == nil || !k.open {
		s, err := dial(x.to, x.patience)
		if err != nil {
			x.lost = true
			return false
		}
		k = &conn{id: bystanderID, s: s, open: true, within: x.patience, sess: x.p.NewSession(codec.Options{Waive: x.known.Waive})}
		x.bystander = k
	}
	x.record.Fault = nil
	x.sentinel(k)
	x.await(k)
	bad := x.record.Fault
	x.record.Fault = fault
	return k.open && k.waiting == 0 && bad == nil
}

// visit judges, behind a conversation, whether the server is there for others: the bystander,
// whose connection is older than the conversation, and one who comes anew.
func (x *performer) visit() {
	had := x.bystander != nil && x.bystander.open
	if x.ask() {
		if f := x.record.Fault; f != nil && f.Oracle == HangAll {
			x.record.Fault = nil // it was late
		}
		return
	}
	x.dismiss()
	if x.ask() {
		if had {
			x.fault(Fault{Oracle: Disturbed, Law: "bystander", Text: "another connection, which took no part, was cut off or not answered", Conn: bystanderID})
		}
		return
	}
	x.dismiss()
	x.record.Fault = &Fault{Oracle: HangAll, Law: "nobody is answered", Step: x.step, Conn: -1,
		Text: fmt.Sprintf("a new connection's %s is not answered within %v", x.d.sentinel, x.patience)}
}

// dismiss ends the bystander's connection.
func (x *performer) dismiss() {
	if x.bystander != nil && x.bystander.open {
		x.bystander.s.close(true)
	}
	x.bystander = nil
}
