package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// GearMonkey is the adapter for models of the specification gearmonkey.txt.
var GearMonkey = &Adapter{New: newGearmonkey,
	Excuses: regexp.MustCompile(`^-.*(only \(P\|S\)SUBSCRIBE|rror compiling script|not an integer|not a float|overflow|out of range|timeout is|invalid expire|wrong number of arguments)`)}

// gearmonkey is the model of the part of Redis that gearmonkey.txt uses: keys, and clients that wait for them. It
// predicts the bytes of replies. It cannot predict replies to commands that the specification does not contain; after
// such a command, its state is unknown.
type gearmonkey struct {
	expectations
	peers   map[int]*mPeer
	keys    map[string]*mValue
	waiting []*mPeer        // clients that wait, longest wait first
	scripts map[string]bool // loaded scripts, by hash
}

type mPeer struct {
	conn     int
	waits    []string // the keys for which the client waits; nil: it does not wait
	until    time.Duration
	channels map[string]bool
}

// mValue is the value of a key: a text, a list, a hash or a sorted set.
type mValue struct {
	text   []byte
	list   [][]byte // elements of the list from the left end to the right end
	hash   map[string][]byte
	scores map[string]float64
	until  time.Duration // time at which the key expires; 0: never
}

func newGearmonkey(p *codec.Protocol, quirks map[Quirk]bool) Model {
	return &gearmonkey{expectations: newExpectations(p, quirks), peers: map[int]*mPeer{}, keys: map[string]*mValue{},
		scripts: map[string]bool{}}
}

func (m *gearmonkey) Opened(conn int) {
	m.opened(conn)
	m.peers[conn] = &mPeer{conn: conn, channels: map[string]bool{}}
}

func (m *gearmonkey) Blocked(conn int) bool {
	p := m.peers[conn]
	return p != nil && (p.waits != nil || len(p.channels) > 0)
}

// Closed implements Model: the client no longer waits for keys or receives published messages.
func (m *gearmonkey) Closed(conn int) {
	m.step++
	m.opened(conn)
	m.unchecked[conn] = true
	m.disconnected(conn)
}

func (m *gearmonkey) disconnected(conn int) {
	delete(m.peers, conn)
	m.waiting = slices.DeleteFunc(m.waiting, func(p *mPeer) bool { return p.conn == conn })
}

// Gone implements Model: a close by the server is a complaint, unless its state is unknown.
func (m *gearmonkey) Gone(conn int) error {
	m.disconnected(conn)
	err := m.gone(conn)
	if m.tainted {
		return nil
	}
	return err
}

func (m *gearmonkey) CheckMissing() error { return m.checkMissing() }

// uncertain reports whether it is unknown for some scheduled event whether it has happened, because its time is less
// than Slack away.
func (m *gearmonkey) uncertain() bool {
	unsure := func(at time.Duration) bool { return at > 0 && m.now >= at-Slack && m.now < at+Slack }
	for _, p := range m.waiting {
		if unsure(p.until) {
			return true
		}
	}
	for _, v := range m.keys {
		if unsure(v.until) {
			return true
		}
	}
	return false
}

// Elapsed implements Model: it removes expired keys, and expects a nil array on the connection of each client whose
// BRPOP timeout has expired. The nil array is optional from Slack before that time and required from Slack after it.
func (m *gearmonkey) Elapsed(d time.Duration) {
	m.step++
	m.now += d
	for k, v := range m.keys {
		if v.until > 0 && m.now >= v.until+Slack {
			delete(m.keys, k)
		}
	}
	for _, p := range slices.Clone(m.waiting) {
		if p.until == 0 || m.now < p.until-Slack ||
			slices.ContainsFunc(m.expected, func(d *expectation) bool { return d.conn == p.conn }) {
			continue
		}
		m.expect(p.conn, "gearmonkey.server.brpop-timeout", "a nil array", func(f *codec.Frame) error {
			if string(f.Raw) != "*-1\r\n" {
				return notMine
			}
			m.served(p)
			return nil
		}).must = false
	}
	for _, d := range m.expected {
		if p := m.peers[d.conn]; p != nil && p.waits != nil && p.until > 0 && m.now >= p.until+Slack && !m.tainted {
			d.must = true
		}
	}
}

