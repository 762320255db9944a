package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/conform"
	"jobwire/internal/prose"
	"jobwire/internal/screen"
	"jobwire/internal/verdict"
)

// conformLive is what the live display of conform shows.
type conformLive struct {
	title  screen.Title
	cases  int
	budget time.Duration // 0: no limit
	began  time.Time

	mu       sync.Mutex
	verdicts map[string]verdict.Verdict // of the cases that have ended, by ID
	failures []conform.Result
}

// showLive shows the live display of a run, and returns the function that removes it.
func (o *conformOptions) showLive(cmd *cobra.Command, run *conform.Report, cases int,
	runner *conform.Runner) (end func()) {
	if o.quiet {
		return func() {}
	}
	l := &conformLive{cases: cases, budget: runner.Budget, began: time.Now(), verdicts: map[string]verdict.Verdict{},
		title: screen.Title{Name: cmd.CommandPath() + " " + run.Protocol.Name, About: run.Target}}
	end, on := cli.StartScreen(cmd, o.color.On(cmd.ErrOrStderr()), l.frame)
	if on {
		runner.Ended = l.ended
	}
	return end
}

// maxFailures is the number of failures that the live display shows.
const maxFailures = 10

// ended adds the result of a case, which replaces an earlier one.
func (l *conformLive) ended(r conform.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.verdicts[r.Case.ID]; again {
		l.failures = slices.DeleteFunc(l.failures, func(f conform.Result) bool { return f.Case.ID == r.Case.ID })
	}
	if l.verdicts[r.Case.ID] = r.Verdict; r.Verdict.FailsRun() {
		r.Play = nil // its messages take memory
		l.failures = append(l.failures, r)
	}
}

// frame returns what the live display shows.
func (l *conformLive) frame() screen.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[verdict.Verdict]int{}
	for _, v := range l.verdicts {
		counts[v]++
	}
	var counters screen.Counters
	for _, row := range verdict.Cases {
		if n := counts[row.Verdict]; n > 0 {
			counters = append(counters, screen.Counter{Name: string(row.Verdict), Value: prose.Grouped(int64(n)),
				Tone: screen.Tone(row.Color)})
		}
	}
	list := screen.List{Title: "failures", Total: len(l.failures), Rows: maxFailures}
	for _, r := range l.failures[max(0, len(l.failures)-maxFailures):] {
		list.Items = append(list.Items, screen.Item{Word: string(r.Verdict), Tone: screen.Tone(r.Verdict.Row().Color),
			Text: r.Case.ID + "  " + cli.OneLine(r.Note)})
	}
	elapsed, done := time.Since(l.began), float64(len(l.verdicts))/float64(l.cases)
	if l.budget > 0 {
		done = max(done, min(elapsed.Seconds()/l.budget.Seconds(), 1))
	}
	return screen.Frame{l.title, screen.Bar{Done: done, Texts: []string{
		fmt.Sprintf("%s of %s", prose.Grouped(int64(len(l.verdicts))), prose.Count(l.cases, "case")),
		screen.Seconds(elapsed), screen.Left(elapsed, done)}}, counters, list,
		screen.Note("Ctrl-C ends the run; the report follows.")}
}
