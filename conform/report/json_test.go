package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"jobwire/conform"
	"jobwire/conform/report"
	"jobwire/internal/schemacheck"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

// reportSchema is the schema of JSON reports.
const reportSchema = "../../docs/schema/conform.json"

// TestJSONMatchesSchema tests that the JSON report matches the published schema, and has the summary and the cases of
// the run.
func TestJSONMatchesSchema(t *testing.T) {
	_, reports := sampleReports(t)
	for name, some := range map[string][]*conform.Report{"passing": reports[:1], "failing": reports[1:], "both": reports} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := report.WriteJSON(&out, some); err != nil {
				t.Fatal(err)
			}
			schemacheck.Check(t, reportSchema, out.Bytes())
			var got struct {
				Version  int     `json:"schema_version"`
				Start    string  `json:"start"`
				Duration float64 `json:"duration_seconds"`
				Target   string
				Summary  map[string]int
				Cases    []struct {
					ID, Level, Verdict string
					Rules              []string
					Duration           *float64 `json:"duration_seconds"`
				}
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]float64{"passing": 1, "failing": 2, "both": 3}[name]
			if got.Version != version.Schema || got.Duration != want || name != "failing" && got.Start != "2026-03-29T00:30:00.005Z" {
				t.Errorf("got %+v, want a duration of %v s", got, want)
			}
			if name != "passing" {
				return
			}
			n := got.Summary
			if got.Target != "good 1.0" || n["cases"] != 16 || n["passed"] != 16 || n["failed"] != 0 || len(got.Cases) != 16 {
				t.Errorf("got the target %q, %d cases, and the summary %v", got.Target, len(got.Cases), n)
			}
			c := got.Cases[0]
			if c.ID != "gearman.report.other" || c.Level != "MUST" || c.Verdict != "passed" || c.Duration == nil || len(c.Rules) != 2 {
				t.Errorf("got the case %+v", c)
			}
		})
	}
}

// TestSchemaNamesVerdicts checks that the schema lists all verdicts.
func TestSchemaNamesVerdicts(t *testing.T) {
	text, err := os.ReadFile(reportSchema)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Verdict struct{ Enum []verdict.Verdict } `json:"verdict"`
			Cause   struct {
				Properties struct {
					Kind struct{ Enum []conform.CauseKind }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	same := func(row verdict.Row, v verdict.Verdict) bool { return row.Verdict == v }
	if !slices.EqualFunc(verdict.Cases, schema.Defs.Verdict.Enum, same) {
		t.Errorf("the schema lists %q, want %v", schema.Defs.Verdict.Enum, verdict.Cases)
	}
	if kinds := schema.Defs.Cause.Properties.Kind.Enum; !slices.Equal(kinds, conform.CauseKinds) {
		t.Errorf("the schema lists %q, want %q", kinds, conform.CauseKinds)
	}
}
