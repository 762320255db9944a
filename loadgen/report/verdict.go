package report

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"jobwire/internal/prose"
	"jobwire/loadgen"
	"jobwire/loadgen/latency"
)

// Verdict is the result of a run or of an objective.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	Failed Verdict = "failed"
	// the run does not show what the server can do, mostly because the load generator or its machine was the bottleneck
	Invalid Verdict = "invalid"
	// an objective could not be checked; it does not affect the verdict of the run
	Skipped Verdict = "skipped"
)

// verdicts has what reports show of each verdict, from the best to the worst.
var verdicts = []struct {
	Verdict
	symbol string
	tone   string // CSS class
}{{Skipped, "", ""}, {Passed, "✓", "good"}, {Invalid, "?", ""}, {Failed, "✗", "bad"}}

// severity returns the index of the verdict in verdicts.
func (v Verdict) severity() int {
	for i := range verdicts {
		if verdicts[i].Verdict == v {
			return i
		}
	}
	return 0
}

// Symbol returns the character that stands for the verdict in reports.
func (v Verdict) Symbol() string { return verdicts[v.severity()].symbol }

// Tone returns the CSS class of the verdict: good, bad, or "".
func (v Verdict) Tone() string { return verdicts[v.severity()].tone }

// Worst returns the worst of several verdicts.
func Worst(all ...Verdict) Verdict {
	return slices.MaxFunc(all, func(a, b Verdict) int { return a.severity() - b.severity() })
}

// Passed reports whether the run passed.
func (r *Report) Passed() bool { return r.Result() == Passed }

// Result computes the verdict from the current values of the report.
func (r *Report) Result() Verdict {
	v, _ := r.Conclusion()
	return v
}

// Conclude sets Verdict and Reasons.
func (r *Report) Conclude() { r.Verdict, r.Reasons = r.Conclusion() }

// Conclusion returns the verdict and its reasons, from the current values of the report. A run fails if a job was lost, duplicated or corrupted. Otherwise, an
// open-loop run is invalid if the load generator was the bottleneck and the requested rate or an objective was not
// met, or if the load generator submitted jobs late. Late submissions only raise latencies, so an objective that was
// met at the requested rate is met. A run that missed no target is invalid if it does not show whether an objective was
// met, or if a share of its load is missing.
func (r *Report) Conclusion() (Verdict, []string) {
	incomplete := r.Merged.incomplete()
	if broken := r.broken(); len(broken) > 0 {
		return Failed, slices.Concat(broken, r.unmet(), incomplete)
	}
	unmet, unknown := r.unmet(), r.objectives(Invalid)
	switch {
	case r.Requested != "" && r.Saturated && (len(unmet)+len(unknown) > 0 || r.tooFew() || r.generatorLate() && len(r.objectives(Passed)) == 0):
		return Invalid, append([]string{r.Saturation}, incomplete...)
	case len(unmet) > 0:
		return Failed, append(unmet, incomplete...)
	case len(unknown)+len(incomplete) > 0:
		return Invalid, append(unknown, incomplete...)
	}
	return Passed, []string{}
}

// broken returns the faults that fail any run.
func (r *Report) broken() (why []string) {
	switch {
	case r.Error != "":
		why = append(why, "the run ended early: "+r.Error)
	case r.Interrupted && r.NoFaults():
		why = append(why, "the run was interrupted; no job was lost or processed wrongly before the interruption")
	case r.Interrupted:
		why = append(why, "the run was interrupted")
	}
	for _, t := range r.Tallies() {
		if t.Bad {
			what, _, _ := strings.Cut(t.Words, ":")
			why = append(why, prose.Grouped(t.Count)+" "+what)
		}
	}
	if r.Linear != nil && !r.Linear.Holds {
		why = append(why, "the server did not keep first-in, first-out order: "+r.Linear.Why)
	}
	return why
}

