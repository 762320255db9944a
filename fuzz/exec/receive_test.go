package exec

import (
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/internal/target"
	connect "jobwire/internal/transport"
)

// TestSilentServer tests that the executor does not wait forever for a server that never replies.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, err := connect.Listen(connect.Memory, nil) // accepts no connection
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		srv, err := target.Address(connect.Name(ln))
		if err != nil {
			t.Fatal(err)
		}
		x := executorOn(streams{srv}, NewBarrier(gearman.Protocol, gearman.Protocol.Barriers[0]), &input.Known{}, 500*time.Millisecond)
		defer x.CloseCanary()
		begin := time.Now()
		v := x.Execute(fuzztest.Input(t, gearman.Protocol, fuzztest.Work), "A00001.").Fault
		if took := time.Since(begin); v == nil || v.Oracle != HangAll || took > 5*time.Second {
			t.Errorf("expected that no connection is answered, got %v after %v", v, took)
		}
	})
}

// TestMessagesThatCannotBeCompleted tests undecidable: whether more bytes can make the beginning of a packet legal.
func TestMessagesThatCannotBeCompleted(t *testing.T) {
	x := executorOn(nil, NewBarrier(gearman.Protocol, gearman.Protocol.Barriers[0]), &input.Known{}, time.Second)
	for packet, want := range map[string]bool{
		"":                        false,
		"\x00REQ":                 false,
		"\x00REQ\x00\x00\x00\x01": false, // CAN_DO
		"\x00REQ\x00\x00\x00\x07\x00\x00\x00\x10fn": false, // SUBMIT_JOB
		"\x00REQ\x00\x00\x00\x07":                   false, // SUBMIT_JOB
		"\x00REQ\x00\x00\x00\x18\x00\x00\x00\x10":   true,  // ALL_YOURS, which has no data
		"\x00REQ\x00\x40\x00\x01":                   false, // an unknown type; the length is missing
		"\x00REQ\x00\x00\x00\x07\x02\x00RE":         true,  // more data than a server must accept
		"\x00REQ\x00\x80\x00\x00\x00\xff\x00R":      true,  // much data
		"\x00REQ\x00\x00\x00\x08\x00\x00\x00\x05":   true,  // JOB_CREATED, which only servers send
	} {
		if got := x.undecidable([]byte(packet)); got != want {
			t.Errorf("%q: expected %v, got %v", packet, want, got)
		}
	}
}
