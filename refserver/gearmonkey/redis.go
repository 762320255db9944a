package gearmonkey

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/alicebob/miniredis/v2/server"
)

// side is a peer of miniredis without a connection. It passes commands to miniredis and collects their replies
// in its buffer.
type side struct {
	peer *server.Peer
	buf  bytes.Buffer
	w    *bufio.Writer
}

// startMiniredis prepares miniredis to execute commands. miniredis can only be started with a connection, which
// startMiniredis closes at once; that ends the last goroutine.
func (m *Machine) startMiniredis() {
	nc, err := m.redis.Dial()
	if err != nil {
		panic(err) // without a listener, nothing can fail
	}
	nc.Close()
	m.redis.Server().Close()
	m.redis.Server().SetPreHook(m.scripted)
	m.redis.SetTime(m.epoch)
}

// newState returns the state that miniredis keeps for a connection: its database and watched keys.
func (m *Machine) newState() any {
	s := m.side()
	defer m.free(s)
	s.peer.Ctx = nil
	m.redis.Server().Dispatch(s.peer, []string{"SELECT", "0"})
	return s.peer.Ctx
}

// side returns a free side, or a new one. The caller returns it with free.
func (m *Machine) side() *side {
	if n := len(m.sides); n > 0 {
		s := m.sides[n-1]
		m.sides = m.sides[:n-1]
		return s
	}
	s := &side{}
	s.w = bufio.NewWriterSize(&s.buf, 512)
	s.peer = server.NewPeer(s.w)
	s.peer.ClientName = sideMark
	return s
}

// free makes a side available for the next command. It releases a buffer of more than 1 MiB, so that one large reply
// does not occupy memory forever.
func (m *Machine) free(s *side) {
	s.w.Flush()
	s.peer.Ctx = nil
	if s.buf.Cap() > 1<<20 {
		s.buf = bytes.Buffer{}
	}
	s.buf.Reset()
	m.sides = append(m.sides, s)
}

// sideMark marks sides, to distinguish them from the peers that miniredis creates for scripts.
const sideMark = "\x00"

// scripted is called by miniredis before every command. Commands that a script calls are executed here, like
// all others.
func (m *Machine) scripted(p *server.Peer, name string, args ...string) bool {
	if p.ClientName == sideMark {
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

// toMiniredis executes a command in miniredis and appends its reply.
func (c *call) toMiniredis(words ...string) {
	s := c.replied(words)
	c.out = append(c.out, s.buf.Bytes()...)
	c.m.free(s)
}

// ask executes a command in miniredis and returns its reply.
func (c *call) ask(words ...string) string {
	s := c.replied(words)
	defer c.m.free(s)
	return s.buf.String()
}

// replied executes a command in miniredis and returns the side with its reply.
func (c *call) replied(words []string) *side {
	s := c.m.side()
	s.peer.Ctx, s.peer.Resp3 = c.state, c.resp3()
	c.dispatch(s, words)
	s.w.Flush()
	return s
}

// dispatch recovers from panics of miniredis, for example for a script that returns a function. Within scripts,
// Lua recovers from them.
func (c *call) dispatch(s *side, words []string) {
	defer func() {
		if c.script {
			return
		}
		if r := recover(); r != nil {
			c.m.redis.TryLock() // the panic may have occurred with or without the lock
			c.m.redis.Unlock()
			s.w.Reset(&s.buf)
			s.buf.Reset()
			s.peer.WriteError(fmt.Sprint("ERR internal error: ", r))
		}
	}()
	c.m.redis.Server().Dispatch(s.peer, words)
}
