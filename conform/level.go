package conform

import "jobwire/codec"

// conclude returns the final result of a case, after applying the profile. Unless the run is strict, a failure becomes
// Different if the broken requirement is only an interpretation.
func (r *Runner) conclude(res Result) Result {
	res = r.Profile.apply(res)
	if !r.Strict && (res.Verdict == Failed || res.Verdict == Inconsistent) && res.level() == codec.Interpretation {
		res.Verdict = Different
	}
	return res
}

// level returns the level of the requirement that the target did not meet: the level of the rule
// that a message of the target broke, or else the level of the case.
func (r *Result) level() codec.Level {
	if r.Play != nil && r.Play.Failure != nil {
		if rule := r.Case.Script.Protocol.Rule(r.Play.Failure.Rule()); rule != nil && rule.Level == codec.Interpretation {
			return rule.Level
		}
	}
	return r.Case.Level
}

// interpretation returns the assumption of the case where the specification is silent, or "".
func (r *Result) interpretation() string {
	if r.Case.Interpretation != "" {
		return r.Case.Interpretation
	}
	for _, id := range r.Case.Rules {
		if rule := r.Case.Script.Protocol.Rule(id); rule.Level == codec.Interpretation {
			return rule.Text
		}
	}
	return ""
}
