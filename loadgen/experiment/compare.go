// Package experiment draws conclusions from several runs: it compares servers, compares a run with earlier ones, merges the
// shares of a load, searches for the highest rate, and kills a server.
package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"

	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// Group is a set of runs to compare with others: those of one target, or of one version of it.
type Group struct {
	Name string
	Runs []*report.Report
}

// Comparison is the comparison of several groups of runs with the first group.
type Comparison struct {
	version.Head
	Targets []Compared       `json:"targets"`
	Runs    []*report.Report `json:"runs"` // all runs
}

// Compared is one group of a [Comparison]. A figure that is not known is absent from the maps.
type Compared struct {
	Name    string             `json:"name"`    // name of the group
	Runs    int                `json:"runs"`    // number of runs
	Medians map[string]float64 `json:"medians"` // median of the runs for each figure, by Figure.Key
	// ratio to the median of the first group, by Figure.Key; empty for the first group
	Ratios map[string]Ratio `json:"ratios"`
}

// Ratio is the ratio of the medians of two groups.
type Ratio struct {
	Ratio float64 `json:"ratio"`

	// Low and High are the bounds of the 95 % confidence interval of the median of the ratios of paired runs: the
	// first runs of both groups, the second runs, and so on. They are nil if a group has fewer than six runs, or if
	// the groups differ in the number of runs.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`

	// P is the probability of a difference at least as large if both groups were equally fast, by the Mann-Whitney U
	// test. It is nil if there are too few runs for a result below 0.05; four runs of each group are enough.
	P *float64 `json:"p"`
}

// Figure is a quantity by which runs are compared.
type Figure struct {
	Key    string                       // key in JSON
	Title  string                       // name in text reports
	higher bool                         // higher values are better
	of     func(*report.Report) float64 // returns the figure of a run; 0: not known
	Format func(float64) string         // formats a value

	// returns the figure of an interval; 0: not known
	interval func(*report.IntervalEntry) float64

	cpu bool // a CPU time, which is measured in ticks
	// a percentile of the latency; if there is too little CPU time, it grows faster than the CPU time per job
	percentile bool
}

// latencyFigure returns the figure for a percentile of the latency of a stage.
func latencyFigure(stage, name string) Figure {
	c := latency.ColumnOf(name)
	return Figure{Key: stage + "_" + c.Name + "_us", Title: stage + " " + c.Name, of: func(r *report.Report) float64 {
		q := r.Latency[stage]
		return float64(c.Of(&q))
	}, interval: func(e *report.IntervalEntry) float64 {
		q := e.Latency[stage]
		return float64(c.Of(&q))
	}, Format: FormatMicros, percentile: true}
}

// cpuFigure returns the figure for the CPU time per job of end, which is "target" or "generator".
func cpuFigure(end string, of func(*report.Report) latency.Micros, interval func(*report.IntervalEntry) float64) Figure {
	return Figure{Key: "cpu_us_per_job_" + end, Title: "CPU per job, " + end,
		of: func(r *report.Report) float64 { return float64(of(r)) }, interval: interval, Format: FormatMicros, cpu: true}
}

// FormatMicros formats a time in microseconds.
func FormatMicros(v float64) string { return latency.Micros(v).String() }

// Figures are the quantities by which runs are compared.
var Figures = []Figure{
	{Key: "rate", Title: "jobs/s", higher: true, of: func(r *report.Report) float64 { return r.Rate },
		interval: (*report.IntervalEntry).Rate, Format: report.FormatJobs},
	cpuFigure("target", func(r *report.Report) latency.Micros { return r.CPU.Target },
		func(e *report.IntervalEntry) float64 { return float64(e.Target) }),
	cpuFigure("generator", func(r *report.Report) latency.Micros { return r.CPU.Generator },
		func(e *report.IntervalEntry) float64 { return float64(e.Generator) }),
	latencyFigure(latency.Stages[latency.Total], "p50"),
	latencyFigure(latency.Stages[latency.Total], "p99"),
	latencyFigure(latency.Stages[latency.Total], "p99.9"),
}

// figureOf returns the figure with this key. It panics if there is none.
func figureOf(key string) *Figure {
	return &Figures[slices.IndexFunc(Figures, func(f Figure) bool { return f.Key == key })]
}

// Compare compares the groups with the first group.
func Compare(groups []Group) *Comparison {
	c := &Comparison{Head: version.NewHead()}
	for _, g := range groups {
		t := Compared{Name: g.Name, Runs: len(g.Runs), Medians: map[string]float64{}, Ratios: map[string]Ratio{}}
		for i := range Figures {
			p := pair{&Figures[i], groups[0].Runs, g.Runs}
			before, now := p.medians()
			if now == 0 {
				continue
			}
			t.Medians[p.Key] = now
			if len(c.Targets) > 0 && before > 0 {
				t.Ratios[p.Key] = p.ratio()
			}
		}
		c.Targets = append(c.Targets, t)
		c.Runs = append(c.Runs, g.Runs...)
	}
	return c
}

