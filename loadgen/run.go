package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/loadgen/latency"
)

// run is the state of one run.
type run struct {
	cfg             Config
	adapter         *Adapter
	scenario        *Scenario
	base            time.Time // creation of the run; clock counts from it
	filler          payloadContent
	slots           slots
	perClient       int // number of slots of each client
	histogramShards [histogramShards]histogramShard
	ledger          runAccount // counts faults
	history         *history   // nil unless Config.Check is set

	err    chan error // receives the error of the first connection that failed
	memory memory
	progress
	peers
}

// progress counts the jobs of a run.
type progress struct {
	claimed atomic.Int64  // number of jobs that clients have started or may start now
	limit   atomic.Int64  // maximum of claimed
	done    atomic.Int64  // number of jobs that have ended
	target  int64         // value of done at which ready receives a value; 0: never
	ready   chan struct{} // receives a value when done has reached target

	accepted chan struct{} // receives a value after a job is acknowledged; nil: not needed
}

// memory counts the bytes that the connections use for received messages.
type memory struct {
	used  atomic.Int64
	limit atomic.Int64 // grows with the number of connections and the size of payloads
}

// peers are the connections of a run.
type peers struct {
	mu           sync.Mutex // guards the other fields, except clients, which is complete before the first client serves
	conns        []*Conn
	clients      []*ClientConn
	workers      []*WorkerConn
	killed       map[int]bool    // IDs of the connections of killed workers
	assumedEnded map[uint64]bool // numbers of the jobs that assumeEnds has ended
	nextID       int             // ID of the next connection
	closing      bool            // the run closes the connections, so their errors are expected
	reconnects   atomic.Int64    // number of reconnections of clients
}

// clock returns the time since the creation of the run, in nanoseconds.
func (r *run) clock() int64 { return int64(time.Since(r.base)) }

// claimJobs asks for permission to start n more jobs and returns how many of them the client may start, which is
// fewer near the end of the run.
func (p *progress) claimJobs(n int) int {
	over := p.claimed.Add(int64(n)) - p.limit.Load()
	return n - int(min(max(over, 0), int64(n)))
}

// lost ends the run with an error because a connection failed, unless the run itself closed the connection. The
// caller has locked the connection.
func (r *run) lost(c *Conn, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing || r.killed[c.id] {
		return
	}
	r.fail(fmt.Errorf("%s: %w", c.name, err))
}

// fail ends the run with an error. Only the first error counts.
func (r *run) fail(err error) {
	select {
	case r.err <- err:
	default:
	}
}

// wasKilled reports whether the scenario has killed the connection with an ID. The server may then assign the job of
// that connection again.
func (r *run) wasKilled(id int) bool {
	if !r.scenario.Kills && !r.scenario.Crash {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.killed[id]
}

// newRun returns a run for a configuration that Config.Complete has returned.
func newRun(cfg Config) *run {
	a := adapters[cfg.Protocol.Name]
	r := &run{cfg: cfg, filler: newFiller(cfg.Content), adapter: a, scenario: ScenarioOf(cfg.Protocol.Name, cfg.Scenario),
		base: time.Now(), err: make(chan error, 1), progress: progress{ready: make(chan struct{}, 1)},
		peers: peers{killed: map[int]bool{}, assumedEnded: map[uint64]bool{}}}
	if r.cfg.Grabs == 0 {
		r.cfg.Grabs = a.grabs(&r.cfg)
	}
	if cfg.OnInterval == nil {
		r.cfg.OnInterval = func(*Interval) {}
	}
	if cfg.PhaseChange == nil {
		r.cfg.PhaseChange = func() {}
	}
	if cfg.Check {
		r.history = &history{name: r.nameOf}
	}
	r.slots = make(slots, cfg.slots(r.scenario))
	r.perClient = len(r.slots) / cfg.Clients
	for i := range min(histogramShards, cfg.Clients) {
		r.histogramShards[i].hist = latency.New()
	}
	return r
}

// Run connects the clients and workers, performs the run, and returns its result. It blocks until the jobs in flight
// have ended or the timeout Config.DrainTimeout has passed. If the run ends early, the result covers the time until
// then and the error gives the reason; if the run could not start, the result is nil. Canceling ctx interrupts the
// run with the error context.Canceled.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	r := newRun(cfg)
	defer r.closeAll()
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	m := newMeter(r)
	err = r.perform(ctx, m)
	return m.result(err), err
}

// connect opens the connections of all clients and, if the scenario has workers, of all workers.
func (r *run) connect(ctx context.Context) error {
	if err := r.connectClients(ctx); err != nil || r.scenario.NoWorkers() {
		return err
	}
	return r.connectWorkers(ctx)
}

