package conform_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
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

// A rule is DE-FACTO only if all known servers follow it. Therefore the first rule of a case that a profile lists as
// failing must not be DE-FACTO.
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

// An entry of a profile about a case with level MUST or SHOULD must quote the words of the specification that the
// server does not follow.
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

// A case of an interpretation that the server does not share is not a failure, unless the user asks for strict tests.
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
		want := []conform.Verdict{conform.Failed, conform.Different, conform.Different}
		if strict {
			want = []conform.Verdict{conform.Failed, conform.Failed, conform.Failed}
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
