package pcap_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/pcap"
)

// TestFirstMessageTooLarge checks that a message that announces more bytes than its sender sends is incomplete,
// also if it is the first message of its connection, by which the protocol is recognized, and if the size is
// beyond any limit.
func TestFirstMessageTooLarge(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		rule       codec.RuleID
	}{
		{"gearman", "\x00REQ\x00\x00\x00\x07\xff\xff\xff\xffreverse\x00", "gearman.message.complete"},
		{"gearman, only the header", "\x00REQ\x00\x00\x00\x07\xff\xff\xff\xff", "gearman.message.complete"},
		{"danga", "GEAR\x01\xff\xff\xff\xffreverse", "danga.message.complete"},
		{"gearmonkey", "*2000000000\r\n$4\r\nINCR\r\n", "resp.message.size-cap"},
		{"an unknown type", "\x00REQ\x00\x00\x03\x00\xff\xff\xff\xff", ""},
	} {
		var got codec.RuleID
		d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
			if it.Err != nil {
				got = it.Err.Rule
			}
		})
		f, err := pcap.NewFile("x", bytes.NewReader(write(t, 999, pcap.Event{Data: []byte(tt.sent)})))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(f); err != nil {
			t.Fatal(err)
		}
		if unknown := d.Stats().Unknown == 1; got != tt.rule || unknown != (tt.rule == "") {
			t.Errorf("%s: rule %q, want %q; %d unknown", tt.name, got, tt.rule, d.Stats().Unknown)
		}
	}
}

// sender passes the packets of one connection to a decoder, in segments that are as long as possible.
type sender struct {
	d      *pcap.Decoder
	port   uint16
	number int
	sent   [2]int
}

func (s *sender) packet(p piece) {
	b := p.packet(s.port, 7)
	s.number++
	s.d.Packet(&pcap.Packet{Number: s.number, Link: 101, Data: b, Length: len(b)})
}

func (s *sender) open() {
	s.packet(piece{from: codec.Peer, syn: true})
	s.packet(piece{from: codec.Server, syn: true})
}

// send passes on text, without the bytes between two offsets. The other end acknowledges all segments.
func (s *sender) send(from codec.Side, text string, lost, to int) {
	const most = 60_000
	for off := 0; off < len(text); off += most {
		end := min(len(text), off+most)
		for _, part := range [][2]int{{off, min(end, lost)}, {max(off, to), end}} {
			if part[0] < part[1] {
				s.packet(piece{from: from, off: s.sent[from] + part[0], ack: s.sent[from.Other()], data: []byte(text[part[0]:part[1]])})
			}
		}
		s.packet(piece{from: from.Other(), off: s.sent[from.Other()], ack: s.sent[from] + end})
	}
	s.sent[from] += len(text)
}

// close ends the direction and the capture.
func (s *sender) close(from codec.Side) {
	s.packet(piece{from: from, off: s.sent[from], ack: s.sent[from.Other()], fin: true})
	s.d.Close()
}

