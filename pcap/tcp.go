package pcap

// Bounds of what waits for packets that have not come.
const (
	maxHeldBytes = 1 << 20  // of one connection
	maxHeldCount = 2048     // segments of one connection
	maxProven    = 64       // of them, once it is proved that what they wait for is not in the capture
	maxHeldAll   = 16 << 20 // bytes of all connections
	maxConns     = 1 << 16  // connections that are remembered
)

// connKey is the ends of a connection, in their order.
type connKey [2]endpoint

// connection finds the connection of a segment, and which of its ends sent it.
// It returns nil where a segment is not worth beginning one.
func (d *Decoder) connection(s *segment) (*Conn, int) {
	key, end := connKey{s.src, s.dst}, 0
	if s.dst.before(s.src) {
		key, end = connKey{s.dst, s.src}, 1
	}
	c := d.last
	if c == nil || c.ends != key {
		c = d.conns[key]
	}
	if c != nil && s.flags&flagSYN != 0 && c.reused(s, end) {
		d.end(c, s.frame, s.at)
		c = nil
	}
	if c != nil && c.closed && c.half[end].known && len(s.data) > 0 && int32(s.seq-c.half[end].next) > 1<<16 {
		d.end(c, s.frame, s.at) // the capture has missed how the next one on these ports began
		c = nil
	}
	if c == nil {
		if s.flags&flagRST != 0 || s.flags&flagSYN == 0 && len(s.data)+s.missing == 0 || !d.wanted(s) {
			return nil, 0
		}
		if len(d.conns) >= maxConns {
			d.evict(s)
		}
		c = &Conn{ends: key, server: unknown}
		if s.flags&(flagSYN|flagACK) == flagSYN {
			c.settle(int8(1 - end))
		} else if s.flags&flagSYN != 0 {
			c.settle(int8(end))
		}
		d.conns[key] = c
	}
	d.last = c
	c.used = s.frame
	return c, end
}

// reused reports whether a SYN begins another connection on the same ports.
func (c *Conn) reused(s *segment, end int) bool {
	h := &c.half[end]
	switch {
	case h.syn:
		return h.isn != s.seq
	case s.flags&flagACK != 0 && c.half[1-end].syn && c.half[1-end].isn+1 == s.ack:
		return false // the answer to the SYN that began this one
	}
	return h.known && h.next != s.seq+1
}

// wanted reports whether the user wants to see a connection.
func (d *Decoder) wanted(s *segment) bool {
	if len(d.opts.Ports) == 0 {
		return true
	}
	for _, p := range d.opts.Ports {
		if s.src.port == p || s.dst.port == p {
			return true
		}
	}
	return false
}

// evict forgets connections: those that are closed, else those that have been silent
// for longest.
func (d *Decoder) evict(s *segment) {
	oldest := s.frame
	for key, c := range d.conns {
		if c.closed && !c.unfinished() {
			delete(d.conns, key)
		} else {
			oldest = min(oldest, c.used)
		}
	}
	if len(d.conns) < maxConns*3/4 {
		return
	}
	limit := oldest + (s.frame-oldest)/2
	for _, c := range d.open() {
		if c.used <= limit {
			d.end(c, s.frame, s.at)
			delete(d.conns, c.ends)
			d.stats.GivenUp++
		}
	}
}

// segment takes a segment of a connection. Data is handed on in the order of the
// stream, and never before what its sender had received: then a reply does not come
// before its request, however the capture has shuffled them.
func (d *Decoder) segment(c *Conn, end int, s *segment) {
	h, o := &c.half[end], &c.half[1-end]
	seq := s.seq
	if s.flags&flagSYN != 0 {
		if !h.syn {
			h.syn, h.isn, h.next, h.known = true, seq, seq+1, true
		}
		seq++
	}
	ack := s.flags&flagACK != 0
	if !h.known {
		h.next, h.known, h.lost, h.start, c.Uncertain = seq, true, true, true, true
	}
	if ack {
		if !o.known {
			o.next, o.known = s.ack, true
			if s.flags&flagSYN == 0 {
				o.lost, o.start, c.Uncertain = true, true, true
			}
		}
		if !o.heard || int32(s.ack-o.acked) > 0 {
			o.acked, o.heard = s.ack, true
		}
	}
	if s.flags&flagRST != 0 {
		d.flush(c)
		if !c.closed {
			d.finish(c, 0, s.frame, s.at)
			d.finish(c, 1, s.frame, s.at)
			c.closed = true
			d.closing(c, end, Breaks, s.frame, s.at)
		}
		return
	}
	size := len(s.data) + s.missing
	if s.flags&flagFIN != 0 {
		size++
	}
	if size == 0 {
		return
	}
	if int32(seq+uint32(size)-h.next) <= 0 {
		if s.flags&flagSYN == 0 {
			d.stats.Duplicates++
		}
		return
	}
	w := chunk{end: end, seq: seq, ack: s.ack, flags: s.flags, data: s.data, missing: s.missing, frame: s.frame, at: s.at}
	if c.ready(&w) {
		d.deliver(c, &w)
		if len(c.held) > 0 {
			d.drain(c)
		}
		return
	}
	w.data = append([]byte(nil), s.data...)
	c.held = append(c.held, w)
	c.heldBytes += len(w.data)
	d.heldBytes += len(w.data)
	for len(c.held) > 0 && (len(c.held) > maxHeldCount || c.heldBytes > maxHeldBytes || len(c.held) > maxProven && c.proven() || d.heldBytes > maxHeldAll) {
		d.passOver(c)
	}
}

