package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/page"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
	"jobwire/play"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(page.New(template.FuncMap{"seconds": seconds}).Parse(pageSource))

// bySeverity has the rows of the verdicts from best to worst. The page shows the verdict of the worst case for each
// rule.
var bySeverity = slices.SortedFunc(slices.Values(verdict.Cases), func(a, b verdict.Row) int {
	return a.Severity - b.Severity
})

// Data for the page template. Each list of cells has one cell for each target, in the order of the targets.
type (
	htmlPage struct {
		Jobwire  version.Info
		Protocol *codec.Protocol
		Targets  []targetView
		Legend   []verdict.Row
		Cases    int
		Sections []*sectionView
		Untested []codec.Rule
	}
	targetView struct {
		*conform.Report
		Cases     int    // number of cases, without instances
		Instances int    // number of instances, or 0 if no case has several
		Short     int    // cases that failed
		Excused   int    // cases that failed as the profile expects
		Passed    int    // number of cases that passed
		Decided   int    // number of cases with a verdict about the target
		Stopped   string // reason why some cases did not run, or ""
		Causes    []causeView
		Tallies   []tally
	}
	causeView struct {
		conform.Cause
		Tone  string
		Shown []string // the first cases
		More  int      // number of other cases
	}
	tally struct {
		verdict.Row
		N int
	}
	sectionView struct {
		Name  string
		Rules []*ruleView
	}
	ruleView struct {
		*codec.Rule
		Cells []cell
		Cases []caseView
	}
	cell struct {
		Target  string
		Worst   verdict.Row
		Crashed bool // the target crashed, as the profile expects
		Tallies []tally
	}
	caseView struct {
		*conform.Case
		ShowDetails bool // the page shows the details of the case here, at the first rule of the case
		Verdicts    string
		Cells       []cell
		Results     []resultView
		Source      []sourceLine
	}
	resultView struct {
		conform.Result
		Style        verdict.Row
		Target       string
		FailedRule   *codec.Rule // rule that the failed step or check tests; nil if it is the only rule of the case
		Conversation []shownLine
	}
	// sourceLine is a line in the transcript of a case.
	sourceLine struct {
		Number        int // line number in the file
		Text          string
		FailedTargets []string // the targets that failed at this line
		Accepted      []string // the targets whose reply matched this alternative, which is not strict
	}
	// shownLine is a line of a conversation in three parts. Byte contains the hexadecimal digits of an offending byte,
	// if there is one in the line. If the line describes the error, Byte contains the whole line.
	shownLine struct {
		Before, Byte, After string
	}
)

// Site returns the address of the documentation, which has a page for each rule, or "" if it is not published.
func (*htmlPage) Site() string { return version.Site }

// WriteHTML writes one self-contained HTML page: the result and the causes for each target, and the rules of the suite
// with their cases, the transcripts of the cases, the results, and the conversations of cases that did not pass. The
// page depends only on the arguments.
func WriteHTML(w io.Writer, s *conform.Suite, reports []*conform.Report) error {
	p := &htmlPage{Jobwire: version.Get(), Protocol: s.Protocol, Legend: bySeverity, Cases: len(s.Names())}
	results := make([]map[string]conform.Result, len(reports)) // for each report: results by the name of the case
	for i, r := range reports {
		results[i] = map[string]conform.Result{}
		cases := Fold(r.Results)
		t := targetView{Report: r, Cases: len(cases), Stopped: r.Stopped(), Causes: causeViews(r), Tallies: tallies(cases)}
		t.Passed, t.Decided = passRate(cases)
		if len(cases) < len(r.Results) {
			t.Instances = len(r.Results)
		}
		for _, res := range cases {
			results[i][res.Case.Family] = res
			switch {
			case res.Verdict.FailsRun():
				t.Short++
			case res.Verdict.Row().Class == verdict.Excused:
				t.Excused++
			}
		}
		p.Targets = append(p.Targets, t)
	}
	rules := map[codec.RuleID]*ruleView{}
	for _, c := range s.First().Cases {
		view, err := newCaseView(shownInstance(c, results), reports, results)
		if err != nil {
			return err
		}
		for i, id := range c.Rules {
			if rules[id] == nil {
				rules[id] = &ruleView{Rule: s.Protocol.Rule(id)}
			}
			view.ShowDetails = i == 0
			rules[id].Cases = append(rules[id].Cases, view)
		}
	}
	for _, rule := range s.Protocol.Rules {
		v := rules[rule.ID]
		if v == nil {
			p.Untested = append(p.Untested, rule)
			continue
		}
		for i, r := range reports {
			var of []conform.Result
			for _, c := range v.Cases {
				if res, ok := results[i][c.Family]; ok {
					if !res.Concerns(rule.ID) {
						res.Verdict = verdict.Inconclusive
					}
					of = append(of, res)
				}
			}
			v.Cells = append(v.Cells, newCell(r.Target, of...))
		}
		p.section(rule.Section).Rules = append(p.section(rule.Section).Rules, v)
	}
	p.sort(s)
	return pageTemplate.Execute(w, p)
}

