package refserver_test

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/internal/memnet"
	"jobwire/refserver"
	tubes "jobwire/refserver/beanstalk"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/internal/peertest"
)

// TestFullBufferDoesNotDelayOthers checks that the server handles a request of another connection before half of a full
// buffer of requests of the first connection is handled, and sooner if the replies are long.
func TestFullBufferDoesNotDelayOthers(t *testing.T) {
	t.Run("short replies", func(t *testing.T) {
		fullBuffer(t, gearman.Protocol, machine.New(machine.Options{}), "version\n", "getpid", "\n", 64<<10/len("version\n"), 64<<10/len("version\n")/2)
	})
	t.Run("long replies", func(t *testing.T) { // of about 1,000 bytes
		fullBuffer(t, beanstalk.Protocol, tubes.New(tubes.Options{}), "stats\r\n", "list-tube-used", "\r\n", 300, 100)
	})
}

// fullBuffer sends 20 times buffer equal requests on one connection, and requests of the type asks, which end in end,
// on another one. These must not wait for more than most of the other requests.
func fullBuffer(t *testing.T, p *codec.Protocol, m refserver.Machine, request, asks, end string, buffer, most int) {
	all := 20 * buffer
	// The other connection sends a request at ten positions spread over the buffer.
	var asked []int
	for i := range 10 {
		asked = append(asked, 5*buffer+i*(buffer+buffer/10))
	}
	var (
		handled int
		since   int // value of handled when the other connection sent its request
		busy    *refserver.Conn
		waited  []int
		other   *memnet.Conn
	)
	hook := func(c *refserver.Conn, from codec.Side, f *codec.Frame) refserver.Verdict {
		switch {
		case from != codec.Peer:
		case f.Type.Name == asks:
			waited = append(waited, handled-since)
		case busy == nil || c == busy:
			busy = c
			handled++
			if len(asked) > 0 && handled >= asked[0] && len(waited) == 10-len(asked) {
				asked, since = asked[1:], handled
				other.Write([]byte(asks + end))
			}
		}
		return refserver.Verdict{}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that only the server decides whose requests it handles
	srv := refserver.New(m, refserver.Options{Protocol: p, Intercept: hook})
	connect := func() (*memnet.Conn, *sync.WaitGroup) {
		near, far := memnet.Pipe()
		go srv.ServeConn(t.Context(), far)
		var ended sync.WaitGroup
		ended.Go(func() { io.Copy(io.Discard, near) })
		return near, &ended
	}
	one, handledAll := connect()
	var answeredAll *sync.WaitGroup
	other, answeredAll = connect()
	if _, err := one.Write(bytes.Repeat([]byte(request), all)); err != nil {
		t.Fatal(err)
	}
	one.CloseWrite()
	handledAll.Wait()
	other.CloseWrite()
	answeredAll.Wait()
	srv.Close()
	if len(waited) < 8 {
		t.Fatalf("only %d of 10 requests were answered", len(waited))
	}
	if slices.Max(waited) > most {
		t.Errorf("requests of another connection waited for %v requests, expected at most %d", waited, most)
	}
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
		slow := peertest.Connect(t, srv)
		slow.SetReadBuffer(1)
		w := peertest.Dial(t, gearman.Protocol, srv)
		slow.Write(w.Encode("SUBMIT_JOB", "f", "id", "x"))
		synctest.Wait()
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		h := w.Want("JOB_ASSIGN", "*", "f", "x")[0]
		for _, clients := range []string{"1", "0"} {
			w.Send("WORK_DATA", h, strings.Repeat("x", 600))
			w.Send("GET_STATUS_UNIQUE", "id")
			w.Want("STATUS_RES_UNIQUE", "id", "1", "1", "0", "0", clients)
		}
		srv.Close()
	})
}
