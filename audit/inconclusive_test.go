package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec/beanstalk"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	peer "jobwire/refpeer/beanstalk"
	"jobwire/refserver"
	server "jobwire/refserver/beanstalk"
)

// TestEndOfADriver: a driver that a user or the system ended has not crashed.
func TestEndOfADriver(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	for script, want := range map[string]verdict.Verdict{
		"kill -KILL $$": verdict.Inconclusive, "kill -TERM $$": verdict.Inconclusive, "kill -INT $$": verdict.Inconclusive,
		"exit 137": verdict.Inconclusive, "kill -SEGV $$": verdict.Crashed, "kill -ABRT $$": verdict.Crashed,
		"exit 1":   verdict.Crashed,
		"exit 139": verdict.Crashed,
	} {
		err := exec.Command("sh", "-c", script).Run()
		if got, note := crash(fmt.Errorf("the driver: %w", err)); got != want || note == "" {
			t.Errorf("%s: expected %s, got %s: %s", script, want, got, note)
		}
	}
}

// stressBeanstalk performs the tasks of a client without faults, on a server that starts if startErr is nil.
func stressBeanstalk(t *testing.T, client Driver, startErr error) ([]Outcome, error) {
	return Stress(t.Context(), StressOptions{Protocol: beanstalk.Protocol,
		FaultProfiles: []*FaultProfile{FaultProfileNamed("plain")},
		Drivers:       map[string]Driver{"Client": client}, Partners: map[string]Driver{"Client": peer.Drive},
		Start: func(ctx context.Context) (target.Target, error) {
			if startErr != nil {
				return nil, startErr
			}
			return target.InMemory(ctx, "beanstalk", func(ctx context.Context, ln net.Listener) error {
				return refserver.New(server.New(server.Options{}), refserver.Options{Protocol: beanstalk.Protocol}).Serve(ctx, ln)
			})
		}})
}

// faultyAt returns the reference client, with another behavior at a task: the client crashes, or hangs.
func faultyAt(task string, hangs bool) Driver {
	return func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		in, passed := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- peer.Drive(ctx, addr, in, answers) }()
		for lines := bufio.NewScanner(tasks); lines.Scan(); fmt.Fprintln(passed, lines.Text()) {
			if !strings.HasPrefix(lines.Text(), task) {
				continue
			}
			if hangs {
				<-ctx.Done()
			}
			passed.CloseWithError(errors.New("broken"))
			<-ended
			return errors.New("broken")
		}
		passed.Close()
		return <-ended
	}
}

// TestDriverIsStartedAgain: a driver that crashes or hangs at one task is started again for the next one, so that the
// other tasks are performed, and nothing else fails.
func TestDriverIsStartedAgain(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		want := verdict.Crashed
		if hangs {
			want = verdict.Hung
		}
		synctest.Test(t, func(t *testing.T) {
			all, err := stressBeanstalk(t, peer.Drive, nil)
			if err != nil || all[0].Verdict != verdict.Completed {
				t.Fatal(all, err)
			}
			tasks := all[0].Tasks
			all, err = stressBeanstalk(t, faultyAt("peek 4000000000", hangs), nil)
			if err != nil || all[0].Verdict != want || len(all[0].Others) > 0 || all[0].Tasks < tasks/2 ||
				all[0].Tasks > tasks ||
				!strings.HasPrefix(all[0].Task, "peek 4000000000") {
				t.Errorf("expected one task %s of about %d, got %d tasks, %+v and %+v, %v", want, tasks, all[0].Tasks,
					all[0].Failure, all[0].Others, err)
			}
		})
	}
}

// TestRefusedValue: a library that refuses an unusual value does not support it. An error about another task is a
// failure.
func TestRefusedValue(t *testing.T) {
	for task, want := range map[string]verdict.Verdict{"put \"v1-+": verdict.Completed,
		"reserve \"v1-+": verdict.FailedCleanly} {
		for _, answer := range []string{"error usage the name is too long", "error connection TypeError"} {
			synctest.Test(t, func(t *testing.T) {
				all, err := stressBeanstalk(t, answering(task, answer), nil)
				if err != nil || all[0].Verdict != want || (all[0].Unsupported == 1) != (want == verdict.Completed) {
					t.Errorf("%s: %s: %d of %d unsupported, %+v, %v", task, answer, all[0].Unsupported, all[0].Tasks, all[0].Failure,
						err)
				}
			})
		}
	}
}

