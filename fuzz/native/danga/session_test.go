package danga

import (
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, c := range native.Conversations(danga.Protocol) {
		f.Add(c.Up, c.Down)
	}
	first, err := danga.Protocol.NewSession(codec.Options{}).Append(nil, codec.Peer, &codec.Message{Type: danga.Protocol.TypeNamed("worker_sleep")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		// A decoded message does not contain the magic. It is encoded again with the magic of the session's first
		// packet, so each session reads a packet first, and both directions have the same magic.
		before := slices.Clone(first)
		if len(up) >= 4 {
			copy(before, up[:4])
		} else if len(down) >= 4 {
			copy(before, down[:4])
		}
		down = slices.Clone(down)
		copy(down, before[:4])
		p := *danga.Protocol
		p.NewSession = func(o codec.Options) codec.Session {
			s := danga.Protocol.NewSession(o)
			var f codec.Frame
			if _, err := s.Decode(codec.Peer, before, &f); err != nil {
				panic(err)
			}
			return s
		}
		if err := laws.Session(&p, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
