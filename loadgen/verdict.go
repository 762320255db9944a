package loadgen

import (
	"fmt"
	"runtime"
	"time"
)

// tally is one count of the accounting.
type tally struct {
	key   string // as in JSON
	count func(*Report) *int64
	bad   bool   // it may not happen
	words string // what happened to so many jobs
}

// tallies are the counts of a report, in the order in which they are told.
var tallies = []tally{
	{"lost", func(r *Report) *int64 { return &r.Lost }, true, "lost: never heard of again"},
	{"unacknowledged", func(r *Report) *int64 { return &r.Unacked }, true, "unacknowledged: they ended, and their submission was never answered"},
	{"duplicated", func(r *Report) *int64 { return &r.Duplicated }, true, "duplicated: run again for no reason, or after their end"},
	{"corrupted", func(r *Report) *int64 { return &r.Corrupted }, true, "corrupted: not what was sent"},
	{"answered_twice", func(r *Report) *int64 { return &r.AnsweredTwice }, true, "answered twice: a result came for a job that had ended"},
	{"misdirected", func(r *Report) *int64 { return &r.Misdirected }, true, "misdirected: answered to another client"},
	{"refused", func(r *Report) *int64 { return &r.Refused }, true, "refused: answered with an error"},
	{"redelivered", func(r *Report) *int64 { return &r.Redelivered }, false, "redelivered, since their worker was killed"},
	{"out_of_order", func(r *Report) *int64 { return &r.OutOfOrder }, false, "taken before an older one of the same client, function and priority"},
	{"censored", func(r *Report) *int64 { return &r.Censored }, false, "censored: still under way when the run was ended"},
	{"skipped", func(r *Report) *int64 { return &r.Skipped }, false, "skipped: due, but too many were under way already"},
}

// Sound reports whether nothing happened to any job that should not.
func (r *Report) Sound() bool {
	for _, t := range tallies {
		if t.bad && *t.count(r) > 0 {
			return false
		}
	}
	return true
}

// Held reports whether the run came to its end, nothing happened to any job that should not,
// and all objectives were met.
func (r *Report) Held() bool {
	for i := range r.Objectives {
		if !r.Objectives[i].Held {
			return false
		}
	}
	return r.Error == "" && !r.Interrupted && (r.Linear == nil || r.Linear.Holds) && r.Sound()
}

// When a generator counts as saturated: it was behind its own schedule by more than a timer
// is, it used nearly all the processors that it may, or the machine was nearly full and
// the generator took the most of it.
const (
	fullyBusy = 0.9
	maxLate   = 2 * time.Millisecond // on average
	shortest  = 0.2                  // seconds, below which processor times, in ticks, say too little
)

// saturation says how it shows that the generator was saturated; "" is that it was not.
func (r *Report) saturation() string {
	if r.Pacing != nil && r.Pacing.Mean.Duration() > maxLate {
		return fmt.Sprintf("it was behind its own schedule by %v on average", r.Pacing.Mean)
	}
	if r.Cores.Generator == nil || r.Seconds < shortest {
		return ""
	}
	used, target, foreign := *r.Cores.Generator, 0.0, 0.0
	if r.Cores.Target != nil {
		target = *r.Cores.Target
	}
	if r.Cores.Foreign != nil {
		foreign = *r.Cores.Foreign
	}
	switch machine := float64(runtime.NumCPU()); {
	case used >= fullyBusy*float64(r.Processors):
		return fmt.Sprintf("it used %.2f of the %d processors that it may use", used, r.Processors)
	case used+target+foreign >= fullyBusy*machine && used > max(target, foreign):
		return fmt.Sprintf("it used %.2f processors and the target %.2f, and there are %d", used, target, runtime.NumCPU())
	}
	return ""
}

// crowded is the share of the machine's processors above which others, using them, spoil the
// figures.
const crowded = 0.25

// Disturbed reports whether others used so much of the machine.
func (r *Report) Disturbed() bool {
	return r.Cores.Foreign != nil && *r.Cores.Foreign > crowded*float64(runtime.NumCPU())
}
