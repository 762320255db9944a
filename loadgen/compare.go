package loadgen

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"

	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/loadgen/latency"
)

// Group is a set of runs to compare with others: those of one target, or of one version of it.
type Group struct {
	Name string
	Runs []*Report
}

// Comparison is the comparison of several groups of runs with the first group.
type Comparison struct {
	version.Head
	Targets []Compared `json:"targets"`
	Runs    []*Report  `json:"runs"` // all runs
}

// Compared is one group of a [Comparison]. A figure that is not known is absent from the maps.
type Compared struct {
	Name    string             `json:"name"`    // name of the group
	Runs    int                `json:"runs"`    // number of runs
	Medians map[string]float64 `json:"medians"` // median of the runs for each figure, by figure.key
	// ratio to the median of the first group, by figure.key; empty for the first group
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

// figure is a quantity by which runs are compared.
type figure struct {
	key    string                // key in JSON
	title  string                // name in text reports
	higher bool                  // higher values are better
	of     func(*Report) float64 // returns the figure of a run; 0: not known
	format func(float64) string  // formats a value

	// returns the figure of an interval; 0: not known. nil: intervals do not have the figure
	interval func(*IntervalEntry) float64

	cpu bool // a CPU time, which is measured in ticks
	// a percentile of the latency; if there is too little CPU time, it grows faster than the CPU time per job
	percentile bool
}

// latencyFigure returns the figure for a percentile of the latency of a stage.
func latencyFigure(stage, name string) figure {
	c := latency.ColumnOf(name)
	return figure{key: stage + "_" + c.Name + "_us", title: stage + " " + c.Name, of: func(r *Report) float64 {
		q := r.Latency[stage]
		return float64(c.Of(&q))
	}, interval: func(e *IntervalEntry) float64 {
		q := e.Latency[stage]
		return float64(c.Of(&q))
	}, format: formatMicros, percentile: true}
}

// cpuFigure returns the figure for the CPU time per job of end, which is "target" or "generator".
func cpuFigure(end string, of func(*Report) latency.Micros, interval func(*IntervalEntry) float64) figure {
	return figure{key: "cpu_us_per_job_" + end, title: "CPU per job, " + end,
		of: func(r *Report) float64 { return float64(of(r)) }, interval: interval, format: formatMicros, cpu: true}
}

func formatMicros(v float64) string { return latency.Micros(v).String() }

// figures are the quantities by which runs are compared.
var figures = []figure{
	{key: "rate", title: "jobs/s", higher: true, of: func(r *Report) float64 { return r.Rate },
		interval: (*IntervalEntry).Rate, format: formatJobs},
	cpuFigure("target", func(r *Report) latency.Micros { return r.CPU.Target },
		func(e *IntervalEntry) float64 { return float64(e.Target) }),
	cpuFigure("generator", func(r *Report) latency.Micros { return r.CPU.Generator },
		func(e *IntervalEntry) float64 { return float64(e.Generator) }),
	latencyFigure(latency.Stages[latency.Total], "p50"),
	latencyFigure(latency.Stages[latency.Total], "p99"),
	latencyFigure(latency.Stages[latency.Total], "p99.9"),
}

// figureOf returns the figure with this key. It panics if there is none.
func figureOf(key string) *figure {
	return &figures[slices.IndexFunc(figures, func(f figure) bool { return f.key == key })]
}

// values returns the figure of each run, or nil if one of the runs does not have it.
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

// Compare compares the groups with the first group.
func Compare(groups []Group) *Comparison {
	c := &Comparison{Head: version.NewHead()}
	for _, g := range groups {
		t := Compared{Name: g.Name, Runs: len(g.Runs), Medians: map[string]float64{}, Ratios: map[string]Ratio{}}
		for i := range figures {
			f := &figures[i]
			values, first := f.values(g.Runs), f.values(groups[0].Runs)
			if len(values) == 0 {
				continue
			}
			t.Medians[f.key] = median(values)
			if len(c.Targets) > 0 && len(first) > 0 {
				t.Ratios[f.key] = ratio(values, first)
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

// confidence is the confidence level of the intervals Ratio.Low to Ratio.High.
const confidence = 0.95

// ratio compares two samples without assumptions about their distributions. For the confidence interval it pairs the
// runs: runs that alternate are affected in the same way if the machine is slow for some time.
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

// WriteJSON writes the comparison and its runs as one JSON object.
func (c *Comparison) WriteJSON(w io.Writer) error { return writeIndented(w, c) }

// WriteText writes the comparison as text.
func (c *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range c.table() {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
	for _, o := range c.Targets {
		fmt.Fprintf(&b, "\n%s: %s", o.Name, prose.Count(o.Runs, "run"))
	}
	fmt.Fprintln(&b)
	if notes := c.Notes(); len(notes) > 0 {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(notes, "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table returns the comparison as rows of text cells, the header first.
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

// Notes returns warnings about the runs that limit the use of the figures.
func (c *Comparison) Notes() (all []string) {
	count := func(what string, is func(*Report) bool) {
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
	count("the verdict is failed", func(r *Report) bool { return r.Result() == Failed })
	count("the measurement is invalid", func(r *Report) bool { return r.Result() == Invalid })
	count("the load generator was the bottleneck: the target may be faster", func(r *Report) bool { return r.Saturated })
	count("other programs used more than a quarter of the machine", (*Report).MachineShared)
	count("the measurement took less than 1 s, which is too short to compare its figures",
		func(r *Report) bool { return r.Seconds < 1 })
	for _, r := range c.Runs {
		if why := r.settingDiff(c.Runs[0]); why != "" {
			all = append(all, "the runs had different settings: "+why)
			break
		}
	}
	return all
}

// compared reports whether [Report.Baseline] checks the figure: it describes the target and does not need as many
// samples as p99.9.
func (f *figure) compared() bool {
	return f.ofTarget() && !strings.HasSuffix(f.key, "p99.9_us")
}

// ofTarget reports whether the figure describes the target, not the load generator.
func (f *figure) ofTarget() bool { return f.key != "cpu_us_per_job_generator" }