// connectClients opens the connections of all clients.
func (r *run) connectClients(ctx context.Context) error {
	for i := range r.cfg.Clients {
		c, err := r.dial(ctx, "Client "+strconv.Itoa(i+1))
		if err != nil {
			return err
		}
		r.clients = append(r.clients, newClientConn(c, i))
	}
	return nil
}

// connectWorkers opens the connections of all workers.
func (r *run) connectWorkers(ctx context.Context) error {
	for i := range r.cfg.Workers {
		if err := r.addWorker(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// addWorker connects the i-th worker, or replaces it if it exists.
func (r *run) addWorker(ctx context.Context, i int) error {
	conn, err := r.dial(ctx, "Worker "+strconv.Itoa(i+1))
	if err != nil {
		return err
	}
	c := newWorkerConn(conn, i)
	r.mu.Lock()
	defer r.mu.Unlock()
	if i == len(r.workers) {
		r.workers = append(r.workers, c)
	} else {
		r.workers[i] = c
	}
	return nil
}

// nameOf returns the name of a connection in transcripts, given its ID.
func (p *peers) nameOf(id int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.conns, func(c *Conn) bool { return c.id == id })
	if i < 0 {
		return "a worker that was killed"
	}
	return p.conns[i].name
}

// dial opens a connection with a name for messages, and raises the limit of the memory for received data by the share
// of the connection.
func (r *run) dial(ctx context.Context, name string) (*Conn, error) {
	nc, err := r.cfg.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := newConn(r, r.nextID, nc, name)
	r.nextID++
	if r.conns = append(r.conns, c); len(r.conns) == 1 {
		r.memory.limit.Store(minIncoming)
	}
	r.memory.limit.Add(2 * int64(maxBuffer+r.cfg.Size.Hi))
	return c, nil
}

// perform runs the phases of the run: ramp, warm-up, measured part and drain.
func (r *run) perform(ctx context.Context, m *meter) error {
	r.limit.Store(math.MaxInt64)
	if r.cfg.Count > 0 {
		r.limit.Store(r.cfg.Count)
		r.target = r.cfg.Count
	}
	if r.scenario.Backlog {
		return r.performBacklog(ctx, m)
	}
	before := r.cfg.Ramp + r.cfg.Warmup
	if before == 0 {
		m.begin()
	}
	r.startWorkers()
	if r.cfg.Ramp == 0 {
		r.startClients()
	}
	defer startIf(ctx, r.cfg.Ramp > 0, r.rampClients)()
	defer startIf(ctx, r.scenario.Kills, r.killWorkers)()
	stopPacing := startIf(ctx, r.cfg.Rate != nil, func(ctx context.Context) { r.submitScheduled(ctx, m) })
	if before > 0 {
		if err := r.await(ctx, m, time.After(before)); err != nil {
			return err
		}
		m.begin()
		if r.cfg.Count > 0 && r.done.Load() >= r.cfg.Count {
			return errors.New("all jobs finished during the warm-up, so none was measured: raise --count or lower --warmup")
		}
	}
	stopReconnecting := startIf(ctx, r.cfg.Reconnect > 0, r.reconnectClients)
	var over <-chan time.Time
	if r.cfg.Duration > 0 {
		over = time.After(r.cfg.Duration)
	}
	err := r.await(ctx, m, over)
	r.limit.Store(0)
	stopPacing()
	stopReconnecting()
	m.end()
	if err == nil || errors.Is(err, context.Canceled) {
		err = errors.Join(err, r.awaitInFlight(ctx))
		m.endDrain()
	}
	return err
}

// performBacklog queues all jobs, then starts the workers and waits until the jobs are processed.
func (r *run) performBacklog(ctx context.Context, m *meter) error {
	if r.scenario.Enqueue {
		m.begin()
	}
	r.startClients()
	if err := r.await(ctx, m, nil); err != nil {
		return fmt.Errorf("while queuing the jobs: %w", err)
	}
	if r.scenario.Enqueue {
		m.end()
	} else {
		m.begin()
	}
	r.done.Store(0)
	r.startWorkers()
	return r.await(ctx, m, nil)
}

func (r *run) startClients() {
	for _, c := range r.clients {
		c.startServing()
	}
}

func (r *run) startWorkers() {
	for _, c := range r.workers {
		c.startServing()
	}
}

// idleTimeout returns how long the run waits for the next job to end before the jobs in flight count as lost. It
// includes Config.Work, the time that a worker takes for a job.
func (r *run) idleTimeout() time.Duration { return r.cfg.DrainTimeout + r.cfg.Work }

// stall measures for how long a count has not changed.
type stall struct {
	count int64
	since time.Time // when the count was first the present one
}

// time returns for how long the count has not changed. count is its present value.
func (s *stall) time(count int64) time.Duration {
	if count != s.count || s.since.IsZero() {
		s.count, s.since = count, time.Now()
	}
	return time.Since(s.since)
}

// idlePollInterval is the interval in which await checks for progress.
const idlePollInterval = 100 * time.Millisecond

// await waits until the requested number of jobs has ended, over receives a value, a connection fails, or ctx is
// done. If over is nil, it also returns when there was no progress for idleTimeout.
func (r *run) await(ctx context.Context, m *meter, over <-chan time.Time) error {
	tick := time.NewTicker(r.cfg.Interval)
	defer tick.Stop()
	look := time.NewTicker(min(r.cfg.Interval, idlePollInterval))
	defer look.Stop()
	var idle stall
	for {
		select {
		case <-r.ready:
			return nil
		case <-over:
			return nil
		case err := <-r.err:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			m.interval()
		case <-look.C:
			switch {
			case over != nil:
			case r.inFlight() == 0:
				idle = stall{}
			case idle.time(r.done.Load()+r.claimed.Load()) > r.idleTimeout():
				return nil // the jobs in flight count as lost
			}
		}
	}
}

// hastyDrain is how long the jobs in flight may take to end after the run was interrupted.
const hastyDrain = time.Second

// awaitInFlight waits until no job is in flight. It returns early if a connection fails, if no job ends for
// idleTimeout, or after hastyDrain if ctx is done.
func (r *run) awaitInFlight(ctx context.Context) error {
	atOnce, stop := context.WithCancel(context.Background())
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(hastyDrain, stop) })()
	var idle stall
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for r.inFlight() > 0 {
		select {
		case err := <-r.err:
			return err
		case <-atOnce.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if idle.time(r.done.Load()) > r.idleTimeout() {
			return nil
		}
	}
	return nil
}

// inFlight returns the number of jobs in flight.
func (r *run) inFlight() int64 {
	return r.sum(func(c *ClientConn) int64 { return int64(c.pool.inFlight()) })
}

// unacknowledged returns the number of jobs that have finished, but whose submission the server has not acknowledged.
func (r *run) unacknowledged() int64 { return r.countJobs(func(j *Job) bool { return j.ended }) }

// submitted returns the number of jobs that clients have submitted.
func (r *run) submitted() int64 { return r.sum(func(c *ClientConn) int64 { return c.started }) }

// countJobs returns the number of jobs in flight for which is returns true.
func (r *run) countJobs(is func(*Job) bool) int64 {
	return r.sum(func(c *ClientConn) (n int64) {
		for j := range c.pool.underWay() {
			if is(j) {
				n++
			}
		}
		return n
	})
}

// sum returns the sum of a number over all clients. It locks each client while it calls of.
func (r *run) sum(of func(*ClientConn) int64) (n int64) {
	for _, c := range r.clients {
		c.mu.Lock()
		n += of(c)
		c.mu.Unlock()
	}
	return n
}

// lastMessage describes the first job that is still in flight: when it was submitted, and how far it got. It returns
// "" if no job is in flight.
func (r *run) lastMessage() string {
	for _, c := range r.clients {
		if text := c.lastMessage(); text != "" {
			return text
		}
	}
	return ""
}

// lastMessage describes the first job of the connection that is still in flight, or returns "".
func (c *ClientConn) lastMessage() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.pool.underWay() {
		number := s.number.Load()
		text := fmt.Sprintf("# %s: job %#x was submitted %v before the end of the run", c.name, number,
			time.Duration(c.run.clock()-s.start).Round(time.Millisecond))
		if s.acked {
			text += ", acknowledged"
		}
		if conn, assigned := s.holder(); assigned {
			text += ", assigned to " + c.run.nameOf(conn)
		}
		if s.ended {
			return text + "; its result arrived, but no reply to its submission\n"
		}
		return text + "; no result arrived\n"
	}
	return ""
}

// closeAll closes all connections and waits until their goroutines have ended.
func (r *run) closeAll() {
	r.mu.Lock()
	r.closing = true
	conns := slices.Clone(r.conns)
	r.mu.Unlock()
	for _, c := range conns {
		c.closeNow()
	}
	for _, c := range conns {
		if c.serving.Load() {
			<-c.ended
		}
	}
}
