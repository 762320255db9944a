package exec

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/internal/target"
)

// serveOneAtATime runs a server that answers only ECHO_REQ, and writes to one connection at a time.
func serveOneAtATime(ctx context.Context, ln net.Listener) error { return serveEcho(ctx, ln, 0) }

// serveEcho is serveOneAtATime with a server that needs perByte for each byte of a request, in which it serves no other
// client.
func serveEcho(ctx context.Context, ln net.Listener, perByte time.Duration) error {
	writing := make(chan bool, 1) // a mutex would stop the virtual time
	context.AfterFunc(ctx, func() { ln.Close() })
	for {
		nc, err := ln.Accept()
		if err != nil {
			return nil
		}
		context.AfterFunc(ctx, func() { nc.Close() })
		go func() {
			head := make([]byte, 12)
			for {
				if _, err := io.ReadFull(nc, head); err != nil {
					return
				}
				data := make([]byte, binary.BigEndian.Uint32(head[8:]))
				if _, err := io.ReadFull(nc, data); err != nil {
					return
				}
				select {
				case writing <- true:
				case <-ctx.Done():
					return
				}
				select {
				case <-time.After(time.Duration(len(data)) * perByte):
				case <-ctx.Done():
					return
				}
				nc.Write(slices.Concat([]byte("\x00RES\x00\x00\x00\x11"), head[8:], data))
				<-writing
			}
		}()
	}
}

// oracleOf executes an input on a Gearman server in memory, which may seem busy. It returns the oracle
// that reports a fault, or "".
func oracleOf(t *testing.T, in *input.Input, busy bool, serve func(context.Context, net.Listener) error) string {
	srv, err := target.InMemory(t.Context(), "gearman", serve)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	x, err := NewExecutor(srv, 0, NewBarrier(gearman.Protocol, gearman.Protocol.Barriers[0]), &input.Known{}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer x.CloseCanary()
	x.busy = func() bool { return busy }
	if r := x.Execute(in, ""); r.Fault != nil {
		return r.Fault.Oracle
	}
	return ""
}

// TestClientThatDoesNotRead tests that a server is reported that serves no other client while it cannot write to a
// client that does not read, and that the reference server is not.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	request := append([]byte("\x00REQ\x00\x00\x00\x10\x00\x00\x10\x00"), make([]byte, 4096)...)
	in := &input.Input{Steps: []input.Step{{ID: 1, Verb: transcript.StopsReading},
		{ID: 2, Verb: transcript.Raw, Bytes: bytes.Repeat(request, 256)}}}
	for oracle, serve := range map[string]func(context.Context, net.Listener) error{HangAll: serveOneAtATime,
		"": faults.Faultless("gearman").Serve} {
		synctest.Test(t, func(t *testing.T) {
			got := oracleOf(t, in, false, serve)
			if got != oracle {
				t.Errorf("expected the oracle %q, got %q", oracle, got)
			}
		})
	}
}

// TestLargeMessages tests that a server that needs longer than the timeout to read a large message does not hang, but one
// that needs longer than any server is reported: sooner if it has nothing to do.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	in := &input.Input{Steps: []input.Step{{ID: 1, Verb: transcript.Send, Type: gearman.Protocol.TypeNamed("ECHO_REQ"),
		Args: []input.Arg{{Value: make([]byte, size)}}}}}
	for _, tt := range []struct {
		perByte time.Duration
		busy    bool
		oracle  string
	}{{300, false, ""}, {2000, false, HangAll}, {2000, true, ""}, {6000, true, HangConn}} {
		synctest.Test(t, func(t *testing.T) {
			serve := func(ctx context.Context, ln net.Listener) error { return serveEcho(ctx, ln, tt.perByte) }
			if got := oracleOf(t, in, tt.busy, serve); got != tt.oracle {
				t.Errorf("%+v: got the oracle %q", tt, got)
			}
		})
	}
}
