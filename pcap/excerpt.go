package pcap

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"jobwire/pcap/decrypt"
	"jobwire/pcap/internal/headers"
	"jobwire/pcap/internal/reassembly"
)

// Limits of what an excerpt keeps in memory.
const (
	maxExcerptConns = 1 << 16
	maxCommented    = 1 << 20 // bytes of comments
)

// Excerpt copies the packets that belong to selected items from a capture to a file. For each item, it selects
// the packets of the item's connection from the first packet to those with the item, because the meaning of a
// message depends on the messages before it and missing packets would require a search for the next message. It
// also selects the TLS secrets in the capture for that connection, and all fragments of IP packets. An excerpt
// needs at most about 20 MB of memory.
type Excerpt struct {
	conns    map[reassembly.Ends][]selected // several if ports are used again, or in several networks
	sessions map[string]bool                // client randoms of decrypted connections
	ranges   int
	comments map[int][]string // by packet
	size     int              // bytes of comments
	leftOut  int
}

// selected is a range of packets of a connection.
type selected struct {
	from, to int
	paths    [2]uint64 // of the directions
}

// NewExcerpt returns an excerpt without packets.
func NewExcerpt() *Excerpt {
	return &Excerpt{conns: map[reassembly.Ends][]selected{}, sessions: map[string]bool{}, comments: map[int][]string{}}
}

// LeftOut returns the number of items whose packets are not in the excerpt, because they belong to more
// connections than fit into the memory limit.
func (x *Excerpt) LeftOut() int { return x.leftOut }

// Add selects the packets of an item. A violation becomes a comment of its last packet.
func (x *Excerpt) Add(it *Item) {
	c := it.Conn.state
	// Include the last packet of the connection so far, which may have completed the data before the item.
	if !x.extend(c.tcp.Ends, selected{c.tcp.Began, max(it.Last, c.tcp.Used), c.tcp.Paths()}) {
		x.leftOut++
		return
	}
	if c.tls.active() {
		x.sessions[string(c.tls.conn.ClientRandom())] = true
	}
	if it.Kind == Violates {
		x.comment(it)
	}
}

// extend adds a range of packet numbers, which usually extends the last range of its connection. It returns
// false if there are too many connections.
func (x *Excerpt) extend(key reassembly.Ends, s selected) bool {
	spans := x.conns[key]
	for i := range slices.Backward(spans) {
		if spans[i].from == s.from {
			s.to = max(spans[i].to, s.to)
			spans[i] = s
			return true
		}
	}
	if x.ranges == maxExcerptConns {
		return false
	}
	x.ranges++
	x.conns[key] = append(spans, s)
	return true
}

// comment keeps a comment about a violation.
func (x *Excerpt) comment(it *Item) {
	text := fmt.Sprintf("%s -> %s: [%s] %s", it.Conn.Name(it.From), it.Conn.Name(it.From.Other()), it.Err.Rule,
		it.Err.Detail)
	if r := it.Conn.Protocol.Rule(it.Err.Rule); r != nil {
		text = fmt.Sprintf("%s. Rule (%s): %s", text, r.Level, r.Text)
	}
	const entry = 100 // bytes of a map entry
	if x.size += len(text) + entry; x.size <= maxCommented && !slices.Contains(x.comments[it.Last], text) {
		x.comments[it.Last] = append(x.comments[it.Last], text)
	}
}

// Write copies the selected packets from src to w and returns their number. src must have the same packets with
// the same numbers as the source that was decoded. If reading src fails, Write returns the error after the
// packets before it.
func (x *Excerpt) Write(w io.Writer, src Source) (packets int, err error) {
	for key, spans := range x.conns {
		slices.SortFunc(spans, func(a, b selected) int { return a.from - b.from })
		x.conns[key] = spans
	}
	out, err := NewPacketWriter(w)
	if err != nil {
		return 0, err
	}
	var parser headers.Parser
	var s headers.Segment
	var secrets []byte // TLS secrets of the selected connections that must be written before the next packet
	for {
		var p Packet
		if err := src.Next(&p); errors.Is(err, io.EOF) {
			return packets, nil
		} else if err != nil {
			return packets, err
		}
		secrets = append(secrets, decrypt.Select(p.Secrets, x.sessions)...)
		parser.Fragmented = false
		kind := parser.Parse(p.Link, p.Data, &s)
		if !(kind == headers.IsSegment && x.has(&s, p.Number)) && !(parser.Fragmented && len(x.conns) > 0) {
			continue
		}
		p.Secrets, secrets = secrets, nil
		if err := out.Write(&p, x.comments[p.Number]...); err != nil {
			return packets, err
		}
		packets++
	}
}

// has reports whether a packet is selected. Packets must be passed in the order of their numbers.
func (x *Excerpt) has(s *headers.Segment, number int) bool {
	key, end := reassembly.EndsOf(s)
	spans, ok := x.conns[key]
	if !ok {
		return false
	}
	n := 0
	for n < len(spans) && spans[n].to < number {
		n++
	}
	if n > 0 {
		x.conns[key] = spans[n:]
	}
	for _, sp := range spans[n:] {
		path := sp.paths[end]
		if sp.from <= number && number <= sp.to && (path == s.Path || (path == 0) != (s.Path == 0)) {
			return true
		}
	}
	return false
}
