// Package verdict has the table of verdicts: the results that a case of conform, or a driver of audit, can have. Reports
// in all formats and exit statuses read it.
package verdict

import "slices"

// Verdict is the result of a case, or of a driver under a fault profile.
type Verdict string

const (
	Passed Verdict = "passed"
	// the target's reply is accepted, although the specification prefers another reply
	NonStrict Verdict = "non-strict"
	// the target did not do what the case expects, but the specification is silent about it
	Different    Verdict = "different"
	Failed       Verdict = "failed"       // the target did not do what the case expects
	Inconsistent Verdict = "inconsistent" // the result depends on how messages are divided into writes
	Crashed      Verdict = "crashed"      // the process of the target, or the driver, ended
	// after the case, the target did not reply on a new connection; or the driver did not answer
	Hung        Verdict = "hung"
	Unreachable Verdict = "unreachable" // the target did not start, or did not accept a connection
	// a setup does not work on the target, or the target or this machine was too slow for the time limits
	Inconclusive Verdict = "inconclusive"
	Skipped      Verdict = "skipped" // the case does not apply to the target
	NotRun       Verdict = "not run" // the run ended before the case
	// not run, or not to its end, because other instances of the case, or other cases with the same message, failed in the
	// same way
	Inferred   Verdict = "inferred"
	Known      Verdict = "expected failure" // the case failed, and the profile lists it as failing
	Flaky      Verdict = "flaky"            // the case failed, and the profile lists it as flaky
	Unexpected Verdict = "unexpected pass"  // the case passed, and the profile lists it as failing
)

// Verdicts that only drivers have.
const (
	Completed     Verdict = "completed"
	FailedCleanly Verdict = "failed cleanly" // the driver reported an error, and completed the task when it was repeated
	Unsupported   Verdict = "unsupported"    // the driver cannot perform the task, which is not an error
	Unrecovered   Verdict = "not recovered"  // the driver reported an error, and later tasks failed, too
	WrongResult   Verdict = "wrong result"
	NotApplicable Verdict = "not applicable" // the fault profile changed nothing that a correct driver receives
)

// Class is what a verdict means for the run: for its exit status, and in JUnit XML and TAP.
type Class int

const (
	Pass    Class = iota
	Note          // a pass with a remark
	Excused       // a failure that the profile lists
	Skip          // no result
	Failure       // the run fails
	Error         // the run fails, because the target ended, does not reply or cannot be reached
)

// Row is the row of a verdict in the table.
type Row struct {
	Verdict  Verdict
	Severity int // a higher value is worse
	Class    Class
	Tried    bool // the target received the messages of the case
	Decided  bool // the verdict is about the target, and not about an interpretation that the target does not share

	// Symbol and words convey the verdict without colors.
	Symbol string
	Tone   string // CSS class: good, fair, bad or none
	Color  string // color of a terminal: the parameter of its SGR sequence

	Requirement Verdict // what the case shows about the requirement that it tests
	Meaning     string  // a sentence for the legend of a page
}

// Cases has the rows of the verdicts on cases, in the order of summaries.
var Cases = []Row{
	{Passed, 0, Pass, true, true, "✓", "good", "32", Passed, "The target replied as the specification asks."},
	{NonStrict, 4, Note, true, true, "≈", "fair", "33", NonStrict,
		"The case accepts the reply, but the specification asks for a different reply."},
	{Different, 6, Note, true, false, "△", "fair", "33", Different,
		"The target did something else where the specification is silent. The case tests jobwire's interpretation."},
	{Known, 7, Excused, true, true, "◇", "fair", "33", Failed,
		"The case failed. The profile of the target lists it as failing."},
	{Flaky, 8, Excused, true, true, "~", "fair", "33", Flaky,
		"The case failed. The profile of the target says that it fails in some runs."},
	{Failed, 12, Failure, true, true, "✗", "bad", "31", Failed, "The target did not reply as the specification asks."},
	{Inconsistent, 11, Failure, true, true, "≠", "bad", "31", Failed,
		"The result depends on how the messages are divided into writes to the socket."},
	{Crashed, 14, Error, true, true, "†", "bad", "31", Crashed, "The process of the target ended during the case."},
	{Hung, 13, Error, true, true, "∞", "bad", "31", Crashed,
		"After the case, the target answered no request on a new connection."},
	{Unexpected, 10, Failure, true, true, "!", "bad", "31", Passed,
		"The case passed, but the profile of the target lists it as failing."},
	{Unreachable, 9, Error, false, false, "∅", "bad", "31", NotRun,
		"The target did not start or did not accept a connection."},
	{Inconclusive, 5, Skip, true, false, "?", "none", "33", Inconclusive,
		"A setup of the case does not work on the target, or the target, the connection or the machine that ran jobwire " +
			"was too slow for the time limits of the case."},
	{Inferred, 2, Skip, false, false, "⋯", "none", "90", NotRun,
		"The instance of a case was not run, because other instances with the same message failed in the same way."},
	{Skipped, 3, Skip, false, false, "–", "none", "90", Skipped,
		"The case was not run, because the target does not have a feature that the case needs."},
	{NotRun, 1, Skip, false, false, "·", "none", "90", NotRun, "The run ended before the case."},
}

// table has all rows. The verdicts that only drivers have stand in no page.
var table = append(slices.Clip(Cases),
	Row{Verdict: NotApplicable, Severity: 0, Class: Pass},
	Row{Verdict: Unsupported, Severity: 1, Class: Pass},
	Row{Verdict: Completed, Severity: 2, Class: Pass, Tried: true, Decided: true},
	Row{Verdict: FailedCleanly, Severity: 10, Class: Failure, Tried: true, Decided: true},
	Row{Verdict: Unrecovered, Severity: 11, Class: Failure, Tried: true, Decided: true},
	Row{Verdict: WrongResult, Severity: 12, Class: Failure, Tried: true, Decided: true})

// Row returns the row of the verdict, or a row with only its name if there is none.
func (v Verdict) Row() Row {
	if i := slices.IndexFunc(table, func(r Row) bool { return r.Verdict == v }); i >= 0 {
		return table[i]
	}
	return Row{Verdict: v}
}

// FailsRun reports whether the verdict makes a run fail.
func (v Verdict) FailsRun() bool { return v.Row().Class >= Failure }

// Passes reports whether the target did what the case accepts.
func (v Verdict) Passes() bool { row := v.Row(); return row.Decided && row.Class <= Note }

// Stops reports whether the target, or the driver, ended or hung.
func (v Verdict) Stops() bool { return v == Crashed || v == Hung }

// Severity orders verdicts. A higher value is worse.
func (v Verdict) Severity() int { return v.Row().Severity }
