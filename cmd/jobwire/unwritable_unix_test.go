//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"jobwire/cmd/internal/cli"
)

// TestProgramWithClosedOutput runs the program with a standard output whose reader has closed it: it ends with status 1
// and says why, also if it would wait for more input. It ends too if it prints only on a closed standard error.
func TestProgramWithClosedOutput(t *testing.T) {
	t.Parallel()
	capture := inputs(t).Replace("CAPTURE")
	for name, args := range map[string][]string{
		"prints once":         {"rules", "gearman"},
		"runs a server":       {"conform", "gearman", "--run", "gearman.echo.order"},
		"waits for its input": {"decode", "-"},
		"serves":              {"serve", "gearman", "--listen", "127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			reader.Close()
			cmd := exec.CommandContext(ctx, "jobwire", args...)
			var complaints bytes.Buffer
			want := "jobwire: cannot write: write /dev/stdout: broken pipe\n"
			cmd.Stdout, cmd.Stderr, cmd.WaitDelay = writer, &complaints, time.Second
			if args[0] == "serve" {
				cmd.Stderr, want = writer, ""
			}
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if args[0] == "decode" {
				packets, err := os.ReadFile(capture)
				if err != nil {
					t.Fatal(err)
				}
				stdin.Write(packets) // and no end of the file
			}
			cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != cli.StatusFailed || ctx.Err() != nil || complaints.String() != want {
				t.Errorf("status %d, %v: %s", status, ctx.Err(), strings.TrimSpace(complaints.String()))
			}
		})
	}
}
