// Package gearmonkey is the Redis that stands in for a GearMonkey server, to be
// run by [refserver.Server].
//
// The data and most commands are miniredis's, which is handed one command at a
// time and never sees a connection. What must not block, what depends on time,
// what goes to several connections and what miniredis does otherwise than Redis
// 7 is done here; README.md lists it, and what remains. Each command has one
// row in a table.
package gearmonkey

import (
	"container/list"
	"time"

	"github.com/alicebob/miniredis/v2"

	"jobwire/codec"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/resp"
	"jobwire/refserver"
)

// Options are the choices that are left to a server. There are none yet.
type Options struct{}

// Machine is the server's whole state, a [refserver.Machine]. It has no
// goroutines: nothing needs to be released.
type Machine struct {
	redis *miniredis.Miniredis
	start time.Time // the server's uptime begins
	epoch time.Time // what miniredis takes for the present

	sides    []*side // those that are free
	current  *peer   // whose command is being executed
	scriptDB int     // the database that a script is in
	failure  string  // the last error that a script's command was answered with

	peers    map[*peer]bool
	handled  int // commands
	accepted int // connections

	waiting   map[key]*list.List // of *wait, by the keys they wait for, the first first
	timeouts  heap[*wait]
	supplied  []key // keys that somebody waits for and that may have something
	expiries  expiries
	fields    fieldOrder
	channels  topics
	patterns  topics
	frame     codec.Frame
	message   codec.Message
	requested []string // words of the current request; memory to be used again
}

// key names a key of a database.
type key struct {
	db   int
	name string
}

// New returns a machine without keys.
func New(Options) *Machine {
	now := time.Now()
	m := &Machine{
		redis:    miniredis.NewMiniRedis(),
		start:    now,
		epoch:    now.Truncate(time.Millisecond),
		peers:    map[*peer]bool{},
		waiting:  map[key]*list.List{},
		channels: topics{},
		patterns: topics{},
	}
	m.expiries.init()
	m.fields.init()
	m.embed()
	return m
}

func (m *Machine) Open(c *refserver.Conn) {
	p := &peer{
		conn:  c,
		state: m.newState(),
		session: gearmonkey.Protocol.NewSession(codec.Options{
			Waive: []codec.RuleID{resp.RuleReplyAsked, resp.RuleCap, resp.RuleLineLength, resp.RulePending},
		}),
	}
	c.Data = p
	m.peers[p] = true
	m.accepted++
}

func (m *Machine) Handle(c *refserver.Conn, f *codec.Frame) {
	p := c.Data.(*peer)
	m.requested = words(m.requested[:0], f.Raw)
	p.session.Decode(codec.Peer, f.Raw, &m.frame) // for the replies that depend on it
	if len(m.requested) == 0 {
		return
	}
	m.handled++
	m.expire(time.Now())
	m.sweep()
	m.current = p
	p.execute(m, m.requested)
	m.current = nil
	m.serve()
}

// refusals are what Redis says of a request that it cannot read. What it ignores
// is not here.
var refusals = map[codec.RuleID]string{
	resp.RuleCount:        "invalid multibulk length",
	resp.RuleSize:         "invalid bulk length",
	resp.RuleCap:          "invalid bulk length",
	resp.RuleWord:         "expected '$'",
	resp.RuleReplyKind:    "expected '$'",
	resp.RuleInlineLength: "too big inline request",
	resp.RuleInlineWords:  "unbalanced quotes in request",
	resp.RuleLineLength:   "too big mbulk count string",
	resp.RuleLineEnd:      "expected CR LF after a length",
	resp.RuleBulkEnd:      "expected CR LF after a bulk string",
	resp.RulePending:      "too many requests are waiting for replies",
}

// Reject answers a request that cannot be read; then the connection is closed.
func (m *Machine) Reject(c *refserver.Conn, _ *codec.Frame, e *codec.Error) {
	if text, ok := refusals[e.Rule]; ok {
		c.Send(errorReply, []byte("ERR"), []byte("Protocol error: "+text))
	}
}

// HalfClosed ends the connection, as Redis does: what the peer sent before is
// done, but it waits for nothing any more.
func (m *Machine) HalfClosed(c *refserver.Conn) bool {
	if p := c.Data.(*peer); p.wait != nil {
		m.forget(p.wait)
		c.Close()
	}
	return false
}

func (m *Machine) Close(c *refserver.Conn) {
	p := c.Data.(*peer)
	if p.wait != nil {
		m.forget(p.wait)
	}
	m.leaveAll(p)
	delete(m.peers, p)
}

func (m *Machine) Next() time.Time {
	w, at := m.timeouts.first()
	if w == nil {
		return time.Time{}
	}
	return time.UnixMilli(at)
}

// Tick answers the waits whose time is over.
func (m *Machine) Tick(now time.Time) {
	for w, at := m.timeouts.first(); w != nil && at <= now.UnixMilli(); w, at = m.timeouts.first() {
		p := w.peer
		m.forget(w)
		p.answer(m, null("*-1\r\n", p.resp3))
	}
}
