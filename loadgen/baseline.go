package loadgen

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"

	"jobwire/internal/prose"
	"jobwire/loadgen/machine"
)

// settingDiff describes a setting that differs between two runs, so that their figures cannot be compared. It returns
// "" if there is none.
func (r *Report) settingDiff(o *Report) string {
	for _, p := range []struct {
		name string
		a, b any
	}{
		{"protocol", r.Protocol, o.Protocol}, {"scenario", r.Scenario, o.Scenario}, {"clients", r.Clients, o.Clients},
		{"workers", r.Workers, o.Workers}, {"functions", r.Functions, o.Functions}, {"zipf", r.Zipf, o.Zipf},
		{"window", r.Window, o.Window}, {"grabs", r.Grabs, o.Grabs},
		{"payload", r.Payload, o.Payload}, {"rate", cmp.Or(r.Requested, "none"), cmp.Or(o.Requested, "none")},
	} {
		if p.a != p.b {
			return fmt.Sprintf("%s is %v in one run and %v in the other", p.name, p.a, p.b)
		}
	}
	return ""
}

// CheckBaseline returns an error if the reports before cannot be the baseline of a run with this configuration,
// because a setting differs. before must not be empty.
func CheckBaseline(cfg Config, before []*Report) error {
	plan := planOf(&cfg)
	if plan.Grabs == 0 {
		plan.Grabs = before[0].Grabs // chosen when the run begins
	}
	if why := plan.settingDiff(before[0]); why != "" {
		return fmt.Errorf("the saved run had a different load: %s", why)
	}
	return nil
}

// Baseline compares the report with the reports of earlier runs, before, and adds an objective for each figure. The
// figure fails if it is worse than in the earlier runs by more than the tolerance (0.1: 10 %), with 99 % confidence;
// it passes if it is not, with the same confidence. If neither is certain, because the runs are too short or vary too
// much, the figure is skipped. Baseline returns an error if a setting of the runs differs.
func (r *Report) Baseline(before []*Report, tolerance float64) error {
	if why := r.settingDiff(before[0]); why != "" {
		return fmt.Errorf("the baseline had a different load: %s", why)
	}
	slower, why := r.slowerMachine(before, tolerance)
	for i := range figures {
		if f := &figures[i]; f.compared() && f.of(r) > 0 && len(f.values(before)) > 0 {
			o := f.check(before, r, tolerance)
			if o.Result == Failed && (f.percentile || f.worse(before, r) <= slower*(1+tolerance)) && slower > 1 {
				o.Result, o.Why = Skipped, o.Why+", but "+why
			}
			r.Objectives = append(r.Objectives, o)
		}
	}
	r.conclude()
	return nil
}

// slowerMachine estimates by which factor this run took longer than the earlier runs because less CPU time was
// available to it: other programs used the machine, or the same load generator needed more CPU time per job. It
// returns the factor and the reason, or 1 if neither is the case.
func (r *Report) slowerMachine(before []*Report, tolerance float64) (times float64, why string) {
	times = 1
	if r.MachineShared() {
		share := *r.Cores.Foreign / float64(runtime.NumCPU())
		times, why = 1/max(0.01, 1-share), fmt.Sprintf("other programs used %.0f %% of the machine", 100*share)
	}
	f := figureOf("cpu_us_per_job_generator")
	if old := f.values(before); len(old) > 0 && r.sameGenerator(before) {
		if more := f.of(r) / median(old); more > max(times, 1+tolerance) {
			times, why = more, fmt.Sprintf("the load generator took %.0f %% more CPU time per job too: the machine was slower",
				100*(more-1))
		}
	}
	return times, why
}

// worse returns the factor by which the figure is worse than in earlier runs; below 1 it is better.
func (f *figure) worse(before []*Report, r *Report) float64 {
	ratio := f.of(r) / median(f.values(before))
	if f.higher {
		return 1 / ratio
	}
	return ratio
}

// sameGenerator reports whether the earlier runs used the same version of jobwire with the same number of processors.
func (r *Report) sameGenerator(before []*Report) bool {
	return !slices.ContainsFunc(before, func(o *Report) bool { return o.Jobwire != r.Jobwire || o.Processors != r.Processors })
}

