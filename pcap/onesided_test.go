package pcap_test

import (
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/pcap"
)

// TestOneDirection decodes captures that have the packets of one direction only, from its SYN on: the capture proves
// where its messages begin, so all of them are listed, except lines of Gearman whose end depends on the request.
func TestOneDirection(t *testing.T) {
	for _, s := range speakers {
		for side := range codec.Side(2) {
			for seed := range uint64(100) {
				s.reset(seed)
				d := s.converse(40000, 1+s.IntN(12))
				all := slices.DeleteFunc(s.capture([]*dialogue{d}), func(f frame) bool { return f.from != side })
				o := pcap.Options{Audit: seed%2 == 0}
				if seed%4 < 2 {
					o.Protocol = s.protocol
				}
				got, err := s.record(all, []*dialogue{d}, o)
				if err != nil {
					t.Fatalf("%s, side %d, seed %d: %v", s.protocol.Name, side, seed, err)
				}
				for at, end := range d.ends[side] {
					line := s.protocol == gearman.Protocol && side == codec.Server && d.streams[side][at] != 0
					if !line && !got[d].listed[side][at] {
						text := d.streams[side][at:end]
						t.Fatalf("%s, side %d, seed %d: the message at %d is not listed: %.60q", s.protocol.Name, side, seed, at, text)
					}
				}
			}
		}
	}
}
