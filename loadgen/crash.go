package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"jobwire/internal/prose"
	"jobwire/internal/version"
)

// Crash tests what a server keeps when it is killed. In each round, clients queue jobs, the server is killed and started again, and
// workers take all jobs that it has. Each job that the server had acknowledged must come back exactly once.
type Crash struct {
	Config    Config        // of the clients and workers, with a scenario that kills the server; Rate, Duration and Dial are not used
	Kills     int           // rounds
	After     time.Duration // from the start of the load to the kill, on average; half to one and a half of it
	AllowLoss time.Duration // jobs acknowledged so shortly before a kill may be lost

	// Start starts the server with what it has stored.
	Start func(context.Context) (Server, error)
	// Watch is called after each round. It may be nil.
	Watch func(*CrashRound)
}

// Server is a server that can be killed.
type Server interface {
	Dial(context.Context) (net.Conn, error)
	Kill() // ends the process with SIGKILL, and returns when it has ended
}

// CrashRound is what happened to the jobs of one round. Times are in seconds.
type CrashRound struct {
	Acknowledged   int64   `json:"acknowledged"`
	Completed      int64   `json:"completed"`      // before the kill
	Kept           int64   `json:"kept"`           // assigned after the restart
	Lost           int64   `json:"lost"`           // acknowledged, and not assigned after the restart
	Allowed        int64   `json:"lost_allowed"`   // of these, acknowledged so shortly before the kill that they may be lost
	Window         float64 `json:"loss_window"`    // from the acknowledgement of the first lost job to the kill; 0 if none was lost
	Repeated       int64   `json:"repeated"`       // assigned again although they were completed
	OutOfOrder     int64   `json:"out_of_order"`   // assigned before an older job of the same client and function
	Corrupted      int64   `json:"corrupted"`      // the payload is not that of any job
	InProgress     int64   `json:"in_progress"`    // a worker had them when the server was killed: they may come back or not
	Unacknowledged int64   `json:"unacknowledged"` // assigned after the restart, although the acknowledgement did not arrive
	Refused        int64   `json:"refused"`        // submissions that the server refused
	Uptime         float64 `json:"uptime"`         // from the start of the load to the kill
	Restart        float64 `json:"restart"`        // until the server accepted a connection again

	First string `json:"first_anomaly,omitempty"`
}

// CrashReport is the result of a [Crash].
type CrashReport struct {
	Jobwire     version.Info `json:"jobwire"`
	Environment *Environment `json:"environment,omitempty"`
	Verdict     Verdict      `json:"verdict"`
	Reasons     []string     `json:"verdict_reasons"`
	Protocol    string       `json:"protocol"`
	Target      string       `json:"target"`
	Clients     int          `json:"clients"`
	Window      int          `json:"window"`
	Allowed     float64      `json:"allowed_loss_window"` // in seconds
	Rounds      []CrashRound `json:"rounds"`
	Total       CrashRound   `json:"total"` // sums, the longest window and restart
	Error       string       `json:"error,omitempty"`
}

// minWorkTime is how long workers take for a job before the kill, so that jobs are left.
const minWorkTime = time.Millisecond

// Run performs the test. The report is nil if the server could not be started at all.
func (k *Crash) Run(ctx context.Context) (*CrashReport, error) {
	srv, err := k.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if srv != nil {
			srv.Kill()
		}
	}()
	r := &CrashReport{Jobwire: version.Get(), Protocol: k.Config.Protocol.Name, Clients: k.Config.Clients, Window: k.Config.Window, Allowed: k.AllowLoss.Seconds(), Reasons: []string{}}
	rnd := rand.New(rand.NewPCG(k.Config.Seed, 3))
	for n := range k.Kills {
		up := time.Duration((0.5 + rnd.Float64()) * float64(k.After))
		var round *CrashRound
		if round, err = k.round(ctx, n, &srv, up); round != nil {
			r.add(round)
			if k.Watch != nil {
				k.Watch(round)
			}
		}
		if err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Error = err.Error()
	}
	r.conclude(k.Kills)
	return r, err
}