// served records that a client no longer waits.
func (m *gearmonkey) served(p *mPeer) {
	p.waits = nil
	m.waiting = slices.DeleteFunc(m.waiting, func(o *mPeer) bool { return o == p })
}

func (m *gearmonkey) Received(conn int, f *codec.Frame) error {
	return m.excused(m.received(conn, f))
}

// Sent implements Model: it passes a command of the specification to its handler in mHandlers, and every other command
// to other. If a timeout or an expiration is near, or the client sends commands while its BRPOP waits, the state of the
// server becomes unknown.
func (m *gearmonkey) Sent(conn int, f *codec.Frame) {
	m.step++
	p := m.peers[conn]
	if p == nil || m.unchecked[conn] {
		m.tainted = m.tainted || p != nil
		return
	}
	h := mHandlers[f.Type.Name]
	if h == nil {
		m.other(p, f)
		return
	}
	if m.uncertain() || p.waits != nil {
		m.taint()
	}
	c := f.Clone()
	var msg codec.Message
	c.Message(&msg)
	h(m, p, msg.Args)
}

// other handles a command that the specification does not contain. It predicts only the replies to PING, which is the
// barrier.
func (m *gearmonkey) other(p *mPeer, f *codec.Frame) {
	var msg codec.Message
	f.Message(&msg)
	if f.Type.Name == "command" && len(msg.Args) == 2 && strings.EqualFold(string(msg.Args[0]), "PING") &&
		len(p.channels) == 0 && p.waits == nil {
		m.raw(p, "gearmonkey.resp.request.serial", bulk(msg.Args[1])).must = true
		return
	}
	m.unchecked[p.conn] = true
	m.taint()
}

// bulk returns a RESP bulk string with its framing; nil becomes the null bulk string.
func bulk(b []byte) string {
	if b == nil {
		return "$-1\r\n"
	}
	return fmt.Sprintf("$%d\r\n%s\r\n", len(b), b)
}

// array returns a RESP array of bulk strings with its framing.
func array(items ...[]byte) string {
	s := fmt.Sprintf("*%d\r\n", len(items))
	for _, it := range items {
		s += bulk(it)
	}
	return s
}

func integer(n int64) string { return fmt.Sprintf(":%d\r\n", n) }

// raw expects a reply that consists of exactly these bytes.
func (m *gearmonkey) raw(p *mPeer, rule string, want string) *expectation {
	return m.expect(p.conn, codec.RuleID(rule), fmt.Sprintf("%.80q", want), func(f *codec.Frame) error {
		if string(f.Raw) != want {
			return wrong("expected %.80q", want)
		}
		return nil
	})
}

// any expects a reply with unknown content, and records that the state is unknown.
func (m *gearmonkey) any(p *mPeer, rule codec.RuleID) {
	m.taint()
	m.expect(p.conn, rule, "a reply", func(*codec.Frame) error { return nil })
}

// event expects a published message on the connection of a subscriber. The message may arrive between replies.
func (m *gearmonkey) event(p *mPeer, want string) {
	m.expect(p.conn, "gearmonkey.server.delivers", fmt.Sprintf("%.80q", want), func(f *codec.Frame) error {
		if string(f.Raw) != want {
			return notMine
		}
		return nil
	})
}

// State implements Model: it counts the keys by their kind, which is the part of the name before the first colon, the
// elements of the longest list and the largest sorted set, the keys that expire, subscriptions, waiting clients and
// loaded scripts. The state of a connection is that of all.
func (m *gearmonkey) State(int) uint64 {
	h := uint64(0xcbf29ce484222325)
	var lists, scores, expiring, subscribed int
	kinds := map[string]int{}
	for k, v := range m.keys {
		kind, _, _ := strings.Cut(k, ":")
		kinds[kind]++
		lists = max(lists, len(v.list))
		scores = max(scores, len(v.scores))
		if v.until > 0 {
			expiring++
		}
	}
	for _, p := range m.peers {
		subscribed += len(p.channels)
	}
	for _, n := range []int{len(m.keys), lists, scores, expiring, subscribed, len(m.waiting), len(m.scripts)} {
		h = mixHash(h, class(n))
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		h = mixHash(h, uint64(kind[0])+class(kinds[kind])<<8)
	}
	return h
}
