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

	"jobwire/internal/page"
	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
)

// Crash tests which jobs a server keeps when it is killed. In each round, clients queue jobs, the test kills and
// restarts the server, and workers take all jobs that the server still has. The server must assign each acknowledged
// job that was not completed before the kill exactly once.
type Crash struct {
	// configuration of the clients and workers, with a scenario that has Crash set; Rate, Duration and Dial are ignored
	Config Config
	Kills  int // number of rounds
	// average time from the start of the load to the kill; the time is random, from half to one and a half times the
	// average
	After time.Duration
	// lost jobs are allowed if the server acknowledged them at most this time before the kill; 0: none are allowed
	AllowLoss time.Duration

	// Start starts the server with the data that it has stored. It is called at the beginning and after each kill.
	Start func(context.Context) (Server, error)
	// Watch is called after each round. It may be nil.
	Watch func(*CrashRound)
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

// CrashReport is the result of a [Crash].
type CrashReport struct {
	version.Head
	Environment *machine.Environment `json:"environment,omitempty"`
	Verdict     Verdict              `json:"verdict"`
	Reasons     []string             `json:"verdict_reasons"`
	Protocol    string               `json:"protocol"`
	Scenario    string               `json:"scenario"`
	Target      string               `json:"target"`
	Started     time.Time            `json:"started"`
	Clients     int                  `json:"clients"`
	Window      int                  `json:"window"`              // jobs in flight for each client
	Allowed     float64              `json:"allowed_loss_window"` // Crash.AllowLoss in seconds
	Rounds      []CrashRound         `json:"rounds"`
	// sums of the rounds; Window and Restart are the longest of the rounds
	Total CrashRound `json:"total"`
	Error string     `json:"error,omitempty"` // why the test ended early; "" if it did not
}

// minWorkTime is how long workers take for a job before the kill, so that some jobs are unfinished at the kill.
const minWorkTime = time.Millisecond

// Run performs the test. If it ends early, it returns the report of the rounds so far and an error. The report is nil
// if the server could not be started the first time.
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
	r := &CrashReport{Head: version.NewHead(), Protocol: k.Config.Protocol.Name, Scenario: k.Config.Scenario,
		Started: time.Now().UTC().Round(time.Millisecond), Clients: k.Config.Clients, Window: k.Config.Window,
		Allowed: k.AllowLoss.Seconds(),
		Reasons: []string{}, Rounds: []CrashRound{}}
	rnd := rand.New(rand.NewPCG(k.Config.Seed, 3))
	for n := range k.Kills {
		up := time.Duration((0.5 + rnd.Float64()) * float64(k.After))
		var round *CrashRound
		round, err = k.round(ctx, n, &srv, up, r.Total.Lost > r.Total.Allowed)
		if round != nil && ctx.Err() == nil { // an interrupted round did not wait for its jobs
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

// settleAfterLoss is how long the test waits for missing jobs if it has failed, because jobs were lost in an earlier
// round.
const settleAfterLoss = time.Second

// round performs one round: it loads the server, kills and restarts it, and counts the jobs that the server kept. n
// is the index of the round, up the time from the start of the load to the kill. lost reports
// whether an earlier round lost jobs. If the server does not restart, round sets *srv to nil.
func (k *Crash) round(ctx context.Context, n int, srv *Server, up time.Duration, lost bool) (*CrashRound, error) {
	cfg, err := k.Config.Complete()
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
	round.Refused = r.ledger.account().Refused
	round.Completed = r.submitted() - round.Refused - r.inFlight()
	round.Acknowledged = r.submitted() - round.Refused - r.countJobs(func(j *Job) bool { return !j.acked })

	begin, *srv = time.Now(), nil
	if *srv, err = k.Start(ctx); err != nil {
		return round, fmt.Errorf("after the kill: %w", err)
	}
	round.Restart = time.Since(begin).Seconds()
	r.cfg.Work = k.Config.Work
	err = r.takeAll(ctx, k.Waiting)
	r.count(round, inProgress, assigned, killed, k.AllowLoss)
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
	last, since, looked := int64(-1), time.Now(), false
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for time.Since(since) < r.cfg.DrainTimeout {
		if !looked && time.Since(since) > noAssignTimeout {
			looked = true
			missing := r.missing()
			if missing == 0 {
				return nil
			}
			if waiting != nil {
				waiting(missing, r.cfg.DrainTimeout)
				waiting = nil
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

// add adds a round to the report and its counts to Total.
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

// conclude sets the verdict. kills is the requested number of rounds.
func (r *CrashReport) conclude(kills int) {
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
			r.Reasons = append(r.Reasons, prose.Count(v.n, "job")+" "+v.what)
		}
	}
	if r.Error != "" {
		r.Reasons = append(r.Reasons, "the test ended early: "+r.Error)
	}
	switch {
	case len(r.Reasons) > 0:
		r.Verdict = Failed
	case len(r.Rounds) < kills:
		r.Verdict, r.Reasons = Failed, []string{fmt.Sprintf("interrupted after %d of %d kills", len(r.Rounds), kills)}
	case t.Acknowledged == t.Completed:
		r.Verdict, r.Reasons = Invalid, []string{"the server had no unfinished jobs when it was killed; raise --kill-after or lower --workers"}
	default:
		r.Verdict = Passed
	}
}

// crashHeader has the titles of the columns of table.
var crashHeader = []string{"kill", "acknowledged", "completed", "kept", "lost", "loss window", "repeated", "restart"}

// table returns the figures of each round, and of all rounds together.
func (r *CrashReport) table() (rows [][]string) {
	add := func(name string, c *CrashRound) {
		window := "-"
		if c.Lost > 0 {
			window = seconds(c.Window)
		}
		rows = append(rows, []string{name, prose.Grouped(c.Acknowledged), prose.Grouped(c.Completed), prose.Grouped(c.Kept),
			prose.Grouped(c.Lost), window,
			prose.Grouped(c.Repeated), seconds(c.Restart)})
	}
	for i := range r.Rounds {
		add(fmt.Sprint(i+1), &r.Rounds[i])
	}
	add("all", &r.Total)
	return rows
}

// notes returns what happened to jobs and does not affect the verdict.
func (r *CrashReport) notes() (all []string) {
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
			all = append(all, prose.Count(v.n, "job")+" "+v.what)
		}
	}
	return all
}

// load describes the load in words.
func (r *CrashReport) load() string {
	return fmt.Sprintf("%s, window %s, %s", prose.Count(r.Clients, "client"), prose.Grouped(int64(r.Window)),
		prose.Count(len(r.Rounds), "kill"))
}

// answer returns the verdict with its reasons.
func (r *CrashReport) answer() string {
	if len(r.Reasons) == 0 {
		return string(r.Verdict)
	}
	return string(r.Verdict) + ": " + strings.Join(r.Reasons, "; ")
}

// WriteText writes the report as text.
func (r *CrashReport) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s on %s\n  %s\n\n", r.Protocol, r.Scenario, r.Target, r.load())
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{crashHeader}, r.table()...) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
	b.WriteByte('\n')
	for _, note := range r.notes() {
		wrap(&b, "note", note)
	}
	if r.Total.First != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(r.Total.First, "\n"))
	}
	wrap(&b, "verdict", r.answer())
	_, err := io.WriteString(w, b.String())
	return err
}

// crashPage has the data of the template page_crash.html.
type crashPage struct {
	*CrashReport
	Header []string
	Rows   [][]string
	Notes  []string
}

// Head returns the header of the page.
func (d crashPage) Head() page.Head {
	h := newHead(d.Protocol+" "+d.Scenario, d.Started, d.Jobwire, d.Environment, d.load())
	h.Target, h.Verdict = d.Target, d.answer()
	return h
}

// WriteHTML writes the report as one HTML page without references to other files.
func (r *CrashReport) WriteHTML(w io.Writer) error {
	return pages.ExecuteTemplate(w, "page_crash.html", crashPage{r, crashHeader, r.table(), r.notes()})
}

// seconds formats a time in seconds, with a suitable unit.
func seconds(s float64) string { return latency.Micros(s * 1e6).String() }

// WriteJSON writes the report as one JSON object.
func (r *CrashReport) WriteJSON(w io.Writer) error { return writeIndented(w, r) }
