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

// socket is a connection by system calls alone: conversations open thousands of them a
// second, and each is used by one goroutine that has nothing else to do.
type socket struct{ fd int }

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

// dial connects. Writes fail with errTimeout after the patience, and reads after theirs.
func dial(to endpoint, patience, read time.Duration) (socket, error) {
	syscall.ForkLock.RLock() // programs are started meanwhile, which must not inherit it
	fd, err := syscall.Socket(to.family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return socket{-1}, os.NewSyscallError("socket", err)
	}
	s := socket{fd}
	syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	s.within(syscall.SO_SNDTIMEO, patience)
	s.readWithin(read)
	for {
		err = syscall.Connect(fd, to.sockaddr())
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		syscall.Close(fd)
		return socket{-1}, os.NewSyscallError("connect", err)
	}
	return s, nil
}

func (s socket) readWithin(d time.Duration) { s.within(syscall.SO_RCVTIMEO, d) }

func (s socket) within(option int, d time.Duration) {
	tv := syscall.NsecToTimeval(max(d, time.Microsecond).Nanoseconds())
	syscall.SetsockoptTimeval(s.fd, syscall.SOL_SOCKET, option, &tv)
}

func (s socket) write(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(s.fd, b)
		if n > 0 {
			b = b[n:]
		}
		switch err {
		case nil, syscall.EINTR:
		case syscall.EAGAIN:
			return errTimeout
		default:
			return err
		}
	}
	return nil
}

// read reads what has come, or waits until something does, unless it is not to wait.
func (s socket) read(b []byte, wait bool) (int, error) {
	flags := 0
	if !wait {
		flags = syscall.MSG_DONTWAIT
	}
	for {
		n, _, err := syscall.Recvfrom(s.fd, b, flags)
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

func (s socket) halfClose() { syscall.Shutdown(s.fd, syscall.SHUT_WR) }

// close ends the connection: orderly, or by a reset, which leaves nothing behind.
func (s socket) close(reset bool) {
	if reset {
		syscall.SetsockoptLinger(s.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	}
	syscall.Close(s.fd)
}
