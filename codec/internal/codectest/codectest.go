// Package codectest contains the tests that the package of each protocol runs for its message types, and the
// tests of the corpus' example messages.
package codectest

import (
	"bytes"
	"slices"
	"testing"

	"jobwire/codec"
)

// Message returns a message of the named type.
func Message(p *codec.Protocol, name string, args ...string) *codec.Message {
	m := &codec.Message{Type: p.TypeNamed(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	return m
}

// TypeTests runs the tests of a protocol's message types.
type TypeTests struct {
	Protocol *codec.Protocol
	Samples  map[string][]string // arguments for types for which codec.Type.Sample returns no legal message
}

// Sample returns a legal message of a type, with arbitrary bytes in fields that allow them.
func (tt TypeTests) Sample(t *codec.Type) *codec.Message {
	if args := tt.Samples[t.Name]; args != nil {
		return Message(tt.Protocol, t.Name, args...)
	}
	m := t.Sample()
	if sized := slices.ContainsFunc(t.Fields, func(f codec.Field) bool { return f.Kind == codec.Length }); sized ||
		t.End == "" {
		for i := range m.Args {
			if t.FieldAt(i).Kind == codec.Opaque {
				m.Args[i] = []byte("a\x00b\r\n")
			}
		}
	}
	return m
}

// WithRequest returns a session in which the side may send a message of the type. If a reply needs a request, the
// session has one that waits.
func (tt TypeTests) WithRequest(t *testing.T, msgType *codec.Type, from codec.Side) codec.Session {
	t.Helper()
	s := tt.Protocol.NewSession(codec.Options{})
	if from == codec.Peer {
		return s
	}
	for _, q := range tt.Protocol.Types {
		if q.Ordered && slices.Contains(q.Replies, msgType.Name) {
			if _, err := s.Append(nil, codec.Peer, tt.Sample(q)); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	return s
}

// each runs f for every message type and every direction in which it is legal.
func (tt TypeTests) each(t *testing.T, f func(t *testing.T, msgType *codec.Type, from codec.Side)) {
	for _, msgType := range tt.Protocol.Types {
		for _, from := range []codec.Side{codec.Peer, codec.Server} {
			if msgType.Sends(from) {
				t.Run(msgType.Name+" from "+from.String(), func(t *testing.T) { f(t, msgType, from) })
			}
		}
	}
}

// RoundTrips encodes a sample of every message type, decodes it, encodes it again and forwards it.
func (tt TypeTests) RoundTrips(t *testing.T) {
	tt.each(t, func(t *testing.T, msgType *codec.Type, from codec.Side) {
		for _, crlf := range []bool{false, true} {
			if crlf && msgType.End != "\n" {
				continue
			}
			want := tt.Sample(msgType)
			want.CRLF = crlf
			raw, err := tt.WithRequest(t, msgType, from).Append([]byte("before"), from, want)
			if err != nil {
				t.Fatal(err)
			}
			raw = raw[len("before"):]
			var f codec.Frame
			n, err := tt.WithRequest(t, msgType, from).Decode(from, append(slices.Clip(raw), "after"...), &f)
			if err != nil || n != len(raw) {
				t.Fatalf("Decode(%q) = %d, %v; want %d", raw, n, err, len(raw))
			}
			var got codec.Message
			f.Message(&got)
			if got.Type != msgType || got.CRLF != crlf || !slices.EqualFunc(got.Args, want.Args, bytes.Equal) {
				t.Errorf("decoded %s %q (CRLF %v), want %q", got.Type.Name, got.Args, got.CRLF, want.Args)
			}
			var rows []byte
			for i := range f.Spans {
				rows = append(rows, f.SpanBytes(i)...)
			}
			if !bytes.Equal(rows, raw) {
				t.Errorf("the spans contain %q, want every byte of %q once", rows, raw)
			}
			again, err := tt.WithRequest(t, msgType, from).Append(nil, from, &got)
			if err != nil || !bytes.Equal(again, raw) {
				t.Errorf("encoded again: %q, %v; want %q", again, err, raw)
			}
		}
	})
}

// Prefixes decodes every prefix of a sample of every message type.
func (tt TypeTests) Prefixes(t *testing.T) {
	tt.each(t, func(t *testing.T, msgType *codec.Type, from codec.Side) {
		raw, err := tt.WithRequest(t, msgType, from).Append(nil, from, tt.Sample(msgType))
		if err != nil {
			t.Fatal(err)
		}
		s := tt.WithRequest(t, msgType, from)
		var f codec.Frame
		for i := range raw {
			n, err := s.Decode(from, raw[:i], &f)
			if err != codec.ErrShort || n <= i || n > len(raw) {
				t.Fatalf("Decode of %d bytes of %d = %d, %v; want ErrShort and a length between", i, len(raw), n, err)
			}
		}
		if _, err := s.Decode(from, raw, &f); err != nil {
			t.Errorf("after the prefixes: %v", err)
		}
	})
}
