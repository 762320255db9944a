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
)

// maxUnread bounds what the other side may send beyond what the transcript has
// asked for, in bytes. A side that floods is cut off.
const maxUnread = 256 << 20

// maxAhead bounds the room that is made for a message whose header alone has come, in bytes.
const maxAhead = 32 << 20

// link is one connection and what has arrived on it. A goroutine reads; the
// performer alone decodes and writes.
type link struct {
	net   net.Conn
	relay *relay           // if a program is behind it, which has connections of its own
	actor transcript.Actor // zero while nobody is known to be behind it
	sess  codec.Session    // reads both directions
	loose codec.Session    // encodes; what may be sent was judged when the script was parsed
	held  []byte           // written with the next message
	frame codec.Frame
	own   codec.Stream // what is written, for sess to read
	head  outcome      // what next found, until it is consumed

	mu       sync.Mutex
	unread   []byte
	arrivals []arrival // of the bytes in unread, oldest first
	need     int       // bytes wanted before decoding is worth a try
	end      error     // why reading ended

	wake   chan<- struct{} // told of every arrival
	done   chan struct{}   // closed when reading has ended
	closed bool            // by us

	stopped bool // reads nothing more
}

// arrival says when the bytes up to an offset in unread had come.
type arrival struct {
	upTo int
	at   time.Time
}

func newLink(c net.Conn, p *codec.Protocol, o codec.Options, wake chan<- struct{}) *link {
	session := p.NewSession(o)
	return &link{net: c, sess: session, own: codec.Stream{Session: session}, loose: p.NewSession(loosely(o)), wake: wake, done: make(chan struct{})}
}

// loosely returns the options with every rule waived.
func loosely(o codec.Options) codec.Options {
	o.WaiveAll = true
	return o
}

// read takes in whatever comes until the connection ends.
func (l *link) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.net.Read(buf)
		l.mu.Lock()
		if n > 0 {
			if l.need > len(l.unread)+n {
				l.unread = slices.Grow(l.unread, min(l.need-len(l.unread), maxAhead))
			}
			l.unread = append(l.unread, buf[:n]...)
			l.arrivals = append(l.arrivals, arrival{len(l.unread), time.Now()})
			if len(l.unread) > maxUnread {
				err = errors.New("the other side sent more than 256 MiB that the transcript does not expect")
			}
		}
		l.end = err
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// stopReading leaves what arrives from now on in the receive buffer of the socket, which is made small.
func (l *link) stopReading() {
	l.stopped = true
	if c, ok := l.net.(*net.TCPConn); ok {
		c.SetReadBuffer(4 << 10)
	}
	l.net.SetReadDeadline(time.Now())
	<-l.done
}

// outcome is what came of waiting for the other side.
type outcome struct {
	kind outcomeKind
	at   time.Time
	size int          // bytes of unread that it covers
	err  *codec.Error // of a broken message
}

type outcomeKind uint8

const (
	waiting outcomeKind = iota // nothing yet
	message                    // l.frame holds it
	broken                     // bytes that are no message; l.frame holds the rows read
	ended                      // end of stream
	reset                      // broken off
)

// next looks at the first message that has arrived, without consuming it. Where
// the bytes at hand end within a message and no more will come, the outcome is
// ended or reset, and what is left stays in unread.
func (l *link) next(from codec.Side) outcome {
	if l.relay != nil {
		return l.relay.next(from, &l.frame)
	}
	if l.head.kind == waiting {
		l.head = l.look(from)
	}
	return l.head
}

func (l *link) look(from codec.Side) outcome {
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

// arrived returns when the first n unread bytes were there.
func (l *link) arrived(n int) time.Time {
	for _, a := range l.arrivals {
		if a.upTo >= n {
			return a.at
		}
	}
	return time.Now()
}

// peek returns what has arrived and whether more may come. Of a program it shows nothing:
// what it says is judged by the message.
func (l *link) peek() ([]byte, bool) {
	if l.relay != nil {
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread, l.end == nil
}

// consume drops the first n unread bytes.
func (l *link) consume(n int) {
	if l.relay != nil {
		l.relay.consume(l.frame.From)
		return
	}
	l.head = outcome{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread, l.need = l.unread[n:], 0
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
}

// sent shows the session what went out, so that replies to it can be read. It
// returns the frame if b is one legal message, else just the bytes; either shares b's memory.
func (l *link) sent(from codec.Side, b []byte) codec.Frame {
	l.own.From = from
	var f codec.Frame
	whole := false
	for p := range l.own.Feed(b, &f) {
		whole = p.Found == codec.Whole && len(p.Raw) == len(b)
	}
	if whole && len(f.Raw) == len(b) {
		return f
	}
	return codec.Frame{From: from, Raw: b}
}

// How much of a long message is written byte by byte: all that holds framing,
// and a little of the end. Bytes written one after another may still be read
// together, so there are pauses behind the first, in the middle and before the last.
const (
	bytewiseHead  = 4 << 10
	bytewiseTail  = 64
	bytewisePause = 200 * time.Microsecond
)

// flushPiece is how many bytes the other side is to take before the deadline.
const flushPiece = 256 << 10

// write sends b, cut as asked for, giving up at the deadline. That the other
// side has gone is no error: what it said before is for the next step to judge.
func (l *link) write(b []byte, how Segmentation, deadline time.Time) error {
	switch how {
	case Coalesced:
		l.held = append(l.held, b...)
		return nil
	case Bytewise:
		return bytewise(b, func(piece []byte) error {
			l.held = piece
			return l.flush(deadline)
		})
	}
	l.held = b
	return l.flush(deadline)
}

// bytewise writes b in pieces.
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

// flush writes what is held back. Each piece of it has the time until the deadline, so
// that a long message fails only with a side that takes nothing, not with a slow machine.
func (l *link) flush(deadline time.Time) error {
	patience, left := time.Until(deadline), l.held
	l.held = nil
	for len(left) > 0 {
		n := min(len(left), flushPiece)
		l.net.SetWriteDeadline(deadline)
		if _, err := l.net.Write(left[:n]); peerLeft(err) {
			return nil
		} else if err != nil {
			return err
		}
		left, deadline = left[n:], time.Now().Add(patience)
	}
	return nil
}

// mayReturn reports whether an end is no news to a step: a program is free to connect for
// each of its messages, so only a step that waits for the last word sees it.
func (l *link) mayReturn(st *transcript.Step) bool {
	return l.relay != nil && !slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Closes || c.Verb == transcript.Resets
	})
}

// parted notes that the other end has gone: the actor connects anew if it acts again.
func (l *link) parted() {
	if l.relay != nil {
		l.relay.parted()
		return
	}
	l.close()
}

func (l *link) close() {
	switch {
	case l.closed:
		return
	case l.relay != nil:
		l.relay.stop()
	default:
		l.net.Close()
	}
	l.closed = true
}
