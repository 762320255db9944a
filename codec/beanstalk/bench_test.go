package beanstalk

import (
	"testing"

	"jobwire/codec"
)

// benchMessages carry a job through a server, each request before its reply.
var benchMessages = []struct {
	name string
	from codec.Side
	args []string
}{
	{"put", codec.Peer, []string{"1024", "0", "60", "sixteen bytes ok"}},
	{"INSERTED", codec.Server, []string{"123456"}},
	{"reserve", codec.Peer, nil},
	{"RESERVED", codec.Server, []string{"123456", "sixteen bytes ok"}},
	{"delete", codec.Peer, []string{"123456"}},
	{"DELETED", codec.Server, nil},
}

// benchSession returns a session in which the message may be sent repeatedly, and the bytes of the message.
func benchSession(t testing.TB, from codec.Side, m *codec.Message) (s *session, raw []byte) {
	raw, err := newSession(codec.Options{WaiveAll: true}).Append(nil, from, m)
	if err != nil {
		t.Fatal(err)
	}
	return newSession(codec.Options{}).(*session), raw
}

// again restores the state of the session before the next message without decoding anything: it adds the
// request of a reply, or removes a request.
func (s *session) again(from codec.Side, request *codec.Type) {
	if from == codec.Server {
		s.asked(request, false)
	} else {
		s.answered()
	}
}

// BenchmarkSession decodes and appends each message, and restores the state of the session each time.
func BenchmarkSession(b *testing.B) {
	var request *codec.Type
	for _, bm := range benchMessages {
		m := message(bm.name, bm.args...)
		if bm.from == codec.Peer {
			request = m.Type
		}
		request := request
		b.Run("decode/"+bm.name, func(b *testing.B) {
			s, raw := benchSession(b, bm.from, m)
			var f codec.Frame
			b.ReportAllocs()
			for b.Loop() {
				s.again(bm.from, request)
				if n, err := s.Decode(bm.from, raw, &f); n != len(raw) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
		b.Run("append/"+bm.name, func(b *testing.B) {
			s, _ := benchSession(b, bm.from, m)
			buf := make([]byte, 0, 128)
			b.ReportAllocs()
			for b.Loop() {
				s.again(bm.from, request)
				if _, err := s.Append(buf[:0], bm.from, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestHotPathAllocatesNothing tests that decoding and encoding the messages of a job from put to delete allocates no
// memory.
func TestHotPathAllocatesNothing(t *testing.T) {
	s := newSession(codec.Options{})
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
	buf := make([]byte, 0, 256)
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
		t.Errorf("%v allocations for a job's six messages, decoded and appended", n)
	}
}
