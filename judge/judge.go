// Package judge checks protocol rules that a single message cannot show: a reply needs a request, a job is assigned to
// only one worker at a time, a result comes from the worker that has the job. It reads the messages on all connections
// of one server at one point of the network, and does not change them.
//
// It reports a violation only if the captured messages prove it. Some connections may not be captured, and messages on
// two connections may be captured in another order than the server processes them: a message of the server may follow
// from an earlier state, and a message to the server may not have arrived yet. Therefore a violation of the server is
// reported only if neither a delay nor an unknown connection can explain it. If it depends on what a peer may have sent
// in the meantime, it is deferred until the next message of that peer.
//
// A [Checker] checks one protocol. If Counts is set, it counts each check, passed or violated, so that [Monitor.Rules]
// shows which rules the traffic has tested.
package judge

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"jobwire/codec"
)

// Violation is a message that violates a rule, given the messages before it. The violating side is the sender of the
// message.
type Violation struct {
	Rule codec.RuleID
	Conn int

	// Snapshot is the result of Monitor.Snapshot for the message that violates the rule, if that is an earlier message.
	// It is nil if the current message violates the rule.
	Snapshot any

	offset        int
	field, format string
	args          []any
}

// Err returns the violation as an error with a text.
func (v *Violation) Err() *codec.Error {
	return &codec.Error{Rule: v.Rule, Offset: v.offset, Field: v.field, Detail: fmt.Sprintf(v.format, v.args...)}
}

// Checker checks the conversations with one server.
type Checker interface {
	Open(c *Conn) Conversation // starts checking a connection
	// removes all jobs, because all connections have ended and another server may use the address
	Reset()
	Size() int // number of stored entries about jobs, for Budget
}

// Conversation checks one connection.
type Conversation interface {
	Message(f *codec.Frame)                        // handles a valid message of a known type
	Invalid(f *codec.Frame, violated codec.RuleID) // handles any other message; violated is "" if the type is unknown
	End(from codec.Side, reset bool)               // handles the end of one direction, or a reset
	Size() int                                     // number of stored entries about the connection, for Budget
}

var checkers = map[*codec.Protocol]func(*Monitor) Checker{}

// Register sets the function that creates checkers of a protocol. It must be called before New.
func Register(p *codec.Protocol, checker func(*Monitor) Checker) { checkers[p] = checker }

// Monitor checks one server with its clients and workers. It is not safe for concurrent use. A [Budget] limits its
// memory; connections and jobs beyond the limit are not checked.
type Monitor struct {
	// Snapshot, if it is not nil, is called for each message that later messages may prove to violate a rule. Its
	// result is passed on in Violation.Snapshot.
	Snapshot func() any

	// PeerChecks enables the rules that a client or worker must receive a certain reply before it
	// sends a certain message. It requires that each message is passed to Message before it is
	// forwarded to its receiver.
	PeerChecks bool

	// Counts enables Rules: each check is counted, passed or violated. It must be set before the first message.
	Counts bool

	// Budget may be shared with other monitors. It must be set before the first message.
	Budget *Budget

	protocol *codec.Protocol
	checker  Checker // nil if none is registered
	conns    map[int]*Conn
	live     int // number of connections on which the server may still send
	size     int // number of entries of the checker that Budget includes
	seed     maphash.Seed
	coverage

	exceeded bool // see Exceeded

	// State for the current message.
	found []Violation
	frame *codec.Frame // nil at the end of a connection
	at    int64
	side  codec.Side
	roles codec.Role
}

// Budget limits the memory of one or several monitors, in entries. An entry is the name of a job or function, a pending
// request or an assignment, and takes at most about 500 bytes.
type Budget struct {
	Max  int // 0: DefaultBudget
	used int
}

// Limits of the stored data. The unit is entries unless a comment states another one.
const (
	DefaultBudget = 1 << 20
	connSize      = 16      // entries that a connection counts in addition to its own
	maxConn       = 1 << 15 // per connection
	maxNames      = 1 << 12 // per set of recent names
	maxJobs       = 1 << 15
	maxName       = 256 // bytes per name
)

