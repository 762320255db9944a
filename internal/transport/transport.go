// Package transport connects to servers and listens for connections over TCP, TLS and Unix sockets. An address is
// HOST:PORT, [IPV6]:PORT or unix:PATH. In tests of programs in this process it may also be memory:NAME, an address of
// package memnet.
package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"jobwire/internal/memnet"
)

const (
	// loginTime is how long the TLS handshake and the login may take together.
	loginTime = 10 * time.Second
	// rejectionTime is how long the first connection waits for an alert after a handshake in which the server requested a
	// certificate. In TLS 1.3 the client ends the handshake before the server has checked the certificate.
	rejectionTime = 200 * time.Millisecond
	// maxPath is the longest path of a Unix socket, in bytes.
	maxPath = 107
)

const (
	unixPrefix   = "unix:"   // begins the address of a Unix socket
	memoryPrefix = "memory:" // begins the name of a listener in this process
)

// Memory is the address on which Listen listens in memory, under a name that it chooses.
const Memory = memoryPrefix

// Split returns the network and the address in it, which for tcp and unix are the arguments of net.Dial and
// net.Listen.
func Split(addr string) (network, address string) {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return "unix", path
	}
	if name, ok := strings.CutPrefix(addr, memoryPrefix); ok {
		return "memory", name
	}
	return "tcp", addr
}

// Local returns the address for a listener to which programs connect in the same way as to addr: in memory, or else on
// a free loopback port.
func Local(addr string) string {
	if network, _ := Split(addr); network == "memory" {
		return Memory
	}
	return "127.0.0.1:0"
}

// Path returns the path of a Unix socket, and whether addr is the address of one.
func Path(addr string) (path string, ok bool) { return strings.CutPrefix(addr, unixPrefix) }

// Unix returns the address of the Unix socket with the path.
func Unix(path string) string { return unixPrefix + path }

// Name returns the address of a listener.
func Name(ln net.Listener) string {
	switch a := ln.Addr(); a.Network() {
	case "unix":
		return Unix(a.String())
	case "memory":
		return memoryPrefix + a.String()
	}
	return ln.Addr().String()
}

// Check returns an error if addr is not an address.
func Check(addr string) error {
	if network, _ := Split(addr); network == "memory" {
		return nil
	}
	if path, ok := Path(addr); ok {
		if path == "" || len(path) > maxPath {
			return fmt.Errorf("invalid address %q: expected unix:PATH with a path of 1 to %d bytes, got %d", addr, maxPath,
				len(path))
		}
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return fmt.Errorf("invalid address %q: expected HOST:PORT, [IPV6]:PORT or unix:PATH", addr)
	}
	if n, err := strconv.Atoi(port); err == nil && (n < 0 || n > 65535) {
		return fmt.Errorf("invalid address %q: expected a port from 0 to 65535", addr)
	}
	return nil
}

// Dialer opens connections to a server. The zero value and nil open connections without TLS and without a login.
type Dialer struct {
	TLS   *tls.Config          // from [Files.Client]; nil: no TLS
	Login func(net.Conn) error // logs in before the first message; nil: no login

	accepted atomic.Bool // the server has accepted the client certificate of a connection, or the absence of one
}

// Plain reports whether connections are sockets without TLS and without a login.
func (d *Dialer) Plain() bool { return d == nil || d.TLS == nil && d.Login == nil }

// Dial connects to addr. The TLS handshake and the login may take 10 s together. The error says what to do, in one
// line.
func (d *Dialer) Dial(ctx context.Context, addr string) (net.Conn, error) {
	network, address := Split(addr)
	nc, err := dial(ctx, network, address)
	if err != nil {
		if network == "unix" && errors.Is(err, syscall.ENOENT) {
			err = fmt.Errorf("%w: check the path, and whether the server runs", err)
		}
		return nil, err
	}
	if d.Plain() {
		return nc, nil
	}
	c, err := d.secure(ctx, nc, network, address)
	if err != nil {
		nc.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return c, nil
}

// dial connects to an address on the network "tcp", "unix" or, inside this process, "memory".
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "memory" {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	c, err := memnet.Dial(ctx, address)
	if err != nil {
		return nil, err // not a nil *memnet.Conn
	}
	return c, nil
}

// listen listens on an address of the network "tcp", "unix" or, inside this process, "memory".
func listen(network, address string) (net.Listener, error) {
	if network != "memory" {
		return net.Listen(network, address)
	}
	ln, err := memnet.Listen(address)
	if err != nil {
		return nil, err
	}
	return ln, nil
}

// secure performs the TLS handshake and the login on a new connection.
func (d *Dialer) secure(ctx context.Context, nc net.Conn, network, address string) (net.Conn, error) {
	nc.SetDeadline(time.Now().Add(loginTime))
	aborted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		nc.SetDeadline(time.Unix(1, 0))
		close(aborted)
	})
	c, err := d.handshake(nc, network, address)
	if err == nil && d.Login != nil {
		err = d.Login(c)
	}
	if !stop() {
		<-aborted
		return nil, ctx.Err()
	}
	nc.SetDeadline(time.Time{})
	return c, err
}

