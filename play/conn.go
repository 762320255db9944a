package play

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/transport"
)

// conn is one connection and the data received on it. A goroutine reads; only the performer decodes and writes.
type conn struct {
	net        net.Conn
	relay      *relay           // if a program plays the actor; it has connections of its own
	actor      transcript.Actor // zero as long as the actor is unknown
	sess       codec.Session    // reads both directions
	nonStrict  codec.Session    // encodes; the messages were checked when the script was parsed
	unsent     []byte           // bytes to be written with the next message
	frame      codec.Frame
	sentStream codec.Stream // the sent bytes, which sess has to know
	head       outcome      // the result of next, until it is consumed
	large      *large

	mu       sync.Mutex
	unread   []byte
	arrivals []arrival // of the bytes in unread, oldest first
	need     int       // how many bytes must be in unread before decoding is tried again
	end      error     // why reading ended

	wake   chan<- struct{} // receives a value after each arrival
	room   chan struct{}   // receives a value when read may continue
	leave  chan struct{}   // closed when nothing more is to be read
	done   chan struct{}   // closed when reading has ended
	closed bool            // closed by the performer

	stopped bool // nothing more is read
}

// arrival is the time by which the bytes up to an offset in unread had arrived.
type arrival struct {
	upTo int
	at   time.Time
}

func newConn(c net.Conn, p *codec.Protocol, o codec.Options, wake chan<- struct{}, place *large) *conn {
	session := p.NewSession(o)
	return &conn{net: c, sess: session, sentStream: codec.Stream{Session: session}, nonStrict: p.NewSession(nonStrict(o)),
		wake:  wake,
		large: place, room: make(chan struct{}, 1), leave: make(chan struct{}), done: make(chan struct{})}
}

// nonStrict returns the options with every rule waived.
func nonStrict(o codec.Options) codec.Options {
	o.WaiveAll = true
	return o
}

// read appends received bytes to unread until the connection ends.
func (l *conn) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.net.Read(buf)
		l.mu.Lock()
		if n > 0 {
			if l.need > len(l.unread)+n {
				l.unread = slices.Grow(l.unread, min(l.need-len(l.unread), maxAhead))
			}
			l.unread = codec.Extend(l.unread, buf[:n], l.need)
			l.arrivals = append(l.arrivals, arrival{len(l.unread), time.Now()})
			l.large.unread.Add(int64(n))
		}
		full, grown := l.full(), l.large.unread.Load() > largeFrom && len(l.unread) > minUnread
		l.end = err
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
		if grown {
			l.large.take(l.leave)
		}
		for full {
			select {
			case <-l.room:
			case <-l.leave:
				return
			}
			l.mu.Lock()
			full = l.full()
			l.mu.Unlock()
		}
	}
}

// full reports whether enough bytes have arrived for the next message, whatever it is.
func (l *conn) full() bool {
	if l.large.unread.Load() > maxUnreadTotal {
		return len(l.unread) > max(minUnread, l.need)
	}
	return len(l.unread) > max(maxUnread, l.need+maxRecorded)
}

// stopReading leaves further bytes in the receive buffer of the socket, and makes this buffer small.
func (l *conn) stopReading() {
	l.stopped = true
	close(l.leave)
	transport.SetReadBuffer(l.net, 4<<10)
	l.net.SetReadDeadline(time.Now())
	<-l.done
}

// outcome is the result of looking for a message of the other side.
type outcome struct {
	kind outcomeKind
	at   time.Time
	size int          // how many bytes of unread it comprises
	err  *codec.Error // of an invalid message
}

type outcomeKind uint8

const (
	waiting outcomeKind = iota // no complete message yet
	message                    // l.frame contains it
	broken                     // invalid bytes; l.frame contains the fields that were decoded
	ended                      // end of stream
	reset                      // the connection was reset
)

// next returns the first message that has arrived, without consuming it. If the received bytes end within a message and
// the connection has ended, the outcome is ended or reset, and these bytes stay in unread.
func (l *conn) next(from codec.Side) outcome {
	if l.relay != nil {
		return l.relay.next(from, &l.frame)
	}
	if l.head.kind == waiting {
		l.head = l.decode(from)
	}
	return l.head
}

func (l *conn) decode(from codec.Side) outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unread) > 0 && (len(l.unread) >= l.need || l.end != nil) {
		n, err := l.sess.Decode(from, l.unread, &l.frame)
		var e *codec.Error
		switch {
		case err == nil:
			return outcome{kind: message, at: l.arrived(n), size: n}
		case errors.As(err, &e):
			size := n
			if e.Fatal || n > len(l.unread) {
				size = len(l.unread)
			}
			return outcome{kind: broken, at: l.arrived(min(e.Offset+1, size)), size: size, err: e}
		}
		l.need = n
		l.readOn()
	}
	switch {
	case l.end == nil:
		return outcome{kind: waiting}
	case errors.Is(l.end, io.EOF):
		return outcome{kind: ended, at: time.Now()}
	}
	if errors.Is(l.end, syscall.ECONNRESET) || errors.Is(l.end, syscall.EPIPE) {
		return outcome{kind: reset, at: time.Now()}
	}
	return outcome{kind: ended, at: time.Now()}
}

