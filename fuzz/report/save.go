package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"jobwire/internal/version"
)

// File is the name of the file with the report of a run, in the folder with the findings of the run.
const File = "report.json"

// saved is the form of a saved report.
type saved struct {
	version.Head
	*Report
}

// Save writes a report as one JSON value, which [Read] reads.
func Save(w io.Writer, r *Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	head := version.Head{SchemaVersion: version.Schema, ToolVersion: r.Jobwire.Version, Jobwire: r.Jobwire}
	return e.Encode(saved{head, r})
}

// Read reads a report that Save has written.
func Read(text []byte) (*Report, error) {
	s := saved{Report: &Report{}}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("expected a report of fuzz: %w", err)
	}
	if s.Report == nil || s.Protocol == "" || slices.Contains(s.Findings, nil) {
		return nil, errors.New("expected a report of fuzz")
	}
	if s.SchemaVersion != version.Schema {
		return nil, fmt.Errorf("expected a report with schema version %d, got %d", version.Schema, s.SchemaVersion)
	}
	s.Report.Jobwire = s.Head.Jobwire
	return s.Report, nil
}
