package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// Whether the server must send an expected message.
const (
	required = true
	optional = false
)

// expectation is a message that the server must or may send on a connection.
type expectation struct {
	conn int
	must bool
	rule codec.RuleID // rule that the server breaks if the message is missing or wrong
	want string       // the expected message, in words

	// take compares a received message with the expectation. It returns nil if the message meets the expectation, and
	// then updates the model. It returns notMine if the message is another one, and a *Complaint if the message is the
	// expected one but its content is wrong.
	take func(f *codec.Frame) error

	choice *choice
	step   int  // number of the step that caused the message
	timed  bool // a timer has caused it, and no message

	// whether the message is right does not depend on what has happened before, so it is checked even if the state of the
	// server is unknown
	certain bool
}

// missing is the law of a complaint about an expected message that has not arrived.
const missing = "missing message"

// choice joins alternative expectations. The server sends left of the alternatives. After that, the server must not
// send the others.
type choice struct{ left int }

// notMine is the error of take if the received message is not the message that the expectation describes. received then
// tries the next expectation of the connection.
var notMine error = &Complaint{Law: "another message"}

// expectations is the part that all models share: the state of the connections, the messages that the model expects on
// them, and the time.
type expectations struct {
	p         *codec.Protocol
	quirks    map[Quirk]bool
	now       time.Duration // time since the start of the model
	timer     bool          // timers are being handled, in Elapsed
	start     time.Time
	expected  []*expectation
	tainted   bool
	step      int
	unchecked map[int]bool        // connections whose messages are not checked any more
	ending    map[int]bool        // connections that the server may close
	leaving   map[int]closeReason // connections that the server must close

	uncheckedRules string // prefix of the IDs of rules that are not checked; "": all are checked
	maxData        int    // largest size of data that the server accepts; 0: unknown
}

// Accepts implements Model.
func (b *expectations) Accepts(size int) { b.maxData = size }

// taint records that the state of the server is unknown, and makes the expected messages optional that depend on it.
func (b *expectations) taint() {
	b.tainted = true
	for _, d := range b.expected {
		d.must = d.must && d.certain
	}
}

// listsOthers reports whether lists may contain what clients of other inputs have caused.
func (b *expectations) listsOthers() bool { return b.quirks[Shared] || b.quirks[Lingering] }

// Tainted implements Model.
func (b *expectations) Tainted() bool { return b.tainted }

// Garbled implements Model.
func (b *expectations) Garbled(conn int) {
	b.unchecked[conn] = true
	b.taint()
}

// Illegal implements Model.
func (b *expectations) Illegal(conn int, _ *codec.Frame, _ *codec.Error) bool {
	b.Garbled(conn)
	return false
}

// excused returns the error of received, or nil if it is about a message that depends on the unknown state of the
// server.
func (b *expectations) excused(err error) error {
	if c, _ := err.(*Complaint); c != nil && b.tainted && !c.certain && c.Law != ChangedData {
		return nil
	}
	return err
}

// Begins implements Model for protocols in which it does not matter when a message began.
func (b *expectations) Begins(int) {}

// rejected expects one of the replies with which a server may reject an illegal message. If the server performs the
// request, where it may, the effect of the message is unknown.
func (b *expectations) rejected(conn int, f *codec.Frame, e *codec.Error, r codec.Rejection) {
	answers, why := []*codec.Type(nil), e.Error()
	if f.Type != nil && r.Performs {
		answers = f.Type.Answers
	}
	if r.Closes {
		b.ending[conn] = true
	}
	d := b.expect(conn, e.Rule, r.Labels(), func(f *codec.Frame) error {
		switch {
		case r.Has(f.Type):
			if r.Unclear {
				b.Garbled(conn)
			}
			return nil
		case slices.Contains(answers, f.Type) && f.Type.Does != codec.Refuse:
			b.Garbled(conn)
			return nil
		case slices.Contains(answers, f.Type):
			return nil
		}
		return &Complaint{Law: "illegal message not rejected",
			Text: fmt.Sprintf("expected %s, because the message is illegal (%s)", r.Labels(), why)}
	})
	d.certain, d.must = true, !r.Unclear && !r.Closes
	if r.Unclear {
		b.taint()
	}
}

