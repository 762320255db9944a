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
	begins func(c *Conn, b []byte) (f fit, from codec.Side, told bool)

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

// dependent are the rules of what a reply holds that depend on what it answers: where
// nobody knows that they prove nothing either.
var dependent = map[codec.RuleID]bool{gearman.RuleAdminArgs: true, beanstalk.RuleReplyYAML: true}

// unpaired are those of pairing that a session can do without.
var unpaired = map[*codec.Protocol][]codec.RuleID{
	gearmonkey.Protocol: {resp.RuleReplyAsked},
}

const gearmanHeader = 12

// beginsGearman looks for a packet's header, or for an administrative command.
func beginsGearman(_ *Conn, b []byte) (fit, codec.Side, bool) {
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
	return nextMagic(b, "\x00RE"+"QS"[from:from+1])
}

// nextMagic finds a magic behind the first byte, or what may become one at the end.
func nextMagic(b []byte, magic string) int {
	if k := bytes.Index(b[1:], []byte(magic)); k >= 0 {
		return k + 1
	}
	for n := min(len(magic)-1, len(b)-1); n > 0; n-- {
		if string(b[len(b)-n:]) == magic[:n] {
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
func beginsBeanstalk(_ *Conn, b []byte) (fit, codec.Side, bool) {
	if f := beginsLine(b, beanstalk.Protocol, codec.Peer, "\r\n"); f != no {
		return f, codec.Peer, true
	}
	return beginsLine(b, beanstalk.Protocol, codec.Server, "\r\n"), codec.Server, true
}

// beginsRESP looks for a request, which is an array of bulk strings, or a reply.
func beginsRESP(_ *Conn, b []byte) (fit, codec.Side, bool) {
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

// beginsDanga looks for a header. The magic is whatever the draft's implementers have
// chosen: the connection's first, or the usual one as long as there is none.
func beginsDanga(c *Conn, b []byte) (fit, codec.Side, bool) {
	n := min(len(b), 4)
	if string(b[:n]) != c.dangaMagic()[:n] {
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

func (c *Conn) dangaMagic() string {
	if c.magic == [4]byte{} {
		return danga.DefaultMagic
	}
	return string(c.magic[:])
}

// isDanga reports whether both ends of a connection have sent messages of the draft
// with one magic, whatever it is: nothing but whole messages, by who may send them.
func isDanga(c *Conn) bool {
	if c.server == unknown || c.Uncertain {
		return false
	}
	var sent [2][]byte
	for i := range c.early {
		e := &c.early[i]
		sent[c.side(e.end)] = append(sent[c.side(e.end)], e.data...)
	}
	session, f := danga.Protocol.NewSession(codec.Options{MaxData: maxMessage}), codec.Frame{}
	for side, b := range sent {
		if len(b) == 0 {
			return false
		}
		for len(b) > 0 {
			n, err := session.Decode(codec.Side(side), b, &f)
			if err != nil {
				return false
			}
			b = b[n:]
		}
	}
	return true
}

func nextDanga(c *Conn, _ codec.Side, b []byte) int { return nextMagic(b, c.dangaMagic()) }

// beginsTLS looks for a record: a handshake, an alert or data, of SSL 3 to TLS 1.3.
func beginsTLS(_ *Conn, b []byte) (fit, codec.Side, bool) {
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
