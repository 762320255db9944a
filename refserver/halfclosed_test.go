package refserver_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/refserver"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/internal/peertest"
)

// halfClosableConn is one end of two pipes. Like those of a TCP connection, its directions can be closed separately.
type halfClosableConn struct {
	net.Conn // to read from
	out      net.Conn
}

func newHalves() (near, far halfClosableConn) {
	a, b := net.Pipe()
	c, d := net.Pipe()
	return halfClosableConn{a, c}, halfClosableConn{d, b}
}

func (h halfClosableConn) Write(b []byte) (int, error)        { return h.out.Write(b) }
func (h halfClosableConn) SetWriteDeadline(t time.Time) error { return h.out.SetWriteDeadline(t) }
func (h halfClosableConn) CloseWrite() error                  { return h.out.Close() }
func (h halfClosableConn) Close() error                       { h.out.Close(); return h.Conn.Close() }

// halfClosable returns a server, and a function that connects to it with connections whose directions can be closed separately.
func halfClosable(t *testing.T, o refserver.Options) (srv *refserver.Server, dial func() *peertest.Peer) {
	o.Protocol = gearman.Protocol
	srv = refserver.New(machine.New(machine.Options{Host: "test"}), o)
	return srv, func() *peertest.Peer {
		near, far := newHalves()
		go srv.ServeConn(t.Context(), far)
		synctest.Wait()
		return peertest.New(t, gearman.Protocol, near)
	}
}

// halfClose submits a job of the function f and closes the client's direction.
func halfClose(c *peertest.Peer) (handle string) {
	c.Send("SUBMIT_JOB", "f", "", "x")
	handle = c.Want("JOB_CREATED", "*")[0]
	c.Conn.(halfClosableConn).CloseWrite()
	synctest.Wait()
	return handle
}

// TestHalfClosedWhileProgressComes checks that the server keeps a half-closed client while it gets messages about its job, and
// closes the connection between one and two times DefaultHalfClosed after the last one.
func TestHalfClosedWhileProgressComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dial := halfClosable(t, refserver.Options{})
		defer srv.Close()
		c, w := dial(), dial()
		h := halfClose(c)
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", h, "f", "x")
		for range 10 {
			time.Sleep(refserver.DefaultHalfClosed - time.Second)
			w.Send("WORK_STATUS", h, "1", "2")
			c.Want("WORK_STATUS", h, "1", "2")
		}
		last := time.Now()
		if err := c.Ended(); err != io.EOF {
			t.Errorf("the connection ends with %v", err)
		}
		if d := time.Since(last); d < refserver.DefaultHalfClosed || d > 2*refserver.DefaultHalfClosed {
			t.Errorf("given up %v after the last message", d)
		}
	})
}

// TestHalfClosedNumber checks that the server closes the first half-closed connections if there are more than MaxHalfClosed, and
// drops their jobs.
func TestHalfClosedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dial := halfClosable(t, refserver.Options{MaxHalfClosed: 3})
		defer srv.Close()
		var clients []*peertest.Peer
		var handles []string
		for range 5 {
			c := dial()
			clients, handles = append(clients, c), append(handles, halfClose(c))
		}
		w := dial()
		w.Send("CAN_DO", "f")
		for i, c := range clients {
			if i < 2 {
				c.Ended()
				continue
			}
			w.Send("GRAB_JOB")
			w.Want("JOB_ASSIGN", handles[i], "f", "x")
			w.Send("WORK_COMPLETE", handles[i], "y")
			c.Want("WORK_COMPLETE", handles[i], "y")
			c.Ended()
		}
	})
}

// TestHalfClosedMakeRoom checks that the server closes the first half-closed connection at once when file descriptors run out.
func TestHalfClosedMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &scripted{next: make(chan any), quit: make(chan struct{})}
		srv := refserver.New(machine.New(machine.Options{Host: "test"}), refserver.Options{Protocol: gearman.Protocol})
		served := make(chan error)
		go func() { served <- srv.Serve(t.Context(), l) }()
		dial := func() *peertest.Peer {
			near, far := newHalves()
			l.next <- net.Conn(far)
			return peertest.New(t, gearman.Protocol, near)
		}
		first, second, other := dial(), dial(), dial()
		start := time.Now()
		halfClose(first)
		h := halfClose(second)
		l.next <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		first.Ended()
		if d := time.Since(start); d >= refserver.DefaultHalfClosed {
			t.Errorf("room is made after %v", d)
		}
		other.Send("CAN_DO", "f")
		other.Send("GRAB_JOB")
		other.Want("JOB_ASSIGN", h, "f", "x")
		other.Send("WORK_COMPLETE", h, "y")
		second.Want("WORK_COMPLETE", h, "y")
		srv.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// scripted is a listener whose Accept returns the values that are sent to next: a net.Conn or an error.
type scripted struct {
	next chan any
	quit chan struct{}
}

func (l *scripted) Accept() (net.Conn, error) {
	select {
	case x := <-l.next:
		if nc, ok := x.(net.Conn); ok {
			return nc, nil
		}
		return nil, x.(error)
	case <-l.quit:
		return nil, net.ErrClosed
	}
}

func (l *scripted) Close() error {
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	return nil
}

func (l *scripted) Addr() net.Addr { return &net.TCPAddr{} }
