package fuzz

import (
	"net"
	"testing"
	"time"

	"jobwire/codec/gearman"
)

// TestSilentServer tests that the executor does not wait without end for a server that never replies.
func TestSilentServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	to, err := resolve(ln.Addr().String()) // connections are made, but not accepted
	if err != nil {
		t.Fatal(err)
	}
	x := newExecutor(gearman.Protocol, to, &Known{}, 500*time.Millisecond)
	defer x.closeCanary()
	c := FromScript(script(t, gearman.Protocol, work))
	done := make(chan *Fault, 1)
	go func() { done <- x.execute(c, "A00001.").Fault }()
	select {
	case v := <-done:
		if v == nil || v.Oracle != HangAll {
			t.Errorf("expected that no connection is answered, got %v", v)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still waits")
	}
}
