package loadgen

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
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

	cpu        bool // a processor time, which is measured in ticks
	percentile bool // of latency: it grows faster than the time that a job takes if processors are short
}

func latencyFigure(stage, name string) figure {
	c := columns[column(name)]
	return figure{key: stage + "_" + c.name + "_us", title: stage + " " + c.name, of: func(r *Report) float64 {
		q := r.Latency[stage]
		return float64(c.of(&q))
	}, interval: func(e *IntervalEntry) float64 {
		q := e.Latency[stage]
		return float64(c.of(&q))
	}, format: formatMicros, percentile: true}
}

func cpuFigure(end string, of func(*Report) Micros, interval func(*IntervalEntry) float64) figure {
	return figure{key: "cpu_us_per_job_" + end, title: "CPU per job, " + end, of: func(r *Report) float64 { return float64(of(r)) }, interval: interval, format: formatMicros, cpu: true}
}

func formatMicros(v float64) string { return Micros(v).String() }

// figures are what runs are compared by.
var figures = []figure{
	{key: "rate", title: "jobs/s", higher: true, of: func(r *Report) float64 { return r.Rate }, interval: (*IntervalEntry).Rate, format: formatJobs},
	cpuFigure("target", func(r *Report) Micros { return r.CPU.Target }, func(e *IntervalEntry) float64 { return float64(e.Target) }),
	cpuFigure("generator", func(r *Report) Micros { return r.CPU.Generator }, func(e *IntervalEntry) float64 { return float64(e.Generator) }),
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
	count("other programs used more than a quarter of the machine", (*Report).MachineShared)
	count("the measurement took less than 1 s, which is too short to compare its figures", func(r *Report) bool { return r.Seconds < 1 })
	for _, r := range c.Runs {
		if why := r.settingDiff(c.Runs[0]); why != "" {
			all = append(all, "the runs had different settings: "+why)
			break
		}
	}
	return all
}

// compared reports whether comparisons use the figure: it describes the target and has enough samples.
func (f *figure) compared() bool {
	return f.ofTarget() && !strings.HasSuffix(f.key, "p99.9_us")
}

// ofTarget reports whether a figure shows how good the target is, rather than the load generator.
func (f *figure) ofTarget() bool { return f.key != "cpu_us_per_job_generator" }
