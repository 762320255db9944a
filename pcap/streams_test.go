package pcap_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/pcap"
)

// step is a packet of one connection in a short notation.
type step struct {
	from     codec.Side
	off, ack int
	data     string
	flags    byte // 0 is data and acknowledgement
	start    uint32
	port     uint16
	client   uint16 // port of the peer, if not 40000
	whole    int    // length of data on the wire, if data is truncated
}

const (
	fin, syn, rst, acks = 1, 2, 4, 16
)

// show decodes steps and writes the items as words.
func show(o pcap.Options, steps ...step) (items []string, st pcap.Stats) {
	d := pcap.NewDecoder(o, func(it *pcap.Item) {
		name := "unknown"
		if it.Conn.Protocol != nil {
			name = it.Conn.Protocol.Name
		}
		side := "<"
		if it.From == codec.Peer {
			side = ">"
		}
		s := fmt.Sprintf("%d%s ", it.Conn.ID, side)
		switch it.Kind {
		case pcap.Message:
			s += fmt.Sprintf("%s %.30q", name, it.Raw)
			if it.Unpaired {
				s += " unpaired"
			}
			if it.Resumed {
				s += " resumed"
			}
		case pcap.Violates:
			s += string(it.Err.Rule)
		case pcap.Unread:
			s += fmt.Sprintf("%s unread %.30q", name, it.Raw)
		case pcap.Gap:
			s += fmt.Sprintf("gap %d", it.Missing)
		case pcap.Ends:
			s += "ends"
		case pcap.Breaks:
			s += "breaks"
		case pcap.Skipped:
			s += fmt.Sprintf("%s skipped %d", name, it.Missing)
		}
		items = append(items, s)
	})
	for i, s := range steps {
		p := piece{from: s.from, off: s.off, ack: s.ack, data: []byte(s.data)}
		port := s.port
		if port == 0 {
			port = 11300
		}
		b := p.packet(port, s.start)
		if s.flags != 0 {
			b[33] = s.flags
		}
		if at := 20 + 2*int(s.from); s.client != 0 {
			b[at], b[at+1] = byte(s.client>>8), byte(s.client)
		}
		if s.flags&syn != 0 { // its sequence number is that of the first byte minus one
			b[27]--
		}
		length := len(b)
		if s.whole > 0 {
			length += s.whole - len(s.data)
			b[2], b[3] = byte(length>>8), byte(length)
		}
		d.Packet(&pcap.Packet{Number: i + 1, At: int64(i), Link: 101, Data: b, Length: length})
	}
	d.Close()
	return items, d.Stats()
}

