// Package gearmonkey is a Redis server for GearMonkey, to be run by [refserver.Server].
//
// miniredis stores the data and executes most commands. It executes one command at a time and has no
// connections. This package implements the commands that block, depend on time or affect several connections,
// and those that miniredis implements differently from Redis 7. README.md lists them, and the remaining
// differences. Each command is one row of a table.
package gearmonkey

import (
	"cmp"
	"container/list"
	"time"

	"github.com/alicebob/miniredis/v2"

	"jobwire/codec"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/resp"
	"jobwire/refserver"
)

// Options are the settings of the server. There are none yet.
type Options struct{}

// RequireLogin makes the server reject the commands of a connection until it has logged in with AUTH or HELLO. An empty
// user name is that of the default user. It must be called before the server starts.
func (m *Machine) RequireLogin(user, password string) {
	m.user, m.password = cmp.Or(user, defaultUser), password
}

// Machine is the whole state of the server. It implements [refserver.Machine] and has no goroutines, so it need
// not be closed.
type Machine struct {
	redis *miniredis.Miniredis
	start time.Time // start time of the server

	user, password string // that connections must log in with; password is "": none

	epoch time.Time // the current time in miniredis

	sides    []*side // free sides
	current  *peer   // the peer whose command is being executed
	scriptDB int     // the database that a script has selected
	failure  string  // the last error of a command in a script

	peers    map[*peer]bool
	handled  int // number of commands
	accepted int // number of connections

	waits
	expiries expiries
	fields   fieldOrder
	channels topics
	patterns topics

	// memory that is reused
	frame     codec.Frame
	message   codec.Message
	requested []string // words of the current request
}

// waits are the peers that wait for an element of a list.
type waits struct {
	waiting  map[key]*list.List // *wait by key, in the order in which they started to wait
	timeouts heap[*wait]
	supplied []key // keys for which peers wait and that may have something for them
}

// key identifies a key in a database.
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
		waits:    waits{waiting: map[key]*list.List{}},
		channels: topics{},
		patterns: topics{},
	}
	m.expiries.init()
	m.fields.init()
	m.startMiniredis()
	return m
}

// Open adds a connection. Its own session decodes the replies of the server that depend on the request. The limits of
// sizes and of waiting requests are waived in this session, and the rule that every reply needs a request.
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

// Handle executes one command. Before it, expired keys are deleted; after it, connections that wait for an element of a
// key are served.
func (m *Machine) Handle(c *refserver.Conn, f *codec.Frame) {
	p := c.Data.(*peer)
	m.requested = words(m.requested[:0], f.Raw)
	p.session.Decode(codec.Peer, f.Raw, &m.frame) // needed to decode the replies that depend on it
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

// refusals are the errors of Redis for requests that cannot be parsed. Errors that Redis ignores are not
// listed.
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

// Reject sends the error reply to a request that cannot be parsed. After Reject returns, package refserver closes the
// connection.
func (m *Machine) Reject(c *refserver.Conn, _ *codec.Frame, e *codec.Error) {
	if text, ok := refusals[e.Rule]; ok {
		c.Send(errorReply, []byte("ERR"), []byte("Protocol error: "+text))
	}
}

// HalfClosed ends the connection, as Redis does: earlier requests are handled, but a wait ends.
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

// Tick ends the waits whose timeouts have passed.
func (m *Machine) Tick(now time.Time) {
	for w, at := m.timeouts.first(); w != nil && at <= now.UnixMilli(); w, at = m.timeouts.first() {
		p := w.peer
		m.forget(w)
		p.answer(m, null("*-1\r\n", p.resp3))
	}
}
