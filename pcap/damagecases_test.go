package pcap_test

import (
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/pcap"
	"jobwire/pcap/report"
)

// TestProtocolIsRecognizedLate checks connections whose protocol cannot be decided at once: they are decoded as soon as another
// connection to the same server, or a later exchange, shows the protocol.
func TestProtocolIsRecognizedLate(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	hello := func(port uint16, start uint32) []step {
		return []step{{from: p, flags: syn, start: start, port: port}, {from: s, flags: syn | acks, start: start, port: port}}
	}
	cut := func(start uint32) []step {
		return []step{{from: p, off: 100, ack: 50, data: "x\r\n", start: start}, {from: s, off: 50, ack: 103, data: "INSERTED 5\r\n", start: start}}
	}
	rest := []step{{from: p, off: 103, ack: 62, data: "quit\r\n", start: 1 << 24}, {from: s, off: 62, ack: 109, flags: fin | acks, start: 1 << 24}}
	whole := []step{{from: p, flags: syn, start: 1000, client: 50001}, {from: s, flags: syn | acks, start: 1000, client: 50001},
		{from: p, data: "use a\r\n", start: 1000, client: 50001}, {from: s, ack: 7, data: "USING a\r\n", start: 1000, client: 50001}}
	big := strings.Repeat("x", 70<<10)
	for _, c := range []struct {
		name  string
		o     pcap.Options
		steps []step
		want  []string
	}{
		{"another connection that begins later", pcap.Options{}, slices.Concat(cut(1<<24), whole, rest),
			[]string{`2> beanstalk "use a\r\n"`, `2< beanstalk "USING a\r\n"`, "1> beanstalk skipped 3", `1< beanstalk "INSERTED 5\r\n" unpaired`, `1> beanstalk "quit\r\n"`, "1< ends"}},
		{"no other connection", pcap.Options{}, slices.Concat(cut(1<<24), rest), []string{"1< unknown skipped 12", "1> unknown skipped 9"}},
		{"the protocol is given", pcap.Options{Protocol: beanstalk.Protocol}, slices.Concat(cut(1<<24), rest),
			[]string{"1> beanstalk skipped 3", `1< beanstalk "INSERTED 5\r\n" unpaired`, `1> beanstalk "quit\r\n"`, "1< ends"}},
		{"an exchange after more data than is kept", pcap.Options{}, append(hello(7003, 1000),
			step{from: p, data: "JOBS\x04\x00\x01\x18\x0arev\x00\x00\x00\x01abc" + big[:40000], start: 1000, port: 7003},
			step{from: p, off: 40019, data: big[40000:], start: 1000, port: 7003},
			step{from: s, ack: 71699, data: "JOBS\x05\x00\x00\x00\x01h", start: 1000, port: 7003},
			step{from: p, off: 71699, ack: 10, data: "JOBS\x09\x00\x00\x00\x01h", start: 1000, port: 7003},
			step{from: s, off: 10, ack: 71709, data: "JOBS\x0a\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00", start: 1000, port: 7003}),
			[]string{`1> unknown unread "JOBS\x04\x00\x01\x18\nrev\x00\x00\x00\x01abcxxxxxxxxxxx"`, `1> unknown unread "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`,
				`1< danga "JOBS\x05\x00\x00\x00\x01h"`, `1> danga "JOBS\t\x00\x00\x00\x01h"`, `1< danga "JOBS\n\x00\x00\x00\f\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"`}},
	} {
		got, st := show(c.o, c.steps...)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n  %s\nwant\n  %s", c.name, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
		}
		if unknown := strings.Contains(strings.Join(c.want, ""), "unknown skipped"); unknown != (st.Unknown > 0) {
			t.Errorf("%s: %d connections of unknown protocol", c.name, st.Unknown)
		}
	}
}

// TestLossIsMarked checks that the listing and JSON mark where decoding stops at a gap and where it continues.
func TestLossIsMarked(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	steps := []piece{{from: p, syn: true}, {from: s, syn: true}, {from: p, data: []byte("use a\r\n")}, {from: s, ack: 7, data: []byte("USING a\r\n")},
		{from: p, off: 27, ack: 9, data: []byte("rest\r\nuse fake\r\n")}, {from: s, off: 9, ack: 43, data: []byte("INSERTED 1\r\nUSING fake\r\n")},
		{from: p, off: 43, ack: 33, data: []byte("use b\r\n")}, {from: s, off: 33, ack: 50, data: []byte("USING b\r\n")}}
	text, lines, _ := outputs(report.ListingOptions{Lines: true}, steps...)
	inOrder := func(text string, parts ...string) {
		t.Helper()
		rest := text
		for _, part := range parts {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Fatalf("expected %q after the parts before it, in\n%s", part, text)
			}
			rest = after
		}
	}
	inOrder(text, "# gap: 20 bytes", "# not decoded: after the gap", "--protocol beanstalk --port 11300", "rest", "# decoding continues here after the gap\n", "use b")
	inOrder(lines, `"kind":"gap"`, `"unproved":true`, `"resumed":true`)
	if n := strings.Count(text, "# decoding continues"); n != 1 {
		t.Errorf("%d places where decoding continues, want 1:\n%s", n, text)
	}
}
