package pcap

import (
	"bytes"
	"net/netip"
	"slices"

	"jobwire/codec"
	"jobwire/judge"
)

// Conn is a TCP connection.
type Conn struct {
	ID       int // from 1, in the order in which connections begin to carry data
	Peer     netip.AddrPort
	Server   netip.AddrPort
	Protocol *codec.Protocol // nil if none was recognized; [TLS] if the connection is encrypted
	Role     codec.Role      // the roles that the peer may have, given its messages so far
	Last     int64           // time of the previous message, 0 if there is none

	// Uncertain is set when bytes are missing. From then on, it is a guess to which request a reply belongs.
	Uncertain bool

	ends       [2]endpoint
	network    uint64 // of the first packet
	sibling    *Conn  // a connection between the same ends in another network
	half       [2]half
	server     int8 // index of the server in ends, or unknown
	closed     bool
	decided    bool // Protocol is final
	session    codec.Session
	blame      codec.Blame
	early      []chunk        // data before the protocol is decided
	first      []byte         // beginning of the first message, at most maxMagic bytes; nil if no message has been decoded
	search     *search        // non-nil while the beginning of the connection is missing and no message boundary is proved
	lastSender int8           // the end that sent the last data, or unknown
	level      bool           // when lastSender sent its last data, it had received all data of the other end
	missed     int8           // the end whose data is missing after the last data, or unknown, or bothEnds
	turn       turn           // whether the sender has just changed
	audited    bool           // the rule checker knows the connection
	monitor    *judge.Monitor // of the server, or nil if it was not needed yet
	calm       bool           // when the peer last began to send, both directions were at the end of a message
	shown      bool           // the protocol was reported as unknown, and the bytes are passed on as unread
	skips      bool           // bytes of the connection were skipped

	tls *secured // state of the decryption; nil unless the connection is TLS and there are key logs

	pending      []chunk // segments that wait for missing earlier segments, in capture order
	pendingBytes int

	began int // number of the connection's first packet
	used  int // number of its last packet
}

const (
	unknown  int8 = -1
	bothEnds int8 = 2
)

// turn is a change of the sender.
type turn uint8

const (
	noTurn     turn = iota
	likelyTurn      // the other end sent data before, which is missing
	sureTurn        // both ends had received all data that the other had sent
)

// half is one direction of a connection.
type half struct {
	next  uint32 // sequence number of the next byte
	acked uint32 // sequence number up to which the other end has acknowledged
	isn   uint32 // sequence number of the SYN, or of the byte before the first captured one
	known bool   // next is known
	heard bool   // acked is known
	syn   bool   // the SYN was captured

	routed bool   // path is known
	path   uint64 // the numbers in the headers around the first segment of the direction

	fin bool // the direction has ended; no data follows

	recent int64 // position of the last data in [recent], or 0

	closing bool // the last segment was captured; earlier segments may be missing

	buf   []byte // the beginning of an incomplete message
	marks []mark // the offsets in buf at which packets begin
	need  int    // length that buf must have before it is decoded again
	skip  int    // number of bytes to skip, because they belong to a message that cannot be decoded
	large *large // the message to which these bytes belong, if it is passed on later
	lost  bool   // the position at which the next message begins is unknown
	start bool   // the next byte may begin a message
	guess bool   // message boundaries are not proved

	likely *likely // bytes in which messages are only likely, or nil

	resumed bool // a message boundary was proved, and no message was decoded since
}

// mark records that the bytes of a packet begin at an offset of a buffer.
type mark struct{ off, frame int }

// chunk is a part of a stream that is kept until it can be decoded: the new bytes of a segment, or a gap.
type chunk struct {
	end      int
	seq, ack uint32
	flags    byte
	data     []byte
	missing  int
	frame    int
	at       int64
	turn     turn // value of Conn.turn for the chunk
}

// cost returns the approximate memory that a chunk takes, in bytes.
func (w *chunk) cost() int { return len(w.data) + 128 }

// ItemKind is the kind of an [Item].
type ItemKind uint8

const (
	Message   ItemKind = iota // a message, in Frame
	Violates                  // a message, in Frame and Raw, that violates the rule of Err
	Unread                    // Raw: bytes that are not part of a complete message
	Gap                       // Missing is a number of bytes that are not in the capture
	Ends                      // From has closed its direction
	Breaks                    // From has reset the connection
	Skipped                   // Missing is a number of captured bytes in which no message boundary is proved
	Likely                    // a message, in Frame, whose boundaries are not proved but likely
	Conflicts                 // Raw: bytes of a retransmission that differ from those of Conflict
)

