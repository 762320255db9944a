package pcap

import (
	"bytes"
	"encoding/binary"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/resp"
)

// TLS stands for connections that are encrypted. It has no messages.
var TLS = &codec.Protocol{Name: "tls", Title: "TLS", ServerName: "Server", Roles: []string{"Client"}}

// fit is how well bytes suit a protocol.
type fit uint8

const (
	no fit = iota
	maybe
	yes
)

// dialect is how a protocol is recognised, and where in the middle of a stream its
// messages begin.
type dialect struct {
	protocol *codec.Protocol

	// begins judges the beginning of a stream, or of a message in it, and tells the
	// side that sent it where both is true; a side that is wrong makes it no.
	begins func(b []byte) (f fit, from codec.Side, told bool)

	// next finds the earliest place behind the first byte at which a message may
	// begin, by the bytes before it; -1 if there is none.
	next func(c *Conn, from codec.Side, b []byte) int

	// text, if set, is the end of the lines that a server may answer in, too common to
	// recognise the protocol by.
	text string

	// header, if set, is for protocols whose messages begin with a magic that can be
	// found anywhere. It returns the code of the message that b begins, which is a
	// whole header.
	header func(b []byte) uint32
}

// dialects are tried in this order.
var dialects = []dialect{
	{gearman.Protocol, beginsGearman, nextGearman, "\n", func(b []byte) uint32 { return binary.BigEndian.Uint32(b[4:]) }},
	{TLS, beginsTLS, nil, "", nil},
	{gearmonkey.Protocol, beginsRESP, nextLine, "", nil},
	{beanstalk.Protocol, beginsBeanstalk, nextLine, "", nil},
	{danga.Protocol, beginsDanga, nextDanga, "", func(b []byte) uint32 { return uint32(b[4]) }},
}

func dialectOf(p *codec.Protocol) *dialect {
	for i := range dialects {
		if dialects[i].protocol == p {
			return &dialects[i]
		}
	}
	return nil
}

// pairing are the rules that are broken where requests and replies do not
// correspond. Behind a loss that is nobody's fault.
var pairing = map[codec.RuleID]bool{
	gearman.RuleAdminAsked: true, gearman.RuleAdminReply: true, gearman.RuleAdminPending: true, gearman.RuleAdminCommand: true,
	beanstalk.RuleReplyAsked: true, beanstalk.RuleReplyForm: true, beanstalk.RuleCommandPending: true,
	resp.RuleReplyAsked: true, resp.RulePending: true,
}

// unpaired are those of them that a session can do without.
var unpaired = map[*codec.Protocol][]codec.RuleID{
	gearmonkey.Protocol: {resp.RuleReplyAsked},
}

const gearmanHeader = 12

// beginsGearman looks for a packet's header, or for an administrative command.
func beginsGearman(b []byte) (fit, codec.Side, bool) {
	if b[0] != 0 {
		return beginsLine(b, gearman.Protocol, codec.Peer, "\n"), codec.Peer, true
	}
	from := codec.Peer
	for i, m := range [...]string{"\x00REQ", "\x00RES"} {
		n := min(len(b), 4)
		if string(b[:n]) != m[:n] {
			continue
		}
		if from = codec.Side(i); len(b) < gearmanHeader {
			return maybe, from, len(b) >= 4
		}
		if binary.BigEndian.Uint32(b[4:]) > 1000 || binary.BigEndian.Uint32(b[8:]) > 1<<30 {
			return no, from, false
		}
		return yes, from, true
	}
	return no, from, false
}

// nextGearman finds the magic that the side writes.
func nextGearman(_ *Conn, from codec.Side, b []byte) int {
	magic := []byte{0, 'R', 'E', "QS"[from]}
	if k := bytes.Index(b[1:], magic); k >= 0 {
		return k + 1
	}
	for n := min(3, len(b)-1); n > 0; n-- {
		if bytes.HasSuffix(b, magic[:n]) {
			return len(b) - n
		}
	}
	return -1
}

