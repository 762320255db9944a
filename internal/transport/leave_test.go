package transport

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// TestLeave checks that Leave returns after the server has closed the connection.
func TestLeave(t *testing.T) {
	ln, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var closed atomic.Bool
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		io.Copy(io.Discard, c)
		closed.Store(true)
		c.Close()
	}()
	c, err := net.Dial("tcp", Name(ln))
	if err != nil {
		t.Fatal(err)
	}
	if Leave(c); !closed.Load() {
		t.Error("Leave returned before the server had closed the connection")
	}
}
