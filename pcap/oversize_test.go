package pcap_test

import (
	"bytes"
	"testing"

	"jobwire/codec"
	"jobwire/pcap"
)

// TestFirstMessageTooLarge checks that a message whose size is beyond the limit violates the rule about sizes, also if it
// is the first message of its connection, by which the protocol is recognized.
func TestFirstMessageTooLarge(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		rule       codec.RuleID
	}{
		{"gearman", "\x00REQ\x00\x00\x00\x07\xff\xff\xff\xffreverse\x00", "gearman.packet.size-cap"},
		{"gearman, only the header", "\x00REQ\x00\x00\x00\x07\xff\xff\xff\xff", "gearman.packet.size-cap"},
		{"danga", "GEAR\x01\xff\xff\xff\xffreverse", "danga.packet.size-cap"},
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
