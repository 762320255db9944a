package pcap

import (
	"net/netip"
	"slices"

	"jobwire/codec"
)

// Conn is a TCP connection.
type Conn struct {
	ID       int // from 1, in the order in which connections begin to carry data
	Peer     netip.AddrPort
	Server   netip.AddrPort
	Protocol *codec.Protocol // nil if none was recognised; [TLS] if it is encrypted
	Role     codec.Role      // what the peer may be, by what it did so far
	Last     int64           // time of the message before this one, 0 if there is none

	// Uncertain is set once bytes are missing: which reply belongs to which request
	// is a guess from then on.
	Uncertain bool

	ends    [2]endpoint
	half    [2]half
	server  int8 // which of the ends, or unknown
	closed  bool
	decided bool // Protocol is final
	session codec.Session
	early   []chunk // data before it is decided
	first   []byte  // how the first message begins; nil if none has been read
	search  *search // while the beginning is missing, and no message boundary is proved
	spoke   int8    // the end that sent the last data, or unknown
	level   bool    // it had received everything by then
	turn    bool    // the direction has changed, and both ends had received everything
	judged  bool    // the checker knows it

	held      []chunk // segments that wait for others, in the order of the capture
	heldBytes int
	used      int // number of the last packet
}

const unknown int8 = -1

// half is one direction of a connection.
type half struct {
	next  uint32 // sequence number of the next byte
	acked uint32 // what the other end has acknowledged
	isn   uint32 // of the SYN
	known bool   // next is
	heard bool   // acked is
	syn   bool   // isn is
	fin   bool   // nothing follows

	closing bool // the last segment has been seen, though others may be missing

	buf   []byte // the beginning of a message
	marks []mark // where the packets in buf begin
	need  int    // length of buf that is worth another look
	skip  int    // bytes that are known to belong to no readable message
	lost  bool   // where the next message begins is not known
	start bool   // the next byte may well begin one
	guess bool   // where messages begin is not proved
}

// mark is where a packet's bytes begin in a buffer.
type mark struct{ off, frame int }

// chunk is a segment that waits, of what is new in it.
type chunk struct {
	end      int
	seq, ack uint32
	flags    byte
	data     []byte
	missing  int
	frame    int
	at       int64
}

// cost is what a segment that waits takes, in bytes.
func (w *chunk) cost() int { return len(w.data) + 128 }

// Kind of an [Item].
type ItemKind uint8

const (
	Message  ItemKind = iota // Frame
	Violates                 // Frame and Raw, which break the rule of Err
	Unread                   // Raw: bytes that belong to no message that is there as a whole
	Gap                      // Missing bytes are not in the capture
	Ends                     // From has closed its direction
	Breaks                   // From has reset the connection
	Skipped                  // Missing bytes are in the capture, but where a message begins in them is not proved
)

// Item is a piece of a stream. It is valid during the call that it is given to.
type Item struct {
	Kind        ItemKind
	Conn        *Conn
	From        codec.Side
	Frame       *codec.Frame
	Raw         []byte
	Err         *codec.Error
	Missing     int
	Cut         bool // of Unread: the beginning of a message of which the rest is missing
	Unpaired    bool // of Message: no request was seen that it could answer
	First, Last int  // packets it came in
	At          int64
}

// side tells which side an end is.
func (c *Conn) side(end int) codec.Side {
	if int8(end) == c.server {
		return codec.Server
	}
	return codec.Peer
}

// settle says which end is the server.
func (c *Conn) settle(server int8) {
	c.server = server
	c.Server, c.Peer = c.ends[server].addrPort(), c.ends[1-server].addrPort()
}

// reset forgets the messages so far: after a loss it is not known which
// requests wait for a reply.
func (d *Decoder) reset(c *Conn) {
	c.Uncertain = true
	if c.Protocol != nil && c.Protocol.NewSession != nil {
		c.session = c.Protocol.NewSession(codec.Options{MaxData: maxMessage, Waive: c.Protocol.Unpaired})
	}
}

// feed takes the next bytes of a stream.
func (d *Decoder) feed(c *Conn, end int, b []byte, frame int, at int64) {
	d.stats.StreamBytes += int64(len(b))
	if c.ID == 0 {
		d.stats.Connections++
		c.ID = d.stats.Connections
	}
	if c.search != nil {
		d.seek(c, &chunk{end: end, data: b, frame: frame, at: at})
		return
	}
	if !c.decided {
		d.decide(c, end, b, frame, at)
		return
	}
	d.read(c, end, b, frame, at)
}

