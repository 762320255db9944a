package transport

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/internal/memnet"
)

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
