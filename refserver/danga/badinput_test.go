package danga

import (
	"testing"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

// TestBadInputLosesNoJob sends every illegal message of the corpus, while one job waits and another is running.
// Each ends its connection without a reply, except to the packets before it. Afterwards both jobs must complete
// normally.
func TestBadInputLosesNoJob(t *testing.T) {
	src, err := corpus.FS.ReadFile("danga/reject.wire")
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := transcript.Parse(danga.Protocol, "reject.wire", src)
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		application, other, worker := dial(), dial(), dial()
		application.create("running", "", syncWait, "one")
		worker.connect("running", "waiting")
		worker.gets("running", "one")
		h := other.create("waiting", "", async, "two")

		sent := 0
	vectors:
		for _, v := range vectors {
			for _, st := range v.Steps {
				if st.From == codec.Server {
					continue vectors
				}
			}
			sent++
			bad := dial()
			for i, st := range v.Steps {
				bad.Raw(st.Choices[0].Bytes)
				if i < len(v.Steps)-1 {
					bad.Want("noop")
				}
			}
			bad.Ended()
		}
		if sent < 45 {
			t.Errorf("only %d vectors were sent", sent)
		}

		worker.finishes("\x00", "done")
		application.Want("job_complete_res", num(1), "\x00", "done")
		worker.gets("waiting", "two")
		worker.finishes("\x00", "done too")
		other.Send("job_complete_req", h)
		other.Want("job_complete_res", num(1), "\x00", "done too")
	})
}

// TestOffendersJobIsTriedAgain checks that the job of a worker that violates a rule is retried.
func TestOffendersJobIsTriedAgain(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		application, bad, worker := dial(), dial(), dial()
		application.create("f", "", syncWait, "x")
		bad.connect("f")
		bad.gets("f", "x")
		bad.Raw(bad.Encode("job_status_announce", num(1), num(2), num(3))[:20])
		bad.Leave() // inside a packet
		worker.connect("f")
		worker.gets("f", "x")
		worker.Send("job_status_res", num(1), num(2), num(3)) // in the wrong direction
		worker.Ended()
		third := dial()
		third.connect("f")
		third.gets("f", "x")
		third.finishes("\x00", "y")
		application.Want("job_complete_res", num(1), "\x00", "y")
	})
}
