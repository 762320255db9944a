package gearmonkey

import (
	"bytes"
	"errors"

	"jobwire/codec"
	"jobwire/codec/gearmonkey"
	"jobwire/refserver"
)

// peer is one connection.
type peer struct {
	conn    *refserver.Conn
	session codec.Session // reads what we send: replies become messages
	state   any           // miniredis's: the database and the watched keys
	db      int
	resp3   bool
	name    string
	tx      *transaction // behind MULTI
	wait    *wait        // what it waits for
	mute    mute
	leaving bool // behind QUIT

	channels, patterns subscriptions
}

// mute is how much is said to a peer (CLIENT REPLY).
type mute uint8

const (
	speak mute = iota
	skip       // all but the reply to the next command
	skipping
	silence
)

// errorReply is the row of errors.
var errorReply = gearmonkey.Protocol.TypeNamed("error")

// execute executes a command, or queues it behind MULTI, and sends the reply.
func (p *peer) execute(m *Machine, words []string) {
	c := &call{m: m, peer: p, state: p.state, words: words}
	if p.mute == skip {
		p.mute = skipping
	}
	switch text := c.find(); {
	case text != "":
		p.abort(c, text)
	case p.subscribes() && !p.resp3 && c.row.flags&subscribed == 0:
		p.abort(c, "ERR Can't execute '"+c.row.name+"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	case p.tx != nil && c.row.flags&atOnce == 0:
		p.tx.queue(c)
	default:
		c.run()
	}
	if p.mute == speak && !c.silent {
		p.send(m, c.out)
	}
	if p.mute == skipping {
		p.mute = speak
	}
	if p.leaving {
		p.conn.Close()
	}
}

// abort answers a command that is not executed. A transaction is spoilt by it.
func (p *peer) abort(c *call, text string) {
	if p.tx == nil {
		c.fail(text)
		return
	}
	p.tx.spoilt = true
	if c.row != nil && c.row.name == "exec" {
		p.endTransaction(c)
		text = "EXECABORT Transaction discarded because of: " + text[len("ERR "):]
	}
	c.fail(text)
}

// send sends what has been written in Redis's notation.
func (p *peer) send(m *Machine, b []byte) {
	for len(b) > 0 {
		n, err := p.session.Decode(codec.Server, b, &m.frame)
		if err == nil {
			m.frame.Message(&m.message)
			err = p.conn.Send(m.message.Type, m.message.Args...)
		}
		if broken := (*codec.Error)(nil); errors.As(err, &broken) {
			p.conn.Send(errorReply, []byte("ERR"), []byte("the reply is not a valid message: "+broken.Detail))
		}
		if n == 0 {
			return
		}
		b = b[n:]
	}
}

// answer sends the reply to a command that has waited.
func (p *peer) answer(m *Machine, b []byte) {
	if p.mute == speak {
		p.send(m, b)
	}
}

// words cuts a request into its words. Each has memory of its own: miniredis
// keeps the names of keys for good. Of what a fault has made unreadable there
// are none.
func words(dst []string, raw []byte) []string {
	if len(raw) > 0 && raw[0] != '*' {
		return inlineWords(dst, string(bytes.TrimRight(raw, "\r\n")))
	}
	count, at := size(raw)
	for range count {
		n, used := size(raw[at:])
		at += used
		if used == 0 || at+n > len(raw) {
			return nil
		}
		dst = append(dst, string(raw[at:at+n]))
		at = min(at+n+len("\r\n"), len(raw))
	}
	return dst
}

// size reads a number that stands between a type and a line's end, and says how
// long that line is: 0 if it is none.
func size[S []byte | string](s S) (n, used int) {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9' && n <= 1<<32:
			n = 10*n + int(c-'0')
		case c == '\r' && i > 1:
			return n, i + len("\r\n")
		default:
			return 0, 0
		}
	}
	return 0, 0
}
