package fuzz

import (
	"net"
	"testing"
	"time"

	"jobwire/codec/gearman"
)

// A server that answers nobody is given up: the canary, whom others' silence is judged by, is not
// waited for without end.
func TestSilentServerIsGivenUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	to, err := resolve(ln.Addr().String()) // connections are made, and nobody accepts them
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
			t.Errorf("the fault is %v, want that nobody is answered", v)
		}
	case <-time.After(time.Minute):
		t.Fatal("it is waited for still")
	}
}
