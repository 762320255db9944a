package loadgen

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// rampClients starts the clients, evenly spread over Config.Ramp.
func (r *run) rampClients(ctx context.Context) {
	step := r.cfg.Ramp / time.Duration(len(r.clients))
	for i := range r.clients {
		r.clients[i].startServing()
		if !sleep(ctx, step) {
			return
		}
	}
}

// reconnectClients makes randomly chosen clients disconnect and reconnect at random times, Config.Reconnect times per
// second on average.
func (r *run) reconnectClients(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(r.cfg.Seed, 4))
	var all sync.WaitGroup
	defer all.Wait()
	for sleep(ctx, randomPause(rnd, r.cfg.Reconnect)) {
		if c := r.clients[rnd.IntN(len(r.clients))]; c.pause() {
			all.Go(func() { r.reconnect(ctx, c) })
		}
	}
}

// idlePoll is the interval in which reconnect checks whether the client has jobs in flight.
const idlePoll = time.Millisecond

// reconnect waits until a paused client has no jobs in flight, closes its connection, opens a new one, and resumes
// the client.
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
	r.reconnects.Add(1)
	c.startServing()
}

// pause stops the client from submitting jobs. It returns false if the client is already paused.
func (c *ClientConn) pause() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.paused
	c.paused = true
	return !was
}

// idle reports whether the client has no jobs in flight and no bytes to write.
func (c *ClientConn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.inFlight() == 0 && !c.out.busy
}
