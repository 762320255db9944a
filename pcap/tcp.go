package pcap

import "slices"

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

// connKey is the ordered pair of the ends of a connection.
type connKey [2]endpoint

// key returns the ends of the connection of a segment, and the index of the end that sent it.
func (s *segment) key() (key connKey, end int) {
	if s.dst.before(s.src) {
		return connKey{s.dst, s.src}, 1
	}
	return connKey{s.src, s.dst}, 0
}

// connection returns the connection of a segment, and the index of the end that sent it. It returns nil if the
// segment does not belong to a connection and does not begin one.
func (d *Decoder) connection(s *segment) (*Conn, int) {
	key, end := s.key()
	c := d.last
	if c == nil || c.ends != key || c.matches(s, end) < samePath {
		c = d.lookUp(key, s, end)
	}
	if c != nil && s.flags&flagSYN != 0 && c.reused(s, end) {
		d.replace(c, s)
		c = nil
	}
	if c != nil && c.closed && c.half[end].known && len(s.data) > 0 && int32(s.seq-c.half[end].next) > 1<<16 {
		d.replace(c, s) // the capture lacks the beginning of the next connection on these ports
		c = nil
	}
	if c == nil {
		if s.flags&flagRST != 0 || s.flags&flagSYN == 0 && len(s.data)+s.missing == 0 || !d.wanted(s) {
			return nil, 0
		}
		if d.count >= d.sweep {
			d.evict(s)
		}
		c = &Conn{ends: key, network: s.network, server: unknown, lastSender: unknown, missed: unknown, began: s.frame}
		if s.flags&(flagSYN|flagACK) == flagSYN {
			c.settle(int8(1 - end))
		} else if s.flags&flagSYN != 0 {
			c.settle(int8(end))
		}
		d.count++
		c.sibling, d.conns[key] = d.conns[key], c
	}
	if h := &c.half[end]; !h.routed {
		h.routed, h.path = true, s.path
	}
	d.last = c
	c.used = s.frame
	return c, end
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
func (c *Conn) matches(s *segment, end int) int {
	h, o := &c.half[end], &c.half[1-end]
	switch {
	case h.routed && h.path == s.path:
		return samePath
	case !h.routed && o.path == s.path:
		return otherPath
	case h.routed && (h.path == 0) == (s.path == 0):
		return noMatch
	case s.flags&flagACK != 0 && o.known && !isNear(s.ack, o.next), h.known && !isNear(s.seq, h.next):
		return noMatch
	case s.flags&flagSYN != 0 && h.known && s.seq != h.isn, s.flags&flagACK == 0 && !h.known:
		return noMatch
	case s.flags&(flagSYN|flagACK) == flagSYN|flagACK && o.syn && s.ack != o.isn+1:
		return noMatch
	}
	return fits
}

func isNear(a, b uint32) bool { return a-b+near <= 2*near }

// lookUp returns the connection of a segment, or nil.
func (d *Decoder) lookUp(key connKey, s *segment, end int) (best *Conn) {
	quality, n := noMatch, 0
	for c := d.conns[key]; c != nil; c = c.sibling {
		if q := c.matches(s, end); q > quality {
			best, quality = c, q
		}
		n++
	}
	if best == nil && n >= maxSiblings {
		oldest := d.conns[key]
		for c := oldest; c != nil; c = c.sibling {
			if c.used < oldest.used {
				oldest = c
			}
		}
		d.stats.GivenUp++
		d.replace(oldest, s)
	}
	return best
}

// all iterates over the connections.
func (d *Decoder) all(yield func(*Conn) bool) {
	for _, c := range d.conns {
		for ; c != nil; c = c.sibling {
			if !yield(c) {
				return
			}
		}
	}
}

// replace ends a connection and forgets it.
func (d *Decoder) replace(c *Conn, s *segment) {
	d.end(c, s.frame, s.at)
	if d.last == c {
		d.last = nil
	}
	d.count--
	first := d.conns[c.ends]
	if first == c && c.sibling == nil {
		delete(d.conns, c.ends)
		return
	}
	if first == c {
		d.conns[c.ends] = c.sibling
		return
	}
	for first.sibling != c {
		first = first.sibling
	}
	first.sibling = c.sibling
}

// misses records that the beginning of a direction was not captured. The messages of the other direction are decoded
// from its first byte if its SYN was captured.
func (d *Decoder) misses(c *Conn, h, other *half) {
	h.lost, h.start, h.guess, c.Uncertain = true, true, true, true
	if !other.syn && c.search == nil && !c.decided && len(c.early) == 0 && !d.opts.guesses() {
		c.search = &search{}
	}
}

// reused reports whether a SYN begins another connection on the same ports.
func (c *Conn) reused(s *segment, end int) bool {
	h := &c.half[end]
	switch {
	case h.syn:
		return h.isn != s.seq
	case s.flags&flagACK != 0 && c.half[1-end].syn && c.half[1-end].isn+1 == s.ack:
		return false // the reply to the SYN that began this connection
	}
	return h.known && h.next != s.seq+1
}

// wanted reports whether a segment belongs to a connection that Options.Ports selects.
func (d *Decoder) wanted(s *segment) bool {
	ports := d.opts.Ports
	return len(ports) == 0 || slices.Contains(ports, s.src.port) || slices.Contains(ports, s.dst.port)
}

// evict removes connections that have ended and, if there are too few of them, the connections that have had no
// packets for the longest time.
func (d *Decoder) evict(s *segment) {
	oldest := s.frame
	var over []*Conn
	for c := range d.all {
		if c.over() && s.frame-c.used > linger {
			over = append(over, c)
		} else {
			oldest = min(oldest, c.used)
		}
	}
	d.forget(over, s)
	d.sweep = min(max(minSweep, 2*d.count), maxConns)
	if d.count < maxConns*3/4 {
		return
	}
	var silent []*Conn
	for c := range d.all {
		if c.used <= oldest+(s.frame-oldest)/2 {
			silent = append(silent, c)
		}
	}
	d.stats.GivenUp += len(silent)
	d.forget(silent, s)
}

// forget ends connections, in the order in which they began.
func (d *Decoder) forget(conns []*Conn, s *segment) {
	slices.SortFunc(conns, earlier)
	for _, c := range conns {
		d.replace(c, s)
	}
}

// over reports whether both ends have closed the connection, even if earlier data is missing.
func (c *Conn) over() bool { return c.closed || c.half[0].closing && c.half[1].closing }

// segment processes a segment of a connection. Data is passed on in the order of the stream, and only after all
// data that its sender had received. So a request comes before its reply, even if the packets in the capture
// are out of order.
func (d *Decoder) segment(c *Conn, end int, s *segment) {
	h, o := &c.half[end], &c.half[1-end]
	seq := s.seq
	if s.flags&flagSYN != 0 {
		if h.lost && c.search == nil && h.next == seq+1 { // the SYN arrives late
			h.lost, h.start, h.guess = false, false, false
		}
		if !h.syn {
			h.syn, h.isn, h.next, h.known = true, seq, seq+1, true
		}
		seq++
	}
	ack := s.flags&flagACK != 0
	if !h.known {
		h.next, h.known, h.isn = seq, true, seq-1
		d.misses(c, h, o)
	}
	if ack {
		if !o.known {
			o.next, o.known, o.isn = s.ack, true, s.ack-1
			if s.flags&flagSYN == 0 {
				d.misses(c, o, h)
			}
		}
		if !o.heard || int32(s.ack-o.acked) > 0 {
			o.acked, o.heard = s.ack, true
		}
	}
	if s.flags&flagRST != 0 {
		d.flush(c)
		if !c.closed {
			d.conclude(c)
			d.finish(c, 0, false, s.frame, s.at)
			d.finish(c, 1, false, s.frame, s.at)
			c.closed = true
			d.closing(c, end, Breaks, s.frame, s.at)
		}
		return
	}
	size := len(s.data) + s.missing
	if s.flags&flagFIN != 0 {
		h.closing = true
		size++
	}
	if size == 0 {
		return
	}
	if int32(seq+uint32(size)-h.next) <= 0 {
		if s.flags&flagSYN == 0 {
			d.stats.Duplicates++
			d.compare(c, end, seq, s.data, s.frame, s.at)
		}
		return
	}
	w := chunk{end: end, seq: seq, ack: s.ack, flags: s.flags, data: s.data, missing: s.missing, frame: s.frame, at: s.at}
	if c.ready(&w) {
		d.deliver(c, &w)
		if len(c.pending) > 0 {
			d.drain(c)
		}
		return
	}
	w.data = append([]byte(nil), s.data...)
	c.pending = append(c.pending, w)
	c.pendingBytes += w.cost()
	d.pendingBytes += w.cost()
	for len(c.pending) > 0 && (len(c.pending) > maxPendingCount || c.pendingBytes > maxPendingBytes ||
		len(c.pending) > maxProven && c.proven() || d.pendingBytes > maxPendingAll) {
		d.passOver(c)
	}
}

// ready reports whether a segment can be passed on.
func (c *Conn) ready(w *chunk) bool {
	return int32(w.seq-c.half[w.end].next) <= 0 && !c.ahead(w)
}

// ahead reports whether the sender of a segment had received data that was not passed on yet.
func (c *Conn) ahead(w *chunk) bool {
	o := &c.half[1-w.end]
	return w.flags&flagACK != 0 && o.known && int32(w.ack-o.next) > 0
}

// proven reports whether the other end has acknowledged the data for which the oldest segment waits. That data
// will not be sent again, so it is missing in the capture.
func (c *Conn) proven() bool {
	w := &c.pending[0]
	h := &c.half[w.end]
	return int32(w.seq-h.next) <= 0 || h.heard && int32(h.acked-h.next) > 0
}

// deliver passes on the new data of a segment.
func (d *Decoder) deliver(c *Conn, w *chunk) {
	h := &c.half[w.end]
	old := int(h.next - w.seq)
	data, missing := w.data, w.missing
	if old > len(data) {
		missing -= old - len(data)
		old = len(data)
	}
	if old > 0 {
		d.compare(c, w.end, w.seq, data[:old], w.frame, w.at)
	}
	if data = data[old:]; len(data) > 0 {
		level := w.flags&flagACK != 0 && w.ack == c.half[1-w.end].next
		switch other := int8(1 - w.end); {
		case c.lastSender == other && c.level && level:
			c.turn = sureTurn
		case c.missed == other && level:
			c.turn = likelyTurn
		default:
			c.turn = noTurn
		}
		c.lastSender, c.level, c.missed = int8(w.end), level, unknown
		d.recent.add(h, data)
		h.next += uint32(len(data))
		d.feed(c, w.end, data, w.frame, w.at)
	}
	if missing > 0 {
		h.next += uint32(missing)
		d.gap(c, w.end, missing, w.frame, w.at, true)
	}
	if w.flags&flagFIN != 0 && !h.fin {
		h.fin = true
		h.next++
		if c.search != nil {
			d.seek(c, &chunk{end: w.end, flags: flagFIN, frame: w.frame, at: w.at})
		} else {
			d.finish(c, w.end, true, w.frame, w.at)
			d.closing(c, w.end, Ends, w.frame, w.at)
		}
		if c.closed = c.half[0].fin && c.half[1].fin; c.closed {
			d.conclude(c)
		}
	}
}

func (d *Decoder) closing(c *Conn, end int, kind ItemKind, frame int, at int64) {
	if c.ID > 0 && c.Protocol != nil {
		d.item = Item{Kind: kind, Conn: c, From: c.side(end), First: frame, Last: frame, At: at}
		d.handle(&d.item)
	}
}

// drain passes on the segments that are ready.
func (d *Decoder) drain(c *Conn) {
	for progress := true; progress && len(c.pending) > 0; {
		progress = false
		waiting := c.pending
		c.pending = nil
		kept := waiting[:0]
		for i := range waiting {
			w := &waiting[i]
			h := &c.half[w.end]
			switch size := uint32(len(w.data) + w.missing + int(w.flags&flagFIN)); {
			case int32(w.seq+size-h.next) <= 0:
				d.stats.Duplicates++
				d.compare(c, w.end, w.seq, w.data, w.frame, w.at)
			case c.ready(w):
				d.deliver(c, w)
			default:
				kept = append(kept, *w)
				continue
			}
			c.pendingBytes -= w.cost()
			d.pendingBytes -= w.cost()
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
func (d *Decoder) passOver(c *Conn) {
	end := c.pending[0].end
	first := c.lowest(end)
	n := int32(c.pending[first].seq - c.half[end].next)
	if n <= 0 { // the segment waits for data of the other end, which its sender had received
		n = int32(c.pending[first].ack - c.half[1-end].next)
		if o := c.lowest(1 - end); o >= 0 {
			n = min(n, int32(c.pending[o].seq-c.half[1-end].next))
		}
		end = 1 - end
	}
	w := c.pending[0]
	if n > 0 {
		c.half[end].next += uint32(n)
		d.gap(c, end, int(n), w.frame, w.at, false)
	} else { // both ends wait for each other, which is invalid in TCP, so pass the data on in some order
		o := c.pending[first]
		c.pending = append(c.pending[:first], c.pending[first+1:]...)
		c.pendingBytes -= o.cost()
		d.pendingBytes -= o.cost()
		d.deliver(c, &o)
	}
	d.drain(c)
}

// lowest returns the index of the waiting segment of an end with the lowest sequence number, or -1.
func (c *Conn) lowest(end int) int {
	best := -1
	for i := range c.pending {
		if c.pending[i].end == end && (best < 0 || int32(c.pending[i].seq-c.pending[best].seq) < 0) {
			best = i
		}
	}
	return best
}

// flush passes on all waiting segments, with gaps for missing data.
func (d *Decoder) flush(c *Conn) {
	for len(c.pending) > 0 {
		d.passOver(c)
	}
}

// end passes on the remaining data of a connection and closes it.
func (d *Decoder) end(c *Conn, frame int, at int64) {
	d.flush(c)
	c.closed = true
	d.conclude(c)
	d.finish(c, 0, false, frame, at)
	d.finish(c, 1, false, frame, at)
}