// unmet returns the targets that the run missed: the requested rate, and objectives.
func (r *Report) unmet() (why []string) {
	if r.KeptUp != nil && !*r.KeptUp {
		q := r.Latency[latency.Stages[latency.Total]]
		why = append(why, fmt.Sprintf("the server did not keep up: %s jobs/s achieved of %s requested; its backlog grew to %s, latency rose to %s",
			FormatJobs(r.Rate), FormatJobs(r.RateRequested), prose.Count(r.Backlog, "job"), q.Max))
	}
	if r.Skipped > 0 {
		why = append(why, fmt.Sprintf("%s not submitted, because too many jobs were in flight",
			prose.Count(r.Skipped, "scheduled job")))
	}
	return append(why, r.objectives(Failed)...)
}

// objectives returns the objectives with a result, each with its reason.
func (r *Report) objectives(result Verdict) (why []string) {
	for i := range r.Objectives {
		if o := &r.Objectives[i]; o.Result == result {
			why = append(why, o.Objective+": "+o.Why)
		}
	}
	return why
}

// Limits for the backlog of an open loop. The server keeps up unless the number of jobs in flight at the end is much
// higher than the submission rate times the lowest mean latency of an interval (Little's law).
const (
	minRateShare = 0.95 // share of the requested rate that the server must reach
	// extra backlog, as time at the requested rate, that a pause at the end of the run can cause
	backlogSlack = 100 * time.Millisecond
)

// keepsUp reports whether the server kept up with the requested rate. steady is the lowest mean latency of an
// interval.
func (r *Report) keepsUp(steady time.Duration) bool {
	excess := float64(r.Backlog) - min(r.RateRequested, r.submittedRate())*steady.Seconds()
	return excess <= r.RateRequested*max(backlogSlack.Seconds(), r.Seconds*(1-minRateShare))
}

// submittedRate returns the rate of submissions in the measured part, in jobs per second.
func (r *Report) submittedRate() float64 {
	return loadgen.PerSecond(float64(r.Jobs+r.Backlog), r.Seconds)
}

// Limits from which the load generator counts as the bottleneck: it used nearly all processors that it may use, the
// machine had nearly no idle time, or jobs were submitted late.
const (
	fullyBusy = 0.9 // share of the processors
	// average and 99th percentile of the submission delay; an objective that was not met has no such limit
	maxLate      = 2 * time.Millisecond
	maxLateShare = 0.1 // submission delay as a share of the latency; a shorter delay does not matter
	// share of the processors of a fully used machine, from which other programs count as the cause
	othersMuch = 0.15
	// seconds; in shorter runs, CPU times are too imprecise, because they are measured in ticks
	shortest = 0.2
)

// raises reports whether a submission delay is a relevant part of a latency.
func raises(late, latency latency.Micros) bool { return late > maxLateShare*latency }

// generatorLate reports whether the load generator submitted the jobs of an open loop so late that it, and not the
// server, determined the latencies or the rate.
func (r *Report) generatorLate() bool {
	if r.Pacing == nil {
		return false
	}
	l, q := r.Pacing, r.Latency[latency.Stages[latency.Total]]
	late := func(late, latency latency.Micros) bool { return late.Duration() > maxLate && raises(late, latency) }
	return late(l.Mean, q.Mean) || late(l.P99, q.P99) || r.tooFew()
}

// tooFew reports whether the load generator was so late that it submitted fewer jobs than requested.
func (r *Report) tooFew() bool {
	return r.Pacing != nil && r.Pacing.Mean.Duration() > maxLate && r.submittedRate() < minRateShare*r.RateRequested
}

