//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobwire/cmd/internal/cli"
)

// TestInterrupts interrupts the program in its phases, in which it would wait for an hour: it ends soon, says that it
// was interrupted, and has status 1, unless what it found until then counts.
func TestInterrupts(t *testing.T) {
	t.Parallel()
	const (
		starting = "the server starts" // and does not listen
		talking  = "the server was connected to"
		reading  = "the program reads a file"
		serving  = "the program serves"
	)
	starts := `sh -c 'echo > FIFO; sleep 3600' {port}`
	ignores := `sh -c 'trap "" TERM INT; echo > FIFO; sleep 3600 & wait; wait' {port}`
	example := "../../corpus/gearman/example.wire"
	for _, tt := range []struct {
		phase  string
		args   []string // ADDR and FIFO stand for names
		status int
	}{
		{starting, []string{"conform", "gearman", "--exec", starts}, cli.StatusFailed},
		{starting, []string{"conform", "gearman", "--exec", ignores}, cli.StatusFailed},
		{starting, []string{"play", example, "--exec", starts}, cli.StatusFailed},
		{starting, []string{"play", example, "--exec", ignores}, cli.StatusFailed},
		{starting, []string{"audit", "gearman", "--exec", starts}, cli.StatusFailed},
		{starting, []string{"audit", "stress", "gearman", "--exec", starts}, cli.StatusFailed},
		{starting, []string{"audit", "stress", "gearman", "--exec", ignores}, cli.StatusFailed},
		{starting, []string{"fuzz", "gearman", "--exec", starts}, cli.StatusFailed},
		{starting, []string{"bench", "run", "gearman", "--exec", starts}, cli.StatusFailed},
		{starting, []string{"bench", "run", "gearman", "--exec", ignores}, cli.StatusFailed},
		{starting, []string{"bench", "run", "gearman", "--scenario", "crash", "--exec", starts}, cli.StatusFailed},
		{starting, []string{"bench", "search", "gearman", "--slo", "p99<1s", "--exec", starts}, cli.StatusFailed},
		{starting, []string{"bench", "compare", "gearman", "--server", "a=" + starts, "--server", "embedded"}, cli.StatusFailed},
		{talking, []string{"conform", "gearman", "--addr", "ADDR", "--timeout", "1h"}, cli.StatusFailed},
		{talking, []string{"play", example, "--addr", "ADDR", "--timeout", "1h"}, cli.StatusFailed},
		{talking, []string{"audit", "stress", "gearman", "--addr", "ADDR", "--timeout", "1h"}, cli.StatusFailed},
		{talking, []string{"fuzz", "gearman", "--addr", "ADDR", "--timeout", "1h"}, cli.StatusFailed},
		{talking, []string{"bench", "run", "gearman", "--addr", "ADDR", "--settle", "1h"}, cli.StatusFailed},
		{talking, []string{"bench", "run", "gearman", "--addr", "ADDR", "--scenario", "background"}, cli.StatusFailed},
		{reading, []string{"play", "FIFO"}, cli.StatusFailed},
		{reading, []string{"decode", "FIFO"}, cli.StatusOK},
		{reading, []string{"encode", "FIFO"}, cli.StatusFailed},
		{reading, []string{"bench", "report", "FIFO"}, cli.StatusFailed},
		{reading, []string{"bench", "merge", "FIFO"}, cli.StatusFailed},
		{reading, []string{"conform", "gearman", "--profile", "FIFO"}, cli.StatusFailed},
		{reading, []string{"fuzz", "replay", "gearman", "FIFO"}, cli.StatusFailed},
		{serving, []string{"serve", "gearman", "--listen", "127.0.0.1:0"}, cli.StatusOK},
		{serving, []string{"audit", "gearman", "--listen", "127.0.0.1:0"}, cli.StatusInvalid},
		{serving, []string{"play", example, "--listen", "127.0.0.1:0", "--timeout", "1h"}, cli.StatusFailed},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(fmt.Sprintf("%s/%s/%v", tt.phase, strings.Join(tt.args[:2], " "), signal), func(t *testing.T) {
				t.Parallel()
				fifo := filepath.Join(t.TempDir(), "fifo")
				if err := syscall.Mkfifo(fifo, 0o600); err != nil {
					t.Fatal(err)
				}
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				var args []string
				for _, arg := range tt.args {
					args = append(args, strings.NewReplacer("ADDR", ln.Addr().String(), "FIFO", fifo).Replace(arg))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				context.AfterFunc(ctx, func() { // a program that did not get as far must not block the test
					if f, err := os.OpenFile(fifo, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
						f.Close()
					}
					ln.Close()
				})
				cmd := exec.CommandContext(ctx, "jobwire", args...)
				var out bytes.Buffer
				cmd.Stdout, cmd.WaitDelay = &out, time.Second
				stderr := startWithErrors(t, cmd)
				var errs bytes.Buffer
				switch tt.phase {
				case starting:
					f, err := os.OpenFile(fifo, os.O_RDWR|syscall.O_NONBLOCK, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					f.SetReadDeadline(time.Now().Add(time.Minute))
					if _, err := f.Read(make([]byte, 1)); err != nil {
						t.Fatal(err)
					}
				case talking:
					c, err := ln.Accept()
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
				case reading:
					f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
				case serving:
					line := make([]byte, 100)
					n, _ := stderr.Read(line)
					errs.Write(line[:n])
				}
				cmd.Process.Signal(signal)
				begin := time.Now()
				io.Copy(&errs, stderr)
				cmd.Wait()
				text := out.String() + errs.String()
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("the program ended %v after the signal", took)
				}
				says := tt.status == cli.StatusOK || strings.Contains(text, "interrupt")
				if status := cmd.ProcessState.ExitCode(); status != tt.status || !says {
					t.Errorf("%q: status %d, want %d: %s", args, status, tt.status, text)
				}
			})
		}
	}
}
