package transport

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestCheck tests that Check accepts HOST:PORT, [IPV6]:PORT and unix:PATH, and that the error about another address
// names it and the expected form.
func TestCheck(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:4730":                         "",
		"queue.example.org:4730":                 "",
		":4730":                                  "",
		"[::1]:4730":                             "",
		"[fe80::1%eth0]:4730":                    "",
		"unix:/run/queue":                        "",
		"unix:queue":                             "",
		"unix:" + strings.Repeat("x", maxPath):   "",
		"":                                       "expected HOST:PORT, [IPV6]:PORT or unix:PATH",
		"127.0.0.1":                              "expected HOST:PORT",
		"127.0.0.1:":                             "expected HOST:PORT",
		"::1":                                    "[IPV6]:PORT",
		"[::1]":                                  "[IPV6]:PORT",
		"127.0.0.1:65535":                        "",
		"127.0.0.1:65536":                        "a port from 0 to 65535",
		":-1":                                    "a port from 0 to 65535",
		"unix:":                                  "a path of 1 to 107 bytes, got 0",
		"unix:" + strings.Repeat("x", maxPath+1): "a path of 1 to 107 bytes, got 108",
	} {
		err := Check(addr)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addr)) {
			t.Errorf("Check(%q): expected an error with %q, got %v", addr, want, err)
		}
	}
}

// authority writes a new certificate for 127.0.0.1 that signs itself, and its key. The certificate is also that of its authority.
func authority(t *testing.T) Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f := Files{Cert: write(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), Key: write(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))}
	f.CA = f.Cert
	return f
}

// write writes a file and returns its name.
func write(t *testing.T, text []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// echo listens on an address, and sends back what its connections receive.
func echo(t *testing.T, addr string, config *tls.Config) string {
	t.Helper()
	return serve(t, addr, config, func(c net.Conn) { io.Copy(c, c) })
}

// serve listens on an address and handles each connection.
func serve(t *testing.T, addr string, config *tls.Config, handle func(net.Conn)) string {
	t.Helper()
	ln, err := Listen(addr, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return Name(ln)
}

// socket returns the address of a Unix socket that does not exist. Its path must be short.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "jw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return Unix(filepath.Join(dir, "s"))
}

// client returns a TLS configuration of a client.
func client(t *testing.T, f Files) *tls.Config {
	t.Helper()
	config, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func server(t *testing.T, f Files) *tls.Config {
	t.Helper()
	config, err := f.Server()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// send connects, and checks that a message comes back.
func send(t *testing.T, d *Dialer, addr string) {
	t.Helper()
	c, err := d.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := make([]byte, 5)
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		t.Errorf("expected hello, got %q: %v", got, err)
	}
	if err := CloseWrite(c); err != nil {
		t.Error(err)
	}
	if n, err := c.Read(got); n != 0 || err == nil {
		t.Errorf("expected the end of the connection, got %d bytes: %v", n, err)
	}
}

// TestDial tests that data is sent and received over TCP, IPv6 and Unix sockets, with and without TLS and client
// certificates.
func TestDial(t *testing.T) {
	own := authority(t)
	onlyServer := Files{Cert: own.Cert, Key: own.Key}
	named := client(t, own)
	named.ServerName = "127.0.0.1"
	for name, tt := range map[string]struct {
		addr   string
		server *tls.Config
		client *tls.Config
	}{
		"tcp":         {addr: "127.0.0.1:0"},
		"ipv6":        {addr: "[::1]:0"},
		"unix":        {addr: socket(t)},
		"tls":         {"127.0.0.1:0", server(t, onlyServer), client(t, Files{CA: own.CA})},
		"mutual tls":  {"127.0.0.1:0", server(t, own), client(t, own)},
		"tls on unix": {socket(t), server(t, own), named},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "ipv6" {
				if ln, err := net.Listen("tcp", tt.addr); err != nil {
					t.Skip("no IPv6")
				} else {
					ln.Close()
				}
			}
			send(t, &Dialer{TLS: tt.client}, echo(t, tt.addr, tt.server))
		})
	}
}

// TestDialErrors tests that a failed connection is reported in one line that says what to check, such as the path, the
// certificate or the flag.
func TestDialErrors(t *testing.T) {
	own, other := authority(t), authority(t)
	onlyServer := Files{Cert: own.Cert, Key: own.Key}
	plain, secure, strict := echo(t, "127.0.0.1:0", nil), echo(t, "127.0.0.1:0", server(t, onlyServer)), echo(t, "127.0.0.1:0", server(t, own))
	text := serve(t, "127.0.0.1:0", nil, func(c net.Conn) { io.WriteString(c, "ERR unknown command\r\n") })
	overUnix := echo(t, socket(t), server(t, onlyServer))
	wrongName := client(t, Files{CA: own.CA})
	wrongName.ServerName = "example.org"
	closed, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, tt := range map[string]struct {
		addr   string
		dialer *Dialer
		want   string
	}{
		"no server":                {Name(closed), nil, "connection refused"},
		"no socket":                {socket(t), nil, "check the path, and whether the server runs"},
		"other authority":          {secure, &Dialer{TLS: client(t, Files{CA: other.CA})}, "--tls-ca"},
		"other name":               {secure, &Dialer{TLS: wrongName}, "not valid for example.org: name the host of the certificate with --tls-server-name"},
		"no name":                  {overUnix, &Dialer{TLS: client(t, Files{CA: own.CA})}, "add --tls-server-name"},
		"no client certificate":    {strict, &Dialer{TLS: client(t, Files{CA: own.CA})}, "check the client certificate (--tls-cert, --tls-key)"},
		"other client certificate": {strict, &Dialer{TLS: client(t, Files{CA: own.CA, Cert: other.Cert, Key: other.Key})}, "check the client certificate (--tls-cert, --tls-key)"},
		"server without TLS":       {text, &Dialer{TLS: client(t, Files{CA: own.CA})}, "the server replied without TLS"},
		"login":                    {plain, &Dialer{Login: func(net.Conn) error { return errors.New("wrong password") }}, "wrong password"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := tt.dialer.Dial(t.Context(), tt.addr)
			if err == nil {
				c.Close()
				t.Fatal("expected an error, got a connection")
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("expected one line with %q, got %v", tt.want, err)
			}
		})
	}
}

