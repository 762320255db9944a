package pcap

import "jobwire/codec"

// search is the search for a message boundary after bytes that are not in the capture: the beginning of a
// connection, or a part of it. The captured bytes may begin inside a payload, and a payload may contain
// complete messages, so the decoder lists no message before a boundary is proved.
//
// A boundary is assumed where the sender changes and, according to the TCP acknowledgements, both ends have
// received all data that the other has sent. It is proved if the data of both directions, from the boundary to
// a later point of this kind, consists of complete messages of one protocol. This proof fails in one case: a
// sender pauses inside a payload while the other end sends, and the rest of the payload consists of complete
// messages. Text may belong to several protocols; the messages must then include a reply to a request, unless
// the protocol is known. Everything before the boundary is skipped and counted.
//
// If only one direction lacks bytes, the messages of the other direction are always listed. A boundary is then
// assumed only where the other direction is at the end of a message.
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

// skipped counts the bytes of one end that are not decoded, and the missing bytes among them.
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
	if c.turn == sureTurn && len(w.data) > 0 {
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
	return (!s.whole[0] || c.half[0].atEnd()) && (!s.whole[1] || c.half[1].atEnd())
}

// pass decodes the bytes of a direction without missing bytes, and skips the bytes of other directions.
func (d *Decoder) pass(c *Conn, w *chunk) {
	if c.search == nil || c.search.whole[w.end] {
		d.read(c, w.end, w.data, w.frame, w.at)
	} else {
		d.skip(c, w)
	}
}

// skip processes bytes in which no message boundary is proved.
func (d *Decoder) skip(c *Conn, w *chunk) {
	if d.opts.Likely {
		d.scan(c, w)
	} else {
		d.leaveOut(c, w)
	}
}

// leaveOut counts bytes that are not decoded. If the connection has its beginning, it passes them on as unread.
func (d *Decoder) leaveOut(c *Conn, w *chunk) {
	s := c.search
	if s.lossy || c.shown {
		if s.lossy {
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
	d.countSkipped(c, len(w.data))
	k.bytes += len(w.data)
	k.missing += w.missing
	k.first, k.last = min(k.first, w.frame), max(k.last, w.frame)
}

func (d *Decoder) countSkipped(c *Conn, n int) {
	if n == 0 {
		return
	}
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

// restart discards the assumed boundary, because bytes were lost or there are too many bytes, and waits for
// another one.
func (d *Decoder) restart(c *Conn) {
	d.drop(c)
	c.search.assumed = false
}

// conclude ends a search without a result, at the end of the connection or of the capture.
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
	d.endScan(c, 0)
	d.endScan(c, 1)
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
		d.showSkippedOf(c, s, end)
	}
}

func (d *Decoder) showSkippedOf(c *Conn, s *search, end int) {
	k := s.skipped[end]
	s.skipped[end] = skipped{}
	if k.bytes > 0 {
		d.item = Item{Kind: Skipped, Conn: c, From: c.side(end), Missing: k.bytes, First: k.first, Last: k.last, At: k.at}
		d.handle(&d.item)
	}
	d.missing(c, end, k.missing, k.first, k.last, k.at)
}
