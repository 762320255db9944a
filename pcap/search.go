package pcap

import (
	"jobwire/codec"
	"jobwire/pcap/internal/reassembly"
)

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
	bytes, missing int
	first          int      // number of the first packet
	at             position // number of the last packet, and time of the first
}

// guesses reports whether the user has specified both the protocol and the port of the server. Then messages
// are listed from the first bytes that look like a message. With Audit it returns false, because a guess must
// not cause violations.
func (o *Options) guesses() bool { return o.Protocol != nil && len(o.Ports) > 0 && !o.Audit }

// seek processes the next bytes of a connection during the search.
func (c *conn) seek(w *chunk) {
	s, d := c.search, c.d
	if len(w.data) == 0 && s.lossy {
		c.seekEnd(w)
		return
	}
	if c.turn == reassembly.SureTurn && len(w.data) > 0 {
		s.turns++
		if s.assumed {
			result := c.prove()
			if result == codec.MayMatch && s.turns > maxTurns {
				result = codec.NoMatch
			}
			switch result {
			case codec.Matches:
				c.pass(w)
				return
			case codec.NoMatch:
				c.drop()
			}
		}
		s.assumed = s.atBoundary(c)
	}
	if !s.assumed {
		c.pass(w)
		return
	}
	kept := *w
	kept.data = append([]byte(nil), w.data...)
	s.chunks = append(s.chunks, kept)
	s.size += kept.cost()
	d.buffered += len(kept.data)
	if s.size > 2*maxMessage || d.buffered > maxBuffered {
		c.restart()
	}
}

// seekEnd processes the end of a direction.
func (c *conn) seekEnd(w *chunk) {
	switch s := c.search; {
	case !s.whole[w.h.end]:
		c.conclude()
	case !s.assumed || c.prove() != codec.Matches:
		c.restart()
	}
	w.h.finish(true, w.at)
	w.h.closing(Ends, w.at)
}

// searchAfter begins a search in a direction after a loss.
func (h *half) searchAfter() {
	c := h.c
	if c.search == nil {
		c.search = &search{lossy: true, whole: [2]bool{!c.half[0].lost, !c.half[1].lost}}
	}
	c.search.whole[h.end] = false
	c.restart()
}

// atBoundary reports whether the directions that are not searched are at the end of a message.
func (s *search) atBoundary(c *conn) bool {
	return (!s.whole[0] || c.half[0].atEnd()) && (!s.whole[1] || c.half[1].atEnd())
}

// pass decodes the bytes of a direction without missing bytes, and skips the bytes of other directions.
func (c *conn) pass(w *chunk) {
	if c.search == nil || c.search.whole[w.h.end] {
		w.h.read(w.data, w.at)
	} else {
		c.skip(w)
	}
}

// skip processes bytes in which no message boundary is proved.
func (c *conn) skip(w *chunk) {
	if c.d.opts.Likely {
		c.scan(w)
	} else {
		c.leaveOut(w)
	}
}

// leaveOut counts bytes that are not decoded. If the connection has its beginning, it passes them on as unread.
func (c *conn) leaveOut(w *chunk) {
	s := c.search
	if s.lossy || c.shown {
		if s.lossy {
			c.countSkipped(len(w.data))
		}
		w.h.unread(w.data, w.at.Frame, w.at)
		w.h.missing(w.missing, w.at.Frame, w.at)
		return
	}
	k := &s.skipped[w.h.end]
	if len(w.data)+w.missing == 0 {
		return
	}
	if k.bytes+k.missing == 0 {
		k.first, k.at = w.at.Frame, w.at
	}
	c.countSkipped(len(w.data))
	k.bytes += len(w.data)
	k.missing += w.missing
	k.first, k.at.Frame = min(k.first, w.at.Frame), max(k.at.Frame, w.at.Frame)
}

// countSkipped adds n bytes that were not decoded to the statistics, and counts the connection once.
func (c *conn) countSkipped(n int) {
	if n == 0 {
		return
	}
	if c.d.stats.Skipped += int64(n); !c.skips {
		c.skips = true
		c.d.stats.SkippedConnections++
	}
}

// drop skips the data after the assumed boundary.
func (c *conn) drop() {
	s := c.search
	chunks := s.chunks
	s.chunks, s.size, s.turns = nil, 0, 0
	for i := range chunks {
		c.d.buffered -= len(chunks[i].data)
		c.pass(&chunks[i])
	}
}

// restart discards the assumed boundary, because bytes were lost or there are too many bytes, and waits for
// another one.
func (c *conn) restart() {
	c.drop()
	c.search.assumed = false
}

// conclude ends a search without a result, at the end of the connection or of the capture.
func (c *conn) conclude() {
	s := c.search
	if s == nil || c.ID == 0 {
		return
	}
	if s.assumed && c.prove() == codec.Matches {
		c.conclude()
		return
	}
	c.drop()
	c.half[0].endScan()
	c.half[1].endScan()
	c.search = nil
	if !c.decided {
		c.decided = true
		p := c.expected()
		c.settleLikely(p)
		if p != nil {
			c.adopt(p)
		} else {
			c.d.stats.Unknown++
		}
	}
	c.showSkipped(s)
}

// showSkipped passes on the number of bytes that were skipped, and of those that are missing among them.
func (c *conn) showSkipped(s *search) {
	c.half[0].showSkipped(&c.Conn, s)
	c.half[1].showSkipped(&c.Conn, s)
}

// showSkipped is showSkipped of a direction. The connection is described by c.
func (h *half) showSkipped(c *Conn, s *search) {
	k := s.skipped[h.end]
	s.skipped[h.end] = skipped{}
	for _, of := range [...]struct {
		kind ItemKind
		n    int
	}{{Skipped, k.bytes}, {Gap, k.missing}} {
		if of.n > 0 {
			it := h.item(of.kind, k.at)
			it.Conn, it.From, it.Missing, it.First = c, c.side(h.end), of.n, k.first
			h.c.d.handle(it)
		}
	}
}