// pair is a figure in two sets of runs. All comparisons of runs are comparisons of pairs.
type pair struct {
	*Figure
	before, now []*report.Report
}

// medians returns the median of each set of runs, or 0 if one of its runs does not have the figure.
func (p pair) medians() (before, now float64) { return p.median(p.before), p.median(p.now) }

// median returns the median of the compared value over runs, or 0 if a run has no value.
func (p pair) median(runs []*report.Report) float64 {
	values := p.values(runs)
	if len(values) == 0 || slices.Contains(values, 0) {
		return 0
	}
	return report.Median(values)
}

// values returns the figure of each run.
func (p pair) values(runs []*report.Report) (all []float64) {
	for _, r := range runs {
		all = append(all, p.of(r))
	}
	return all
}

// confidence is the confidence level of the intervals Ratio.Low to Ratio.High.
const confidence = 0.95

// ratio compares the runs without assumptions about the distributions of their figures. For the confidence interval it
// pairs the runs: runs that alternate are affected in the same way if the machine is slow for some time.
func (p pair) ratio() Ratio {
	before, now := p.values(p.before), p.values(p.now)
	out := Ratio{Ratio: report.Median(now) / report.Median(before)}
	if test := benchmath.AssumeNothing.Compare(report.Sample(now), report.Sample(before)); len(test.Warnings) == 0 {
		out.P = &test.P
	}
	if len(before) != len(now) {
		return out
	}
	for i := range now {
		now[i] /= before[i]
	}
	if s := benchmath.AssumeNothing.Summary(report.Sample(now), confidence); len(s.Warnings) == 0 {
		out.Low, out.High = &s.Lo, &s.Hi
	}
	return out
}

// intervals returns the figure of all complete intervals of runs.
func (p pair) intervals(runs []*report.Report) (all []float64) {
	for _, r := range runs {
		all = append(all, r.Intervals(p.interval)...)
	}
	return all
}

// Notes returns warnings about the runs that limit the use of the figures.
func (c *Comparison) Notes() (all []string) {
	count := func(what string, is func(*report.Report) bool) {
		n := 0
		for _, r := range c.Runs {
			if is(r) {
				n++
			}
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("in %d of %s, %s", n, prose.Count(len(c.Runs), "run"), what))
		}
	}
	count("the verdict is failed", func(r *report.Report) bool { return r.Result() == report.Failed })
	count("the measurement is invalid", func(r *report.Report) bool { return r.Result() == report.Invalid })
	count("the load generator was the bottleneck: the target may be faster", func(r *report.Report) bool { return r.Saturated })
	count("other programs used more than a quarter of the machine", (*report.Report).MachineShared)
	count("the measurement took less than 1 s, which is too short to compare its figures",
		func(r *report.Report) bool { return r.Seconds < 1 })
	for _, r := range c.Runs {
		if why := settingDiff(r, c.Runs[0]); why != "" {
			all = append(all, "the runs had different settings: "+why)
			break
		}
	}
	return all
}

// compared reports whether [Report.Baseline] checks the figure: it describes the target and does not need as many
// samples as p99.9.
func (f *Figure) compared() bool {
	return f.OfTarget() && !strings.HasSuffix(f.Key, "p99.9_us")
}

// OfTarget reports whether the figure describes the target, not the load generator.
func (f *Figure) OfTarget() bool { return f.Key != "cpu_us_per_job_generator" }

// Difference describes a ratio in words: better or worse than 1, within the tolerance, or not significant. class is
// the CSS class for it: "good", "bad" or "".
func (f *Figure) Difference(r Ratio, tolerance float64) (class, words string) {
	significant := r.P != nil && *r.P < benchmath.DefaultThresholds.CompareAlpha
	if r.Low != nil {
		significant = *r.Low > 1 || *r.High < 1
	}
	switch {
	case significant && math.Abs(r.Ratio-1) <= tolerance, r.Low != nil && *r.Low >= 1-tolerance && *r.High <= 1+tolerance:
		return "", "within " + strconv.FormatFloat(100*tolerance, 'g', 3, 64) + " %"
	case r.Low == nil && r.P == nil:
		return "", "too few runs"
	case !significant:
		return "", "not significant"
	case !f.OfTarget():
		return "", "significant"
	case (r.Ratio > 1) == f.higher:
		return "good", "better"
	}
	return "bad", "worse"
}

// GroupByTarget groups runs by their target. If all runs have the same target, the group is named after the argument.
func GroupByTarget(arg string, runs []*report.Report) []Group {
	var groups []Group
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == r.Target })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Name: r.Target})
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	if len(groups) == 1 {
		groups[0].Name = arg
	}
	return groups
}

// settingDiff describes a setting that differs between two runs, so that their figures cannot be compared. It returns
// "" if there is none.
func settingDiff(r, o *report.Report) string {
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