// Item is a part of a stream. It is valid only during the call of the handler.
type Item struct {
	Kind        ItemKind
	Conn        *Conn
	From        codec.Side
	Frame       *codec.Frame
	Raw         []byte
	Err         *codec.Error
	Missing     int
	Conflict    *Conflict // of Conflicts
	Omitted     int       // number of bytes after Raw that belong to the message and are skipped, because it is large
	Cut         bool      // of Unread: Raw is the beginning of an incomplete message
	Unproved    bool      // of Unread: after a gap, no message boundary is proved in Raw
	Unpaired    bool      // of Message: it is unknown to which request it is the reply
	Resumed     bool      // of Message: the first message of its direction after a gap and unproved bytes
	First, Last int       // numbers of the packets that contain it
	At          int64
}

// Conflict describes data that was sent twice with different bytes. Raw of the item is the later version.
type Conflict struct {
	Earlier []byte // the earlier version, which is decoded, from the first byte that differs
	Offset  uint32 // position of this byte relative to the first captured byte of its direction, modulo 2^32
}

func (it *Item) isMessage() bool { return it.Kind <= Violates || it.Kind == Likely }

// Clone returns a copy that is valid after the call of the handler.
func (it *Item) Clone() *Item {
	c := *it
	conn := *it.Conn // keep the current value of Last, which changes with each message
	c.Conn = &conn
	c.Raw = bytes.Clone(it.Raw)
	if it.Conflict != nil {
		c.Conflict = &Conflict{bytes.Clone(it.Conflict.Earlier), it.Conflict.Offset}
	}
	if it.Frame != nil {
		f := it.Frame.Clone()
		c.Frame = &f
	}
	return &c
}

// Service identifies a server: servers in different virtual networks can have the same address.
type Service struct {
	netip.AddrPort
	network uint64
}

// Service returns the server of the connection.
func (c *Conn) Service() Service { return Service{c.Server, c.network} }

// Midway reports whether the connection began before the capture.
func (c *Conn) Midway() bool { return c.server == unknown || !c.half[1-c.server].syn }

// side returns whether an end of the connection is the peer or the server.
func (c *Conn) side(end int) codec.Side {
	if int8(end) == c.server {
		return codec.Server
	}
	return codec.Peer
}

// settle records which end is the server.
func (c *Conn) settle(server int8) {
	c.server, c.monitor = server, nil
	c.Server, c.Peer = c.ends[server].addrPort(), c.ends[1-server].addrPort()
}

// reset starts a new decoder session after a loss, because it is unknown which requests wait for a reply.
func (d *Decoder) reset(c *Conn) {
	c.Uncertain, c.calm = true, false
	if c.Protocol != nil && c.Protocol.NewSession != nil {
		c.session = c.Protocol.NewSession(codec.Options{MaxData: dataLimit(c.Protocol), Waive: c.Protocol.Unpaired})
	}
}

// feed processes the next bytes of a stream, which may be encrypted.
func (d *Decoder) feed(c *Conn, end int, b []byte, frame int, at int64) {
	d.stats.StreamBytes += int64(len(b))
	first := c.ID == 0
	if first {
		d.stats.Connections++
		c.ID = d.stats.Connections
	}
	if first {
		d.beginsSecure(c, end, b)
	}
	if c.tls.active() {
		d.secured(c, &chunk{end: end, data: b, frame: frame, at: at})
		return
	}
	d.flow(c, end, b, frame, at)
}

// flow processes the next bytes of a stream after decryption.
func (d *Decoder) flow(c *Conn, end int, b []byte, frame int, at int64) {
	if c.search != nil {
		d.seek(c, &chunk{end: end, data: b, frame: frame, at: at, turn: c.turn})
		return
	}
	if !c.decided {
		d.decide(c, end, b, frame, at)
		return
	}
	d.read(c, end, b, frame, at)
}

// read processes the next bytes of a stream whose protocol is decided.
func (d *Decoder) read(c *Conn, end int, b []byte, frame int, at int64) {
	h := &c.half[end]
	if c.turn == sureTurn && c.side(end) == codec.Peer {
		c.calm = c.agrees()
	}
	if c.turn == sureTurn && c.agrees() {
		c.half[0].guess, c.half[1].guess = false, false
	}
	if c.session == nil {
		if d.secure(c) {
			d.secured(c, &chunk{end: end, data: b, frame: frame, at: at})
			return
		}
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
		skip := h.need - len(h.buf)
		d.cutOff(c, end, frame, at)
		h.skip, h.lost = max(skip, 0), true
		d.reset(c)
	}
}

