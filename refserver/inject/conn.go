package inject

import (
	"net"
	"slices"
)

// Reading returns c with the method Read replaced by read. CloseWrite is passed on to c.
func Reading(c net.Conn, read func([]byte) (int, error)) net.Conn { return reader{c, read} }

type reader struct {
	net.Conn
	read func([]byte) (int, error)
}

func (r reader) Read(p []byte) (int, error) { return r.read(p) }

// CloseWrite closes the server's direction. It panics if the connection has no CloseWrite.
func (r reader) CloseWrite() error { return r.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Filtered returns c with everything that is read from it passed through filter.
func Filtered(c net.Conn, filter func([]byte) []byte) net.Conn {
	var left []byte // filtered bytes that are not read yet
	var err error
	return Reading(c, func(p []byte) (int, error) {
		for len(left) == 0 && err == nil {
			var n int
			n, err = c.Read(p)
			left = slices.Clone(filter(p[:n]))
		}
		if n := copy(p, left); n > 0 {
			left = left[n:]
			return n, nil
		}
		ended := err
		err = nil // a deadline may have passed
		return 0, ended
	})
}
