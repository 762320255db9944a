// Package mutant has what servers that are wrong on purpose share, whatever their
// protocol: other ways to read a connection.
package mutant

import (
	"net"
	"time"
)

// Listen wraps every connection that ln accepts. A nil wrap changes nothing.
func Listen(ln net.Listener, wrap func(net.Conn) net.Conn) net.Listener {
	if wrap == nil {
		return ln
	}
	return &listener{ln, wrap}
}

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

// Reading is c, read in another way.
func Reading(c net.Conn, read func([]byte) (int, error)) net.Conn { return reader{c, read} }

type reader struct {
	net.Conn
	read func([]byte) (int, error)
}

func (r reader) Read(p []byte) (int, error) { return r.read(p) }

// CloseWrite ends the server's direction.
func (r reader) CloseWrite() error { return r.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Slowed lets data wait before it is read, but neither the end of the connection nor what there is
// much of.
func Slowed(c net.Conn, d time.Duration) net.Conn {
	return Reading(c, func(p []byte) (int, error) {
		n, err := c.Read(p)
		if err == nil && n < len(p) {
			time.Sleep(d)
		}
		return n, err
	})
}

// Filtered reads what keep leaves of every read. What it takes away is lost.
func Filtered(c net.Conn, keep func([]byte) []byte) net.Conn {
	return Reading(c, func(p []byte) (int, error) {
		for {
			n, err := c.Read(p)
			if kept := keep(p[:n]); len(kept) > 0 || err != nil {
				return len(kept), err
			}
		}
	})
}
