package reassembly

import (
	"cmp"
	"slices"

	"jobwire/pcap/internal/headers"
)

// Limits of the segments that wait for missing packets.
const (
	maxPendingBytes = 1 << 20  // limit of the data of one connection that is kept until missing data arrives
	maxPendingCount = 2048     // segments of one connection
	maxProven       = 64       // segments of one connection, once it is proved that the missing data is not in the capture
	maxPendingAll   = 16 << 20 // bytes of all connections
	maxConns        = 1 << 16  // connections that are kept
	minSweep        = 1 << 10  // number of connections at which closed ones are first forgotten
	linger          = 1 << 12  // number of packets for which a closed connection is kept, for late packets
	maxSiblings     = 256      // connections between the same ends in different networks
	near            = 1 << 20  // bytes between the sequence numbers of packets that may belong to the same connection
)

// Assembler assigns segments to connections and passes their data on to streams. Its memory is limited for every input.
type Assembler struct {
	// Accept sets the streams of a new connection, and Close. server is the index of the end that the handshake shows to be
	// the server, or -1.
	Accept func(c *Conn, server int)
	Ports  []uint16 // accept only connections with one of these ports; nil: all

	Duplicates int // number of segments without new data
	GivenUp    int // number of connections that were forgotten to limit memory, although they may continue

	conns        map[Ends]*Conn // the last connection between two ends; Conn.sibling is the one before it
	total        int            // number of connections
	sweep        int            // number of connections at which closed connections are forgotten
	carrying     int            // number of connections that have carried data
	last         *Conn          // the connection of the previous segment
	recent       recent         // data to compare with retransmissions
	pendingBytes int
}

// Ends is the ordered pair of the ends of a connection.
type Ends [2]headers.Endpoint

// EndsOf returns the ends of the connection of a segment, and the index of the end that sent it.
func EndsOf(s *headers.Segment) (ends Ends, end int8) {
	if s.Dst.Before(s.Src) {
		return Ends{s.Dst, s.Src}, 1
	}
	return Ends{s.Src, s.Dst}, 0
}

// Add processes the next segment.
func (a *Assembler) Add(s *Segment) {
	if h := a.half(s); h != nil {
		h.add(s)
	}
}

// Close passes on the data that waits for missing packets, and closes all connections in the order in which they began.
func (a *Assembler) Close(p Position) {
	all := slices.Collect(a.all)
	slices.SortFunc(all, earlier)
	for _, c := range all {
		c.end(p)
	}
}

// half returns the direction of a segment. It returns nil if the segment does not belong to a connection and does not
// begin one.
func (a *Assembler) half(s *Segment) *half {
	ends, end := EndsOf(&s.Segment)
	s.end = end
	c := a.last
	if c == nil || c.Ends != ends || c.sender(s).matches(s) < samePath {
		c = a.lookUp(ends, s)
	}
	if c != nil && c.sender(s).ended(s) {
		a.replace(c, s.Position)
		c = nil
	}
	if c == nil {
		if s.has(headers.RST) || !s.has(headers.SYN) && len(s.Data)+s.Missing == 0 || !a.wanted(s) {
			return nil
		}
		c = a.begin(ends, s)
	}
	h := c.sender(s)
	if !h.routed {
		h.routed, h.path = true, s.Path
	}
	a.last = c
	c.Used = s.Frame
	return h
}

// begin creates the connection of a segment.
func (a *Assembler) begin(ends Ends, s *Segment) *Conn {
	if a.conns == nil {
		a.conns, a.sweep = map[Ends]*Conn{}, minSweep
	}
	if a.total >= a.sweep {
		a.evict(s.Position)
	}
	c := &Conn{a: a, Ends: ends, Network: s.Network, lastSender: unknown, missed: unknown, Began: s.Frame}
	c.half[0].c, c.half[1].c, c.half[1].end = c, c, 1
	server := -1
	if s.has(headers.SYN) {
		if server = int(s.end); !s.has(headers.ACK) {
			server = 1 - server
		}
	}
	a.Accept(c, server)
	a.total++
	c.sibling, a.conns[ends] = a.conns[ends], c
	return c
}

// How well a segment matches a connection between the same ends.
const (
	noMatch   = iota
	fits      // by its sequence numbers
	otherPath // the other direction has the path, and this direction has no segments yet
	samePath
)

