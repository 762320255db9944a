package conform

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// faulty returns a function that starts the reference server of Gearman with an edit, in memory.
func faulty(edit inject.Edit) func(context.Context) (target.Target, error) {
	p := injector
	return func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "faulty", func(ctx context.Context, ln net.Listener) error {
			return p.Serve(ctx, ln, &inject.MutantSpec{Edit: edit})
		})
	}
}

var injector = inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return server.New(server.Options{}) }}

// edit returns the edit of a fault script.
func edit(script string) inject.Edit {
	e, err := injector.ParseFaults(script)
	if err != nil {
		panic(err)
	}
	return e
}

// TestCrashAfterRestart tests that the case that crashed the target is found after a restart. The case received the
// target before the restart, connected to it after the restart and crashed it, while another case ran on the same
// target.
func TestCrashAfterRestart(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n" +
		"@case crashes\n@about The option for exceptions is confirmed.\nClient -> Job Server: OPTION_REQ exceptions\nJob Server -> Client: OPTION_RES exceptions\n" +
		"@case passes\n@about An echo.\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	crash := errors.New("crashed on OPTION_REQ")
	start := faulty(edit("crash OPTION_REQ"))
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	died := Result{Verdict: Crashed}
	attempts := []attempt{
		{Result: died, generation: 0, from: at(90), to: at(300)},
		{Result: died, generation: 1, from: at(150), to: at(310)},
	}
	for i := range attempts {
		attempts[i].Case = s.Cases[i]
	}
	var final map[int]Result
	synctest.Test(t, func(t *testing.T) {
		deaths := []death{{from: at(0), at: at(100), err: crash}, {from: at(120), at: at(290), err: crash}}
		sharedRuns := &sharedTarget{start: start, deaths: deaths}
		r := Runner{Start: start, Parallel: 1}
		final = r.findCrashingCases(t.Context(), attempts, sharedRuns, &schedulingDelay{})
	})
	if got := final[0].Verdict; got != Crashed {
		t.Errorf("the case that crashes the target: %s", got)
	}
	if got := final[1]; got.Verdict != Passed {
		t.Errorf("the case beside it: %s: %s", got.Verdict, got.Note)
	}
}

// TestMostLikelyCrashingCaseIsReported tests which case is reported if no case crashes the target alone: a case that the profile lists as
// crashing, otherwise a case that noticed the crash, otherwise the case that ended last.
func TestMostLikelyCrashingCaseIsReported(t *testing.T) {
	at := func(id string, v Verdict, second int) *attempt {
		return &attempt{Result: Result{Case: &Case{ID: id, Family: id}, Verdict: v}, to: time.Unix(int64(second), 0)}
	}
	listed, noticed, later, early := at("p.listed", Passed, 1), at("p.noticed", Failed, 1), at("p.later", Passed, 3), at("p.early", Passed, 1)
	r := Runner{Profile: &Profile{Flaky: []Exception{{Cases: "p.listed", Crash: true}}, Known: []Exception{{Cases: "p.early"}}}}
	for _, pair := range [][2]*attempt{{listed, noticed}, {listed, later}, {later, early}} {
		if !r.likelierCause(pair[0], pair[1]) || r.likelierCause(pair[1], pair[0]) {
			t.Errorf("%s is not likelier than %s", pair[0].Case.ID, pair[1].Case.ID)
		}
	}
}
