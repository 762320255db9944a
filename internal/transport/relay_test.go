package transport

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/internal/memnet"
)

// TestRelayEnds: a connection is reset if the server cannot be reached. A connection to a server that does not read ends
// drainTimeout after the relay.
func TestRelayEnds(t *testing.T) {
	for _, reached := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var r Relay
			ln, err := memnet.Listen("")
			if err != nil {
				t.Fatal(err)
			}
			c, err := memnet.Dial(t.Context(), ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			dial := func(context.Context) (net.Conn, error) {
				if !reached {
					return nil, errors.New("refused")
				}
				near, _ := memnet.Pipe()
				return near, nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				ended <- r.Serve(ctx, ln, dial, func(near, far net.Conn) {
					Forward(far, near, func(b []byte) error {
						_, err := far.Write(b)
						return err
					})
				})
			}()
			if reached {
				c.SetWriteDeadline(time.Now().Add(time.Minute)) // until all buffers are full
				for err := error(nil); err == nil; _, err = c.Write(make([]byte, 1<<20)) {
				}
			} else if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the server cannot be reached: %v", err)
			}
			began, want := time.Now(), time.Duration(0)
			if reached {
				want = drainTimeout
			}
			cancel()
			if err := <-ended; err != nil || time.Since(began) != want {
				t.Errorf("%v after %v, want nil after %v", err, time.Since(began), want)
			}
		})
	}
}

// TestRelayDrains: Drain returns shortly after the last connection has ended, or when its time limit has passed.
func TestRelayDrains(t *testing.T) {
	for open, want := range map[time.Duration]time.Duration{0: acceptTime, time.Second: time.Second + acceptTime, time.Hour: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var r Relay
			ln, err := memnet.Listen("")
			if err != nil {
				t.Fatal(err)
			}
			c, err := memnet.Dial(t.Context(), ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			dial := func(context.Context) (net.Conn, error) {
				near, _ := memnet.Pipe()
				return near, nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.Serve(ctx, ln, dial, func(near, far net.Conn) { Forward(far, near, nil) }) }()
			synctest.Wait()
			began := time.Now()
			time.AfterFunc(open, func() { Reset(c) })
			r.Drain(time.Minute)
			if took := time.Since(began); took != want {
				t.Errorf("a connection ends after %v: expected %v, got %v", open, want, took)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
