package refserver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/internal/memnet"
	"jobwire/internal/transport"
	"jobwire/refserver"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/internal/peertest"
)

// bubble runs a test with a Gearman server in memory and virtual time, with the faults injected.
func bubble(t *testing.T, o refserver.Options, test func(t *testing.T, dial func() *peertest.Peer), faults ...string) {
	t.Helper()
	o.Protocol = gearman.Protocol
	m := refserver.Machine(machine.New(machine.Options{Host: "test"}))
	if len(faults) > 0 {
		faulty, err := injector.Wrap(m, &o, strings.Join(faults, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		m = faulty
	}
	synctest.Test(t, func(t *testing.T) {
		srv := refserver.New(m, o)
		test(t, func() *peertest.Peer { return peertest.Dial(t, gearman.Protocol, srv) })
		srv.Close()
	})
}

// listening runs a test with a server that has a listener in memory, and checks that its Serve returns nil.
func listening(t *testing.T,
	test func(t *testing.T, srv *refserver.Server, ln *memnet.Listener, dial func() *peertest.Peer)) {
	synctest.Test(t, func(t *testing.T) {
		ln, err := memnet.Listen("")
		if err != nil {
			t.Fatal(err)
		}
		srv := refserver.New(machine.New(machine.Options{Host: "test"}), refserver.Options{Protocol: gearman.Protocol})
		served := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { served <- srv.Serve(ctx, ln) }()
		test(t, srv, ln, func() *peertest.Peer {
			nc, err := memnet.Dial(ctx, ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			return peertest.New(t, gearman.Protocol, nc)
		})
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// TestByteByByte tests that the server handles messages that arrive one byte at a time.
func TestByteByByte(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		for _, b := range append(c.Encode("ECHO_REQ", "slow"), "version\n"...) {
			if _, err := c.Conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		c.Want("ECHO_RES", "slow")
		c.Raw(nil)
	})
}

// TestPipelined tests that the server answers all of many messages that arrive in one write that exceeds every buffer,
// with a large message among them.
func TestPipelined(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		large := strings.Repeat("large", 1<<18)
		b := bytes.Repeat(c.Encode("ECHO_REQ", "before"), 1000)
		b = append(b, c.Encode("ECHO_REQ", large)...)
		b = append(b, c.Encode("ECHO_REQ", "after")...)
		c.Raw(b)
		for range 1000 {
			c.Want("ECHO_RES", "before")
		}
		c.Want("ECHO_RES", large)
		c.Want("ECHO_RES", "after")
	})
}

// TestPipelinerThatDoesNotRead tests back-pressure in memory and over TCP.
func TestPipelinerThatDoesNotRead(t *testing.T) {
	newServer := func() *refserver.Server {
		o := refserver.Options{Protocol: gearman.Protocol, PauseOutput: 64 << 10}
		return refserver.New(machine.New(machine.Options{}), o)
	}
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer()
			pipelineWithoutReading(t, 10_000, func() net.Conn { return peertest.Connect(t, srv) })
			srv.Close()
		})
	})
	t.Run("TCP", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := newServer()
		t.Cleanup(srv.Close)
		go srv.Serve(context.Background(), ln)
		pipelineWithoutReading(t, 200_000, func() net.Conn {
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			return nc
		})
	})
}

