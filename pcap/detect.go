package pcap

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"jobwire/codec"
)

// Limits of the data that is kept until the protocol of a connection is decided.
const (
	maxEarly      = 1024     // segments
	maxEarlyBytes = 32 << 10 // bytes
	maxLine       = codec.DefaultMaxLine
)

// decide tries to recognize the protocol of a connection. If it succeeds, it decodes the data so far.
func (h *half) decide(b []byte, at position) {
	c, d := h.c, h.c.d
	if len(c.early) == 0 && (!h.lost || d.opts.guesses()) && h.recognize(b) {
		h.read(b, at)
		return
	}
	c.early = append(c.early, chunk{h: h, data: bytes.Clone(b), at: at, turn: c.turn})
	d.buffered += len(b)
	size := 0
	var all []byte // all data that this end has sent
	for i := range c.early {
		e := &c.early[i]
		size += len(e.data)
		if e.h == h {
			all = append(all, e.data...)
		}
	}
	switch {
	case !h.lost && h.recognize(all), c.recognizeMessages(), h.recognizeDirection():
		c.replay()
	case h.lost:
		c.searchOn()
	case len(c.early) > maxEarly || size > maxEarlyBytes || d.buffered > maxBuffered:
		c.giveUpDeciding()
		c.search = &search{}
	}
}

// searchOn skips the data so far, except for the last chunk, and searches for a message boundary.
func (c *conn) searchOn() {
	early := c.early
	c.early, c.search = nil, &search{}
	for i := range early {
		c.d.buffered -= len(early[i].data)
		if i < len(early)-1 {
			c.skip(&early[i])
		}
	}
	c.seek(&early[len(early)-1])
}

// replay decodes the data that was kept until the protocol was decided.
func (c *conn) replay() {
	early := c.early
	c.early = nil
	for i := range early {
		e := &early[i]
		c.d.buffered -= len(e.data)
		if e.missing > 0 {
			e.h.lose(e.missing, e.at)
		} else {
			c.pass(e)
		}
	}
}

// giveUpDeciding passes on the data as bytes of an unknown protocol.
func (c *conn) giveUpDeciding() {
	if c.decided || c.ID == 0 || c.search != nil {
		return
	}
	c.decided, c.shown = true, true
	c.settleLikely(nil)
	c.d.stats.Unknown++
	c.replay()
}

// recognize chooses a protocol if the bytes that an end has sent are unambiguous.
func (h *half) recognize(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	c := h.c
	if p := c.d.opts.Protocol; p != nil && !c.hello(b) {
		m, from, sided := begins(p, b, false)
		h.settle(p, from, m == codec.Matches && sided)
		c.adopt(p)
		return true
	}
	for _, p := range recognized() {
		m, from, sided := begins(p, b, false)
		if m != codec.Matches {
			continue
		}
		h.settle(p, from, sided)
		if sided && h.side() != from && b[0] != 0 {
			continue // the text belongs to the other side
		}
		c.adopt(p)
		c.remember(b)
		return true
	}
	return false
}

// recognizeMessages chooses a protocol if both ends have sent whole messages of it, and if it is the protocol of
// other connections to the same server, or one whose users configure the magic bytes.
func (c *conn) recognizeMessages() bool {
	if c.Uncertain {
		return false
	}
	s := search{chunks: c.early}
	if p, server := c.knownOf(); p != nil && s.fits(p, server, true, nil) == codec.Matches {
		c.settle(server)
		c.adopt(p)
		return true
	}
	return c.server != unknown && c.adoptFitting(&s, true)
}

// recognizeDirection chooses a protocol if an end has sent messages from the first byte on, one of which belongs to
// only one protocol, and the messages of the other end were not captured.
func (h *half) recognizeDirection() bool {
	c := h.c
	if c.server == unknown || h.lost || !h.other().lost {
		return false
	}
	var s search
	s.whole[1-h.end] = true // no messages of the other end are needed
	for i := range c.early {
		if c.early[i].h == h {
			s.chunks = append(s.chunks, c.early[i])
		}
	}
	return c.adoptFitting(&s, false)
}

// adoptFitting chooses the first protocol, of those whose users configure the magic bytes or of the others, that fits s.
func (c *conn) adoptFitting(s *search, anyMagic bool) bool {
	for _, p := range codec.Protocols() {
		if p.AnyMagic == anyMagic && s.fits(p, c.server, false, nil) == codec.Matches {
			c.adopt(p)
			return true
		}
	}
	return false
}

