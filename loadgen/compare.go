package loadgen

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"

	"jobwire/internal/prose"
)

// Group is the runs of one target, or of one state of it.
type Group struct {
	Name string
	Runs []*Report
}

// Comparison is several groups of runs, compared with the first.
type Comparison struct {
	Targets []Compared `json:"targets"`
	Runs    []*Report  `json:"runs"`
}

// Compared is one of them. A figure that is not known is absent.
type Compared struct {
	Name    string             `json:"name"`
	Runs    int                `json:"runs"`
	Medians map[string]float64 `json:"medians"`
	Ratios  map[string]Ratio   `json:"ratios"` // to the first
}

// Ratio is the ratio of two medians.
type Ratio struct {
	Ratio float64 `json:"ratio"`

	// Low and High are the bounds of the 95 % confidence interval of the median of the ratios of the first runs, the second runs and so on.
	// They are null with fewer than six runs of each, or if there are not as many of one as of the other.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`

	// P is the probability of a difference at least as large if both servers are equally fast, by the Mann-Whitney U test. It is null with
	// too few runs for P < 0.05, which are four of each.
	P *float64 `json:"p"`
}

// figure is something that runs are compared by.
type figure struct {
	key    string
	title  string
	higher bool // is better
	of     func(*Report) float64
	format func(float64) string

	interval func(*IntervalEntry) float64 // nil: intervals do not have it

	cpu    func(*Report) Micros // of a processor time
	stage  string               // of a percentile
	beyond float64              // the share of samples beyond that
}

func latencyFigure(stage, name string) figure {
	c := columns[column(name)]
	return figure{key: stage + "_" + c.name + "_us", title: stage + " " + c.name, of: func(r *Report) float64 {
		q := r.Latency[stage]
		return float64(c.of(&q))
	}, interval: func(e *IntervalEntry) float64 {
		q := e.Latency[stage]
		return float64(c.of(&q))
	}, format: formatMicros, stage: stage, beyond: minTail / float64(c.samples)}
}

func cpuFigure(end string, of func(*Report) Micros) figure {
	return figure{key: "cpu_us_per_job_" + end, title: "CPU per job, " + end, of: func(r *Report) float64 { return float64(of(r)) }, format: formatMicros, cpu: of}
}

func formatMicros(v float64) string { return Micros(v).String() }

// figures are what runs are compared by.
var figures = []figure{
	{key: "rate", title: "jobs/s", higher: true, of: func(r *Report) float64 { return r.Rate }, interval: (*IntervalEntry).Rate, format: formatJobs},
	cpuFigure("target", func(r *Report) Micros { return r.CPU.Target }),
	cpuFigure("generator", func(r *Report) Micros { return r.CPU.Generator }),
	latencyFigure(Stages[stageTotal], "p50"),
	latencyFigure(Stages[stageTotal], "p99"),
	latencyFigure(Stages[stageTotal], "p99.9"),
}

// figureOf returns the figure with the key.
func figureOf(key string) *figure {
	return &figures[slices.IndexFunc(figures, func(f figure) bool { return f.key == key })]
}