// Head returns the header of the page.
func (p *htmlPage) Head() page.Head {
	h := page.Head{Title: p.Protocol.Title + " conformance", Jobwire: p.Jobwire, Style: template.CSS(pageStyle)}
	var failed, undecided int
	for _, t := range p.Targets {
		switch {
		case t.Failed():
			failed++
		case t.Decided == 0 || t.Stopped != "":
			undecided++
		}
		if h.Began.IsZero() {
			h.Began = t.Began
		}
	}
	h.Verdict, h.Tone = "✓ no case failed", "good"
	switch {
	case failed > 0:
		h.Verdict, h.Tone = "✗ failed", "bad"
	case undecided > 0:
		h.Verdict, h.Tone = "? incomplete", "fair"
	}
	switch n := len(p.Targets); {
	case n == 1 && failed > 0:
		h.Verdict += fmt.Sprintf(": %d of %d cases", p.Targets[0].Short, p.Targets[0].Cases)
	case n == 1:
	case failed+undecided > 0:
		h.Verdict += fmt.Sprintf(": %d of %d targets", cmp.Or(failed, undecided), n)
	default:
		h.Verdict += fmt.Sprintf(" on any of %d targets", n)
	}
	if len(p.Targets) == 1 {
		h.Target = p.Targets[0].Target
	}
	return h
}

// maxLinks is the maximum number of links to cases for each cause.
const maxLinks = 12

// causeViews returns the causes of the failures for the page, each with links to at most maxLinks cases. A cause that
// is expected or inconclusive, or a setup that does not work, is not shown as a failure.
func causeViews(r *conform.Report) []causeView {
	var all []causeView
	for _, c := range r.Causes() {
		v := causeView{Cause: c, Tone: "bad", Shown: c.Cases[:min(len(c.Cases), maxLinks)]}
		v.More = len(c.Cases) - len(v.Shown)
		if c.Kind == conform.CauseSetup || c.Kind == conform.CauseInconclusive || c.Expected {
			v.Tone = "fair"
		}
		all = append(all, v)
	}
	return all
}

// Rate returns the percentage of passed cases, rounded down, so that 100 % means all cases.
func (t targetView) Rate() string {
	if t.Decided == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(t.Passed*1000/t.Decided)/10)
}

// section returns the section with the name, and creates it if it does not exist.
func (p *htmlPage) section(name string) *sectionView {
	for _, s := range p.Sections {
		if s.Name == name {
			return s
		}
	}
	p.Sections = append(p.Sections, &sectionView{Name: name})
	return p.Sections[len(p.Sections)-1]
}

// sort sorts the sections in the order of the suite's files, which is the order of the specification. Sections without
// cases come first.
func (p *htmlPage) sort(s *conform.Suite) {
	slices.SortStableFunc(p.Sections, func(a, b *sectionView) int {
		place := func(v *sectionView) int {
			return slices.IndexFunc(s.Cases, func(c *conform.Case) bool { return c.Section == v.Name })
		}
		return cmp.Compare(place(a), place(b))
	})
}

// tallies counts the results by verdict, worst verdict first.
func tallies(results []conform.Result) (all []tally) {
	n := map[verdict.Verdict]int{}
	for _, r := range results {
		n[r.Verdict]++
	}
	for _, row := range slices.Backward(bySeverity) {
		if n[row.Verdict] > 0 {
			all = append(all, tally{row, n[row.Verdict]})
		}
	}
	return all
}

