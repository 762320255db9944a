package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/pcap"
)

// recording writes the traffic to a temporary capture file, from which transcripts are made.
type recording struct {
	protocol *codec.Protocol
	file     *os.File
	w        *pcap.Writer
	over     map[int]bool // connections that were reset
	bytes    int          // number of bytes recorded
	err      error
}

// record starts a recording.
func record(p *codec.Protocol) (*recording, error) {
	f, err := os.CreateTemp("", "jobwire-audit-*.pcapng")
	if err != nil {
		return nil, err
	}
	w, err := pcap.NewWriter(f, p.DefaultPort)
	return &recording{protocol: p, file: f, w: w, over: map[int]bool{}}, err
}

// passings maps the events of a proxy to those of a capture.
var passings = map[audit.Passing]pcap.Kind{audit.Opens: pcap.Opens, audit.Says: pcap.Data, audit.Closes: pcap.HalfCloses, audit.Resets: pcap.Resets}

// Add records an event of a connection. It is the Tap of a proxy.
func (r *recording) Add(conn int, from codec.Side, b []byte, what audit.Passing) {
	if r.err != nil || r.over[conn] {
		return
	}
	if what == audit.Resets {
		r.over[conn] = true
	}
	r.bytes += len(b)
	r.err = r.w.Write(pcap.Event{Conn: conn, From: from, Kind: passings[what], Data: b, At: time.Now()})
}

// Discard removes the temporary file.
func (r *recording) Discard() {
	r.file.Close()
	os.Remove(r.file.Name())
}

// transcribe writes the recorded traffic as transcripts to a directory.
func (r *recording) transcribe(cmd *cobra.Command, dir string) error {
	if r.err == nil {
		r.err = r.w.Close()
	}
	if r.err != nil {
		return fmt.Errorf("cannot record the traffic for --transcripts: %w", r.err)
	}
	if _, err := r.file.Seek(0, 0); err != nil {
		return err
	}
	capture, err := pcap.NewFile("audit", r.file)
	if err != nil {
		return err
	}
	aside := &cobra.Command{} // standard output holds the report
	aside.SetOut(cmd.ErrOrStderr())
	aside.SetErr(cmd.ErrOrStderr())
	o := decodeOptions{scripts: dir}
	return o.transcribe(aside, &input{Source: capture, name: "audit"}, pcap.Options{Protocol: r.protocol})
}
