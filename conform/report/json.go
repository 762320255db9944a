package report

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

// HeadJSON contains the first fields of each JSON report, about the program that wrote the report and the time of the
// run.
type HeadJSON struct {
	version.Head
	Start       string  `json:"start"` // RFC 3339, UTC
	Duration    float64 `json:"duration_seconds"`
	Interrupted bool    `json:"interrupted"` // the user ended the run before all cases had run
}

// NewHeadJSON returns the head of a report about a run.
func NewHeadJSON(began time.Time, took time.Duration, interrupted bool) HeadJSON {
	return HeadJSON{version.NewHead(), began.UTC().Format(startLayout), took.Seconds(), interrupted}
}

// startLayout is RFC 3339 with milliseconds.
const startLayout = "2006-01-02T15:04:05.000Z07:00"

// reportJSON is the JSON form of a report.
type reportJSON struct {
	HeadJSON
	Protocol string         `json:"protocol"`
	Target   string         `json:"target"`
	Server   string         `json:"server,omitempty"`
	Version  string         `json:"server_version,omitempty"`
	Error    string         `json:"error,omitempty"` // reason why the target could not be reached
	Notes    []string       `json:"notes,omitempty"` // sentences about the run
	Summary  map[string]int `json:"summary"`         // "cases", "ran", and a count for each verdict
	Causes   []causeJSON    `json:"causes"`
	Cases    []caseJSON     `json:"cases"`
}

// causeJSON is a [Cause].
type causeJSON struct {
	Kind      conform.CauseKind `json:"kind"`
	Text      string            `json:"text"`
	Rule      codec.RuleID      `json:"rule,omitempty"`
	Level     codec.Level       `json:"level"`
	Expected  bool              `json:"expected"`
	Cases     []string          `json:"cases"`
	Instances int               `json:"instances"`
	Inferred  int               `json:"inferred"`
	Example   string            `json:"example"` // ID of the instance that shows the fault in the fewest events
	Try       []conform.Hint    `json:"try"`
}

type caseJSON struct {
	ID       string          `json:"id"`
	Case     string          `json:"case"` // name of the case, without the parameters of an instance
	Section  string          `json:"section"`
	About    string          `json:"about"`
	Rules    []codec.RuleID  `json:"rules"`
	Rule     codec.RuleID    `json:"rule,omitempty"`    // rule that the failed step tests
	Level    codec.Level     `json:"level"`             // of what the target did not meet
	Program  string          `json:"program,omitempty"` // role of the client or worker that the case tests
	Verdict  verdict.Verdict `json:"verdict"`
	Duration float64         `json:"duration_seconds"`
	Note     string          `json:"note,omitempty"`
	Assumes  string          `json:"interpretation,omitempty"` // assumption of the case where the specification is silent
	// how messages were divided into writes when the case did not pass
	Segments string        `json:"segments,omitempty"`
	Broken   codec.RuleID  `json:"broken,omitempty"`   // rule of the message format that a reply broke
	Quote    string        `json:"quote,omitempty"`    // words of the specification that the target does not follow
	Finding  string        `json:"finding,omitempty"`  // finding that explains the failure, from the profile
	Accepted *acceptedJSON `json:"accepted,omitempty"` // only for a non-strict pass
	Crash    *crashJSON    `json:"crash,omitempty"`
	File     string        `json:"file"`
	Line     int           `json:"line"` // line of the step that failed, or of the case
	// command line that runs only this case; only if the case did not pass
	Command string `json:"command,omitempty"`
}

// acceptedJSON describes a non-strict reply that a case accepted, and the reply that the specification prefers.
type acceptedJSON struct {
	Expected string `json:"expected"`
	Got      string `json:"got"`
	Line     int    `json:"line"`
}

type crashJSON struct {
	Exit   string   `json:"exit,omitempty"`
	Fault  string   `json:"fault,omitempty"`
	Where  string   `json:"where,omitempty"`
	Output []string `json:"output"`
}

// WriteJSON writes one JSON object, which docs/schema/conform.json describes: the report or, if there are several, an
// object with the list "reports".
func WriteJSON(w io.Writer, reports []*conform.Report) error {
	var all []reportJSON
	for _, r := range reports {
		all = append(all, newReportJSON(r))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if len(all) == 1 {
		return e.Encode(all[0])
	}
	var out struct {
		HeadJSON
		Reports []reportJSON `json:"reports"`
	}
	var began time.Time
	var took time.Duration
	interrupted := false
	if len(reports) > 0 {
		last := reports[len(reports)-1]
		began = reports[0].Began
		took = last.Began.Add(last.Took).Sub(began)
		interrupted = slices.ContainsFunc(reports, func(r *conform.Report) bool { return r.Interrupted })
	}
	out.HeadJSON, out.Reports = NewHeadJSON(began, took, interrupted), all
	return e.Encode(out)
}

// newReportJSON converts a report to the form of its JSON output, with the causes and the cases.
func newReportJSON(r *conform.Report) reportJSON {
	out := reportJSON{
		HeadJSON: NewHeadJSON(r.Began, r.Took, r.Interrupted),
		Protocol: r.Protocol.Name,
		Target:   r.Target,
		Server:   r.Server,
		Version:  r.Version,
		Error:    r.Unreachable(),
		Notes:    r.Notes,
		Summary:  map[string]int{"cases": len(r.Results), "ran": r.Ran()},
		Causes:   []causeJSON{},
		Cases:    []caseJSON{},
	}
	for _, row := range verdict.Cases {
		out.Summary[string(row.Verdict)] = r.Count(row.Verdict)
	}
	for _, c := range r.Causes() {
		out.Causes = append(out.Causes, causeJSON{c.Kind, c.Text, c.Rule, c.Level, c.Expected, c.Cases,
			c.Instances, c.Inferred, c.Example.Case.ID, append([]conform.Hint{}, c.Try...)})
	}
	for _, res := range r.Results {
		c := res.Case
		j := caseJSON{
			ID: c.ID, Case: c.Family, Section: c.Section, About: c.About, Rules: c.Rules, Level: res.Level(), Program: c.Program,
			Verdict: res.Verdict, Duration: res.Took.Seconds(), Note: res.Note,
			File: c.Script.File, Line: c.Script.Line,
		}
		j.Assumes, j.Quote, j.Finding = res.Interpretation(), res.Quote, res.Finding
		j.Rule = res.Tested()
		if res.Verdict != verdict.Passed {
			j.Command = res.Command
		}
		if res.Play != nil && res.Play.Failure != nil {
			j.Segments = res.Segments.String()
			j.Broken = res.Play.Failure.Rule()
			j.Line = res.Play.Failure.Step.Line
		}
		if res.Verdict == verdict.NonStrict && res.Play != nil && res.Play.Accepted != nil {
			a := res.Play.Accepted
			j.Accepted = &acceptedJSON{a.Expected(), a.Got(), a.Choice.Line}
		}
		if crash := res.Crash; crash != nil {
			j.Crash = &crashJSON{crash.Exit, crash.Fault, crash.Where, []string{}}
			for line := range strings.Lines(crash.Output) {
				j.Crash.Output = append(j.Crash.Output, strings.TrimSpace(line))
			}
		}
		out.Cases = append(out.Cases, j)
	}
	return out
}
