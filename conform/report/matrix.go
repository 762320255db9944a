package report

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/internal/page"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

//go:embed matrix.html
var matrixSource string

//go:embed matrix.css
var matrixStyle string

var matrixTemplate = template.Must(page.New(nil).Parse(matrixSource))

// Matrix is a page about several servers and protocols: which server meets which requirement.
type Matrix struct {
	// address of the page with the findings that profiles name, which has an anchor for each; "": no links
	FindingsURL string

	protocols []*matrixProtocol
	began     time.Time // of the first run
}

// outcome is what the cases show about a requirement and a server.
type outcome struct {
	verdict verdict.Verdict // of a case that shows it
	Name    string
	Tone    string // CSS class: good, fair, bad or none
	Meaning string
}

// outcomes are all outcomes. The outcome of a requirement is the last one of those of its cases.
var outcomes = []*outcome{
	notTested, notApplicable, undecided, met, tolerated, differs,
	{verdict.Flaky, "flaky", "bad", "The server fails a case in some runs."},
	{verdict.Failed, "failed", "bad", "The server does not meet the requirement in at least one case."},
	{verdict.Crashed, "crashed", "bad", "The process of the server ended or answered no more requests."},
}

var (
	notTested     = &outcome{verdict.NotRun, "not tested", "none", "The run has no result for the requirement."}
	notApplicable = &outcome{verdict.Skipped, "not applicable", "none",
		"The server does not have a feature that the cases need."}
	undecided = &outcome{verdict.Inconclusive, "undecided", "none",
		"The cases came to no result, or failed because of another requirement."}
	met       = &outcome{verdict.Passed, "passed", "good", "The server meets the requirement in all cases."}
	tolerated = &outcome{verdict.NonStrict, "non-strict", "fair",
		"The server sent a reply that jobwire accepts, but the specification asks for another reply."}
	differs = &outcome{verdict.Different, "different", "fair",
		"The server does something else where the specification is silent. The case tests jobwire's interpretation."}
)

// Symbol returns the symbol of the verdict on a case that shows the outcome.
func (o *outcome) Symbol() string { return o.verdict.Row().Symbol }

// outcomeOf returns what a case with this verdict shows.
func (c *caseJSON) outcomeOf(p *codec.Protocol) *outcome {
	shows := c.Verdict.Row().Requirement
	if shows == verdict.Failed || shows == verdict.Flaky {
		rule := p.Rule(c.Broken)
		switch {
		case c.Crash != nil:
			shows = verdict.Crashed
		case c.Level == codec.Interpretation || rule != nil && rule.Level == codec.Interpretation:
			shows = verdict.Different
		}
	}
	return outcomes[slices.IndexFunc(outcomes, func(o *outcome) bool { return o.verdict == shows })]
}

type (
	// matrixPage is the data of the template.
	matrixPage struct {
		Head      page.Head
		Legend    []*outcome
		Levels    []codec.Level
		Protocols []*matrixProtocol
	}
	matrixProtocol struct {
		*codec.Protocol
		Servers  []*matrixServer
		Sections []*matrixSection
		Untested []codec.Rule
		Levels   []codec.Level
	}
	matrixServer struct {
		Name, Version string
		Began         time.Time
		Jobwire       version.Info
		Stopped       string          // why some cases did not run, or ""
		Tallies       [][]matrixTally // of all requirements, and of those of each level
		cases         []matrixCase
	}
	// matrixTally counts the requirements with an outcome.
	matrixTally struct {
		*outcome
		N        int
		Expected int // of these, those that the server fails as its profile expects
	}
	// matrixCase is the result of a case with all its instances.
	matrixCase struct {
		*caseJSON  // of the first instance with the worst outcome
		Outcome    *outcome
		N          int // number of instances with this outcome
		Instances  int
		findings   []string
		unexpected bool // an instance did not pass, and the profile does not expect it
	}
	matrixSection struct {
		Name string
		Rows []matrixRow
	}
	matrixRow struct {
		*codec.Rule
		Cells   []matrixCell
		Differs bool // a server does not pass
		Details []matrixDetail
	}
	matrixCell struct {
		Server   *matrixServer
		Outcome  *outcome
		Bad, N   int // number of cases with this outcome, if it is worse than passed, and of all cases that count
		Findings []link

		unexpected bool // a case did not pass, and the profile does not expect it
	}
	matrixDetail struct {
		Server *matrixServer
		Cases  []matrixCase
		Other  []string // cases that did not pass because of another requirement
	}
	link struct {
		Name string
		URL  string // "" if it is not known
	}
)