// beginsLine looks for a line that begins with a word of the side.
func beginsLine(b []byte, p *codec.Protocol, from codec.Side, end string) fit {
	line, _, whole := bytes.Cut(b[:min(len(b), endless)], []byte(end))
	best := no
	for _, t := range p.Types {
		if !t.Sends(from) || t.Word == "" || t.Word[0] != b[0] {
			continue
		}
		switch {
		case whole && hasWord(line, t.Word) && readsAsText(line):
			return yes
		case !whole && (hasWord(line, t.Word) || len(line) < len(t.Word) && string(line) == t.Word[:len(line)]):
			best = maybe
		}
	}
	return best
}

// endless is how long a line may be.
const endless = codec.DefaultMaxLine

func hasWord(line []byte, word string) bool {
	if len(line) < len(word) || string(line[:len(word)]) != word {
		return false
	}
	return len(line) == len(word) || line[len(word)] == ' ' || line[len(word)] == '\r'
}

func readsAsText(line []byte) bool {
	for i, c := range line {
		if c < ' ' && !(c == '\r' && i == len(line)-1) || c == 0x7f {
			return false
		}
	}
	return true
}

// beginsBeanstalk looks for a command, or for a reply in capitals.
func beginsBeanstalk(b []byte) (fit, codec.Side, bool) {
	if f := beginsLine(b, beanstalk.Protocol, codec.Peer, "\r\n"); f != no {
		return f, codec.Peer, true
	}
	return beginsLine(b, beanstalk.Protocol, codec.Server, "\r\n"), codec.Server, true
}

// beginsRESP looks for a request, which is an array of bulk strings, or a reply.
func beginsRESP(b []byte) (fit, codec.Side, bool) {
	line, rest, whole := bytes.Cut(b[:min(len(b), endless)], []byte("\r\n"))
	if bytes.IndexByte([]byte("*$+-:_,#(!=%~|>"), b[0]) < 0 || !readsAsText(line) {
		return no, codec.Peer, false
	}
	if !whole {
		if len(line) > 64 {
			return no, codec.Peer, false
		}
		return maybe, codec.Peer, false
	}
	number := func(v []byte) bool {
		n, bad := codec.ParseNumber(bytes.TrimPrefix(v, []byte("-")))
		return bad < 0 && n <= resp.MaxCount
	}
	switch b[0] {
	case '*':
		switch {
		case !number(line[1:]):
			return no, codec.Peer, false
		case len(rest) == 0:
			return maybe, codec.Peer, false
		case rest[0] == '$':
			return yes, codec.Peer, false
		}
		return yes, codec.Server, true
	case '$', ':':
		if !number(line[1:]) {
			return no, codec.Server, true
		}
	case '+', '-':
		if len(line) < 2 || line[1] < 'A' || line[1] > 'Z' {
			return no, codec.Server, true
		}
	}
	return yes, codec.Server, true
}

// nextLine finds the end of a line.
func nextLine(_ *Conn, _ codec.Side, b []byte) int {
	if k := bytes.IndexByte(b, '\n'); k >= 0 && k+1 < len(b) {
		return k + 1
	}
	return -1
}

const dangaHeader = 9

// beginsDanga looks for a header. The magic is whatever the draft's implementers
// have chosen, so that only the usual one is recognised.
func beginsDanga(b []byte) (fit, codec.Side, bool) {
	n := min(len(b), 4)
	if string(b[:n]) != danga.DefaultMagic[:n] {
		return no, codec.Peer, false
	}
	if len(b) < dangaHeader {
		return maybe, codec.Peer, false
	}
	if int(b[4]) >= len(danga.Protocol.Types) || binary.BigEndian.Uint32(b[5:]) > 1<<30 {
		return no, codec.Peer, false
	}
	t := danga.Protocol.Types[b[4]]
	if t.Sends(codec.Server) {
		return yes, codec.Server, true
	}
	return yes, codec.Peer, true
}

func nextDanga(c *Conn, _ codec.Side, b []byte) int {
	magic := c.magic[:]
	if c.magic == [4]byte{} {
		magic = []byte(danga.DefaultMagic)
	}
	if k := bytes.Index(b[1:], magic); k >= 0 {
		return k + 1
	}
	for n := min(3, len(b)-1); n > 0; n-- {
		if bytes.HasSuffix(b, magic[:n]) {
			return len(b) - n
		}
	}
	return -1
}

