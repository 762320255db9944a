package pcap

import (
	"bytes"

	"jobwire/codec"
)

// Limits of the data that is kept until the protocol of a connection is decided.
const (
	maxEarly      = 1024     // segments
	maxEarlyBytes = 32 << 10 // bytes
	maxLine       = codec.DefaultMaxLine
)

// decide tries to recognize the protocol of a connection. If it succeeds, it decodes the data so far.
func (d *Decoder) decide(c *Conn, end int, b []byte, frame int, at int64) {
	if len(c.early) == 0 && (!c.half[end].lost || d.opts.guesses()) && d.recognize(c, end, b) {
		d.read(c, end, b, frame, at)
		return
	}
	c.early = append(c.early, chunk{end: end, data: bytes.Clone(b), frame: frame, at: at, turn: c.turn})
	d.buffered += len(b)
	size := 0
	var all []byte // all data that this end has sent
	for i := range c.early {
		e := &c.early[i]
		size += len(e.data)
		if e.end == end {
			all = append(all, e.data...)
		}
	}
	switch {
	case !c.half[end].lost && d.recognize(c, end, all), d.recognizeMessages(c), d.recognizeDirection(c, end):
		d.replay(c)
	case c.half[end].lost:
		d.searchOn(c)
	case len(c.early) > maxEarly || size > maxEarlyBytes || d.buffered > maxBuffered:
		d.giveUpDeciding(c)
		c.search = &search{}
	}
}

// searchOn skips the data so far, except for the last chunk, and searches for a message boundary.
func (d *Decoder) searchOn(c *Conn) {
	early := c.early
	c.early, c.search = nil, &search{}
	for i := range early {
		d.buffered -= len(early[i].data)
		if i < len(early)-1 {
			d.skip(c, &early[i])
		}
	}
	d.seek(c, &early[len(early)-1])
}

// replay decodes the data that was kept until the protocol was decided.
func (d *Decoder) replay(c *Conn) {
	early := c.early
	c.early = nil
	for i := range early {
		e := &early[i]
		d.buffered -= len(e.data)
		if e.missing > 0 {
			d.lose(c, e.end, e.missing, e.frame, e.at)
		} else {
			d.pass(c, e)
		}
	}
}

// giveUpDeciding passes on the data as bytes of an unknown protocol.
func (d *Decoder) giveUpDeciding(c *Conn) {
	if c.decided || c.ID == 0 || c.search != nil {
		return
	}
	c.decided = true
	if c.server == unknown {
		c.settle(d.likelyServer(c, nil))
	}
	c.shown = true
	d.stats.Unknown++
	d.replay(c)
}

// recognize chooses a protocol if the bytes that an end has sent are unambiguous.
func (d *Decoder) recognize(c *Conn, end int, b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if c.server == unknown && len(d.opts.Ports) > 0 {
		c.settle(d.likelyServer(c, nil))
	}
	if p := d.opts.Protocol; p != nil && !d.hello(c, b) {
		m, from, sided := begins(p, b, false)
		d.settle(c, p, end, from, m == codec.Matches && sided)
		d.adopt(c, p)
		return true
	}
	for _, p := range recognized() {
		m, from, sided := begins(p, b, false)
		if m != codec.Matches {
			continue
		}
		d.settle(c, p, end, from, sided)
		if sided && c.side(end) != from && b[0] != 0 {
			continue // the text belongs to the other side
		}
		d.adopt(c, p)
		d.remember(c, b)
		return true
	}
	return false
}

// recognizeMessages chooses a protocol if both ends have sent whole messages of it, and if it is the protocol of
// other connections to the same server, or one whose users configure the magic bytes.
func (d *Decoder) recognizeMessages(c *Conn) bool {
	if c.Uncertain {
		return false
	}
	s := search{chunks: c.early}
	if p, server := d.knownOf(c); p != nil && s.fits(p, server, true, nil) == codec.Matches {
		c.settle(server)
		d.adopt(c, p)
		return true
	}
	for _, p := range codec.Protocols() {
		if p.AnyMagic && c.server != unknown && s.fits(p, c.server, false, nil) == codec.Matches {
			d.adopt(c, p)
			return true
		}
	}
	return false
}

// recognizeDirection chooses a protocol if an end has sent messages from the first byte on, one of which belongs to
// only one protocol, and the messages of the other end were not captured.
func (d *Decoder) recognizeDirection(c *Conn, end int) bool {
	if c.server == unknown || c.half[end].lost || !c.half[1-end].lost {
		return false
	}
	var s search
	s.whole[1-end] = true // no messages of the other end are needed
	for i := range c.early {
		if c.early[i].end == end {
			s.chunks = append(s.chunks, c.early[i])
		}
	}
	for _, p := range codec.Protocols() {
		if !p.AnyMagic && s.fits(p, c.server, false, nil) == codec.Matches {
			d.adopt(c, p)
			return true
		}
	}
	return false
}

const maxKnown = 1 << 10 // servers

// remember records the protocol of a server if it is certain: the connection has its beginning, or the protocol
// is binary.
func (d *Decoder) remember(c *Conn, b []byte) {
	if (!c.Uncertain || b[0] == 0) && len(d.known) < maxKnown {
		d.known[c.service(int(c.server))] = c.Protocol
	}
}

// knownOf returns the protocol that remember has recorded for one of the ends, and the index of that end, which
// is the server.
func (d *Decoder) knownOf(c *Conn) (*codec.Protocol, int8) {
	for end := range c.ends {
		if p := d.known[c.service(end)]; p != nil && (c.server == unknown || c.server == int8(end)) {
			return p, int8(end)
		}
	}
	return nil, unknown
}

// settle determines which end is the server if that is unknown: by the side that sent the recognized message,
// or otherwise by the ports.
func (d *Decoder) settle(c *Conn, p *codec.Protocol, end int, is codec.Side, sided bool) {
	switch {
	case c.server != unknown:
	case !sided:
		c.settle(d.likelyServer(c, p))
	case is == codec.Server:
		c.settle(int8(end))
	default:
		c.settle(int8(1 - end))
	}
}

// likelyServer returns the end that is probably the server, according to the ports.
func (d *Decoder) likelyServer(c *Conn, p *codec.Protocol) int8 {
	for _, port := range d.opts.Ports {
		for i := range c.ends {
			if c.ends[i].port == port {
				return int8(i)
			}
		}
	}
	for i := range c.ends {
		if p != nil && int(c.ends[i].port) == p.DefaultPort {
			return int8(i)
		}
	}
	return 0 // the end with the lower port
}

func (d *Decoder) adopt(c *Conn, p *codec.Protocol) {
	c.decided, c.Protocol, c.monitor = true, p, nil
	c.Role = codec.Role(1<<len(p.Roles) - 1)
	if p.NewSession == nil {
		d.stats.TLS++
		return
	}
	o := codec.Options{MaxData: dataLimit(p)}
	if c.Uncertain {
		o.Waive = p.Unpaired
	}
	c.session = p.NewSession(o)
}
