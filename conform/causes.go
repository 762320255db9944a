package conform

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/internal/verdict"
)

// CauseKind is the kind of a [Cause].
type CauseKind string

const (
	CauseCrash          CauseKind = "crash"           // the process of the target ended
	CauseHang           CauseKind = "hang"            // the target does not reply to a request on a new connection
	CauseMissing        CauseKind = "missing message" // the target does not implement a message
	CauseDisconnect     CauseKind = "disconnect"      // the target closed a connection
	CauseInconsistent   CauseKind = "inconsistent"    // the result depends on the writes to the socket
	CauseInvalidMessage CauseKind = "invalid message" // the target sent an invalid message
	CauseNoReply        CauseKind = "no reply"        // the target did not send an expected message
	CauseWrongReply     CauseKind = "wrong reply"     // the target sent another message or value than expected
	CauseRule           CauseKind = "rule"            // cases that test the same rule failed in different ways
	CauseUnexpectedPass CauseKind = "unexpected pass" // the profile lists cases that passed
	CauseSetup          CauseKind = "setup"           // a setup does not work on the target
	// the result says nothing about the target, for example because the machine was too slow
	CauseInconclusive CauseKind = "inconclusive"
)

// CauseKinds contains all kinds of causes, in the order of a report: crashes and hangs, then missing messages, then
// the kinds that mean that a rule is broken, then the others. Causes of the same rank are ordered by level, MUST first, then by the
// number of instances.
var CauseKinds = []CauseKind{
	CauseCrash, CauseHang, CauseMissing, CauseDisconnect, CauseInconsistent, CauseInvalidMessage, CauseNoReply,
	CauseWrongReply, CauseRule, CauseUnexpectedPass, CauseSetup, CauseInconclusive,
}

// rank returns the rank of a kind, 0 for the worst. Kinds that mean that a rule is broken have the same rank.
func (k CauseKind) rank() int {
	if k.broken() {
		k = CauseDisconnect
	}
	return slices.Index(CauseKinds, k)
}

// broken reports whether a cause of the kind means that a rule is broken.
func (k CauseKind) broken() bool {
	i := slices.Index(CauseKinds, k)
	return i >= slices.Index(CauseKinds, CauseDisconnect) && i <= slices.Index(CauseKinds, CauseRule)
}

// Cause is a fault that explains why cases did not pass.
type Cause struct {
	Kind CauseKind
	Text string // description in one sentence
	// Rule is the rule that invalid messages of the target break or, if all were valid, the rule that the failed steps
	// of all Cases test. It is "" if they test different rules.
	Rule      codec.RuleID
	Level     codec.Level // strictest level of the results
	Expected  bool        // a crash that the profile lists
	Cases     []string    // names of the cases that the cause explains, without parameters, in the order of the suite
	Instances int         // number of instances of these cases that the cause explains, with those that were inferred
	Inferred  int         // number of these instances that were inferred to fail
	Example   *Result     // the result that shows the fault in the fewest events
	Try       []Hint
	results   []*Result
}

// IDs returns the IDs of the instances that the cause explains.
func (c *Cause) IDs() []string {
	var all []string
	for _, res := range c.results {
		all = append(all, res.Case.ID)
	}
	return all
}

// Hint is a suggestion for a user: an option of conform with which to examine a cause, or a line of a profile with
// which to accept it.
type Hint struct {
	About  string `json:"about"`  // purpose of the option, such as "run this case alone"
	Option string `json:"option"` // such as "--run gearman.echo.client", or "lacks: [epoch]" for a profile
}

// Count returns the number of cases in words, such as "3 cases, 20 instances (17 inferred)".
func (c *Cause) Count() string {
	s := CountCases(len(c.Cases), c.Instances)
	if c.Inferred > 0 {
		s += fmt.Sprintf(" (%d inferred)", c.Inferred)
	}
	return s
}

// CountCases returns the number of cases in words. It adds the number of instances if there are more instances than
// cases.
func CountCases(cases, instances int) string {
	s := fmt.Sprintf("%d cases", cases)
	if cases == 1 {
		s = "1 case"
	}
	if instances > cases {
		s += fmt.Sprintf(", %d instances", instances)
	}
	return s
}

