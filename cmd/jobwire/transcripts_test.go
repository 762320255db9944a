package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/pcap"
	"jobwire/play"
)

// tap relays connections to a server, and captures what passes.
type tap struct {
	net.Listener
	to string

	mu     sync.Mutex
	events []pcap.Event
	next   int
	pumps  sync.WaitGroup
}

// tapped returns a relay to a server.
func tapped(t *testing.T, to string) *tap {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tp := &tap{Listener: ln, to: to}
	tp.pumps.Go(func() {
		for {
			up, err := ln.Accept()
			if err != nil {
				return
			}
			down, err := net.Dial("tcp", to)
			if err != nil {
				up.Close()
				continue
			}
			id := tp.add(pcap.Event{Conn: -1, Kind: pcap.Opens})
			tp.pumps.Go(func() {
				var both sync.WaitGroup
				both.Go(func() { tp.pump(id, codec.Peer, up.(*net.TCPConn), down.(*net.TCPConn)) })
				both.Go(func() { tp.pump(id, codec.Server, down.(*net.TCPConn), up.(*net.TCPConn)) })
				both.Wait()
				up.Close()
				down.Close()
			})
		}
	})
	return tp
}

// add notes an event; a connection without a number gets one.
func (tp *tap) add(e pcap.Event) int {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if e.Conn < 0 {
		e.Conn = tp.next
		tp.next++
	}
	e.At = time.Now()
	tp.events = append(tp.events, e)
	return e.Conn
}

// lastWords is how long a server may speak to a peer that has said its last.
const lastWords = 300 * time.Millisecond

// pump passes on what one end says.
func (tp *tap) pump(id int, from codec.Side, in, out *net.TCPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			tp.add(pcap.Event{Conn: id, From: from, Kind: pcap.Data, Data: bytes.Clone(buf[:n])})
			if _, err := out.Write(buf[:n]); err != nil {
				io.Copy(io.Discard, in)
				return
			}
		}
		switch {
		case errors.Is(err, syscall.ECONNRESET):
			tp.add(pcap.Event{Conn: id, From: from, Kind: pcap.Resets})
			out.SetLinger(0)
			out.Close()
			return
		case errors.Is(err, io.EOF):
			tp.add(pcap.Event{Conn: id, From: from, Kind: pcap.HalfCloses})
			out.CloseWrite()
			out.SetReadDeadline(time.Now().Add(lastWords))
			return
		case err != nil:
			return
		}
	}
}

// capture ends the relay and returns a capture of what passed, at most one reset of a
// connection among it.
func (tp *tap) capture(t *testing.T) []byte {
	t.Helper()
	tp.Close()
	tp.pumps.Wait()
	_, port, _ := net.SplitHostPort(tp.to)
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pcap.NewWriter(&out, n)
	if err != nil {
		t.Fatal(err)
	}
	over := map[int]bool{}
	for _, e := range tp.events {
		if over[e.Conn] {
			continue
		}
		over[e.Conn] = e.Kind == pcap.Resets
		if err := w.Write(e); err != nil && e.Kind == pcap.Data {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// transcribed decodes a capture into transcripts, and returns their files.
func transcribed(t *testing.T, capture []byte, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var out, complaints bytes.Buffer
	args = append([]string{"decode", "-", "--transcripts", dir}, args...)
	if status := run(t.Context(), args, bytes.NewReader(capture), &out, &complaints); status != exitHeld {
		t.Fatalf("exit status %d: %s", status, complaints.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wire"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// performed plays files against a server and wants them to be played as written.
func performed(t *testing.T, files []string, args ...string) {
	t.Helper()
	for _, file := range files {
		var out, complaints bytes.Buffer
		if status := run(t.Context(), append([]string{"play", file}, args...), nil, &out, &complaints); status != exitHeld {
			text, _ := os.ReadFile(file)
			t.Errorf("exit status %d: %s%s\n%s", status, out.String(), complaints.String(), text)
		}
	}
}

// embedded starts the reference server of a protocol.
func embedded(t *testing.T, sys *system) target.Target {
	t.Helper()
	srv, err := new(targetFlags).start(t.Context(), sys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Stop() })
	return srv
}

// sampled is how many cases there are to one that is performed, since each takes its time.
const sampled = 7

// TestTranscriptsOfCases performs cases of conform, captures them, and performs the
// transcripts of the captures.
func TestTranscriptsOfCases(t *testing.T) {
	for i := range systems {
		sys := &systems[i]
		t.Run(sys.protocol.Name, func(t *testing.T) {
			t.Parallel()
			suite, err := conform.Load(sys.protocol)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range suite.Cases {
				if i%sampled != 0 || c.Program != "" || lengthy(c.Script) {
					continue
				}
				t.Run(c.ID, func(t *testing.T) {
					tp := tapped(t, embedded(t, sys).Addr())
					dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
						var d net.Dialer
						return d.DialContext(ctx, "tcp", tp.Addr().String())
					}
					r := play.Peers(t.Context(), c.Script, dial, play.Options{Codec: codec.Options{Waive: sys.waive}})
					capture := tp.capture(t)
					if r.Failure != nil {
						t.Skipf("the case itself: %v", r.Failure)
					}
					performed(t, transcribed(t, capture, "--protocol", sys.protocol.Name), "--timeout", "2s")
				})
			}
		})
	}
}

// lengthy reports whether a script takes its time.
func lengthy(s *transcript.Script) bool {
	return slices.ContainsFunc(s.Steps, func(st transcript.Step) bool {
		return st.After > 500*time.Millisecond || slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool { return c.For > 500*time.Millisecond })
	})
}

// TestTranscriptsOfBench performs what the load generator said to each server. With more
// connections it is left to chance what the server hears first, and cannot always be told.
func TestTranscriptsOfBench(t *testing.T) {
	for i := range systems {
		sys := &systems[i]
		t.Run(sys.protocol.Name, func(t *testing.T) {
			t.Parallel()
			tp := tapped(t, embedded(t, sys).Addr())
			var out, complaints bytes.Buffer
			if status := run(t.Context(), []string{"bench", sys.protocol.Name, "--addr", tp.Addr().String(), "--count", "200", "--clients", "1", "--workers", "1"}, nil, &out, &complaints); status != exitHeld {
				t.Fatalf("exit status %d: %s%s", status, out.String(), complaints.String())
			}
			performed(t, transcribed(t, tp.capture(t), "--protocol", sys.protocol.Name), "--quiet")
		})
	}
}
