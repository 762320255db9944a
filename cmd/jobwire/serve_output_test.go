package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/cmd/internal/cli"
)

// TestSpool checks that a spool accepts messages without waiting while its output is not read. When the output is read
// again, it must have the messages that fit in the buffer, a line with the number of dropped messages, and later messages.
func TestSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newSpool(w, "trace: %s messages")
		message := func(n int) string { return fmt.Sprintf("%-1023d\n", n) }
		s.add([]byte(message(0)))
		synctest.Wait() // the spool has begun to write it
		fit, all := maxSpool/1024, maxSpool/1024+1234
		for n := range all {
			s.add([]byte(message(n + 1)))
		}
		var want strings.Builder
		for n := range 1 + fit {
			want.WriteString(message(n))
		}
		want.WriteString("trace: 1,234 messages left out, because standard output was read too slowly\n")
		got := make([]byte, want.Len())
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want.String() {
			t.Errorf("%v, the output ends with %q, want %q", err, tail(string(got)), tail(want.String()))
		}
		synctest.Wait()
		s.add([]byte("later\n"))
		rest := make(chan string)
		go func() {
			b, _ := io.ReadAll(r)
			rest <- string(b)
		}()
		missing, err := s.close()
		if want := "trace: 1,234 messages left out, because standard output was read too slowly"; missing != want || err != nil {
			t.Errorf("close: %q, %v; want %q", missing, err, want)
		}
		w.Close()
		if got := <-rest; got != "later\n" {
			t.Errorf("after that the output has %q, want %q", got, "later\n")
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-1200):] }

// TestSpoolUnread closes a spool while its output is not read: close must return after spoolWait, and count each message
// that was not written exactly once.
func TestSpoolUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newSpool(w, "audit: %s violations")
		s.add([]byte("first\n"))
		synctest.Wait()
		const more = maxSpool/1024 + 10 // messages than the spool holds: 4106
		for range more {
			s.add(bytes.Repeat([]byte("x"), 1024))
		}
		before := time.Now()
		missing, err := s.close()
		// "first" and the others
		if want := "audit: 4,107 violations left out, because standard output was read too slowly"; missing != want || err != nil {
			t.Errorf("close: %q, %v; want %q", missing, err, want)
		}
		if took := time.Since(before); took != spoolWait {
			t.Errorf("close took %v, want %v", took, spoolWait)
		}
		r.Close() // ends the goroutine that writes
		<-s.done
	})
}

// TestSpoolError checks that close returns the error of the output, and that later messages are discarded.
func TestSpoolError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		r.Close()
		s := newSpool(w, "trace: %s messages")
		for range 3 {
			s.add([]byte("message\n"))
			synctest.Wait()
		}
		if missing, err := s.close(); missing != "" || err != io.ErrClosedPipe {
			t.Errorf("close: %q, %v; want %v alone", missing, err, io.ErrClosedPipe)
		}
	})
}

// TestServeUnread runs servers whose standard output is a pipe that is not read. They must still serve clients, stop when
// they are interrupted, and exit with 1 if --audit found violations.
func TestServeUnread(t *testing.T) {
	t.Parallel()
	const clients, requests = 4, 2000
	echo := "\x00REQ\x00\x00\x00\x10\x00\x00\x04\x00" + strings.Repeat("x", 1024)
	broken := "\x00REQ\x00\x00\x00\x07\x00\x00\x00\x01x" // a SUBMIT_JOB without its arguments
	for _, tt := range []struct {
		flags  string
		status int
		stderr string // a pattern of its last lines
	}{
		{"--trace", cli.StatusOK, `jobwire: trace: [0-9,]+ messages left out, because standard output was read too slowly\n$`},
		{"--annotate --hex", cli.StatusOK, `jobwire: trace: [0-9,]+ messages left out, because standard output was read too slowly\n$`},
		{"--audit", cli.StatusFailed, `jobwire: audit: 8,000 violations left out, because standard output was read too slowly\njobwire: 8,000 violations\n$`},
	} {
		t.Run(tt.flags, func(t *testing.T) {
			t.Parallel()
			send := echo
			if tt.flags == "--audit" {
				send = broken
			}
			unread, stdout := io.Pipe()
			defer unread.Close() // ends the goroutine that writes
			lines, stderr := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			status := make(chan int, 1)
			go func() {
				status <- run(ctx, append([]string{"serve", "gearman", "--listen", "127.0.0.1:0"}, strings.Fields(tt.flags)...), nil, stdout, stderr)
				stderr.Close()
			}()
			first := make([]byte, 4096)
			n, err := lines.Read(first)
			addr := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(first[:n]))
			if addr == "" {
				t.Fatalf("%v: no address in %q", err, first[:n])
			}
			served := make(chan error, clients)
			for range clients {
				go func() { served <- asks(addr, send, requests) }()
			}
			for range clients {
				if err := <-served; err != nil {
					t.Error(err)
				}
			}
			cancel()
			said, _ := io.ReadAll(lines)
			if !regexp.MustCompile(tt.stderr).Match(said) {
				t.Errorf("standard error is %q, want %s", said, tt.stderr)
			}
			if got := <-status; got != tt.status {
				t.Errorf("exit status %d, want %d", got, tt.status)
			}
		})
	}
}

// asks sends a request the given number of times, and reads a Gearman packet after each.
func asks(addr, request string, times int) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(3 * time.Minute)) // a busy machine may need 30 ms per request
	head := make([]byte, 12)
	for i := range times {
		if _, err := io.WriteString(nc, request); err != nil {
			return err
		}
		if _, err := io.ReadFull(nc, head); err != nil {
			return fmt.Errorf("reply %d of %d: %w", i+1, times, err)
		}
		if _, err := io.CopyN(io.Discard, nc, int64(head[10])<<8|int64(head[11])); err != nil {
			return fmt.Errorf("reply %d of %d: %w", i+1, times, err)
		}
	}
	return nil
}
