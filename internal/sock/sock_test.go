//go:build unix

package sock_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"jobwire/internal/sock"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if near, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// TestReadsAndWrites tests that bytes written to one socket are read from the other, and that the end of a connection
// and a closed socket are reported.
func TestReadsAndWrites(t *testing.T) {
	near, far := pair(t)
	a, b := sock.New(near), sock.New(far)
	if n, err := a.TryWrite([]byte("hello")); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	buf := make([]byte, 16)
	if n, err := b.Read(buf); string(buf[:n]) != "hello" || err != nil {
		t.Fatal(n, err)
	}
	if n, err := b.Read(nil); n != 0 || err != nil {
		t.Error("an empty read:", n, err)
	}
	near.Close()
	if n, err := b.Read(buf); n != 0 || err != io.EOF {
		t.Error("after the end:", n, err)
	}
	if _, err := a.TryWrite([]byte("x")); err == nil {
		t.Error("a closed socket takes bytes")
	}
}

// TestWritesWhatFits tests that TryWrite writes as much as the buffers of the system have room for, returns 0 when they
// are full, and does not wait.
func TestWritesWhatFits(t *testing.T) {
	near, far := pair(t)
	a, b := sock.New(near), sock.New(far)
	sent := 0
	for {
		n, err := a.TryWrite(bytes.Repeat([]byte("x"), 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		if n == 0 {
			break // the buffers are full, and TryWrite did not wait
		}
	}
	buf := make([]byte, 1<<20)
	for got := 0; got < sent; {
		n, err := b.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
}

// TestReadKeepsDeadlines tests that Read returns an error when the read deadline of the connection has passed.
func TestReadKeepsDeadlines(t *testing.T) {
	near, _ := pair(t)
	near.SetReadDeadline(time.Unix(1, 0))
	if _, err := sock.New(near).Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// TestNoSocket tests that New returns nil for a connection without a socket.
func TestNoSocket(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if sock.New(near) != nil {
		t.Error("a pipe in memory has a socket")
	}
}
