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
	"jobwire/refserver/mutant"
)

// patched decodes a copy of b whose header patch has changed, or b itself while there is
// none.
func patched(s codec.Session, b []byte, f *frame, patch func(head []byte)) (int, error) {
	if len(b) >= 12 && b[0] == 0 {
		b = bytes.Clone(b)
		patch(b)
	}
	return s.Decode(codec.Peer, b, f)
}

// listener wraps the connections as the hook wants them.
func (b *bench) listener(ln net.Listener) net.Listener {
	if b.slow == 0 {
		return mutant.Listen(ln, b.wrap)
	}
	return mutant.Listen(ln, func(c net.Conn) net.Conn {
		c = mutant.Slowed(c, b.slow)
		if b.wrap != nil {
			c = b.wrap(c)
		}
		return c
	})
}

// packetSize is the length of the packet that b begins with, or 0 if that cannot be said.
func packetSize(b []byte) int {
	if len(b) < 12 || b[0] != 0 {
		return 0
	}
	return 12 + int(binary.BigEndian.Uint32(b[8:]))
}

// stream follows what arrives on a connection from message to message.
type stream struct {
	head []byte // the beginning of a message whose length is not known yet
	left int    // bytes of a packet that have yet to come
}

// whole takes what has arrived, and returns how much of it ends the messages that are whole by now.
// left is above 0 while a packet is under way.
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

// patient reads nothing before the last message that has begun is whole.
func patient(c net.Conn) net.Conn {
	var s stream
	var held bytes.Buffer
	ready := false
	chunk := make([]byte, 64<<10)
	return mutant.Reading(c, func(p []byte) (int, error) {
		for !ready {
			n, err := c.Read(chunk)
			if err != nil {
				return 0, err
			}
			held.Write(chunk[:n])
			ready = s.whole(chunk[:n]) == n || s.left > 64<<20
		}
		n, _ := held.Read(p)
		ready = held.Len() > 0
		return n, nil
	})
}

// gathered reads what is sent in one go as one segment, however it arrives.
func gathered(c net.Conn) net.Conn {
	return mutant.Reading(c, func(p []byte) (int, error) {
		n, err := c.Read(p)
		if err != nil || packetSize(p[:n]) == 0 || p[7] != 16 {
			return n, err
		}
		time.Sleep(settle)
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		more, _ := c.Read(p[n:])
		c.SetReadDeadline(time.Time{})
		return n + more, nil
	})
}

// quick makes the end of the peer's direction the end of the connection at once.
func quick(c net.Conn) net.Conn { return struct{ net.Conn }{c} }

// numb is a connection whose breaking off nobody notices before the server closes it.
type numb struct {
	net.Conn
	once sync.Once
	quit chan struct{}
}

func newNumb(c net.Conn) net.Conn { return &numb{Conn: c, quit: make(chan struct{})} }

func (n *numb) Read(p []byte) (int, error) {
	k, err := n.Conn.Read(p)
	if errors.Is(err, syscall.ECONNRESET) {
		<-n.quit
	}
	return k, err
}

func (n *numb) wake() { n.once.Do(func() { close(n.quit) }) }

func (n *numb) Close() error {
	n.wake()
	return n.Conn.Close()
}

// SetReadDeadline ends a Read, as the server does that wants no more.
func (n *numb) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		n.wake()
	}
	return n.Conn.SetReadDeadline(t)
}

func (n *numb) CloseWrite() error { return n.Conn.(interface{ CloseWrite() error }).CloseWrite() }
