package experiment

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"jobwire/internal/prose"
	"jobwire/loadgen"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
)

// CheckBaseline returns an error if the reports before cannot be the baseline of a run with this configuration,
// because a setting differs. before must not be empty.
func CheckBaseline(cfg loadgen.Config, before []*report.Report) error {
	plan := report.PlanOf(&cfg)
	if plan.Grabs == 0 {
		plan.Grabs = before[0].Grabs // the number of requests for jobs, which is chosen when the run begins
	}
	if why := settingDiff(plan, before[0]); why != "" {
		return fmt.Errorf("the saved run had a different load: %s", why)
	}
	return nil
}

// Baseline compares a report with the reports of earlier runs, before, and adds an objective for each figure. The
// figure fails if it is worse than in the earlier runs by more than the tolerance (0.1: 10 %), with 99 % confidence;
// it passes if it is not, with the same confidence. If neither is certain, because the runs are too short or vary too
// much, the figure is skipped. Baseline returns an error if a setting of the runs differs.
func Baseline(r *report.Report, before []*report.Report, tolerance float64) error {
	if why := settingDiff(r, before[0]); why != "" {
		return fmt.Errorf("the baseline had a different load: %s", why)
	}
	slower, why := slowerMachine(r, before, tolerance)
	for i := range Figures {
		p := pair{&Figures[i], before, []*report.Report{r}}
		was, now := p.medians()
		if !p.compared() || was == 0 || now == 0 {
			continue
		}
		o := p.check(tolerance)
		times := now / was // by which the figure is worse; below 1 it is better
		if p.higher {
			times = was / now
		}
		if o.Result == report.Failed && slower > 1 && (p.percentile || times <= slower*(1+tolerance)) {
			o.Result, o.Why = report.Skipped, o.Why+", but "+why
		}
		r.Objectives = append(r.Objectives, o)
	}
	r.Conclude()
	return nil
}

// slowerMachine estimates by which factor a run took longer than the earlier runs because less CPU time was
// available to it: other programs used the machine, or the same load generator needed more CPU time per job. It
// returns the factor and the reason, or 1 if neither is the case.
func slowerMachine(r *report.Report, before []*report.Report, tolerance float64) (times float64, why string) {
	times = 1
	if r.MachineShared() {
		share := *r.Cores.Foreign / float64(runtime.NumCPU())
		times, why = 1/max(0.01, 1-share), fmt.Sprintf("other programs used %.0f %% of the machine", 100*share)
	}
	p := pair{figureOf("cpu_us_per_job_generator"), before, []*report.Report{r}}
	if was, now := p.medians(); was > 0 && p.sameGenerator() {
		if more := now / was; more > max(times, 1+tolerance) {
			times, why = more, fmt.Sprintf("the load generator took %.0f %% more CPU time per job too: the machine was slower",
				100*(more-1))
		}
	}
	return times, why
}

// sameGenerator reports whether all runs used the same version of jobwire with the same number of processors.
func (p pair) sameGenerator() bool {
	r := p.now[0]
	return !slices.ContainsFunc(p.before, func(o *report.Report) bool { return o.Jobwire != r.Jobwire || o.Processors != r.Processors })
}

// check compares a figure of a run with that of earlier runs, as described at [Baseline].
func (p pair) check(tolerance float64) report.SLOResult {
	name := "baseline, " + p.Title
	was, now := p.medians()
	why := fmt.Sprintf("%s in the baseline, %s in this run", p.Format(was), p.Format(now))
	if short := p.tooShort(tolerance); short != "" {
		return report.SLOResult{Objective: name, Result: report.Skipped, Why: "too short to compare: " + short}
	}
	low, high := p.change()
	least, most := low-1, high-1 // by how much the figure is worse
	if p.higher {
		least, most = 1-high, 1-low
	}
	switch {
	case least > tolerance:
		return report.SLOResult{Objective: name, Result: report.Failed, Why: why, Value: &now}
	case most <= tolerance:
		return report.SLOResult{Objective: name, Result: report.Passed, Why: why, Value: &now}
	}
	return report.SLOResult{Objective: name, Result: report.Skipped,
		Why: fmt.Sprintf("too short to compare: %s; the runs are consistent with a change of %+.0f %% to %+.0f %%",
			why, 100*(low-1), 100*(high-1))}
}

// change returns the bounds of the ratio of a figure to the figure of earlier runs: the union of
// two confidence intervals. The first is the interval of this ratio. The second is the interval of
// the same ratio after both figures were divided by the load generator's CPU time per job. The
// second interval accounts for the speed of the machine: under the same load, the same load
// generator takes more CPU time per job on a slower machine.
func (p pair) change() (low, high float64) {
	low, high = ratioInterval(p.intervals(p.before), p.intervals(p.now))
	if p.now[0].Requested != "" && p.Key == "rate" || !p.sameGenerator() {
		return low, high
	}
	figure := *p.Figure
	relative := pair{&figure, p.before, p.now}
	relative.interval = func(e *report.IntervalEntry) float64 {
		if p.higher {
			return p.interval(e) * float64(e.Generator)
		}
		if e.Generator == 0 {
			return 0
		}
		return p.interval(e) / float64(e.Generator)
	}
	if old, now := relative.intervals(p.before), relative.intervals(p.now); min(len(old), len(now)) >= minIntervals {
		l, h := ratioInterval(old, now)
		low, high = min(low, l), max(high, h)
	}
	return low, high
}

// minIntervals is the number of complete intervals that a comparison needs in the earlier runs, and in the run.
const minIntervals = 5

// tooShort describes why the runs are too short to compare the figure. It returns "" if they are not. A CPU time can
// be wrong by one tick at both ends of a run; this error must be at most a quarter of the tolerance.
func (p pair) tooShort(tolerance float64) string {
	for _, run := range slices.Concat(p.before, p.now) {
		ticks := int(math.Round(p.of(run) * float64(run.Jobs) * 1e3 / float64(machine.Tick)))
		if need := int(math.Ceil(8 / max(tolerance, 0.01))); p.cpu && ticks < need {
			return fmt.Sprintf("%s of %v in one of the runs (at least %s needed for this tolerance)",
				prose.Count(ticks, "CPU tick"), machine.Tick, prose.Grouped(int64(need)))
		}
	}
	if n := min(len(p.intervals(p.before)), len(p.intervals(p.now))); n < minIntervals {
		return fmt.Sprintf("%s with the figure in one of the runs (at least %d needed)", prose.Count(n, "complete interval"),
			minIntervals)
	}
	return ""
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

// ParseTolerance parses a number or a percentage, such as "0.1" or "10%".
func ParseTolerance(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || v < 0 || v >= 10 {
		return 0, fmt.Errorf("%q: expected a number from 0 to 10, such as 0.1, or a percentage, such as 10%%", text)
	}
	return v, nil
}
