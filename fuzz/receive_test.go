package fuzz

import (
	"net"
	"testing"
	"time"

	"jobwire/codec/gearman"
)

// TestSilentServer tests that the executor does not wait forever for a server that never replies.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	to, err := resolve(ln.Addr().String()) // the kernel accepts connections, but the server does not
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

// TestMessagesThatCannotBeCompleted tests undecidable: whether more bytes can make the beginning of a packet legal.
func TestMessagesThatCannotBeCompleted(t *testing.T) {
	x := newExecutor(gearman.Protocol, nil, &Known{}, time.Second)
	for packet, want := range map[string]bool{
		"":                        false,
		"\x00REQ":                 false,
		"\x00REQ\x00\x00\x00\x01": false, // CAN_DO
		"\x00REQ\x00\x00\x00\x07\x00\x00\x00\x10fn": false, // SUBMIT_JOB
		"\x00REQ\x00\x00\x00\x07":                   false, // SUBMIT_JOB
		"\x00REQ\x00\x00\x00\x18\x00\x00\x00\x10":   true,  // ALL_YOURS, which has no data
		"\x00REQ\x00\x40\x00\x01":                   false, // an unknown type; the length is missing
		"\x00REQ\x00\x80\x00\x00\x00\xff\x00R":      true,  // much data
		"\x00REQ\x00\x00\x00\x08\x00\x00\x00\x05":   true,  // JOB_CREATED, which only servers send
	} {
		if got := x.undecidable([]byte(packet)); got != want {
			t.Errorf("%q: expected %v, got %v", packet, want, got)
		}
	}
}
