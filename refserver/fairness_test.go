package refserver_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/internal/peertest"
)

// TestFullBufferDoesNotDelayOthers checks that the server handles a request of another connection before half of a full buffer
// of requests of the first connection is handled.
func TestFullBufferDoesNotDelayOthers(t *testing.T) {
	const (
		request = "version\n"
		buffer  = 64 << 10 / len(request) // number of requests that fill a buffer
		all     = 16 * buffer
	)
	// The other connection sends a request at ten positions spread over the buffer.
	var asked []int64
	for i := range 10 {
		asked = append(asked, int64(5*buffer+i*(buffer+buffer/10)))
	}
	var (
		handled atomic.Int64
		since   int64 // value of handled when the other connection had read its request
		busy    *refserver.Conn
		waited  []int64
		ask     func()
	)
	hook := func(c *refserver.Conn, from codec.Side, f *codec.Frame) refserver.Verdict {
		switch {
		case from != codec.Peer:
		case f.Type.Name == "getpid":
			waited = append(waited, handled.Load()-since)
		case busy == nil || c == busy:
			busy = c
			n := handled.Add(1)
			for start := time.Now(); time.Since(start) < time.Microsecond; {
			}
			if len(asked) > 0 && n >= asked[0] && len(waited) == 10-len(asked) {
				asked = asked[1:]
				go ask()
			}
		}
		return refserver.Verdict{}
	}
	srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol, Intercept: hook})
	connect := func(read func()) net.Conn {
		near, far := net.Pipe()
		go srv.ServeConn(t.Context(), notifyingConn{far, read})
		go io.Copy(io.Discard, near)
		return near
	}
	one, other := connect(func() {}), connect(func() { since = handled.Load() })
	ask = func() { other.Write([]byte("getpid\n")) }
	if _, err := one.Write(bytes.Repeat([]byte(request), all)); err != nil {
		t.Fatal(err)
	}
	one.Close()
	other.Close()
	srv.Close()
	if len(waited) < 8 {
		t.Fatalf("only %d of 10 requests were answered", len(waited))
	}
	// The two longest waits are ignored: the scheduler may have caused them.
	if slices.Sort(waited); waited[len(waited)-3] >= int64(buffer/2) {
		t.Errorf("another's request waits for %v of %d requests", waited, buffer)
	}
}

// notifyingConn calls a function after each read.
type notifyingConn struct {
	net.Conn
	read func()
}

func (c notifyingConn) Read(b []byte) (int, error) {
	defer c.read()
	return c.Conn.Read(b)
}

// TestOutputIsBounded checks that MaxOutput includes the message to be added, but that a single message may be longer.
func TestOutputIsBounded(t *testing.T) {
	bubble(t, refserver.Options{MaxOutput: 1000}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		large := strings.Repeat("x", 5000)
		c.Send("ECHO_REQ", large)
		c.Want("ECHO_RES", large)
		c.Send("ECHO_REQ", "still here")
		c.Want("ECHO_RES", "still here")
	})
	synctest.Test(t, func(t *testing.T) {
		srv := refserver.New(machine.New(machine.Options{Host: "test"}),
			refserver.Options{Protocol: gearman.Protocol, MaxOutput: 1000, PauseOutput: 100})
		slow, far := net.Pipe()
		go srv.ServeConn(t.Context(), far)
		near, far := net.Pipe()
		go srv.ServeConn(t.Context(), far)
		w := peertest.New(t, gearman.Protocol, near)
		slow.Write(w.Encode("SUBMIT_JOB", "f", "id", "x"))
		synctest.Wait()
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		h := w.Want("JOB_ASSIGN", "*", "f", "x")[0]
		for _, clients := range []string{"1", "0"} {
			w.Send("WORK_DATA", h, strings.Repeat("x", 600))
			synctest.Wait()
			w.Send("GET_STATUS_UNIQUE", "id")
			w.Want("STATUS_RES_UNIQUE", "id", "1", "1", "0", "0", clients)
		}
		slow.Close()
		srv.Close()
	})
}
