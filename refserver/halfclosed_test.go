package refserver_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/internal/memnet"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// halfClose submits a job of the function f and closes the client's direction.
func halfClose(c *peertest.Peer) (handle string) {
	c.Send("SUBMIT_JOB", "f", "", "x")
	handle = c.Want("JOB_CREATED", "*")[0]
	c.CloseWrite()
	synctest.Wait()
	return handle
}

// TestHalfClosedWhileProgressComes checks that the server keeps a half-closed client while it gets messages about its job, and
// closes the connection between one and two times DefaultHalfClosed after the last one.
func TestHalfClosedWhileProgressComes(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c, w := dial(), dial()
		h := halfClose(c)
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", h, "f", "x")
		for range 10 {
			time.Sleep(refserver.DefaultHalfClosed - time.Second)
			w.Send("WORK_STATUS", h, "1", "2")
			c.Want("WORK_STATUS", h, "1", "2")
		}
		last := time.Now()
		if err := c.Ended(); err != io.EOF {
			t.Errorf("the connection ends with %v", err)
		}
		if d := time.Since(last); d < refserver.DefaultHalfClosed || d > 2*refserver.DefaultHalfClosed {
			t.Errorf("given up %v after the last message", d)
		}
	})
}

// TestHalfClosedNumber checks that the server closes the first half-closed connections if there are more than MaxHalfClosed, and
// drops their jobs.
func TestHalfClosedNumber(t *testing.T) {
	bubble(t, refserver.Options{MaxHalfClosed: 3}, func(t *testing.T, dial func() *peertest.Peer) {
		var clients []*peertest.Peer
		var handles []string
		for range 5 {
			c := dial()
			clients, handles = append(clients, c), append(handles, halfClose(c))
		}
		w := dial()
		w.Send("CAN_DO", "f")
		for i, c := range clients {
			if i < 2 {
				c.Ended()
				continue
			}
			w.Send("GRAB_JOB")
			w.Want("JOB_ASSIGN", handles[i], "f", "x")
			w.Send("WORK_COMPLETE", handles[i], "y")
			c.Want("WORK_COMPLETE", handles[i], "y")
			c.Ended()
		}
	})
}

// TestHalfClosedMakeRoom checks that the server closes the first half-closed connection at once when file descriptors run out.
func TestHalfClosedMakeRoom(t *testing.T) {
	listening(t, func(t *testing.T, _ *refserver.Server, ln *memnet.Listener, dial func() *peertest.Peer) {
		first, second, other := dial(), dial(), dial()
		start := time.Now()
		halfClose(first)
		h := halfClose(second)
		ln.SetDeadline(time.Now()) // Accept returns a temporary error, as without file descriptors
		synctest.Wait()
		ln.SetDeadline(time.Time{})
		first.Ended()
		if d := time.Since(start); d != 0 {
			t.Errorf("room is made after %v", d)
		}
		other.Send("CAN_DO", "f")
		other.Send("GRAB_JOB")
		other.Want("JOB_ASSIGN", h, "f", "x")
		other.Send("WORK_COMPLETE", h, "y")
		second.Want("WORK_COMPLETE", h, "y")
	})
}