// arrived returns when the first n unread bytes had arrived.
func (l *conn) arrived(n int) time.Time {
	for _, a := range l.arrivals {
		if a.upTo >= n {
			return a.at
		}
	}
	return time.Now()
}

// peek returns the unread bytes and whether more may arrive. For a program it returns nothing, because a relay keeps
// whole messages only.
func (l *conn) peek() ([]byte, bool) {
	if l.relay != nil {
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread, l.end == nil
}

// consume drops the first n unread bytes.
func (l *conn) consume(n int) {
	if l.relay != nil {
		l.relay.consume(l.frame.From)
		return
	}
	l.head = outcome{}
	l.frame.Reset(l.frame.From) // it may be a long list
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread, l.need = l.unread[n:], 0
	l.large.unread.Add(-int64(n))
	kept := l.arrivals[:0]
	for _, a := range l.arrivals {
		if a.upTo > n {
			kept = append(kept, arrival{a.upTo - n, a.at})
		}
	}
	l.arrivals = kept
	if len(l.unread) == 0 {
		l.unread = nil
	}
	l.readOn()
}

// readOn makes read look again whether there is room.
func (l *conn) readOn() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// sent passes the sent bytes to the session, so that it can decode the replies. It returns the frame if b is one valid
// message, else only the bytes. The result shares the memory of b.
func (l *conn) sent(from codec.Side, b []byte) codec.Frame {
	l.sentStream.From = from
	var f codec.Frame
	whole := false
	for p := range l.sentStream.Feed(b, &f) {
		whole = p.Found == codec.Whole && len(p.Raw) == len(b)
	}
	if whole && len(f.Raw) == len(b) {
		return f
	}
	return codec.Frame{From: from, Raw: b}
}

// Bytewise writes the first bytewiseHead and the last bytewiseTail bytes of a message byte by byte, and the rest at
// once. The kernel may deliver several writes together, so there are pauses after the first byte, in the middle and
// before the last byte.
const (
	bytewiseHead  = 1 << 10
	bytewiseTail  = 64
	bytewisePause = 200 * time.Microsecond
)

// flushPiece is how many bytes the other side must accept before each deadline.
const flushPiece = 256 << 10

// write sends b in the given segmentation, until the deadline. If the other side has closed the connection, write
// returns no error: the next step checks what the other side sent before.
func (l *conn) write(b []byte, how Segmentation, deadline time.Time) error {
	switch how {
	case Coalesced:
		l.unsent = append(l.unsent, b...)
		return nil
	case Bytewise:
		return bytewise(b, func(piece []byte) error {
			l.unsent = piece
			return l.flush(deadline)
		})
	}
	l.unsent = b
	return l.flush(deadline)
}

// bytewise writes the beginning and the end of b byte by byte.
func bytewise(b []byte, write func([]byte) error) error {
	for i := 0; i < len(b); {
		n := 1
		if rest := len(b) - bytewiseTail - i; i >= bytewiseHead && rest > 0 {
			n = rest
		}
		if err := write(b[i : i+n]); err != nil {
			return err
		}
		i += n
		if i == 1 || i == len(b)/2 || i == len(b)-1 {
			time.Sleep(bytewisePause)
		}
	}
	return nil
}

// flush writes the coalesced or current bytes in pieces. Each piece has the time from now until the deadline, so that a
// long message fails only if the other side accepts nothing, not if the machine is slow.
func (l *conn) flush(deadline time.Time) error {
	timeout, left := time.Until(deadline), l.unsent
	l.unsent = nil
	for len(left) > 0 {
		n := min(len(left), flushPiece)
		l.net.SetWriteDeadline(deadline)
		if _, err := l.net.Write(left[:n]); peerLeft(err) {
			return nil
		} else if err != nil {
			return err
		}
		left, deadline = left[n:], time.Now().Add(timeout)
	}
	return nil
}

// mayReturn reports whether a step ignores the end of the connection: a program may use one connection per message, so
// only a step that expects the end sees it.
func (l *conn) mayReturn(st *transcript.Step) bool {
	return l.relay != nil && !slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Closes || c.Verb == transcript.Resets
	})
}

// disconnected records that the other side has closed the connection. If the actor acts again, it connects again.
func (l *conn) disconnected() {
	if l.relay != nil {
		l.relay.disconnected()
		return
	}
	l.close()
}

func (l *conn) close() {
	switch {
	case l.closed:
		return
	case l.relay != nil:
		l.relay.stop()
	default:
		l.net.Close()
		if !l.stopped {
			close(l.leave)
		}
	}
	l.closed = true
}