// round loads the server, kills and restarts it, and counts what it has kept. srv is nil if the server did not start again.
func (k *Crash) round(ctx context.Context, n int, srv *Server, up time.Duration) (*CrashRound, error) {
	cfg, err := k.Config.Complete()
	if err != nil {
		return nil, err
	}
	cfg.Prefix = fmt.Sprintf("%s-%d", cfg.Prefix, n+1) // what is left of one round is not part of the next
	cfg.Dial = func(ctx context.Context) (net.Conn, error) { return (*srv).Dial(ctx) }
	r := newRun(cfg)
	defer r.closeAll()
	r.limit.Store(cfg.Count)
	r.target = cfg.Count
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
	select {
	case <-time.After(up):
	case <-r.ready: // all jobs are queued
	case err := <-r.err:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
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
	completed, unacknowledged := r.ends()
	round.Refused = r.ledger.account().Refused
	round.Completed = completed
	round.Acknowledged = r.submitted() - unacknowledged - round.Refused

	begin, *srv = time.Now(), nil
	if *srv, err = k.Start(ctx); err != nil {
		return round, fmt.Errorf("after the kill: %w", err)
	}
	round.Restart = time.Since(begin).Seconds()
	r.cfg.Work = k.Config.Work
	err = r.takeAll(ctx)
	r.count(round, inProgress, assigned, killed, k.AllowLoss)
	return round, err
}

// killServer kills the server, and waits until all that it had sent is handled. It returns the time of the kill on the clock of the run.
func (r *run) killServer(srv Server) int64 {
	r.mu.Lock()
	r.closing = true // connections that end now do not end the run
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

// ends returns how many jobs were completed, and how many are not acknowledged.
func (r *run) ends() (completed, unacknowledged int64) {
	completed = r.submitted() - r.ledger.account().Refused
	for _, c := range r.clients {
		for j := range c.pool.underWay() {
			if completed--; !j.acked {
				unacknowledged++
			}
		}
	}
	return completed, unacknowledged
}

// loadTime is how long a server may refuse requests after its restart, while it loads what it has stored.
const loadTime = 30 * time.Second

// takeAll has workers take all jobs.
func (r *run) takeAll(ctx context.Context) error {
	before := r.ledger.account()
	for begin := time.Now(); ; {
		done := r.done.Load()
		r.mu.Lock()
		r.workers, r.closing = nil, false
		r.mu.Unlock()
		err := r.connectWorkers(ctx)
		if err == nil {
			r.startWorkers()
			err = r.drain(ctx)
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

// noAssignTimeout is how long no job must be assigned if none is missing.
const noAssignTimeout = 500 * time.Millisecond

// drain waits until no more jobs are assigned: for a short time if all have been, so that repeated jobs are seen too.
func (r *run) drain(ctx context.Context) error {
	last, since, looked := int64(-1), time.Now(), false
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for time.Since(since) < r.cfg.DrainTimeout {
		if !looked && time.Since(since) > noAssignTimeout {
			if looked = true; !r.missing() {
				return nil
			}
		}
		select {
		case err := <-r.err:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		a := r.ledger.account()
		if now := r.done.Load() + a.Duplicated + a.Redelivered + a.Corrupted; now != last {
			last, since, looked = now, time.Now(), false
		}
	}
	return nil
}

// missing reports whether jobs that were acknowledged have not been assigned.
func (r *run) missing() bool {
	for _, c := range r.clients {
		c.mu.Lock()
		for j := range c.pool.underWay() {
			if j.acked {
				c.mu.Unlock()
				return true
			}
		}
		c.mu.Unlock()
	}
	return false
}

// count adds the jobs of a round to the counters. Of the jobs that are missing, the oldest may have been assigned to workers without
// the assignment having arrived: at most so many.
func (r *run) count(round *CrashRound, inProgress map[*Job]bool, assigned int, killed int64, allow time.Duration) {
	var missing []int64 // when they were acknowledged
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

// add adds a round.
func (r *CrashReport) add(c *CrashRound) {
	r.Rounds = append(r.Rounds, *c)
	t := &r.Total
	t.Acknowledged += c.Acknowledged
	t.Completed += c.Completed
	t.Kept += c.Kept
	t.Lost += c.Lost
	t.Allowed += c.Allowed
	t.Repeated += c.Repeated
	t.OutOfOrder += c.OutOfOrder
	t.Corrupted += c.Corrupted
	t.InProgress += c.InProgress
	t.Unacknowledged += c.Unacknowledged
	t.Refused += c.Refused
	t.Uptime += c.Uptime
	t.Window, t.Restart = max(t.Window, c.Window), max(t.Restart, c.Restart)
	if t.First == "" {
		t.First = c.First
	}
}

// conclude enters the verdict.
func (r *CrashReport) conclude(kills int) {
	jobs := func(n int64) string { return plural(int(n), "job") }
	t := &r.Total
	for _, v := range []struct {
		n    int64
		what string
	}{
		{t.Lost - t.Allowed, "lost: acknowledged, and not there after the restart"},
		{t.Repeated, "assigned again after they had been completed"},
		{t.Corrupted, "corrupted: the received payload differs from the payload that was sent"},
	} {
		if v.n > 0 {
			r.Reasons = append(r.Reasons, jobs(v.n)+" "+v.what)
		}
	}
	if r.Error != "" {
		r.Reasons = append(r.Reasons, "the test ended early: "+r.Error)
	}
	switch {
	case len(r.Reasons) > 0:
		r.Verdict = Failed
	case len(r.Rounds) < kills:
		r.Verdict, r.Reasons = Invalid, []string{fmt.Sprintf("interrupted after %d of %d kills", len(r.Rounds), kills)}
	case t.Acknowledged == t.Completed:
		r.Verdict, r.Reasons = Invalid, []string{"the server had no unfinished jobs when it was killed; raise --kill-after or lower --workers"}
	default:
		r.Verdict = Passed
	}
}

// WriteText writes the report for people.
func (r *CrashReport) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s crash on %s\n  %s, window %s, %s\n\n", r.Protocol, r.Target, plural(r.Clients, "client"), prose.Grouped(int64(r.Window)), plural(len(r.Rounds), "kill"))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "kill\tacknowledged\tcompleted\tkept\tlost\tloss window\trepeated\trestart\t")
	row := func(name string, c *CrashRound) {
		window := "-"
		if c.Lost > 0 {
			window = seconds(c.Window)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, prose.Grouped(c.Acknowledged), prose.Grouped(c.Completed), prose.Grouped(c.Kept), prose.Grouped(c.Lost), window,
			prose.Grouped(c.Repeated), seconds(c.Restart))
	}
	for i := range r.Rounds {
		row(fmt.Sprint(i+1), &r.Rounds[i])
	}
	row("all", &r.Total)
	t.Flush()
	b.WriteByte('\n')
	for _, v := range []struct {
		n    int64
		what string
	}{
		{r.Total.OutOfOrder, "assigned before an older job of the same client and queue"},
		{r.Total.InProgress, "not assigned again: a worker had them, or their assignment was under way, when the server was killed"},
		{r.Total.Unacknowledged, "kept, although the acknowledgement had not arrived"},
		{r.Total.Refused, "refused"},
	} {
		if v.n > 0 {
			wrap(&b, "note", plural(int(v.n), "job")+" "+v.what)
		}
	}
	if r.Total.First != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(r.Total.First, "\n"))
	}
	text := string(r.Verdict)
	if len(r.Reasons) > 0 {
		text += ": " + strings.Join(r.Reasons, "; ")
	}
	wrap(&b, "verdict", text)
	_, err := io.WriteString(w, b.String())
	return err
}

// seconds writes a time in seconds.
func seconds(s float64) string { return Micros(s * 1e6).String() }

// WriteJSON writes the report as one object.
func (r *CrashReport) WriteJSON(w io.Writer) error { return writeIndented(w, r) }
