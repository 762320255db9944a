package pcap

import (
	"slices"

	"jobwire/codec"
)

// prove reports whether the assumed boundary is a message boundary. If so, it decodes the data after the
// boundary. MayMatch means that more data is needed.
func (c *conn) prove() codec.Match {
	of, known := recognized(), false
	if p := c.expected(); p != nil {
		of, known = []*codec.Protocol{p}, true
	}
	result, server, protocol := codec.NoMatch, unknown, (*codec.Protocol)(nil)
	for _, p := range of {
		f, end := c.fits(p, known)
		switch {
		case f == codec.NoMatch:
		case result != codec.NoMatch: // the data may belong to two protocols
			return codec.MayMatch
		default:
			result, server, protocol = f, end, p
		}
	}
	if result == codec.Matches {
		c.found(protocol, server)
	}
	return result
}

// fits reports whether the data after the assumed boundary can be messages of a protocol, and which end is then
// the server.
func (c *conn) fits(p *codec.Protocol, known bool) (codec.Match, int8) {
	if c.server != unknown {
		return c.search.fits(p, c.server, known, c.first), c.server
	}
	likely := c.likelyServer(p)
	ends := &c.tcp.Ends
	if port := int(ends[likely].Port); port == p.DefaultPort && int(ends[1-likely].Port) != port {
		return c.search.fits(p, likely, known, nil), likely
	}
	if f := c.search.fits(p, likely, known, nil); f != codec.NoMatch {
		return f, likely
	}
	return c.search.fits(p, 1-likely, known, nil), 1 - likely
}

// found decodes the data after a proved boundary.
func (c *conn) found(p *codec.Protocol, server int8) {
	s, d := c.search, c.d
	c.half[0].endScan()
	c.half[1].endScan()
	c.search = nil
	if c.Protocol == nil {
		c.settle(server)
		c.adopt(p)
		if c.shown {
			d.stats.Unknown--
		}
		if len(d.known) < maxKnown {
			d.known[c.service(server)] = p
		}
	} else {
		c.reset() // replies to earlier requests may be in the skipped bytes
	}
	c.showSkipped(s)
	for end := range c.half {
		if h := &c.half[end]; !s.whole[end] {
			h.beginsMessage()
			h.resumed = s.lossy
		}
	}
	for i := range s.chunks {
		w := &s.chunks[i]
		d.buffered -= len(w.data)
		c.turn = w.turn
		switch {
		case len(w.data) == 0:
		case c.search != nil: // decoding a message has shown that the boundary was wrong
			c.seek(w)
		default:
			w.h.read(w.data, w.at)
		}
		if w.fin {
			w.h.finish(true, w.at)
			w.h.closing(Ends, w.at)
		}
	}
}

// fits reports whether the chunks are whole messages of a protocol. known is set if the protocol of the server
// is known, and first is the beginning of the connection's first message, if that is known. MayMatch means that
// there are too few messages to decide.
func (s *search) fits(p *codec.Protocol, server int8, known bool, first []byte) codec.Match {
	if p.NewSession == nil {
		return s.fitsTLS()
	}
	streams := codec.Streams(p.NewSession(codec.Options{MaxData: maxMessage}))
	var f codec.Frame
	var sent [2]bool // by side: whether the side sent messages that only this protocol has
	sent[codec.Server], sent[codec.Peer] = s.whole[server], s.whole[1-server]
	asked, answered := false, false
	for i := range s.chunks {
		w, side := &s.chunks[i], codec.Peer
		if w.h.end == server {
			side = codec.Server
		}
		for piece := range streams[side].Feed(w.data, &f) {
			if !fitsPiece(p, side, piece, first) {
				return codec.NoMatch
			}
			asked = asked || side == codec.Peer
			answered = answered || side == codec.Server && asked && piece.Found == codec.Whole
			sent[side] = sent[side] || known || f.Type != nil && f.Type.End == ""
		}
	}
	switch {
	case streams[codec.Peer].Inside() || streams[codec.Server].Inside():
		return codec.NoMatch
	case answered || sent[codec.Peer] && sent[codec.Server]:
		return codec.Matches
	}
	return codec.MayMatch
}

// fitsPiece reports whether a side may have sent a message of a protocol. first is as in fits.
func fitsPiece(p *codec.Protocol, side codec.Side, piece codec.Piece, first []byte) bool {
	m, from, sided := begins(p, piece.Raw, false)
	switch e := piece.Err; {
	case m == codec.Matches && sided && from != side:
		return false
	case (side == codec.Peer && !p.AnyMagic || p.AnyMagic && first != nil) &&
		p.Begins(side, piece.Raw, first, true) == codec.NoMatch:
		return false
	default:
		return e == nil || !e.Fatal && side == codec.Server && slices.Contains(p.Pairing, e.Rule)
	}
}

// fitsTLS reports whether both ends send TLS records.
func (s *search) fitsTLS() codec.Match {
	var seen [2]bool
	for i := range s.chunks {
		w := &s.chunks[i]
		if seen[w.h.end] || len(w.data) == 0 {
			continue
		}
		if m, _, _ := begins(TLS, w.data, false); m != codec.Matches {
			return codec.NoMatch
		}
		seen[w.h.end] = true
	}
	if seen[0] && seen[1] {
		return codec.Matches
	}
	return codec.MayMatch
}
