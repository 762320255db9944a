package loadgen

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// serveClients lets all clients begin, one after the other in the time of the ramp. The returned function ends that.
func (r *run) serveClients(ctx context.Context) (stop func()) {
	if r.cfg.Ramp == 0 {
		r.startClients()
		return func() {}
	}
	step := r.cfg.Ramp / time.Duration(len(r.clients))
	return background(ctx, func(ctx context.Context) {
		for i := range r.clients {
			r.clients[i].startServing()
			if !sleep(ctx, step) {
				return
			}
		}
	})
}

// reconnectClients has clients disconnect and connect again at random times, until the returned function is called.
func (r *run) reconnectClients(ctx context.Context) (stop func()) {
	if r.cfg.Reconnect == 0 {
		return func() {}
	}
	rnd := rand.New(rand.NewPCG(r.cfg.Seed, 4))
	return background(ctx, func(ctx context.Context) {
		var all sync.WaitGroup
		defer all.Wait()
		for sleep(ctx, randomPause(rnd, r.cfg.Reconnect)) {
			if c := r.clients[rnd.IntN(len(r.clients))]; c.pause() {
				all.Go(func() { r.reconnect(ctx, c) })
			}
		}
	})
}

// idlePoll is how often a run tests whether a client that is to reconnect has jobs in flight.
const idlePoll = time.Millisecond

// reconnect has a client that was paused end its jobs, disconnect and connect again.
func (r *run) reconnect(ctx context.Context, c *ClientConn) {
	for !c.idle() {
		if !sleep(ctx, idlePoll) {
			return
		}
	}
	c.closeNow()
	<-c.ended
	nc, err := r.cfg.Dial(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.fail(err)
		}
		return
	}
	c.mu.Lock()
	c.use(nc)
	c.reset()
	c.paused = false
	c.mu.Unlock()
	r.again.Add(1)
	c.startServing()
}

// pause stops the client from submitting jobs. It reports false if it already has.
func (c *ClientConn) pause() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.paused
	c.paused = true
	return !was
}

// idle reports whether the client has no jobs in flight, and nothing to write.
func (c *ClientConn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.inFlight() == 0 && !c.busy
}