// Causes groups the cases that did not pass by cause, worst cause first. A failed case may have several possible
// causes, such as the rule that it tests or the message that the target sent; it belongs to the cause that explains
// most cases or, of causes that explain equally many cases, most instances. An inconsistent result belongs to the
// cause of other cases that failed with the same reply, and a missing reply to the cause about a message that the
// target does not implement. An unreachable target is not a cause; see [Report.Unreachable].
func (r *Report) Causes() []Cause {
	open := map[*Result][]symptom{}
	var order []*Result
	failed := map[symptomKey]bool{} // symptoms of the failed cases
	for i := range r.Results {
		res := &r.Results[i]
		if all := res.symptoms(); len(all) > 0 {
			open[res] = all
			order = append(order, res)
			for _, s := range all {
				failed[s.id()] = failed[s.id()] || res.Verdict == verdict.Failed
			}
		}
	}
	for res, all := range open {
		if res.Verdict != verdict.Inconsistent {
			continue
		}
		if shared := slices.DeleteFunc(slices.Clone(all), func(s symptom) bool { return !failed[s.id()] }); len(shared) > 0 {
			open[res] = shared
		} else {
			open[res] = all[len(all)-1:]
		}
	}
	var causes []Cause
	for len(open) > 0 {
		best := commonest(order, open)
		same := func(s symptom) bool { return s.id() == best.id() }
		var of []*Result
		for _, res := range order {
			if slices.ContainsFunc(open[res], same) {
				of = append(of, res)
			}
		}
		shown := example(of)
		best = open[shown][slices.IndexFunc(open[shown], same)]
		for _, res := range of {
			delete(open, res)
		}
		causes = append(causes, newCause(best, shown, of))
	}
	for i := range r.Results {
		res := &r.Results[i]
		if res.Verdict != verdict.Inferred || res.lacking != nil {
			continue
		}
		failed := func(c Cause) bool { return slices.Contains(c.Cases, res.Case.Family) }
		if k := slices.IndexFunc(causes, failed); k >= 0 {
			causes[k].Inferred++
			causes[k].Instances++
			causes[k].results = append(causes[k].results, res)
		}
	}
	slices.SortStableFunc(causes, func(a, b Cause) int {
		return cmp.Or(boolRank(a.Expected)-boolRank(b.Expected), a.Kind.rank()-b.Kind.rank(),
			strictness(a.Level)-strictness(b.Level), b.Instances-a.Instances, len(b.Cases)-len(a.Cases))
	})
	return causes
}

// commonest returns the symptom that most cases have, and of such symptoms the one that most instances have. If several
// symptoms explain equally many, it returns the first one; the tested rule is the last symptom of a result.
func commonest(order []*Result, open map[*Result][]symptom) (best symptom) {
	type number struct {
		cases     map[string]bool
		instances int
	}
	numbers := map[symptomKey]*number{}
	for _, res := range order {
		for _, s := range open[res] {
			n := numbers[s.id()]
			if n == nil {
				n = &number{cases: map[string]bool{}}
				numbers[s.id()] = n
			}
			n.cases[res.Case.Family] = true
			n.instances++
		}
	}
	most := &number{}
	for _, res := range order {
		for _, s := range open[res] {
			if n := numbers[s.id()]; cmp.Or(len(n.cases)-len(most.cases), n.instances-most.instances) > 0 {
				best, most = s, n
			}
		}
	}
	return best
}

// boolRank returns 1 for what comes later in an order, and 0 for what comes first.
func boolRank(later bool) int {
	if later {
		return 1
	}
	return 0
}

// strictness returns the rank of a level, 0 for the strictest.
func strictness(l codec.Level) int {
	if i := slices.Index([]codec.Level{codec.Must, codec.Should, codec.DeFacto}, l); i >= 0 {
		return i
	}
	return 3
}

// newCause summarizes the failed results, which have the symptom s in common; shown is the example in reports. The
// cause has the strictest level of the results, and is expected if the profile excuses all of them.
func newCause(s symptom, shown *Result, results []*Result) Cause {
	c := Cause{
		Kind: s.kind, Text: s.text, Rule: s.rule, Instances: len(results), Level: results[0].Level(), Example: shown,
		results: results,
	}
	c.Expected = true
	rule := results[0].Rule()
	for _, res := range results {
		if n := len(c.Cases); n == 0 || c.Cases[n-1] != res.Case.Family {
			c.Cases = append(c.Cases, res.Case.Family)
		}
		if strictness(res.Level()) < strictness(c.Level) {
			c.Level = res.Level()
		}
		if res.Rule() != rule {
			rule = ""
		}
		if res.Verdict == verdict.Inferred {
			c.Inferred++
		}
		c.Expected = c.Expected && res.Verdict.Row().Class == verdict.Excused
	}
	if names := brokenSetups(results); len(names) > 0 && c.Kind != CauseSetup { // only setups failed, no case
		c.Kind = CauseSetup
		c.Text = fmt.Sprintf("setups do not work on this target (%s): %s", strings.Join(names, ", "), c.Text)
	}
	if c.Kind == CauseInconsistent {
		c.Text = fmt.Sprintf("the result%s depends on how the messages are divided into writes to the socket",
			afterSent(results))
	}
	if _, p := shown.Conversation(); s.kind == CauseInvalidMessage && p != nil && p.Failure != nil {
		c.Text += ", in place of " + p.Failure.Wanted()
	}
	if strings.HasPrefix(s.key, unsent) || s.kind == CauseInvalidMessage || s.kind == CauseSetup {
		c.Text += afterSent(results)
	}
	same := []CauseKind{CauseInvalidMessage, CauseNoReply, CauseWrongReply}
	if c.Rule == "" && rule != "" && slices.Contains(same, c.Kind) {
		c.Rule = rule
		c.Text = brokenRule(c.Kind, shown.Case, rule, c.Text).text
	}
	c.Try = hints(&c, s, results)
	return c
}

