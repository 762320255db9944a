package conform

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/play"
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
	CauseInconclusive   CauseKind = "inconclusive"    // the result says nothing about the target, for example because the machine was too slow
)

// CauseKinds contains all kinds of causes, in the order of a report: crashes and hangs, then missing messages, then,
// by the number of instances, the kinds that mean that a rule is broken, then the others.
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
	s := countCases(len(c.Cases), c.Instances)
	if c.Inferred > 0 {
		s += fmt.Sprintf(" (%d inferred)", c.Inferred)
	}
	return s
}

// countCases returns the number of cases in words. It adds the number of instances if there are more instances than
// cases.
func countCases(cases, instances int) string {
	s := fmt.Sprintf("%d cases", cases)
	if cases == 1 {
		s = "1 case"
	}
	if instances > cases {
		s += fmt.Sprintf(", %d instances", instances)
	}
	return s
}

// symptom is a possible cause of a failed case. Cases with the same kind and key have the symptom in common.
type symptom struct {
	kind    CauseKind
	key     string
	text    string
	rule    codec.RuleID
	precise bool // cases that only test the same rule have other causes
}

// symptomKey identifies a symptom.
type symptomKey struct {
	kind CauseKind
	key  string
}

func (s *symptom) id() symptomKey { return symptomKey{s.kind, s.key} }