// began sets the time at which the model was made.
func (b *expectations) began(now time.Time) { b.start = now }

// serverTime returns the time of the server's clock.
func (b *expectations) serverTime() time.Time { return b.start.Add(b.now) }

// closeReason is the reason why the server must close a connection.
type closeReason struct {
	rule codec.RuleID
	why  string
}

func newExpectations(p *codec.Protocol, quirks map[Quirk]bool) expectations {
	return expectations{p: p, quirks: quirks, unchecked: map[int]bool{}, ending: map[int]bool{},
		leaving: map[int]closeReason{}}
}

// expect adds an expected message and returns the expectation. The message is required, unless the peers have sent
// illegal bytes whose effect is unknown, or the rule is not checked. want describes the message in complaints.
func (b *expectations) expect(conn int, rule codec.RuleID, want string, take func(*codec.Frame) error) *expectation {
	d := &expectation{conn: conn, must: !b.tainted && !b.excuses(rule), rule: rule, want: want, take: take, step: b.step,
		timed: b.timer}
	b.expected = append(b.expected, d)
	return d
}

// excuses reports whether the model does not check the rule.
func (b *expectations) excuses(rule codec.RuleID) bool {
	return b.uncheckedRules != "" && strings.HasPrefix(string(rule), b.uncheckedRules)
}

// allow adds a message that the server may send but need not send. want describes the message in complaints.
func (b *expectations) allow(conn int, want string, take func(*codec.Frame) error) *expectation {
	d := b.expect(conn, "", want, take)
	d.must = false
	return d
}

// typed returns a take function for messages of one of the types, whose names are separated by spaces. The function
// passes such a message to then, which may be nil, and returns notMine for every other message.
func typed(names string, then func(f *codec.Frame) error) func(*codec.Frame) error {
	return func(f *codec.Frame) error {
		for rest := names; rest != ""; {
			var name string
			name, rest, _ = strings.Cut(rest, " ")
			if f.Type.Name == name {
				if then == nil {
					return nil
				}
				return then(f)
			}
		}
		return notMine
	}
}

// wrong returns a complaint with the given text. received sets the other fields of the complaint.
func wrong(format string, args ...any) error { return &Complaint{Text: fmt.Sprintf(format, args...)} }

// received compares a received message with the expectations of its connection, and removes the expectation that the
// message meets. It returns a *Complaint if the message meets none of them.
func (b *expectations) received(conn int, f *codec.Frame) error {
	if b.unchecked[conn] {
		return nil
	}
	var first *Complaint
	var waiting []string
	// Required messages, and alternatives of which one is required, are tried before optional ones, because one message
	// can be either.
	ordered := make([]*expectation, 0, 8)
	for _, must := range []bool{true, false} {
		for _, d := range b.expected {
			if d.conn == conn && (d.must || d.choice != nil) == must {
				ordered = append(ordered, d)
			}
		}
	}
	for _, d := range ordered {
		if err := d.take(f); err == nil {
			if i := slices.Index(b.expected, d); i >= 0 { // take may have moved it
				b.expected = slices.Delete(b.expected, i, i+1)
			}
			if f.Type.Does == codec.Refuse && b.passesOver(d) {
				b.Garbled(conn)
			}
			// The messages of a connection arrive in order, so the server has not sent the optional messages
			// before this one.
			b.expected = slices.DeleteFunc(b.expected,
				func(o *expectation) bool { return o.conn == conn && !o.must && o.step < d.step })
			if d.choice != nil {
				if d.choice.left--; d.choice.left <= 0 {
					b.expected = slices.DeleteFunc(b.expected, func(o *expectation) bool { return o.choice == d.choice })
				}
			}
			return nil
		} else if err == notMine {
			waiting = append(waiting, d.want)
		} else if first == nil {
			first = err.(*Complaint)
			if first.Conn = conn; first.Law == "" {
				first.Law = "wrong reply content"
			}
			if first.Rule == "" {
				first.Rule = d.rule
			}
			first.certain = d.certain
			first.Text += "; got " + show(f)
		}
	}
	if first != nil {
		if b.excuses(first.Rule) {
			return nil
		}
		return first
	}
	if waiting == nil {
		waiting = []string{"no message"}
	}
	return &Complaint{Conn: conn, Law: "unexpected message",
		Text: fmt.Sprintf("expected %s, got %s", strings.Join(waiting, " or "), show(f))}
}

