// Package pcaptest creates and decodes captures for tests.
package pcaptest

import (
	"bytes"
	"testing"
	"time"

	_ "jobwire/catalog" // recognizes all protocols
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/pcap"
	"jobwire/play"
)

// Capture returns a capture of a transcript, performed in the written order: a step each millisecond, or after
// the time that the step has.
func Capture(t *testing.T, p *codec.Protocol, script string) []byte {
	t.Helper()
	scripts, err := transcript.Parse(p, "test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	events, err := play.Encode(scripts[0], start, false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pcap.NewWriter(&out, p.DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[transcript.Verb]pcap.Kind{transcript.Send: pcap.Data, transcript.Raw: pcap.Data,
		transcript.Closes: pcap.Closes, transcript.HalfCloses: pcap.HalfCloses, transcript.Resets: pcap.Resets}
	ids := map[string]int{}
	for _, ev := range events {
		kind, ok := kinds[ev.Verb]
		if !ok {
			continue
		}
		if _, seen := ids[ev.Actor.Name]; !seen {
			ids[ev.Actor.Name] = len(ids)
		}
		if err := w.Write(pcap.Event{Conn: ids[ev.Actor.Name], From: ev.From, Kind: kind, Data: ev.Frame.Raw,
			At: start.Add(ev.At)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Decode passes the items of a capture to add, and returns the decoder.
func Decode(t *testing.T, capture []byte, add func(*pcap.Item)) *pcap.Decoder {
	t.Helper()
	f, err := pcap.NewFile("test", bytes.NewReader(capture))
	if err != nil {
		t.Fatal(err)
	}
	d := pcap.NewDecoder(pcap.Options{}, add)
	if err := d.Decode(f); err != nil {
		t.Fatal(err)
	}
	return d
}