// allows reports whether the budget has room for more entries.
func (b *Budget) allows(more int) bool { return b.used+more <= cmp.Or(b.Max, DefaultBudget) }

// resize sets the size of a part to size and updates the used entries.
func (b *Budget) resize(part *int, size int) {
	b.used += size - *part
	*part = size
}

// New returns a monitor of one server of the protocol, with a new budget.
func New(p *codec.Protocol) *Monitor {
	m := &Monitor{Budget: &Budget{}, protocol: p, conns: map[int]*Conn{}, seed: maphash.MakeSeed(),
		coverage: newCoverage(p)}
	if start := checkers[p]; start != nil {
		m.checker = start(m)
	}
	return m
}

// Hash returns a hash of a value, for comparisons within this monitor.
func (m *Monitor) Hash(v []byte) uint64 { return maphash.Bytes(m.seed, v) }

// Name returns a name in the form in which it is stored. If the name is longer than 256 bytes, a hash replaces its end.
func (m *Monitor) Name(v []byte) string {
	if len(v) > maxName {
		return fmt.Sprintf("%s...%016x", v[:maxName-19], m.Hash(v))
	}
	return string(v)
}

// AppendName appends to b what Name returns.
func (m *Monitor) AppendName(b, v []byte) []byte {
	if len(v) > maxName {
		return append(b, m.Name(v)...)
	}
	return append(b, v...)
}

// Now returns the time of the current message in nanoseconds.
func (m *Monitor) Now() int64 { return m.at }

// Open records a connection that is captured from its first byte. The monitor reports violations only on such
// connections, and only until bytes are missing.
func (m *Monitor) Open(id int) {
	m.exceeded = false
	if c := m.conn(id); c != nil {
		c.complete = true
	}
}

// conn returns the state of a connection, and creates it for the first message. It returns nil if the protocol has no
// checker or the budget is used up.
func (m *Monitor) conn(id int) *Conn {
	c := m.conns[id]
	if c == nil {
		if m.exceeded = m.checker != nil && !m.Budget.allows(connSize); m.checker == nil || m.exceeded {
			return nil
		}
		c = &Conn{ID: id, monitor: m}
		m.conns[id] = c
		m.live++
		c.checks = m.checker.Open(c)
		m.Budget.resize(&c.size, connSize)
	}
	return c
}

// Exceeded reports whether the connection of the last Open or Message is not checked, or not checked any more, because
// the budget or the limit for one connection is used up. Later messages on it are not checked either.
func (m *Monitor) Exceeded() bool { return m.exceeded }

// Unsure reports whether the messages on a connection are not checked against earlier ones any more, because it is
// unknown to which requests the replies belong, and whether an illegal message is the reason.
func (m *Monitor) Unsure(id int) (unsure, illegal bool) {
	c := m.conns[id]
	return c != nil && c.unsure, c != nil && c.illegal
}

// Gap records that captured bytes of a connection are missing.
func (m *Monitor) Gap(id int) {
	if c := m.conns[id]; c != nil {
		c.Stop()
	}
}

// Message checks a message that was captured at a time in nanoseconds, and returns the violations that it reveals. err
// is the violation of the message format, or nil. The result is valid until the next call of a method.
func (m *Monitor) Message(id int, f *codec.Frame, at int64, err *codec.Error) []Violation {
	m.begin(f, at, f.From)
	if f.Type != nil {
		m.roles = f.Type.Roles(f.From)
	}
	if m.Counts {
		m.countForm(f, err)
	}
	c := m.conn(id)
	if c == nil || c.checks == nil {
		m.exceeded = m.checker != nil
		return nil
	}
	switch {
	case f.From == codec.Server:
	case err != nil:
		c.dropDeferred() // the message may be what the server has already acted on
	default:
		c.decide()
	}
	c.illegal = c.illegal || err != nil
	complete := c.complete
	switch {
	case err != nil:
		c.checks.Invalid(f, err.Rule)
	case f.Type == nil || !f.Type.Sends(f.From): // this message is accepted only if the rule about message types is waived
		c.checks.Invalid(f, "")
	default:
		c.checks.Message(f)
	}
	c.unsure = c.unsure || complete && !c.complete
	m.account(c)
	return m.found
}

