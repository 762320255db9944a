package pcap_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/pcap"
)

// wires contains the files of the transcripts.
type wires map[string]*bytes.Buffer

type wire struct{ *bytes.Buffer }

func (wire) Close() error { return nil }

func (w wires) create(name string) (io.WriteCloser, error) {
	w[name] = &bytes.Buffer{}
	return wire{w[name]}, nil
}

// transcripts decodes commands and replies, each given as a connection, a side and bytes.
func transcripts(t *testing.T, said func(say func(conn int, from codec.Side, text string))) (wires, []pcap.Written, int) {
	t.Helper()
	var file bytes.Buffer
	w, err := pcap.NewWriter(&file, beanstalk.Protocol.DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	said(func(conn int, from codec.Side, text string) {
		if err := w.Write(pcap.Event{Conn: conn, From: from, Kind: pcap.Data, Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := pcap.NewFile("talk.pcap", &file)
	if err != nil {
		t.Fatal(err)
	}
	tr := pcap.NewTranscripts()
	if err := pcap.NewDecoder(pcap.Options{}, tr.Add).Decode(f); err != nil {
		t.Fatal(err)
	}
	out := wires{}
	all, left, _, err := tr.Write("talk.pcap", out.create)
	if err != nil {
		t.Fatal(err)
	}
	return out, all, left
}

// TestTranscriptsOfSets checks that connections that mention the same tube or job are in one transcript, others
// in separate transcripts.
func TestTranscriptsOfSets(t *testing.T) {
	out, all, _ := transcripts(t, func(say func(int, codec.Side, string)) {
		say(0, codec.Peer, "use mail\r\n")
		say(0, codec.Server, "USING mail\r\n")
		say(1, codec.Peer, "use news\r\n")
		say(1, codec.Server, "USING news\r\n")
		say(2, codec.Peer, "watch mail\r\n")
		say(2, codec.Server, "WATCHING 2\r\n")
		say(3, codec.Peer, "list-tubes\r\n")
		say(3, codec.Server, "OK 14\r\n---\n- default\n\r\n")
	})
	if len(all) != 3 || all[0].Connections != 2 || all[1].Connections != 1 {
		t.Fatalf("%+v", all)
	}
	for name, want := range map[string]string{"beanstalk-1.wire": "WATCHING 2", "beanstalk-2.wire": "USING news", "beanstalk-3.wire": "list-reply ..."} {
		if out[name] == nil || !strings.Contains(out[name].String(), want) {
			t.Errorf("%s lacks %q:\n%s", name, want, out[name])
		}
	}
}

// TestTranscriptsAreInTheServersOrder checks that requests are in the order in which the server received them,
// not in that of sending: jobs have numbers.
func TestTranscriptsAreInTheServersOrder(t *testing.T) {
	out, _, _ := transcripts(t, func(say func(int, codec.Side, string)) {
		for conn := range 3 {
			say(conn, codec.Peer, "use mail\r\n")
			say(conn, codec.Server, "USING mail\r\n")
		}
		say(2, codec.Peer, "reserve\r\n")
		say(0, codec.Peer, "put 0 0 60 1\r\na\r\n")
		say(1, codec.Peer, "put 0 0 60 1\r\nb\r\n")
		say(2, codec.Server, "RESERVED 1 1\r\nb\r\n")
		say(0, codec.Server, "INSERTED 2\r\n")
		say(1, codec.Server, "INSERTED 1\r\n")
	})
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

// TestTranscriptsOfPolls checks that a request that does not wait is followed by its reply, so that a replay
// finds the same state.
func TestTranscriptsOfPolls(t *testing.T) {
	out, _, _ := transcripts(t, func(say func(int, codec.Side, string)) {
		say(0, codec.Peer, "use mail\r\n")
		say(0, codec.Server, "USING mail\r\n")
		say(1, codec.Peer, "watch mail\r\n")
		say(1, codec.Server, "WATCHING 2\r\n")
		say(1, codec.Peer, "reserve-with-timeout 0\r\nreserve-with-timeout 0\r\n")
		say(0, codec.Peer, "put 0 0 60 1\r\na\r\n")
		say(1, codec.Server, "TIMED_OUT\r\n")
		say(1, codec.Server, "RESERVED 1 1\r\na\r\n")
		say(0, codec.Server, "INSERTED 1\r\n")
	})
	inOrder(t, out["beanstalk-1.wire"].String(), "reserve-with-timeout 0\n", "TIMED_OUT", "put 0 0 60 a", "INSERTED $job1", "reserve-with-timeout 0\n", "RESERVED $job1 a")

	tr := pcap.NewTranscripts()
	decode(t, captured(t, danga.Protocol, `
Application -> Job Server: job_create_req resize "" 0 1 a.png
Job Server -> Application: job_create_res J:1
Application -> Job Server: job_complete_req J:1
Application -> Job Server: job_status_req J:1
Job Server -> Application: job_complete_res 0 0 ""
Job Server -> Application: job_status_res 0 1 4294967295
`), pcap.Options{}, tr.Add)
	out = wires{}
	if _, _, _, err := tr.Write("talk.pcap", out.create); err != nil {
		t.Fatal(err)
	}
	inOrder(t, out["danga-1.wire"].String(), "job_complete_req $job1", "job_complete_res 0", "job_status_req $job1", "job_status_res 0")
}

func TestTranscriptsAreBounded(t *testing.T) {
	const pairs = 40_000
	out, all, left := transcripts(t, func(say func(int, codec.Side, string)) {
		for i := range pairs {
			say(0, codec.Peer, fmt.Sprintf("delete %d\r\n", i))
			say(0, codec.Server, "NOT_FOUND\r\n")
		}
	})
	if len(all) != 1 || !all[0].Incomplete || left < pairs/2 || all[0].Steps > pairs*3/2 {
		t.Fatalf("%+v, %d left out", all, left)
	}
	if !strings.HasSuffix(out[all[0].Name].String(), "The connections have more messages in the capture.\n") {
		t.Error("it is not said that there was more")
	}
}
