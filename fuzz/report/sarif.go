package report

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// Parts of a SARIF 2.1.0 log. The JSON names are those of the SARIF specification.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		Properties  map[string]any    `json:"properties"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID         string         `json:"id"`
		Short      sarifText      `json:"shortDescription"`
		Properties map[string]any `json:"properties"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifInvocation struct {
		Successful bool   `json:"executionSuccessful"`
		Start      string `json:"startTimeUtc"`
	}
	sarifResult struct {
		Rule         string            `json:"ruleId"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Stacks       []sarifStack      `json:"stacks,omitempty"`
		Occurrences  int               `json:"occurrenceCount,omitempty"`
		Properties   map[string]any    `json:"properties"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			Line int `json:"startLine"`
		} `json:"region"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifStack struct {
		Message sarifText    `json:"message"`
		Frames  []sarifFrame `json:"frames"`
	}
	sarifFrame struct {
		Location sarifLocation `json:"location"`
	}
)

// sarifLevels maps levels to the SARIF level and to the score by which GitHub sorts findings (0 to 10, as in CVSS).
var sarifLevels = map[string]struct{ level, score string }{
	"critical": {"error", "9.5"}, "high": {"error", "8.0"}, "medium": {"warning", "5.0"}, "low": {"note", "2.0"},
}

// WriteSARIF writes a log in the Static Analysis Results Interchange Format, version 2.1.0. The location of each result
// is its transcript.
func WriteSARIF(w io.Writer, r *Report) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "jobwire fuzz", Version: r.Jobwire.Version, Rules: []sarifRule{}}},
		Invocations: []sarifInvocation{{Successful: true, Start: r.Began.UTC().Format("2006-01-02T15:04:05Z")}},
		Results:     []sarifResult{},
		Properties:  map[string]any{"target": r.Target, "seed": itoa(r.Summary.Seed), "executions": r.Summary.Executions},
	}
	listed := map[string]bool{}
	for _, f := range r.Findings {
		id := strings.ReplaceAll(f.Severity, " ", "-")
		if !listed[id] {
			listed[id] = true
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: id, Short: sarifText{Text: f.Severity},
				Properties: map[string]any{"security-severity": sarifLevels[f.Level].score, "tags": []string{"security", "fuzzing"}}})
		}
		res := sarifResult{
			Rule: id, Level: sarifLevels[f.Level].level,
			Message: sarifText{
				Text:     printable(f.what() + ": " + f.Impact + "\n" + oneLine(f.Text) + "\nTo repeat it: " + f.Command),
				Markdown: escaped(f.what()) + ": " + escaped(f.Impact) + "\n\n" + escaped(oneLine(f.Text)) + "\n\nTo repeat it:\n\n" + block("sh", f.Command) + "\n" + block("text", f.Transcript),
			},
			Locations:    []sarifLocation{{Physical: physical(f.File)}},
			Fingerprints: map[string]string{"jobwireFinding/v1": f.Name},
			Occurrences:  f.Observed,
			Properties:   map[string]any{"reproduced": f.Reproduced},
		}
		if f.Rule != "" {
			res.Properties["specificationRule"] = f.Cites()
		}
		if len(f.Stack) > 0 {
			stack := sarifStack{Message: sarifText{Text: printable(f.Title)}}
			for _, frame := range f.Stack {
				stack.Frames = append(stack.Frames, sarifFrame{sarifLocation{Logical: []sarifLogical{{printable(frame), "function"}}}})
			}
			res.Stacks = []sarifStack{stack}
		}
		run.Results = append(run.Results, res)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// physical returns the location of a finding: the first line of the file with its transcript.
func physical(file string) *sarifPhysical {
	p := &sarifPhysical{}
	p.Artifact.URI = (&url.URL{Path: filepath.ToSlash(file)}).String()
	p.Region.Line = 1
	return p
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
