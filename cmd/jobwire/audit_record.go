package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"jobwire/audit"
	"jobwire/cmd/internal/capturefile"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/pcap"
)

// recording writes the traffic to a capture file, from which transcripts are made.
type recording struct {
	protocol *codec.Protocol
	file     *os.File
	kept     bool // the file is not temporary
	w        *pcap.Writer
	over     map[int]bool // connections that were reset
	bytes    int          // number of bytes recorded
	err      error

	mu    sync.Mutex
	notes map[int][]note // by connection: violations that are not yet in the capture
}

// note is the packet comment for a violation.
type note struct {
	by   codec.Side
	text string
}

// record starts a recording in a new file. If the name is empty, the file is temporary.
func record(p *codec.Protocol, name string) (*recording, error) {
	var f *os.File
	var err error
	if name != "" {
		f, err = os.Create(name)
	} else {
		f, err = os.CreateTemp("", "jobwire-audit-*.pcapng")
	}
	if err != nil {
		return nil, err
	}
	w, err := pcap.NewWriter(f, p.DefaultPort)
	return &recording{protocol: p, file: f, kept: name != "", w: w, over: map[int]bool{}, notes: map[int][]note{}}, err
}

// Note makes a violation a comment of the next packet of its sender on the connection, or of the packet that ends the
// connection. The proxy reports a violation before the bytes that complete the message.
func (r *recording) Note(f *audit.Finding) {
	from, to := f.Role, r.protocol.ServerName
	if f.By == codec.Server {
		from, to = to, from
	}
	text := fmt.Sprintf("%s -> %s: [%s] %s", from, to, f.Err.Rule, f.Err.Detail)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes[f.Conn] = append(r.notes[f.Conn], note{f.By, text})
}

// comments removes and returns the comments for an event of a connection.
func (r *recording) comments(conn int, from codec.Side, what transcript.Verb) (texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notes[conn]) == 0 || what == transcript.Opens {
		return nil
	}
	r.notes[conn] = slices.DeleteFunc(r.notes[conn], func(n note) bool {
		now := n.by == from || what != transcript.Raw
		if now {
			texts = append(texts, n.text)
		}
		return now
	})
	return texts
}

// Add records an event of a connection. It is the Tap of a proxy.
func (r *recording) Add(conn int, from codec.Side, b []byte, what transcript.Verb) {
	if r.err != nil || r.over[conn] {
		return
	}
	if what == transcript.Resets {
		r.over[conn] = true
	}
	r.bytes += len(b)
	r.err = r.w.Write(pcap.Event{Conn: conn, From: from, Kind: capturefile.Kinds[what], Data: b, At: time.Now(),
		Comments: r.comments(conn, from, what)})
}

// Discard closes the file, and removes it if it is temporary.
func (r *recording) Discard() {
	r.file.Close()
	if !r.kept {
		os.Remove(r.file.Name())
	}
}

// finish completes the capture file.
func (r *recording) finish() error {
	if r.err == nil {
		r.err = r.w.Close()
	}
	if r.err != nil {
		return fmt.Errorf("cannot record the traffic: %w", r.err)
	}
	return nil
}

// transcribe writes the recorded traffic as transcripts to a directory, and prints their names to stderr. The capture
// file must be complete.
func (r *recording) transcribe(stderr io.Writer, dir string) error {
	if _, err := r.file.Seek(0, 0); err != nil {
		return err
	}
	capture, err := pcap.NewFile("audit", r.file)
	if err != nil {
		return err
	}
	return writeTranscripts(stderr, stderr, capture, "audit", dir, pcap.Options{Protocol: r.protocol})
}