// agrees reports whether both directions are at the end of a message.
func (c *Conn) agrees() bool { return c.half[0].atEnd() && c.half[1].atEnd() }

// atEnd reports whether a direction is at the end of a message.
func (h *half) atEnd() bool { return !h.lost && h.skip == 0 && len(h.buf) == 0 && h.large == nil }

// buffer keeps bytes until the rest of their message arrives.
func (d *Decoder) buffer(h *half, b []byte, m mark) {
	d.buffered += len(b)
	if n := len(d.spare); h.buf == nil && n > 0 {
		h.buf, d.spare = d.spare[n-1], d.spare[:n-1]
	}
	h.buf = append(h.buf, b...)
	h.marks = append(h.marks, m)
}

// consume removes the first n bytes of the buffer after they were decoded.
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

// first returns the number of the packet that contains the byte at offset off of the buffer.
func (h *half) first(off, frame int) int {
	for i := len(h.marks) - 1; i >= 0; i-- {
		if h.marks[i].off <= off {
			return h.marks[i].frame
		}
	}
	return frame
}

// frames returns the lowest and the highest number of the packets that contain the bytes from offset off of the
// buffer on. The packets may be out of order.
func (h *half) frames(off, frame int) (first, last int) {
	first, last = frame, frame
	for _, m := range slices.Backward(h.marks) {
		first, last = min(first, m.frame), max(last, m.frame)
		if m.off <= off {
			break
		}
	}
	return first, last
}

