package line

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"jobwire/codec"
)

// Errors that tell failures apart.
var (
	ErrUsage    = errors.New("usage error")
	ErrTimedOut = errors.New("timed out")
	ErrProtocol = errors.New("invalid message from the server")
)

// readSize is how much is read at once, in bytes; leaveTime is how long a connection that is
// being closed waits for the server to have read all of it.
const (
	readSize  = 64 << 10
	leaveTime = time.Second
)

// Conn is one connection to a server. What is appended is sent in one piece by Flush, or by the
// next Next. It is not safe for concurrent use, except for Abort.
type Conn struct {
	In []byte // what has come and is not taken yet

	protocol *codec.Protocol
	habits   *Habits
	nc       net.Conn
	aborted  chan struct{}
	once     sync.Once
	stream   codec.Stream
	sent     codec.Stream  // in the session of stream, which reads replies by the requests that were sent
	loose    codec.Session // writes: what is wrong on purpose, too
	out      []byte
	message  codec.Message
	frame    codec.Frame
}

// Dial connects to the server at addr, which is host:port.
func Dial(ctx context.Context, addr string, p *codec.Protocol, h *Habits) (*Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	streams := codec.Streams(p.NewSession(codec.Options{}))
	return &Conn{protocol: p, habits: h, nc: nc, aborted: make(chan struct{}), stream: streams[codec.Server], sent: streams[codec.Peer],
		loose: p.NewSession(codec.Options{WaiveAll: true})}, nil
}

// Abort breaks off whatever waits. Close is still due.
func (c *Conn) Abort() {
	c.once.Do(func() { close(c.aborted) })
	c.nc.Close()
}

// Close ends the connection once the server has read what was sent to it.
func (c *Conn) Close() {
	if t, ok := c.nc.(*net.TCPConn); ok {
		// What is unread when a socket is closed makes the kernel take back what was sent.
		t.CloseWrite()
		t.SetReadDeadline(time.Now().Add(leaveTime))
		io.Copy(io.Discard, t)
	}
	c.nc.Close()
}

// Append puts a message behind those that are to be sent.
func (c *Conn) Append(row *codec.Type, args ...[]byte) error {
	b, err := c.loose.Append(c.out, codec.Peer, &codec.Message{Type: row, Args: args})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	c.out = b
	return nil
}

// Flush sends what was appended.
func (c *Conn) Flush() error {
	if len(c.out) == 0 {
		return nil
	}
	var f codec.Frame
	for range c.sent.Feed(c.out, &f) {
	}
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Fill takes in what the next read brings.
func (c *Conn) Fill() error {
	start := len(c.In)
	c.In = append(c.In, make([]byte, readSize)...)
	n, err := c.nc.Read(c.In[start:])
	c.In = c.In[:start+n]
	switch {
	case n > 0:
		return nil // the error comes again
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimedOut
	}
	return err
}

// Take takes the first message of In, or returns nil if it is not there as a whole. The message is valid until
// the next Fill.
func (c *Conn) Take() (*codec.Message, error) {
	c.stream.Resume() // In may be something else by now
	n, found, err := c.stream.Read(c.In, &c.frame)
	switch {
	case found == codec.Nothing:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	c.In = c.In[n:]
	c.frame.Message(&c.message)
	return &c.message, nil
}

// Next sends what was appended and returns the next message that comes.
func (c *Conn) Next() (*codec.Message, error) {
	if err := c.Flush(); err != nil {
		return nil, err
	}
	read := c.habits.Read
	if read == nil {
		read = Read
	}
	m, err := read(c)
	if err == nil && c.habits.Heard != nil {
		err = c.habits.Heard(m)
	}
	return m, err
}

// Read reads a message, whatever the pieces are in which it comes.
func Read(c *Conn) (*codec.Message, error) {
	for {
		if m, err := c.Take(); m != nil || err != nil {
			return m, err
		}
		if err := c.Fill(); err != nil {
			return nil, err
		}
	}
}

// Gone reports whether an error is that the other end has closed.
func Gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Endured is what becomes of an error. A stubborn program does not notice that the other end has
// gone.
func (c *Conn) Endured(err error) error {
	if c.habits.Stubborn && Gone(err) {
		<-c.aborted
	}
	return err
}

// Pause waits, unless the connection is aborted meanwhile.
func (c *Conn) Pause(d time.Duration) {
	select {
	case <-c.aborted:
	case <-time.After(d):
	}
}

// Within bounds how long may be waited from now on; 0 is for ever.
func (c *Conn) Within(d time.Duration) {
	if d == 0 {
		d = c.habits.Patience
	}
	if d == 0 {
		c.nc.SetReadDeadline(time.Time{})
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(d))
}
