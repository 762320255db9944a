package loadgen

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"jobwire/internal/prose"
)

// Verdict is the result of a run.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Invalid Verdict = "invalid" // the load generator or its machine was the bottleneck, so the run does not show what the server can do
)

// Passed reports whether the run passed.
func (r *Report) Passed() bool { return r.Result() == Passed }

// Result returns the verdict of the report as it is now.
func (r *Report) Result() Verdict {
	v, _ := r.verdict()
	return v
}

// conclude enters the verdict.
func (r *Report) conclude() { r.Verdict, r.Reasons = r.verdict() }

// verdict returns the verdict and its reasons. A job that was lost, repeated or changed fails every
// run. In an open loop a bottleneck on the load generator's side comes before a rate or an objective
// that was not met; if the load generator was late it invalidates the run in any case.
func (r *Report) verdict() (Verdict, []string) {
	if broken := r.broken(); len(broken) > 0 {
		return Failed, append(broken, r.unmet()...)
	}
	unmet, unknown := r.unmet(), r.undecided()
	switch {
	case r.Requested != "" && r.Saturated && (len(unmet)+len(unknown) > 0 || r.generatorLate()):
		return Invalid, []string{r.Saturation}
	case len(unmet) > 0:
		return Failed, unmet
	case len(unknown) > 0:
		return Invalid, unknown
	}
	return Passed, []string{}
}

// broken lists what must not happen in any run.
func (r *Report) broken() (why []string) {
	switch {
	case r.Error != "":
		why = append(why, "the run ended early: "+r.Error)
	case r.Interrupted && r.NoFaults():
		why = append(why, "the run was interrupted; no job was lost or processed wrongly before the interruption")
	case r.Interrupted:
		why = append(why, "the run was interrupted")
	}
	for _, t := range tallies {
		if n := *t.count(&r.Account); t.bad && n > 0 {
			what, _, _ := strings.Cut(t.words, ":")
			why = append(why, prose.Grouped(n)+" "+what)
		}
	}
	if r.Linear != nil && !r.Linear.Holds {
		why = append(why, "the server did not keep first-in, first-out order: "+r.Linear.Why)
	}
	return why
}

// unmet lists what the run was to reach and did not.
func (r *Report) unmet() (why []string) {
	if r.KeptUp != nil && !*r.KeptUp {
		q := r.Latency[Stages[stageTotal]]
		why = append(why, fmt.Sprintf("the server did not keep up: %s jobs/s achieved of %s requested; its backlog grew to %s, latency rose to %s",
			formatJobs(r.Rate), formatJobs(r.RateRequested), plural(int(r.Backlog), "job"), q.Max))
	}
	if r.Skipped > 0 {
		why = append(why, fmt.Sprintf("%s not submitted, because too many jobs were in flight", plural(int(r.Skipped), "scheduled job")))
	}
	for i := range r.Objectives {
		if o := &r.Objectives[i]; o.Result == Failed {
			why = append(why, o.Objective+": "+o.Why)
		}
	}
	return why
}

// undecided lists the objectives of which the run does not show whether they were met.
func (r *Report) undecided() (why []string) {
	for i := range r.Objectives {
		if o := &r.Objectives[i]; o.Result == Invalid {
			why = append(why, o.Objective+": "+o.Why)
		}
	}
	return why
}

// Limits of the verdict. A server keeps up unless the jobs in flight at the end exceed those that the latency explains which it had
// when its backlog was smallest.
const (
	minRateShare = 0.95                   // share of the requested rate that a server must reach
	backlogSlack = 100 * time.Millisecond // of the requested rate: what a pause at the end of a run can leave
)

// keepsUp reports whether the server followed the requested rate. steady is the lowest mean latency of an interval.
func (r *Report) keepsUp(steady time.Duration) bool {
	excess := float64(r.Backlog) - min(r.RateRequested, r.submittedRate())*steady.Seconds()
	return excess <= r.RateRequested*max(backlogSlack.Seconds(), r.Seconds*(1-minRateShare))
}

// submittedRate is how many jobs a second were submitted in the measured part.
func (r *Report) submittedRate() float64 { return float64(r.Jobs+r.Backlog) / r.Seconds }

// When the load generator counts as the bottleneck: it submitted jobs late, it used nearly all the
// processors that it may, or the machine had nearly nothing left.
const (
	fullyBusy    = 0.9
	maxLate      = 2 * time.Millisecond // on average, and at the 99th percentile
	maxLateShare = 0.1                  // of the latency, or of the limit of an objective, below which being late explains nothing
	othersMuch   = 0.15                 // of a full machine's processors, from which on others are to blame
	shortest     = 0.2                  // seconds, below which processor times, in ticks, say too little
)

