package danga

import (
	"testing"

	"jobwire/codec"
)

// benchMessages are the three packets that carry a job through a server.
var benchMessages = []struct {
	name string
	from codec.Side
	args []string
}{
	{"job_create_req", codec.Peer, []string{"reverse", "unique-1", "\x00", "\x01", "sixteen bytes ok"}},
	{"job_assign_res", codec.Server, []string{"reverse", "sixteen bytes ok"}},
	{"job_complete_announce", codec.Peer, []string{"\x00", "sixteen bytes ok"}},
}

// BenchmarkSession decodes and appends the benchMessages in one session.
func BenchmarkSession(b *testing.B) {
	s := Protocol.NewSession(codec.Options{})
	for _, bm := range benchMessages {
		m := message(bm.name, bm.args...)
		raw, err := s.Append(nil, bm.from, m)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("decode/"+bm.name, func(b *testing.B) {
			var f codec.Frame
			b.ReportAllocs()
			for b.Loop() {
				if n, err := s.Decode(bm.from, raw, &f); n != len(raw) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
		b.Run("append/"+bm.name, func(b *testing.B) {
			buf := make([]byte, 0, 128)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Append(buf[:0], bm.from, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
