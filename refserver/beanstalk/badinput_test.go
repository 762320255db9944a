package beanstalk

import (
	"bytes"
	"cmp"
	"runtime"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/refserver"
)

// TestBadInputLosesNoJob sends every illegal message of the corpus, while there is a job in each state. The
// reply must be the error of the specification. The connection stays open, unless the end of the message is
// unknown. No part of a rejected message may be executed as a command, and afterwards the jobs must complete
// normally.
func TestBadInputLosesNoJob(t *testing.T) {
	src, err := corpus.FS.ReadFile("beanstalk/reject.wire")
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := transcript.Parse(beanstalk.Protocol, "reject.wire", src)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{
		string(beanstalk.RuleCommandKnown): "UNKNOWN_COMMAND",
		string(beanstalk.RulePutCRLF):      "EXPECTED_CRLF",
		string(beanstalk.RulePutSize):      "JOB_TOO_BIG",
	}
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		for _, body := range []string{"reserved", "buried"} {
			id := p.put(0, 0, 100, body)
			w.want("reserve", "RESERVED "+id+" "+body)
		}
		w.want("bury 2 0", "BURIED")
		p.put(0, 100, 100, "delayed")
		p.put(0, 0, 100, "ready")

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
			bad := dial()
			bad.Raw(st.Choices[0].Bytes)
			want := cmp.Or(answers[v.Value("rule")], "BAD_FORMAT")
			if fatal && v.Value("rule") == string(beanstalk.RuleLineLength) {
				bad.Ended() // a line without an end is not a command
				continue
			}
			if got, _ := bad.Next(); got != want {
				t.Errorf("%s: %s, want %s", v.Value("case"), got, want)
			}
			if fatal {
				bad.Ended()
				continue
			}
			if v.Value("rule") == string(beanstalk.RulePutSize) {
				bad.Leave() // the vector is a line without its body
				continue
			}
			bad.quiet()
			bad.Leave()
		}
		if sent < 40 {
			t.Errorf("only %d vectors were sent", sent)
		}

		if got := p.stats("stats", "total-jobs", "cmd-delete", "cmd-reserve", "cmd-kick"); got != "4 0 2 0" {
			t.Errorf("jobs, deletes, reserves, kicks: %s", got)
		}
		w.want("delete 1", "DELETED")
		w.want("reserve", "RESERVED 4 ready")
		w.want("kick 9", "KICKED 1")
		w.want("reserve", "RESERVED 2 buried")
		w.want("kick-job 3", "KICKED_JOB")
		w.want("reserve", "RESERVED 3 delayed")
		for _, id := range []string{"2", "3", "4"} {
			w.want("delete "+id, "DELETED")
		}
	})
}

// TestBodyBeyondItsSize checks a body that is longer than its size. The codec searches for its end byte by
// byte; the buffer must not grow by one byte at a time.
func TestBodyBeyondItsSize(t *testing.T) {
	p := dialTCP(t, serveTCP(t))
	p.quiet()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.Raw([]byte("put 0 0 60 65520\r\n"))
	p.Raw(bytes.Repeat([]byte("x"), 65520+2000))
	p.Raw([]byte("\r\n"))
	if reply, _ := p.Next(); reply != "EXPECTED_CRLF" {
		t.Errorf("the answer is %s", reply)
	}
	p.quiet()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("%d bytes were allocated for 67,520", took)
	}
}
