package report

import (
	"fmt"
	"jobwire/pcap/jobs"
	"slices"
	"strings"
	"time"
)

// timelines fills in the drawn jobs: jobs with unusual events, and some of the others. If the longest job is
// much shorter than the capture, all timelines begin at the left edge.
func (d *pageData) timelines(all []*jobs.Timeline, more int, from, to int64) {
	if len(all) == 0 {
		return
	}
	chosen, left := sample(all)
	d.TimelinesLeft = left + more
	lengths := make([]int64, len(chosen))
	for i, l := range chosen {
		lengths[i] = length(l)
	}
	slices.Sort(lengths)
	span := max(1, lengths[len(lengths)-1])
	if d.Relative = span*4 < to-from; !d.Relative {
		span = max(1, to-from)
	} else if usual := max(1, lengths[len(lengths)*9/10]); span > 3*usual { // a few jobs are much longer than the others
		span, d.Cut = 2*usual, true
	}
	d.Ticks = ticks(span)
	for _, l := range chosen {
		start := from
		if d.Relative {
			start = l.Stages[0].At
		}
		row := draw(l, start, span, from, to)
		row.Cut = d.Relative && length(l) > span
		d.Timelines = append(d.Timelines, row)
	}
}

// sample returns the drawn jobs in their original order, and the number of the others.
func sample(all []*jobs.Timeline) (chosen []*jobs.Timeline, left int) {
	all = slices.DeleteFunc(all, func(l *jobs.Timeline) bool { return len(l.Stages) == 0 })
	if len(all) <= pageJobs {
		return all, 0
	}
	preferred := 0
	for _, l := range all {
		if unusual(l) && preferred < pageUnusual {
			preferred++
		}
	}
	step := max(1, (len(all)+pageJobs-preferred-1)/(pageJobs-preferred))
	for i, l := range all {
		switch {
		case len(chosen) == pageJobs:
		case unusual(l) && preferred > 0:
			preferred--
			chosen = append(chosen, l)
		case i%step == 0:
			chosen = append(chosen, l)
		}
	}
	return chosen, len(all) - len(chosen)
}

// stageBars maps a stage to the bar that begins with it; "" ends a bar.
var stageBars = map[string]string{
	"submitted": "wait", "created": "wait", "queued again": "wait", "coalesced": "", "assigned": "run",
	"assigned again": "run", "released": "wait",
	"buried": "buried", "kicked": "wait", "result delivered": "end", "refused": "end", "deleted": "end",
}

// barOf returns the bar that begins with a stage. A stage that is not in stageBars ends the run.
func barOf(what string) string {
	name, _, _ := strings.Cut(what, ":")
	if class, ok := stageBars[name]; ok {
		return class
	}
	return "return"
}

// unusual reports whether the timeline of a job contains unusual events.
func unusual(l *jobs.Timeline) bool {
	return l.Uncertain || open(l) || slices.ContainsFunc(l.Stages, func(s jobs.Stage) bool {
		return strings.HasPrefix(s.What, "assigned again") || s.What == "released" || s.What == "buried" ||
			s.What == "refused" || s.What == "failed"
	})
}

// open reports whether a job has not ended.
func open(l *jobs.Timeline) bool {
	switch barOf(l.Stages[len(l.Stages)-1].What) {
	case "wait", "run", "buried":
		return true
	}
	return false
}

func length(l *jobs.Timeline) int64 { return l.Stages[len(l.Stages)-1].At - l.Stages[0].At }

// draw returns the row of a timeline, for an axis that begins at start and is span nanoseconds long. The
// capture lasts from from to to. A job that has not ended is drawn up to the end of the capture.
func draw(l *jobs.Timeline, start, span, from, to int64) pageTimeline {
	row := pageTimeline{Handle: l.Handle, Function: l.Function, Unusual: unusual(l),
		Cells: []string{shortly(time.Duration(l.Stages[0].At - from)), "", "", ""}}
	var words []string
	var sums [3]time.Duration
	class, since := "", int64(0)
	bar := func(until int64) {
		if class == "" || class == "end" {
			return
		}
		took := time.Duration(until - since)
		for i, c := range []string{"wait", "run", "return"} {
			if c == class {
				sums[i] += took
				row.Cells[i+1] = shortly(sums[i])
			}
		}
		row.Bars = append(row.Bars, pageBar{class, percent(since-start, span), percent(until-since, span), class + " " +
			shortly(took)})
	}
	for i, s := range l.Stages {
		text := s.What
		if i > 0 {
			text += " +" + shortly(time.Duration(s.At-l.Stages[0].At))
		}
		words = append(words, fmt.Sprintf("%s (connection %d)", text, s.Conn))
		next := barOf(s.What)
		if next == "" || next == class && next == "wait" {
			continue
		}
		bar(s.At)
		if strings.HasPrefix(s.What, "assigned again") {
			row.Bars = append(row.Bars, pageBar{"again", percent(s.At-start, span), "", s.What})
		}
		class, since = next, s.At
	}
	if open(l) {
		bar(min(to, start+span))
		words = append(words, "not ended in the capture")
	}
	if l.More > 0 {
		words = append(words, fmt.Sprintf("and %d more", l.More))
	}
	if l.Uncertain {
		words = append(words, "uncertain, because bytes are missing in the capture")
	}
	row.Words = strings.Join(words, ", ")
	return row
}
