package pcap

import (
	"slices"

	"jobwire/codec"
)

// search looks for a message boundary on a connection whose beginning is not in the capture. Such a capture may
// begin inside a payload, and a payload may contain whole messages, so nothing is listed before a boundary is
// proved.
//
// A boundary is assumed where the sender changes and both ends have received everything that the other has
// sent, according to TCP's acknowledgements. It is proved if both directions, from there up to a later such
// point, are whole messages of one protocol. Text could belong to several protocols; then the messages must
// include a response to a request, unless the protocol is known. Everything before the boundary is skipped and
// counted.
type search struct {
	chunks  []chunk // data since the assumed boundary
	assumed bool    // a boundary is assumed
	size    int     // bytes in chunks
	turns   int     // number of direction changes since the boundary
	skipped [2]skipped
}

// maxTurns limits the direction changes within which a boundary must be proved, because all chunks are decoded
// at each change.
const maxTurns = 64

// skipped are bytes of one end that are not decoded.
type skipped struct {
	bytes, first, last int
	at                 int64
}

// guesses reports whether the user has specified both the protocol and the port of the server. Then messages
// are listed from the first bytes that look like a message. With Audit it returns false, because a guess must
// not cause violations.
func (o *Options) guesses() bool { return o.Protocol != nil && len(o.Ports) > 0 && !o.Audit }

// seek processes the next bytes of a connection during the search.
func (d *Decoder) seek(c *Conn, w *chunk) {
	s := c.search
	if c.turn && len(w.data) > 0 {
		s.turns++
		if s.assumed {
			result := d.prove(c)
			if result == codec.MayMatch && s.turns > maxTurns {
				result = codec.NoMatch
			}
			switch result {
			case codec.Matches:
				d.read(c, w.end, w.data, w.frame, w.at)
				return
			case codec.NoMatch:
				d.drop(s)
			}
		}
		s.assumed = true
	}
	if !s.assumed {
		s.skip(w)
		return
	}
	kept := *w
	kept.data = append([]byte(nil), w.data...)
	s.chunks = append(s.chunks, kept)
	s.size += kept.cost()
	d.buffered += len(kept.data)
	if s.size > 2*maxMessage || d.buffered > maxBuffered {
		d.restart(s)
	}
}

// skip counts bytes that are not decoded.
func (s *search) skip(w *chunk) {
	k := &s.skipped[w.end]
	if len(w.data) == 0 {
		return
	}
	if k.bytes == 0 {
		k.first, k.last, k.at = w.frame, w.frame, w.at
	}
	k.bytes += len(w.data)
	k.first, k.last = min(k.first, w.frame), max(k.last, w.frame)
}

// drop skips the data after the assumed boundary.
func (d *Decoder) drop(s *search) {
	for i := range s.chunks {
		s.skip(&s.chunks[i])
		d.buffered -= len(s.chunks[i].data)
	}
	s.chunks, s.size, s.turns = nil, 0, 0
}

// restart waits for another boundary, after bytes were lost or there were too many.
func (d *Decoder) restart(s *search) {
	d.drop(s)
	s.assumed = false
}

// conclude ends a search at the end of the connection or of the capture.
func (d *Decoder) conclude(c *Conn) {
	s := c.search
	if s == nil || c.ID == 0 {
		return
	}
	if s.assumed && d.prove(c) == codec.Matches {
		return
	}
	d.drop(s)
	c.search, c.decided = nil, true
	p := d.opts.Protocol
	if p == nil {
		p, _ = d.knownOf(c)
	}
	if c.server == unknown {
		c.settle(d.likelyServer(c, p))
	}
	if p != nil {
		d.adopt(c, p)
	} else {
		d.stats.Unknown++
	}
	d.showSkipped(c, s)
}

// showSkipped passes on the number of bytes that were skipped.
func (d *Decoder) showSkipped(c *Conn, s *search) {
	d.stats.SkippedConnections++
	for end := range s.skipped {
		if k := &s.skipped[end]; k.bytes > 0 {
			d.stats.Skipped += int64(k.bytes)
			d.item = Item{Kind: Skipped, Conn: c, From: c.side(end), Missing: k.bytes, First: k.first, Last: k.last, At: k.at}
			d.handle(&d.item)
		}
	}
}

// prove reports whether the assumed boundary is a message boundary. If it matches, the data after it is
// decoded. MayMatch means that more data is needed.
func (d *Decoder) prove(c *Conn) codec.Match {
	if c.server == unknown && len(d.opts.Ports) > 0 {
		c.settle(d.likelyServer(c, nil))
	}
	var of []*codec.Protocol
	known := true
	if d.opts.Protocol != nil {
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
		case result != codec.NoMatch: // it could be two protocols
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

// fits reports whether the data of a connection fits a protocol, and which end is the server.
func (d *Decoder) fits(c *Conn, p *codec.Protocol, known bool) (codec.Match, int8) {
	if c.server != unknown {
		return c.search.fits(p, c.server, known), c.server
	}
	likely := d.likelyServer(c, p)
	if f := c.search.fits(p, likely, known); f != codec.NoMatch {
		return f, likely
	}
	return c.search.fits(p, 1-likely, known), 1 - likely
}

// found decodes the data after a proved boundary.
func (d *Decoder) found(c *Conn, p *codec.Protocol, server int8) {
	s := c.search
	c.search = nil
	c.settle(server)
	d.adopt(c, p)
	if len(d.known) < maxKnown {
		d.known[c.ends[server]] = p
	}
	d.showSkipped(c, s)
	for end := range c.half {
		h := &c.half[end]
		h.lost, h.start, h.guess = false, false, false
	}
	for i := range s.chunks {
		w := &s.chunks[i]
		if d.buffered -= len(w.data); len(w.data) > 0 {
			d.read(c, w.end, w.data, w.frame, w.at)
		}
		if w.flags&flagFIN != 0 {
			d.finish(c, w.end, true, w.frame, w.at)
			d.closing(c, w.end, Ends, w.frame, w.at)
		}
	}
}

// fits reports whether the chunks are whole messages of a protocol. known is set if the protocol of the server
// is known. MayMatch means that there are too few messages to decide.
func (s *search) fits(p *codec.Protocol, server int8, known bool) codec.Match {
	if p.NewSession == nil {
		return s.fitsTLS()
	}
	streams := codec.Streams(p.NewSession(codec.Options{MaxData: maxMessage}))
	var f codec.Frame
	var sent [2]bool // a side sent messages that only this protocol has
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
