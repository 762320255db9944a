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

	received

	wake   chan<- struct{} // receives a value after each arrival
	room   chan struct{}   // receives a value when read may continue
	leave  chan struct{}   // closed when nothing more is to be read
	done   chan struct{}   // closed when reading has ended
	closed bool            // closed by the performer

	stopped bool // nothing more is read
}

// received is what a connection has received and the performer has not consumed yet.
type received struct {
	mu       sync.Mutex
	unread   []byte
	arrivals []arrival // of the bytes in unread, oldest first
	need     int       // how many bytes must be in unread before decoding is tried again
	end      error     // why reading ended
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

// readBuffer is the maximum number of bytes of one read.
const readBuffer = 32 << 10

// read appends received bytes to unread until the connection ends.
func (cn *conn) read() {
	buf := make([]byte, readBuffer)
	for {
		n, err := cn.net.Read(buf)
		cn.mu.Lock()
		if n > 0 {
			if cn.need > len(cn.unread)+n {
				cn.unread = slices.Grow(cn.unread, min(cn.need-len(cn.unread), maxAhead))
			}
			cn.unread = codec.Extend(cn.unread, buf[:n], cn.need)
			cn.arrivals = append(cn.arrivals, arrival{len(cn.unread), time.Now()})
			cn.large.unread.Add(int64(n))
		}
		full, grown := cn.full(), cn.large.unread.Load() > largeFrom && len(cn.unread) > minUnread
		cn.end = err
		cn.mu.Unlock()
		select {
		case cn.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
		if grown {
			cn.large.take(cn.leave)
		}
		for full {
			select {
			case <-cn.room:
			case <-cn.leave:
				return
			}
			cn.mu.Lock()
			full = cn.full()
			cn.mu.Unlock()
		}
	}
}

// full reports whether enough bytes have arrived for the next message, whatever it is.
func (cn *conn) full() bool {
	if cn.large.unread.Load() > maxUnreadTotal {
		return len(cn.unread) > max(minUnread, cn.need)
	}
	return len(cn.unread) > max(maxUnread, cn.need+maxRecorded)
}

// stopReading leaves further bytes in the receive buffer of the socket, and makes this buffer small.
func (cn *conn) stopReading() {
	cn.stopped = true
	close(cn.leave)
	transport.SetReadBuffer(cn.net, 4<<10)
	cn.net.SetReadDeadline(time.Now())
	<-cn.done
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
	message                    // conn.frame contains it
	broken                     // invalid bytes; conn.frame contains the fields that were decoded
	ended                      // end of stream
	reset                      // the connection was reset
)

// next returns the first message that has arrived, without consuming it. If the received bytes end within a message and
// the connection has ended, the outcome is ended or reset, and these bytes stay in unread.
func (cn *conn) next(from codec.Side) outcome {
	if cn.relay != nil {
		return cn.relay.next(from, &cn.frame)
	}
	if cn.head.kind == waiting {
		cn.head = cn.decode(from)
	}
	return cn.head
}

// decode decodes the first message in the bytes that have arrived, without consuming them. If no complete message has
// arrived, it returns waiting, or how the connection ended.
func (cn *conn) decode(from codec.Side) outcome {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if len(cn.unread) > 0 && (len(cn.unread) >= cn.need || cn.end != nil) {
		n, err := cn.sess.Decode(from, cn.unread, &cn.frame)
		var e *codec.Error
		switch {
		case err == nil:
			return outcome{kind: message, at: cn.arrived(n), size: n}
		case errors.As(err, &e):
			size := n
			if e.Fatal || n > len(cn.unread) {
				size = len(cn.unread)
			}
			return outcome{kind: broken, at: cn.arrived(min(e.Offset+1, size)), size: size, err: e}
		}
		cn.need = n
		cn.readOn()
	}
	switch {
	case cn.end == nil:
		return outcome{kind: waiting}
	case errors.Is(cn.end, io.EOF):
		return outcome{kind: ended, at: time.Now()}
	}
	if errors.Is(cn.end, syscall.ECONNRESET) || errors.Is(cn.end, syscall.EPIPE) {
		return outcome{kind: reset, at: time.Now()}
	}
	return outcome{kind: ended, at: time.Now()}
}

// arrived returns when the first n unread bytes had arrived.
func (cn *conn) arrived(n int) time.Time {
	for _, a := range cn.arrivals {
		if a.upTo >= n {
			return a.at
		}
	}
	return time.Now()
}

// peek returns the unread bytes and whether more may arrive. If a program plays the actor, it returns nothing, because the
// relay to the program keeps whole messages only.
func (cn *conn) peek() ([]byte, bool) {
	if cn.relay != nil {
		return nil, false
	}
	cn.mu.Lock()
	defer cn.mu.Unlock()
	return cn.unread, cn.end == nil
}

// consume drops the first n unread bytes.
func (cn *conn) consume(n int) {
	if cn.relay != nil {
		cn.relay.consume(cn.frame.From)
		return
	}
	cn.head = outcome{}
	cn.frame.Reset(cn.frame.From) // it may be a long list
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.unread, cn.need = cn.unread[n:], 0
	cn.large.unread.Add(-int64(n))
	kept := cn.arrivals[:0]
	for _, a := range cn.arrivals {
		if a.upTo > n {
			kept = append(kept, arrival{a.upTo - n, a.at})
		}
	}
	cn.arrivals = kept
	if len(cn.unread) == 0 {
		cn.unread = nil
	}
	cn.readOn()
}

// readOn makes read look again whether there is room.
func (cn *conn) readOn() {
	select {
	case cn.room <- struct{}{}:
	default:
	}
}

// sent passes the sent bytes to the session, so that it can decode the replies. It returns the frame if b is one valid
// message, else only the bytes. The result shares the memory of b.
func (cn *conn) sent(from codec.Side, b []byte) codec.Frame {
	cn.sentStream.From = from
	var f codec.Frame
	whole := false
	for p := range cn.sentStream.Feed(b, &f) {
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
func (cn *conn) write(b []byte, how Segmentation, deadline time.Time) error {
	switch how {
	case Coalesced:
		cn.unsent = append(cn.unsent, b...)
		return nil
	case Bytewise:
		return bytewise(b, func(piece []byte) error {
			cn.unsent = piece
			return cn.flush(deadline)
		})
	}
	cn.unsent = b
	return cn.flush(deadline)
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
func (cn *conn) flush(deadline time.Time) error {
	timeout, left := time.Until(deadline), cn.unsent
	cn.unsent = nil
	for len(left) > 0 {
		n := min(len(left), flushPiece)
		cn.net.SetWriteDeadline(deadline)
		if _, err := cn.net.Write(left[:n]); peerLeft(err) {
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
func (cn *conn) mayReturn(st *transcript.Step) bool {
	return cn.relay != nil && !slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Closes || c.Verb == transcript.Resets
	})
}

// disconnected records that the other side has closed the connection. If the actor acts again, it connects again.
func (cn *conn) disconnected() {
	if cn.relay != nil {
		cn.relay.disconnected()
		return
	}
	cn.close()
}

// close closes the connection, or stops the program that plays the actor. Further calls do nothing.
func (cn *conn) close() {
	switch {
	case cn.closed:
		return
	case cn.relay != nil:
		cn.relay.stop()
	default:
		cn.net.Close()
		if !cn.stopped {
			close(cn.leave)
		}
	}
	cn.closed = true
}