// TestLogin checks that the login comes first on a connection, and that canceling ends it.
func TestLogin(t *testing.T) {
	own := authority(t)
	addr := echo(t, "127.0.0.1:0", server(t, own))
	logins := 0
	d := &Dialer{TLS: client(t, own), Login: func(c net.Conn) error {
		logins++
		if _, err := io.WriteString(c, "login"); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 5))
		return err
	}}
	send(t, d, addr)
	send(t, d, addr)
	if logins != 2 {
		t.Errorf("expected a login for each of 2 connections, got %d", logins)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.Login = func(c net.Conn) error {
		cancel()
		_, err := c.Read(make([]byte, 1)) // the server sends nothing
		return err
	}
	if _, err := d.Dial(ctx, addr); !errors.Is(err, context.Canceled) {
		t.Errorf("expected %v, got %v", context.Canceled, err)
	}
}

// TestKeyLog tests that the keys of a TLS connection are written to the key log, so that other tools can decrypt a
// capture.
func TestKeyLog(t *testing.T) {
	own := authority(t)
	config := client(t, own)
	var keys bytes.Buffer
	config.KeyLogWriter = &keys
	send(t, &Dialer{TLS: config}, echo(t, "127.0.0.1:0", server(t, own)))
	if !strings.HasPrefix(keys.String(), "CLIENT_HANDSHAKE_TRAFFIC_SECRET ") {
		t.Errorf("expected the keys of a TLS 1.3 connection, got %q", keys.String())
	}
}

// TestListenAgain tests that Listen replaces the file of a Unix socket whose server has ended without removing it, and
// returns an error for a socket that is in use.
func TestListenAgain(t *testing.T) {
	addr := socket(t)
	ln, err := Listen(addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(addr, nil); err == nil {
		t.Error("expected an error for a socket that is in use")
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	send(t, nil, echo(t, addr, nil))
}

// TestFiles tests that an unusable certificate or key file, or a certificate without its key, is an error that names
// the file.
func TestFiles(t *testing.T) {
	own := authority(t)
	for _, tt := range []struct {
		files Files
		want  string
	}{
		{Files{CA: own.Key}, "expected certificates in PEM format"},
		{Files{CA: "absent"}, "absent"},
		{Files{Cert: own.Cert}, "name both"},
		{Files{Key: own.Key}, "name both"},
		{Files{Cert: own.Cert, Key: own.Cert}, own.Cert},
	} {
		for side, f := range map[string]func() (*tls.Config, error){"client": tt.files.Client, "server": tt.files.Server} {
			if _, err := f(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s of %+v: expected an error with %q, got %v", side, tt.files, tt.want, err)
			}
		}
	}
}

// TestReadCredentials tests that a file with credentials has a password, or a user name and a password, in lines with
// any line end, and that the error about another file does not show its content.
func TestReadCredentials(t *testing.T) {
	for text, want := range map[string]Credentials{
		"secret":            {"", "secret"},
		"secret\n":          {"", "secret"},
		"ann\nsecret\n":     {"ann", "secret"},
		"ann\r\nsecret\r\n": {"ann", "secret"},
		"ann\r\r\nsecret":   {"ann", "secret"},
		"":                  {},
		"ann\nsecret\nx\n":  {},
	} {
		got, err := ReadCredentials(write(t, []byte(text)))
		if got != want || (err == nil) != (want != Credentials{}) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: expected %s and %q, got %s and %q: %v", text, want, want.Password, got, got.Password, err)
		}
	}
}

// TestLeave checks that Leave returns after the server has closed the connection.
func TestLeave(t *testing.T) {
	var closed atomic.Bool
	addr := serve(t, "127.0.0.1:0", nil, func(c net.Conn) {
		io.Copy(io.Discard, c)
		closed.Store(true)
	})
	c, err := new(Dialer).Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if Leave(c); !closed.Load() {
		t.Error("Leave returned before the server had closed the connection")
	}
}

// TestMemory checks that addresses in memory are listened on and dialed like others.
func TestMemory(t *testing.T) {
	ln, err := Listen(Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := Name(ln)
	if err := Check(addr); err != nil || Local(addr) != Memory || Local("localhost:1") != "127.0.0.1:0" {
		t.Errorf("%s: %v; a listener beside it: %s", addr, err, Local(addr))
	}
	near, err := new(Dialer).Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if !Reset(near) {
		t.Error("a connection in memory has no resets")
	}
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: %v", err)
	}
	ln.Close()
	if c, err := new(Dialer).Dial(t.Context(), addr); c != nil || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed listener: %v, %v", c, err)
	}
}