// check compares a figure of a run with that of earlier runs, as described at [Report.Baseline].
func (f *figure) check(before []*Report, r *Report, tolerance float64) SLOResult {
	name := "baseline, " + f.title
	was, now := median(f.values(before)), f.of(r)
	why := fmt.Sprintf("%s in the baseline, %s in this run", f.format(was), f.format(now))
	if short := f.tooShort(before, r, tolerance); short != "" {
		return SLOResult{Objective: name, Result: Skipped, Why: "too short to compare: " + short}
	}
	worse := func(ratio float64) float64 {
		if f.higher {
			return 1 - ratio
		}
		return ratio - 1
	}
	low, high := f.change(before, r)
	least, most := min(worse(low), worse(high)), max(worse(low), worse(high))
	switch {
	case least > tolerance:
		return SLOResult{name, Failed, why, &now}
	case most <= tolerance:
		return SLOResult{name, Passed, why, &now}
	}
	return SLOResult{Objective: name, Result: Skipped,
		Why: fmt.Sprintf("too short to compare: %s; the runs are consistent with a change of %+.0f %% to %+.0f %%",
			why, 100*(low-1), 100*(high-1))}
}

// change returns the bounds of the ratio of a figure to the figure of earlier runs: the union of
// two confidence intervals. The first is the interval of this ratio. The second is the interval of
// the same ratio after both figures were divided by the load generator's CPU time per job. The
// second interval accounts for the speed of the machine: under the same load, the same load
// generator takes more CPU time per job on a slower machine.
func (f *figure) change(before []*Report, r *Report) (low, high float64) {
	now := []*Report{r}
	low, high = ratioInterval(f.ofIntervals(before), f.ofIntervals(now))
	if r.Requested != "" && f.key == "rate" || !r.sameGenerator(before) {
		return low, high
	}
	relative := *f
	relative.interval = func(e *IntervalEntry) float64 {
		if f.higher {
			return f.interval(e) * float64(e.Generator)
		}
		if e.Generator == 0 {
			return 0
		}
		return f.interval(e) / float64(e.Generator)
	}
	if old, now := relative.ofIntervals(before), relative.ofIntervals(now); min(len(old), len(now)) >= minIntervals {
		l, h := ratioInterval(old, now)
		low, high = min(low, l), max(high, h)
	}
	return low, high
}

// minIntervals is the number of complete intervals that a comparison needs in the earlier runs, and in the run.
const minIntervals = 5

// tooShort describes why the runs are too short to compare the figure. It returns "" if they are not. A CPU time can
// be wrong by one tick at both ends of a run; this error must be at most a quarter of the tolerance.
func (f *figure) tooShort(before []*Report, r *Report, tolerance float64) string {
	for _, run := range slices.Concat(before, []*Report{r}) {
		ticks := int(math.Round(f.of(run) * float64(run.Jobs) * 1e3 / float64(machine.Tick)))
		if need := int(math.Ceil(8 / max(tolerance, 0.01))); f.cpu && ticks < need {
			return fmt.Sprintf("%s of %v in one of the runs (at least %s needed for this tolerance)",
				prose.Count(ticks, "CPU tick"), machine.Tick, prose.Grouped(int64(need)))
		}
	}
	if n := min(len(f.ofIntervals(before)), len(f.ofIntervals([]*Report{r}))); n < minIntervals {
		return fmt.Sprintf("%s with the figure in one of the runs (at least %d needed)", prose.Count(n, "complete interval"),
			minIntervals)
	}
	return ""
}

// ofIntervals returns the figure of each complete interval of the runs, without intervals that do not have it.
func (f *figure) ofIntervals(runs []*Report) (all []float64) {
	if f.interval == nil {
		return nil
	}
	for _, r := range runs {
		for _, e := range r.complete() {
			if v := f.interval(e); v > 0 {
				all = append(all, v)
			}
		}
	}
	return all
}

// ratioInterval returns the 99 % confidence interval of the ratio of the second sample to the first, without
// assumptions about their distributions. It contains all ratios of two values except the lowest and the highest,
// which the Mann-Whitney U test with the normal approximation excludes (M. Hollander, D. Wolfe, Nonparametric
// Statistical Methods, section 4.3).
func ratioInterval(old, now []float64) (low, high float64) {
	var ratios []float64
	for _, b := range now {
		for _, a := range old {
			ratios = append(ratios, b/a)
		}
	}
	slices.Sort(ratios)
	const z = 2.576 // 99 %, two-sided
	n, m := float64(len(old)), float64(len(now))
	k := max(1, int(n*m/2-z*math.Sqrt(n*m*(n+m+1)/12)))
	return ratios[k-1], ratios[len(ratios)-k]
}
