package audit

import (
	"fmt"
	"io"
	"strings"

	"jobwire/codec"
	"jobwire/internal/github"
	"jobwire/internal/junit"
	"jobwire/internal/tap"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

// WriteGitHub writes the broken rules as annotations for GitHub Actions. A rule whose level does not fail is a warning.
func (r *Report) WriteGitHub(w io.Writer) error {
	var out github.Report
	for i := range r.BrokenRules {
		b := &r.BrokenRules[i]
		level := github.Error
		if !r.Levels.contain(b.Rule.Level) {
			level = github.Warning
		}
		b.annotate(&out, level, r.Protocol, r.Protocol.Name)
	}
	annotateBehavior(&out, r.Levels, r.Behavior, r.Protocol.Name)
	for _, u := range r.Unfollowed {
		out.Add(github.Error, r.Protocol.Name+": not checked", u.text(r.Protocol))
	}
	return out.Write(w, "jobwire audit",
		fmt.Sprintf("violations: %d; connections: %d; messages of clients and workers: %d",
			r.Violations(), r.Connections, r.Messages[codec.Peer]))
}

// annotate adds an annotation about a broken rule. where begins its title.
func (b *BrokenRule) annotate(out *github.Report, level github.Level, p *codec.Protocol, where string) {
	first := ""
	if len(b.First) > 0 {
		first = strings.TrimSpace(string(b.First[0].AppendLine(nil, p, false)))
	}
	out.Add(level, fmt.Sprintf("%s: %s (%s)", where, b.Rule.ID, b.Rule.Level), b.Rule.Text,
		fmt.Sprintf("violations: %d", b.Count), first)
}

// WriteGitHub writes what drivers did wrong as annotations for GitHub Actions. What does not make the run fail is a
// warning.
func (r *StressReport) WriteGitHub(w io.Writer) error {
	var out github.Report
	if why := r.Stopped(); why != "" {
		out.Add(github.Error, r.Protocol.Name+": the run", why)
	}
	failed := 0
	for i := range r.Outcomes {
		x := &r.Outcomes[i]
		level := github.Error
		if x.Passed() {
			level = github.Warning
		} else {
			failed++
		}
		where := fmt.Sprintf("%s: %s, fault profile %s", r.Protocol.Name, x.Role, x.FaultProfile.Name)
		if x.Note != "" && !x.completed() {
			out.Add(level, where+": "+string(x.Verdict), x.Note, x.Task, x.Fault, x.FaultProfile.About, x.Command)
		}
		for k := range x.BrokenRules {
			x.BrokenRules[k].annotate(&out, level, r.Protocol, where)
		}
		annotateBehavior(&out, x.Levels, x.Behavior, where)
	}
	return out.Write(w, "jobwire audit stress",
		fmt.Sprintf("%d of %d fault profiles and roles failed", failed, len(r.Outcomes)))
}

// WriteJUnit writes the outcomes as a JUnit XML test suite. An outcome is an error if the driver crashed or hung, a
// failure if it failed otherwise, and skipped if it shows nothing or the protocol does not require a library to handle
// the profile. A run that shows less than it should has one more test case, which is an error.
func (r *StressReport) WriteJUnit(w io.Writer) error {
	class, took := r.Protocol.Name+".stress", 0.0
	s := junit.Suite{Name: r.Protocol.Name + ": audit stress", Timestamp: junit.Timestamp(r.Began),
		Properties: []junit.Property{{Name: "jobwire", Value: version.Get().String()}}, SystemErr: r.Stopped()}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		took += o.Took.Seconds()
		c := junit.Case{Name: o.FaultProfile.Name, Class: class + "." + o.Role, Time: junit.Second(o.Took.Seconds())}
		detail := &junit.Detail{Type: string(o.Verdict), Message: o.summary(), Text: o.explanation(r)}
		switch o.class() {
		case verdict.Error:
			c.Error = detail
		case verdict.Failure:
			c.Failure = detail
		case verdict.Excused, verdict.Skip:
			c.Skipped = detail
		case verdict.Note:
			c.Output = detail.Text
		}
		s.Add(c)
	}
	if why := r.Stopped(); why != "" {
		// Programs that read JUnit XML do not fail a suite because of skipped or missing test cases.
		s.Add(junit.Case{Name: "the run", Class: class, Error: &junit.Detail{Type: "not tested", Message: why}})
	}
	s.Time = junit.Second(took)
	out := junit.Suites{Name: "jobwire audit stress"}
	out.Add(s)
	return out.Write(w)
}

// WriteTAP writes the outcomes in the Test Anything Protocol. A failure under a profile that the protocol does not
// require a library to handle gets the directive TODO.
func (r *StressReport) WriteTAP(w io.Writer) error {
	out := tap.New(w, len(r.Outcomes))
	out.Comment("jobwire " + version.Get().String())
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		test := tap.Test{Name: o.Role + " " + o.FaultProfile.Name, About: o.FaultProfile.About, Class: o.class(),
			Reason: o.summary()}
		if test.Class != verdict.Pass {
			test.Comment = o.explanation(r)
		}
		out.Add(test)
	}
	out.Stop(r.Stopped())
	return out.End()
}

// explanation returns the text of the outcome.
func (o *Outcome) explanation(r *StressReport) string {
	return string(o.AppendText(nil, r.Protocol, TextOptions{}))
}