// read takes the next bytes of a stream whose protocol is decided.
func (d *Decoder) read(c *Conn, end int, b []byte, frame int, at int64) {
	h := &c.half[end]
	if c.turn && c.agrees() {
		c.half[0].guess, c.half[1].guess = false, false
	}
	if c.session == nil {
		d.unread(c, end, b, frame, frame, at, false)
		return
	}
	if len(h.buf) == 0 {
		n := d.messages(c, end, b, frame, at)
		if n < len(b) {
			d.buffer(h, b[n:], mark{0, frame})
		}
		return
	}
	d.buffer(h, b, mark{len(h.buf), frame})
	if len(h.buf) < h.need && len(h.buf) <= maxMessage && d.buffered <= maxBuffered {
		return
	}
	n := d.messages(c, end, h.buf, frame, at)
	d.consume(h, n)
	if len(h.buf) > maxMessage+maxLine || d.buffered > maxBuffered {
		d.stats.GivenUp++
		d.stats.Truncated++
		skip := h.need - len(h.buf)
		d.unread(c, end, h.buf, h.marks[0].frame, frame, at, true)
		d.consume(h, len(h.buf))
		h.skip, h.lost = max(skip, 0), true
		d.reset(c)
	}
}

// agrees reports whether both directions were read to the end of a message.
func (c *Conn) agrees() bool {
	for i := range c.half {
		if h := &c.half[i]; h.lost || h.skip > 0 || len(h.buf) > 0 {
			return false
		}
	}
	return true
}

// buffer keeps bytes until more of their message has come.
func (d *Decoder) buffer(h *half, b []byte, m mark) {
	d.buffered += len(b)
	if n := len(d.spare); h.buf == nil && n > 0 {
		h.buf, d.spare = d.spare[n-1], d.spare[:n-1]
	}
	h.buf = append(h.buf, b...)
	h.marks = append(h.marks, m)
}

// consume drops what has been read from the buffer.
func (d *Decoder) consume(h *half, n int) {
	d.buffered -= n
	if n == len(h.buf) {
		if cap(h.buf) <= keptBuffer && len(d.spare) < maxSpare {
			d.spare = append(d.spare, h.buf[:0])
		}
		h.buf, h.marks = nil, h.marks[:0]
		if cap(h.marks) > maxSpare {
			h.marks = nil
		}
		return
	}
	if n == 0 {
		return
	}
	h.buf = h.buf[:copy(h.buf, h.buf[n:])]
	kept := h.marks[:0]
	for i, m := range h.marks {
		if i+1 < len(h.marks) && h.marks[i+1].off <= n {
			continue
		}
		kept = append(kept, mark{max(0, m.off-n), m.frame})
	}
	h.marks = kept
}

// first returns the packet that the byte at off of the buffer came in.
func (h *half) first(off, frame int) int {
	for i := len(h.marks) - 1; i >= 0; i-- {
		if h.marks[i].off <= off {
			return h.marks[i].frame
		}
	}
	return frame
}

// inOrder returns two packets as they stand in the capture, which may have them
// in another order than the stream.
func inOrder(a, b int) (int, int) { return min(a, b), max(a, b) }

// messages reads the messages in b, and returns how many bytes it is done with.
// The last of them came in the given packet.
func (d *Decoder) messages(c *Conn, end int, b []byte, frame int, at int64) int {
	h, from := &c.half[end], c.side(end)
	h.need = 0
	off := 0
	for off < len(b) {
		if h.skip > 0 {
			n := min(h.skip, len(b)-off)
			d.unread(c, end, b[off:off+n], h.first(off, frame), frame, at, false)
			h.skip -= n
			h.start = true
			off += n
			continue
		}
		if h.lost {
			n, found := d.resume(c, end, off, b[off:], off == 0 || h.start)
			h.start = false
			if n > 0 {
				d.unread(c, end, b[off:off+n], h.first(off, frame), frame, at, false)
			}
			off += n
			if !found {
				return off
			}
			h.lost = false
		}
		n, err := c.session.Decode(from, b[off:], &d.frame)
		if err == codec.ErrShort {
			h.need = n
			return off
		}
		it := &d.item
		*it = Item{Conn: c, From: from, Frame: &d.frame, Raw: d.frame.Raw, First: frame, Last: frame, At: at}
		if len(h.marks) > 0 {
			it.First, it.Last = inOrder(h.first(off, frame), frame)
		}
		if err == nil {
			off += n
			d.message(c, it)
			continue
		}
		e := err.(*codec.Error)
		if e.Fatal {
			if c.isPairing(e) { // requests without replies: only one direction is captured
				d.reset(c)
				continue
			}
			n = min(len(b)-off, e.Offset+1)
			h.lost = true
		}
		if c.isPairing(e) && len(c.half[1-end].buf) > 0 { // an answer to the beginning of a request, as to one that is too big
			c.Uncertain = true
		}
		guess := c.Uncertain && (c.isPairing(e) || from == codec.Server && slices.Contains(c.Protocol.Dependent, e.Rule))
		if guess && n > len(b)-off && n <= maxMessage {
			h.need = n
			return off
		}
		have := max(1, min(n, len(b)-off))
		it.Raw = b[off : off+have]
		off += have
		h.skip = max(0, n-have)
		if it.Err = e; guess {
			it.Err, it.Unpaired = nil, true
			d.frame.Raw = it.Raw
			d.message(c, it)
			continue
		}
		if h.guess { // what may be a payload is not checked
			d.unread(c, end, it.Raw, it.First, it.Last, at, false)
			h.lost, h.skip = true, 0
			continue
		}
		it.Kind = Violates
		d.violation(c, it)
	}
	return off
}