// brokenSetups returns the names of the setups that did not work and for which the cases were inconclusive. It returns
// nil if at least one case itself failed.
func brokenSetups(of []*Result) []string {
	var names []string
	for _, res := range of {
		if res.setup == nil {
			return nil
		}
		if !slices.Contains(names, res.setup.name) {
			names = append(names, res.setup.name)
		}
	}
	return names
}

// example returns the result of a cause that shows the fault in the fewest events: of a case that itself failed, with
// its messages, if there is one.
func example(of []*Result) *Result {
	events := func(r *Result) int {
		if r.Play == nil {
			return math.MaxInt
		}
		return len(r.Play.Events)
	}
	return slices.MinFunc(of, func(a, b *Result) int {
		return cmp.Or(boolRank(a.setup != nil)-boolRank(b.setup != nil), cmp.Compare(events(a), events(b)),
			cmp.Compare(len(a.Case.Script.Steps), len(b.Case.Script.Steps)))
	})
}

// unsent begins the key of a symptom about a message that the target does not send.
const unsent = "unsent "

// maxNames is the maximum number of messages that the text of a cause lists.
const maxNames = 3

// afterSent returns the names of the messages after which cases failed, the most frequent ones first, as in " after
// put or use", or "".
func afterSent(of []*Result) string {
	number := map[string]int{}
	var names []string
	for _, res := range of {
		_, p := res.Conversation()
		name := lastRequest(res.Case, p).String()
		if number[name]++; name != "" && number[name] == 1 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return number[b] - number[a] })
	switch n := len(names) - maxNames; {
	case len(names) == 0:
		return ""
	case n > 0:
		return fmt.Sprintf(" after %s and %d other messages", strings.Join(names[:maxNames], ", "), n)
	}
	return " after " + strings.Join(names, " or ")
}

// hints returns suggestions for examining or accepting a cause.
func hints(c *Cause, s symptom, of []*Result) []Hint {
	var all []Hint
	add := func(about, format string, args ...any) { all = append(all, Hint{about, fmt.Sprintf(format, args...)}) }
	first := c.Example.Case
	switch c.Kind {
	case CauseInconclusive:
		add("run one case at a time", "--parallel 1")
		return all
	case CauseUnexpectedPass:
		add("in the profile, remove these cases", "known")
		return all
	}
	alone := "run this case alone"
	if len(of) > 1 {
		alone = "run one of the cases alone"
	}
	add(alone, "--run %s", first.selector())
	if c.Expected {
		return all
	}
	if c.Rule != "" && s.kind == CauseInvalidMessage {
		add("accept messages that break this rule", "--waive %s", c.Rule)
	}
	if need := commonNeed(of); need != "" {
		add("in a profile, skip the cases that need this feature", "lacks: [%s]", need)
	}
	switch c.Kind {
	case CauseSetup:
	case CauseMissing:
		add("in a profile, skip the cases about this message", "lacks: [%s]", s.key)
	case CauseCrash, CauseHang:
		add("in a profile, expect the "+string(c.Kind), "known: [{cases: %s, crash: true, why: REASON}]", first.Family)
	default:
		add("in a profile, expect the failure", "known: [{cases: %s, why: REASON}]", first.Family)
	}
	return all
}

// commonNeed returns a capability that all the cases need, or "".
func commonNeed(of []*Result) string {
	for _, need := range of[0].Case.Needs {
		if !slices.ContainsFunc(of, func(r *Result) bool { return !slices.Contains(r.Case.Needs, need) }) {
			return need
		}
	}
	return ""
}