// messages decodes the complete messages in b and returns their length in bytes. The last byte of b is in the
// packet with the number frame.
func (d *Decoder) messages(c *Conn, end int, b []byte, frame int, at int64) int {
	h, from := &c.half[end], c.side(end)
	h.need = 0
	off := 0
	for off < len(b) {
		if h.skip > 0 {
			off += d.skipRest(c, end, b[off:], h.first(off, frame), frame, at)
			continue
		}
		if h.lost && !d.opts.guesses() {
			d.searchAfter(c, end)
			w := &chunk{end: end, data: b[off:], frame: frame, at: at}
			if off == 0 && len(h.buf) == 0 {
				w.turn = c.turn
			}
			d.skip(c, w)
			return len(b)
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
		if h.large != nil {
			n, short := d.continueLarge(c, end, b[off:], h.first(off, frame), frame, at)
			if off += n; short {
				return off
			}
			continue
		}
		n, err := c.session.Decode(from, b[off:], &d.frame)
		if err == codec.ErrShort {
			if n > maxMessage && len(b)-off >= largeHead && d.shortens(c, end, b[off:], n) {
				h.large.first = h.first(off, frame)
				off += h.large.size - h.skip
				continue
			}
			if h.need = n; n > maxMessage && len(b)-off < largeHead {
				h.need = largeHead
			}
			return off
		}
		it := &d.item
		*it = Item{Conn: c, From: from, Frame: &d.frame, Raw: d.frame.Raw, First: frame, Last: frame, At: at}
		if len(h.marks) > 0 {
			it.First, it.Last = h.frames(off, frame)
		}
		if err == nil {
			off += n
			if c.Uncertain && !c.calm && from == codec.Server && isAnyLine(d.frame.Type) && d.mayBeList(c) {
				d.unread(c, end, it.Raw, it.First, it.Last, at, false)
				d.reset(c)
				continue
			}
			it.Resumed, h.resumed = h.resumed, false
			c.blame.Proved(c.Protocol, &d.frame, nil)
			d.message(c, it)
			continue
		}
		e := err.(*codec.Error)
		if v := c.Protocol.Framing.Values; v != nil && e.Rule == v.Cap && e.Field == "Size" &&
			d.shortens(c, end, b[off:], n) {
			h.large.first = it.First
			continue
		}
		if k, skips := d.skipsLarge(c, end, b[off:], e, n); skips {
			if k == 0 {
				h.need += off
				return off
			}
			h.large.first = it.First
			off += k
			continue
		}
		if e.Fatal {
			if c.isPairing(e) { // there are too many requests without replies, because only one direction was captured
				d.reset(c)
				continue
			}
			n = min(len(b)-off, e.Offset+1)
			h.lost = true
		}
		if c.isPairing(e) && len(c.half[1-end].buf) > 0 { // the reply belongs to a request that is not complete yet, for example one that is too large
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
		checks := d.opts.Audit || d.opts.Check // a listing shows what each message violates by itself
		d.illegal(c, end, it, e, guess, guess || !checks || c.blame.Proved(c.Protocol, &d.frame, e))
	}
	return off
}

// illegal passes on a message that violates a rule. guess is set if it may be valid, because its request is missing.
// proved is not set if it may be wrong only because an earlier message is.
func (d *Decoder) illegal(c *Conn, end int, it *Item, e *codec.Error, guess, proved bool) {
	h := &c.half[end]
	switch {
	case !proved && (e.Fatal || d.frame.Type == nil):
		d.unread(c, end, it.Raw, it.First, it.Last, it.At, false)
	case guess && d.frame.Type == nil && d.mayBeList(c):
		d.unread(c, end, it.Raw, it.First, it.Last, it.At, false)
		d.reset(c)
	case guess, !proved:
		it.Unpaired = true
		it.Resumed, h.resumed = h.resumed, false
		d.frame.Raw = it.Raw
		d.message(c, it)
	case h.guess: // do not report a violation, because the bytes may be part of a payload
		d.unread(c, end, it.Raw, it.First, it.Last, it.At, false)
		h.lost, h.skip = true, 0
	default:
		it.Kind, it.Err = Violates, e
		d.violation(c, it)
	}
}

// mayBeList reports whether a line of a server may belong to a list whose beginning is unknown.
func (d *Decoder) mayBeList(c *Conn) bool { return hasLists(c.Protocol) && !d.opts.guesses() }

// skipRest skips bytes of a message that is not decoded, and returns their number.
func (d *Decoder) skipRest(c *Conn, end int, b []byte, first, frame int, at int64) int {
	h := &c.half[end]
	n := min(h.skip, len(b))
	if h.large == nil || h.large.broken {
		d.unread(c, end, b[:n], first, frame, at, false)
	}
	h.skip -= n
	h.start = true
	if h.large != nil && h.skip == 0 && !h.large.more() {
		d.finishLarge(c, end, frame, at, false)
	}
	return n
}

// violation passes on a message that violates a rule, and counts the violation.
func (d *Decoder) violation(c *Conn, it *Item) {
	d.stats.Violations++
	d.rules[it.Err.Rule]++
	d.message(c, it)
}

// message passes on a message, valid or not.
func (d *Decoder) message(c *Conn, it *Item) {
	if c.first == nil {
		c.first = append([]byte{}, it.Raw[:min(len(it.Raw), maxMagic)]...)
	}
	if t := it.Frame.Type; t != nil {
		if role := t.Roles(it.From) & c.Role; role != 0 {
			c.Role = role
		}
	}
	d.stats.Messages++
	d.handle(it)
	c.Last = it.At
}

// unread passes on bytes that are not a message.
func (d *Decoder) unread(c *Conn, end int, b []byte, first, last int, at int64, cut bool) {
	if len(b) == 0 {
		return
	}
	unproved := c.search != nil && c.search.lossy && !c.search.whole[end]
	d.item = Item{Kind: Unread, Conn: c, From: c.side(end), Raw: b, Cut: cut, Unproved: unproved, At: at}
	d.item.First, d.item.Last = min(first, last), max(first, last) // the order in the stream may differ
	d.handle(&d.item)
}

// finish passes on the remaining bytes of a direction that ends. closed is true if the sender closed the
// direction, and false if the capture ended or the connection was reset.
func (d *Decoder) finish(c *Conn, end int, closed bool, frame int, at int64) {
	h := &c.half[end]
	d.finishSecured(c, end)
	if !c.decided {
		d.giveUpDeciding(c)
	}
	whole := closed && !h.guess && !h.lost && !c.half[1-end].fin
	if h.large != nil {
		d.breakOff(c, end, frame, at, whole)
	}
	if len(h.buf) > 0 && whole {
		d.frame = codec.Frame{From: c.side(end), Raw: h.buf}
		it := &d.item
		*it = Item{Kind: Violates, Conn: c, From: c.side(end), Frame: &d.frame, Raw: h.buf,
			Err: c.Protocol.CutShort(len(h.buf), h.need, 0), At: at}
		it.First, it.Last = h.frames(0, frame)
		d.stats.Truncated++
		d.violation(c, it)
		d.consume(h, len(h.buf))
	}
	d.cutOff(c, end, frame, at)
	h.buf, h.marks = nil, nil
}

// cutOff passes on the beginning of an incomplete message, if there is one: the rest of it will not be decoded.
func (d *Decoder) cutOff(c *Conn, end, frame int, at int64) {
	h := &c.half[end]
	if h.large != nil {
		d.breakOff(c, end, frame, at, false)
	}
	if len(h.buf) > 0 {
		d.stats.Truncated++
		d.unread(c, end, h.buf, h.marks[0].frame, frame, at, true)
		d.consume(h, len(h.buf))
	}
}
