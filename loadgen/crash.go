package loadgen

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"
)

// Crash tests which jobs a server keeps when it is killed. In a round, clients queue jobs, the test kills and restarts
// the server, and workers take all jobs that the server still has. The server must assign each acknowledged job that
// was not completed before the kill exactly once.
type Crash struct {
	// configuration of the clients and workers, with a scenario that has Crash set; Rate, Duration and Dial are ignored
	Config Config
	// lost jobs are allowed if the server acknowledged them at most this time before the kill; 0: none are allowed
	AllowLoss time.Duration

	// Start starts the server with the data that it has stored.
	Start func(context.Context) (Server, error)
	// Waiting is called when the restarted server assigns no more jobs, although some are missing, before the test
	// waits for them. It may be nil.
	Waiting func(missing int64, atMost time.Duration)
}

// Server is a running server that can be killed.
type Server interface {
	Dial(context.Context) (net.Conn, error) // opens a connection to the server
	Kill()                                  // ends the process with SIGKILL and waits until it has ended
}

// CrashRound counts the jobs of one round. Times are in seconds.
type CrashRound struct {
	Acknowledged int64 `json:"acknowledged"` // the server acknowledged the submission
	Completed    int64 `json:"completed"`    // completed before the kill
	Kept         int64 `json:"kept"`         // acknowledged, and assigned after the restart
	// acknowledged, neither completed nor in progress at the kill, and not assigned after the restart
	Lost    int64 `json:"lost"`
	Allowed int64 `json:"lost_allowed"` // lost jobs that Crash.AllowLoss permits
	// time from the acknowledgement of the first lost job to the kill; 0 if none was lost
	Window float64 `json:"loss_window"`
	// assigned again although they had been completed or assigned after the restart
	Repeated   int64 `json:"repeated"`
	OutOfOrder int64 `json:"out_of_order"` // assigned after a newer job of the same client and function
	Corrupted  int64 `json:"corrupted"`    // assigned with a payload that no client submitted
	// not assigned again because a worker had them at the kill, or their assignment was on its way; the server may lose
	// them
	InProgress int64 `json:"in_progress"`
	// assigned after the restart, although the client had received no acknowledgement
	Unacknowledged int64   `json:"unacknowledged"`
	Refused        int64   `json:"refused"` // submissions that the server answered with an error
	Uptime         float64 `json:"uptime"`  // time from the start of the load to the kill
	Restart        float64 `json:"restart"` // time until the restarted server accepted a connection

	First string `json:"first_anomaly,omitempty"` // the first fault, as in Account.First
}

// minWorkTime is how long workers take for a job before the kill, so that some jobs are unfinished at the kill.
const minWorkTime = time.Millisecond

// settleAfterLoss is how long the test waits for missing jobs if it has failed, because jobs were lost in an earlier
// round.
const settleAfterLoss = time.Second

// maxFirst is how long the test waits for the first acknowledged job.
const maxFirst = 10 * time.Second

