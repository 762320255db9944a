package jobtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/report"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// ConformOptions are the settings of [Conform]. Exactly one of Serve, Exec and Addr must be set.
type ConformOptions struct {
	// Serve is a server in this process. It accepts connections from the listener until the context ends, which also
	// closes the listener. Then it must return, and all goroutines that it started must end.
	//
	// Each case calls Serve in a bubble of package testing/synctest, with a listener in memory, so that time limits take
	// no time. Cases that need a server of their own call it several times. Serve must not use channels, timers or
	// goroutines from outside of the bubble, which begins on 2026-01-01, UTC. Cases that check the process of the server
	// are skipped. A panic in a goroutine of the server ends the test program.
	Serve func(context.Context, net.Listener) error

	// Exec is the command line of a server, in which {port} stands for a free port, and {socket} for the path of a Unix
	// socket.
	Exec string

	// Addr is the address of a running server: HOST:PORT or unix:PATH. Cases that need a server of their own are skipped.
	Addr string

	Run, Skip []string // cases or rules to run and to skip, as path.Match patterns; nil: run all, skip none
	// levels of the rules to test; nil: all. With codec.Interpretation, a difference from an interpretation is a failure
	Levels   []codec.Level
	Waive    []codec.RuleID // rules that the server may violate
	Timeout  time.Duration  // time limit for each reply of the server; 0: 2 s
	Parallel int            // number of cases that run at the same time with Exec and Addr; 0: 8. With Serve, it is 1
}

// start returns a function that starts the server.
func (o *ConformOptions) start() (func(context.Context) (target.Target, error), error) {
	switch {
	case o.Serve != nil && o.Exec == "" && o.Addr == "":
		return func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "the server of the test", o.Serve)
		}, nil
	case o.Serve == nil && o.Exec != "" && o.Addr == "":
		return func(ctx context.Context) (target.Target, error) { return target.Exec(ctx, o.Exec) }, target.Check(o.Exec)
	case o.Serve == nil && o.Exec == "" && o.Addr != "":
		running, err := target.Address(o.Addr)
		return func(context.Context) (target.Target, error) { return running, nil }, err
	}
	return nil, errors.New("expected exactly one of Serve, Exec and Addr")
}

// Conform runs the conformance suite of the protocol against a server. Each case is a subtest PROTOCOL/CASE with all
// instances of the case. A subtest fails with the text that 'jobwire conform' prints, and is skipped with the reason if
// the case was skipped or inconclusive. The flag -run of go test selects cases, like the options. With -short, only the
// first instance of each case runs. Conform returns when all cases have ended. It must not be called in a bubble of
// package testing/synctest, which has no subtests.
//
// It ends the test with Fatalf if an option is invalid. The test fails if more than half of the MUST cases (of all
// cases, if none is a MUST case) are inconclusive or did not run, if all cases were skipped, or if goroutines of Serve
// have not ended.
func Conform(t *testing.T, protocol string, o ConformOptions) {
	t.Helper()
	e := entry(t, protocol, o.Waive, o.Levels)
	start, err := o.start()
	if err != nil {
		t.Fatalf("jobtest: %v", err)
	}
	suite, err := o.suite(e)
	if err != nil {
		t.Fatalf("jobtest: %v", err)
	}
	runner := conform.Runner{
		Start:    start,
		Programs: e.Programs,
		Parallel: cmp.Or(o.Parallel, 8),
		Timeout:  cmp.Or(o.Timeout, 2*time.Second),
		Segments: []play.Segmentation{play.Plain, play.Bytewise, play.Coalesced},
		Strict:   slices.Contains(o.Levels, codec.Interpretation),
		Waive:    o.Waive,
	}
	run := realTime
	if o.Serve != nil {
		run = virtualTime
	}
	t.Run(protocol, func(t *testing.T) { run(t, runner, suite) })
}

// realTime runs each case of the suite as a subtest. A subtest starts only if -run selects it. It adds its case to those
// that run, and pauses in Parallel until all subtests have started. The first subtest that continues then runs the
// cases of all of them.
func realTime(t *testing.T, runner conform.Runner, suite *conform.Suite) {
	selected := suite.With()
	results := sync.OnceValue(func() map[string]conform.Result {
		byName := map[string]conform.Result{}
		all := runner.Run(t.Context(), selected, nil)
		conclude(t, all)
		for _, r := range report.Fold(all) {
			byName[r.Case.Family] = r
		}
		return byName
	})
	for _, name := range suite.Names() {
		t.Run(name, func(t *testing.T) {
			selected.Cases = append(selected.Cases, instances(suite, name)...)
			t.Parallel()
			show(t, results()[name])
		})
	}
}

// virtualTime runs each case of the suite as a subtest, in a bubble and with a server of its own, so that its result
// does not depend on which cases -run selects.
func virtualTime(t *testing.T, runner conform.Runner, suite *conform.Suite) {
	runner.Parallel, runner.Virtual = 1, true
	var all []conform.Result
	var left error
	for _, name := range suite.Names() {
		t.Run(name, func(t *testing.T) {
			var results []conform.Result
			err := inBubble(t, func(ctx context.Context) {
				r := runner // what a run has found out about the server belongs to the bubble
				results = r.Run(ctx, suite.With(instances(suite, name)...), nil)
			})
			if errors.Is(err, errLeft) {
				left = cmp.Or(left, fmt.Errorf("jobtest: after the case %s, %w", name, err))
			} else if err != nil {
				t.Fatalf("jobtest: %v", err)
			}
			all = append(all, results...)
			show(t, report.Fold(results)[0])
		})
	}
	if left != nil {
		t.Error(left)
	}
	if all != nil {
		conclude(t, all)
	}
}

// instances returns the instances of a case.
func instances(s *conform.Suite, name string) []*conform.Case {
	return s.Only(func(c *conform.Case) bool { return c.Family == name }).Cases
}

// conclude logs how many cases have each verdict, and makes the test fail if this shows little about the server.
func conclude(t *testing.T, results []conform.Result) {
	cases := conform.Report{Results: report.Fold(results)}
	var counts []string
	for _, row := range verdict.Cases {
		if n := cases.Count(row.Verdict); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, row.Verdict))
		}
	}
	t.Logf("%s: %s", conform.CountCases(len(cases.Results), len(results)), strings.Join(counts, ", "))
	if why := (&conform.Report{Results: results}).Untested(); why != "" {
		t.Error(why)
	}
}

// suite returns the cases that the options select.
func (o *ConformOptions) suite(e *catalog.Entry) (*conform.Suite, error) {
	s, err := conform.Load(e.Protocol)
	if err != nil {
		return nil, err
	}
	if testing.Short() {
		s = s.First()
	}
	if s, err = s.Select(o.Run, o.Skip); err != nil {
		return nil, err
	}
	var levels []string
	for _, l := range o.Levels {
		levels = append(levels, string(l))
	}
	if s, err = s.AtLevels(levels); err == nil && len(s.Cases) == 0 {
		err = errors.New("no case is selected by Run, Skip and Levels")
	}
	return s, err
}

// show makes the result of a case the result of a subtest.
func show(t testing.TB, r conform.Result) {
	t.Helper()
	switch r.Verdict {
	case verdict.Passed:
	case verdict.Unreachable:
		t.Error(r.Note)
	case verdict.Skipped, verdict.Inconclusive, verdict.NotRun:
		t.Skipf("%s: %s", r.Verdict, r.Note)
	default:
		if t.Log(strings.TrimRight(report.Result(r), "\n")); r.Verdict.FailsRun() {
			t.Fail()
		}
	}
}
