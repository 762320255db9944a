//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
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
	"jobwire/internal/peers"
)

// TestDecodePipeInterrupted interrupts decode and the program that writes the capture, as Ctrl-C does in a terminal. decode
// must print the messages and then the summary, and succeed.
func TestDecodePipeInterrupted(t *testing.T) {
	t.Run("capture cut within a packet", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "example.pcap")
		var printed bytes.Buffer
		if status := run(t.Context(), []string{"encode", "../../corpus/gearman/example.wire", "--pcap", file}, nil, io.Discard, &printed); status != cli.StatusOK {
			t.Fatal(printed.String())
		}
		interruptPipe(t, func() {}, "SUBMIT_JOB", "write-capture", file)
	})
	t.Run("tcpdump", func(t *testing.T) {
		tcpdump := peers.Need(t, "tcpdump")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		interruptPipe(t, func() {
			if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
				io.WriteString(c, "watch there\r\n")
				c.Close()
			}
		}, "watch", tcpdump, "-i", "lo", "--immediate-mode", "-U", "-w", "-", "tcp port "+port)
	})
}

// interruptPipe starts a program that writes a capture, and decode, which reads it. After the program listens, it calls
// act repeatedly, because tcpdump may miss the first packets. When decode has printed a line that contains message, it
// interrupts both, and checks that decode ends well.
func interruptPipe(t *testing.T, act func(), message, program string, args ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.CommandContext(ctx, program, args...)
	writer.Stdout = in
	writer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log := startWithErrors(t, writer)
	in.Close()
	defer writer.Wait()
	defer cancel()
	decode := exec.CommandContext(ctx, "jobwire", "decode", "-")
	decode.Stdin = out
	decode.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: writer.Process.Pid}
	var errors bytes.Buffer
	decode.Stderr = &errors
	messages, err := decode.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := decode.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	defer decode.Wait()
	defer cancel()

	logged := bufio.NewScanner(log)
	printed := ""
	for !strings.Contains(printed, "listening on") {
		if !logged.Scan() {
			if strings.Contains(printed, "permi") {
				t.Skipf("%s may not capture: %s", program, printed)
			}
			t.Fatalf("%s does not capture: %s", program, printed)
		}
		printed += logged.Text() + "\n"
	}
	go io.Copy(io.Discard, log)
	seen := make(chan struct{})
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		for {
			act()
			select {
			case <-seen:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	lines := bufio.NewScanner(messages)
	for lines.Scan() && !strings.Contains(lines.Text(), message) {
	}
	close(seen)
	<-acted
	if err := syscall.Kill(-writer.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	err = decode.Wait()
	if got := errors.String(); err != nil || !strings.Contains(got, " packets, ") || strings.Contains(got, "jobwire: ") {
		t.Errorf("decode: %v: %s", err, got)
	}
}
