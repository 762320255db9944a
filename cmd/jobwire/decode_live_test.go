package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobwire/cmd/internal/cli"
	"jobwire/pcap/report"
)

// heard collects the output of a command, and calls first when the command writes for the first time.
type heard struct {
	bytes.Buffer
	first func()
}

func (h *heard) Write(p []byte) (int, error) {
	if h.first != nil {
		h.first()
		h.first = nil
	}
	return h.Buffer.Write(p)
}

// TestDecodeInterface captures on an interface until it is interrupted: decode must count the messages of a connection.
func TestDecodeInterface(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	complaints := &heard{first: func() {
		defer interrupt()
		c, err := net.DialTimeout("tcp", l.Addr().String(), 20*time.Second)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		for _, m := range []string{"use here\r\n", "watch there\r\n"} {
			io.WriteString(c, m)
			io.ReadFull(s, make([]byte, len(m)))
		}
	}}
	var out bytes.Buffer
	status := run(ctx, []string{"decode", "summary", "--interface", "lo", "--port", port, "--format", "json"}, nil, &out, complaints)
	if strings.Contains(complaints.String(), "CAP_NET_RAW") || strings.Contains(complaints.String(), "on Linux only") {
		t.Skipf("no capture off an interface: %s", complaints.String())
	}
	var r report.Report
	if err := json.Unmarshal(out.Bytes(), &r); status != cli.StatusOK || err != nil {
		t.Fatalf("exit status %d, %v: %s", status, err, complaints.String())
	}
	if b := r.Messages["beanstalk"].ToServer; b["use"] != 1 || b["watch"] != 1 || r.Connections != 1 {
		t.Errorf("%+v", r)
	}
}

// captureWriter is a program that writes a capture file to standard output as tcpdump does, except for the last packets.
// When it is interrupted, it writes a part of the next packet and exits.
func captureWriter() {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	capture, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "listening on a file")
	cut := len(capture) - 20
	os.Stdout.Write(capture[:cut-20])
	<-interrupted
	os.Stdout.Write(capture[cut-20 : cut])
}

// TestDecodeInterrupted interrupts decode while it waits for the next packet: it must end soon, with a report.
func TestDecodeInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "example.pcap")
	var said bytes.Buffer
	if status := run(t.Context(), []string{"encode", "../../corpus/gearman/example.wire", "--pcap", file}, nil, io.Discard, &said); status != cli.StatusOK {
		t.Fatal(said.String())
	}
	capture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	in, feed := io.Pipe()
	late := time.AfterFunc(20*time.Second, func() { feed.Close() })
	defer late.Stop()
	defer feed.Close()
	go func() {
		feed.Write(capture)
		interrupt()
	}()
	var out bytes.Buffer
	status := run(ctx, []string{"decode", "summary", "-"}, in, &out, &said)
	if status != cli.StatusOK || said.Len() > 0 || !strings.Contains(out.String(), " packets, ") {
		t.Errorf("exit status %d: %s%s", status, out.String(), said.String())
	}
}