// begin resets the state for the current message. f is nil at the end of a connection.
func (m *Monitor) begin(f *codec.Frame, at int64, from codec.Side) {
	m.found, m.frame, m.at, m.side, m.roles, m.exceeded = m.found[:0], f, at, from, 0, false
}

// account updates the number of stored entries after a message. If the limits are exceeded, it stops checking the
// connection and removes all jobs.
func (m *Monitor) account(c *Conn) {
	own := c.checks.Size()
	m.Budget.resize(&c.size, connSize+own)
	m.Budget.resize(&m.size, m.checker.Size())
	if own <= maxConn && m.Budget.allows(0) {
		return
	}
	c.Stop()
	c.checks, m.exceeded = nil, true
	m.Budget.resize(&c.size, connSize)
	m.checker.Reset()
	m.Budget.resize(&m.size, m.checker.Size())
}

// End records that a side has closed its direction or that the connection was reset, and returns the violations that
// this reveals.
func (m *Monitor) End(id int, from codec.Side, reset bool, at int64) []Violation {
	m.begin(nil, at, from)
	c := m.conns[id]
	if c == nil {
		return nil
	}
	if from == codec.Peer {
		c.decide()
	}
	c.peerClosed = c.peerClosed || from == codec.Peer || reset
	if c.checks != nil {
		c.checks.End(from, reset)
	}
	silent := c.ended[codec.Server]
	c.ended[from] = true
	if reset || c.ended[from.Other()] {
		c.Stop()
		m.Budget.resize(&c.size, 0)
		delete(m.conns, id)
	}
	if (reset || from == codec.Server) && !silent {
		if m.live--; m.live == 0 {
			for _, c := range m.conns { // continue the connections that only the peer has not closed
				c.Stop()
				c.checks = m.checker.Open(c)
			}
			m.checker.Reset()
		}
	}
	return m.found
}

// Conn is the state of a connection that all checkers share.
type Conn struct {
	ID int

	monitor    *Monitor
	checks     Conversation
	size       int  // in Budget
	complete   bool // the whole connection was seen, and the checker knows to which request each reply belongs
	illegal    bool // an illegal message was seen
	unsure     bool // a message has hidden to which request each later reply belongs
	peerClosed bool
	ended      [2]bool
	deferred   []*deferred
}

// Complete reports whether all messages of the connection were captured and understood.
func (c *Conn) Complete() bool { return c.complete }

// PeerClosed reports whether the peer has closed the connection.
func (c *Conn) PeerClosed() bool { return c.peerClosed }

// Stop ends the checks of a connection, because a part of its state is unknown.
func (c *Conn) Stop() {
	c.complete = false
	c.dropDeferred()
}

// dropDeferred drops the possible violations that depend on later messages of this peer.
func (c *Conn) dropDeferred() {
	for _, d := range c.deferred {
		d.drop(c.monitor)
	}
	c.deferred = nil
}

// Check counts that a rule applies to the current message, reports a violation if ok is false, and returns ok. If the
// connection is not complete, it only returns ok.
func (c *Conn) Check(rule codec.RuleID, ok bool, field, format string, args ...any) bool {
	if c.complete {
		c.monitor.count(rule, c.monitor.side, c.monitor.roles, ok)
		if !ok {
			c.monitor.found = append(c.monitor.found, c.violation(rule, field, format, args))
		}
	}
	return ok
}

// violation returns a violation by the current message. field is the name of the field that shows it, which determines
// the offset, or "".
func (c *Conn) violation(rule codec.RuleID, field, format string, args []any) Violation {
	v := Violation{Rule: rule, Conn: c.ID, field: field, format: format, args: args}
	if f := c.monitor.frame; f != nil {
		shows := func(s codec.Span) bool { return s.Field.Name == field && s.Off < len(f.Raw) }
		if i := slices.IndexFunc(f.Spans, shows); i >= 0 {
			v.offset = f.Spans[i].Off
		}
	}
	return v
}

