package conform_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/conform/report"
	"jobwire/internal/verdict"
)

// knownFailures calls check for each entry about known or flaky cases in each profile, with the cases that the entry
// matches.
func knownFailures(t *testing.T, check func(profile string, known conform.Exception, cases []*conform.Case)) {
	t.Helper()
	for _, e := range catalog.All() {
		suite := mutanttest.Load(t, e.Protocol)
		for _, name := range conform.Profiles(e.Protocol) {
			profile, err := conform.LoadProfile(name, suite)
			if err != nil {
				t.Fatal(err)
			}
			for _, known := range slices.Concat(profile.Known, profile.Flaky) {
				listed, err := suite.Select([]string{"case:" + known.Cases}, nil)
				if err != nil {
					t.Fatal(err)
				}
				check(name, known, listed.Cases)
			}
		}
	}
}

// TestKnownServersFollowDeFactoRules tests that all known servers follow each DE-FACTO rule: the first rule of a case
// that a profile lists as failing must not be DE-FACTO.
func TestKnownServersFollowDeFactoRules(t *testing.T) {
	t.Parallel()
	knownFailures(t, func(profile string, known conform.Exception, cases []*conform.Case) {
		for _, c := range cases {
			if c.Level == codec.DeFacto {
				t.Errorf("%s: %s (%s): %s", profile, c.ID, c.Rules[0], known.Why)
			}
		}
	})
}

// TestKnownFailuresQuoteTheSpecification tests that each entry of a profile about a case with level MUST or SHOULD
// quotes the words of the specification that the server does not follow.
func TestKnownFailuresQuoteTheSpecification(t *testing.T) {
	t.Parallel()
	stated := func(c *conform.Case) bool { return c.Level == codec.Must || c.Level == codec.Should }
	knownFailures(t, func(profile string, known conform.Exception, cases []*conform.Case) {
		if known.Quote == "" && slices.ContainsFunc(cases, stated) {
			t.Errorf("%s: %s has no quote: %s", profile, known.Cases, known.Why)
		}
	})
}

// interpretations contains a case of a rule that the specification states, a case of an interpretation, and a case of a
// rule that is an interpretation, such as beanstalkd's rule about the length of a line.
const interpretations = `@section Levels
@case stated
@about The reply to watch has the number of tubes.
@rules beanstalk.watch.watching
Client -> Server: watch a
Server -> Client: WATCHING 3

@case assumed
@about The reply to watch has the number of tubes.
@rules beanstalk.watch.watching
@interpretation The tube default counts twice.
Client -> Server: watch a
Server -> Client: WATCHING 3

@case rule-assumed
@about The server rejects a long line.
@rules beanstalk.line.length
Client -> Server: watch a
Server -> Client: WATCHING 3
`

// TestFailedInterpretationIsDifferent tests that a case of an interpretation that the server does not share is not a
// failure, unless the user asks for strict tests.
func TestFailedInterpretationIsDifferent(t *testing.T) {
	t.Parallel()
	suite, err := conform.LoadFS(beanstalk.Protocol, fstest.MapFS{"a.wire": {Data: []byte(interpretations)}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := catalog.Named("beanstalk")
	if err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		want := []verdict.Verdict{verdict.Failed, verdict.Different, verdict.Different}
		if strict {
			want = []verdict.Verdict{verdict.Failed, verdict.Failed, verdict.Failed}
		}
		results := run(t, conform.Runner{Start: serving(server), Strict: strict}, suite)
		for i, res := range results {
			if res.Verdict != want[i] {
				t.Errorf("strict %v: %s: expected %s, got %s", strict, res.Case.ID, want[i], res.Verdict)
			}
		}
		report := &conform.Report{Protocol: beanstalk.Protocol, Results: results[1:]}
		if report.Failed() != strict {
			t.Errorf("strict %v: the report of the interpretations says failed: %v", strict, report.Failed())
		}
	}
}

// severalRules has four steps that can fail. The words {1} to {4} stand for the values that they expect.
const severalRules = `@section Levels
@case several
@about The reply to watch has the number of tubes.
@rules beanstalk.watch.watching beanstalk.stats-job.ttr beanstalk.line.length
Client -> Server: watch a
Server -> Client: WATCHING {1}
@tests beanstalk.stats-job.ttr
Client -> Server: check watched b {2}
Client -> Server: watch c
Server -> Client: WATCHING {3}
@tests beanstalk.line.length beanstalk.watch.watching
Client -> Server: watch d
Server -> Client: WATCHING {4}
`

// TestRuleOfFailedStep tests that a failed step is reported with the rule that it tests, and that the level of this
// rule decides the verdict.
func TestRuleOfFailedStep(t *testing.T) {
	t.Parallel()
	server, err := catalog.Named("beanstalk")
	if err != nil {
		t.Fatal(err)
	}
	const setups = `@setup watched tube count
@about The client watches the tube.
@probe
Client -> Server: setup watched x 2
@way watch
{peer} -> Server: watch {tube}
Server -> {peer}: WATCHING {count}
`
	const assuming = "@interpretation The tube default counts.\n"
	for i, want := range []struct {
		step    int
		keys    string
		rule    codec.RuleID
		level   codec.Level
		verdict verdict.Verdict
	}{
		{1, "", "beanstalk.watch.watching", codec.Must, verdict.Failed},
		{2, "", "beanstalk.stats-job.ttr", codec.DeFacto, verdict.Failed},
		{3, "", "beanstalk.stats-job.ttr", codec.DeFacto, verdict.Failed},
		{4, "", "beanstalk.line.length", codec.Interpretation, verdict.Different},
		{1, assuming, "beanstalk.watch.watching", codec.Interpretation, verdict.Different},
		{2, assuming, "beanstalk.stats-job.ttr", codec.DeFacto, verdict.Failed},
	} {
		src := strings.Replace(severalRules, "@rules", want.keys+"@rules", 1)
		for step := range 4 {
			count := step + 2
			if step+1 == want.step {
				count = 99
			}
			src = strings.Replace(src, fmt.Sprintf("{%d}", step+1), fmt.Sprint(count), 1)
		}
		suite, err := conform.LoadFS(beanstalk.Protocol, fstest.MapFS{
			"a.wire": {Data: []byte(src)}, "setup.wire": {Data: []byte(setups)}})
		if err != nil {
			t.Fatal(err)
		}
		res := run(t, conform.Runner{Start: serving(server)}, suite)[0]
		if res.Rule() != want.rule || res.Level() != want.level || res.Verdict != want.verdict {
			t.Errorf("%d: expected %v, got %s %s %s", i, want, res.Rule(), res.Level(), res.Verdict)
		}
		for _, c := range (&conform.Report{Protocol: beanstalk.Protocol, Results: []conform.Result{res}}).Causes() {
			if c.Rule != want.rule || c.Level != want.level {
				t.Errorf("%d: expected a cause with %v, got %s %s", i, want, c.Rule, c.Level)
			}
		}
		if text := report.Result(res); res.Verdict == verdict.Failed && strings.Count(text, " Rule ") != 1 {
			t.Errorf("%d: expected the text to explain one rule, got:\n%s", i, text)
		}
	}
}
