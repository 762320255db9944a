package report

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// object is a JSON object of a SARIF log.
type object map[string]any

// sarifLevels maps levels to the SARIF level and to the score by which GitHub sorts findings (0 to 10, as in CVSS).
var sarifLevels = map[string]struct{ level, score string }{
	"critical": {"error", "9.5"}, "high": {"error", "8.0"}, "medium": {"warning", "5.0"}, "low": {"note", "2.0"},
}

// WriteSARIF writes a log in the Static Analysis Results Interchange Format, version 2.1.0. The location of each result
// is its transcript.
func WriteSARIF(w io.Writer, r *Report) error {
	rules, results := []object{}, []object{}
	listed := map[string]bool{}
	for _, f := range r.Findings {
		id, is := strings.ReplaceAll(f.Severity, " ", "-"), sarifLevels[f.Level]
		if !listed[id] {
			listed[id] = true
			rules = append(rules, object{"id": id, "shortDescription": object{"text": f.Severity},
				"properties": object{"security-severity": is.score, "tags": []string{"security", "fuzzing"}}})
		}
		properties := object{"reproduced": f.Reproduced}
		if f.Rule != "" {
			properties["specificationRule"] = f.Cites()
		}
		result := object{
			"ruleId": id, "level": is.level,
			"message": object{
				"text": f.what() + ": " + f.Impact + "\n" + oneLine(f.Text) + "\nTo repeat it: " + f.Command,
				"markdown": escaped(f.what()) + ": " + escaped(f.Impact) + "\n\n" + escaped(oneLine(f.Text)) +
					"\n\nTo repeat it:\n\n" + block("sh", f.Command) + "\n" + block("text", f.Transcript),
			},
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": (&url.URL{Path: filepath.ToSlash(f.File)}).String()},
				"region":           object{"startLine": 1},
			}}},
			"partialFingerprints": object{"jobwireFinding/v1": f.Name},
			"properties":          properties,
		}
		if f.Observed > 0 {
			result["occurrenceCount"] = f.Observed
		}
		if len(f.Stack) > 0 {
			var frames []object
			for _, frame := range f.Stack {
				function := object{"fullyQualifiedName": frame, "kind": "function"}
				frames = append(frames, object{"location": object{"logicalLocations": []object{function}}})
			}
			result["stacks"] = []object{{"message": object{"text": f.Title}, "frames": frames}}
		}
		results = append(results, result)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":        object{"driver": object{"name": "jobwire fuzz", "version": r.Jobwire.Version, "rules": rules}},
			"invocations": []object{{"executionSuccessful": true, "startTimeUtc": r.Began.UTC().Format("2006-01-02T15:04:05Z")}},
			"results":     results,
			"properties":  object{"target": r.Target, "seed": itoa(r.Summary.Seed), "executions": r.Summary.Executions},
		}}})
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