// pipelineWithoutReading checks that the server stops reading from a client that does not read its replies, when more
// than PauseOutput bytes are pending, and serves others in the meantime. When the client reads again, after it has
// closed its direction, no reply is missing.
func pipelineWithoutReading(t *testing.T, requests int, dial func() net.Conn) {
	other, nc := peertest.New(t, gearman.Protocol, dial()), dial()
	defer nc.Close()
	all := bytes.Repeat(other.Encode("ECHO_REQ", strings.Repeat("x", 100)), requests)
	nc.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	n, err := nc.Write(all)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the server took %d of %d bytes, error %v", n, len(all), err)
	}
	other.Send("ECHO_REQ", "still there?")
	other.Want("ECHO_RES", "still there?")
	nc.SetWriteDeadline(time.Time{})
	sent := make(chan error, 1)
	go func() {
		_, err := nc.Write(all[n:])
		sent <- errors.Join(err, transport.CloseWrite(nc))
	}()
	if got, err := io.Copy(io.Discard, nc); err != nil || got != int64(len(all)) {
		t.Errorf("read %d bytes, expected %d: %v", got, len(all), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestSlowReader checks that a client that does not read its results does not delay others, and is closed when more
// than MaxOutput bytes are pending for it.
func TestSlowReader(t *testing.T) {
	const limit, part = 8 << 20, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		o := refserver.Options{Protocol: gearman.Protocol, MaxOutput: limit}
		srv := refserver.New(machine.New(machine.Options{Host: "test"}), o)
		slow := peertest.Connect(t, srv)
		c, w := peertest.Dial(t, gearman.Protocol, srv), peertest.Dial(t, gearman.Protocol, srv)
		slow.Write(c.Encode("SUBMIT_JOB", "f", "id", "x"))
		synctest.Wait()
		c.Send("SUBMIT_JOB", "f", "id", "x")
		h := c.Want("JOB_CREATED", "*")[0]
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", h, "f", "x")
		data := strings.Repeat("d", part)
		clients := func() string {
			c.Send("GET_STATUS_UNIQUE", "id")
			return c.Want("STATUS_RES_UNIQUE", "id", "*", "*", "*", "*", "*")[5]
		}
		rounds := 0
		for clients() == "2" && rounds < 100 {
			w.Send("WORK_DATA", h, data)
			c.Want("WORK_DATA", h, data) // must not be delayed by the slow client
			rounds++
		}
		if rounds < limit/part || rounds > limit/part+1 {
			t.Errorf("the slow client lost its connection after %d MiB, expected about %d", rounds, limit/part)
		}
		w.Send("WORK_COMPLETE", h, "done")
		c.Want("WORK_COMPLETE", h, "done")
		srv.Close()
	})
}

// TestHalfClosedClient checks that a client that has closed its direction gets its results before the server closes the
// connection.
func TestHalfClosedClient(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c, w := dial(), dial()
		c.Send("ECHO_REQ", "first")
		c.Send("SUBMIT_JOB", "f", "", "x")
		c.CloseWrite()
		c.Want("ECHO_RES", "first")
		h := c.Want("JOB_CREATED", "*")[0]
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", h, "f", "x")
		w.Send("WORK_STATUS", h, "1", "2")
		c.Want("WORK_STATUS", h, "1", "2")
		w.Send("WORK_COMPLETE", h, "y")
		c.Want("WORK_COMPLETE", h, "y")
		if err := c.Ended(); err != io.EOF {
			t.Errorf("the connection ends with %v", err)
		}
	})
}

// TestHalfClosedWorker checks that the server requeues the jobs of a worker that closes its direction.
func TestHalfClosedWorker(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c, w, other := dial(), dial(), dial()
		c.Send("SUBMIT_JOB", "f", "", "x")
		h := c.Want("JOB_CREATED", "*")[0]
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", h, "f", "x")
		other.Send("CAN_DO", "f")
		other.Send("PRE_SLEEP")
		w.CloseWrite()
		if err := w.Ended(); err != io.EOF {
			t.Errorf("the worker's connection ends with %v", err)
		}
		other.Want("NOOP")
		other.Send("GRAB_JOB")
		other.Want("JOB_ASSIGN", h, "f", "x")
	})
}

// TestClientThatIsGone checks that the server drops the job of a half-closed client after the time HalfClosed, at once
// if it is negative, and the job of a client that resets its connection at once.
func TestClientThatIsGone(t *testing.T) {
	for _, tt := range []struct {
		limit time.Duration
		leave func(*peertest.Peer)
		after time.Duration
	}{
		{-1, (*peertest.Peer).CloseWrite, 0},
		{10 * time.Second, (*peertest.Peer).CloseWrite, 10 * time.Second},
		{10 * time.Second, (*peertest.Peer).Leave, 0},
	} {
		bubble(t, refserver.Options{HalfClosed: tt.limit}, func(t *testing.T, dial func() *peertest.Peer) {
			c, other := dial(), dial()
			c.Send("SUBMIT_JOB", "f", "", "x")
			h := c.Want("JOB_CREATED", "*")[0]
			start := time.Now()
			tt.leave(c)
			c.Ended()
			if got := time.Since(start); got != tt.after {
				t.Errorf("the connection ended after %v, expected %v", got, tt.after)
			}
			other.Send("GET_STATUS", h)
			other.Want("STATUS_RES", h, "0", "0", "0", "0")
		})
	}
}

