package loadgen

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// disturb kills workers at random, if the scenario does, until the function that it
// returns is called. Another takes the place of each.
func (r *run) disturb(ctx context.Context) (stop func()) {
	if !r.scenario.Kills || r.cfg.Kill <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		rnd := rand.New(rand.NewPCG(r.cfg.Seed, 2))
		for {
			select {
			case <-time.After(time.Duration(rnd.ExpFloat64() / r.cfg.Kill * float64(time.Second))):
			case <-ctx.Done():
				return
			}
			r.kill(ctx, rnd.IntN(r.cfg.Workers))
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// kill ends the i-th worker's connection without a word, whatever it was doing.
func (r *run) kill(ctx context.Context, i int) {
	r.mu.Lock()
	c := r.workers[i]
	r.killed[c.id] = true
	r.mu.Unlock()
	c.hangUp()
	<-c.ended
	r.doubt(c)
	r.mu.Lock()
	r.conns = slices.DeleteFunc(r.conns, func(o *conn) bool { return o == c }) // else a long run keeps all their buffers
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
	r.serve([]*conn{c})
}

// doubter is a worker that may know jobs to be at their end, though the server has not said so.
type doubter interface {
	unconfirmed() []*slot
}

// doubtful is how long a server may take to give a job out again whose worker is gone.
const doubtful = 500 * time.Millisecond

// doubt settles what became of the jobs whose end a killed worker had reported without having
// seen that it was heard: those that are not given out again have ended.
func (r *run) doubt(worker *conn) {
	d, ok := worker.peer.(doubter)
	if !ok {
		return
	}
	type doubt struct {
		slot   *slot
		number uint64
		taken  int64
	}
	var open []doubt
	for _, s := range d.unconfirmed() {
		open = append(open, doubt{s, s.number.Load(), s.taken.Load()})
	}
	time.AfterFunc(doubtful, func() {
		for _, d := range open {
			if d.slot.number.Load() != d.number || d.slot.taken.Load() != d.taken {
				continue
			}
			r.mu.Lock()
			r.doubted[d.number] = true
			r.mu.Unlock()
			worker.mu.Lock()
			worker.tell(d.slot)
			told := worker.takeTold()
			worker.mu.Unlock()
			tellAll(told, r.clock())
		}
	})
}

// wasDoubted reports whether a job was taken to have ended because its worker was killed.
func (r *run) wasDoubted(number uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubted[number]
}