// saturation describes why the load generator or its machine was the bottleneck, and what to change. It returns "" if
// it was not. threads is the number of threads of the target, or 0 if not known.
func (r *Report) saturation(cfg *loadgen.Config, threads int) string {
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
		return fmt.Sprintf("the load generator used %.2f of its %s; give it more processors, or split the load over several machines (--shares)", used, prose.Count(r.Processors, "processor"))
	case cfg.Rate == nil && full && used > max(target, foreign):
		return fmt.Sprintf("the load generator used %.2f and the target %.2f of this machine's %s; run the target on another machine", used, target, prose.Count(runtime.NumCPU(), "processor"))
	case cfg.Rate == nil || !full:
	case foreign >= othersMuch*machine && r.Cores.Target == nil:
		return fmt.Sprintf("other programs used %.2f of this machine's %s; stop them, or name the server's process with --pid if it runs here", foreign, prose.Count(runtime.NumCPU(), "processor"))
	case foreign >= othersMuch*machine:
		return fmt.Sprintf("other programs used %.2f of this machine's %s; stop them, or use another machine", foreign,
			prose.Count(runtime.NumCPU(), "processor"))
	case !r.targetSaturated(threads):
		return fmt.Sprintf("the load generator (%.2f) and the target (%.2f) used all of this machine's %s; run the target on another machine, or lower --rate",
			used, target, prose.Count(runtime.NumCPU(), "processor"))
	}
	return ""
}

// openSaturation is the part of saturation for causes that exist only in an open loop: late submissions, too few
// workers, and too few clients.
func (r *Report) openSaturation(cfg *loadgen.Config) string {
	sc := loadgen.ScenarioOf(cfg.Protocol.Name, cfg.Scenario)
	// highest rate of the workers, in jobs per second; +Inf if Config.Work is 0
	most := float64(cfg.Workers*max(1, cfg.Grabs)) / cfg.Work.Seconds()
	switch {
	case r.generatorLate() && r.MachineShared():
		return fmt.Sprintf("the load generator submitted jobs late by %s on average, p99 %s, and other programs used %.2f of this machine's %s; stop them, or use another machine",
			r.Pacing.Mean, r.Pacing.P99, *r.Cores.Foreign, prose.Count(r.machineProcessors(), "processor"))
	case r.generatorLate():
		return fmt.Sprintf("the load generator submitted jobs late by %s on average, p99 %s; lower --rate, or split the load over several machines (--shares)", r.Pacing.Mean, r.Pacing.P99)
	case !sc.NoWorkers() && most*minRateShare < r.RateRequested:
		return fmt.Sprintf("%s with %s each and %v of work per job finish at most %s jobs/s; raise --workers or --grabs",
			prose.Count(cfg.Workers, "worker"), prose.Count(max(1, cfg.Grabs), "request"), cfg.Work, FormatJobs(most))
	case r.Skipped > 0 && sc.MaxWindow > 0:
		return fmt.Sprintf("each client may have %s in flight (%s); raise --clients", prose.Count(sc.MaxWindow, "job"),
			sc.WindowWhy)
	}
	return ""
}

// targetSaturated reports whether the target was the bottleneck: at its measured CPU time per job, it could not reach
// the requested rate even if all its threads were busy all the time.
func (r *Report) targetSaturated(threads int) bool {
	if r.Cores.Target == nil || *r.Cores.Target == 0 || threads == 0 {
		return false
	}
	most := float64(min(threads, runtime.NumCPU())) / *r.Cores.Target * r.Rate
	return most < minRateShare*r.RateRequested
}

// maxForeignCPU is the share of the machine's processors above which the use by other programs makes the figures
// unreliable.
const maxForeignCPU = 0.25

// MachineShared reports whether other programs used more than a quarter of the machine's processors.
func (r *Report) MachineShared() bool {
	return r.Cores.Foreign != nil && *r.Cores.Foreign > maxForeignCPU*float64(r.machineProcessors())
}

// machineProcessors returns the number of processors of the machine of the load generator.
func (r *Report) machineProcessors() int {
	if r.Environment != nil && r.Environment.Processors > 0 {
		return r.Environment.Processors
	}
	return runtime.NumCPU()
}
