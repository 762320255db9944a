//go:build unix

// Package sock reads from and writes to sockets at lower cost than net.Conn.
package sock

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// Socket is the socket of a connection. One goroutine may read while another one writes.
type Socket struct {
	raw     syscall.RawConn
	in, out attempt
}

// attempt contains the arguments and results of one system call. Its closure try is created only once, so that calls
// allocate no memory.
type attempt struct {
	b   []byte
	n   int
	err error
	try func(fd uintptr) bool
}

// New returns the socket of a connection, or nil if it has none.
func New(nc net.Conn) *Socket {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &Socket{raw: raw}
	s.in.try = func(fd uintptr) bool {
		a := &s.in
		a.n, a.err = try(syscall.SYS_READ, fd, a.b)
		if a.err == nil && a.n == 0 {
			a.err = io.EOF
		}
		return a.err != syscall.EAGAIN
	}
	s.out.try = func(fd uintptr) bool {
		a := &s.out
		if a.n, a.err = try(syscall.SYS_WRITE, fd, a.b); a.err == syscall.EAGAIN {
			a.err = nil
		}
		return true
	}
	return s
}

// Read waits until data has arrived and reads it, like Read of net.Conn. If b is empty, it returns immediately.
func (s *Socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	a := &s.in
	a.b, a.n, a.err = b, 0, nil
	err := s.raw.Read(a.try)
	a.b = nil
	if err != nil {
		return 0, err
	}
	return a.n, a.err
}

// TryWrite writes as many bytes as the socket accepts without waiting, possibly none.
func (s *Socket) TryWrite(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	a := &s.out
	a.b, a.n, a.err = b, 0, nil
	err := s.raw.Write(a.try)
	a.b = nil
	if err != nil {
		return 0, err
	}
	return a.n, a.err
}

// FD returns the socket's file descriptor.
func (s *Socket) FD() (n uint64) {
	s.raw.Control(func(fd uintptr) { n = uint64(fd) })
	return n
}

// WriteUrgent writes b as urgent TCP data. Only the last byte is urgent, and the program at the other end receives it
// only if it asks for it. On a connection without a socket, WriteUrgent returns errors.ErrUnsupported.
func WriteUrgent(nc net.Conn, b []byte) error {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = syscall.Sendmsg(int(fd), b, nil, nil, syscall.MSG_OOB)
		return sent != syscall.EAGAIN
	})
	return errors.Join(err, sent)
}
