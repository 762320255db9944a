package audit_test

import (
	"slices"
	"testing"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/internal/verdict"
)

// TestLevels: by default, the same levels fail an audit and a stress test: those that bind. The option Levels replaces
// them.
func TestLevels(t *testing.T) {
	optional := []codec.Level{codec.Should, codec.May, codec.Interpretation, codec.Behavioral}
	faults := audit.FaultProfileNamed("bytewise")
	for _, level := range codec.Levels {
		broken := []audit.BrokenRule{{Rule: &codec.Rule{Level: level}, Count: 1}}
		for _, levels := range []audit.Levels{nil, {level}, {codec.Level("OTHER")}} {
			fails := levels == nil && !slices.Contains(optional, level) || slices.Contains(levels, level)
			if r := (audit.Report{BrokenRules: broken, Levels: levels}); r.Failed() != fails {
				t.Errorf("audit, levels %v: a violation of a rule that is %s: failed %v", levels, level, r.Failed())
			}
			if o := (audit.Outcome{FaultProfile: faults, Failure: audit.Failure{Verdict: verdict.Completed},
				BrokenRules: broken, Levels: levels}); o.Passed() == fails {
				t.Errorf("stress, levels %v: a violation of a rule that is %s: passed %v", levels, level, o.Passed())
			}
		}
	}
}