// TestLargeMessages relays messages that are larger than decode reads. Each is listed with its size and the
// beginning of its payload, the messages around it are decoded, and no rule is broken: the specification sets no
// limit.
func TestLargeMessages(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	for _, size := range []int{17825792 - 100, 17825792 + 1, 40 << 20} {
		if testing.Short() && size != 17825792+1 {
			continue
		}
		data := strings.Repeat("payload ", size/8+1)[:size]
		for _, c := range []struct {
			name string
			port uint16
			sent []said
		}{
			{"gearman", 4730, []said{binaryMessage(p, 7, "reverse", "7", data), binaryMessage(s, 8, "H:x:1"),
				binaryMessage(p, 1, "reverse"), binaryMessage(p, 9),
				binaryMessage(s, 11, "H:x:1", "reverse", data), binaryMessage(p, 13, "H:x:1", data), binaryMessage(s, 13,
					"H:x:1", data), binaryMessage(p, 16, data),
				binaryMessage(s, 17, data), binaryMessage(p, 9), binaryMessage(s, 10)}},
			{"danga", 7003, []said{dangaMessage(p, 4, "reverse\x00\x00\x00\x01"+data), dangaMessage(s, 5, "h")}},
			{"beanstalk", 11300, []said{{p, fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", size, data)}, {s, "INSERTED 5\r\n"},
				{p, "reserve\r\n"}, {s, fmt.Sprintf("RESERVED 5 %d\r\n%s\r\n", size, data)},
				{p, "use a\r\n"}, {s, "USING a\r\n"}}},
			{"gearmonkey", 6379, []said{{p, fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", size, data)}, {s, "+OK\r\n"},
				{p, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"}, {s, fmt.Sprintf("$%d\r\n%s\r\n", size, data)},
				{p, "*4\r\n$6\r\nLRANGE\r\n$1\r\nl\r\n$1\r\n0\r\n$1\r\n2\r\n"},
				{s, fmt.Sprintf("*3\r\n$1\r\nx\r\n$%d\r\n%s\r\n$1\r\ny\r\n", size, data)},
				{p, "*1\r\n$4\r\nPING\r\n"}, {s, "+PONG\r\n"}}},
		} {
			if size == 40<<20 {
				c.sent = c.sent[:2]
			}
			i, shown := 0, int64(0)
			d := pcap.NewDecoder(pcap.Options{Audit: true}, func(it *pcap.Item) {
				shown += int64(it.Size())
				switch {
				case it.Kind == pcap.Ends:
				case it.Kind != pcap.Message || i >= len(c.sent) || it.From != c.sent[i].from ||
					it.Size() != len(c.sent[i].raw) || !strings.HasPrefix(c.sent[i].raw, string(it.Raw)) &&
					strings.ReplaceAll(c.sent[i].raw, data, data[:4096]) != string(it.Raw):
					t.Errorf("%s, %d bytes: item %d: kind %d of %d bytes %.60q, %v", c.name, size, i, it.Kind, it.Size(), it.Raw,
						it.Err)
				default:
					i++
				}
			})
			sent := sender{d: d, port: c.port}
			sent.open()
			for _, m := range c.sent {
				sent.send(m.from, m.raw, 0, 0)
			}
			sent.close(p)
			if st := d.Stats(); i != len(c.sent) || st.Violations+st.Truncated+st.GivenUp > 0 ||
				st.Skipped > 0 || shown != st.StreamBytes {
				t.Errorf("%s, %d bytes: %d of %d messages; %d bytes; %+v", c.name, size, i, len(c.sent), shown, st)
			}
		}
	}
}

// TestLargeMessageWithDamage checks large messages whose rest is missing, and messages with an illegal header.
func TestLargeMessageWithDamage(t *testing.T) {
	const p = codec.Peer
	large, small := binaryMessage(p, 7, "f", "u", strings.Repeat("x", 18<<20)).raw, binaryMessage(p, 1, "f").raw
	ping := "*1\r\n$4\r\nPING\r\n"
	redis := ping + "*3\r\n$5\r\nLPUSH\r\n$18874368\r\n" + large[:18<<20] + "\r\n$1\r\ny\r\n"
	put := fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", 18<<20, large[:18<<20])
	for _, c := range []struct {
		name      string
		sent      string
		from, to  int // bytes of sent that are not captured
		kinds     string
		truncated int
	}{
		{"whole", large + small, 0, 0, "[message message end]", 0},
		{"the sender closes", large[:18<<20], 0, 0, "[gearman.message.complete end]", 1},
		{"the sender closes after the header", large[:12], 0, 0, "[gearman.message.complete end]", 1},
		{"a part is missing", large + small, 5 << 20, 6 << 20,
			"[unread 5242880 cut, gap 1048576, unread 8544, message end]", 1},
		{"the end is missing", large + small, 12 << 20, len(large) + 5,
			"[unread 12582912 cut, gap 6291477, unread 8, end]", 1},
		{"an unknown type", small + "\x00REQ\x00\x00\x03\xe7" + large[8:] + small, 0, 0,
			"[message gearman.packet.type-known message end]", 0},
		{"the magic of a server", small + "\x00RES" + large[4:] + small, 0, 0,
			"[message gearman.packet.magic-direction message end]", 0},
		{"no separator in the first bytes", strings.ReplaceAll(large[:13], "f", "g") + strings.Repeat("g",
			len(large)-13) + small, 0, 0, "[unread 18874384, message end]", 0},
		{"Redis", redis + ping, 0, 0, "[message message message end]", 0},
		{"Redis, the sender closes", redis[:18<<20], 0, 0, "[message resp.message.complete end]", 1},
		{"Redis, the sender closes after the value", redis[:len(redis)-9], 0, 0, "[message resp.message.complete end]", 1},
		{"Redis, the sender closes in the next value", redis[:len(redis)-3], 0, 0, "[message resp.message.complete end]", 1},
		{"Redis, a part is missing", redis + ping, 5 << 20, 6 << 20,
			"[message unread 5242866 cut, gap 1048576, unread 8544, message end]", 1},
		{"Redis, no line end after the value", redis[:len(redis)-9] + "zz" + redis[len(redis)-7:] + ping, 0, 0,
			"[message unread 18874394 cut, unread 23, end]", 1},
		{"Redis, a part and the end of the value are missing", redis + ping, 5 << 20, len(redis) - 8,
			"[message unread 5242866 cut, gap 13631529, unread 1, message end]", 1},
		{"Beanstalk, a part is missing", put + "use a\r\n", 5 << 20, 6 << 20,
			"[unread 5242880 cut, gap 1048576, unread 8544, message end]", 1},
	} {
		var kinds []string
		d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
			text := map[pcap.ItemKind]string{pcap.Message: "message", pcap.Ends: "end", pcap.Unread: fmt.Sprintf("unread %d",
				it.Size()), pcap.Gap: fmt.Sprintf("gap %d,", it.Missing)}[it.Kind]
			switch {
			case it.Err != nil:
				text = string(it.Err.Rule)
			case it.Cut:
				text += " cut,"
			case it.Kind == pcap.Unread:
				text += ","
			}
			if n := len(kinds); n > 0 && strings.HasPrefix(kinds[n-1], "unread") && it.Kind == pcap.Unread && !it.Cut &&
				!strings.Contains(kinds[n-1], "cut") {
				return
			}
			kinds = append(kinds, text)
		})
		port := uint16(4730)
		switch {
		case strings.HasPrefix(c.name, "Redis"):
			port = 6379
		case strings.HasPrefix(c.name, "Beanstalk"):
			port = 11300
		}
		sent := sender{d: d, port: port}
		sent.open()
		sent.send(p, c.sent, c.from, c.to)
		sent.close(p)
		if got := fmt.Sprint(kinds); got != c.kinds || d.Stats().Truncated != c.truncated {
			t.Errorf("%s: %s, %d truncated; want %s", c.name, got, d.Stats().Truncated, c.kinds)
		}
	}
}