// ready reports whether a segment's turn has come.
func (c *Conn) ready(w *chunk) bool {
	return int32(w.seq-c.half[w.end].next) <= 0 && !c.ahead(w)
}

// ahead reports whether the sender of a segment had received what has not been
// handed on yet.
func (c *Conn) ahead(w *chunk) bool {
	o := &c.half[1-w.end]
	return w.flags&flagACK != 0 && o.known && int32(w.ack-o.next) > 0
}

// proven reports whether what the oldest segment waits for was received by the
// other end: then it will not be sent again, but was missed by the capture.
func (c *Conn) proven() bool {
	w := &c.held[0]
	h := &c.half[w.end]
	return int32(w.seq-h.next) <= 0 || h.heard && int32(h.acked-h.next) > 0
}

// deliver hands on what is new in a segment.
func (d *Decoder) deliver(c *Conn, w *chunk) {
	h := &c.half[w.end]
	old := int(h.next - w.seq)
	data, missing := w.data, w.missing
	if old > len(data) {
		missing -= old - len(data)
		old = len(data)
	}
	if data = data[old:]; len(data) > 0 {
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
		d.finish(c, w.end, w.frame, w.at)
		d.closing(c, w.end, Ends, w.frame, w.at)
		c.closed = c.half[0].fin && c.half[1].fin
	}
}

func (d *Decoder) closing(c *Conn, end int, kind ItemKind, frame int, at int64) {
	if c.ID > 0 && c.Protocol != nil {
		d.item = Item{Kind: kind, Conn: c, From: c.side(end), First: frame, Last: frame, At: at}
		d.handle(&d.item)
	}
}

// drain hands on the segments whose turn has come.
func (d *Decoder) drain(c *Conn) {
	for progress := true; progress && len(c.held) > 0; {
		progress = false
		waiting := c.held
		c.held = nil
		kept := waiting[:0]
		for i := range waiting {
			w := &waiting[i]
			h := &c.half[w.end]
			switch size := uint32(len(w.data) + w.missing + int(w.flags&flagFIN)); {
			case int32(w.seq+size-h.next) <= 0:
				d.stats.Duplicates++
			case c.ready(w):
				d.deliver(c, w)
			default:
				kept = append(kept, *w)
				continue
			}
			c.heldBytes -= len(w.data)
			d.heldBytes -= len(w.data)
			progress = true
		}
		clear(waiting[len(kept):])
		c.held = kept
	}
	if len(c.held) == 0 {
		c.held = nil
	}
}

// passOver declares lost what the oldest waiting segment waits for, up to the
// next byte that is there.
func (d *Decoder) passOver(c *Conn) {
	w := c.held[0]
	end, n := w.end, int32(w.seq-c.half[w.end].next)
	if n <= 0 { // it waits for the other end
		end = 1 - end
		for i := range c.held {
			if o := &c.held[i]; o.end == w.end {
				n = max(n, int32(o.ack-c.half[end].next))
			}
		}
	}
	h := &c.half[end]
	next := -1 // of those that wait, the one whose turn is next at this end
	for i := range c.held {
		if o := &c.held[i]; o.end == end && int32(o.seq-h.next) <= n {
			n, next = int32(o.seq-h.next), i
		}
	}
	if n > 0 {
		h.next += uint32(n)
		d.gap(c, end, int(n), w.frame, w.at, false)
	} else if next >= 0 { // both ends wait for each other, as no TCP does: the order is lost, the data is not
		o := c.held[next]
		c.held = append(c.held[:next], c.held[next+1:]...)
		c.heldBytes -= len(o.data)
		d.heldBytes -= len(o.data)
		d.deliver(c, &o)
	}
	d.drain(c)
}

// flush hands on all that waits, with the gaps in it.
func (d *Decoder) flush(c *Conn) {
	for len(c.held) > 0 {
		d.passOver(c)
	}
}

// end hands on all that is left of a connection.
func (d *Decoder) end(c *Conn, frame int, at int64) {
	d.flush(c)
	c.closed = true
	d.finish(c, 0, frame, at)
	d.finish(c, 1, frame, at)
}