// Round performs one round: it loads the server, kills and restarts it, and counts the jobs that the server kept. n
// is the index of the round. up is the time from the first acknowledged job to the kill: a server that has acknowledged
// nothing can lose nothing. If the server acknowledges no job for maxFirst and up, it is killed then. lost reports
// whether an earlier round lost jobs. If the server does not restart, Round sets *srv to nil.
func (cr *Crash) Round(ctx context.Context, n int, srv *Server, up time.Duration, lost bool) (*CrashRound, error) {
	cfg, err := cr.Config.Complete()
	if err != nil {
		return nil, err
	}
	if lost {
		cfg.DrainTimeout = min(cfg.DrainTimeout, settleAfterLoss)
	}
	cfg.Prefix = fmt.Sprintf("%s-%d", cfg.Prefix, n+1) // jobs that remain from one round must not appear in the next
	cfg.Dial = func(ctx context.Context) (net.Conn, error) { return (*srv).Dial(ctx) }
	r := newRun(cfg)
	defer r.closeAll()
	r.limit.Store(cfg.Count)
	r.target, r.accepted = cfg.Count, make(chan struct{}, 1)
	if err := r.connectClients(ctx); err != nil {
		return nil, err
	}
	if r.adapter.confirmsEnds() {
		r.cfg.Work = minWorkTime
		if err := r.connectWorkers(ctx); err != nil {
			return nil, err
		}
	}
	r.startWorkers()
	r.startClients()
	begin := time.Now()
	kill := time.After(maxFirst + up)
	for accepted, waits := r.accepted, true; waits; {
		select {
		case <-accepted:
			kill, accepted = time.After(up), nil
		case <-kill:
			waits = false
		case <-r.ready: // all jobs are queued
			waits = false
		case err := <-r.err:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	round := &CrashRound{Uptime: time.Since(begin).Seconds()}
	killed := r.killServer(*srv)
	inProgress := map[*Job]bool{}
	for _, c := range r.clients {
		for j := range c.pool.underWay() {
			if _, assigned := j.holder(); assigned {
				inProgress[j] = true
			}
		}
	}
	assigned := 0
	if r.adapter.Forgets {
		assigned = len(r.workers) - len(inProgress)
	}
	round.Refused = r.ledger.account().Refused
	round.Completed = r.submitted() - round.Refused - r.inFlight()
	round.Acknowledged = r.submitted() - round.Refused - r.countJobs(func(j *Job) bool { return !j.acked })

	begin, *srv = time.Now(), nil
	if *srv, err = cr.Start(ctx); err != nil {
		return round, fmt.Errorf("after the kill: %w", err)
	}
	round.Restart = time.Since(begin).Seconds()
	r.cfg.Work = cr.Config.Work
	err = r.takeAll(ctx, cr.Waiting)
	r.count(round, inProgress, assigned, killed, cr.AllowLoss)
	return round, err
}

// killServer kills the server, and waits until all messages that the server had sent are handled. It returns the time
// of the kill on run.clock.
func (r *run) killServer(srv Server) int64 {
	r.mu.Lock()
	r.closing = true // errors of connections do not end the run from now on
	for _, c := range r.workers {
		r.killed[c.id] = true
	}
	conns := r.conns
	r.mu.Unlock()
	at := r.clock()
	srv.Kill()
	for _, c := range conns {
		<-c.ended
	}
	return at
}

// loadTime is how long a restarted server may refuse requests while it loads its stored data.
const loadTime = 30 * time.Second

// takeAll connects workers that take all jobs of the server. If the workers fail before a job was completed, it tries
// again, until loadTime has passed.
func (r *run) takeAll(ctx context.Context, waiting func(int64, time.Duration)) error {
	before := r.ledger.account()
	for begin := time.Now(); ; {
		done := r.done.Load()
		r.mu.Lock()
		r.workers, r.closing = nil, false
		r.mu.Unlock()
		err := r.connectWorkers(ctx)
		if err == nil {
			r.startWorkers()
			err = r.drain(ctx, waiting)
		}
		if err == nil || ctx.Err() != nil || r.done.Load() > done || time.Since(begin) > loadTime {
			return err
		}
		r.mu.Lock()
		r.closing = true
		r.mu.Unlock()
		for _, c := range r.workers {
			c.closeNow()
			<-c.ended
		}
		r.ledger.mu.Lock()
		r.ledger.Account = before
		r.ledger.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
	}
}

// noAssignTimeout is how long drain waits for further assignments when no acknowledged job is missing.
const noAssignTimeout = 500 * time.Millisecond

// drain waits until the server assigns no more jobs: for noAssignTimeout if no acknowledged job is missing, so that
// jobs that are assigned again are detected, and otherwise for Config.DrainTimeout.
func (r *run) drain(ctx context.Context, waiting func(missing int64, atMost time.Duration)) error {
	var idle stall
	counted := false // the missing jobs were counted after the last assignment
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-r.err:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		a := r.ledger.account()
		quiet := idle.time(r.done.Load() + a.Duplicated + a.Redelivered + a.Corrupted)
		switch {
		case quiet > r.cfg.DrainTimeout:
			return nil
		case quiet <= noAssignTimeout:
			counted = false
		case !counted:
			counted = true
			missing := r.missing()
			if missing == 0 {
				return nil
			}
			if waiting != nil {
				waiting(missing, r.cfg.DrainTimeout)
				waiting = nil
			}
		}
	}
}

// missing returns the number of jobs that the server acknowledged, but has not assigned.
func (r *run) missing() int64 { return r.countJobs(func(j *Job) bool { return j.acked }) }

// count sets the counters of a round. assigned is the maximum number of missing jobs that the server may have
// assigned to workers without the assignment arriving; these are the oldest. killed is the time of the kill on
// run.clock.
func (r *run) count(round *CrashRound, inProgress map[*Job]bool, assigned int, killed int64, allow time.Duration) {
	var missing []int64 // times of their acknowledgement
	for _, c := range r.clients {
		c.mu.Lock()
		for j := range c.pool.underWay() {
			switch {
			case j.acked && inProgress[j]:
				round.InProgress++
			case j.acked:
				missing = append(missing, j.created)
			case j.ended:
				round.Unacknowledged++
			}
		}
		c.mu.Unlock()
	}
	slices.Sort(missing)
	assigned = min(assigned, len(missing))
	round.InProgress += int64(assigned)
	first := killed
	for _, created := range missing[assigned:] {
		first = min(first, created)
		round.Lost++
		if allow > 0 && killed-created <= int64(allow) {
			round.Allowed++
		}
	}
	a := r.ledger.account()
	round.Window = time.Duration(killed - first).Seconds()
	round.Repeated, round.OutOfOrder, round.Corrupted, round.First = a.Duplicated, a.OutOfOrder, a.Corrupted, a.First
	round.Kept = round.Acknowledged - round.Completed - round.Lost - round.InProgress
}