const maxKnown = 1 << 10 // servers

// remember records the protocol of a server if it is certain: the connection has its beginning, or the protocol
// is binary.
func (c *conn) remember(b []byte) {
	if (!c.Uncertain || b[0] == 0) && len(c.d.known) < maxKnown {
		c.d.known[c.service(c.server)] = c.Protocol
	}
}

// knownOf returns the protocol that remember has recorded for one of the ends, and the index of that end, which
// is the server.
func (c *conn) knownOf() (*codec.Protocol, int8) {
	for end := range int8(2) {
		if p := c.d.known[c.service(end)]; p != nil && (c.server == unknown || c.server == end) {
			return p, end
		}
	}
	return nil, unknown
}

// expected returns the protocol that the connection has, that the user has specified or that its server has on other
// connections, or nil.
func (c *conn) expected() *codec.Protocol {
	p, _ := c.knownOf()
	return cmp.Or(c.Protocol, c.d.opts.Protocol, p)
}

// settle determines which end is the server if that is unknown: by the side that sent the recognized message,
// or otherwise by the ports.
func (h *half) settle(p *codec.Protocol, is codec.Side, sided bool) {
	switch c := h.c; {
	case c.server != unknown:
	case !sided:
		c.settleLikely(p)
	case is == codec.Server:
		c.settle(h.end)
	default:
		c.settle(1 - h.end)
	}
}

// settleLikely determines which end is the server by the ports, if that is unknown.
func (c *conn) settleLikely(p *codec.Protocol) {
	if c.server == unknown {
		c.settle(c.likelyServer(p))
	}
}

// likelyServer returns the end that is probably the server, according to the ports.
func (c *conn) likelyServer(p *codec.Protocol) int8 {
	ends := &c.tcp.Ends
	for _, port := range c.d.opts.Ports {
		for i := range ends {
			if ends[i].Port == port {
				return int8(i)
			}
		}
	}
	for i := range ends {
		if p != nil && int(ends[i].Port) == p.DefaultPort {
			return int8(i)
		}
	}
	return 0 // the end with the lower port
}

// adopt sets the protocol of a connection and starts to decode it. A TLS connection is only counted. For a connection
// whose beginning is not captured, it waives the rules that need earlier messages.
func (c *conn) adopt(p *codec.Protocol) {
	c.decided, c.Protocol, c.monitor = true, p, nil
	c.Role = codec.Role(1<<len(p.Roles) - 1)
	if p.NewSession == nil {
		c.d.stats.TLS++
		return
	}
	o := codec.Options{MaxData: dataLimit(p)}
	if c.Uncertain {
		o.Waive = p.Unpaired
	}
	c.session = p.NewSession(o)
}

// TLS is the protocol of encrypted connections. It has no message types.
var TLS = &codec.Protocol{Name: "tls", Title: "TLS", ServerName: "Server", Roles: []string{"Client"},
	Recognition: codec.Recognition{Begins: beginsTLS}}

// recognized returns the protocols that are recognized by their bytes, in the order in which they are tried.
func recognized() []*codec.Protocol { return append([]*codec.Protocol{TLS}, codec.Protocols()...) }

// begins reports whether b begins with a message of a protocol, and which side sent it if only one side can
// have sent it.
func begins(p *codec.Protocol, b []byte, resumed bool) (m codec.Match, from codec.Side, sided bool) {
	peer, server := p.Begins(codec.Peer, b, nil, resumed), p.Begins(codec.Server, b, nil, resumed)
	if server > peer {
		return server, codec.Server, true
	}
	return peer, codec.Peer, peer > server
}

// beginsTLS reports whether b begins with a record of SSL 3 to TLS 1.3: a handshake, an alert or data.
func beginsTLS(from codec.Side, b, _ []byte, _ bool) codec.Match {
	switch {
	case b[0] < 20 || b[0] > 23 || len(b) > 1 && b[1] != 3 || len(b) > 2 && b[2] > 4:
		return codec.NoMatch
	case len(b) < 6:
		return codec.MayMatch
	case binary.BigEndian.Uint16(b[3:]) > 1<<14+2048:
		return codec.NoMatch
	}
	const handshake, clientHello, serverHello = 22, 1, 2
	if b[0] == handshake && (b[5] == clientHello && from == codec.Server || b[5] == serverHello && from == codec.Peer) {
		return codec.NoMatch
	}
	return codec.Matches
}
