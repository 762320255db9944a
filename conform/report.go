package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/internal/verdict"
)

// Report contains the results of a finished run.
type Report struct {
	Protocol    *codec.Protocol
	Target      string // name of the target in reports
	Server      string // command line or address of the server
	Version     string // version of the server, or "" if it is not known
	Results     []Result
	Began       time.Time
	Took        time.Duration
	Interrupted bool     // the user ended the run before all cases had run
	Notes       []string // sentences about the run, such as that only one server could run at a time

	firstFailure bool // the run ended at the first failure, before all cases had run
}

// ErrFirstFailure is the cancellation cause with which a caller of [Runner.Run] ends the run after the first failure.
var ErrFirstFailure = errors.New("the run stopped at the first failure")

// EndedBy records why the context of the run ended, or nil. This does not matter if all cases had run.
func (r *Report) EndedBy(cause error) {
	if cause != nil && r.Count(verdict.NotRun) > 0 {
		r.firstFailure = cause == ErrFirstFailure
		r.Interrupted = !r.firstFailure
	}
}

// Count returns the number of cases with the verdict.
func (r *Report) Count(v verdict.Verdict) int {
	n := 0
	for _, c := range r.Results {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Ran returns the number of cases that have a verdict about the target, are inconclusive or were skipped.
func (r *Report) Ran() int {
	return len(r.Results) - r.Count(verdict.NotRun) - r.Count(verdict.Unreachable)
}

// Failed reports whether a case has a verdict that makes the run fail.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Results, func(c Result) bool { return c.Verdict.FailsRun() })
}

// Lost reports whether the target crashed and no case passed. A server that crashes in all cases has not been tested.
func (r *Report) Lost() bool {
	return r.Count(verdict.Crashed) > 0 && r.Count(verdict.Passed)+r.Count(verdict.NonStrict) == 0
}

// Untested returns a sentence about a run in which most cases show nothing about the target, or "". The cases that
// count are those of the level MUST or, if there are none, all; cases that were skipped do not count.
func (r *Report) Untested() string {
	for _, level := range []codec.Level{codec.Must, ""} {
		selected, silent := 0, 0
		for _, c := range r.Results {
			switch {
			case c.Verdict == verdict.Skipped || c.Verdict == verdict.Inferred || level != "" && c.Case.Level != level:
				continue
			case c.Verdict == verdict.Inconclusive || c.Verdict == verdict.NotRun || c.Verdict == verdict.Unreachable:
				silent++
			}
			selected++
		}
		if 2*silent > selected {
			kind := strings.TrimSpace(string(level) + " cases")
			return fmt.Sprintf("the run shows little about the target: %d of %d %s are inconclusive or did not run",
				silent, selected, kind)
		}
		if selected > 0 {
			return ""
		}
	}
	return "the run shows nothing about the target: all cases were skipped"
}

// Unreachable returns the reason why the run ended early because the target could not be reached, or "".
func (r *Report) Unreachable() string {
	for _, c := range r.Results {
		switch {
		case c.Verdict != verdict.Unreachable:
		case r.Ran() == 0:
			return "cannot test " + c.Note
		default:
			return fmt.Sprintf("the run ended after %d of %d cases: %s", r.Ran(), len(r.Results), c.Note)
		}
	}
	return ""
}

// Stopped returns a sentence about a run that ended before all cases had run or in which most cases show nothing about
// the target, or "".
func (r *Report) Stopped() string {
	switch {
	case r.Interrupted:
		return fmt.Sprintf("the run was interrupted after %d of %d cases: %d did not run", r.Ran(), len(r.Results),
			r.Count(verdict.NotRun))
	case r.firstFailure:
		return fmt.Sprintf("%v: %d of %d cases did not run", ErrFirstFailure, r.Count(verdict.NotRun), len(r.Results))
	case r.Unreachable() != "":
		return r.Unreachable()
	case r.Count(verdict.NotRun) > 0:
		i := slices.IndexFunc(r.Results, func(c Result) bool { return c.Verdict == verdict.NotRun })
		return fmt.Sprintf("%s after %d of %d cases: %d did not run", r.Results[i].Note, r.Ran(), len(r.Results),
			r.Count(verdict.NotRun))
	}
	return r.Untested()
}

// ExcusedCrash reports whether the target crashed during the case, as the profile expects.
func (r *Result) ExcusedCrash() bool {
	return r.Crash != nil && r.Verdict.Row().Class == verdict.Excused
}