// TestStreams tests that packets of a TCP connection, also with retransmissions, resets, losses, reused ports and a
// beginning in the middle, are decoded to the messages, gaps and ends that they prove.
func TestStreams(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	hello := []step{{from: p, flags: syn}, {from: s, flags: syn | acks}}
	after := func(more ...step) []step { return append(slices.Clone(hello), more...) }
	for _, c := range []struct {
		name  string
		o     pcap.Options
		steps []step
		want  []string
	}{
		{"keep-alives and acknowledgements are nothing", pcap.Options{}, after(
			step{from: p, data: "use a\r\n"}, step{from: p, off: 6, data: ""}, step{from: p, off: 6, data: "\x00"}, step{from: s, ack: 7},
			step{from: s, ack: 7, data: "USING a\r\n"}),
			[]string{`1> beanstalk "use a\r\n"`, `1< beanstalk "USING a\r\n"`}},
		{"the same ports again", pcap.Options{}, after(
			step{from: p, data: "use a\r\n"}, step{from: p, off: 7, data: "us"},
			step{from: p, flags: syn, start: 5000}, step{from: s, flags: syn | acks, start: 5000},
			step{from: p, data: "use b\r\n", start: 5000}),
			[]string{`1> beanstalk "use a\r\n"`, `1> beanstalk unread "us"`, `2> beanstalk "use b\r\n"`}},
		{"the SYN of the server arrives late", pcap.Options{}, []step{{from: p, flags: syn}, {from: p, data: "use a\r\n"}, {from: s, flags: syn | acks},
			{from: s, ack: 7, data: "USING a\r\n"}, {from: s, off: 9, ack: 7, data: "USING b\r\n"}},
			[]string{`1> beanstalk "use a\r\n"`, `1< beanstalk "USING a\r\n"`, `1< beanstalk "USING b\r\n" unpaired`}},
		{"a reset", pcap.Options{}, after(
			step{from: p, data: "use a\r\n"}, step{from: s, flags: rst | acks, ack: 7}),
			[]string{`1> beanstalk "use a\r\n"`, `1< breaks`}},
		{"both directions close", pcap.Options{}, after(
			step{from: p, data: "quit\r\n"}, step{from: s, ack: 6, flags: fin | acks}, step{from: p, off: 6, ack: 1, flags: fin | acks}),
			[]string{`1> beanstalk "quit\r\n"`, `1< ends`, `1> ends`}},
		{"begins in the middle of a message", pcap.Options{}, []step{
			{from: p, off: 100, ack: 50, data: "rest of a body\r\nuse a\r\n"}, {from: s, off: 50, ack: 123, data: "INSERTED 5\r\nUSING a\r\n"}},
			[]string{`1< unknown skipped 21`, `1> unknown skipped 23`}},
		{"begins in the middle of a message, which the user decides", pcap.Options{Protocol: beanstalk.Protocol, Ports: []uint16{11300}}, []step{
			{from: p, off: 100, ack: 50, data: "rest of a body\r\nuse a\r\n"}, {from: s, off: 50, ack: 123, data: "INSERTED 5\r\nUSING a\r\n"}},
			[]string{`1> beanstalk unread "rest of a body\r\n"`, `1> beanstalk "use a\r\n"`, `1< beanstalk "INSERTED 5\r\n" unpaired`, `1< beanstalk "USING a\r\n" unpaired`}},
		{"begins in the middle of a message, and an exchange follows", pcap.Options{}, []step{
			{from: p, off: 100, ack: 50, data: "put 0 0 9 1\r\na\r\n"}, {from: s, off: 50, ack: 116, data: "INSERTED 5\r\n"},
			{from: p, off: 116, ack: 62, data: "use a\r\n"}, {from: s, off: 62, ack: 123, data: "USING a\r\n"}},
			[]string{`1> beanstalk skipped 16`, `1< beanstalk "INSERTED 5\r\n" unpaired`, `1> beanstalk "use a\r\n"`, `1< beanstalk "USING a\r\n"`}},
		{"an exchange that may stand in a payload", pcap.Options{}, []step{
			{from: p, off: 100, ack: 50, data: "list-tubes\r\n"}, {from: s, off: 50, ack: 112, data: "OK 9\r\n---\na: 1\n\r\n"}},
			[]string{`1< unknown skipped 17`, `1> unknown skipped 12`}},
		{"a reply to what came before the capture", pcap.Options{Protocol: beanstalk.Protocol, Ports: []uint16{11300}}, []step{
			{from: p, off: 100, ack: 50, data: "list-tubes\r\n"}, {from: s, off: 50, ack: 112, data: "OK 9\r\n---\na: 1\n\r\n"}},
			[]string{`1> beanstalk "list-tubes\r\n"`, `1< beanstalk "OK 9\r\n---\na: 1\n\r\n" unpaired`}},
		{"lines from the middle, of a server that is known", pcap.Options{}, after(
			step{from: p, data: "\x00REQ\x00\x00\x00\x04\x00\x00\x00\x00"}, step{from: p, off: 12, flags: rst | acks},
			step{from: s, off: 1 << 20, ack: 1, data: "OK\r\n"}),
			[]string{`1> gearman "\x00REQ\x00\x00\x00\x04\x00\x00\x00\x00"`, `1> breaks`, `2< gearman skipped 4`}},
		{"cut short by the snap length", pcap.Options{}, after(
			step{from: p, data: "put 1 1 1 100\r\nabc", whole: 117}, step{from: s, ack: 117, data: "INSERTED 1\r\n"}, step{from: p, off: 117, ack: 12, data: "use a\r\n"}),
			[]string{`1> beanstalk unread "put 1 1 1 100\r\nabc"`, `1> gap 99`, `1< beanstalk "INSERTED 1\r\n" unpaired`, `1> beanstalk "use a\r\n"`}},
		{"TLS is named", pcap.Options{}, after(
			step{from: p, data: "\x16\x03\x01\x00\xfa\x01\x00\x00\xf6"}),
			[]string{`1> tls unread "\x16\x03\x01\x00\xfa\x01\x00\x00\xf6"`}},
		{"Danga's draft with another magic", pcap.Options{}, after(
			step{from: p, data: "JOBS\x04\x00\x00\x00\x0arev\x00\x00\x00\x01abc"}, step{from: s, ack: 19, data: "JOBS\x05\x00\x00\x00\x01h"}),
			[]string{`1> danga "JOBS\x04\x00\x00\x00\nrev\x00\x00\x00\x01abc"`, `1< danga "JOBS\x05\x00\x00\x00\x01h"`}},
		{"after a loss, with another magic", pcap.Options{}, after(
			step{from: p, data: "JOBS\x04\x00\x00\x00\x0arev\x00\x00\x00\x01abc"}, step{from: s, ack: 19, data: "JOBS\x05\x00\x00\x00\x01h"},
			step{from: p, off: 1019, ack: 10, data: "abcJOBS\x03\x00\x00\x00\x00"}, step{from: s, off: 10, ack: 1031, data: "JOBS\x00\x00\x00\x00\x00"},
			step{from: p, off: 1031, ack: 19, data: "JOBS\x03\x00\x00\x00\x00"}, step{from: s, off: 19, ack: 1040, data: "JOBS\x00\x00\x00\x00\x00"}),
			[]string{`1> danga "JOBS\x04\x00\x00\x00\nrev\x00\x00\x00\x01abc"`, `1< danga "JOBS\x05\x00\x00\x00\x01h"`, "1> gap 1000",
				`1> danga unread "abcJOBS\x03\x00\x00\x00\x00"`, `1< danga "JOBS\x00\x00\x00\x00\x00"`, `1> danga "JOBS\x03\x00\x00\x00\x00" resumed`, `1< danga "JOBS\x00\x00\x00\x00\x00"`}},
		{"what looks like it on one side", pcap.Options{}, after(
			step{from: p, data: "JOBS\x04\x00\x00\x00\x0arev\x00\x00\x00\x01abc"}, step{from: s, ack: 19, data: "JOBT\x05\x00\x00\x00\x01h"}),
			[]string{`1> unknown unread "JOBS\x04\x00\x00\x00\nrev\x00\x00\x00\x01abc"`, `1< unknown unread "JOBT\x05\x00\x00\x00\x01h"`}},
		{"what nobody knows", pcap.Options{}, after(
			step{from: p, data: "GET / HTTP/1.1\r\n\r\n"}),
			[]string{`1> unknown unread "GET / HTTP/1.1\r\n\r\n"`}},
		{"the first bytes dribble", pcap.Options{}, after(
			step{from: p, data: "u"}, step{from: p, off: 1, data: "se"}, step{from: p, off: 3, data: " a\r\n"}),
			[]string{`1> beanstalk "use a\r\n"`}},
		{"insisted on", pcap.Options{Protocol: beanstalk.Protocol}, after(
			step{from: p, data: "frobnicate\r\n"}),
			[]string{"1> beanstalk.command.known"}},
		{"another port", pcap.Options{Ports: []uint16{1}}, after(step{from: p, data: "use a\r\n"}), nil},
		{"the server is told by its port", pcap.Options{Ports: []uint16{50000}, Protocol: beanstalk.Protocol}, []step{
			{from: s, port: 50000, data: "INSERTED 7\r\n"}},
			[]string{`1< beanstalk "INSERTED 7\r\n" unpaired`}},
		{"a reply that answers nothing", pcap.Options{}, after(
			step{from: s, data: "INSERTED 7\r\n"}),
			[]string{"1< beanstalk.reply.asked-for"}},
	} {
		for i := range c.steps {
			if c.steps[i].start == 0 {
				c.steps[i].start = 1000
			}
		}
		if got, st := show(c.o, c.steps...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n  %s\nwant\n  %s\n%+v", c.name, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "), st)
		}
	}
}

