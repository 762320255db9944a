package transcript_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	. "jobwire/codec/transcript"
)

// TestListings tests that frames and events are listed in each format as in the golden file, and that a listing is a
// transcript unless long values are folded.
func TestListings(t *testing.T) {
	plain, folded, painted := Printer{Protocol: gearman.Protocol}, Printer{Protocol: gearman.Protocol, Fold: 2}, Printer{Protocol: gearman.Protocol, Color: true}
	small := frame(t, `Client -> Job Server: SUBMIT_JOB reverse "" "a b"`)
	large := frame(t, `Client -> Job Server: SUBMIT_JOB reverse u "\0\xff"*524296`)
	list := frame(t, "Job Server -> Admin: status-reply f 1 0 1 g 2 1 0 crlf")
	var out []byte
	title := func(s string) { out = append(out, "\n# "+s+"\n"...) }
	title("a frame")
	out = plain.AppendFrame(out, "Client 2", small)
	title("in a line")
	out = plain.AppendLine(out, "Client 2", small)
	title("a list")
	out = plain.AppendFrame(out, "Admin", list)
	out = plain.AppendLine(out, "Admin", list)
	title("folded")
	out = folded.AppendFrame(out, "Client", large)
	out = folded.AppendLine(out, "Client", large)
	out = folded.AppendFrame(out, "Client", frame(t, `Client -> Job Server: ECHO_REQ "three rows are three rows"`))
	title("in colour")
	out = painted.AppendFrame(out, "Client", small)
	out = painted.AppendLine(out, "Client", small)
	title("events")
	out = plain.AppendEvent(out, "Client", codec.Peer, Opens)
	out = plain.AppendEvent(out, "Client", codec.Server, Resets)
	golden(t, "listings", out)

	// The listings that are not folded are transcripts.
	src := string(plain.AppendLine(plain.AppendFrame(nil, "Client 2", small), "Client 2", small))
	s := parse(t, gearman.Protocol, src)
	if len(s.Steps) != 2 || !bytes.Equal(s.Steps[0].Choices[0].Bytes, small.Raw) {
		t.Errorf("read back as %+v", s.Steps)
	}
	if _, err := Parse(gearman.Protocol, "", folded.AppendFrame(nil, "Client", large)); err == nil {
		t.Error("a folded listing is read back")
	}
}

// TestBroken tests that the listing of a message that the decoder rejects shows each byte once and one mark below the
// byte that violates the rule, as in the golden file.
func TestBroken(t *testing.T) {
	header := func(code, size byte) string {
		return "\x00REQ\x00\x00\x00" + string(code) + "\x00\x00\x00" + string(size)
	}
	tests := []struct {
		name string
		raw  string
		fold int
	}{
		{"magic", "\x00RXQ\x00\x00\x00\x01", 0},
		{"magic of the other side", "\x00RES\x00\x00\x00\x07\x00\x00\x00\x01x", 0},
		{"unknown type", "\x00REQ\x00\x00\x01\x00\x00\x00\x00\x04data", 0},
		{"surplus data", header(9, 3) + "abc", 0},
		{"missing argument", header(7, 8) + "function", 0},
		{"value in the middle", header(36, 16) + "func\x00unique\x00so\x00wo", 0},
		{"second row", header(13, 76) + strings.Repeat("0123456789", 7) + "\x00tail.", 0},
		{"far away, folded", header(13, 76) + strings.Repeat("0123456789", 7) + "\x00tail.", 1},
		{"unknown command, folded", strings.Repeat("bogus ", 20) + "\n", 2},
	}
	var out []byte
	for _, tt := range tests {
		var f codec.Frame
		_, err := gearman.Protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(tt.raw), &f)
		var e *codec.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: got %v", tt.name, err)
		}
		p := Printer{Protocol: gearman.Protocol, Fold: tt.fold}
		out = append(out, "\n# "+tt.name+"\n"...)
		out = p.AppendBroken(out, "Client", &f, []byte(tt.raw), e)
	}
	out = append(out, "\n# nothing at all\n"...)
	p := Printer{Protocol: gearman.Protocol}
	out = p.AppendBroken(out, "Client", &codec.Frame{}, nil, &codec.Error{Rule: "some.rule", Offset: 3, Detail: "ends too early"})
	golden(t, "broken", out)

	// Every byte occurs exactly once in the listing, and there is one mark.
	for _, tt := range tests {
		if tt.fold > 0 {
			continue
		}
		var f codec.Frame
		_, err := gearman.Protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(tt.raw), &f)
		var e *codec.Error
		errors.As(err, &e)
		text := string(p.AppendBroken(nil, "Client", &f, []byte(tt.raw), e))
		if n := strings.Count(text, "^^ "); n != 1 {
			t.Errorf("%s: %d marks", tt.name, n)
		}
		var shown []byte
		for l := range strings.Lines(text) {
			if strings.Contains(l, "^^") || strings.Contains(l, "->") {
				continue
			}
			c := choice(t, "Client -> Job Server: raw "+strings.TrimSpace(l[:min(23, len(l))]))
			shown = append(shown, c.Bytes...)
		}
		if string(shown) != tt.raw {
			t.Errorf("%s: shown are %q, want %q", tt.name, shown, tt.raw)
		}
	}
}
