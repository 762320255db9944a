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
	conn      *refserver.Conn
	session   codec.Session // decodes replies into messages
	state     any           // of miniredis: the database and the watched keys
	db        int
	resp3     bool
	name      string
	tx        *transaction // set after MULTI
	wait      *wait        // the command that waits, or nil
	replyMode replyMode
	leaving   bool // set after QUIT
	loggedIn  bool // only used if the server requires a login

	channels, patterns subscriptions
}

// replyMode is the setting of CLIENT REPLY.
type replyMode uint8

const (
	replyOn replyMode = iota
	skip              // skip the reply to the next command
	skipping
	silence
)

// errorReply is the message type of errors.
var errorReply = gearmonkey.Protocol.TypeNamed("error")

// execute executes a command, or queues it after MULTI, and sends the reply.
func (p *peer) execute(m *Machine, words []string) {
	c := &call{m: m, peer: p, state: p.state, words: words}
	if p.replyMode == skip {
		p.replyMode = skipping
	}
	switch text := c.find(); {
	case text != "":
		p.abort(c, text)
	case p.subscribes() && !p.resp3 && c.command.flags&subscribed == 0:
		p.abort(c, "ERR Can't execute '"+c.command.name+"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	case p.tx != nil && c.command.flags&atOnce == 0:
		p.tx.queue(c)
	default:
		c.run()
	}
	if p.replyMode == replyOn && !c.silent {
		p.send(m, c.out)
	}
	if p.replyMode == skipping {
		p.replyMode = replyOn
	}
	if p.leaving {
		p.conn.Close()
	}
}

// abort replies to a command that is not executed, and makes the transaction fail.
func (p *peer) abort(c *call, text string) {
	if p.tx == nil {
		c.fail(text)
		return
	}
	p.tx.failed = true
	if c.command != nil && c.command.name == "exec" {
		p.endTransaction(c)
		text = "EXECABORT Transaction discarded because of: " + text[len("ERR "):]
	}
	c.fail(text)
}

// send sends replies that are encoded in Redis's protocol.
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
	m.frame.Reset(codec.Server) // the reply may be large
	clear(m.message.Args)
}

// answer sends the reply to a command that has waited.
func (p *peer) answer(m *Machine, b []byte) {
	if p.replyMode == replyOn {
		p.send(m, b)
	}
}

// words splits a request into its words. Each has its own memory, because miniredis keeps the names of keys. A
// request that a fault made unreadable has no words.
func words(dst []string, raw []byte) []string {
	if len(raw) > 0 && raw[0] != '*' {
		return inlineWords(dst, string(bytes.TrimRight(raw, "\r\n")))
	}
	count, at := numberLine(raw)
	for range count {
		n, used := numberLine(raw[at:])
		at += used
		if used == 0 || at+n > len(raw) {
			return nil
		}
		dst = append(dst, string(raw[at:at+n]))
		at = min(at+n+len("\r\n"), len(raw))
	}
	return dst
}

// maxSize limits a number to which numberLine adds a digit, so that the result fits into an int of 32 bits. The codec rejects
// longer strings and arrays.
const maxSize = 1 << 27

// numberLine reads the number between a type byte and the end of its line, and returns the length of that line, or 0
// if there is no number.
func numberLine[S []byte | string](s S) (n, lineLen int) {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9' && n <= maxSize:
			n = 10*n + int(c-'0')
		case c == '\r' && i > 1:
			return n, i + len("\r\n")
		default:
			return 0, 0
		}
	}
	return 0, 0
}