// TestLastReplyArrives checks that the last reply reaches a peer that is still sending when the server closes the
// connection.
func TestLastReplyArrives(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		c.Conn.Write(append([]byte("\x00BAD"), make([]byte, 1<<20)...))
		c.Want("ERROR", "INVALID_MAGIC", "*")
		if err := c.Ended(); err != io.EOF {
			t.Errorf("the connection ends with %v, want its orderly end", err)
		}
	})
}

// TestUnboundedInput checks that the server does not allocate the memory that headers announce, and rejects a header
// that announces 4 GiB and a line without an end.
func TestUnboundedInput(t *testing.T) {
	o := refserver.Options{Codec: codec.Options{MaxData: 1<<31 - 1}}
	bubble(t, o, func(t *testing.T, dial func() *peertest.Peer) {
		over := dial()
		over.Conn.Write([]byte("\x00REQ\x00\x00\x00\x10\xff\xff\xff\xff"))
		over.Want("ERROR", "ARGUMENT_TOO_LARGE", "*")
		over.Ended()

		line := dial()
		line.Conn.Write(bytes.Repeat([]byte("x"), codec.DefaultMaxLine))
		line.Ended()

		// Each of these connections announces 2 GiB and sends 1000 bytes.
		const many = 50
		var peers []*peertest.Peer
		for range many {
			peers = append(peers, dial())
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, p := range peers {
			p.Conn.Write(append([]byte("\x00REQ\x00\x00\x00\x10\x7f\xff\xff\xff"), make([]byte, 1000)...))
		}
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > many*100<<10 {
			t.Errorf("%d announcements made the process allocate %d bytes", many, grown)
		}
	})
}

// TestAcceptErrors checks that Serve retries after temporary errors of the listener, and returns other errors.
func TestAcceptErrors(t *testing.T) {
	listening(t, func(t *testing.T, srv *refserver.Server, ln *memnet.Listener, dial func() *peertest.Peer) {
		ln.SetDeadline(time.Now()) // Accept returns a temporary error
		start, c := time.Now(), dial()
		time.AfterFunc(10*time.Second, func() { ln.SetDeadline(time.Time{}) })
		c.Send("ECHO_REQ", "at last")
		c.Want("ECHO_RES", "at last")
		if got := time.Since(start); got < 10*time.Second || got > 11*time.Second {
			t.Errorf("a reply after %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ln, err := memnet.Listen("")
		if err != nil {
			t.Fatal(err)
		}
		srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol})
		time.AfterFunc(time.Second, func() { ln.Close() })
		if err := srv.Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v, want the listener's error", err)
		}
		if err := srv.Serve(t.Context(), ln); err != refserver.ErrClosed {
			t.Errorf("a stopped server's Serve: %v", err)
		}
	})
}

// TestListenersOfAnyKind checks that Serve accepts a listener of a type that is not comparable.
func TestListenersOfAnyKind(t *testing.T) {
	type wrapped struct {
		net.Listener
		about []string
	}
	ln, err := memnet.Listen("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol})
	if err := srv.Serve(ctx, wrapped{ln, nil}); err != nil {
		t.Error(err)
	}
}

// TestMachineStopsServer checks that the command shutdown ends the server: Serve returns although its context is not
// canceled.
func TestMachineStopsServer(t *testing.T) {
	for _, command := range []string{"shutdown", "shutdown graceful"} {
		listening(t, func(t *testing.T, srv *refserver.Server, ln *memnet.Listener, dial func() *peertest.Peer) {
			a, c := dial(), dial()
			c.Send("ECHO_REQ", "here")
			c.Want("ECHO_RES", "here")
			a.Raw([]byte(command + "\n"))
			a.Want("OK")
			if command != "shutdown" {
				if _, err := memnet.Dial(t.Context(), ln.Addr().String()); err == nil {
					t.Error("a server that is shutting down takes connections")
				}
				c.Send("ECHO_REQ", "still here")
				c.Want("ECHO_RES", "still here")
				c.Conn.Close()
				a.Conn.Close()
			} else {
				a.Ended()
				c.Ended()
			}
			synctest.Wait()
			if err := srv.Serve(t.Context(), ln); err != refserver.ErrClosed {
				t.Errorf("Serve of a server that was shut down: %v", err)
			}
		})
	}
}
