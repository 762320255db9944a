package exec

import (
	"context"
	"errors"
	"net"
	"time"

	"jobwire/internal/memnet"
	"jobwire/internal/target"
	connect "jobwire/internal/transport"
)

// transportOf returns the transport to a target.
func transportOf(t target.Target) (transport, error) {
	if network, _ := connect.Split(t.Addr()); network != "memory" && target.Dialer(t).Plain() {
		return resolve(t.Addr())
	}
	return streams{t}, nil
}

// streams opens connections with TLS or a login, or in memory.
type streams struct{ t target.Target }

// dial opens a connection through the target, which adds TLS or the login, and starts the goroutine that reads. A
// connection in memory needs no goroutine.
func (s streams) dial(timeout time.Duration) (link, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	nc, err := target.Dial(ctx, s.t)
	if err != nil {
		return nil, err
	}
	link := opened{nc, timeout}
	if _, ok := nc.(*memnet.Conn); ok {
		return memory{link}, nil
	}
	c := &stream{opened: link, in: make(chan []byte), done: make(chan struct{})}
	go c.receive()
	return c, nil
}

// opened is an open connection.
type opened struct {
	nc      net.Conn
	timeout time.Duration // timeout of writes
}

// write implements link.
func (o opened) write(b []byte) error {
	o.nc.SetWriteDeadline(time.Now().Add(o.timeout))
	_, err := o.nc.Write(b)
	return timeout(err)
}

func (o opened) writeUrgent([]byte) error { return errors.ErrUnsupported }

func (o opened) stopReading() {}

func (o opened) halfClose() { connect.CloseWrite(o.nc) }

// close implements link.
func (o opened) close(reset bool) {
	if reset {
		connect.Reset(o.nc)
	}
	o.nc.Close()
}

// memory is a connection in memory.
type memory struct{ opened }

func (m memory) read(b []byte, within time.Duration) (int, error) {
	m.nc.SetReadDeadline(time.Now().Add(within))
	n, err := m.nc.Read(b)
	return n, timeout(err)
}

// peek waits for a moment. In virtual time, this moment ends when the server has sent everything that it sends now.
func (m memory) peek(b []byte) (int, error) { return m.read(b, time.Microsecond) }

// stream is a connection with TLS or a login. A goroutine reads, because such a connection does not show
// whether bytes have arrived.
type stream struct {
	opened
	in   chan []byte   // received bytes; closed at the end of the connection
	rest []byte        // received bytes that read did not return yet
	err  error         // why the connection ended; valid when in is closed
	done chan struct{} // closed by close
}

// streamPiece is the maximum number of bytes per read.
const streamPiece = 32 << 10

// receive passes the received bytes on to read and peek until the connection ends or close is called.
func (s *stream) receive() {
	defer close(s.in)
	for {
		b := make([]byte, streamPiece)
		n, err := s.nc.Read(b)
		if n > 0 {
			select {
			case s.in <- b[:n]:
			case <-s.done:
				return
			}
		}
		if err != nil {
			s.err = err
			return
		}
	}
}

// read returns bytes that have arrived, or waits for bytes until the time is over.
func (s *stream) read(b []byte, within time.Duration) (int, error) {
	if n, err := s.peek(b); err != errTimeout {
		return n, err
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case piece, ok := <-s.in:
		return s.take(b, piece, ok)
	case <-late.C:
		return 0, errTimeout
	}
}

// peek returns the rest of the previous piece, or the next piece that receive has read, without waiting. It returns
// errTimeout if there is none.
func (s *stream) peek(b []byte) (int, error) {
	if len(s.rest) > 0 {
		return s.take(b, s.rest, true)
	}
	select {
	case piece, ok := <-s.in:
		return s.take(b, piece, ok)
	default:
		return 0, errTimeout
	}
}

// take copies received bytes to b and keeps those that do not fit.
func (s *stream) take(b, piece []byte, ok bool) (int, error) {
	if !ok {
		return 0, s.err
	}
	n := copy(b, piece)
	s.rest = piece[n:]
	return n, nil
}

func (s *stream) close(reset bool) {
	close(s.done)
	s.opened.close(reset)
}
