package codec_test

import (
	"strings"
	"testing"

	. "jobwire/codec"
)

// letters is a session of an imaginary protocol: a message is a digit and that many letters. 'x' as the first
// letter is illegal and is rejected as soon as it arrives. Any first byte other than a digit is a fatal
// error.
type letters struct{ decoded int }

func (l *letters) Decode(_ Side, b []byte, f *Frame) (int, error) {
	l.decoded++
	f.Raw = nil
	n := int(b[0] - '0')
	switch {
	case n < 0 || n > 9:
		return 0, &Error{Rule: "fatal", Fatal: true}
	case len(b) == 1 && n > 0:
		return 2, ErrShort
	case len(b) > 1 && b[1] == 'x':
		return n + 1, &Error{Rule: "x"}
	case len(b) < n+1:
		return n + 1, ErrShort
	}
	f.Raw = b[:n+1]
	return n + 1, nil
}

func (*letters) Append([]byte, Side, *Message) ([]byte, error) { panic("unused") }

// TestStreamInPieces checks that the result does not depend on how the bytes are divided.
func TestStreamInPieces(t *testing.T) {
	for _, tt := range []struct{ bytes, want string }{
		{"", ""},
		{"3abc1d0", "3abc 1d 0"},
		{"3abc2d", "3abc"},
		{"2ab5xbcde1f", "2ab !5xbcde 1f"},
		{"5xbc", "!5xbc"},
		{"1a?1b", "1a !?1b"},
	} {
		for size := 1; size <= len(tt.bytes)+1; size++ {
			l := &letters{}
			s := Stream{Session: l}
			var f Frame
			var got strings.Builder
			for b := []byte(tt.bytes); len(b) > 0; {
				n := min(size, len(b))
				piece := append([]byte(nil), b[:n]...)
				b = b[n:]
				for p := range s.Feed(piece, &f) {
					switch p.Found {
					case Whole:
						got.WriteString(" ")
						if string(p.Raw) != string(f.Raw) {
							t.Errorf("%s: %q is handed on, the frame is %q", tt.bytes, p.Raw, f.Raw)
						}
					case Illegal:
						got.WriteString(" !")
					}
					got.Write(p.Raw)
				}
				clear(piece) // the stream must not alias the caller's memory
			}
			if strings.TrimSpace(got.String()) != tt.want {
				t.Errorf("%s in pieces of %d: %q, want %q", tt.bytes, size, got.String(), tt.want)
			}
			if l.decoded > 2*len(tt.want)+2 {
				t.Errorf("%s in pieces of %d: %d calls of Decode", tt.bytes, size, l.decoded)
			}
		}
	}
}

// TestStreamWaits checks that Decode is not called again before as many bytes have arrived as the session
// asked for.
func TestStreamWaits(t *testing.T) {
	l := &letters{}
	s := Stream{Session: l}
	var f Frame
	for n := 1; n < 10; n++ {
		if _, found, _ := s.Read([]byte("9abcdefghi")[:n], &f); found != Nothing || n > 1 && s.Need() != 10 {
			t.Fatalf("%d bytes: found %d, %d bytes needed", n, found, s.Need())
		}
	}
	if n, found, _ := s.Read([]byte("9abcdefghi1"), &f); n != 10 || found != Whole || l.decoded != 3 {
		t.Errorf("%d bytes read, found %d, %d calls of Decode", n, found, l.decoded)
	}
}

// TestStreamStopsEarly checks that bytes not returned to a caller that stops early are not lost.
func TestStreamStopsEarly(t *testing.T) {
	s := Stream{Session: &letters{}}
	var f Frame
	var got []string
	for _, piece := range []string{"1a1b1", "c", ""} {
		for p := range s.Feed([]byte(piece), &f) {
			got = append(got, string(p.Raw))
			break
		}
	}
	if strings.Join(got, " ") != "1a 1b 1c" {
		t.Errorf("%q", got)
	}
}

// TestStreamResumes checks that nothing is decoded after a fatal error until the caller calls Resume.
func TestStreamResumes(t *testing.T) {
	s := Stream{Session: &letters{}}
	var f Frame
	if n, found, err := s.Read([]byte("?1a"), &f); n != 3 || found != Illegal || !err.Fatal || !s.Lost() {
		t.Fatalf("%d, %d, %v", n, found, err)
	}
	if n, found, _ := s.Read([]byte("1a"), &f); n != 2 || found != Skipped {
		t.Errorf("%d bytes, found %d after a fatal error", n, found)
	}
	s.Resume()
	if _, found, _ := s.Read([]byte("1a"), &f); found != Whole || s.Lost() {
		t.Errorf("found %d after Resume", found)
	}
}

// TestExtendCopiesLittle tests that a buffer for a large message of known size, which arrives in pieces, has little more
// than this size, that the memory for smaller buffers before it is a small part of it, and that the announcement of a
// large message takes no memory.
func TestExtendCopiesLittle(t *testing.T) {
	const size, piece = 30 << 20, 64 << 10
	var b []byte
	copied := 0
	for len(b) < size {
		before := cap(b)
		if b = Extend(b, make([]byte, piece), size); cap(b) != before {
			copied += before
		}
		if len(b) == piece && cap(b) > 4*piece {
			t.Errorf("%d bytes for the first %d bytes of a message", cap(b), piece)
		}
	}
	if cap(b) > size+size/32 || copied > size/16 {
		t.Errorf("%d bytes for a message of %d bytes, after buffers of %d bytes", cap(b), size, copied)
	}
}
