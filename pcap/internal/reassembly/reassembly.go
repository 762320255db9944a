// Package reassembly restores the byte streams of TCP connections from segments that may be missing, repeated or out of
// order.
package reassembly

import "jobwire/pcap/internal/headers"

// Position is the place of a packet in a capture.
type Position struct {
	Frame int   // number of the packet, from 1
	At    int64 // time in nanoseconds since 1970
}

// Turn says whether the sender of data has just changed.
type Turn uint8

const (
	NoTurn     Turn = iota
	LikelyTurn      // the other end sent data before, which is missing
	SureTurn        // both ends had received all data that the other had sent
)

// Stream takes what was captured of one direction of a connection. A call has the position of the packet that caused it.
type Stream interface {
	// LacksStart is called, before other methods, if the first bytes may be missing.
	LacksStart()
	// HasStart is called if nothing is missing after all: the SYN was captured late.
	HasStart()
	// Data takes the next bytes, which are valid until it returns.
	Data(b []byte, turn Turn, p Position)
	// Gap takes a number of bytes that are missing: they were lost or, if cut is set, the packet was cut short.
	Gap(n int, cut bool, p Position)
	// Conflict takes data that was sent again, from its first byte that differs from the earlier data, whose offset is
	// relative to the first captured byte of the stream, modulo 2^32.
	Conflict(earlier, later []byte, offset uint32, p Position)
	// End is called when the sender has closed the direction, after all of its data.
	End(p Position)
	// Reset is called when the sender has reset the connection, after all data of both directions.
	Reset(p Position)
}

// Segment is a TCP segment and its place in the capture.
type Segment struct {
	headers.Segment
	Position
	end int8 // index of the sender in the ends of the connection
}

// cost returns the approximate memory that a segment takes, in bytes.
func (s *Segment) cost() int { return len(s.Data) + 128 }

// has reports whether a flag is set.
func (s *Segment) has(flag byte) bool { return s.Flags&flag != 0 }

// Conn is a TCP connection.
type Conn struct {
	ID      int // from 1, in the order in which connections begin to carry data; 0 before
	Ends    Ends
	Network uint64         // of the first segment
	Streams [2]Stream      // by the sender's index in Ends
	Close   func(Position) // called after the last data of both directions, at the end of the capture or if the connection is forgotten
	Began   int            // number of the connection's first packet
	Used    int            // number of its last packet

	a       *Assembler
	sibling *Conn // a connection between the same ends in another network
	half    [2]half
	closed  bool

	lastSender int8 // the end that sent the last data, or unknown
	level      bool // when lastSender sent its last data, it had received all data of the other end
	missed     int8 // the end whose data is missing after the last data, or unknown, or bothEnds

	pending      []Segment // segments that wait for missing earlier segments, in capture order
	pendingBytes int
}

const (
	unknown  int8 = -1
	bothEnds int8 = 2
)

// half is one direction of a connection.
type half struct {
	c   *Conn
	end int8 // index of the sender in Ends

	next  uint32 // sequence number of the next byte
	acked uint32 // sequence number up to which the other end has acknowledged
	isn   uint32 // sequence number of the SYN, or of the byte before the first captured one
	known bool   // next is known
	heard bool   // acked is known
	syn   bool   // the SYN was captured

	routed bool   // path is known
	path   uint64 // the numbers in the headers around the first segment of the direction

	closing bool // the last segment was captured; earlier segments may be missing
	fin     bool // the direction has ended; no data follows

	recent int64 // position of the last data in [recent], or 0
}

func (h *half) other() *half   { return &h.c.half[1-h.end] }
func (h *half) stream() Stream { return h.c.Streams[h.end] }

// HasSYN reports whether the SYN of an end was captured.
func (c *Conn) HasSYN(end int8) bool { return c.half[end].syn }

// Paths returns the numbers in the headers around the segments of both directions; see [headers.Segment].
func (c *Conn) Paths() [2]uint64 { return [2]uint64{c.half[0].path, c.half[1].path} }

// sender returns the direction of a segment.
func (c *Conn) sender(s *Segment) *half { return &c.half[s.end] }

// add processes a segment. Data is passed on in the order of the stream, and only after all data that its sender had
// received. So a request comes before its reply, even if the packets in the capture are out of order.
func (h *half) add(s *Segment) {
	c, o := h.c, h.other()
	seq := s.Seq
	if s.has(headers.SYN) {
		if h.known && h.next == seq+1 {
			h.stream().HasStart()
		}
		if !h.syn {
			h.syn, h.isn, h.next, h.known = true, seq, seq+1, true
		}
		seq++
	}
	if !h.known {
		h.next, h.known, h.isn = seq, true, seq-1
		h.stream().LacksStart()
	}
	if s.has(headers.ACK) {
		o.acknowledge(s)
	}
	if s.has(headers.RST) {
		c.flush()
		if !c.closed {
			c.closed = true
			c.Close(s.Position)
			h.stream().Reset(s.Position)
		}
		return
	}
	size := len(s.Data) + s.Missing
	if s.has(headers.FIN) {
		h.closing = true
		size++
	}
	if size == 0 {
		return
	}
	if int32(seq+uint32(size)-h.next) <= 0 {
		if !s.has(headers.SYN) {
			h.repeated(s)
		}
		return
	}
	s.Seq = seq
	if h.ready(s) {
		h.deliver(s)
		if len(c.pending) > 0 {
			c.drain()
		}
		return
	}
	w := *s
	w.Data = append([]byte(nil), s.Data...)
	c.pending = append(c.pending, w)
	c.count(w.cost())
	for len(c.pending) > 0 && (len(c.pending) > maxPendingCount || c.pendingBytes > maxPendingBytes ||
		len(c.pending) > maxProven && c.proven() || c.a.pendingBytes > maxPendingAll) {
		c.passOver()
	}
}