// newCell returns the cell of a table for one target: its results by verdict, and whether the target also crashed in a
// way that the profile excuses. Without results the cell says that nothing ran.
func newCell(target string, results ...conform.Result) cell {
	c := cell{Target: target, Worst: verdict.Row{Verdict: verdict.NotRun, Tone: "none"}, Tallies: tallies(results)}
	if len(c.Tallies) > 0 {
		c.Worst = c.Tallies[0].Row
	}
	excused := func(r conform.Result) bool { return r.ExcusedCrash() }
	c.Crashed = c.Worst.Verdict != verdict.Crashed && slices.ContainsFunc(results, excused)
	return c
}

// shownInstance returns the instance of a case that the page shows: the instance in the first result that is not a
// pass.
func shownInstance(c *conform.Case, results []map[string]conform.Result) *conform.Case {
	for _, of := range results {
		if res, ok := of[c.Family]; ok && res.Verdict != verdict.Passed {
			return res.Case
		}
	}
	return c
}

// newCaseView returns what the page shows of a case: the verdict of each target, the conversations that did not pass,
// and the source of the case, in which the lines that failed or were accepted as non-strict name the targets. results
// are by target and name of the case.
func newCaseView(c *conform.Case, reports []*conform.Report, results []map[string]conform.Result) (caseView, error) {
	view := caseView{Case: c}
	var verdicts []string
	for i, r := range reports {
		res, ok := results[i][c.Family]
		if !ok {
			view.Cells = append(view.Cells, newCell(r.Target))
			continue
		}
		view.Cells = append(view.Cells, newCell(r.Target, res))
		verdicts = append(verdicts, string(res.Verdict))
		shown := resultView{Result: res, Style: res.Verdict.Row(), Target: r.Target}
		if res.Verdict == verdict.Passed || res.Verdict == verdict.NotRun || res.Verdict == verdict.Inferred {
			shown.Command = ""
		}
		if res.Verdict != verdict.Passed {
			shown.Conversation = shownLines(conversation(res, play.ReportOptions{Bytes: true}))
		}
		if len(res.Case.Rules) > 1 {
			shown.FailedRule = res.Case.Script.Protocol.Rule(res.Tested())
		}
		view.Results = append(view.Results, shown)
	}
	view.Verdicts = strings.Join(verdicts, ",")
	script := c.Script
	for _, res := range view.Results {
		if res.Case == c && res.Play != nil {
			script = res.Performed()
			break
		}
	}
	for i := range script.Steps {
		step := &script.Steps[i]
		text, err := transcript.AppendStep(nil, c.Script.Protocol, step)
		if err != nil {
			return view, err
		}
		first := len(view.Source)
		// A step has one line for each of its choices.
		for k, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			view.Source = append(view.Source, sourceLine{Number: step.Choices[k].Line, Text: line})
		}
		for _, res := range view.Results {
			if res.Verdict == verdict.NonStrict && res.Performed() == script && res.Play != nil && res.Play.Accepted != nil &&
				res.Play.Accepted.Step == step {
				k := slices.IndexFunc(step.Choices, func(c transcript.Choice) bool { return c.Line == res.Play.Accepted.Choice.Line })
				view.Source[first+k].Accepted = append(view.Source[first+k].Accepted, res.Target)
			}
			if res.Performed() == script && res.Play != nil && res.Play.Failure != nil && res.Play.Failure.Index == i {
				view.Source[first].FailedTargets = append(view.Source[first].FailedTargets, res.Target)
			}
		}
	}
	return view, nil
}

// shownLines splits a conversation into lines and finds the offending bytes: a line that begins with ^^ marks the
// digits above it.
func shownLines(conversation string) []shownLine {
	var out []shownLine
	for line := range strings.Lines(conversation) {
		line = strings.TrimRight(line, "\n")
		text := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(text, "^^ ") {
			out = append(out, shownLine{Before: line})
			continue
		}
		col := len(line) - len(text)
		if n := len(out) - 1; n >= 0 && len(out[n].Before) >= col+2 {
			row := out[n].Before
			out[n] = shownLine{row[:col], row[col : col+2], row[col+2:]}
		}
		out = append(out, shownLine{Before: line[:col], Byte: text})
	}
	return out
}

// passRate returns the number of cases that passed, strictly or not, and the number of decided cases. A case is decided
// if it has a verdict about the target and does not test an interpretation that the target does not share.
func passRate(results []conform.Result) (passed, decided int) {
	for _, r := range results {
		if r.Verdict.Row().Decided {
			decided++
		}
		if r.Verdict.Passes() {
			passed++
		}
	}
	return passed, decided
}
