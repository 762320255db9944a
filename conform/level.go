package conform

import (
	"cmp"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/verdict"
)

// conclude returns the final result of a case, after applying the profile. Unless the run is strict, a failure becomes
// Different if the broken requirement is only an interpretation.
func (r *Runner) conclude(res Result) Result {
	res = r.Profile.apply(res)
	if v := res.Verdict; !r.Strict && (v == verdict.Failed || v == verdict.Inconsistent) &&
		res.Level() == codec.Interpretation {
		res.Verdict = verdict.Different
	}
	return res
}

// step returns the step that failed, or that matched a choice that is not strict, or nil.
func (r *Result) step() *transcript.Step {
	switch p := r.Play; {
	case p == nil:
	case p.Failure != nil:
		return p.Failure.Step
	case r.Verdict == verdict.NonStrict && p.Accepted != nil:
		return p.Accepted.Step
	}
	return nil
}

// Rule returns the rule that the target did not meet if its messages have the right format: the one that the failed
// step tests or, if there is none, the first rule of the case.
func (r *Result) Rule() codec.RuleID { return cmp.Or(r.Tested(), r.Case.Rules[0]) }

// Tested returns the rule that the failed step tests. If all steps passed, but not the checks of the server's process,
// it is the rule of the last @tests line. It returns "" if there is no such step or line.
func (r *Result) Tested() codec.RuleID {
	st, tests := r.step(), r.Case.Script.Tests
	switch {
	case st != nil && len(st.Tests) > 0:
		return st.Tests[0]
	case st != nil:
		return r.Case.Rules[0]
	case r.Play == nil || r.Case.Program != "" || len(tests) == 0 ||
		r.Verdict == verdict.Inferred || r.Verdict == verdict.Inconclusive:
		return ""
	}
	return tests[len(tests)-1].Rules[0]
}

// broken returns the rule about the format of messages that a message of the target broke, or nil.
func (r *Result) broken() *codec.Rule {
	if r.Play == nil || r.Play.Failure == nil {
		return nil
	}
	return r.Case.Script.Protocol.Rule(r.Play.Failure.Rule())
}

// Level returns the level of the requirement that the target did not meet: of the rule that a message of the target
// broke or that the failed step tests. It is INTERPRETATION if one of them is an interpretation. If no step failed, it
// is the level of the case.
func (r *Result) Level() codec.Level {
	level, broken := r.Case.level(r.Rule()), r.broken()
	if broken != nil && level != codec.Interpretation {
		level = broken.Level
	}
	return level
}

// level returns the level of a rule of the case. The first rule is INTERPRETATION if the case assumes more than its
// words say.
func (c *Case) level(id codec.RuleID) codec.Level {
	if id == c.Rules[0] {
		return c.Level
	}
	return c.Script.Protocol.Rule(id).Level
}

// Concerns reports whether the result shows something about a rule of the case. A case that did not pass shows
// something only about the rule that the target did not meet.
func (r *Result) Concerns(id codec.RuleID) bool {
	if broken := r.broken(); broken != nil && slices.Contains(r.Case.Rules, broken.ID) {
		return broken.ID == id
	}
	tested := r.Tested()
	return tested == "" || tested == id
}

// Interpretation returns the assumption of the case where the specification is silent, or "".
func (r *Result) Interpretation() string {
	if r.Case.Interpretation != "" {
		return r.Case.Interpretation
	}
	for _, id := range append([]codec.RuleID{r.Rule()}, r.Case.Rules...) {
		if rule := r.Case.Script.Protocol.Rule(id); rule.Level == codec.Interpretation {
			return rule.Text
		}
	}
	return ""
}
