package inject

import "net"

// listener wraps each connection that it accepts.
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

// Reading returns c with the method Read replaced by read. CloseWrite is passed on to c.
func Reading(c net.Conn, read func([]byte) (int, error)) net.Conn { return reader{c, read} }

type reader struct {
	net.Conn
	read func([]byte) (int, error)
}

func (r reader) Read(p []byte) (int, error) { return r.read(p) }

// CloseWrite closes the server's direction. It panics if the connection has no CloseWrite.
func (r reader) CloseWrite() error { return r.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Filtered returns c with everything that is read from it passed through filter. filter must not return more bytes than it gets.
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