// generatorLate reports whether the load generator submitted the jobs of an open loop too late for the latencies, or the rate, to be the server's.
func (r *Report) generatorLate() bool {
	if r.Pacing == nil {
		return false
	}
	l, q := r.Pacing, r.Latency[Stages[stageTotal]]
	matters := func(late, latency Micros) bool { return late.Duration() > maxLate && late > maxLateShare*latency }
	return matters(l.Mean, q.Mean) || matters(l.P99, q.P99) || l.Mean.Duration() > maxLate && r.submittedRate() < minRateShare*r.RateRequested
}

// saturation returns why the figures are not the server's, and what to change; "" if nothing shows
// that.
func (r *Report) saturation(cfg *Config, threads int) string {
	if cfg.Rate != nil {
		if why := r.openSaturation(cfg); why != "" {
			return why
		}
	}
	if r.Cores.Generator == nil || r.Seconds < shortest {
		return ""
	}
	used, target, foreign := *r.Cores.Generator, 0.0, 0.0
	if r.Cores.Target != nil {
		target = *r.Cores.Target
	}
	if r.Cores.Foreign != nil {
		foreign = *r.Cores.Foreign
	}
	machine := float64(runtime.NumCPU())
	full := used+target+foreign >= fullyBusy*machine || r.Cores.Idle != nil && *r.Cores.Idle < (1-fullyBusy)*machine
	switch {
	case used >= fullyBusy*float64(r.Processors):
		return fmt.Sprintf("the load generator used %.2f of its %s; give it more processors, or split the load over several machines (--share)", used, plural(r.Processors, "processor"))
	case cfg.Rate == nil && full && used > max(target, foreign):
		return fmt.Sprintf("the load generator used %.2f and the target %.2f of this machine's %s; run the target on another machine", used, target, plural(runtime.NumCPU(), "processor"))
	case cfg.Rate == nil || !full:
	case foreign >= othersMuch*machine && r.Cores.Target == nil:
		return fmt.Sprintf("other programs used %.2f of this machine's %s; stop them, or name the server's process with --pid if it runs here", foreign, plural(runtime.NumCPU(), "processor"))
	case foreign >= othersMuch*machine:
		return fmt.Sprintf("other programs used %.2f of this machine's %s; stop them, or use another machine", foreign, plural(runtime.NumCPU(), "processor"))
	case !r.targetSaturated(threads):
		return fmt.Sprintf("the load generator (%.2f) and the target (%.2f) used all of this machine's %s; run the target on another machine, or lower --rate",
			used, target, plural(runtime.NumCPU(), "processor"))
	}
	return ""
}

// openSaturation is saturation by what an open loop alone shows.
func (r *Report) openSaturation(cfg *Config) string {
	sc := scenarioOf(cfg.Protocol.Name, cfg.Scenario)
	most := float64(cfg.Workers*max(1, cfg.Grabs)) / cfg.Work.Seconds() // jobs a second; infinite without work
	switch {
	case r.generatorLate() && r.MachineShared():
		return fmt.Sprintf("the load generator submitted jobs late by %s on average, p99 %s, and other programs used %.2f of this machine's %s; stop them, or use another machine",
			r.Pacing.Mean, r.Pacing.P99, *r.Cores.Foreign, plural(runtime.NumCPU(), "processor"))
	case r.generatorLate():
		return fmt.Sprintf("the load generator submitted jobs late by %s on average, p99 %s; lower --rate, or split the load over several machines (--share)", r.Pacing.Mean, r.Pacing.P99)
	case !sc.NoWorkers() && most*minRateShare < r.RateRequested:
		return fmt.Sprintf("%s with %s each and %v of work per job finish at most %s jobs/s; raise --workers or --grabs",
			plural(cfg.Workers, "worker"), plural(max(1, cfg.Grabs), "request"), cfg.Work, formatJobs(most))
	case r.Skipped > 0 && sc.MaxWindow > 0:
		return fmt.Sprintf("each client may have %s in flight (%s); raise --clients", plural(sc.MaxWindow, "job"), sc.WindowWhy)
	}
	return ""
}

// targetSaturated reports whether the target could not have followed the requested rate even if all its
// threads had run all the time, at the processor time that it used for a job.
func (r *Report) targetSaturated(threads int) bool {
	if r.Cores.Target == nil || *r.Cores.Target == 0 || threads == 0 {
		return false
	}
	most := float64(min(threads, runtime.NumCPU())) / *r.Cores.Target * r.Rate
	return most < minRateShare*r.RateRequested
}

// maxForeignCPU is the share of the machine's processors above which others, using them, spoil the
// figures.
const maxForeignCPU = 0.25

// MachineShared reports whether others used so much of the machine.
func (r *Report) MachineShared() bool {
	return r.Cores.Foreign != nil && *r.Cores.Foreign > maxForeignCPU*float64(runtime.NumCPU())
}
