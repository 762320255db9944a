package codec

import (
	"iter"
	"slices"
)

// Stream finds the messages in the bytes that one side of a connection sends and that arrive in pieces of any
// size. Both streams of a connection share its [Session]. A Stream needs a Session; the other fields may be
// zero.
type Stream struct {
	Session Session
	From    Side

	need int    // minimum number of bytes for the next call of Session.Decode
	skip int    // bytes of a rejected message that are still to come
	lost bool   // a fatal error has occurred: nothing more can be decoded
	rest []byte // used by Feed: an incomplete message
}

// Streams returns the streams of both sides of a connection, indexed by Side.
func Streams(s Session) [2]Stream {
	return [2]Stream{{Session: s, From: Peer}, {Session: s, From: Server}}
}

// Found is the kind of data that a [Stream] found at the beginning of the given bytes.
type Found uint8

const (
	Nothing Found = iota // an incomplete message: more bytes are needed
	Whole                // a message
	Illegal              // a message that violates a rule, or the part of it that has arrived
	Skipped              // the remaining bytes of an illegal message, or bytes after a message whose end is unknown
)

// Read finds the first message in b and decodes it into f. b continues after the bytes that earlier calls
// consumed. n is the number of bytes consumed. If found is Illegal, err is the violation; if err is Fatal, n
// is len(b), and all further bytes are Skipped until [Stream.Resume].
//
// If found is Nothing, the next call must be given the same bytes and more after them: at least [Stream.Need]
// in total.
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

// Need returns the minimum number of bytes for the next call of [Stream.Read], or 1 if it is unknown.
func (s *Stream) Need() int { return max(s.need, 1) }

// Lost reports whether an illegal message had an unknown end, so that no further message can be decoded.
func (s *Stream) Lost() bool { return s.lost }

// Skip returns how many bytes of an illegal message are still to come.
func (s *Stream) Skip() int { return s.skip }

// Inside reports whether the bytes so far end inside a message.
func (s *Stream) Inside() bool { return s.skip > 0 || len(s.rest) > 0 }

// Resume resets the stream: the next bytes are decoded as the beginning of a message.
func (s *Stream) Resume() { s.need, s.skip, s.lost, s.rest = 0, 0, false, s.rest[:0] }

// Rest returns the incomplete message that [Stream.Feed] has stored.
func (s *Stream) Rest() []byte { return s.rest }

// Piece is one part of the bytes that [Stream.Feed] was given: a message, an illegal message or skipped
// bytes.
type Piece struct {
	Found Found
	Raw   []byte // valid until the next piece
	Err   *Error
}

// Feed takes the next bytes and iterates over the pieces found in them, with f set to each message. It stores
// a copy of an incomplete message for the next call. If the caller stops the iteration early, Feed also
// stores the bytes not yet returned.
func (s *Stream) Feed(b []byte, f *Frame) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		own := len(s.rest) > 0
		if own {
			s.rest = Extend(s.rest, b, s.need)
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
		if own && len(b) == 0 && cap(s.rest) > maxIdleBuffer {
			s.rest = nil
		}
		if own && len(b) == len(s.rest) { // copying a large message at each call would take quadratic time
			return
		}
		s.rest = append(s.rest[:0], b...)
	}
}

const (
	// wholeAfter is the part, 1/wholeAfter, of a message of known size after which a buffer gets space for all of it.
	wholeAfter  = 128
	bufferSlack = 64 << 10 // bytes after a message for which there is space, because short values may follow a long one
)

// Extend appends b to a buffer, whose first message has at least size bytes. If a part of these has arrived, the buffer
// gets space for all of them, and otherwise its space doubles: a large message that arrives in pieces is copied about
// once, and a peer that only announces one does not use up the memory. (The space of large slices that append makes
// grows by a quarter.)
func Extend(buffer, b []byte, size int) []byte {
	if need := len(buffer) + len(b); need > cap(buffer) {
		more := max(len(b), len(buffer))
		if missing := size - len(buffer); missing >= len(b) {
			if more = min(more, missing+bufferSlack); size <= wholeAfter*len(buffer) {
				more = missing + bufferSlack
			}
		}
		buffer = slices.Grow(buffer, more)
	}
	return append(buffer, b...)
}

// maxIdleBuffer is the largest buffer in bytes that a Stream keeps while it is empty.
const maxIdleBuffer = 64 << 10
