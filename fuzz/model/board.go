package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// due is something that the server owes a connection, or may send it.
type due struct {
	conn int
	must bool
	rule codec.RuleID // broken if it does not come, or comes otherwise
	want string       // in words

	// take judges a message. It returns notMine if that is something else, nil if it is
	// what was due, having done what follows from it, and otherwise what is wrong with it.
	take func(f *codec.Frame) error

	choice *choice
	step   int // of the conversation, in which it became due
}

// missing is the law of what has not come.
const missing = "missing message"

// choice joins those of which exactly one comes, or none is due any more once enough have.
type choice struct{ left int }

// notMine says that a message is not the one that was due.
var notMine error = &Complaint{Law: "another message"}

// board is what all models share: the connections, what is due to them, and the clock.
type board struct {
	p       *codec.Protocol
	quirks  map[Quirk]bool
	now     time.Duration // since the model was made
	start   time.Time
	dues    []*due
	tainted bool
	step    int
	deaf    map[int]bool  // connections of which nothing is judged any more
	ending  map[int]bool  // connections that the server may close
	leaving map[int]leave // those that it has to

	unjudged string // replies that may break rules whose IDs begin so are not judged; "": all are
}

// began sets the time at which the model was made.
func (b *board) began(now time.Time) { b.start = now }

// wall returns the time of the server's clock.
func (b *board) wall() time.Time { return b.start.Add(b.now) }

// leave is why the server has to close a connection.
type leave struct {
	rule codec.RuleID
	why  string
}

func newBoard(p *codec.Protocol, quirks map[Quirk]bool) board {
	return board{p: p, quirks: quirks, deaf: map[int]bool{}, ending: map[int]bool{}, leaving: map[int]leave{}}
}

// owe adds what must come, as far as anybody can tell.
func (b *board) owe(conn int, rule codec.RuleID, want string, take func(*codec.Frame) error) *due {
	d := &due{conn: conn, must: !b.tainted && !b.excuses(rule), rule: rule, want: want, take: take, step: b.step}
	b.dues = append(b.dues, d)
	return d
}

// excuses reports whether replies are not judged by the rule.
func (b *board) excuses(rule codec.RuleID) bool {
	return b.unjudged != "" && strings.HasPrefix(string(rule), b.unjudged)
}

// allow adds what may come.
func (b *board) allow(conn int, want string, take func(*codec.Frame) error) *due {
	d := b.owe(conn, "", want, take)
	d.must = false
	return d
}

// typed takes a message of one of the types, and hands it on.
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

// wrong makes a complaint; the board fills in the rest of it.
func wrong(format string, args ...any) error { return &Complaint{Text: fmt.Sprintf(format, args...)} }

// received finds what a message was due as.
func (b *board) received(conn int, f *codec.Frame) error {
	if b.deaf[conn] {
		return nil
	}
	var first *Complaint
	var waiting []string
	// What must come before what may: one message can be either.
	ordered := make([]*due, 0, 8)
	for _, must := range []bool{true, false} {
		for _, d := range b.dues {
			if d.conn == conn && d.must == must {
				ordered = append(ordered, d)
			}
		}
	}
	for _, d := range ordered {
		if err := d.take(f); err == nil {
			if i := slices.Index(b.dues, d); i >= 0 { // what followed may have moved it
				b.dues = slices.Delete(b.dues, i, i+1)
			}
			// A connection's messages come in order: what was only allowed before has not come.
			b.dues = slices.DeleteFunc(b.dues, func(o *due) bool { return o.conn == conn && !o.must && o.step < d.step })
			if d.choice != nil {
				if d.choice.left--; d.choice.left <= 0 {
					b.dues = slices.DeleteFunc(b.dues, func(o *due) bool { return o.choice == d.choice })
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

// settled complains of the first thing that must have come.
func (b *board) settled() error {
	for _, d := range b.dues {
		if d.must && !b.deaf[d.conn] {
			return &Complaint{Conn: d.conn, Rule: d.rule, Law: missing, Text: "expected " + d.want + ", got no message"}
		}
	}
	for conn, l := range b.leaving {
		if !b.tainted {
			return &Complaint{Conn: conn, Rule: l.rule, Law: "missing disconnect", Text: "expected the server to close the connection, because " + l.why}
		}
	}
	b.dues = slices.DeleteFunc(b.dues, func(d *due) bool { return b.deaf[d.conn] })
	return nil
}

// Leaving implements Model.
func (b *board) Leaving(conn int) bool {
	_, leaving := b.leaving[conn]
	return leaving && !b.tainted
}

// opened begins anew with a connection.
func (b *board) opened(conn int) {
	b.forget(conn)
	delete(b.deaf, conn)
	delete(b.ending, conn)
	delete(b.leaving, conn)
}

// forget drops what is due to a connection that has ended.
func (b *board) forget(conn int) {
	b.dues = slices.DeleteFunc(b.dues, func(d *due) bool { return d.conn == conn })
}

// gone judges the end of a connection.
func (b *board) gone(conn int) error {
	defer b.forget(conn)
	delete(b.leaving, conn)
	if b.deaf[conn] || b.ending[conn] {
		return nil
	}
	return &Complaint{Conn: conn, Law: "unexpected disconnect", Text: "expected the connection to stay open, but the server closed it, and no message allows the server to close it"}
}

// show writes a message on one line, shortened.
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

// class counts as a State does: none, one, more.
func class(n int) uint64 { return uint64(min(n, 2)) }

// fold mixes classes into one number.
func fold(h uint64, v uint64) uint64 { return (h ^ v) * 0x100000001b3 }
