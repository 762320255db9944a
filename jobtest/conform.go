package jobtest

import (
	"cmp"
	"context"
	"errors"
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
	// Serve is a server in this process. It accepts connections from the listener until
	// the context ends, which also closes the listener. Conform calls it once for each start of the server, also several
	// times at the same time.
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
	Parallel int            // number of cases that run at the same time; 0: 8
}

// start returns a function that starts the server.
func (o *ConformOptions) start() (func(context.Context) (target.Target, error), error) {
	switch {
	case o.Serve != nil && o.Exec == "" && o.Addr == "":
		return func(ctx context.Context) (target.Target, error) {
			return target.Func(ctx, "the server of the test", o.Serve)
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
// first instance of each case runs. Conform returns when all cases have ended.
//
// It ends the test with Fatalf if an option is invalid. The test fails if more than half of the MUST cases (of all
// cases, if none is a MUST case) are inconclusive or did not run, or if all cases were skipped.
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
	t.Run(protocol, func(t *testing.T) {
		// A subtest starts only if -run selects it. It adds the instances of its case, and pauses in Parallel until all
		// subtests have started. The first subtest that continues then runs the cases of all of them.
		selected := suite.With()
		results := sync.OnceValue(func() map[string]conform.Result {
			all := conform.Report{Results: runner.Run(t.Context(), selected, nil)}
			if why := all.Untested(); why != "" {
				t.Error(why)
			}
			byName := map[string]conform.Result{}
			for _, r := range report.Fold(all.Results) {
				byName[r.Case.Family] = r
			}
			return byName
		})
		for _, name := range suite.Names() {
			t.Run(name, func(t *testing.T) {
				for _, c := range suite.Cases {
					if c.Family == name {
						selected.Cases = append(selected.Cases, c)
					}
				}
				t.Parallel()
				show(t, results()[name])
			})
		}
	})
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