// values are a figure of every run; nil if one of them does not have it.
func (f *figure) values(runs []*Report) []float64 {
	var all []float64
	for _, r := range runs {
		v := f.of(r)
		if v == 0 {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// Compare holds the groups against the first of them.
func Compare(groups []Group) *Comparison {
	c := &Comparison{}
	for _, g := range groups {
		t := Compared{Name: g.Name, Runs: len(g.Runs), Medians: map[string]float64{}, Ratios: map[string]Ratio{}}
		for i := range figures {
			f := &figures[i]
			ours, first := f.values(g.Runs), f.values(groups[0].Runs)
			if len(ours) == 0 {
				continue
			}
			t.Medians[f.key] = median(ours)
			if len(c.Targets) > 0 && len(first) > 0 {
				t.Ratios[f.key] = ratio(ours, first)
			}
		}
		c.Targets = append(c.Targets, t)
		c.Runs = append(c.Runs, g.Runs...)
	}
	return c
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// confidence is that of the intervals.
const confidence = 0.95

// ratio compares two samples without assumptions about their distributions. Runs that took turns are compared in pairs: what slowed
// the machine for a while slowed both.
func ratio(a, b []float64) Ratio {
	out := Ratio{Ratio: median(a) / median(b)}
	if test := benchmath.AssumeNothing.Compare(sample(a), sample(b)); len(test.Warnings) == 0 {
		out.P = &test.P
	}
	if len(a) != len(b) {
		return out
	}
	pairs := make([]float64, len(a))
	for i := range a {
		pairs[i] = a[i] / b[i]
	}
	if s := benchmath.AssumeNothing.Summary(sample(pairs), confidence); len(s.Warnings) == 0 {
		out.Low, out.High = &s.Lo, &s.Hi
	}
	return out
}

func sample(v []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(v), &benchmath.DefaultThresholds)
}

// WriteJSON writes the comparison as one object, its runs included.
func (c *Comparison) WriteJSON(w io.Writer) error { return writeIndented(w, c) }

// WriteText writes the comparison for people.
func (c *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range c.table() {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
	for _, o := range c.Targets {
		fmt.Fprintf(&b, "\n%s: %s", o.Name, plural(o.Runs, "run"))
	}
	fmt.Fprintln(&b)
	if notes := c.notes(); len(notes) > 0 {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(notes, "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table returns the rows of the comparison in words, the header first.
func (c *Comparison) table() [][]string {
	header := []string{"medians"}
	for i, o := range c.Targets {
		header = append(header, o.Name)
		if i > 0 {
			header = append(header, "times", "95 %", "p")
		}
	}
	rows := [][]string{header}
	for i := range figures {
		f := &figures[i]
		row := []string{f.title}
		for k, o := range c.Targets {
			median := "-"
			if v, known := o.Medians[f.key]; known {
				median = f.format(v)
			}
			row = append(row, median)
			if k > 0 {
				ratio, interval, p := o.Ratios[f.key].texts()
				row = append(row, ratio, interval, p)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (r Ratio) texts() (ratio, interval, p string) {
	ratio, interval, p = "-", "-", "-"
	digits := func(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }
	if r.Ratio != 0 {
		ratio = digits(r.Ratio, 2)
	}
	if r.Low != nil {
		interval = digits(*r.Low, 2) + " to " + digits(*r.High, 2)
	}
	if r.P != nil {
		p = digits(*r.P, 3)
	}
	return ratio, interval, p
}

// notes are what keeps the figures from being taken at their face.
func (c *Comparison) notes() (all []string) {
	count := func(what string, is func(*Report) bool) {
		n := 0
		for _, r := range c.Runs {
			if is(r) {
				n++
			}
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("in %d of %s, %s", n, plural(len(c.Runs), "run"), what))
		}
	}
	count("the verdict is failed", func(r *Report) bool { return r.Result() == Failed })
	count("the measurement is invalid", func(r *Report) bool { return r.Result() == Invalid })
	count("the load generator was the bottleneck: the target may be faster", func(r *Report) bool { return r.Saturated })
	count("other programs used more than a quarter of the machine", (*Report).Disturbed)
	count("the measurement took less than 1 s, which is too short to compare its figures", func(r *Report) bool { return r.Seconds < shortestCompared })
	for _, r := range c.Runs {
		if why := r.unlike(c.Runs[0]); why != "" {
			all = append(all, "the runs had different settings: "+why)
			break
		}
	}
	return all
}

// unlike says in what two runs differ that makes their figures hard to compare; "" is nothing.
func (r *Report) unlike(o *Report) string {
	for _, p := range []struct {
		name string
		a, b any
	}{
		{"protocol", r.Protocol, o.Protocol}, {"scenario", r.Scenario, o.Scenario}, {"clients", r.Clients, o.Clients},
		{"workers", r.Workers, o.Workers}, {"functions", r.Functions, o.Functions}, {"zipf", r.Zipf, o.Zipf}, {"window", r.Window, o.Window}, {"grabs", r.Grabs, o.Grabs},
		{"payload", r.Payload, o.Payload}, {"rate", cmp.Or(r.Requested, "none"), cmp.Or(o.Requested, "none")},
	} {
		if p.a != p.b {
			return fmt.Sprintf("%s is %v in one run and %v in the other", p.name, p.a, p.b)
		}
	}
	return ""
}

// CheckBaseline reports whether what was measured before can be a baseline of such a run.
func CheckBaseline(cfg Config, before []*Report) error {
	plan := planOf(&cfg)
	if plan.Grabs == 0 {
		plan.Grabs = before[0].Grabs // it will be known when the run begins
	}
	if why := plan.unlike(before[0]); why != "" {
		return fmt.Errorf("the saved run had a different load: %s", why)
	}
	return nil
}

// chance returns the probability of a difference as large as that between the intervals of earlier runs and of a run, if the server is
// as fast as before. It is not known with fewer than four intervals of either, or for figures that intervals do not have.
func (f *figure) chance(before []*Report, r *Report) (p float64, known bool) {
	old, now := f.ofIntervals(before), f.ofIntervals([]*Report{r})
	if len(old) < fewestIntervals/2 || len(now) < fewestIntervals/2 {
		return 0, false
	}
	c := benchmath.AssumeNothing.Compare(sample(old), sample(now))
	return c.P, true
}

// ofIntervals returns the figure of each complete interval of the measured part.
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

// Baseline compares the report with what was measured before: a figure that is worse by more than the tolerance (0.1 is a tenth) breaks
// an objective, unless the intervals of the runs vary as much. Runs with other settings are an error.
func (r *Report) Baseline(before []*Report, tolerance float64) error {
	if why := r.unlike(before[0]); why != "" {
		return fmt.Errorf("the baseline had a different load: %s", why)
	}
	for i := range figures {
		f := &figures[i]
		if !f.compared() {
			continue
		}
		name := "baseline, " + f.title
		if why := cmp.Or(f.tooShort(r, tolerance), f.tooShortOf(before, tolerance)); why != "" {
			r.Objectives = append(r.Objectives, SLOResult{Objective: name, Result: Skipped, Why: "too short to compare: " + why})
			continue
		}
		old, now := f.values(before), f.of(r)
		if len(old) == 0 || now == 0 {
			continue
		}
		was := median(old)
		worse := now/was - 1
		if f.higher {
			worse = 1 - now/was
		}
		why := fmt.Sprintf("%s in the baseline, %s in this run", f.format(was), f.format(now))
		met := worse <= tolerance
		if p, known := f.chance(before, r); known && !met && p >= benchmath.DefaultThresholds.CompareAlpha {
			met, why = true, fmt.Sprintf("%s; the intervals of the runs vary as much (p=%.3f)", why, p)
		}
		r.Objectives = append(r.Objectives, SLOResult{name, result(met), why, &now})
	}
	r.conclude()
	return nil
}

// What a run needs for its figures to be compared. A processor time is wrong by a tick at either end of
// a run: by 2/n of n ticks, which may be a quarter of the tolerance, in both runs half of it. A
// percentile with n samples beyond it varies by 1/sqrt(n), which may be half of the tolerance.
const (
	shortestCompared = 1.0  // seconds: less is the beginning of a run rather than the run
	finestTolerance  = 0.01 // for these bounds
)

// tooShort says what a run lacks for a figure to be compared; "" is nothing.
func (f *figure) tooShort(r *Report, tolerance float64) string {
	tolerance = max(tolerance, finestTolerance)
	if r.Seconds < shortestCompared {
		if f.cpu != nil {
			if n := r.cpuTicks(f.cpu(r)); n > 0 {
				return fmt.Sprintf("%s in a run of %.2f s (at least %v s needed)", plural(n, "CPU tick"), r.Seconds, shortestCompared)
			}
		}
		return fmt.Sprintf("a run of %.2f s (at least %v s needed)", r.Seconds, shortestCompared)
	}
	if f.cpu != nil {
		need := int(math.Ceil(8 / tolerance))
		if n := r.cpuTicks(f.cpu(r)); n > 0 && n < need {
			return fmt.Sprintf("%s of %v (at least %s needed for this tolerance)", plural(n, "CPU tick"), tick, prose.Grouped(int64(need)))
		}
	}
	if f.beyond > 0 {
		need := int64(math.Ceil(4 / (tolerance * tolerance)))
		if n := int64(float64(r.Latency[f.stage].Count) * f.beyond); n < need {
			return fmt.Sprintf("%s beyond the percentile (at least %s needed for this tolerance)", plural(int(n), "sample"), prose.Grouped(need))
		}
	}
	return ""
}

// tooShortOf is tooShort of several runs.
func (f *figure) tooShortOf(runs []*Report, tolerance float64) string {
	for _, r := range runs {
		if why := f.tooShort(r, tolerance); why != "" {
			return "the baseline has " + why
		}
	}
	return ""
}

// cpuTicks is how many ticks a processor time per job was made of.
func (r *Report) cpuTicks(perJob Micros) int {
	return int(math.Round(float64(perJob) * float64(r.Jobs) * 1e3 / float64(tick)))
}

// compared reports whether comparisons use the figure: it describes the target and has enough samples.
func (f *figure) compared() bool {
	return f.ofTarget() && !strings.HasSuffix(f.key, "p99.9_us")
}

// ofTarget reports whether a figure shows how good the target is, rather than the load generator.
func (f *figure) ofTarget() bool { return f.key != "cpu_us_per_job_generator" }
