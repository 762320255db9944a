package codec

import "iter"

// Stream finds the messages in the bytes that one side of a connection sends, as they arrive in pieces of
// any size. Both streams of a connection share its [Session]. The zero value needs a Session.
type Stream struct {
	Session Session
	From    Side

	need int    // bytes of the next message before it is worth looking at them again
	skip int    // bytes to come of a message that the decoder did not wait for
	lost bool   // nothing can be read anymore
	rest []byte // of Feed: an incomplete message
}

// Streams returns the streams of both sides of a connection, by their sides.
func Streams(s Session) [2]Stream {
	return [2]Stream{{Session: s, From: Peer}, {Session: s, From: Server}}
}

// Found is what a [Stream] found at the beginning of some bytes.
type Found uint8

const (
	Nothing Found = iota // an incomplete message: more bytes are needed
	Whole                // a message
	Illegal              // a message that breaks a rule, or the part of it that is there
	Skipped              // more of a message that was not waited for, or what follows one whose end is unknown
)

// Read finds the first message in b, the bytes that come after those that were read before, and sets f to
// it. n is how many bytes it is done with. err is the rule that is broken where found is Illegal; if it is
// Fatal, n is len(b), and everything that follows is Skipped until [Stream.Resume].
//
// After Nothing, the next call should get the same bytes and more after them: at least [Stream.Need].
func (s *Stream) Read(b []byte, f *Frame) (n int, found Found, err *Error) {
	switch {
	case len(b) == 0:
		return 0, Nothing, nil
	case s.lost:
		return len(b), Skipped, nil
	case s.skip > 0:
		n = min(s.skip, len(b))
		s.skip -= n
		return n, Skipped, nil
	case len(b) < s.need:
		return 0, Nothing, nil
	}
	n, bad := s.Session.Decode(s.From, b, f)
	if bad == ErrShort {
		s.need = n
		return 0, Nothing, nil
	}
	s.need, s.skip = 0, max(0, n-len(b))
	n = min(n, len(b))
	if bad == nil {
		return n, Whole, nil
	}
	err = bad.(*Error)
	if s.lost = err.Fatal; s.lost {
		return len(b), Illegal, err
	}
	return n, Illegal, err
}

// Need returns how many bytes [Stream.Read] wants to be given next, or 1 if it does not know.
func (s *Stream) Need() int { return max(s.need, 1) }

// Lost reports whether the end of an illegal message was unknown, so that nothing can be read anymore.
func (s *Stream) Lost() bool { return s.lost }

// Skip returns how many bytes are still to come of a message that was not waited for.
func (s *Stream) Skip() int { return s.skip }

// Inside reports whether the bytes so far end inside a message.
func (s *Stream) Inside() bool { return s.skip > 0 || len(s.rest) > 0 }

// Resume has the next bytes read as the beginning of a message, whatever came before.
func (s *Stream) Resume() { s.need, s.skip, s.lost, s.rest = 0, 0, false, s.rest[:0] }

// Rest returns the incomplete message that [Stream.Feed] has kept.
func (s *Stream) Rest() []byte { return s.rest }

// Piece is what [Stream.Feed] found.
type Piece struct {
	Found Found
	Raw   []byte // valid until the next piece
	Err   *Error
}

// Feed takes the next bytes, goes through what is found in them, with f set to each message, and keeps a copy
// of an incomplete message for the next call. What a caller that stops early has not seen is kept too.
func (s *Stream) Feed(b []byte, f *Frame) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		own := len(s.rest) > 0
		if own {
			s.rest = append(s.rest, b...)
			b = s.rest
		}
		for more := true; more; {
			n, found, err := s.Read(b, f)
			if found == Nothing {
				break
			}
			raw := b[:n:n]
			b = b[n:]
			more = yield(Piece{found, raw, err})
		}
		if own && len(b) == 0 && cap(s.rest) > keptBuffer {
			s.rest = nil
		}
		if own && len(b) == len(s.rest) { // copying it each time would take quadratic time for a large message
			return
		}
		s.rest = append(s.rest[:0], b...)
	}
}

// keptBuffer is the largest buffer in bytes that a Stream keeps while it is empty.
const keptBuffer = 64 << 10
