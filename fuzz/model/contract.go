package model

import (
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// contract is the model of a protocol that has no model of its own. It knows only what the contract declares: which
// messages answer a request. It reports requests that are not answered, and allows all other messages.
type contract struct {
	expectations
	seen map[codec.Effect]int // number of messages, by their effect
}

func newContract(p *codec.Protocol, quirks map[Quirk]bool) Model {
	return &contract{expectations: newExpectations(p, quirks), seen: map[codec.Effect]int{}}
}

func (m *contract) Opened(conn int) { m.opened(conn) }

// Garbled implements Model. The bytes of one connection do not change which requests of the others are answered.
func (m *contract) Garbled(conn int) { m.unchecked[conn] = true }

func (m *contract) Illegal(conn int, _ *codec.Frame, _ *codec.Error) bool {
	m.Garbled(conn)
	return false
}

func (m *contract) Blocked(int) bool { return false }

func (m *contract) Closed(conn int) {
	m.opened(conn)
	m.unchecked[conn] = true
}

// Gone implements Model: the contract does not say when a server may close a connection.
func (m *contract) Gone(conn int) error {
	m.Closed(conn)
	return nil
}

func (m *contract) Elapsed(d time.Duration) {
	m.step++
	m.now += d
}

func (m *contract) CheckMissing() error { return m.checkMissing() }

// Sent implements Model: it expects a reply to a request that has one. The reply to a request that blocks may come
// later, and with ordered replies, so may the replies after it.
func (m *contract) Sent(conn int, f *codec.Frame) {
	m.step++
	m.seen[m.p.Behavior(f).Does]++
	t := f.Type
	if len(t.Answers) == 0 || m.unchecked[conn] {
		return
	}
	names := make([]string, len(t.Answers))
	for i, a := range t.Answers {
		names[i] = a.Label()
	}
	if t.Does == codec.Leave || f.Blocks() || m.p.Behavior(f) != t ||
		slices.ContainsFunc(t.Answers, func(a *codec.Type) bool { return a.Push }) {
		if t.Ordered {
			m.unchecked[conn] = true
		}
		return
	}
	m.expect(conn, m.p.Answered, strings.Join(names, " or ")+" in reply to "+t.Name, func(r *codec.Frame) error {
		if slices.Contains(t.Answers, r.Type) || r.Type.Does == codec.Refuse {
			return nil
		}
		return notMine
	})
}

// Received implements Model: a message that is not a reply may have another cause.
func (m *contract) Received(conn int, f *codec.Frame) error {
	m.seen[m.p.Behavior(f).Does]++
	_ = m.received(conn, f)
	return nil
}

// State implements Model: it counts the messages with each effect, on all connections.
func (m *contract) State(int) uint64 {
	h := uint64(0xcbf29ce484222325)
	for does := codec.NoEffect; does <= codec.Published; does++ {
		h = mixHash(h, class(m.seen[does]))
	}
	return h
}
