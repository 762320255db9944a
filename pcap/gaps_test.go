package pcap_test

import (
	"fmt"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/pcap"
)

// TestGapsInValues checks that the messages after a message with a gap are listed, because the size that it announces
// says where it ends: in captures of one direction and of both, which begin with the connection or later. After the
// message, no message begins a packet. If the beginning is missing, the messages are likely.
func TestGapsInValues(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	for _, size := range []int{5000, 100_000, 400_000} {
		data := strings.Repeat("payload ", size/8+1)[:size]
		value := fmt.Sprintf("$%d\r\n%s\r\n", size, data)
		ask, ok := "*1\r\n$4\r\nPING\r\n", "+PONG\r\n"
		for _, c := range []struct {
			name         string
			port         uint16
			from         codec.Side
			small, large string
			other        [2]string // the messages of the other side for small and for large
		}{
			{"gearman: a job", 4730, p, binaryMessage(p, 16, "a").raw, binaryMessage(p, 7, "f", "u", data).raw,
				[2]string{binaryMessage(s, 17, "a").raw, binaryMessage(s, 8, "H:x:1").raw}},
			{"gearman: a reply", 4730, s, binaryMessage(s, 17, "a").raw, binaryMessage(s, 17, data).raw,
				[2]string{binaryMessage(p, 16, "a").raw, binaryMessage(p, 16, data).raw}},
			{"danga: a job", 7003, p, dangaMessage(p, 9, "h").raw, dangaMessage(p, 4, "reverse\x00\x00\x00\x01"+data).raw,
				[2]string{dangaMessage(s, 10, strings.Repeat("\x00", 12)).raw, dangaMessage(s, 5, "h").raw}},
			{"beanstalk: put", 11300, p, "use a\r\n", fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", size, data),
				[2]string{"USING a\r\n", "INSERTED 1\r\n"}},
			{"beanstalk: RESERVED", 11300, s, "USING a\r\n", fmt.Sprintf("RESERVED 5 %d\r\n%s\r\n", size, data),
				[2]string{"use a\r\n", "reserve\r\n"}},
			{"beanstalk: FOUND", 11300, s, "USING a\r\n", fmt.Sprintf("FOUND 5 %d\r\n%s\r\n", size, data),
				[2]string{"use a\r\n", "peek 5\r\n"}},
			{"redis: SET", 6379, p, ask, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n" + value, [2]string{ok, "+OK\r\n"}},
			{"redis: values after it", 6379, p, ask, "*5\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n" + value + "$1\r\ny\r\n$4100\r\n" +
				data[:4100] + "\r\n", [2]string{ok, ":1\r\n"}},
			{"redis: a reply", 6379, s, ok, value, [2]string{ask, bulk("GET", "k")}},
			{"redis: an array", 6379, s, ok, "*3\r\n:1\r\n" + value + "$1\r\ny\r\n",
				[2]string{ask, bulk("LRANGE", "k", "0", "2")}},
			{"redis: nested arrays", 6379, s, ok, "*3\r\n*1\r\n" + value + "*2\r\n$1\r\ny\r\n:1\r\n:2\r\n",
				[2]string{ask, bulk("EVAL", "x", "0")}},
		} {
			before, after := strings.Repeat(c.small, 6), strings.Repeat(c.small, 5)
			at := len(before) + strings.Index(c.large, data[:4990])
			for _, gaps := range [][][2]int{
				{{at, at + 100}}, {{at + 3000, at + 4000}}, {{at + size - 500, at + size - 2}}, {{at, at + size}},
				{{at + 50, at + 1600}, {at + 1700, at + 1701}, {at + size - 20, at + size}},
			} {
				for way := range 4 {
					begins, both := way&1 == 0, way&2 == 0
					if both && !begins {
						continue // other messages prove where messages begin
					}
					phases := [][2]string{{before, strings.Repeat(c.other[0], 6)}, {c.large, c.other[1]},
						{after, strings.Repeat(c.other[0], 5)}}
					kind := pcap.Likely
					if begins {
						kind = pcap.Message
					}
					var b strings.Builder
					d := pcap.NewDecoder(pcap.Options{Likely: true, Audit: true}, func(it *pcap.Item) {
						if it.Kind == pcap.Violates || it.Kind == pcap.Message && !begins || it.Kind == pcap.Likely && begins {
							t.Errorf("%s, begins %v: kind %d: %.60q, %v", c.name, begins, it.Kind, it.Raw, it.Err)
						}
						if it.From == c.from && it.Kind == kind {
							b.Write(it.Raw)
						}
					})
					for i, one := range withGaps(phases, c.from, gaps, begins, both) {
						raw := one.packet(c.port, 7)
						d.Packet(&pcap.Packet{Number: i + 1, Link: 101, Data: raw, Length: len(raw)})
					}
					d.Close()
					if b.String() != before+after {
						t.Errorf("%s, %d bytes, gaps %v, with its beginning %v, both directions %v: listed %q", c.name, size, gaps,
							begins, both, b.String())
					}
				}
			}
		}
	}
}

// withGaps returns the segments of a conversation. In each phase, from sends the first text and the other side the
// second one. Bytes of from are missing. The beginning and all data of the other side may be missing, too.
func withGaps(phases [][2]string, from codec.Side, gaps [][2]int, begins, both bool) (all []piece) {
	if begins {
		all = append(all, piece{from: codec.Peer, syn: true}, piece{from: codec.Server, syn: true})
	}
	var sent [2]int
	if !both { // no packet ends where a message ends, and the requests of all replies come before them
		if from == codec.Server {
			sent[codec.Peer] = len(phases[0][1] + phases[1][1] + phases[2][1])
		}
		phases = [][2]string{{phases[0][0] + phases[1][0] + phases[2][0], ""}}
	}
	for _, texts := range phases {
		for side := range codec.Side(2) {
			text := texts[0]
			if side != from {
				text = texts[1]
			}
			for len(text) > 0 {
				n := min(len(text), 1460)
				if side == from || both {
					all = append(all, piece{from: side, off: sent[side], ack: sent[side.Other()], data: []byte(text[:n])})
				}
				sent[side] += n
				text = text[n:]
			}
		}
	}
	for _, gap := range gaps {
		all = without(all, piece{from: from, off: gap[0], data: make([]byte, gap[1]-gap[0])})
	}
	return all
}