// answering returns the reference client, which gives another answer to a task, and does not perform it.
func answering(task, answer string) Driver {
	return func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		in, passed := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- peer.Drive(ctx, addr, in, answers) }()
		lines := bufio.NewScanner(tasks)
		for lines.Buffer(nil, 1<<20); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), task) {
				fmt.Fprintln(answers, answer)
			} else {
				fmt.Fprintln(passed, lines.Text())
			}
		}
		passed.Close()
		return <-ended
	}
}

// TestReportsOfStress: reports for CI systems have a crash and a wrong result, and why a run that ended early has not
// passed.
func TestReportsOfStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, err := stressBeanstalk(t, faultyAt("peek 4000000000", false), nil)
		if err != nil {
			t.Fatal(err)
		}
		passed, wrong, excused := all[0], all[0], all[0]
		passed.Failure = Failure{Verdict: verdict.Completed}
		wrong.Verdict, excused.FaultProfile = verdict.WrongResult, FaultProfileNamed("huge-ids")
		all = append(all, passed, wrong, excused)
		all[0].Command = "jobwire audit stress beanstalk plain"
		unfinished := Outcome{Role: "Client", FaultProfile: FaultProfileNamed("delays")}
		unfinished.interrupted(nil)
		all = append(all, unfinished)
		r := StressReport{Protocol: beanstalk.Protocol, Outcomes: all, Interrupted: true}
		for _, tt := range []struct {
			write func(io.Writer) error
			want  []string
		}{
			{r.WriteJSON, []string{`"note": "not finished (interrupted)"`}},
			{r.WriteJUnit, []string{`tests="6" failures="1" errors="2" skipped="2"`,
				`message="inconclusive: not finished (interrupted)"`, `<error type="crashed" message="crashed: the driver exited`,
				`To repeat: jobwire audit stress beanstalk plain`,
				`<error type="not tested" message="the run was interrupted after 4 runs">`}},
			{r.WriteTAP, []string{"1..5\n", "\nnot ok 1 - Client plain: no fault\n# ! Client", "\nok 2 - ", "\nnot ok 3 - ",
				"\nnot ok 4 - Client huge-ids: job IDs have 20 digits # TODO crashed: ", "\nBail out! the run was interrupted " +
					"after 4 runs\n"}},
			{r.WriteGitHub, []string{"::error title=beanstalk%3A the run::the run was interrupted after 4 runs\n",
				"::error title=beanstalk%3A Client%2C fault profile plain%3A crashed::", "::warning title=beanstalk%3A Client%2C " +
					"fault profile huge-ids"}},
			{r.WriteSummary, []string{"5 runs under fault profiles: 2 passed, 2 failed, 1 inconclusive",
				"? Client     delays           inconclusive", "Result: not finished (interrupted)", "Client, Producer, Worker: "}},
		} {
			var out strings.Builder
			out.Write(unfinished.AppendText(nil, r.Protocol, TextOptions{}))
			if err := tt.write(&out); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("expected %q in\n%s", want, &out)
				}
			}
		}
	})
}

// TestServerThatDoesNotStart: a run without a server shows nothing about the driver, and is in the report.
func TestServerThatDoesNotStart(t *testing.T) {
	failed := errors.New("no server")
	all, err := stressBeanstalk(t, peer.Drive, failed)
	if !errors.Is(err, failed) || len(all) != 1 || !all[0].Inconclusive() || all[0].Note != failed.Error() {
		t.Errorf("got %+v, %v", all, err)
	}
	var text, json strings.Builder
	report := &StressReport{Protocol: beanstalk.Protocol, Outcomes: all, Err: err}
	report.WriteSummary(&text)
	report.WriteJSON(&json)
	if !strings.Contains(text.String(), " 0 passed, 0 failed, 1 inconclusive") ||
		!strings.Contains(json.String(), `"passed": false`) ||
		!strings.Contains(json.String(), `"verdict": "inconclusive"`) {
		t.Errorf("%s\n%s", &text, &json)
	}
}
