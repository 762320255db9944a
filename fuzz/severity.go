package fuzz

import (
	"cmp"
	"slices"
)

// kinds are the oracles, the most severe first, with their severity and title.
var kinds = []struct{ oracle, severity, title string }{
	{Signal, "critical", "server crash"},
	{Sanitizer, "critical", "memory error reported by a sanitizer"},
	{Exit, "critical", "server crash"},
	{HangAll, "critical", "server hang"},
	{Disturbed, "high", "another client's connection is disturbed"},
	{Disclosure, "high", "disclosure of data that no client sent"},
	{Processor, "high", "CPU loop"},
	{HangConn, "high", "connection hang"},
	{Memory, "medium", "memory leak"},
	{LeakReport, "medium", "memory leak reported by a sanitizer"},
	{Descriptors, "medium", "file descriptor leak"},
	{Framing, "medium", "malformed reply"},
	{Law, "medium", "wrong reply"},
}

func (f *Fault) rank() int {
	for i := range kinds {
		if kinds[i].oracle == f.Oracle {
			return i
		}
	}
	return len(kinds) - 1
}

// Severity returns critical, high or medium.
func (f *Fault) Severity() string { return kinds[f.rank()].severity }

// Title returns what the fault is called, with the signal of a crash: "server crash (segmentation fault)".
func (f *Fault) Title() string {
	title := kinds[f.rank()].title
	if f.Oracle == Law && f.Law != "" {
		title = f.Law // which is more specific, such as "missing message"
	}
	if f.Signal != "" {
		title += " (" + f.Signal + ")"
	}
	return title
}

// BySeverity sorts findings: the most severe first, reproduced ones before others, and then by name.
func BySeverity(all []*Finding) {
	reproduced := map[bool]int{true: -1}
	slices.SortStableFunc(all, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Fault.rank(), b.Fault.rank()), cmp.Compare(reproduced[a.Reproduced], reproduced[b.Reproduced]), cmp.Compare(a.Name, b.Name))
	})
}
