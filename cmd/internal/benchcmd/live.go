package benchcmd

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/internal/prose"
	"jobwire/internal/screen"
	"jobwire/loadgen"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// live shows a run, or the trials of a search: on a terminal that can show it as a live display, otherwise as lines. A
// nil live shows nothing.
type live struct {
	stop       func()    // removes the live display
	w          io.Writer // for a line per interval, and per trial
	on, search bool
	backlog    bool // all jobs are queued before the measured part
	objectives []*report.Objective

	mu      sync.Mutex
	title   screen.Title
	tried   screen.Counters // of a search
	cfg     loadgen.Config  // of the run
	shown   time.Time
	began   time.Time        // start of the run; zero: it has not started
	phase   string           // "": the warm-up or the measured part
	last    loadgen.Interval // the latest interval with jobs
	account loadgen.Account
	begun   bool      // the measured part has begun
	ended   int64     // number of jobs that have ended; in a run with a backlog, only in this part of the run
	rate    []float64 // of the intervals, of all trials
	p50     []float64
	p99     []float64
}

// newLive shows a live display, or prepares to print lines. Call end before the report is written.
func (o *benchOptions) newLive(cmd *cobra.Command, sys *catalog.Entry, scenario string) *live {
	if o.quiet {
		return nil
	}
	sc := scenarioNamed(sys, scenario)
	l := &live{w: cmd.ErrOrStderr(), search: o.kind == searchBench, backlog: sc.Backlog && !sc.Enqueue,
		objectives: o.objective, shown: time.Now(), phase: "starting",
		title: screen.Title{Name: cmd.CommandPath() + " " + sys.Protocol.Name,
			About: fmt.Sprintf("%s, scenario %s", o.target.Name(sys), scenario)}}
	if !o.start.IsZero() {
		l.phase = "begins at " + o.start.Local().Format(time.TimeOnly)
	}
	l.stop, l.on = cli.StartScreen(cmd, cli.WantsColor(l.w), l.frame)
	return l
}

// begin starts to show a run.
func (l *live) begin(cfg loadgen.Config) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg, l.began, l.phase, l.account, l.ended, l.begun = cfg, time.Now(), "", loadgen.Account{}, 0, false
}

// interval shows the figures of one interval of a run. measured is false for an interval outside of the measurement
// window.
func (l *live) interval(iv *loadgen.Interval, measured bool) {
	switch {
	case l == nil:
		return
	case l.on:
		l.add(iv, measured)
	case !l.search:
		var line strings.Builder
		format.Interval(&line, iv, measured)
		fmt.Fprintln(l.w, line.String())
	}
}

// add adds an interval to the live display.
func (l *live) add(iv *loadgen.Interval, measured bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = append(l.rate, iv.Rate())
	if l.last.Done, l.last.Depth, l.last.Length = iv.Done, iv.Depth, iv.Length; iv.Draining {
		l.phase = fmt.Sprintf("waiting for %s", prose.Count(iv.Depth, "job"))
		return // an interval after the measured part has no other figures
	}
	if measured && !l.begun && l.backlog {
		l.ended = 0
	}
	l.begun = measured
	l.ended += iv.Done
	l.last.Latency, l.account = iv.Latency, iv.Account
	total := iv.JobLatency()
	l.p50, l.p99 = append(l.p50, float64(total.P50)), append(l.p99, float64(total.P99))
}

