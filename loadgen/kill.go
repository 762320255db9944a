package loadgen

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// killWorkers kills workers at random, if the scenario does, until the function that it
// returns is called. Another takes the place of each.
func (r *run) killWorkers(ctx context.Context) (stop func()) {
	if !r.scenario.Kills {
		return func() {}
	}
	rnd := rand.New(rand.NewPCG(r.cfg.Seed, 2))
	return background(ctx, func(ctx context.Context) {
		for sleep(ctx, randomPause(rnd, r.cfg.Kill)) {
			r.kill(ctx, rnd.IntN(r.cfg.Workers))
		}
	})
}

// background calls do in a goroutine. The returned function ends its context, and waits until it has returned.
func background(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// sleep waits, and reports false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// randomPause returns the time until the next of several events that happen at random times, with a rate per second. With rate 0
// it is longer than any run.
func randomPause(rnd *rand.Rand, rate float64) time.Duration {
	const longest = 1 << 62
	if d := rnd.ExpFloat64() / rate * float64(time.Second); d < longest {
		return time.Duration(d)
	}
	return longest
}

// kill ends the i-th worker's connection at once, whatever the worker is doing.
func (r *run) kill(ctx context.Context, i int) {
	r.mu.Lock()
	c := r.workers[i]
	r.mu.Unlock()
	c.mu.Lock() // the worker handles no message after another worker can see that it was killed
	r.mu.Lock()
	r.killed[c.id] = true
	r.mu.Unlock()
	c.close()
	c.mu.Unlock()
	<-c.ended
	r.assumeEnds(c)
	r.mu.Lock()
	r.conns = slices.DeleteFunc(r.conns, func(o *Conn) bool { return o == c.Conn }) // else a long run keeps all their buffers
	r.mu.Unlock()
	if err := r.addWorker(ctx, i); err != nil {
		if ctx.Err() == nil {
			r.fail(err)
		}
		return
	}
	r.mu.Lock()
	c = r.workers[i]
	r.mu.Unlock()
	c.startServing()
}

// confirmer is a worker that waits for the server to confirm the end of jobs.
type confirmer interface {
	unconfirmed() []*Job
}

// confirmTime is how long a server may take to assign a job again after its worker has disconnected.
const confirmTime = 500 * time.Millisecond

// assumeEnds decides about the jobs whose end a killed worker had sent, but which the server had not
// confirmed: those that the server does not assign again have ended.
func (r *run) assumeEnds(worker *WorkerConn) {
	w, ok := worker.worker.(confirmer)
	if !ok {
		return
	}
	type pendingEnd struct {
		job    *Job
		number uint64
		taken  int64
	}
	var open []pendingEnd
	for _, j := range w.unconfirmed() {
		open = append(open, pendingEnd{j, j.number.Load(), j.taken.Load()})
	}
	time.AfterFunc(confirmTime, func() {
		for _, e := range open {
			if e.job.number.Load() != e.number || e.job.taken.Load() != e.taken {
				continue
			}
			r.mu.Lock()
			r.assumedEnded[e.number] = true
			r.mu.Unlock()
			worker.mu.Lock()
			worker.now = r.clock()
			worker.EndSeen(e.job)
			worker.batchEnded()
			worker.mu.Unlock()
		}
	})
}

// wasAssumedEnded reports whether a job was assumed to have ended because its worker was killed.
func (r *run) wasAssumedEnded(number uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.assumedEnded[number]
}
