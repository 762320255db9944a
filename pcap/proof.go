package pcap

import (
	"slices"

	"jobwire/codec"
)

// prove reports whether the assumed boundary is a message boundary. If so, it decodes the data after the
// boundary. MayMatch means that more data is needed.
func (d *Decoder) prove(c *Conn) codec.Match {
	if c.server == unknown && len(d.opts.Ports) > 0 {
		c.settle(d.likelyServer(c, nil))
	}
	var of []*codec.Protocol
	known := true
	if c.Protocol != nil {
		of = append(of, c.Protocol)
	} else if d.opts.Protocol != nil {
		of = append(of, d.opts.Protocol)
	} else if p, _ := d.knownOf(c); p != nil {
		of = append(of, p)
	} else {
		known = false
		of = recognized()
	}
	result, server, protocol := codec.NoMatch, unknown, (*codec.Protocol)(nil)
	for _, p := range of {
		f, end := d.fits(c, p, known)
		switch {
		case f == codec.NoMatch:
		case result != codec.NoMatch: // the data may belong to two protocols
			return codec.MayMatch
		default:
			result, server, protocol = f, end, p
		}
	}
	if result == codec.Matches {
		d.found(c, protocol, server)
	}
	return result
}

// fits reports whether the data after the assumed boundary can be messages of a protocol, and which end is then
// the server.
func (d *Decoder) fits(c *Conn, p *codec.Protocol, known bool) (codec.Match, int8) {
	if c.server != unknown {
		return c.search.fits(p, c.server, known, c.first), c.server
	}
	likely := d.likelyServer(c, p)
	if port := int(c.ends[likely].port); port == p.DefaultPort && int(c.ends[1-likely].port) != port {
		return c.search.fits(p, likely, known, nil), likely
	}
	if f := c.search.fits(p, likely, known, nil); f != codec.NoMatch {
		return f, likely
	}
	return c.search.fits(p, 1-likely, known, nil), 1 - likely
}

// found decodes the data after a proved boundary.
func (d *Decoder) found(c *Conn, p *codec.Protocol, server int8) {
	s := c.search
	d.endScan(c, 0)
	d.endScan(c, 1)
	c.search = nil
	if c.Protocol == nil {
		c.settle(server)
		d.adopt(c, p)
		if c.shown {
			d.stats.Unknown--
		}
		if len(d.known) < maxKnown {
			d.known[c.service(int(server))] = p
		}
	} else {
		d.reset(c) // replies to earlier requests may be in the skipped bytes
	}
	d.showSkipped(c, s)
	for end := range c.half {
		if h := &c.half[end]; !s.whole[end] {
			h.lost, h.start, h.guess, h.resumed = false, false, false, s.lossy
		}
	}
	for i := range s.chunks {
		w := &s.chunks[i]
		d.buffered -= len(w.data)
		c.turn = w.turn
		switch {
		case len(w.data) == 0:
		case c.search != nil: // decoding a message has shown that the boundary was wrong
			d.seek(c, w)
		default:
			d.read(c, w.end, w.data, w.frame, w.at)
		}
		if w.flags&flagFIN != 0 {
			d.finish(c, w.end, true, w.frame, w.at)
			d.closing(c, w.end, Ends, w.frame, w.at)
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
	for end := range s.whole {
		if s.whole[end] && int8(end) == server {
			sent[codec.Server] = true
		} else if s.whole[end] {
			sent[codec.Peer] = true
		}
	}
	asked, answered := false, false
	for i := range s.chunks {
		w, side := &s.chunks[i], codec.Peer
		if int8(w.end) == server {
			side = codec.Server
		}
		for piece := range streams[side].Feed(w.data, &f) {
			if m, from, sided := begins(p, piece.Raw, false); m == codec.Matches && sided && from != side {
				return codec.NoMatch
			}
			if (side == codec.Peer && !p.AnyMagic || p.AnyMagic && first != nil) &&
				p.Begins(side, piece.Raw, first, true) == codec.NoMatch {
				return codec.NoMatch
			}
			if e := piece.Err; e != nil && (e.Fatal || side == codec.Peer || !slices.Contains(p.Pairing, e.Rule)) {
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

// fitsTLS reports whether both ends send TLS records.
func (s *search) fitsTLS() codec.Match {
	var seen [2]bool
	for i := range s.chunks {
		w := &s.chunks[i]
		if seen[w.end] || len(w.data) == 0 {
			continue
		}
		if m, _, _ := begins(TLS, w.data, false); m != codec.Matches {
			return codec.NoMatch
		}
		seen[w.end] = true
	}
	if seen[0] && seen[1] {
		return codec.Matches
	}
	return codec.MayMatch
}
