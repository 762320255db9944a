package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// expectation is a message that the server must or may send on a connection.
type expectation struct {
	conn int
	must bool
	rule codec.RuleID // that the server breaks if the message is missing or wrong
	want string       // the expected message, in words

	// take checks a message. It returns notMine if the message is another one, nil if it is the expected message, after
	// updating the model, and otherwise what is wrong with the message.
	take func(f *codec.Frame) error

	choice *choice
	step   int // the step of the conversation in which the server became obliged to send the message
}

// missing is the law of a complaint about an expected message that has not arrived.
const missing = "missing message"

// choice joins alternatives: the server sends left of them, and then none of the others is expected.
type choice struct{ left int }

// notMine says that a message is not the expected one.
var notMine error = &Complaint{Law: "another message"}

// expectations is what all models share: the connections, the messages that they expect, and the clock.
type expectations struct {
	p         *codec.Protocol
	quirks    map[Quirk]bool
	now       time.Duration // since the model was made
	start     time.Time
	expected  []*expectation
	tainted   bool
	step      int
	unchecked map[int]bool        // connections whose messages are not checked any more
	ending    map[int]bool        // connections that the server may close
	leaving   map[int]closeReason // connections that the server must close

	unjudged string // prefix of the IDs of rules that are not checked; "": all are checked
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
	return expectations{p: p, quirks: quirks, unchecked: map[int]bool{}, ending: map[int]bool{}, leaving: map[int]closeReason{}}
}

// expect adds an expected message. Without illegal bytes whose effect is unknown, the server must send it.
func (b *expectations) expect(conn int, rule codec.RuleID, want string, take func(*codec.Frame) error) *expectation {
	d := &expectation{conn: conn, must: !b.tainted && !b.excuses(rule), rule: rule, want: want, take: take, step: b.step}
	b.expected = append(b.expected, d)
	return d
}

// excuses reports whether replies are not checked against the rule.
func (b *expectations) excuses(rule codec.RuleID) bool {
	return b.unjudged != "" && strings.HasPrefix(string(rule), b.unjudged)
}

// allow adds a message that the server may send.
func (b *expectations) allow(conn int, want string, take func(*codec.Frame) error) *expectation {
	d := b.expect(conn, "", want, take)
	d.must = false
	return d
}

// typed returns a function that accepts a message of one of the types, separated by spaces, and passes it to then.
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

// wrong returns a complaint. The board sets its other fields.
func wrong(format string, args ...any) error { return &Complaint{Text: fmt.Sprintf(format, args...)} }

// received finds the expected message that a received message is.
func (b *expectations) received(conn int, f *codec.Frame) error {
	if b.unchecked[conn] {
		return nil
	}
	var first *Complaint
	var waiting []string
	// Required messages are tried before optional ones, because one message can be either.
	ordered := make([]*expectation, 0, 8)
	for _, must := range []bool{true, false} {
		for _, d := range b.expected {
			if d.conn == conn && d.must == must {
				ordered = append(ordered, d)
			}
		}
	}
	for _, d := range ordered {
		if err := d.take(f); err == nil {
			if i := slices.Index(b.expected, d); i >= 0 { // take may have moved it
				b.expected = slices.Delete(b.expected, i, i+1)
			}
			// The messages of a connection arrive in order, so the server has not sent the optional messages
			// before this one.
			b.expected = slices.DeleteFunc(b.expected, func(o *expectation) bool { return o.conn == conn && !o.must && o.step < d.step })
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
	return &Complaint{Conn: conn, Law: "unexpected message", Text: fmt.Sprintf("expected %s, got %s", strings.Join(waiting, " or "), show(f))}
}

// checkMissing reports the first required message that has not arrived.
func (b *expectations) checkMissing() error {
	for _, d := range b.expected {
		if d.must && !b.unchecked[d.conn] {
			return &Complaint{Conn: d.conn, Rule: d.rule, Law: missing, Text: "expected " + d.want + ", got no message"}
		}
	}
	for conn, l := range b.leaving {
		if !b.tainted {
			return &Complaint{Conn: conn, Rule: l.rule, Law: "missing disconnect", Text: "expected the server to close the connection, because " + l.why}
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

// opened resets the state of a connection.
func (b *expectations) opened(conn int) {
	b.forget(conn)
	delete(b.unchecked, conn)
	delete(b.ending, conn)
	delete(b.leaving, conn)
}

// forget drops the expected messages of a connection that has ended.
func (b *expectations) forget(conn int) {
	b.expected = slices.DeleteFunc(b.expected, func(d *expectation) bool { return d.conn == conn })
}

// gone checks the end of a connection.
func (b *expectations) gone(conn int) error {
	defer b.forget(conn)
	delete(b.leaving, conn)
	if b.unchecked[conn] || b.ending[conn] {
		return nil
	}
	return &Complaint{Conn: conn, Law: "unexpected disconnect", Text: "expected the connection to stay open, but the server closed it, and no message allows the server to close it"}
}

// show returns a message on one line, with long values cut short.
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

// class counts as Model.State does: none, one or more.
func class(n int) uint64 { return uint64(min(n, 2)) }

// mixHash mixes classes into one number.
func mixHash(h uint64, v uint64) uint64 { return (h ^ v) * 0x100000001b3 }