// trial shows the latest trial of a search.
func (l *live) trial(r *experiment.LimitRange) {
	if l == nil {
		return
	}
	format.Trial(l.w, &r.Trials[len(r.Trials)-1])
	rate := func(name string, v float64, tone screen.Tone) screen.Counter {
		if v == 0 {
			return screen.Counter{Name: name, Value: "-"}
		}
		return screen.Counter{Name: name, Value: prose.Grouped(int64(math.Round(v))) + " jobs/s", Tone: tone}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = screen.Counters{{Name: "trials", Value: fmt.Sprint(len(r.Trials))},
		rate("highest that passed", r.Passed, screen.Good), rate("lowest that did not", r.Failed, screen.Bad)}
}

// end removes the live display, so that the report can take its place.
func (l *live) end() {
	if l != nil {
		l.stop()
	}
}

// frame returns what the live display shows.
func (l *live) frame() screen.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := screen.Frame{l.title, l.bar()}
	if l.search {
		elapsed := screen.Counter{Name: "elapsed", Value: screen.Seconds(time.Since(l.shown))}
		f = append(f, append(slices.Clip(l.tried), elapsed))
	}
	if len(l.rate) > 0 {
		total := l.last.JobLatency()
		f = append(f, screen.Graphs{
			{Label: "rate", Values: l.rate, Text: prose.Grouped(int64(l.last.Rate())) + " jobs/s"},
			{Label: "p50", Values: l.p50, Text: total.P50.String()},
			{Label: "p99", Values: l.p99, Text: total.P99.String()},
		}, l.stages(), l.counters(), l.goals())
	}
	what := "the run"
	if l.search {
		what = "the search"
	}
	return append(f, screen.Note("Ctrl-C ends "+what+"; the report follows."))
}

// bar returns the bar of the run: the part of its time or of its jobs that is over.
func (l *live) bar() screen.Bar {
	if l.began.IsZero() {
		return screen.Bar{Texts: []string{l.phase}}
	}
	elapsed, length, done := time.Since(l.began), time.Duration(0), 0.0
	of := ""
	if l.cfg.Duration > 0 {
		length = l.cfg.Ramp + l.cfg.Warmup + l.cfg.Duration
		done = min(elapsed.Seconds()/length.Seconds(), 1)
		of = " of " + screen.Until(length)
	}
	phase := l.phase
	switch {
	case phase != "":
	case l.backlog && !l.begun:
		phase = "queueing jobs"
	case elapsed < l.cfg.Ramp+l.cfg.Warmup:
		phase = "warm-up"
	default:
		phase = "measuring"
	}
	if l.cfg.Rate != nil && l.search {
		phase = prose.Grouped(int64(math.Round(l.cfg.Rate.Mean(0, time.Second)))) + " jobs/s, " + phase
	}
	texts := []string{phase, screen.Seconds(elapsed) + of}
	if part := float64(l.ended) / float64(l.cfg.Count); l.cfg.Count > 0 && part >= done {
		done = min(part, 1)
		texts = []string{phase, fmt.Sprintf("%s of %s jobs", prose.Grouped(l.ended), prose.Grouped(l.cfg.Count)),
			screen.Seconds(elapsed)}
	}
	return screen.Bar{Done: done, Texts: append(texts, screen.Left(elapsed, done))}
}

// stages returns the latencies of the stages of a job.
func (l *live) stages() screen.Table {
	t := screen.Table{Head: []string{"stage", "p50", "p90", "p99", "max"}}
	for _, stage := range latency.Stages {
		if q := l.last.Latency[stage]; q.Count > 0 {
			t.Rows = append(t.Rows, []string{stage, q.P50.String(), q.P90.String(), q.P99.String(), q.Max.String()})
		}
	}
	return t
}

// counters returns what happened to the jobs so far.
func (l *live) counters() screen.Counters {
	all := screen.Counters{{Name: "jobs", Value: prose.Grouped(l.ended)},
		{Name: "in flight", Value: prose.Grouped(l.last.Depth)}}
	for _, c := range loadgen.Counters {
		n, tone := *c.Of(&l.account), screen.Plain
		switch {
		case n > 0 && c.Bad:
			tone = screen.Bad
		case n > 0:
			tone = screen.Fair
		case c.Key != "lost" && c.Key != "duplicated":
			continue
		}
		all = append(all,
			screen.Counter{Name: strings.ReplaceAll(c.Key, "_", " "), Value: prose.Grouped(n), Tone: tone})
	}
	return all
}

// goals returns the objectives with their values in the latest interval.
func (l *live) goals() (all screen.Counters) {
	now := report.Report{Rate: l.last.Rate(), Seconds: l.last.Length.Seconds(), Latency: l.last.Latency}
	for _, o := range l.objectives {
		c := screen.Counter{Name: o.Text, Value: "-"}
		if r := o.Check(&now); r.Value != nil {
			if c.Value, c.Tone = strings.TrimPrefix(r.Why, "measured ")+" now", screen.Good; r.Result != report.Passed {
				c.Tone = screen.Bad
			}
		}
		all = append(all, c)
	}
	return all
}