// beginsTLS looks for a record: a handshake, an alert or data, of SSL 3 to TLS 1.3.
func beginsTLS(b []byte) (fit, codec.Side, bool) {
	switch {
	case b[0] < 20 || b[0] > 23 || len(b) > 1 && b[1] != 3 || len(b) > 2 && b[2] > 4:
		return no, codec.Peer, false
	case len(b) < 6:
		return maybe, codec.Peer, false
	case binary.BigEndian.Uint16(b[3:]) > 1<<14+2048:
		return no, codec.Peer, false
	}
	if b[0] == 22 && b[5] == 2 {
		return yes, codec.Server, true
	}
	return yes, codec.Peer, b[0] == 22 && b[5] == 1
}

// resume looks for the beginning of a message in a stream that was lost, in b, which
// stands at off in the buffer if that is in use. It returns how many bytes can be passed
// over, and whether a message begins there. start says that b[0] may begin one.
func (d *Decoder) resume(c *Conn, end, off int, b []byte, start bool) (n int, found bool) {
	dl, from, h := dialectOf(c.Protocol), c.side(end), &c.half[end]
	for {
		if start || n > 0 {
			f, side, told := dl.begins(b[n:])
			if told && side != from {
				f = no
			}
			if f == no && dl.text != "" && from == codec.Server {
				f = beginsLine(b[n:], c.Protocol, from, dl.text)
			}
			if f == yes && d.firm(c, from, b[n:], n == 0) {
				return n, true
			}
			if f == maybe && len(b)-n < endless {
				return n, false
			}
		}
		k := dl.next(c, from, b[n:])
		if p := h.packet(off+n) - off - n; p > 0 && (p < k || k <= 0) {
			k = p
		}
		if k <= 0 {
			return len(b), false
		}
		n += k
	}
}

// packet returns where the first packet behind the byte at off begins in the buffer, 0
// if there is none. A packet may well begin with a message.
func (h *half) packet(off int) int {
	for _, m := range h.marks {
		if m.off > off {
			return m.off
		}
	}
	return 0
}

// firm reports whether a place at which a message seems to begin can be trusted: it
// can be read, as far as it is there, and it is of a known type if all that can be told
// is its header. In the middle of a packet a Redis reply could be a part of another, or
// of data.
func (d *Decoder) firm(c *Conn, from codec.Side, b []byte, start bool) bool {
	if c.Protocol == gearmonkey.Protocol && from == codec.Server && !start {
		return false
	}
	if dl := dialectOf(c.Protocol); dl.header != nil && !known(c.Protocol, from, b, dl.header) {
		return false
	}
	probe := c.Protocol.NewSession(codec.Options{MaxData: maxMessage, Waive: unpaired[c.Protocol]})
	var f codec.Frame
	_, err := probe.Decode(from, b, &f)
	if e, ok := err.(*codec.Error); ok {
		return pairing[e.Rule] && !e.Fatal
	}
	return true
}

// known reports whether b begins with a message of text, or with one that has a row.
func known(p *codec.Protocol, from codec.Side, b []byte, header func(b []byte) uint32) bool {
	if p == gearman.Protocol && b[0] != 0 {
		return true
	}
	code := header(b)
	for _, t := range p.Types {
		if t.End == "" && uint32(t.Code) == code && t.Sends(from) {
			return true
		}
	}
	return false
}

// Bounds of what is looked at before a protocol is decided on.
const (
	maxEarly      = 1024     // segments
	maxEarlyBytes = 32 << 10 // bytes
)

