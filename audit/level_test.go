package audit_test

import (
	"slices"
	"testing"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/internal/verdict"
)

// TestInterpretationFailsNoRun: a violation of an interpretation fails neither an audit nor a stress test.
func TestInterpretationFailsNoRun(t *testing.T) {
	reported := []codec.Level{codec.Interpretation}
	optional := append(reported, codec.Should, codec.May)
	for _, level := range codec.Levels {
		broken := []audit.BrokenRule{{Rule: &codec.Rule{Level: level}, Count: 1}}
		if r := (audit.Report{BrokenRules: broken}); r.Failed() == slices.Contains(reported, level) {
			t.Errorf("audit: a violation of a rule that is %s: failed %v", level, r.Failed())
		}
		if o := (audit.Outcome{FaultProfile: &audit.FaultProfile{}, Failure: audit.Failure{Verdict: verdict.Completed}, BrokenRules: broken}); o.Passed() != slices.Contains(optional, level) {
			t.Errorf("stress: a violation of a rule that is %s: passed %v", level, o.Passed())
		}
	}
}