// handshake performs the TLS handshake, if the dialer uses TLS. A server can reject the client certificate only after
// the handshake, so after the first handshake with a server that requests one, it waits rejectionTime for such an
// error.
func (d *Dialer) handshake(nc net.Conn, network, address string) (net.Conn, error) {
	if d.TLS == nil {
		return nc, nil
	}
	config := d.TLS.Clone()
	if config.ServerName == "" && network == "tcp" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	if config.ServerName == "" && !config.InsecureSkipVerify {
		return nil, errors.New("TLS over a Unix socket needs the name in the certificate of the server: add --tls-server-name")
	}
	requested := false
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		requested = true
		if len(d.TLS.Certificates) > 0 {
			return &d.TLS.Certificates[0], nil
		}
		return new(tls.Certificate), nil
	}
	c := tls.Client(nc, config)
	if err := c.Handshake(); err != nil {
		return nil, explain(err, config.ServerName)
	}
	if requested && !d.accepted.Load() {
		c.SetReadDeadline(time.Now().Add(rejectionTime))
		if n, err := c.Read(make([]byte, 1)); n > 0 {
			return nil, errors.New("the server sent data before the first request: expected a server of a job queue")
		} else if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, explain(err, config.ServerName)
		}
		c.SetReadDeadline(time.Now().Add(loginTime))
		d.accepted.Store(true)
	}
	return c, nil
}

// explain adds to the error of a TLS handshake what the user can do.
func explain(err error, name string) error {
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		remote  *net.OpError
	)
	switch {
	case errors.As(err, &unknown):
		return errors.New("TLS: the certificate of the server is signed by an authority that is not trusted: name the certificate of the authority with --tls-ca, or do not check it (--tls-insecure)")
	case errors.As(err, &host):
		return fmt.Errorf("TLS: the certificate of the server is not valid for %s: name the host of the certificate with --tls-server-name (%w)", name, host)
	case errors.As(err, &invalid):
		return fmt.Errorf("TLS: the certificate of the server is not valid: %w", invalid)
	case errors.As(err, &record):
		return errors.New("TLS: the server replied without TLS: check the port, or leave out --tls")
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf("TLS: the server rejected the connection (%w): check the client certificate (--tls-cert, --tls-key)", remote.Err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("TLS: the server did not finish the handshake within %v: check the port, and whether the server uses TLS", loginTime)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errors.New("TLS: the server closed the connection during the handshake: check whether it uses TLS, and whether it needs a client certificate (--tls-cert, --tls-key)")
	}
	return fmt.Errorf("TLS: %w", err)
}

// UsesTLS reports whether the other side of a new connection replies to a TLS handshake within the timeout, even with
// an alert. Nothing else can be sent on the connection after that.
func UsesTLS(c net.Conn, timeout time.Duration) bool {
	c.SetDeadline(time.Now().Add(timeout))
	err := tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake()
	var remote *net.OpError
	return err == nil || errors.As(err, &remote) && remote.Op == "remote error"
}

// Listen listens on addr. With a config, from [Files.Server], connections use TLS. Listen replaces the file of a Unix
// socket on which no program listens any more.
func Listen(addr string, config *tls.Config) (net.Listener, error) {
	if err := Check(addr); err != nil {
		return nil, err
	}
	network, address := Split(addr)
	ln, err := listen(network, address)
	if network == "unix" && errors.Is(err, syscall.EADDRINUSE) && abandoned(address) && os.Remove(address) == nil {
		ln, err = listen(network, address)
	}
	if err != nil || config == nil {
		return ln, err
	}
	return &listener{ln, config}, nil
}

// abandoned reports whether path is a Unix socket on which no program listens.
func abandoned(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// listener accepts TLS connections. It has SetDeadline, as the listeners of package net do.
type listener struct {
	net.Listener
	config *tls.Config
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(c, l.config), nil
}

func (l *listener) SetDeadline(t time.Time) error {
	return l.Listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(t)
}

// tcp returns the TCP connection that carries c, or nil if there is none.
func tcp(c net.Conn) *net.TCPConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	t, _ := c.(*net.TCPConn)
	return t
}

// Reset closes c with a reset. It reports whether the transport of c has resets; otherwise c is only closed.
func Reset(c net.Conn) bool {
	defer c.Close()
	if m, ok := c.(*memnet.Conn); ok {
		m.Reset()
		return true
	}
	t := tcp(c)
	if t == nil {
		return false
	}
	t.SetLinger(0)
	t.Close()
	return true
}

// SetReadBuffer limits the number of bytes that the other side may send before this side reads them, if the transport
// of c can.
func SetReadBuffer(c net.Conn, bytes int) {
	if t := tcp(c); t != nil {
		t.SetReadBuffer(bytes)
	} else if m, ok := c.(*memnet.Conn); ok {
		m.SetReadBuffer(bytes)
	}
}

// leaveTime is how long Leave waits for the server.
const leaveTime = time.Second

// Leave closes a connection on which nothing is expected any more, after the server has closed it too, or after 1 s.
// Until a server has read the end of a connection, it counts the connection in its statistics.
func Leave(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(leaveTime))
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		io.Copy(io.Discard, c)
	}
}

// CloseWrite ends the direction from this side. On a connection that cannot end one direction alone, it closes both.
func CloseWrite(c net.Conn) error {
	if hc, ok := c.(interface{ CloseWrite() error }); ok {
		return hc.CloseWrite()
	}
	return c.Close()
}
