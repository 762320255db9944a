package gearman

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
	{"SUBMIT_JOB", codec.Peer, []string{"reverse", "unique-1", "sixteen bytes ok"}},
	{"JOB_ASSIGN", codec.Server, []string{"H:lap:123456", "reverse", "sixteen bytes ok"}},
	{"WORK_COMPLETE", codec.Peer, []string{"H:lap:123456", "sixteen bytes ok"}},
}

func BenchmarkDecode(b *testing.B) {
	for _, bm := range benchMessages {
		b.Run(bm.name, func(b *testing.B) {
			s := newSession(codec.Options{})
			raw, err := s.Append(nil, bm.from, message(bm.name, bm.args...))
			if err != nil {
				b.Fatal(err)
			}
			var f codec.Frame
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if n, err := s.Decode(bm.from, raw, &f); n != len(raw) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, bm := range benchMessages {
		b.Run(bm.name, func(b *testing.B) {
			s := newSession(codec.Options{})
			m := message(bm.name, bm.args...)
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
