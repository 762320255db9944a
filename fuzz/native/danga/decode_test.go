package danga

import (
	"testing"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/fuzz/native"
)

func FuzzDecode(f *testing.F) {
	// A decoded message does not contain the magic. It is encoded again with the magic of the session's first packet,
	// so each session sends a packet first.
	first := codec.Message{Type: danga.Protocol.TypeNamed("worker_sleep")}
	p := *danga.Protocol
	p.NewSession = func(o codec.Options) codec.Session {
		s := danga.Protocol.NewSession(o)
		if _, err := s.Append(nil, codec.Peer, &first); err != nil {
			panic(err)
		}
		return s
	}
	d, seeds := native.NewDecoder(&p)
	for _, s := range seeds {
		f.Add(s.Asked, s.Bytes)
	}
	f.Fuzz(func(t *testing.T, asked byte, b []byte) {
		if err := d.Try(asked, b); err != nil {
			t.Fatal(err)
		}
	})
}
