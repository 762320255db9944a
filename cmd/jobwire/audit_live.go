package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/internal/prose"
	"jobwire/internal/screen"
)

// stressLive is the live display of audit stress.
type stressLive struct {
	title    screen.Title
	progress audit.Progress
	began    time.Time
}

// showLive shows the live display of a stress test, and returns the function that removes it.
func (o *stressOptions) showLive(cmd *cobra.Command, p *codec.Protocol, opts *audit.StressOptions) (end func()) {
	if o.quiet {
		return func() {}
	}
	l := &stressLive{began: time.Now(), title: screen.Title{Name: cmd.CommandPath() + " " + p.Name,
		About: "the reference client and worker"}}
	if len(o.programs) > 0 {
		l.title.About = strings.Join(o.programs, ", ")
	}
	end, on := cli.StartScreen(cmd, o.color.On(cmd.ErrOrStderr()), l.frame)
	if on {
		opts.Progress = &l.progress
	}
	return end
}

// frame returns what the live display shows.
func (l *stressLive) frame() screen.Frame {
	s := l.progress.Status()
	counts := map[string]int{}
	failing := screen.List{Title: "failing", Rows: maxFailures}
	for _, x := range s.Ended {
		tone := screen.Bad
		switch {
		case !x.Passed():
			counts["failed"]++
		case x.Inconclusive():
			counts["inconclusive"]++
			tone = screen.Fair
		default:
			counts["passed"]++
			continue
		}
		failing.Total++
		failing.Items = append(failing.Items, screen.Item{Word: x.Role, Tone: tone,
			Text: fmt.Sprintf("%s  %s: %s", x.FaultProfile.Name, x.Verdict, cli.OneLine(x.Task))})
	}
	var counters screen.Counters
	for _, c := range []screen.Counter{{Name: "passed", Tone: screen.Good}, {Name: "failed", Tone: screen.Bad},
		{Name: "inconclusive", Tone: screen.Fair}} {
		if n := counts[c.Name]; n > 0 {
			c.Value = prose.Grouped(int64(n))
			counters = append(counters, c)
		}
	}
	now := screen.List{Title: "now", Total: len(s.Now), Rows: len(s.Now)}
	for _, a := range s.Now {
		text := a.Profile.Name
		if a.Repetitions > 1 {
			text += fmt.Sprintf(" %d/%d", a.Repetition, a.Repetitions)
		}
		now.Items = append(now.Items, screen.Item{Word: a.Role,
			Text: fmt.Sprintf("%s  %s  %s", text, screen.Seconds(time.Since(a.Began)), cli.OneLine(a.Task))})
	}
	elapsed, done := time.Since(l.began), 0.0
	text := "the tasks without faults"
	if s.Runs > 0 {
		done = float64(s.Done) / float64(s.Runs)
		text = fmt.Sprintf("%s of %s", prose.Grouped(int64(s.Done)), prose.Count(s.Runs, "run"))
	}
	return screen.Frame{l.title, screen.Bar{Done: done, Texts: []string{text, screen.Seconds(elapsed),
		screen.Left(elapsed, done)}}, counters, failing, now, screen.Note("Ctrl-C ends the run; the report follows.")}
}