// one returns a single symptom.
func one(kind CauseKind, key, text string) []symptom {
	return []symptom{{kind: kind, key: key, text: text}}
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
				failed[s.id()] = failed[s.id()] || res.Verdict == Failed
			}
		}
	}
	for res, all := range open {
		if res.Verdict != Inconsistent {
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
		if res.Verdict != Inferred || res.lacking != nil {
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
		return cmp.Or(boolRank(a.Expected)-boolRank(b.Expected), a.Kind.rank()-b.Kind.rank(), b.Instances-a.Instances,
			strictness(a.Level)-strictness(b.Level), len(b.Cases)-len(a.Cases))
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

func newCause(s symptom, shown *Result, of []*Result) Cause {
	c := Cause{
		Kind: s.kind, Text: s.text, Rule: s.rule, Instances: len(of), Level: of[0].Level(), Example: shown, results: of,
	}
	c.Expected = true
	rule := of[0].Rule()
	for _, res := range of {
		if n := len(c.Cases); n == 0 || c.Cases[n-1] != res.Case.Family {
			c.Cases = append(c.Cases, res.Case.Family)
		}
		if strictness(res.Level()) < strictness(c.Level) {
			c.Level = res.Level()
		}
		if res.Rule() != rule {
			rule = ""
		}
		if res.Verdict == Inferred {
			c.Inferred++
		}
		c.Expected = c.Expected && (res.Verdict == Known || res.Verdict == Flaky)
	}
	if names := brokenSetups(of); len(names) > 0 && c.Kind != CauseSetup { // only setups failed, no case
		c.Kind = CauseSetup
		c.Text = fmt.Sprintf("setups do not work on this target (%s): %s", strings.Join(names, ", "), c.Text)
	}
	if c.Kind == CauseInconsistent {
		c.Text = fmt.Sprintf("the result%s depends on how the messages are divided into writes to the socket", afterSent(of))
	}
	if _, p := shown.conversation(); s.kind == CauseInvalidMessage && p != nil && p.Failure != nil {
		c.Text += ", in place of " + p.Failure.Wanted()
	}
	if strings.HasPrefix(s.key, unsent) || s.kind == CauseInvalidMessage || s.kind == CauseSetup {
		c.Text += afterSent(of)
	}
	same := []CauseKind{CauseInvalidMessage, CauseNoReply, CauseWrongReply}
	if c.Rule == "" && rule != "" && slices.Contains(same, c.Kind) {
		c.Rule = rule
		c.Text = brokenRule(c.Kind, shown.Case, rule, c.Text).text
	}
	c.Try = hints(&c, s, of)
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
		_, p := res.conversation()
		name := lastSent(res.Case, p)
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

// symptoms returns the possible causes of a result, or nil if the case passed, was skipped or did not run.
func (r *Result) symptoms() []symptom {
	switch {
	case r.Crash != nil && (r.Verdict == Crashed || r.excusedCrash()):
		key := r.Crash.key()
		if key == "" { // cases about different rules probably reveal different faults
			key = r.Crash.Exit + string(r.Rule())
		}
		return one(CauseCrash, key, r.Crash.title())
	case r.Verdict == Crashed:
		return one(CauseCrash, "", "the target crashed")
	case r.Verdict == Hung:
		text := "the target answers no request on a new connection"
		if sent := lastSent(r.Case, r.Play); sent != "" {
			text += " after " + sent
		}
		return one(CauseHang, text, text)
	case r.lacking != nil:
		return one(CauseMissing, r.lacking.Name, r.lacks)
	case r.Verdict == Inconsistent:
		return append(failureSymptoms(r.Case, r.Play), one(CauseInconsistent, "", r.Note)...)
	case r.Verdict == Unexpected:
		return one(CauseUnexpectedPass, "", "the profile lists cases as failing that passed")
	case r.Verdict == Inconclusive && r.setup != nil:
		_, p := r.conversation()
		return append(one(CauseSetup, r.setup.name, r.Note), failureSymptoms(r.Case, p)...)
	case r.Verdict == Inconclusive && r.Play != nil && r.Play.Failure != nil && r.Play.Failure.Reason == play.TooLate:
		return one(CauseInconclusive, "late", "the target replies too late for the time limits of the cases")
	case r.Verdict == Inconclusive && r.Play != nil && r.Play.Failure != nil && r.Play.Failure.Waited > 0:
		return one(CauseInconclusive, "slow", "the machine that runs jobwire was too slow for the time limits of the cases")
	case r.Verdict == Inconclusive:
		return one(CauseInconclusive, "", r.Note)
	case r.Verdict == Failed:
		all := failureSymptoms(r.Case, r.Play)
		if len(all) > 0 && (all[0].kind == CauseDisconnect || all[0].kind == CauseInvalidMessage || all[0].precise) {
			return all
		}
		return append(all, brokenRule(CauseRule, r.Case, r.Rule(), r.Note))
	}
	return nil
}

// conversation returns the run in which the case or its setup failed, and its transcript, or nil. If the target does
// something wrong in the setup, that run shows why the case is inconclusive.
func (r *Result) conversation() (*transcript.Script, *play.Result) {
	if s := r.setup; s != nil && s.failed != nil && (r.Play == nil || r.Play.Failure == nil || len(s.breaks) > 0) {
		return s.failed.script, s.failed.Result
	}
	return r.performed(), r.Play
}

// brokenRule returns the symptom for a broken rule.
func brokenRule(kind CauseKind, c *Case, id codec.RuleID, note string) symptom {
	level := ""
	if rule := c.Script.Protocol.Rule(id); rule != nil {
		level = fmt.Sprintf(" (%s)", rule.Level)
	}
	return symptom{kind: kind, key: string(id), text: fmt.Sprintf("rule %s%s: %s", id, level, note), rule: id}
}

// failureSymptoms returns the behavior of the target that made the case fail, if the failure shows it.
func failureSymptoms(c *Case, p *play.Result) []symptom {
	if p == nil || p.Failure == nil {
		return nil
	}
	f := p.Failure
	t, e := illegal(c, p)
	sent, after := lastSent(c, p), ""
	if sent != "" {
		after = " after " + sent
	}
	accepted := accepts(c, f, t, e)
	switch {
	case accepted != nil && f.Event != nil && isAnswer(c.Script.Protocol, f.Event.Frame.Type):
		return []symptom{*accepted}
	case f.Rule() != "":
		invalid := brokenRule(CauseInvalidMessage, c, f.Rule(), f.Text)
		if accepted != nil { // the codec accepts no reply to what the target read in the message
			return []symptom{*accepted, invalid}
		}
		return []symptom{invalid}
	case f.Reason == play.Ended, f.Reason == play.CannotSend && (errors.Is(f.Err, syscall.ECONNRESET) || errors.Is(f.Err, syscall.EPIPE)):
		return one(CauseDisconnect, sent, "the target closed the connection"+after)
	case f.Reason == play.CannotSend && f.Waited > 0:
		return one(CauseNoReply, "unread", "the target does not read what it is sent")
	case f.Reason == play.TimedOut && f.Event == nil:
		var all []symptom
		if answers(lastType(p), f.Step) {
			all = one(CauseNoReply, sent, fmt.Sprintf("no reply to %s within %v", sent, f.Waited))
		}
		text := fmt.Sprintf("expected %s, got nothing within %v", f.Wanted(), f.Waited)
		all = append(all, one(CauseNoReply, unsent+f.Wanted(), text)...)
		if accepted != nil { // the target may have read a command that waits
			all = append(all, *accepted)
		}
		return all
	case f.Diff != nil && f.Diff.Field == "arguments" && absent(f) != "":
		name := messageName(&f.Event.Frame)
		text := fmt.Sprintf("%s has no %s", name, absent(f))
		return []symptom{{kind: CauseWrongReply, key: text, text: text + after, precise: true}}
	case f.Diff != nil && f.Event.Frame.Type.Does != codec.Refuse: // refusals of two messages are two causes
		name := messageName(&f.Event.Frame)
		return one(CauseWrongReply, name+"."+f.Diff.Field, fmt.Sprintf("unexpected %s%s: %s", name, after, f.Text))
	case f.Reason == play.Mismatched && f.Event != nil && f.Event.Frame.Type != nil:
		name := messageName(&f.Event.Frame)
		return one(CauseWrongReply, name+after, fmt.Sprintf("unexpected %s%s: %s", name, after, f.Text))
	}
	return nil
}

// accepts returns the symptom that the target accepts the last message that was sent, although it breaks a rule, or
// nil. t and e are what illegal returned. A refusal that answers only requests of type t shows that the target has
// accepted the form of the message.
func accepts(c *Case, f *play.Failure, t *codec.Type, e *codec.Error) *symptom {
	if e == nil || f.Event != nil && f.Event.Frame.Type != nil && f.Event.Frame.Type.Does == codec.Refuse &&
		(t == nil || c.Script.Protocol.IsGeneralError(f.Event.Frame.Type)) {
		return nil
	}
	text := fmt.Sprintf("the target accepts a message that breaks it (%s): %s", e.Detail, f.Text)
	s := brokenRule(CauseWrongReply, c, e.Rule, text)
	if s.key, s.precise = "accepts "+s.key, true; e.Field == atEnd {
		s.key += " " + atEnd
	}
	return &s
}

// absent returns the first value that a step expects of a list or of statistics and that the received message does not
// contain, such as "current-jobs-ready" or "$tube", or "".
func absent(f *play.Failure) string {
	rest := func(a transcript.Arg) bool { return a.Kind == transcript.Rest }
	for _, c := range f.Step.Choices {
		if c.Verb != transcript.Send || c.Type != f.Event.Frame.Type || !slices.ContainsFunc(c.Args, rest) {
			continue
		}
		for _, a := range c.Args {
			switch a.Kind {
			case transcript.Literal:
				return string(a.Value)
			case transcript.Name:
				return "$" + a.Name
			}
		}
	}
	return ""
}

// isAnswer reports whether t is a reply to particular requests, unlike a general error.
func isAnswer(p *codec.Protocol, t *codec.Type) bool {
	answers := func(request *codec.Type) bool { return slices.Contains(request.Answers, t) }
	return t != nil && slices.ContainsFunc(p.Types, answers)
}

// answers reports whether a step expects a reply to a message of type t.
func answers(t *codec.Type, st *transcript.Step) bool {
	return t != nil && slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Send && slices.Contains(t.Answers, c.Type)
	})
}

// lastEvent returns the last message that a peer sent on the connection on which the case failed or, if there is none,
// on another connection. It returns nil if no peer sent a message.
func lastEvent(p *play.Result) *play.Event {
	if p == nil {
		return nil
	}
	var other *play.Event
	for i := range slices.Backward(p.Events) {
		ev := &p.Events[i]
		switch {
		case ev.From != codec.Peer || ev.Verb > transcript.Raw:
		case p.Failure == nil || ev.Actor == p.Failure.Step.Peer:
			return ev
		case other == nil:
			other = ev
		}
	}
	return other
}

// illegal returns the type of the last message on the connection of the event that lastEvent returns, if a peer sent it
// as raw bytes, and what is wrong with it, or nil. An incomplete message breaks the rule that the case tests.
func illegal(c *Case, p *play.Result) (t *codec.Type, e *codec.Error) {
	last := lastEvent(p)
	if last == nil || last.Frame.Type != nil {
		return nil, nil
	}
	var b []byte // since the last message that is not raw
	for i := range p.Events {
		ev := &p.Events[i]
		switch {
		case ev.Actor != last.Actor || ev.From != codec.Peer || ev.Verb > transcript.Raw:
		case ev.Cut > 0:
			return nil, nil
		case ev.Frame.Type != nil:
			b = nil
		default:
			b = append(b, ev.Frame.Raw...)
		}
	}
	session := c.Script.Protocol.NewSession(codec.Options{})
	for len(b) > 0 {
		var f codec.Frame
		n, err := session.Decode(codec.Peer, b, &f)
		if t = f.Type; err == codec.ErrShort {
			return t, &codec.Error{Rule: c.Rules[0], Detail: incomplete}
		}
		if e = nil; errors.As(err, &e) && len(bytes.TrimRight(b[min(e.Offset, n, len(b)):min(n, len(b))], "\r\n")) == 0 {
			e = &codec.Error{Rule: e.Rule, Detail: e.Detail, Field: atEnd}
		}
		if n <= 0 || n > len(b) || e != nil && e.Fatal {
			break
		}
		b = b[n:]
	}
	return t, e
}

// Parts of errors that illegal returns: the detail of an incomplete message, and the field of an error at the end of
// a message, where something is missing.
const (
	incomplete = "it is incomplete"
	atEnd      = "end"
)

// lastType returns the type of the message that lastEvent returns, or nil.
func lastType(p *play.Result) *codec.Type {
	if ev := lastEvent(p); ev != nil {
		return ev.Frame.Type
	}
	return nil
}

// requested returns the type of the message that lastEvent returns, also if the peer sent it as raw bytes, or nil.
func requested(c *Case, p *play.Result) *codec.Type {
	t, _ := illegal(c, p)
	return cmp.Or(lastType(p), t)
}

// lastSent returns the name of the message that lastEvent returns, or "". An illegal message is named by the rule
// that it breaks.
func lastSent(c *Case, p *play.Result) string {
	ev := lastEvent(p)
	switch _, e := illegal(c, p); {
	case ev == nil:
		return ""
	case ev.Frame.Type != nil:
		return messageName(&ev.Frame)
	case e != nil && e.Detail != incomplete:
		return "a message that breaks " + string(e.Rule)
	}
	return "raw bytes"
}

// messageName returns the name of the type of a message. For types with many commands, it appends the first word of the
// first argument.
func messageName(f *codec.Frame) string {
	name := f.Type.Name
	if (f.Type.Worded || f.Type.AnyCommand) && len(f.Arg(0)) > 0 {
		if word, _, _ := strings.Cut(string(f.Arg(0)), " "); word != "" && len(word) <= maxWord {
			name += " " + word
		}
	}
	return name
}

// maxWord is the maximum length, in bytes, of a word that messageName appends.
const maxWord = 40
