package inject

import (
	"net"
	"time"
)

// listener changes every connection that it accepts.
type listener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(c), nil
}

// Reading returns c with another Read method.
func Reading(c net.Conn, read func([]byte) (int, error)) net.Conn { return reader{c, read} }

type reader struct {
	net.Conn
	read func([]byte) (int, error)
}

func (r reader) Read(p []byte) (int, error) { return r.read(p) }

// CloseWrite closes the server's direction.
func (r reader) CloseWrite() error { return r.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// slowed delays data, but neither the end of the connection nor reads that fill the buffer.
func slowed(c net.Conn, d time.Duration) net.Conn {
	return Reading(c, func(p []byte) (int, error) {
		n, err := c.Read(p)
		if err == nil && n < len(p) {
			time.Sleep(d)
		}
		return n, err
	})
}

// Filtered returns c with reads that are changed by filter. What filter removes is lost.
func Filtered(c net.Conn, filter func([]byte) []byte) net.Conn {
	return Reading(c, func(p []byte) (int, error) {
		for {
			n, err := c.Read(p)
			if left := filter(p[:n]); len(left) > 0 || err != nil {
				return copy(p, left), err
			}
		}
	})
}
