package gearman

import (
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/refserver"
)

// TestBadInputLosesNoJob sends all illegal messages of the corpus while one job is queued and another is running. The reply to a packet
// must be an ERROR and the reply to a line an ERR, and both must name the rule. If the end of the message is unknown, the server must
// close the connection; a line then gets no reply. Afterwards both jobs must complete normally.
func TestBadInputLosesNoJob(t *testing.T) {
	src, err := corpus.FS.ReadFile("gearman/reject.wire")
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := transcript.Parse(gearman.Protocol, "reject.wire", src)
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		client, worker := dial(), dial()
		running := client.submit("SUBMIT_JOB", "running", "", "one")
		worker.Send("CAN_DO", "running")
		worker.Send("CAN_DO", "queued")
		worker.Send("GRAB_JOB")
		worker.Want("JOB_ASSIGN", running, "running", "one")
		queued := client.submit("SUBMIT_JOB", "queued", "", "two")

		sent := 0
		for _, v := range vectors {
			st := v.Steps[len(v.Steps)-1]
			if st.From == codec.Server {
				continue
			}
			sent++
			fatal := false
			for _, m := range v.Meta {
				fatal = fatal || m.Key == "fatal"
			}
			bad, raw := dial(), st.Choices[0].Bytes
			bad.Raw(raw)
			reply := "ERR"
			if raw[0] == 0 {
				reply = "ERROR"
			}
			if raw[0] == 0 || !fatal {
				why := v.Value("rule")
				if why == string(gearman.RuleAdminCommand) {
					why = "Unknown+server+command" // common to all servers
				}
				if text := bad.Want(reply, "*", "*")[1]; !strings.Contains(text, why) {
					t.Errorf("%s: %s %q does not say %s", v.Value("case"), reply, text, why)
				}
			}
			if fatal {
				bad.Ended()
			} else {
				bad.quiet(t)
				bad.Leave()
			}
		}
		if sent < 50 {
			t.Errorf("only %d vectors were sent", sent)
		}

		worker.Send("WORK_COMPLETE", running, "done")
		client.Want("WORK_COMPLETE", running, "done")
		worker.Send("GRAB_JOB")
		worker.Want("JOB_ASSIGN", queued, "queued", "two")
		worker.Send("WORK_COMPLETE", queued, "done too")
		client.Want("WORK_COMPLETE", queued, "done too")
	})
}