// matches compares the path of a segment, the numbers in the headers around it, with the paths of the segments
// before it in both directions. Connections between the same ends have different paths in different networks. The
// directions of a connection can have different paths, for example the labels of MPLS. If there are packets with and
// without additional headers, the sequence numbers decide: a capture on several interfaces has the same packet in both
// forms.
func (h *half) matches(s *Segment) int {
	o := h.other()
	switch {
	case h.routed && h.path == s.Path:
		return samePath
	case !h.routed && o.path == s.Path:
		return otherPath
	case h.routed && (h.path == 0) == (s.Path == 0):
		return noMatch
	case s.has(headers.ACK) && o.known && !isNear(s.Ack, o.next), h.known && !isNear(s.Seq, h.next):
		return noMatch
	case s.has(headers.SYN) && h.known && s.Seq != h.isn, !s.has(headers.ACK) && !h.known:
		return noMatch
	case s.has(headers.SYN) && s.has(headers.ACK) && o.syn && s.Ack != o.isn+1:
		return noMatch
	}
	return fits
}

func isNear(a, b uint32) bool { return a-b+near <= 2*near }

// lookUp returns the connection of a segment, or nil.
func (a *Assembler) lookUp(ends Ends, s *Segment) (best *Conn) {
	quality, n := noMatch, 0
	for c := a.conns[ends]; c != nil; c = c.sibling {
		if q := c.sender(s).matches(s); q > quality {
			best, quality = c, q
		}
		n++
	}
	if best == nil && n >= maxSiblings {
		oldest := a.conns[ends]
		for c := oldest; c != nil; c = c.sibling {
			if c.Used < oldest.Used {
				oldest = c
			}
		}
		a.GivenUp++
		a.replace(oldest, s.Position)
	}
	return best
}

// all iterates over the connections.
func (a *Assembler) all(yield func(*Conn) bool) {
	for _, c := range a.conns {
		for ; c != nil; c = c.sibling {
			if !yield(c) {
				return
			}
		}
	}
}

// replace ends a connection and forgets it.
func (a *Assembler) replace(c *Conn, p Position) {
	c.end(p)
	if a.last == c {
		a.last = nil
	}
	a.total--
	first := a.conns[c.Ends]
	if first == c && c.sibling == nil {
		delete(a.conns, c.Ends)
		return
	}
	if first == c {
		a.conns[c.Ends] = c.sibling
		return
	}
	for first.sibling != c {
		first = first.sibling
	}
	first.sibling = c.sibling
}

// ended reports whether a segment of the direction belongs to another connection on the same ports.
func (h *half) ended(s *Segment) bool {
	return s.has(headers.SYN) && h.reused(s) || // or the capture lacks the beginning of the next connection
		h.c.closed && h.known && len(s.Data) > 0 && int32(s.Seq-h.next) > 1<<16
}

// reused reports whether a SYN begins another connection on the same ports.
func (h *half) reused(s *Segment) bool {
	o := h.other()
	switch {
	case h.syn:
		return h.isn != s.Seq
	case s.has(headers.ACK) && o.syn && o.isn+1 == s.Ack:
		return false // the reply to the SYN that began this connection
	}
	return h.known && h.next != s.Seq+1
}

// wanted reports whether a segment belongs to a connection that Ports selects.
func (a *Assembler) wanted(s *Segment) bool {
	return len(a.Ports) == 0 || slices.Contains(a.Ports, s.Src.Port) || slices.Contains(a.Ports, s.Dst.Port)
}

// evict removes connections that have ended and, if there are too few of them, the connections that have had no
// packets for the longest time.
func (a *Assembler) evict(p Position) {
	oldest := p.Frame
	var over []*Conn
	for c := range a.all {
		if c.over() && p.Frame-c.Used > linger {
			over = append(over, c)
		} else {
			oldest = min(oldest, c.Used)
		}
	}
	a.forget(over, p)
	a.sweep = min(max(minSweep, 2*a.total), maxConns)
	if a.total < maxConns*3/4 {
		return
	}
	var silent []*Conn
	for c := range a.all {
		if c.Used <= oldest+(p.Frame-oldest)/2 {
			silent = append(silent, c)
		}
	}
	a.GivenUp += len(silent)
	a.forget(silent, p)
}

// forget ends connections, in the order in which they began.
func (a *Assembler) forget(conns []*Conn, p Position) {
	slices.SortFunc(conns, earlier)
	for _, c := range conns {
		a.replace(c, p)
	}
}

// earlier compares connections by the order in which they began.
func earlier(a, b *Conn) int { return cmp.Or(a.ID-b.ID, a.Used-b.Used) }

// over reports whether both ends have closed the connection, even if earlier data is missing.
func (c *Conn) over() bool { return c.closed || c.half[0].closing && c.half[1].closing }