// Title returns the name of the server and its version.
func (s *matrixServer) Title() string { return strings.TrimSpace(s.Name + " " + s.Version) }

// Add adds the results in a file that WriteJSON has written. name is the name of the server on the page; if it is "",
// the page shows the name and version in the file. It is an error if the file has another format or schema version, if
// it names a protocol or rule that this jobwire does not have, or if the page has a server of this name and protocol.
func (m *Matrix) Add(r io.Reader, name string) error {
	var file struct {
		reportJSON
		Reports []*reportJSON `json:"reports"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return fmt.Errorf("expected a result of 'jobwire conform --format json': %w", err)
	}
	if file.SchemaVersion != version.Schema {
		return fmt.Errorf("expected a result of 'jobwire conform --format json' with schema version %d, got version %d",
			version.Schema, file.SchemaVersion)
	}
	all := file.Reports
	if all == nil {
		all = []*reportJSON{&file.reportJSON}
	}
	if name != "" && len(all) != 1 {
		return fmt.Errorf("the name %s is for one server, but the file has results of %d", name, len(all))
	}
	for _, r := range all {
		if err := m.add(r, name); err != nil {
			return err
		}
	}
	return nil
}

// add adds the results of one server to the matrix. It returns an error if the results are not from conform, if they
// name rules that this version of jobwire does not have, or if the server is in the matrix already. If name is "", the
// name and version are those in the results.
func (m *Matrix) add(r *reportJSON, name string) error {
	if r.Target == "" || r.Cases == nil {
		return errors.New("the file has no results of cases: expected a result of 'jobwire conform PROTOCOL --format json'")
	}
	i := slices.IndexFunc(codec.Protocols(), func(p *codec.Protocol) bool { return p.Name == r.Protocol })
	if i < 0 {
		return fmt.Errorf("unknown protocol %q", r.Protocol)
	}
	p := codec.Protocols()[i]
	s := &matrixServer{Name: name, Jobwire: r.Jobwire, Stopped: r.Error}
	if name == "" {
		s.Name, s.Version = strings.TrimSuffix(r.Target, " "+r.Version), r.Version
	}
	if r.Interrupted {
		s.Stopped = "the run was interrupted"
	}
	var err error
	if s.Began, err = time.Parse(time.RFC3339, r.Start); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	for _, c := range r.Cases {
		for _, id := range c.Rules {
			if p.Rule(id) == nil {
				return fmt.Errorf("unknown rule %s: jobwire %s wrote the file, and this is jobwire %s", id, r.ToolVersion,
					version.Number)
			}
		}
		if len(c.Rules) == 0 || c.Verdict.Row().Meaning == "" {
			return fmt.Errorf("case %q: expected rules and a verdict, got %q and %q", c.ID, c.Rules, c.Verdict)
		}
	}
	s.cases = matrixCases(p, r.Cases)
	k := slices.IndexFunc(m.protocols, func(mp *matrixProtocol) bool { return mp.Protocol == p })
	if k < 0 {
		k = len(m.protocols)
		m.protocols = append(m.protocols, &matrixProtocol{Protocol: p})
	}
	mp := m.protocols[k]
	if slices.ContainsFunc(mp.Servers, func(other *matrixServer) bool { return other.Title() == s.Title() }) {
		return fmt.Errorf("another file also has results of %s for %s: name them with NAME=FILE", s.Title(), p.Title)
	}
	mp.Servers = append(mp.Servers, s)
	if m.began.IsZero() || s.Began.Before(m.began) {
		m.began = s.Began
	}
	return nil
}

// matrixCases joins the instances of each case. In a result of a server, it leaves out the cases that test a client or
// a worker.
func matrixCases(p *codec.Protocol, results []caseJSON) []matrixCase {
	ofServer := slices.ContainsFunc(results, func(c caseJSON) bool { return c.Program == "" })
	var all []matrixCase
	for i := range results {
		c := &results[i]
		if ofServer && c.Program != "" {
			continue
		}
		if n := len(all); n == 0 || all[n-1].Case != c.Case {
			all = append(all, matrixCase{caseJSON: c, Outcome: notTested})
		}
		last := &all[len(all)-1]
		last.Instances++
		o := c.outcomeOf(p)
		if o.worseThan(last.Outcome) {
			last.caseJSON, last.Outcome, last.N = c, o, 0
		}
		if o == last.Outcome {
			last.N++
		}
		if o.worseThan(differs) && c.Verdict.Row().Class != verdict.Excused {
			last.unexpected = true
		}
		if c.Finding != "" && !slices.Contains(last.findings, c.Finding) {
			last.findings = append(last.findings, c.Finding)
		}
	}
	return all
}

// shownOutcomes are all outcomes in the order in which the page lists them: those with a result first.
var shownOutcomes = func() []*outcome {
	first := slices.Index(outcomes, met)
	return slices.Concat(outcomes[first:], outcomes[:first])
}()

// Class returns the CSS class that shows the symbol.
func (o *outcome) Class() string { return fmt.Sprintf("o%d", slices.Index(outcomes, o)) }

func (o *outcome) worseThan(other *outcome) bool {
	return slices.Index(outcomes, o) > slices.Index(outcomes, other)
}

// responsible returns the rule that the server broke if the case did not pass: the rule of the message format, or
// the rule that the failed step tests, or else the first rule of the case.
func (c *matrixCase) responsible() codec.RuleID {
	if slices.Contains(c.Rules, c.Broken) {
		return c.Broken
	}
	return cmp.Or(c.Rule, c.Rules[0])
}

// Reason returns why the case did not pass, without the output of a program that crashed.
func (c *matrixCase) Reason() string {
	reason, more, _ := strings.Cut(c.Note, "\n")
	if end := strings.LastIndex(reason, ";"); more != "" && end > 0 { // as in "...; output:"
		reason = reason[:end]
	}
	return reason
}

// cell returns what the results of a server show about a rule. A case that passed shows that the server meets each
// rule of the case. A case that did not pass counts for one rule, and shows nothing about the others.
func (m *Matrix) cell(s *matrixServer, rule codec.RuleID) (matrixCell, matrixDetail) {
	cell, detail := matrixCell{Server: s, Outcome: notTested}, matrixDetail{Server: s}
	for _, c := range s.cases {
		if !slices.Contains(c.Rules, rule) {
			continue
		}
		bad := c.Outcome.worseThan(met)
		if bad && c.responsible() != rule {
			if c.Outcome.worseThan(tolerated) {
				detail.Other = append(detail.Other, c.Case)
			}
			if undecided.worseThan(cell.Outcome) {
				cell.Outcome = undecided
			}
			continue
		}
		if c.Outcome.worseThan(undecided) {
			cell.N++
		}
		if c.Outcome.worseThan(cell.Outcome) {
			cell.Outcome, cell.Bad = c.Outcome, 0
		}
		if c.Outcome != met && c.Outcome != notTested {
			detail.Cases = append(detail.Cases, c)
		}
		if !bad {
			continue
		}
		if c.Outcome == cell.Outcome {
			cell.Bad++
		}
		cell.unexpected = cell.unexpected || c.unexpected
		for _, f := range c.findings {
			if l := m.link(f); !slices.Contains(cell.Findings, l) {
				cell.Findings = append(cell.Findings, l)
			}
		}
	}
	if cell.Outcome == met { // other cases show it, so those that cannot run are of no interest
		detail.Cases = nil
	}
	return cell, detail
}

// link returns a link to a finding, which is a name or a URL.
func (m *Matrix) link(finding string) link {
	switch {
	case strings.Contains(finding, "://"):
		return link{"finding", finding}
	case m.FindingsURL == "":
		return link{finding, ""}
	}
	return link{finding, m.FindingsURL + "#" + finding}
}

// WriteHTML writes one self-contained HTML page, which depends only on the results and the version of jobwire.
func (m *Matrix) WriteHTML(w io.Writer) error {
	p := matrixPage{Legend: shownOutcomes, Protocols: m.protocols}
	servers, levels := 0, map[codec.Level]bool{}
	for _, v := range m.protocols {
		v.fill(m)
		servers += len(v.Servers)
		for _, l := range v.Levels {
			levels[l] = true
		}
	}
	p.Levels = slices.DeleteFunc(slices.Clone(codec.Levels), func(l codec.Level) bool { return !levels[l] })
	style := pageStyle + matrixStyle
	for _, o := range outcomes { // the page has thousands of cells, so their symbols are not in its text
		style += fmt.Sprintf(".%s::before { content: %q; content: %[2]q / \"\"; }\n", o.Class(), o.Symbol()+" ")
	}
	p.Head = page.Head{
		Title:   "Requirements by server and version",
		Began:   m.began,
		Facts:   []string{fmt.Sprintf("%d servers, %d protocols", servers, len(m.protocols))},
		Jobwire: version.Get(),
		Style:   template.CSS(style),
	}
	return matrixTemplate.Execute(w, p)
}

// fill computes the rows and the numbers of a protocol.
func (p *matrixProtocol) fill(m *Matrix) {
	p.Sections, p.Untested = nil, nil
	byLevel := map[codec.Level][][]matrixCell{} // one list for each rule of the level; "" has all rules
	for i := range p.Rules {
		row := matrixRow{Rule: &p.Rules[i]}
		tested := false
		for _, s := range p.Servers {
			cell, detail := m.cell(s, row.ID)
			row.Cells = append(row.Cells, cell)
			tested = tested || cell.Outcome != notTested
			row.Differs = row.Differs || cell.Outcome != met
			if len(detail.Cases)+len(detail.Other) > 0 {
				row.Details = append(row.Details, detail)
			}
		}
		if !tested {
			p.Untested = append(p.Untested, *row.Rule)
			continue
		}
		for _, level := range []codec.Level{"", row.Level} {
			byLevel[level] = append(byLevel[level], row.Cells)
		}
		k := slices.IndexFunc(p.Sections, func(s *matrixSection) bool { return s.Name == row.Section })
		if k < 0 {
			k = len(p.Sections)
			p.Sections = append(p.Sections, &matrixSection{Name: row.Section})
		}
		p.Sections[k].Rows = append(p.Sections[k].Rows, row)
	}
	p.Levels = slices.DeleteFunc(slices.Clone(codec.Levels), func(l codec.Level) bool { return byLevel[l] == nil })
	for k, s := range p.Servers {
		s.Tallies = [][]matrixTally{tallyServer(byLevel[""], k)}
		for _, level := range p.Levels {
			s.Tallies = append(s.Tallies, tallyServer(byLevel[level], k))
		}
	}
}

// tallyServer counts the rules by the outcome of server number k.
func tallyServer(rules [][]matrixCell, k int) (all []matrixTally) {
	for _, o := range shownOutcomes {
		t := matrixTally{outcome: o}
		for _, cells := range rules {
			if c := cells[k]; c.Outcome == o {
				t.N++
				if o.worseThan(differs) && !c.unexpected {
					t.Expected++
				}
			}
		}
		if t.N > 0 {
			all = append(all, t)
		}
	}
	return all
}