// Pass counts that the current message follows a rule that applies to it.
func (c *Conn) Pass(rule codec.RuleID) { c.Check(rule, true, "", "") }

// deferred is a possible violation, which is decided after each party has sent its next message.
type deferred struct {
	violation Violation
	at        int64
	side      codec.Side
	roles     codec.Role
	stillTrue func(Conversation) bool
	left      int // number of parties that have not sent their next message yet; 0: decided
	size      int // in Budget
}

// drop marks a possible violation as decided, and frees its memory.
func (d *deferred) drop(m *Monitor) {
	d.left, d.violation.Snapshot = 0, nil
	m.Budget.resize(&d.size, 0)
}

// Defer defers a possible violation by the current message until each party has sent a later message. It is then
// reported if stillTrue returned true for each party immediately before that party's message. If stillTrue returned
// false for a party, the rule counts as followed. If a party is not complete, nothing is counted.
func (c *Conn) Defer(rule codec.RuleID, field string, stillTrue func(Conversation) bool, parties []*Conn, format string,
	args ...any) {
	m := c.monitor
	size := 4 + len(m.frame.Raw)/maxName
	if !c.complete || slices.ContainsFunc(parties, func(p *Conn) bool { return !p.complete || p.peerClosed }) ||
		!m.Budget.allows(size) {
		return
	}
	d := &deferred{violation: c.violation(rule, field, format, args), at: m.at, side: m.side, roles: m.roles,
		stillTrue: stillTrue, left: len(parties)}
	if m.Snapshot != nil {
		d.violation.Snapshot = m.Snapshot()
	}
	m.Budget.resize(&d.size, size)
	for _, p := range parties {
		p.deferred = append(p.deferred, d)
	}
}

// decide evaluates the deferred violations that depend on this peer, which has just sent a message.
func (c *Conn) decide() {
	if len(c.deferred) == 0 {
		return
	}
	m := c.monitor
	c.deferred = slices.DeleteFunc(c.deferred, func(d *deferred) bool {
		switch {
		case d.left == 0:
		case d.at >= m.at: // the peer sent its message no later than the possible violation, so wait for another one
			return false
		case !d.stillTrue(c.checks):
			m.count(d.violation.Rule, d.side, d.roles, true)
			d.drop(m)
		default:
			if d.left--; d.left == 0 {
				m.count(d.violation.Rule, d.side, d.roles, false)
				m.found = append(m.found, d.violation)
				d.drop(m)
			}
		}
		return true
	})
}

// take removes and returns the first pending request for which fits returns true, together with the requests before it.
// It may skip at most skipped requests, because other replies may belong to them.
func take[T any](pending *[]T, skipped *int, fits func(T) bool) (T, bool) {
	for i, p := range *pending {
		if i > *skipped {
			break
		}
		if fits(p) {
			*skipped -= i
			*pending = after(*pending, i+1)
			return p, true
		}
	}
	var none T
	return none, false
}

// after returns a list without its first n elements. If none are left, it keeps the memory of a short list.
func after[T any](list []T, n int) []T {
	if n < len(list) {
		return list[n:]
	}
	if cap(list) > 16 {
		return nil
	}
	return list[:0]
}

// since returns an ascending list without the numbers below n.
func since(numbers []int, n int) []int {
	for len(numbers) > 0 && numbers[0] < n {
		numbers = numbers[1:]
	}
	return numbers
}

// recent is a list of up to maxNames names, by their hashes. It is emptied when it is full. Names are often added, and
// searched only if a message seems to violate a rule.
type recent struct {
	names  []uint64
	forgot bool // the list was emptied at least once
}

// add adds the hash of a name, after emptying a full list.
func (r *recent) add(name uint64) {
	if len(r.names) >= maxNames {
		r.names, r.forgot = r.names[:0], true
	}
	r.names = append(r.names, name)
}

// has reports whether the list contains the hash of a name. If forgot is set, a name may be missing although it was
// added.
func (r *recent) has(name uint64) bool { return slices.Contains(r.names, name) }
