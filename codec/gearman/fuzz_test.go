package gearman

import (
	"bytes"
	"testing"

	"jobwire/codec"
)

// FuzzSession feeds any bytes to a session, as a peer and then as the server.
// Whatever is accepted must encode to the same bytes, whatever is refused must
// be refused at every length with the same error, and the rows read must tile
// the message.
func FuzzSession(f *testing.F) {
	for _, row := range Protocol.Types {
		for _, from := range []codec.Side{codec.Peer, codec.Server} {
			if row.Sends(from) {
				s := Protocol.NewSession(codec.Options{WaiveAll: true})
				raw, err := s.Append(nil, from, sample(row))
				if err != nil {
					f.Fatal(err)
				}
				if from == codec.Peer {
					f.Add(raw, []byte(nil))
				} else {
					f.Add([]byte("status\nversion\nshow unique jobs\n"), raw)
				}
			}
		}
	}
	for _, r := range rejects {
		f.Add([]byte(r.asked+"\n"), []byte(r.raw))
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		opts := codec.Options{MaxData: 1 << 10, MaxLine: 128, MaxPending: 16}
		whole, again, bytewise := Protocol.NewSession(opts), Protocol.NewSession(opts), Protocol.NewSession(opts)
		for from, b := range [][]byte{codec.Peer: up, codec.Server: down} {
			for from := codec.Side(from); len(b) > 0; {
				var f, g codec.Frame
				n, err := whole.Decode(from, b, &f)
				short := 0
				for short < len(b) {
					short++
					if _, e := bytewise.Decode(from, b[:short], &g); e != codec.ErrShort {
						if err == nil && e != nil || err != nil && e == nil || err != nil && err.Error() != e.Error() {
							t.Fatalf("%q in one piece: %v; of %d bytes: %v", b, err, short, e)
						}
						break
					} else if short == len(b) && err != codec.ErrShort {
						t.Fatalf("%q in one piece: %v; byte by byte still short", b, err)
					}
				}
				if err != nil {
					if n == 0 || err == codec.ErrShort {
						break
					}
					var skip codec.Frame
					again.Decode(from, b, &skip)
					b = b[n:]
					continue
				}
				end := 0
				for i := range f.Spans {
					if s := f.Spans[i]; s.Off < end || s.End < s.Off || s.Next < s.End {
						t.Fatalf("spans of %q overlap: %v", f.Raw, f.Spans)
					}
					end = f.Spans[i].Next
				}
				if end != n {
					t.Fatalf("spans end at %d of %d", end, n)
				}
				var m codec.Message
				f.Message(&m)
				out, err := again.Append(nil, from, &m)
				if err != nil || !bytes.Equal(out, b[:n]) {
					t.Fatalf("%q was read as %s %q, which encodes to %q, %v", b[:n], m.Type.Name, m.Args, out, err)
				}
				b = b[n:]
			}
		}
	})
}
