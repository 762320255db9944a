package pcap_test

import (
	"bytes"
	"testing"

	"jobwire/codec"
	"jobwire/pcap"
)

// TestOneFieldDamaged checks that an audit and a summary count one violation if one field is damaged, whatever the
// messages after it look like because of it, and that a listing shows each illegal message.
func TestOneFieldDamaged(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	for _, c := range []struct {
		name    string
		port    int
		sent    []said
		illegal int // messages
	}{
		{"a put without its TTR", 11300, []said{{p, "put 1 0 5\r\nhello\r\nuse a\r\n"},
			{s, "BAD_FORMAT\r\nUNKNOWN_COMMAND\r\nUSING a\r\n"}}, 2},
		{"a line end", 11300, []said{{p, "use a\nuse b\r\nlist-tube-used\r\n"}, {s, "USING a\r\nUSING b\r\nUSING b\r\n"}}, 2},
		{"the end of a list", 4730, []said{{p, "status\nversion\n"}, {s, "f\t0\t0\t0\n,\n1.1\n"}}, 1},
		{"none", 11300, []said{{p, "use a\r\n"}, {s, "USING a\r\n"}}, 0},
	} {
		var events []pcap.Event
		for _, m := range c.sent {
			events = append(events, pcap.Event{From: m.from, Data: []byte(m.raw)})
		}
		for _, o := range []pcap.Options{{}, {Check: true}, {Audit: true}} {
			want, shown := min(c.illegal, 1), 0
			if !o.Check && !o.Audit {
				want = c.illegal
			}
			d := pcap.NewDecoder(o, func(it *pcap.Item) {
				if it.Kind == pcap.Violates {
					shown++
				}
			})
			f, err := pcap.NewFile("x", bytes.NewReader(write(t, c.port, events...)))
			if err == nil {
				err = d.Decode(f)
			}
			if got := d.Stats().Violations; err != nil || got != want || shown != want {
				t.Errorf("%s, %+v: expected %d violations, got %d and %d, %v", c.name, o, want, got, shown, err)
			}
		}
	}
}
