package loadgen

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// killWorkers disconnects randomly chosen workers at random times, Config.Kill times per second on average, and
// connects new workers in their place.
func (r *run) killWorkers(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(r.cfg.Seed, 2))
	for sleep(ctx, randomPause(rnd, r.cfg.Kill)) {
		r.kill(ctx, rnd.IntN(r.cfg.Workers))
	}
}

// startIf calls do in a new goroutine, if wanted is true. The returned function cancels the context of do and waits
// until do has returned.
func startIf(ctx context.Context, wanted bool, do func(context.Context)) (stop func()) {
	if !wanted {
		return func() {}
	}
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

// sleep waits for d. It returns false if the context is done earlier.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// randomPause returns a random pause before the next event of a Poisson process. rate is the average number of events
// per second; with rate 0 the pause is longer than any run.
func randomPause(rnd *rand.Rand, rate float64) time.Duration {
	const longest = 1 << 62
	if d := rnd.ExpFloat64() / rate * float64(time.Second); d < longest {
		return time.Duration(d)
	}
	return longest
}

// kill closes the connection of the i-th worker, even if the worker has a job, and connects a new worker in its
// place.
func (r *run) kill(ctx context.Context, i int) {
	r.mu.Lock()
	c := r.workers[i]
	r.mu.Unlock()
	c.mu.Lock() // so that the worker handles no message after others can see that it was killed
	r.mu.Lock()
	r.killed[c.id] = true
	r.mu.Unlock()
	c.close()
	c.mu.Unlock()
	<-c.ended
	r.assumeEnds(c)
	r.mu.Lock()
	// otherwise the buffers of killed workers would use memory until the end of the run
	r.conns = slices.DeleteFunc(r.conns, func(o *Conn) bool { return o == c.Conn })
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

// confirmer is a worker that can list the jobs that it has completed, but whose completion the server has not
// confirmed.
type confirmer interface {
	unconfirmed() []*Job
}

// confirmTime is how long a server may take to assign a job again after the worker that had it has disconnected.
const confirmTime = 500 * time.Millisecond

// assumeEnds handles the jobs of a killed worker that the worker had completed, but whose completion the server had
// not confirmed. A job that the server has not assigned again within confirmTime counts as ended.
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

// wasAssumedEnded reports whether assumeEnds has ended the job with this number.
func (p *peers) wasAssumedEnded(number uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.assumedEnded[number]
}
