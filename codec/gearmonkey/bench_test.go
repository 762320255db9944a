package gearmonkey

import (
	"testing"

	"jobwire/codec"
)

// benchMessages are the most frequent messages of a server, each request before its reply.
var benchMessages = []struct {
	name string
	from codec.Side
	args []string
}{
	{"INCR_UID", codec.Peer, []string{"reverse"}},
	{"ID", codec.Server, []string{"123456"}},
	{"HMSET_IDLE", codec.Peer, []string{"reverse", "123456", "sixteen bytes ok"}},
	{"simple", codec.Server, []string{"OK"}},
	{"LPUSH_QUEUE", codec.Peer, []string{"reverse", "normal", "123456"}},
	{"integer", codec.Server, []string{"1"}},
	{"BRPOP_QUEUES", codec.Peer, []string{"reverse", "1"}},
	{"POPPED", codec.Server, []string{"reverse", "normal", "123456"}},
	{"command", codec.Peer, []string{"EXPIREAT", "job:reverse:123456", "1700000000"}},
	{"list", codec.Server, []string{"a", "b"}},
}

// BenchmarkSession decodes or appends a request and its reply in each iteration.
func BenchmarkSession(b *testing.B) {
	for i := 0; i < len(benchMessages); i += 2 {
		ask, answer := &benchMessages[i], &benchMessages[i+1]
		b.Run("decode/"+ask.name+"+"+answer.name, func(b *testing.B) {
			s := Protocol.NewSession(codec.Options{})
			up, err := s.Append(nil, ask.from, message(ask.name, ask.args...))
			if err != nil {
				b.Fatal(err)
			}
			down, err := s.Append(nil, answer.from, message(answer.name, answer.args...))
			if err != nil {
				b.Fatal(err)
			}
			var f codec.Frame
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Decode(codec.Peer, up, &f); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Decode(codec.Server, down, &f); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("append/"+ask.name+"+"+answer.name, func(b *testing.B) {
			s := Protocol.NewSession(codec.Options{})
			up, down := message(ask.name, ask.args...), message(answer.name, answer.args...)
			buf := make([]byte, 0, 512)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Append(buf, codec.Peer, up); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Append(buf, codec.Server, down); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestHotPathAllocatesNothing tests that decoding and encoding the messages of a job allocates no memory.
func TestHotPathAllocatesNothing(t *testing.T) {
	s := Protocol.NewSession(codec.Options{})
	var raws [][]byte
	var messages []*codec.Message
	for _, bm := range benchMessages {
		m := message(bm.name, bm.args...)
		raw, err := s.Append(nil, bm.from, m)
		if err != nil {
			t.Fatal(err)
		}
		raws, messages = append(raws, raw), append(messages, m)
	}
	var f codec.Frame
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() {
		for i, bm := range benchMessages {
			if _, err := s.Decode(bm.from, raws[i], &f); err != nil {
				t.Fatal(err)
			}
		}
		for i, bm := range benchMessages {
			if _, err := s.Append(buf, bm.from, messages[i]); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d messages, decoded and appended", n, len(benchMessages))
	}
}