// passesOver reports whether the server must still reply to a request that came before the one to which d belongs. An
// error reply does not say which request it rejects: if it passes over a required reply, it may be about the earlier
// request, and then the next replies of the connection belong to other requests than the model assumes.
func (b *expectations) passesOver(d *expectation) bool {
	return slices.ContainsFunc(b.expected, func(o *expectation) bool {
		return o.conn == d.conn && o.must && o.step < d.step
	})
}

// checkMissing returns a *Complaint about the first required message that has not arrived, or about a connection that
// the server must close and has not closed. It returns nil if nothing is missing.
func (b *expectations) checkMissing() error {
	for _, d := range b.expected {
		if d.must && !b.unchecked[d.conn] {
			return &Complaint{Conn: d.conn, Rule: d.rule, Law: missing, Text: "expected " + d.want + ", got no message",
				Timed: d.timed}
		}
	}
	for conn, l := range b.leaving {
		if !b.tainted {
			return &Complaint{Conn: conn, Rule: l.rule, Law: "missing disconnect",
				Text: "expected the server to close the connection, because " + l.why}
		}
	}
	b.expected = slices.DeleteFunc(b.expected, func(d *expectation) bool { return b.unchecked[d.conn] })
	return nil
}

// Leaving implements Model.
func (b *expectations) Leaving(conn int) bool {
	_, leaving := b.leaving[conn]
	return leaving && !b.tainted
}

// opened resets the state of a connection that a peer has opened, because an earlier connection may have had the same
// number.
func (b *expectations) opened(conn int) {
	b.forget(conn)
	delete(b.unchecked, conn)
	delete(b.ending, conn)
	delete(b.leaving, conn)
}

// forget removes the expectations of a connection that has ended.
func (b *expectations) forget(conn int) {
	b.expected = slices.DeleteFunc(b.expected, func(d *expectation) bool { return d.conn == conn })
}

// gone handles the end of a connection by the server. It returns a *Complaint if no message allows the server to close
// the connection.
func (b *expectations) gone(conn int) error {
	defer b.forget(conn)
	delete(b.leaving, conn)
	if b.unchecked[conn] || b.ending[conn] {
		return nil
	}
	return &Complaint{Conn: conn, Law: "unexpected disconnect",
		Text: "expected the connection to stay open, but the server closed it, and no message allows the server to close it"}
}

// show returns a message as one line for complaints: at most 12 arguments, and at most 40 bytes of each.
func show(f *codec.Frame) string {
	var m codec.Message
	if f.Type == nil {
		return fmt.Sprintf("%.60q", f.Raw)
	}
	f.Message(&m)
	s := f.Type.Name
	for i, a := range m.Args {
		if i == 12 {
			return s + " ..."
		}
		s += fmt.Sprintf(" %.40q", a)
	}
	return s
}

// class returns the class of a count for Model.State: 0 for none, 1 for one, 2 for more than one.
func class(n int) uint64 { return uint64(min(n, 2)) }

// mixHash adds a value to a hash.
func mixHash(h uint64, v uint64) uint64 { return (h ^ v) * 0x100000001b3 }