// violation hands on a message that breaks a rule.
func (d *Decoder) violation(c *Conn, it *Item) {
	d.stats.Violations++
	d.rules[it.Err.Rule]++
	d.message(c, it)
}

// message hands on a message, be it right or wrong.
func (d *Decoder) message(c *Conn, it *Item) {
	if c.first == nil {
		c.first = append([]byte{}, it.Raw[:min(len(it.Raw), maxMagic)]...)
	}
	if t := it.Frame.Type; t != nil {
		if role := t.Roles(it.From) & c.Role; role != 0 {
			c.Role = role
		}
	}
	d.handle(it)
	c.Last = it.At
}

// unread hands on bytes that are no message.
func (d *Decoder) unread(c *Conn, end int, b []byte, first, last int, at int64, cut bool) {
	if len(b) == 0 {
		return
	}
	first, last = inOrder(first, last)
	d.item = Item{Kind: Unread, Conn: c, From: c.side(end), Raw: b, Cut: cut, First: first, Last: last, At: at}
	d.handle(&d.item)
}

// gap notes that n bytes of a stream are missing, because they were lost or
// because the packet was cut short.
func (d *Decoder) gap(c *Conn, end, n, frame int, at int64, snapped bool) {
	h := &c.half[end]
	if snapped {
		d.stats.CutPackets++
	} else {
		d.stats.Gaps++
	}
	d.stats.Missing += int64(n)
	c.spoke = unknown
	if c.search != nil {
		d.restart(c.search)
		return
	}
	if !c.decided {
		c.Uncertain = true
		c.early = append(c.early, chunk{end: end, missing: n, frame: frame, at: at})
		h.lost = true
		return
	}
	d.lose(c, end, n, frame, at)
}

// lose breaks a stream off and goes on n bytes later.
func (d *Decoder) lose(c *Conn, end, n, frame int, at int64) {
	h := &c.half[end]
	touched, inside := len(h.buf) > 0, 0 // inside is the number of bytes after the gap that are part of the message before it
	switch {
	case h.skip > 0:
		inside = h.skip - n
	case touched:
		inside = h.need - len(h.buf) - n
	}
	if touched {
		d.stats.Truncated++
		d.unread(c, end, h.buf, h.marks[0].frame, frame, at, true)
		d.consume(h, len(h.buf))
	}
	d.item = Item{Kind: Gap, Conn: c, From: c.side(end), Missing: n, First: frame, Last: frame, At: at}
	d.handle(&d.item)
	h.skip, h.lost, h.start, h.guess = max(0, inside), true, true, true
	d.reset(c)
}

// finish hands on what is left of a direction that ends. closed is set if its sender has closed it, rather
// than that the capture ends or the connection was reset.
func (d *Decoder) finish(c *Conn, end int, closed bool, frame int, at int64) {
	h := &c.half[end]
	if !c.decided {
		d.giveUpDeciding(c)
	}
	if len(h.buf) > 0 && closed && !h.guess && !h.lost && !c.half[1-end].fin {
		d.frame = codec.Frame{From: c.side(end), Raw: h.buf}
		it := &d.item
		*it = Item{Kind: Violates, Conn: c, From: c.side(end), Frame: &d.frame, Raw: h.buf, Err: c.Protocol.CutShort(len(h.buf), h.need, 0), At: at}
		it.First, it.Last = inOrder(h.marks[0].frame, frame)
		d.stats.Truncated++
		d.violation(c, it)
		d.consume(h, len(h.buf))
	}
	if len(h.buf) > 0 {
		d.stats.Truncated++
		d.unread(c, end, h.buf, h.marks[0].frame, frame, at, true)
		d.consume(h, len(h.buf))
	}
	h.buf, h.marks = nil, nil
}
