package pcap_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/pcap"
)

// nested makes exchanges whose payloads contain whole conversations, in all protocols.
var nested = []exchange{
	{gearman.Protocol, 4730, func(r *rand.Rand) []said {
		return [][]said{
			{
				binaryMessage(codec.Peer, 7, "f", "", fakes(r)),
				binaryMessage(codec.Server, 8, "H:lap:1"),
				binaryMessage(codec.Server, 13, "H:lap:1", fakes(r)),
			},
			{binaryMessage(codec.Peer, 16, fakes(r)), binaryMessage(codec.Server, 17, "x")},
			{binaryMessage(codec.Peer, 1, "f"), binaryMessage(codec.Peer, 9), binaryMessage(codec.Server, 11, "H:lap:2", "f", fakes(r)),
				binaryMessage(codec.Peer, 28, "H:lap:2", fakes(r)), binaryMessage(codec.Peer, 13, "H:lap:2", fakes(r))},
			{{codec.Peer, "version\n"}, {codec.Server, "OK 1.1\n"}},
		}[r.IntN(4)]
	}},
	{beanstalk.Protocol, 11300, func(r *rand.Rand) []said {
		body := fakes(r)
		return [][]said{
			{{codec.Peer, fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", len(body), body)}, {codec.Server, "INSERTED 7\r\n"}},
			{{codec.Peer, fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", len(body), body)}, {codec.Peer, "use a\r\n"}, {codec.Server, "INSERTED 7\r\n"}, {codec.Server, "USING a\r\n"}},
			{{codec.Peer, "reserve\r\n"}, {codec.Server, fmt.Sprintf("RESERVED 7 %d\r\n%s\r\n", len(body), body)}},
			{{codec.Peer, "delete 4\r\n"}, {codec.Server, "DELETED\r\n"}},
		}[r.IntN(4)]
	}},
	{gearmonkey.Protocol, 6379, func(r *rand.Rand) []said {
		body := fakes(r)
		return [][]said{
			{{codec.Peer, bulk("SET", "x", body)}, {codec.Server, "+OK\r\n"}},
			{{codec.Peer, bulk("GET", "x")}, {codec.Server, fmt.Sprintf("$%d\r\n%s\r\n", len(body), body)}},
			{{codec.Peer, bulk("INCR", "n")}, {codec.Server, ":7\r\n"}},
		}[r.IntN(3)]
	}},
	{danga.Protocol, 7003, func(r *rand.Rand) []said {
		return []said{dangaMessage(codec.Peer, 4, "reverse\x00\x00\x00\x01"+fakes(r)), dangaMessage(codec.Server, 5, "h")}
	}},
}

// fakes returns a payload of messages that could occur on a connection. nested generates none of these messages
// itself.
func fakes(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString([]string{
			binaryMessage(codec.Peer, 16, "fake").raw, binaryMessage(codec.Server, 17, "fake").raw,
			binaryMessage(codec.Peer, 7, "fake", "", "x").raw, binaryMessage(codec.Server, 8, "H:fake:1").raw,
			"status\n", "fake\t0\t0\t0\n.\n",
			"put 0 0 9 4\r\nfake\r\n", "delete 9999\r\n", "INSERTED 9999\r\n", "use fake\r\n", "USING fake\r\n", "put 0 0 9 9\r\nfake",
			bulk("SET", "fake", "1"), bulk("GET", "fake"), "$4\r\nfake\r\n", ":9999\r\n",
			dangaMessage(codec.Peer, 4, "fake\x00\x00\x00\x01").raw, dangaMessage(codec.Server, 5, "fake").raw,
			"fake", "\r\n",
		}[r.IntN(20)])
	}
	return b.String()
}

// cutAt returns the pieces of a capture that begins after the first n bytes of data.
func cutAt(pieces []piece, n int) []piece {
	var out []piece
	for _, p := range pieces {
		if k := min(n, len(p.data)); k > 0 {
			n -= k
			p.off, p.data = p.off+k, p.data[k:]
			if len(p.data) == 0 {
				continue
			}
		}
		if n == 0 && !p.syn {
			out = append(out, p)
		}
	}
	return out
}

// TestCutAnywhere checks captures that begin anywhere: every listed message was sent, and none violates a rule.
// Every byte is in a message, unread or skipped, and the exchanges after the cut are listed.
func TestCutAnywhere(t *testing.T) {
	for _, ex := range nested {
		t.Run(ex.protocol.Name, func(t *testing.T) {
			listed, sent := 0, 0
			for seed := range uint64(12) {
				r := rand.New(rand.NewPCG(seed, 8))
				all, pieces := talk(r, ex, 8, []int{3, 40, 1460}[seed%3])
				for n := range len(slices.Concat(streamsOf(all)[0], streamsOf(all)[1])) {
					var packets [][]byte
					left := 0
					for _, p := range cutAt(pieces, n+1) {
						left += len(p.data)
						packets = append(packets, p.packet(ex.port, 1000))
					}
					got := readPackets(packets, pcap.Options{Audit: seed%2 == 1})
					rest := [2][]said{}
					for _, m := range all {
						rest[m.from] = append(rest[m.from], m)
					}
					for _, side := range []codec.Side{codec.Peer, codec.Server} {
						var have []said
						for _, m := range got.messages {
							if m.from == side {
								have = append(have, m)
							}
						}
						if k := len(rest[side]) - len(have); k < 0 || !slices.Equal(have, rest[side][k:]) {
							t.Fatalf("seed %d, cut at byte %d: expected the last messages of %v, got %v", seed, n+1, rest[side], have)
						}
					}
					if len(got.faults) > 0 {
						t.Fatalf("seed %d, cut at byte %d: %v", seed, n+1, got.faults)
					}
					if k := len(got.streams[0]) + len(got.streams[1]) + int(got.stats.Skipped); k != left {
						t.Fatalf("seed %d, cut at byte %d: expected %d bytes listed or skipped, got %d", seed, n+1, left, k)
					}
					listed, sent = listed+len(got.messages), sent+len(all)
				}
			}
			if listed < sent/5 {
				t.Errorf("expected many messages after the cuts, got %d of %d", listed, sent)
			}
		})
	}
}

// TestMidstream checks that a connection that begins with 60 kB of a payload is decoded from the next exchange
// on, and that messages in the payload are not listed.
func TestMidstream(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	ping, pong := binaryMessage(p, 16, "hi").raw, binaryMessage(s, 17, "hi").raw
	fake := binaryMessage(p, 7, "f", "", "x").raw + binaryMessage(p, 16, "fake").raw
	pieces := []piece{}
	sent := 0
	for range 60 {
		pieces = append(pieces, piece{from: p, off: sent, data: []byte(strings.Repeat("x", 1000-len(fake)) + fake)})
		sent += 1000
	}
	created := binaryMessage(s, 8, "H:lap:1").raw
	pieces = append(pieces, piece{from: s, ack: sent, data: []byte(created)})
	want := []said{{s, created}}
	got := len(created)
	for range 16 {
		pieces = append(pieces, piece{from: p, off: sent, ack: got, data: []byte(ping)}, piece{from: s, off: got, ack: sent + len(ping), data: []byte(pong)})
		sent, got = sent+len(ping), got+len(pong)
		want = append(want, said{p, ping}, said{s, pong})
	}
	var packets [][]byte
	for _, x := range pieces {
		packets = append(packets, x.packet(4730, 1000))
	}
	for _, o := range []pcap.Options{{}, {Audit: true}, {Protocol: gearman.Protocol}} {
		r := readPackets(packets, o)
		if !slices.Equal(r.messages, want) || len(r.faults) > 0 || r.stats.Skipped != 60000 || r.stats.SkippedConnections != 1 || r.stats.Unknown != 0 {
			t.Errorf("%d messages, expected %d; faults %v; %+v", len(r.messages), len(want), r.faults, r.stats)
		}
	}
}

// TestKnownEndpoint checks that a cut connection with too few messages to recognize its protocol has the
// protocol of another connection to the same server.
func TestKnownEndpoint(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	cut := []step{{from: p, off: 100, ack: 50, data: "x\r\n", start: 1 << 24}, {from: s, off: 50, ack: 103, data: "INSERTED 5\r\n", start: 1 << 24},
		{from: p, off: 103, ack: 62, data: "quit\r\n", start: 1 << 24}, {from: s, off: 62, ack: 109, flags: fin | acks, start: 1 << 24}}
	whole := []step{{from: p, flags: syn, start: 1000}, {from: s, flags: syn | acks, start: 1000}, {from: p, data: "use a\r\n", start: 1000},
		{from: p, off: 7, flags: rst | acks, start: 1000}}
	if got, _ := show(pcap.Options{}, cut...); !slices.Equal(got, []string{"1< unknown skipped 12", "1> unknown skipped 9"}) {
		t.Errorf("%q", got)
	}
	got, _ := show(pcap.Options{}, append(whole, cut...)...)
	if want := []string{`1> beanstalk "use a\r\n"`, "1> breaks", "2> beanstalk skipped 3", `2< beanstalk "INSERTED 5\r\n" unpaired`, `2> beanstalk "quit\r\n"`, "2< ends"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEndInsideAMessage checks that a side that closes its direction inside a message violates a rule. A reset,
// the end of the capture, and an end after the other side has closed are not violations.
func TestEndInsideAMessage(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	for _, tt := range []struct {
		protocol *codec.Protocol
		port     uint16
		before   string // a request, if data is a response of the server
		from     codec.Side
		data     string
	}{
		{gearman.Protocol, 4730, "", p, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x05ab"},
		{gearman.Protocol, 4730, binaryMessage(p, 16, "abcde").raw, s, "\x00RES\x00\x00\x00\x11\x00\x00\x00\x05ab"},
		{gearman.Protocol, 4730, binaryMessage(p, 16, "abcde").raw, s, "\x00RES\x00\x00"},
		{gearman.Protocol, 4730, binaryMessage(p, 16, "abcde").raw, p, "status"},
		{beanstalk.Protocol, 11300, "", p, "put 0 0 60 5\r\nabc"},
		{beanstalk.Protocol, 11300, "", p, "put 0 0 60 0\r\n"},
		{beanstalk.Protocol, 11300, "use a\r\n", p, "delete 1"},
		{beanstalk.Protocol, 11300, "reserve\r\n", s, "RESERVED 1 5\r\nabc"},
		{beanstalk.Protocol, 11300, "reserve\r\n", s, "RESERV"},
		{gearmonkey.Protocol, 6379, "", p, "*2\r\n$3\r\nGET\r\n$1\r\n"},
		{gearmonkey.Protocol, 6379, bulk("GET", "x"), s, "$5\r\nab"},
		{danga.Protocol, 7003, "", p, "GEAR\x04\x00\x00\x00\x0arev"},
		{danga.Protocol, 7003, dangaMessage(p, 4, "reverse\x00\x00\x00\x01x").raw, s, "GEAR\x05\x00"},
	} {
		steps := []step{{from: p, flags: syn}, {from: s, flags: syn | acks}}
		if tt.before != "" {
			steps = append(steps, step{from: p, data: tt.before})
		}
		off, ack := len(tt.before), 0
		if tt.from == s {
			off, ack = 0, len(tt.before)
		}
		steps = append(steps, step{from: tt.from, off: off, ack: ack, data: tt.data})
		end := step{from: tt.from, off: off + len(tt.data), ack: ack, flags: fin | acks}
		other := step{from: tt.from.Other(), off: ack, ack: off + len(tt.data), flags: fin | acks}
		reset := step{from: tt.from.Other(), off: ack, ack: off + len(tt.data), flags: rst | acks}
		for name, c := range map[string]struct {
			more []step
			want int
		}{
			"close": {[]step{end}, 1}, "close of both": {[]step{end, other}, 1}, "nothing": {nil, 0}, "reset": {[]step{reset}, 0},
			"close after the other side": {[]step{other, end}, 0}, "gap": {[]step{{from: end.from, off: end.off + 4, ack: ack, flags: fin | acks}}, 0},
		} {
			all := append(slices.Clone(steps), c.more...)
			for i := range all {
				all[i].start, all[i].port = 1000, tt.port
			}
			for _, audit := range []bool{false, true} {
				got, st := show(pcap.Options{Audit: audit}, all...)
				n := 0
				for _, x := range got {
					if strings.HasSuffix(x, string(tt.protocol.Complete)) {
						n++
					}
				}
				if n != c.want || st.Violations != c.want {
					t.Errorf("%s: %q, %s, audit %v: expected %d violations, got %q", tt.protocol.Name, tt.data, name, audit, c.want, got)
				}
			}
		}
	}
}