// acknowledge records that the other end has received the direction up to a sequence number.
func (h *half) acknowledge(s *Segment) {
	if !h.known {
		h.next, h.known, h.isn = s.Ack, true, s.Ack-1
		if !s.has(headers.SYN) {
			h.stream().LacksStart()
		}
	}
	if !h.heard || int32(s.Ack-h.acked) > 0 {
		h.acked, h.heard = s.Ack, true
	}
}

// repeated processes a segment without new data.
func (h *half) repeated(s *Segment) {
	h.c.a.Duplicates++
	h.compare(s, s.Data)
}

// count adds a number of bytes to those of the segments that wait.
func (c *Conn) count(n int) {
	c.pendingBytes += n
	c.a.pendingBytes += n
}

// ready reports whether a segment can be passed on: no data before it is missing, and none that its sender had received.
func (h *half) ready(s *Segment) bool {
	o := h.other()
	ahead := s.has(headers.ACK) && o.known && int32(s.Ack-o.next) > 0
	return int32(s.Seq-h.next) <= 0 && !ahead
}

// proven reports whether the other end has acknowledged the data for which the oldest segment waits. That data
// will not be sent again, so it is missing in the capture.
func (c *Conn) proven() bool {
	s := &c.pending[0]
	h := c.sender(s)
	return int32(s.Seq-h.next) <= 0 || h.heard && int32(h.acked-h.next) > 0
}

// deliver passes on the new data of a segment.
func (h *half) deliver(s *Segment) {
	old := int(h.next - s.Seq)
	data, missing := s.Data, s.Missing
	if old > len(data) {
		missing -= old - len(data)
		old = len(data)
	}
	if old > 0 {
		h.compare(s, data[:old])
	}
	if data = data[old:]; len(data) > 0 {
		h.c.a.recent.add(h, data)
		turn := h.turn(s)
		h.next += uint32(len(data))
		if h.c.ID == 0 {
			h.c.a.carrying++
			h.c.ID = h.c.a.carrying
		}
		h.stream().Data(data, turn, s.Position)
	}
	if missing > 0 {
		h.gap(missing, true, s.Position)
	}
	if s.has(headers.FIN) && !h.fin {
		h.fin = true
		h.next++
		h.c.closed = h.other().fin
		h.stream().End(s.Position)
	}
}

// turn determines whether the sender has changed before the data of a segment.
func (h *half) turn(s *Segment) (t Turn) {
	c, other := h.c, 1-h.end
	level := s.has(headers.ACK) && s.Ack == h.other().next
	switch {
	case c.lastSender == other && c.level && level:
		t = SureTurn
	case c.missed == other && level:
		t = LikelyTurn
	}
	c.lastSender, c.level, c.missed = h.end, level, unknown
	return t
}

// gap passes over the next n bytes, which are missing: they were lost or, if cut is set, the packet was cut short.
func (h *half) gap(n int, cut bool, p Position) {
	h.next += uint32(n)
	c := h.c
	if c.lastSender = unknown; c.missed == 1-h.end {
		c.missed = bothEnds // it is unknown which end sent first
	} else if c.missed == unknown {
		c.missed = h.end
	}
	h.stream().Gap(n, cut, p)
}

// drain passes on the segments that are ready.
func (c *Conn) drain() {
	for progress := true; progress && len(c.pending) > 0; {
		progress = false
		waiting := c.pending
		c.pending = nil
		kept := waiting[:0]
		for i := range waiting {
			s := &waiting[i]
			h := c.sender(s)
			switch size := uint32(len(s.Data) + s.Missing + int(s.Flags&headers.FIN)); {
			case int32(s.Seq+size-h.next) <= 0:
				h.repeated(s)
			case h.ready(s):
				h.deliver(s)
			default:
				kept = append(kept, *s)
				continue
			}
			c.count(-s.cost())
			progress = true
		}
		clear(waiting[len(kept):])
		c.pending = kept
	}
	if len(c.pending) == 0 {
		c.pending = nil
	}
}

// passOver treats the data for which the oldest segment waits as lost, up to the next byte that was captured or
// is needed.
func (c *Conn) passOver() {
	p := c.pending[0].Position
	h := c.sender(&c.pending[0])
	first := h.lowest()
	s := c.pending[first]
	missing, n := h, int32(s.Seq-h.next)
	if n <= 0 { // the segment waits for data of the other end, which its sender had received
		missing = h.other()
		n = int32(s.Ack - missing.next)
		if o := missing.lowest(); o >= 0 {
			n = min(n, int32(c.pending[o].Seq-missing.next))
		}
	}
	if n > 0 {
		missing.gap(int(n), false, p)
	} else { // both ends wait for each other, which is invalid in TCP, so pass the data on in some order
		c.pending = append(c.pending[:first], c.pending[first+1:]...)
		c.count(-s.cost())
		h.deliver(&s)
	}
	c.drain()
}

// lowest returns the index of the direction's waiting segment with the lowest sequence number, or -1.
func (h *half) lowest() int {
	best := -1
	for i := range h.c.pending {
		s := &h.c.pending[i]
		if h.c.sender(s) == h && (best < 0 || int32(s.Seq-h.c.pending[best].Seq) < 0) {
			best = i
		}
	}
	return best
}

// flush passes on all waiting segments, with gaps for missing data.
func (c *Conn) flush() {
	for len(c.pending) > 0 {
		c.passOver()
	}
}

// end passes on the remaining data of a connection and closes it.
func (c *Conn) end(p Position) {
	c.flush()
	c.closed = true
	c.Close(p)
}
