package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/loadgen"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
)

// CrashTest kills a server several times.
type CrashTest struct {
	loadgen.Crash
	Kills int // number of rounds
	// average time from the start of the load to the kill; the time is random, from half to one and a half times the
	// average
	After time.Duration
	// Watch is called after each round. It may be nil.
	Watch func(*loadgen.CrashRound)
}

// CrashReport is the result of a [CrashTest].
type CrashReport struct {
	version.Head
	Environment *machine.Environment `json:"environment,omitempty"`
	Verdict     report.Verdict       `json:"verdict"`
	Reasons     []string             `json:"verdict_reasons"`
	Protocol    string               `json:"protocol"`
	Scenario    string               `json:"scenario"`
	Target      string               `json:"target"`
	Started     time.Time            `json:"started"`
	Clients     int                  `json:"clients"`
	Window      int                  `json:"window"`              // jobs in flight for each client
	Allowed     float64              `json:"allowed_loss_window"` // Crash.AllowLoss in seconds
	Rounds      []loadgen.CrashRound `json:"rounds"`
	// sums of the rounds; Window and Restart are the longest of the rounds
	Total loadgen.CrashRound `json:"total"`
	Error string             `json:"error,omitempty"` // why the test ended early; "" if it did not
}

// Run kills and restarts the server Kills times, and counts the acknowledged jobs that it lost. If it ends early, it returns the report of the rounds so far and an error. The report is nil
// if the server could not be started the first time.
func (t *CrashTest) Run(ctx context.Context) (*CrashReport, error) {
	srv, err := t.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if srv != nil {
			srv.Kill()
		}
	}()
	r := &CrashReport{Head: version.NewHead(), Protocol: t.Config.Protocol.Name, Scenario: t.Config.Scenario,
		Started: time.Now().UTC().Round(time.Millisecond), Clients: t.Config.Clients, Window: t.Config.Window,
		Allowed: t.AllowLoss.Seconds(),
		Reasons: []string{}, Rounds: []loadgen.CrashRound{}}
	rnd := rand.New(rand.NewPCG(t.Config.Seed, 3)) // 3: each use of the seed has numbers of its own
	for n := range t.Kills {
		up := time.Duration((0.5 + rnd.Float64()) * float64(t.After))
		var round *loadgen.CrashRound
		round, err = t.Round(ctx, n, &srv, up, r.Total.Lost > r.Total.Allowed)
		if round != nil && ctx.Err() == nil { // an interrupted round did not wait for its jobs
			r.add(round)
			if t.Watch != nil {
				t.Watch(round)
			}
		}
		if err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Error = err.Error()
	}
	r.conclude(t.Kills)
	return r, err
}

// add adds a round to the report and its counts to Total.
func (r *CrashReport) add(c *loadgen.CrashRound) {
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
		r.Verdict = report.Failed
	case len(r.Rounds) < kills:
		r.Verdict, r.Reasons = report.Failed, []string{fmt.Sprintf("interrupted after %d of %d kills", len(r.Rounds), kills)}
	case t.Acknowledged == t.Completed:
		r.Verdict, r.Reasons = report.Invalid, []string{"the server had no unfinished jobs when it was killed; raise --kill-after or lower --workers"}
	default:
		r.Verdict = report.Passed
	}
}

// Notes returns what happened to jobs and does not affect the verdict.
func (r *CrashReport) Notes() (all []string) {
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

// Answer returns the verdict with its reasons.
func (r *CrashReport) Answer() string {
	if len(r.Reasons) == 0 {
		return string(r.Verdict)
	}
	return string(r.Verdict) + ": " + strings.Join(r.Reasons, "; ")
}
