package pcap

import (
	"jobwire/pcap/decrypt"
	"jobwire/pcap/internal/headers"
	"jobwire/pcap/internal/reassembly"
)

// secured is the state of a TLS connection that is being decrypted. The decrypted data replaces the captured
// bytes.
type secured struct {
	conn    *decrypt.Conn
	proved  bool               // the keys are known
	over    bool               // the connection cannot be decrypted
	waiting []chunk            // all bytes, until the keys are known
	size    int                // bytes of waiting
	turn    [2]reassembly.Turn // the value of conn.turn where the next record of an end begins
}

// active reports whether the bytes of a connection are passed to its decryption.
func (s *secured) active() bool { return s != nil && !s.over }

// service is the key of a server's protocol. Data that was decrypted may have another protocol than the
// captured bytes.
type service struct {
	headers.Endpoint
	network   uint64
	decrypted bool
}

func (c *conn) service(end int8) service {
	return service{c.tcp.Ends[end], c.tcp.Network, c.tls.active() && c.tls.proved}
}

// hello reports whether an end begins with a ClientHello that could be decrypted.
func (c *conn) hello(b []byte) bool {
	return c.tls == nil && !c.d.opts.Keys.Empty() && len(b) > 5 && b[0] == 22 && b[1] == 3 && b[5] == 1
}

// secure begins to decrypt a connection if it is TLS and there are key logs. It returns false otherwise.
func (c *conn) secure() bool {
	if c.Protocol != TLS || c.tls != nil || c.d.opts.Keys.Empty() {
		return false
	}
	c.tls = &secured{conn: decrypt.NewConn(c.d.opts.Keys)}
	return true
}

// beginsSecure begins to decrypt a connection whose TCP handshake is missing and whose first
// captured data is a ClientHello. If the keys decrypt the data, this is the beginning of the
// connection.
func (h *half) beginsSecure(b []byte) {
	c := h.c
	if c.search == nil && !c.half[0].lost && !c.half[1].lost || !c.hello(b) {
		return
	}
	c.search, c.Uncertain = nil, false
	c.half[0].beginsMessage()
	c.half[1].beginsMessage()
	c.settle(1 - h.end)
	c.adopt(TLS)
	c.secure()
}

// secured decrypts the next bytes of a TLS connection, or a gap in them.
func (c *conn) secured(w *chunk) {
	s, d, side := c.tls, c.d, int(w.h.side())
	if !s.proved {
		c.probe(w)
		return
	}
	pending := s.conn.Buffered(side)
	if w.missing > 0 {
		s.conn.Lose(side, w.missing)
		w.h.interruptSecured(w.missing, w.at)
	} else {
		if pending == 0 {
			s.turn[w.h.end] = c.turn
		}
		s.conn.Decrypt(side, w.data, func(plain []byte, failed int) {
			if failed > 0 {
				d.stats.Gaps++
				d.stats.Missing += int64(failed)
				w.h.interruptSecured(failed, w.at)
				return
			}
			if c.Protocol == TLS {
				c.Protocol, c.decided = nil, false
			}
			c.turn, s.turn[w.h.end] = s.turn[w.h.end], reassembly.NoTurn
			w.h.flow(plain, w.at)
		})
	}
	d.buffered += s.conn.Buffered(side) - pending
	if n := s.conn.Buffered(side); n > 0 && d.buffered > maxBuffered {
		d.stats.GivenUp++
		d.buffered -= n
		s.conn.Lose(side, 0)
		w.h.interruptSecured(n, w.at)
	}
}

// probe keeps the next bytes of a connection until its keys are known, and then decrypts them.
func (c *conn) probe(w *chunk) {
	s, d := c.tls, c.d
	kept := *w
	kept.turn, kept.data = c.turn, append([]byte(nil), w.data...)
	s.waiting = append(s.waiting, kept)
	s.size += len(kept.data)
	d.buffered += len(kept.data)
	side := int(w.h.side())
	if w.missing > 0 {
		s.conn.Lose(side, w.missing)
		return
	}
	proved, err := s.conn.Probe(side, w.data)
	switch {
	case err != nil:
		c.giveUpSecured(err.Error())
	case proved:
		s.proved = true
		d.stats.Decrypted++
		for _, w := range d.release(s) {
			c.turn = w.turn
			c.secured(&w)
		}
	case s.size > maxEarlyBytes || len(s.waiting) > maxEarly || d.buffered > maxBuffered:
		c.giveUpSecured(noKeys)
	}
}

// release returns the chunks that waited for the keys, and stops keeping them.
func (d *Decoder) release(s *secured) []chunk {
	waiting := s.waiting
	d.buffered -= s.size
	s.waiting, s.size = nil, 0
	return waiting
}

// noKeys is the reason why a connection without keys is not decrypted.
const noKeys = "the keys are unknown; --tls-keys FILE reads a key log (SSLKEYLOGFILE)"

// giveUpSecured passes on the bytes of a connection without decrypting them, and counts the reason.
func (c *conn) giveUpSecured(reason string) {
	c.tls.over = true
	d := c.d
	if d.stats.Undecrypted == nil {
		d.stats.Undecrypted = map[string]int{}
	}
	d.stats.Undecrypted[reason]++
	waiting := d.release(c.tls)
	c.tls.conn = nil
	for _, w := range waiting {
		if w.missing > 0 {
			w.h.lose(w.missing, w.at)
		} else {
			w.h.unread(w.data, w.at.Frame, w.at)
		}
	}
}

// undecrypted returns the number of TLS connections that were not decrypted, by reason.
func (st *Stats) undecrypted() map[string]int {
	reasons := map[string]int{}
	untried := st.TLS - st.Decrypted
	for reason, n := range st.Undecrypted {
		reasons[reason] += n
		untried -= n
	}
	if untried > 0 {
		reasons[noKeys] += untried
	}
	return reasons
}

// finishSecured ends the decryption of a direction.
func (h *half) finishSecured() {
	switch c, s := h.c, h.c.tls; {
	case !s.active():
	case !s.proved:
		c.probe(&chunk{h: h}) // the key log may contain the keys by now
		if s.active() && !s.proved {
			c.giveUpSecured(noKeys)
		}
	default:
		side := int(h.side())
		c.d.buffered -= s.conn.Buffered(side)
		s.conn.Lose(side, 0)
	}
}

// interruptSecured processes a gap of n bytes in an encrypted stream. The length of the decrypted data in the
// gap is unknown, so the message before the gap does not show where the next message begins.
func (h *half) interruptSecured(n int, at position) {
	h.cutOff(at)
	h.skip = 0
	h.interrupt(n, at)
}
