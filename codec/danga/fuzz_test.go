package danga

import (
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/fuzz/laws"
)

func FuzzSession(f *testing.F) {
	for _, row := range Protocol.Types {
		for _, from := range []codec.Side{codec.Peer, codec.Server} {
			if !row.Sends(from) {
				continue
			}
			raw, err := startSession(codec.Options{}, [4]byte{0, 1, 0xfe, 'x'}).Append(nil, from, rows.Sample(row))
			if err != nil {
				f.Fatal(err)
			}
			var up, down []byte
			if from == codec.Peer {
				up = raw
			} else {
				down = raw
			}
			f.Add(up, down)
			f.Add(append(up, raw...), raw[:len(raw)-1])
		}
	}
	f.Add(packet("abcd", 1, "a\x00\x00"), packet("abcd", 13, "\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, up, down []byte) {
		// A message has no magic, so what is read is written again with that of the
		// first packet, which both directions have to share.
		magic := [4]byte([]byte(DefaultMagic))
		if len(down) >= 4 {
			magic = [4]byte(down)
		}
		if len(up) >= 4 {
			magic = [4]byte(up)
		}
		down = slices.Clone(down)
		copy(down, magic[:])
		p := *Protocol
		p.NewSession = func(o codec.Options) codec.Session { return startSession(o, magic) }
		if err := laws.Session(&p, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