// TestManyShortConnections checks that segments of ended connections do not wait, though each connection lacks
// a segment. Their messages are passed on while other connections follow.
func TestManyShortConnections(t *testing.T) {
	const count = 20000
	var deleted, lists int
	d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		if it.Kind == pcap.Message && string(it.Raw) == "delete 1\r\n" {
			deleted++
		}
		if it.Kind == pcap.Message && string(it.Raw) == "list-tubes\r\n" {
			lists++
		}
	})
	number := 0
	for i := range count {
		for _, p := range []piece{
			{from: codec.Peer, syn: true}, {from: codec.Server, syn: true},
			{from: codec.Peer, data: []byte("delete 1\r\n")},
			// "DELETED\r\n" is lost
			{from: codec.Peer, off: 10, ack: 9, data: []byte("list-tubes\r\n")},
			{from: codec.Server, off: 9, ack: 22, fin: true}, {from: codec.Peer, off: 22, ack: 10, fin: true},
		} {
			b := p.packet(11300, 5)
			ends := [2][]byte{{10, byte(i >> 16), byte(i >> 8), byte(i)}, {10, 9, 9, 9}}
			copy(b[12:], ends[p.from])
			copy(b[16:], ends[p.from.Other()])
			number++
			d.Packet(&pcap.Packet{Number: number, At: int64(number), Link: 101, Data: b, Length: len(b)})
		}
	}
	if deleted != count || lists < count*3/4 {
		t.Errorf("%d and %d requests before the end, want %d", deleted, lists, count)
	}
	d.Close()
	if st := d.Stats(); lists != count || st.Gaps != count || st.Missing != 9*count || st.GivenUp+st.Violations+st.Unknown != 0 {
		t.Errorf("%d requests; %+v", lists, st)
	}
}
