package conform

import (
	"encoding/json"
	"io"

	"jobwire/codec"
	"jobwire/internal/version"
)

// reportJSON is a report as programs read it.
type reportJSON struct {
	Jobwire     version.Info   `json:"jobwire"` // the build that made the report
	Protocol    string         `json:"protocol"`
	Target      string         `json:"target"`
	Seconds     float64        `json:"seconds"`
	Interrupted bool           `json:"interrupted"`     // the user ended the run before all cases had run
	Error       string         `json:"error,omitempty"` // why the target could not be reached
	Summary     map[string]int `json:"summary"`         // "cases", "ran", and a count for each verdict
	Cases       []caseJSON     `json:"cases"`
}

type caseJSON struct {
	ID       string         `json:"id"`
	Case     string         `json:"case"` // the name without the values of an instance
	Section  string         `json:"section"`
	About    string         `json:"about"`
	Rules    []codec.RuleID `json:"rules"`
	Level    codec.Level    `json:"level"`
	Verdict  Verdict        `json:"verdict"`
	Seconds  float64        `json:"seconds"`
	Note     string         `json:"note,omitempty"`
	Segments string         `json:"segments,omitempty"` // how the stream was cut when it did not pass
	Broken   codec.RuleID   `json:"broken,omitempty"`   // the codec's rule that an answer broke
	File     string         `json:"file"`
	Line     int            `json:"line"`              // of the step that failed, or of the case
	Command  string         `json:"command,omitempty"` // runs the case alone; of cases that did not pass
}

// WriteJSON writes one object: the report, or where there are several, an object
// that holds them as "reports".
func WriteJSON(w io.Writer, reports []*Report) error {
	var all []reportJSON
	for _, r := range reports {
		all = append(all, r.json())
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if len(all) == 1 {
		return e.Encode(all[0])
	}
	return e.Encode(map[string]any{"jobwire": version.Get(), "reports": all})
}

func (r *Report) json() reportJSON {
	out := reportJSON{
		Jobwire:     version.Get(),
		Protocol:    r.Protocol.Name,
		Target:      r.Target,
		Seconds:     r.Took.Seconds(),
		Interrupted: r.Interrupted,
		Error:       r.Unreachable(),
		Summary:     map[string]int{"cases": len(r.Results), "ran": r.Ran()},
		Cases:       []caseJSON{},
	}
	for _, v := range Verdicts {
		out.Summary[string(v)] = r.Count(v)
	}
	for _, res := range r.Results {
		c := res.Case
		j := caseJSON{
			ID: c.ID, Case: c.Family, Section: c.Section, About: c.About, Rules: c.Rules, Level: c.Level,
			Verdict: res.Verdict, Seconds: res.Took.Seconds(), Note: res.Note,
			File: c.Script.File, Line: c.Script.Line,
		}
		if res.Verdict != Passed {
			j.Command = res.Command
		}
		if res.Play != nil && res.Play.Failure != nil {
			j.Segments = res.Segments.String()
			j.Broken = res.Play.Failure.Rule()
			j.Line = res.Play.Failure.Step.Line
		}
		out.Cases = append(out.Cases, j)
	}
	return out
}
