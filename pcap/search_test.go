package pcap_test

import (
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

// TestConnectionThatEndsInsideAMessage checks that a side that closes its direction inside a message violates a rule. A reset,
// the end of the capture, and an end after the other side has closed are not violations.
func TestConnectionThatEndsInsideAMessage(t *testing.T) {
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
