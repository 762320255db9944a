package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/pcap/internal/pcaptest"
	"jobwire/pcap/replay"
)

// wires contains the files of the transcripts.
type wires map[string]*bytes.Buffer

func (w wires) write(name string, text []byte) error {
	w[name] = bytes.NewBuffer(text)
	return nil
}

// transcripts returns the transcripts of a capture of a conversation, and the number of messages left out.
func transcripts(t *testing.T, p *codec.Protocol, script string) (wires, []replay.Transcript, int) {
	t.Helper()
	c := replay.New()
	pcaptest.Decode(t, pcaptest.Capture(t, p, script), c.Add)
	out := wires{}
	all, err := c.Write("talk.pcap", out.write)
	if err != nil {
		t.Fatal(err)
	}
	return out, all, c.Left()
}

// TestTranscriptsOfSets checks that connections that mention the same tube or job are in one transcript, others
// in separate transcripts.
func TestTranscriptsOfSets(t *testing.T) {
	out, all, _ := transcripts(t, beanstalk.Protocol, `
Producer -> Server: use mail
Server -> Producer: USING mail
Producer 2 -> Server: use news
Server -> Producer 2: USING news
Worker -> Server: watch mail
Server -> Worker: WATCHING 2
Client -> Server: list-tubes
Server -> Client: raw "OK 14\r\n---\n- default\n\r\n"
`)
	if len(all) != 3 || all[0].Connections != 2 || all[1].Connections != 1 {
		t.Fatalf("%+v", all)
	}
	for name, want := range map[string]string{"beanstalk-1.wire": "WATCHING 2", "beanstalk-2.wire": "USING news", "beanstalk-3.wire": "list-reply ..."} {
		if out[name] == nil || !strings.Contains(out[name].String(), want) {
			t.Errorf("%s lacks %q:\n%s", name, want, out[name])
		}
	}
}

// TestTranscriptsAreInTheServersOrder checks that requests are in the order in which the server
// received them, which may differ from the order in which they were sent. The numbers of the jobs
// show the order of the server.
func TestTranscriptsAreInTheServersOrder(t *testing.T) {
	out, _, _ := transcripts(t, beanstalk.Protocol, `
Producer -> Server: use mail
Server -> Producer: USING mail
Producer 2 -> Server: use mail
Server -> Producer 2: USING mail
Worker -> Server: use mail
Server -> Worker: USING mail
Worker -> Server: reserve
Producer -> Server: put 0 0 60 a
Producer 2 -> Server: put 0 0 60 b
Server -> Worker: RESERVED 1 b
Server -> Producer: INSERTED 2
Server -> Producer 2: INSERTED 1
`)
	inOrder(t, out["beanstalk-1.wire"].String(), "reserve\n", "put 0 0 60 b", "INSERTED $job1", "put 0 0 60 a", "INSERTED $job2", "RESERVED $job1 b")
}

// inOrder fails the test unless the text contains the parts one after another.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	at := 0
	for _, want := range parts {
		k := strings.Index(text[at:], want)
		if k < 0 {
			t.Fatalf("%q is not in its place:\n%s", want, text)
		}
		at += k + len(want)
	}
}

// TestTranscriptsOfPolls checks that the reply to a request that does not wait directly follows the request, so
// that a replay finds the same state.
func TestTranscriptsOfPolls(t *testing.T) {
	out, _, _ := transcripts(t, beanstalk.Protocol, `
Producer -> Server: use mail
Server -> Producer: USING mail
Worker -> Server: watch mail
Server -> Worker: WATCHING 2
Worker -> Server: raw "reserve-with-timeout 0\r\nreserve-with-timeout 0\r\n"
Producer -> Server: put 0 0 60 a
Server -> Worker: raw "TIMED_OUT\r\n"
Server -> Worker: raw "RESERVED 1 1\r\na\r\n"
Server -> Producer: INSERTED 1
`)
	inOrder(t, out["beanstalk-1.wire"].String(), "reserve-with-timeout 0\n", "TIMED_OUT", "put 0 0 60 a", "INSERTED $job1", "reserve-with-timeout 0\n", "RESERVED $job1 a")

	out, _, _ = transcripts(t, danga.Protocol, `
Application -> Job Server: job_create_req resize "" 0 1 a.png
Job Server -> Application: job_create_res J:1
Application -> Job Server: job_complete_req J:1
Application -> Job Server: job_status_req J:1
Job Server -> Application: job_complete_res 0 0 ""
Job Server -> Application: job_status_res 0 1 4294967295
`)
	inOrder(t, out["danga-1.wire"].String(), "job_complete_req $job1", "job_complete_res 0", "job_status_req $job1", "job_status_res 0")
}

// TestTranscriptsAreBounded tests that the transcript of a long connection is limited, and says that the capture has
// more messages.
func TestTranscriptsAreBounded(t *testing.T) {
	const pairs, batch = 40_000, 100
	line := fmt.Sprintf("Worker -> Server: raw %q\nServer -> Worker: raw %q\n", strings.Repeat("delete 1\r\n", batch), strings.Repeat("NOT_FOUND\r\n", batch))
	out, all, left := transcripts(t, beanstalk.Protocol, strings.Repeat(line, pairs/batch))
	if len(all) != 1 || !all[0].Incomplete || left < pairs/2 || all[0].Steps > pairs*3/2 {
		t.Fatalf("%+v, %d left out", all, left)
	}
	if !strings.HasSuffix(out[all[0].Name].String(), "The connections have more messages in the capture.\n") {
		t.Error("it is not said that there was more")
	}
}
