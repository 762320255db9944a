package gearmonkey

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/alicebob/miniredis/v2/server"
)

// side is a peer of miniredis's that belongs to no connection: commands are
// handed over through it, and their replies end up in its buffer.
type side struct {
	peer *server.Peer
	buf  bytes.Buffer
	w    *bufio.Writer
}

// embed makes miniredis ready to be handed commands. It can only be started with
// a connection, which is ended at once, and with it the last goroutine.
func (m *Machine) embed() {
	nc, err := m.redis.Dial()
	if err != nil {
		panic(err) // without a listener there is nothing that could fail
	}
	nc.Close()
	m.redis.Server().Close()
	m.redis.Server().SetPreHook(m.scripted)
	m.redis.SetTime(m.epoch)
}

// newState returns what miniredis keeps about a connection: its database and
// the keys it watches.
func (m *Machine) newState() any {
	s := m.side()
	defer m.free(s)
	s.peer.Ctx = nil
	m.redis.Server().Dispatch(s.peer, []string{"SELECT", "0"})
	return s.peer.Ctx
}

func (m *Machine) side() *side {
	if n := len(m.sides); n > 0 {
		s := m.sides[n-1]
		m.sides = m.sides[:n-1]
		return s
	}
	s := &side{}
	s.w = bufio.NewWriterSize(&s.buf, 512)
	s.peer = server.NewPeer(s.w)
	s.peer.ClientName = ours
	return s
}

func (m *Machine) free(s *side) {
	s.w.Flush()
	s.peer.Ctx = nil
	if s.buf.Cap() > 1<<20 {
		s.buf = bytes.Buffer{}
	}
	s.buf.Reset()
	m.sides = append(m.sides, s)
}

// ours is how sides are told from the peers that miniredis makes for scripts.
const ours = "\x00"

// scripted is run by miniredis before every command. Those that a script calls
// are executed here, like any other.
func (m *Machine) scripted(p *server.Peer, name string, args ...string) bool {
	if p.ClientName == ours {
		return false
	}
	c := &call{m: m, peer: m.current, state: p.Ctx, words: append([]string{name}, args...), script: true}
	c.run()
	if len(c.out) > 0 && c.out[0] == '-' {
		m.failure = string(bytes.TrimRight(c.out[1:], "\r\n"))
	}
	p.WriteRaw(string(c.out))
	return true
}

// pass hands a command to miniredis and appends its reply.
func (c *call) pass(words ...string) {
	s := c.m.side()
	s.peer.Ctx, s.peer.Resp3 = c.state, c.resp3()
	c.dispatch(s, words)
	s.w.Flush()
	c.out = append(c.out, s.buf.Bytes()...)
	c.m.free(s)
}

// ask hands a command to miniredis and returns its reply.
func (c *call) ask(words ...string) string {
	at := len(c.out)
	c.pass(words...)
	reply := string(c.out[at:])
	c.out = c.out[:at]
	return reply
}

// dispatch survives what miniredis cannot cope with, such as a script that
// returns a function. In scripts Lua does that.
func (c *call) dispatch(s *side, words []string) {
	defer func() {
		if c.script {
			return
		}
		if r := recover(); r != nil {
			c.m.redis.TryLock() // it may have ended with its lock held, or without
			c.m.redis.Unlock()
			s.w.Reset(&s.buf)
			s.buf.Reset()
			s.peer.WriteError(fmt.Sprint("ERR internal error: ", r))
		}
	}()
	c.m.redis.Server().Dispatch(s.peer, words)
}
