//go:build unix

package fuzz

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// socket is a connection with little between it and the system: conversations open thousands of
// them a second. Whoever waits is parked, so that many may do so for one processor.
type socket struct {
	fd       int
	f        *os.File      // the same, for waiting
	patience time.Duration // of writes
}

var errTimeout = errors.New("nothing came in time")

// endpoint is where a server listens.
type endpoint struct {
	family int
	port   int
	v4     [4]byte
	v6     [16]byte
}

// sockaddr is made anew for each call: it is written to.
func (e endpoint) sockaddr() syscall.Sockaddr {
	if e.family == syscall.AF_INET {
		return &syscall.SockaddrInet4{Port: e.port, Addr: e.v4}
	}
	return &syscall.SockaddrInet6{Port: e.port, Addr: e.v6}
}

func resolve(addr string) (endpoint, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return endpoint{}, err
	}
	ips, err := net.LookupIP(host)
	if err != nil {
		return endpoint{}, err
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		return endpoint{}, err
	}
	if v4 := ips[0].To4(); v4 != nil {
		return endpoint{family: syscall.AF_INET, port: port, v4: [4]byte(v4)}, nil
	}
	return endpoint{family: syscall.AF_INET6, port: port, v6: [16]byte(ips[0].To16())}, nil
}

// dial connects. It and writes fail after the patience, writes with errTimeout.
func dial(to endpoint, patience time.Duration) (socket, error) {
	syscall.ForkLock.RLock() // programs are started meanwhile, which must not inherit it
	fd, err := syscall.Socket(to.family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return socket{fd: -1}, os.NewSyscallError("socket", err)
	}
	syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	tv := syscall.NsecToTimeval(max(patience, time.Microsecond).Nanoseconds())
	syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &tv) // for connecting, too
	for {
		err = syscall.Connect(fd, to.sockaddr())
		if err != syscall.EINTR {
			break
		}
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		syscall.Close(fd)
		return socket{fd: -1}, os.NewSyscallError("connect", err)
	}
	return socket{fd, os.NewFile(uintptr(fd), "connection"), patience}, nil
}

func (s *socket) write(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(s.fd, b)
		if n > 0 {
			b = b[n:]
		}
		switch err {
		case nil, syscall.EINTR:
		case syscall.EAGAIN:
			s.f.SetWriteDeadline(time.Now().Add(s.patience))
			_, err := s.f.Write(b)
			return timeout(err)
		default:
			return err
		}
	}
	return nil
}

// read waits for something to come, so long, and reads it.
func (s *socket) read(b []byte, within time.Duration) (int, error) {
	s.f.SetReadDeadline(time.Now().Add(within))
	n, err := s.f.Read(b)
	return n, timeout(err)
}

// peek reads what has come already.
func (s *socket) peek(b []byte) (int, error) {
	for {
		n, _, err := syscall.Recvfrom(s.fd, b, syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, errTimeout
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func timeout(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errTimeout
	}
	return err
}

func (s *socket) halfClose() { syscall.Shutdown(s.fd, syscall.SHUT_WR) }

// close ends the connection: orderly, or by a reset, which leaves nothing behind.
func (s *socket) close(reset bool) {
	if reset {
		syscall.SetsockoptLinger(s.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	}
	s.f.Close()
}
