package fuzzcmd

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/fuzz"
	"jobwire/fuzz/report"
	"jobwire/internal/prose"
	"jobwire/internal/screen"
)

// live is the live display of a run. Its methods do nothing if it is nil.
type live struct {
	title    screen.Title
	duration time.Duration // 0: no limit
	count    int64         // number of executions; 0: no limit
	stop     func()

	mu       sync.Mutex
	stats    fuzz.Stats
	rates    []float64 // executions per second, for each update
	findings []*report.Finding
}

// showLive shows the live display of a run, and returns nil if standard error is not a terminal that can show it.
func showLive(cmd *cobra.Command, target string, o *fuzzOptions) *live {
	l := &live{duration: o.duration, count: o.count,
		title: screen.Title{Name: cmd.CommandPath() + " " + cmd.Flags().Arg(0), About: target}}
	stop, on := cli.StartScreen(cmd, cli.WantsColor(cmd.ErrOrStderr()), l.frame)
	if !on {
		return nil
	}
	l.stop = stop
	return l
}

// update shows new statistics, and reports whether there is a live display.
func (l *live) update(s fuzz.Stats) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := s.Elapsed - l.stats.Elapsed; d > 0 {
		l.rates = append(l.rates, float64(s.Executions-l.stats.Executions)/d.Seconds())
	}
	l.stats = s
	return true
}

// found adds a finding, or replaces it, and reports whether there is a live display.
func (l *live) found(f *report.Finding) bool {
	if l == nil {
		return false
	}
	l.dropped(f.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findings = append(l.findings, f)
	slices.SortStableFunc(l.findings, func(a, b *report.Finding) int {
		return cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level))
	})
	return true
}

// dropped removes a finding that another one replaces.
func (l *live) dropped(name string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findings = slices.DeleteFunc(l.findings, func(f *report.Finding) bool { return f.Name == name })
}

// end removes the live display, so that the report can take its place.
func (l *live) end() {
	if l != nil {
		l.stop()
	}
}

// levels are the levels of findings, the most severe first.
var levels = []string{"critical", "high", "medium", "low"}

// tones are the colors of the levels.
var tones = map[string]screen.Tone{"critical": screen.Bad, "high": screen.Bad, "medium": screen.Fair, "low": screen.Dim}

// maxListed is the number of findings that the live display shows.
const maxListed = 10

// frame returns what the live display shows.
func (l *live) frame() screen.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.stats
	number := func(name string, n int64) screen.Counter { return screen.Counter{Name: name, Value: prose.Grouped(n)} }
	rate := 0.0
	if n := len(l.rates); n > 0 {
		rate = l.rates[n-1]
	}
	list := screen.List{Title: "findings", First: true, Total: len(l.findings), Rows: maxListed}
	found := screen.Counters{}
	for _, level := range levels {
		n := 0
		for _, f := range l.findings {
			if f.Level == level {
				n++
				list.Items = append(list.Items, screen.Item{Word: level, Tone: tones[level], Text: f.Title})
			}
		}
		if n > 0 {
			found = append(found, screen.Counter{Name: level, Value: prose.Grouped(int64(n)), Tone: tones[level]})
		}
	}
	return screen.Frame{l.title, l.bar(),
		screen.Graphs{{Label: "executions", Values: l.rates, Text: prose.Grouped(int64(rate)) + "/s"}},
		screen.Counters{number("executions", s.Executions), number("messages", s.Messages),
			number("server starts", int64(s.Starts))},
		screen.Counters{number("states", int64(s.Features)), number("corpus", int64(s.Corpus))},
		screen.Counters{number("candidates examined", int64(s.Examined)), number("waiting", int64(s.Unexamined)),
			number("not reproduced", int64(s.NotReproduced)), number("duplicates", int64(s.Duplicates))},
		found, list, screen.Note(cmp.Or(s.Doing, "starting") + "; Ctrl-C ends the run; the report follows.")}
}

// bar returns the bar of the run: the part of its time or of its executions that is over.
func (l *live) bar() screen.Bar {
	elapsed, done := l.stats.Elapsed, 0.0
	texts := []string{screen.Seconds(elapsed)}
	if l.duration > 0 {
		done = min(elapsed.Seconds()/l.duration.Seconds(), 1)
		texts[0] += " of " + screen.Until(l.duration)
	}
	if part := float64(l.stats.Executions) / float64(l.count); l.count > 0 && part >= done {
		done = min(part, 1)
		texts = []string{fmt.Sprintf("%s of %s executions", prose.Grouped(l.stats.Executions), prose.Grouped(l.count)),
			screen.Seconds(elapsed)}
	}
	return screen.Bar{Done: done, Texts: append(texts, screen.Left(elapsed, done))}
}
