package gearmonkey

import (
	"slices"
	"strings"
)

// transaction is the state after MULTI. At EXEC the commands are executed one by one, as if they
// arrived then, so they may include commands that are implemented here. miniredis handles only the
// watched keys.
type transaction struct {
	queued [][]string
	failed bool
}

func (t *transaction) queue(c *call) {
	t.queued = append(t.queued, slices.Clone(c.words))
	c.out = append(c.out, "+QUEUED\r\n"...)
}

func multi(c *call) {
	if c.peer.tx != nil {
		c.fail("ERR MULTI calls can not be nested")
		return
	}
	c.peer.tx = &transaction{}
	c.ok()
}

func watch(c *call) {
	if c.peer.tx != nil {
		c.fail("ERR WATCH inside MULTI is not allowed")
		return
	}
	c.again()
}

// endTransaction discards the queued commands and the watched keys.
func (p *peer) endTransaction(c *call) {
	p.tx = nil
	c.ask("UNWATCH")
}

func discard(c *call) {
	if c.peer.tx == nil {
		c.fail("ERR DISCARD without MULTI")
		return
	}
	c.peer.endTransaction(c)
	c.ok()
}

// exec handles EXEC: it executes the queued commands of the transaction and replies with an array of their replies. The
// reply is null if a watched key has changed, and an error if a command could not be queued.
func exec(c *call) {
	p, tx := c.peer, c.peer.tx
	if tx == nil {
		c.fail("ERR EXEC without MULTI")
		return
	}
	if tx.failed {
		p.endTransaction(c)
		c.fail("EXECABORT Transaction discarded because of previous errors.")
		return
	}
	// An empty transaction in miniredis shows whether a watched key has changed.
	p.tx = nil
	c.ask("MULTI")
	if strings.HasPrefix(c.ask("EXEC"), "*-1") {
		c.out = append(c.out, null("*-1\r\n", p.resp3)...)
		return
	}
	c.header('*', int64(len(tx.queued)))
	for _, words := range tx.queued {
		q := &call{m: c.m, peer: p, state: p.state, words: words, exec: true, out: c.out}
		q.run()
		c.out = q.out
	}
}
