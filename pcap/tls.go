package pcap

import "jobwire/pcap/decrypt"

// secured is the state of a TLS connection that is being decrypted. The decrypted data replaces the captured
// bytes.
type secured struct {
	conn    *decrypt.Conn
	proved  bool    // the keys are known
	over    bool    // the connection cannot be decrypted
	waiting []chunk // all bytes, until the keys are known
	size    int     // bytes of waiting
	turn    [2]turn // the value of Conn.turn where the next record of an end begins
}

// active reports whether the bytes of a connection are passed to its decryption.
func (s *secured) active() bool { return s != nil && !s.over }

// service is the key of a server's protocol. Data that was decrypted may have another protocol than the
// captured bytes.
type service struct {
	endpoint
	network   uint64
	decrypted bool
}

func (c *Conn) service(end int) service {
	return service{c.ends[end], c.network, c.tls.active() && c.tls.proved}
}

// hello reports whether an end begins with a ClientHello that could be decrypted.
func (d *Decoder) hello(c *Conn, b []byte) bool {
	return c.tls == nil && !d.opts.Keys.Empty() && len(b) > 5 && b[0] == 22 && b[1] == 3 && b[5] == 1
}

// secure begins to decrypt a connection if it is TLS and there are key logs. It returns false otherwise.
func (d *Decoder) secure(c *Conn) bool {
	if c.Protocol != TLS || c.tls != nil || d.opts.Keys.Empty() {
		return false
	}
	c.tls = &secured{conn: decrypt.NewConn(d.opts.Keys)}
	return true
}

// beginsSecure begins to decrypt a connection whose TCP handshake is missing and whose first
// captured data is a ClientHello. If the keys decrypt the data, this is the beginning of the
// connection.
func (d *Decoder) beginsSecure(c *Conn, end int, b []byte) {
	if c.search == nil && !c.half[0].lost && !c.half[1].lost || !d.hello(c, b) {
		return
	}
	c.search, c.Uncertain = nil, false
	for end := range c.half {
		c.half[end].lost, c.half[end].start, c.half[end].guess = false, false, false
	}
	c.settle(int8(1 - end))
	d.adopt(c, TLS)
	d.secure(c)
}

// secured decrypts the next bytes of a TLS connection, or a gap in them.
func (d *Decoder) secured(c *Conn, w *chunk) {
	s, side := c.tls, int(c.side(w.end))
	if !s.proved {
		d.probe(c, w)
		return
	}
	pending := s.conn.Buffered(side)
	if w.missing > 0 {
		s.conn.Lose(side, w.missing)
		d.interruptSecured(c, w.end, w.missing, w.frame, w.at)
	} else {
		if pending == 0 {
			s.turn[w.end] = c.turn
		}
		s.conn.Decrypt(side, w.data, func(plain []byte, failed int) {
			if failed > 0 {
				d.stats.Gaps++
				d.stats.Missing += int64(failed)
				d.interruptSecured(c, w.end, failed, w.frame, w.at)
				return
			}
			if c.Protocol == TLS {
				c.Protocol, c.decided = nil, false
			}
			c.turn, s.turn[w.end] = s.turn[w.end], noTurn
			d.flow(c, w.end, plain, w.frame, w.at)
		})
	}
	d.buffered += s.conn.Buffered(side) - pending
	if n := s.conn.Buffered(side); n > 0 && d.buffered > maxBuffered {
		d.stats.GivenUp++
		d.buffered -= n
		s.conn.Lose(side, 0)
		d.interruptSecured(c, w.end, n, w.frame, w.at)
	}
}

// probe keeps the next bytes of a connection until its keys are known, and then decrypts them.
func (d *Decoder) probe(c *Conn, w *chunk) {
	s := c.tls
	kept := *w
	kept.turn, kept.data = c.turn, append([]byte(nil), w.data...)
	s.waiting = append(s.waiting, kept)
	s.size += len(kept.data)
	d.buffered += len(kept.data)
	side := int(c.side(w.end))
	if w.missing > 0 {
		s.conn.Lose(side, w.missing)
		return
	}
	proved, err := s.conn.Probe(side, w.data)
	switch {
	case err != nil:
		d.giveUpSecured(c, err.Error())
	case proved:
		s.proved = true
		d.stats.Decrypted++
		for _, w := range d.release(s) {
			c.turn = w.turn
			d.secured(c, &w)
		}
	case s.size > maxEarlyBytes || len(s.waiting) > maxEarly || d.buffered > maxBuffered:
		d.giveUpSecured(c, noKeys)
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
func (d *Decoder) giveUpSecured(c *Conn, reason string) {
	c.tls.over = true
	if d.stats.Undecrypted == nil {
		d.stats.Undecrypted = map[string]int{}
	}
	d.stats.Undecrypted[reason]++
	waiting := d.release(c.tls)
	c.tls.conn = nil
	for _, w := range waiting {
		if w.missing > 0 {
			d.lose(c, w.end, w.missing, w.frame, w.at)
		} else {
			d.unread(c, w.end, w.data, w.frame, w.frame, w.at, false)
		}
	}
}

// finishSecured ends the decryption of a direction.
func (d *Decoder) finishSecured(c *Conn, end int) {
	switch s := c.tls; {
	case !s.active():
	case !s.proved:
		d.probe(c, &chunk{end: end}) // the key log may contain the keys by now
		if s.active() && !s.proved {
			d.giveUpSecured(c, noKeys)
		}
	default:
		n := s.conn.Buffered(int(c.side(end)))
		s.conn.Lose(int(c.side(end)), 0)
		d.buffered -= n
	}
}

// interruptSecured processes a gap of n bytes in an encrypted stream. The length of the decrypted data in the
// gap is unknown, so the message before the gap does not show where the next message begins.
func (d *Decoder) interruptSecured(c *Conn, end, n, frame int, at int64) {
	d.cutOff(c, end, frame, at)
	c.half[end].skip = 0
	d.interrupt(c, end, n, frame, at)
}
