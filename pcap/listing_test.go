package pcap

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

// TestRowsAreThePrinters: what is printed by tables is what the transcript's printer
// prints, for every vector and for long and odd payloads, folded and not.
func TestRowsAreThePrinters(t *testing.T) {
	for _, p := range []*codec.Protocol{gearman.Protocol, danga.Protocol} {
		src, err := corpus.FS.ReadFile(p.Name + "/accept.wire")
		if err != nil {
			t.Fatal(err)
		}
		scripts, err := transcript.Parse(p, "accept.wire", src)
		if err != nil {
			t.Fatal(err)
		}
		var frames []codec.Frame
		decode := func(from codec.Side, b []byte) {
			var f codec.Frame
			if _, err := p.NewSession(codec.Options{}).Decode(from, b, &f); err == nil && f.Type.End == "" {
				frames = append(frames, f)
			}
		}
		for _, s := range scripts {
			for _, st := range s.Steps {
				decode(st.From, st.Choices[0].Bytes)
			}
		}
		if p == gearman.Protocol {
			for _, n := range []int{1, 8, 9, 31, 32, 33, 40, 41, 1000} {
				for _, w := range []string{"x", " ", "\x00\r\n\t\\", "\xff\x7f \""} {
					data := strings.Repeat(w, n)[:n]
					decode(codec.Peer, append([]byte{0, 'R', 'E', 'Q', 0, 0, 0, 16, 0, 0, byte(n >> 8), byte(n)}, data...))
				}
			}
		}
		if len(frames) < 10 {
			t.Fatalf("only %d frames", len(frames))
		}
		for _, full := range []bool{false, true} {
			l := NewListing(io.Discard, ListingOptions{Full: full})
			l.pr.Protocol = p
			for i := range frames {
				f := &frames[i]
				want := l.pr.AppendFrame(nil, "A", f)
				got := l.packet(append(appendEnds(nil, p, "A", f.From), '\n'), f)
				if !bytes.Equal(got, want) {
					t.Fatalf("%s:\n%s\nwant\n%s", f.Type.Name, got, want)
				}
			}
		}
	}
}
