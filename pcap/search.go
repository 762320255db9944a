package pcap

import "jobwire/codec"

// search looks for a message boundary after bytes that are not in the capture: the beginning of a connection, or
// a part of it. The captured bytes may begin inside a payload, and a payload may contain whole messages, so
// nothing is listed before a boundary is proved.
//
// A boundary is assumed where the sender changes and both ends have received everything that the other has
// sent, according to TCP's acknowledgements. It is proved if both directions, from there up to a later such
// point, are whole messages of one protocol. This assumes that no sender pauses inside a payload, while the other
// end sends, before a part that is itself whole messages up to the end of the payload. Text could belong to several protocols; then the messages must
// include a response to a request, unless the protocol is known. Everything before the boundary is skipped and
// counted.
//
// If only one direction lacks bytes, the messages of the other direction are listed in any case, and it must be at
// the end of a message where a boundary is assumed.
type search struct {
	whole   [2]bool // directions of which no bytes are missing
	lossy   bool    // the beginning of the connection is in the capture, but later bytes are missing
	chunks  []chunk // data since the assumed boundary
	assumed bool    // a boundary is assumed
	size    int     // bytes in chunks
	turns   int     // number of direction changes since the boundary
	skipped [2]skipped
}

// maxTurns limits the direction changes within which a boundary must be proved, because all chunks are decoded
// at each change.
const maxTurns = 64

// skipped are bytes of one end that are not decoded, and bytes that are missing among them.
type skipped struct {
	bytes, missing, first, last int
	at                          int64
}

// guesses reports whether the user has specified both the protocol and the port of the server. Then messages
// are listed from the first bytes that look like a message. With Audit it returns false, because a guess must
// not cause violations.
func (o *Options) guesses() bool { return o.Protocol != nil && len(o.Ports) > 0 && !o.Audit }

// seek processes the next bytes of a connection during the search.
func (d *Decoder) seek(c *Conn, w *chunk) {
	s := c.search
	if len(w.data) == 0 && s.lossy {
		d.seekEnd(c, w)
		return
	}
	if c.turn && len(w.data) > 0 {
		s.turns++
		if s.assumed {
			result := d.prove(c)
			if result == codec.MayMatch && s.turns > maxTurns {
				result = codec.NoMatch
			}
			switch result {
			case codec.Matches:
				d.pass(c, w)
				return
			case codec.NoMatch:
				d.drop(c)
			}
		}
		s.assumed = s.atBoundary(c)
	}
	if !s.assumed {
		d.pass(c, w)
		return
	}
	kept := *w
	kept.turn = c.turn
	kept.data = append([]byte(nil), w.data...)
	s.chunks = append(s.chunks, kept)
	s.size += kept.cost()
	d.buffered += len(kept.data)
	if s.size > 2*maxMessage || d.buffered > maxBuffered {
		d.restart(c)
	}
}

// seekEnd processes the end of a direction.
func (d *Decoder) seekEnd(c *Conn, w *chunk) {
	switch s := c.search; {
	case !s.whole[w.end]:
		d.conclude(c)
	case !s.assumed || d.prove(c) != codec.Matches:
		d.restart(c)
	}
	d.finish(c, w.end, true, w.frame, w.at)
	d.closing(c, w.end, Ends, w.frame, w.at)
}

// searchAfter begins a search in a direction after a loss.
func (d *Decoder) searchAfter(c *Conn, end int) {
	if c.search == nil {
		c.search = &search{lossy: true, whole: [2]bool{!c.half[0].lost, !c.half[1].lost}}
	}
	c.search.whole[end] = false
	d.restart(c)
}

// atBoundary reports whether the directions that are not searched are at the end of a message.
func (s *search) atBoundary(c *Conn) bool {
	for end := range c.half {
		if h := &c.half[end]; s.whole[end] && (h.lost || h.skip > 0 || len(h.buf) > 0) {
			return false
		}
	}
	return true
}

// pass reads bytes of a direction that is not searched, and skips others.
func (d *Decoder) pass(c *Conn, w *chunk) {
	if c.search == nil || c.search.whole[w.end] {
		d.read(c, w.end, w.data, w.frame, w.at)
	} else {
		d.skip(c, w)
	}
}

// skip counts bytes that are not decoded. If the connection has its beginning, it passes them on as unread.
func (d *Decoder) skip(c *Conn, w *chunk) {
	s := c.search
	if s.lossy || c.shown {
		if s.lossy && len(w.data) > 0 {
			d.countSkipped(c, len(w.data))
		}
		d.unread(c, w.end, w.data, w.frame, w.frame, w.at, false)
		d.missing(c, w.end, w.missing, w.frame, w.frame, w.at)
		return
	}
	k := &s.skipped[w.end]
	if len(w.data)+w.missing == 0 {
		return
	}
	if k.bytes+k.missing == 0 {
		k.first, k.last, k.at = w.frame, w.frame, w.at
	}
	k.bytes += len(w.data)
	k.missing += w.missing
	k.first, k.last = min(k.first, w.frame), max(k.last, w.frame)
}

func (d *Decoder) countSkipped(c *Conn, n int) {
	if d.stats.Skipped += int64(n); !c.skips {
		c.skips = true
		d.stats.SkippedConnections++
	}
}

// drop skips the data after the assumed boundary.
func (d *Decoder) drop(c *Conn) {
	s := c.search
	chunks := s.chunks
	s.chunks, s.size, s.turns = nil, 0, 0
	for i := range chunks {
		d.buffered -= len(chunks[i].data)
		d.pass(c, &chunks[i])
	}
}

// restart waits for another boundary, after bytes were lost or there were too many.
func (d *Decoder) restart(c *Conn) {
	d.drop(c)
	c.search.assumed = false
}

// conclude ends a search at the end of the connection or of the capture.
func (d *Decoder) conclude(c *Conn) {
	s := c.search
	if s == nil || c.ID == 0 {
		return
	}
	if s.assumed && d.prove(c) == codec.Matches {
		d.conclude(c)
		return
	}
	d.drop(c)
	c.search = nil
	if !c.decided {
		c.decided = true
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
	}
	d.showSkipped(c, s)
}

// showSkipped passes on the number of bytes that were skipped, and of those that are missing among them.
func (d *Decoder) showSkipped(c *Conn, s *search) {
	for end := range s.skipped {
		k := &s.skipped[end]
		if k.bytes > 0 {
			d.countSkipped(c, k.bytes)
			d.item = Item{Kind: Skipped, Conn: c, From: c.side(end), Missing: k.bytes, First: k.first, Last: k.last, At: k.at}
			d.handle(&d.item)
		}
		d.missing(c, end, k.missing, k.first, k.last, k.at)
	}
}
