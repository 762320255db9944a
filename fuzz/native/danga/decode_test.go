package danga

import (
	"testing"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/fuzz/native"
)

func FuzzDecode(f *testing.F) {
	// A message has no magic. What is read is written again with that of the first packet, so each session
	// has sent one before.
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
