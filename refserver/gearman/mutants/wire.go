package mutants

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"jobwire/codec"
	"jobwire/refserver/inject"
)

// patch changes the headers of packets before they are decoded.
func patch(change func(head []byte)) inject.Edit {
	return inject.Decode(func(s codec.Session, b []byte, f *codec.Frame) (int, error) {
		if len(b) >= 12 && b[0] == 0 {
			b = bytes.Clone(b)
			change(b)
		}
		return s.Decode(codec.Peer, b, f)
	})
}

// packetSize returns the length of the packet that b begins with, or 0 if that is not known.
func packetSize(b []byte) int {
	if len(b) < 12 || b[0] != 0 {
		return 0
	}
	return 12 + int(binary.BigEndian.Uint32(b[8:]))
}

// stream finds the message boundaries in the data of a connection.
type stream struct {
	head []byte // the beginning of a message whose length is not known yet
	left int    // number of bytes of the current packet that have not arrived yet
}

// whole processes new data, and returns the offset in p at which the last complete message ends. Afterwards,
// left is above 0 if a packet is incomplete.
func (s *stream) whole(p []byte) (done int) {
	for at := 0; at < len(p); {
		if s.left > 0 {
			n := min(s.left, len(p)-at)
			s.left -= n
			at += n
			if s.left == 0 {
				done = at
			}
			continue
		}
		s.head = append(s.head, p[at])
		at++
		switch n := packetSize(s.head); {
		case n > 0:
			s.head, s.left = nil, n-12
			if s.left == 0 {
				done = at
			}
		case s.head[0] != 0 && p[at-1] == '\n':
			s.head, done = nil, at
		}
	}
	return done
}

// discardIncomplete discards the incomplete message at the end of a segment if lost returns true for it.
func discardIncomplete(lost func(s *stream, rest []byte) bool) inject.Edit {
	return inject.Wrap(func(c net.Conn) net.Conn {
		var s stream
		return inject.Filtered(c, func(p []byte) []byte {
			whole := s.whole(p)
			if !lost(&s, p[whole:]) {
				return p
			}
			s = stream{}
			return p[:whole]
		})
	})
}

// wholeMessages delays data until the last message is complete.
func wholeMessages(c net.Conn) net.Conn {
	var s stream
	var buffered bytes.Buffer
	ready := false
	chunk := make([]byte, 64<<10)
	return inject.Reading(c, func(p []byte) (int, error) {
		for !ready {
			n, err := c.Read(chunk)
			if err != nil {
				return 0, err
			}
			buffered.Write(chunk[:n])
			ready = s.whole(chunk[:n]) == n || s.left > 64<<20
		}
		n, _ := buffered.Read(p)
		ready = buffered.Len() > 0
		return n, nil
	})
}

// noHalfClose hides CloseWrite, so that the server closes a half-closed connection at once.
func noHalfClose(c net.Conn) net.Conn { return struct{ net.Conn }{c} }

// lateResetConn is a connection whose reset the server notices only when it closes the connection.
type lateResetConn struct {
	net.Conn
	once sync.Once
	quit chan struct{}
}

func newLateResetConn(c net.Conn) net.Conn { return &lateResetConn{Conn: c, quit: make(chan struct{})} }

func (n *lateResetConn) Read(p []byte) (int, error) {
	k, err := n.Conn.Read(p)
	if errors.Is(err, syscall.ECONNRESET) {
		<-n.quit
	}
	return k, err
}

func (n *lateResetConn) wake() { n.once.Do(func() { close(n.quit) }) }

func (n *lateResetConn) Close() error {
	n.wake()
	return n.Conn.Close()
}

// SetReadDeadline interrupts a Read, because the server sets a deadline to stop reading.
func (n *lateResetConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		n.wake()
	}
	return n.Conn.SetReadDeadline(t)
}

func (n *lateResetConn) CloseWrite() error {
	return n.Conn.(interface{ CloseWrite() error }).CloseWrite()
}
