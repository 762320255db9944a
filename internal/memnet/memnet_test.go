package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/internal/memnet"
)

// TestBackPressure checks that a writer waits while the buffer of the reader is full, and no longer than its deadline.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := memnet.Pipe()
		near.SetReadBuffer(1000)
		far.SetWriteDeadline(time.Now().Add(time.Second))
		began := time.Now()
		if n, err := far.Write(make([]byte, 1500)); n != 1000 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("a write to a full buffer returned %d, %v after %v", n, err, time.Since(began))
		}
		far.SetWriteDeadline(time.Time{})
		go far.Write(make([]byte, 500))
		synctest.Wait()
		for _, want := range []int{1000, 500} {
			if n, err := near.Read(make([]byte, 4096)); n != want || err != nil {
				t.Errorf("expected %d bytes of one write, got %d, %v", want, n, err)
			}
		}
	})
}

// TestWritesAreNotJoined checks that the division of bytes into writes stays visible.
func TestWritesAreNotJoined(t *testing.T) {
	near, far := memnet.Pipe()
	for _, s := range []string{"a", "bc", "def"} {
		near.Write([]byte(s))
	}
	b := make([]byte, 2)
	for _, want := range []string{"a", "bc", "de", "f"} {
		if n, err := far.Read(b); string(b[:n]) != want || err != nil {
			t.Errorf("expected %q, got %q, %v", want, b[:n], err)
		}
	}
}

// TestWaitingReads checks what ends a read that waits.
func TestWaitingReads(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(near, far *memnet.Conn)
		want error
	}{
		"deadline in the past": {func(near, _ *memnet.Conn) { near.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"later deadline":       {func(near, _ *memnet.Conn) { near.SetDeadline(time.Now().Add(time.Hour)) }, os.ErrDeadlineExceeded},
		"own close":            {func(near, _ *memnet.Conn) { near.Close() }, net.ErrClosed},
		"close":                {func(_, far *memnet.Conn) { far.Close() }, io.EOF},
		"half-close":           {func(_, far *memnet.Conn) { far.CloseWrite() }, io.EOF},
		"reset":                {func(_, far *memnet.Conn) { far.Reset() }, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := memnet.Pipe()
				result := make(chan error)
				go func() {
					_, err := near.Read(make([]byte, 1))
					result <- err
				}()
				synctest.Wait()
				tt.do(near, far)
				if err := <-result; !errors.Is(err, tt.want) {
					t.Errorf("expected %v, got %v", tt.want, err)
				}
			})
		})
	}
}

// TestListener checks that names are used once, and what happens to connections that a listener does not accept.
func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, err := memnet.Listen("a server")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := memnet.Listen("a server"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener with the name: %v", err)
		}
		if _, err := memnet.Dial(t.Context(), "a server"); err != nil {
			t.Fatal(err)
		}
		ln.SetDeadline(time.Now().Add(time.Minute))
		if far, err := ln.Accept(); err != nil || far.LocalAddr().String() != "a server" {
			t.Errorf("accepted %v, %v", far, err)
		}
		if _, err := ln.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		c, err := memnet.Dial(t.Context(), "a server")
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection that was never accepted: %v", err)
		}
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener: %v", err)
		}
		if _, err := memnet.Dial(t.Context(), "a server"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a connection to a closed listener: %v", err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := memnet.Dial(canceled, "a server"); !errors.Is(err, context.Canceled) {
			t.Errorf("with a canceled context: %v", err)
		}
	})
}