// decide looks for the protocol of a connection, and reads what has come so far
// once it is found.
func (d *Decoder) decide(c *Conn, end int, b []byte, frame int, at int64) {
	if c.ID == 0 {
		d.stats.Connections++
		c.ID = d.stats.Connections
	}
	if len(c.early) == 0 && d.recognise(c, end, b) {
		d.read(c, end, b, frame, at)
		return
	}
	c.early = append(c.early, chunk{end: end, data: bytes.Clone(b), frame: frame, at: at})
	d.buffered += len(b)
	size := 0
	var all []byte // what this end has sent without a gap
	for i := range c.early {
		e := &c.early[i]
		size += len(e.data)
		if e.end == end {
			if all = append(all, e.data...); e.missing > 0 {
				all = all[:0]
			}
		}
	}
	found := d.recognise(c, end, all) || c.Uncertain && d.recognise(c, end, b)
	if found {
		d.replay(c)
	} else if len(c.early) > maxEarly || size > maxEarlyBytes || d.buffered > maxBuffered {
		d.giveUpDeciding(c)
	}
}

// replay reads what came before the protocol was decided.
func (d *Decoder) replay(c *Conn) {
	early := c.early
	c.early = nil
	for i := range early {
		e := &early[i]
		d.buffered -= len(e.data)
		if e.missing > 0 {
			d.lose(c, e.end, e.missing, e.frame, e.at)
		} else {
			d.read(c, e.end, e.data, e.frame, e.at)
		}
	}
}

// giveUpDeciding hands on what came as bytes that nobody knows.
func (d *Decoder) giveUpDeciding(c *Conn) {
	if c.decided || c.ID == 0 {
		return
	}
	c.decided = true
	if c.server == unknown {
		c.settle(d.likelyServer(c, nil))
	}
	d.stats.Unknown++
	d.replay(c)
}

// recognise decides on a protocol if the bytes that an end sent leave no doubt.
func (d *Decoder) recognise(c *Conn, end int, b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if c.server == unknown && len(d.opts.Ports) > 0 {
		c.settle(d.likelyServer(c, nil))
	}
	if p := d.opts.Protocol; p != nil {
		if c.server == unknown {
			f, from, told := dialectOf(p).begins(b)
			if f == yes && told {
				c.settle(serverEnd(end, from))
			} else {
				c.settle(d.likelyServer(c, p))
			}
		}
		d.adopt(c, p)
		return true
	}
	for i := range dialects {
		dl := &dialects[i]
		f, from, told := dl.begins(b)
		if f != yes {
			if f == no && c.Uncertain && dl.header != nil {
				f, from, told = dl.inside(c, b)
			}
			if f != yes {
				continue
			}
		}
		if c.server == unknown {
			if told {
				c.settle(serverEnd(end, from))
			} else {
				c.settle(d.likelyServer(c, dl.protocol))
			}
		}
		if told && c.side(end) != from && b[0] != 0 {
			continue // words of the other side
		}
		d.adopt(c, dl.protocol)
		return true
	}
	return false
}

// inside looks for a header in the middle of b.
func (dl *dialect) inside(c *Conn, b []byte) (f fit, from codec.Side, told bool) {
	for side := codec.Peer; side <= codec.Server; side++ {
		for k, n := 0, 1; n > 0 && len(b)-k > 1; k += n {
			if k > 0 {
				if f, from, told = dl.begins(b[k:]); f == yes && told && known(dl.protocol, from, b[k:], dl.header) {
					return f, from, told
				}
			}
			n = dl.next(c, side, b[k:])
		}
	}
	return no, from, false
}

func serverEnd(end int, from codec.Side) int8 {
	if from == codec.Server {
		return int8(end)
	}
	return int8(1 - end)
}

// likelyServer guesses which end is the server by its port.
func (d *Decoder) likelyServer(c *Conn, p *codec.Protocol) int8 {
	for _, port := range d.opts.Ports {
		for i := range c.ends {
			if c.ends[i].port == port {
				return int8(i)
			}
		}
	}
	for i := range c.ends {
		if p != nil && int(c.ends[i].port) == p.DefaultPort {
			return int8(i)
		}
	}
	return 0 // the lower port
}

func (d *Decoder) adopt(c *Conn, p *codec.Protocol) {
	c.decided, c.Protocol = true, p
	c.Role = codec.Role(1<<len(p.Roles) - 1)
	if p.NewSession == nil {
		return
	}
	o := codec.Options{MaxData: maxMessage}
	if c.Uncertain {
		o.Waive = unpaired[p]
	}
	c.session = p.NewSession(o)
}
