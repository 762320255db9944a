//go:build unix

package exec

import (
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	connect "jobwire/internal/transport"
)

// socket is a connection over TCP or a Unix socket that uses system calls directly, because inputs open thousands of
// connections per second.
type socket struct {
	fd      int
	f       *os.File      // file of the same descriptor, for waiting
	timeout time.Duration // timeout of writes
}

// endpoint identifies a server. It returns a new address value for each call, because system
// calls write to the value.
type endpoint func() (family int, addr syscall.Sockaddr)

// resolve returns the endpoint of an address: the path of a Unix socket, or host and port. It looks up the host once,
// so that no connection has to wait for the name service.
func resolve(addr string) (endpoint, error) {
	if path, ok := connect.Path(addr); ok {
		return func() (int, syscall.Sockaddr) { return syscall.AF_UNIX, &syscall.SockaddrUnix{Name: path} }, nil
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ips, err := net.LookupIP(host)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		return nil, err
	}
	return func() (int, syscall.Sockaddr) {
		if v4 := ips[0].To4(); v4 != nil {
			return syscall.AF_INET, &syscall.SockaddrInet4{Port: port, Addr: [4]byte(v4)}
		}
		return syscall.AF_INET6, &syscall.SockaddrInet6{Port: port, Addr: [16]byte(ips[0].To16())}
	}, nil
}

// dial opens a connection with system calls and makes it nonblocking. The timeout limits the connect and each later
// write.
func (to endpoint) dial(timeout time.Duration) (link, error) {
	syscall.ForkLock.RLock() // prevents a child process that is started now from inheriting the descriptor
	family, _ := to()
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	tv := syscall.NsecToTimeval(max(timeout, time.Microsecond).Nanoseconds())
	syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &tv) // the send timeout also limits connect
	for {
		_, addr := to()
		err = syscall.Connect(fd, addr)
		if err != syscall.EINTR {
			break
		}
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("connect", err)
	}
	return &socket{fd, os.NewFile(uintptr(fd), "connection"), timeout}, nil
}

// write tries to write all bytes without waiting. If the socket buffer is full, it waits for the rest until the
// timeout.
func (s *socket) write(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(s.fd, b)
		if n > 0 {
			b = b[n:]
		}
		switch err {
		case nil, syscall.EINTR:
		case syscall.EAGAIN:
			s.f.SetWriteDeadline(time.Now().Add(s.timeout))
			_, err := s.f.Write(b)
			return timeout(err)
		default:
			return err
		}
	}
	return nil
}

// writeUrgent implements link.
func (s *socket) writeUrgent(b []byte) error {
	return syscall.Sendmsg(s.fd, b, nil, nil, syscall.MSG_OOB)
}

// stopReading implements link.
func (s *socket) stopReading() {
	syscall.SetsockoptInt(s.fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
}

// read implements link.
func (s *socket) read(b []byte, within time.Duration) (int, error) {
	s.f.SetReadDeadline(time.Now().Add(within))
	n, err := s.f.Read(b)
	return n, timeout(err)
}

// peek returns bytes that have already arrived, errTimeout if there are none, and io.EOF at the end of the connection.
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

func (s *socket) halfClose() { syscall.Shutdown(s.fd, syscall.SHUT_WR) }

// close implements link. A linger time of 0 makes the system send a reset.
func (s *socket) close(reset bool) {
	if reset {
		syscall.SetsockoptLinger(s.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	}
	s.f.Close()
}
