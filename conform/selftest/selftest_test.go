package selftest_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/selftest"
	mutants "jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/refserver"
	gearmanserver "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// mutant returns the reference server with faults.
func mutant(name, kills string, faults ...string) mutants.Mutant {
	return mutants.Mutant{Name: name, About: "It is wrong.", KilledBy: strings.Fields(kills), Start: func(ctx context.Context) (target.Target, error) {
		p := inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) }}
		return target.InMemory(ctx, name, func(ctx context.Context, ln net.Listener) error {
			return p.Serve(ctx, ln, &inject.MutantSpec{Name: name, Fault: strings.Join(faults, "\n")})
		})
	}}
}

// inBubbles returns options for a self-test in a test.
func inBubbles(t *testing.T) selftest.Options {
	return selftest.Options{Bubble: func(do func()) { synctest.Test(t, func(*testing.T) { do() }) }}
}

// reference starts the reference server in memory.
func reference(ctx context.Context) (target.Target, error) { return mutant("reference", "").Start(ctx) }

// threeCases returns a suite of three cases.
func threeCases(t *testing.T) *conform.Suite {
	t.Helper()
	src := "@section Echo\n"
	for _, c := range [][2]string{{"echo", "$x"}, {"long", `"x"*5000`}, {"none", `""`}} {
		src += fmt.Sprintf("@case %s\n@about An echo.\n@rules gearman.echo.same-data\nClient -> Job Server: ECHO_REQ %s\n"+
			"Job Server -> Client: ECHO_RES %[2]s\n", c[0], c[1])
	}
	s, err := conform.LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSelfTestPasses tests that the self-test passes if each mutant fails its cases and each case is failed by a
// mutant, and that it does not run mutants about other cases.
func TestSelfTestPasses(t *testing.T) {
	t.Parallel()
	reported := 0
	r := selftest.Run(t.Context(), threeCases(t), selftest.Baseline{Start: reference}, []mutants.Mutant{
		mutant("echo-silent", "gearman.echo gearman.long gearman.none", "drop ECHO_REQ"),
		mutant("empty-echo-silent", "gearman.none", "drop ECHO_REQ when data == \"\""),
		mutant("about-other-cases", "gearman.other", "drop ECHO_REQ"),
	}, inBubbles(t), func(*selftest.MutantResult) { reported++ })
	if !r.Passed() || r.Exact() != 2 || reported != 2 || len(r.Mutants) != 2 {
		t.Errorf("passed %v, %d exact, %d reported: %+v", r.Passed(), r.Exact(), reported, r.Mutants)
	}
	if got := r.KilledBy()["gearman.none"]; !slices.Equal(got, []string{"echo-silent", "empty-echo-silent"}) {
		t.Errorf("gearman.none is killed by %v", got)
	}
}

// TestSelfTestFails tests that the self-test reports a mutant that survives, a mutant that fails too many cases, and a
// case that no mutant fails.
func TestSelfTestFails(t *testing.T) {
	t.Parallel()
	survives := mutant("survives", "gearman.echo gearman.none", "drop ECHO_REQ when data == \"\"")
	tooMuch := mutant("too-much", "gearman.none", "drop ECHO_RES when len(data) > 1000")
	r := selftest.Run(t.Context(), threeCases(t), selftest.Baseline{Start: reference}, []mutants.Mutant{survives, tooMuch}, inBubbles(t), nil)
	if r.Passed() || r.Exact() != 0 || len(r.Failed) != 0 {
		t.Fatalf("held %v, %d exact, faultless failed %v", r.Passed(), r.Exact(), r.Failed)
	}
	if m := r.Mutants[0]; !slices.Equal(m.Survivors, []string{"gearman.echo"}) || !slices.Equal(m.Failed, []string{"gearman.none"}) || m.Unexpected != nil {
		t.Errorf("survives: %+v", m)
	}
	if m := r.Mutants[1]; !slices.Equal(m.Survivors, []string{"gearman.none"}) || len(m.Unexpected) != 1 || m.Unexpected[0].Case.ID != "gearman.long" {
		t.Errorf("too-much: %+v", m)
	}
	if got := r.WithoutMutant(); !slices.Equal(got, []string{"gearman.echo"}) {
		t.Errorf("unproved: %v", got)
	}
}

// TestSelfTestNeedsFaultlessServer tests that a self-test runs no mutants if the faultless server has a fault.
func TestSelfTestNeedsFaultlessServer(t *testing.T) {
	t.Parallel()
	bad := mutant("bad", "", "drop ECHO_REQ when data == \"\"")
	r := selftest.Run(t.Context(), threeCases(t), selftest.Baseline{Start: bad.Start}, []mutants.Mutant{bad}, inBubbles(t), nil)
	if r.Passed() || len(r.Failed) != 1 || r.Failed[0].Case.ID != "gearman.none" || len(r.Mutants) != 0 {
		t.Errorf("held %v, failed %+v, %d mutants were run", r.Passed(), r.Failed, len(r.Mutants))
	}
}

// TestSelfTestObserves checks that a mutant runs only against the cases in which the condition of its fault is true, that a fault without an effect
// is an error, and that a fault which has an effect although its condition is never true is an error.
func TestSelfTestObserves(t *testing.T) {
	t.Parallel()
	p := inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) }}
	specs := []inject.MutantSpec{
		{Name: "empty", KilledBy: "none", Fault: `drop ECHO_REQ when data == ""`},
		{Name: "noted", KilledBy: "echo long", Fault: "note ECHO_REQ size={len(data)}\ndrop ECHO_RES when notes.size > 0"},
		{Name: "never", KilledBy: "echo", Fault: "drop CAN_DO"},
		{Name: "in-go", KilledBy: "echo", Edit: inject.On("CAN_DO", nil, (*inject.Message).Drop)},
	}
	all := p.Mutants(specs)
	hidden := mutant("hidden", "gearman.echo", "drop ECHO_REQ when len(data) < 100 and data != \"\"") // unknown to the observer
	r := selftest.Run(t.Context(), threeCases(t), selftest.Baseline{
		Start: reference, Observe: p.Observe(func() []inject.MutantSpec { return specs }),
	}, append(all, hidden), inBubbles(t), nil)
	if len(r.Failed) > 0 || len(r.Mutants) != 5 {
		t.Fatalf("%d mutants, failed without a fault: %+v", len(r.Mutants), r.Failed)
	}
	for i, exact := range []bool{true, true, false, false, false} {
		if m := r.Mutants[i]; m.Exact() != exact {
			t.Errorf("%s: exact %v, %+v", m.Mutant.Name, m.Exact(), m)
		}
	}
	if r.Mutants[2].Effective || !r.Mutants[3].Effective || len(r.Mutants[4].Hidden) != 1 {
		t.Errorf("without an effect: %+v, in Go: %+v, hidden: %+v", r.Mutants[2], r.Mutants[3], r.Mutants[4])
	}
	if want := (selftest.RunCounts{Possible: 15, Done: 8, Sampled: 0}); r.Runs != want {
		t.Errorf("expected the runs %+v, got %+v", want, r.Runs)
	}
}

// TestInterruptedSelfTest checks that the report of an interrupted self-test contains only mutants that were tested, and that
// it does not pass.
func TestInterruptedSelfTest(t *testing.T) {
	t.Parallel()
	var all []mutants.Mutant
	for i := range 100 {
		all = append(all, mutant(fmt.Sprint(i), "gearman.echo gearman.long gearman.none", "drop ECHO_REQ"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := selftest.Run(ctx, threeCases(t), selftest.Baseline{Start: reference}, all, inBubbles(t),
		func(*selftest.MutantResult) { cancel() })
	if !r.Interrupted || r.Passed() || len(r.Mutants) == 0 || len(r.Mutants) == 100 {
		t.Errorf("interrupted %v, passed %v, %d mutants", r.Interrupted, r.Passed(), len(r.Mutants))
	}
	for _, m := range r.Mutants {
		if len(m.Failed) != 3 {
			t.Errorf("%s was not tested: %+v", m.Mutant.Name, m)
		}
	}
}
