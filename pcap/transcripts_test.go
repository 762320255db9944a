package pcap_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/pcap"
)

// wires keeps the files that transcripts are written to.
type wires map[string]*bytes.Buffer

type wire struct{ *bytes.Buffer }

func (wire) Close() error { return nil }

func (w wires) create(name string) (io.WriteCloser, error) {
	w[name] = &bytes.Buffer{}
	return wire{w[name]}, nil
}

// transcripts decodes commands and replies, each a connection, a side and the bytes.
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

// Connections that mention a tube or a job in common are performed together, others apart.
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

// What the server heard first stands first, whatever was sent first: jobs have numbers.
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
	text := out["beanstalk-1.wire"].String()
	last := -1
	for _, want := range []string{"reserve\n", "put 0 0 60 b", "INSERTED $job1", "put 0 0 60 a", "INSERTED $job2", "RESERVED $job1 b"} {
		at := strings.Index(text, want)
		if at <= last {
			t.Fatalf("%q does not stand where it is due:\n%s", want, text)
		}
		last = at
	}
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
	if !strings.HasSuffix(out[all[0].Name].String(), "as much of it as is kept.\n") {
		t.Error("it is not said that there was more")
	}
}
