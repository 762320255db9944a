package jobtest_test

import (
	"cmp"
	"context"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/jobtest"
	"jobwire/refserver"
)

// reference returns the function of a reference server with faults.
func reference(protocol, faults string) func(context.Context, net.Listener) error {
	return func(ctx context.Context, ln net.Listener) error {
		e, err := catalog.Named(protocol)
		if err != nil {
			return err
		}
		machine, opts := e.New(), refserver.Options{Protocol: e.Protocol}
		if faults != "" {
			if machine, err = e.Injector().Wrap(machine, &opts, faults); err != nil {
				return err
			}
		}
		return refserver.New(machine, opts).Serve(ctx, ln)
	}
}

// scenario is a call of Conform whose subtests do not all pass. TestHelperScenario performs one of them in another process.
type scenario struct {
	protocol    string
	options     jobtest.ConformOptions
	maxCaseTime time.Duration // in real time; 0: as usual
}

var smallFaults = []string{"keeps jobs", "touch does nothing", "no warning", "no delay", "no pause"}

var scenarios = map[string]scenario{
	"wrong data": {"gearman", jobtest.ConformOptions{Serve: reference("gearman", "alter ECHO_RES data=other"),
		Run: []string{"gearman.echo.client", "gearman.submit.foreground", "gearman.resource.*"}}, 0},
	"nothing decided": {"gearman", jobtest.ConformOptions{Serve: reference("gearman", ""), Run: []string{"gearman.resource.*"},
		Levels: []codec.Level{codec.Resource}}, 0},
	"no server":         {"gearman", jobtest.ConformOptions{Addr: "unix:/no/such/socket", Run: []string{"gearman.echo.*"}}, 0},
	"two servers":       {"gearman", jobtest.ConformOptions{Addr: "unix:/no/such/socket", Exec: "server {port}"}, 0},
	"unknown level":     {"gearman", jobtest.ConformOptions{Addr: "unix:/no/such/socket", Levels: []codec.Level{"must"}}, 0},
	"five faults":       {"beanstalk", jobtest.ConformOptions{Serve: newSmallServer(smallFaults...)}, 0},
	"does not return":   {"beanstalk", jobtest.ConformOptions{Serve: serveForever, Run: []string{"case:beanstalk.use.again"}}, 0},
	"waits for a mutex": {"beanstalk", jobtest.ConformOptions{Serve: serveLocked, Run: []string{"beanstalk.use.again"}}, 100 * time.Millisecond},
}

// serveForever is a server that does not end.
func serveForever(ctx context.Context, ln net.Listener) error {
	newSmallServer()(ctx, ln)
	select {}
}

// serveLocked is a server that waits for itself.
func serveLocked(context.Context, net.Listener) error {
	var mu sync.Mutex
	mu.Lock()
	mu.Lock()
	return nil
}

const scenarioVariable = "JOBTEST_SCENARIO"

// TestHelperScenario is not a test itself. performScenario starts it in another process with JOBTEST_SCENARIO=NAME, and
// tests such as TestResultsOfSubtests check its output, because some of the subtests of Conform fail on purpose.
func TestHelperScenario(t *testing.T) {
	s, ok := scenarios[os.Getenv(scenarioVariable)]
	if !ok {
		t.Skip("a helper of other tests")
	}
	*jobtest.MaxCaseTime = cmp.Or(s.maxCaseTime, *jobtest.MaxCaseTime)
	jobtest.Conform(t, s.protocol, s.options)
}

// performScenario runs the tests that match run in another process, and returns the output.
func performScenario(t *testing.T, name, run string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.short", "-test.run", run)
	cmd.Env = append(os.Environ(), scenarioVariable+"="+name)
	out, _ := cmd.CombinedOutput() // the output contains the status
	return string(out)
}

// TestResultsOfSubtests tests that Conform passes, fails and skips the subtest of each case as the case did, prints the
// rule and the difference of a failure, and fails if it could test nothing.
func TestResultsOfSubtests(t *testing.T) {
	tests := []struct {
		scenario, run string
		want          []string // parts of the output
		not           string   // a regular expression that does not match the output; "": any
	}{
		{"wrong data", "TestHelperScenario", []string{
			"--- FAIL: TestHelperScenario/gearman/gearman.echo.client", "--- PASS: TestHelperScenario/gearman/gearman.submit.foreground",
			"--- SKIP: TestHelperScenario/gearman/gearman.resource.", "skipped: jobwire can observe only a process", " 1 passed, 1 failed, ",
			"failed            gearman.echo.client", "Rule gearman.echo.same-data (MUST, specification section \"Client/Worker\")", "^^ differs: byte 12, Data: expected test, got other"}, ""},
		{"wrong data", "TestHelperScenario/gearman/submit", []string{"--- PASS: TestHelperScenario/gearman/gearman.submit.foreground", "\nPASS\n"}, "echo"},
		{"nothing decided", "TestHelperScenario", []string{"--- SKIP: TestHelperScenario/gearman/", "the run shows nothing about the target: all cases were skipped", "--- FAIL: TestHelperScenario/gearman "}, "--- FAIL: TestHelperScenario/gearman/"},
		{"no server", "TestHelperScenario", []string{"unix:/no/such/socket: cannot connect", "--- FAIL: TestHelperScenario/gearman/", "not run: "}, "PASS"},
		{"two servers", "TestHelperScenario", []string{"expected exactly one of Serve, Exec and Addr"}, "--- PASS"},
		{"unknown level", "TestHelperScenario", []string{`got "must"`}, "--- PASS"},
		{"does not return", "TestHelperScenario", []string{
			"--- PASS: TestHelperScenario/beanstalk/beanstalk.use.again", "--- FAIL: TestHelperScenario/beanstalk ",
			"after the case beanstalk.use.again, goroutines still wait, although the context of Serve has ended and its listener is closed",
			"jobtest_test.serveForever", "1 case: 1 passed"}, "(?s)still wait.*still wait|and . more goroutines"},
		{"waits for a mutex", "TestHelperScenario", []string{"--- FAIL: TestHelperScenario/beanstalk/beanstalk.use.again", "virtual time does not pass",
			"jobtest_test.serveLocked"}, "more goroutines"},
	}
	for _, tt := range tests {
		t.Run(tt.scenario+" "+tt.run, func(t *testing.T) {
			t.Parallel()
			out := performScenario(t, tt.scenario, tt.run)
			for _, part := range tt.want {
				if !strings.Contains(out, part) {
					t.Errorf("the output does not contain %q", part)
				}
			}
			if tt.not != "" && regexp.MustCompile(tt.not).MatchString(out) {
				t.Errorf("the output matches %q", tt.not)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// durations are the parts of an output that differ between runs.
var durations = regexp.MustCompile(`\(\d+\.\d+s\)`)

// TestFiveFaults runs the whole suite twice against a server with five faults. Each must be found, no other case may
// fail, and the outputs must be equal.
func TestFiveFaults(t *testing.T) {
	t.Parallel()
	first := durations.ReplaceAllString(performScenario(t, "five faults", "TestHelperScenario"), "")
	if again := durations.ReplaceAllString(performScenario(t, "five faults", "TestHelperScenario"), ""); again != first {
		t.Errorf("the outputs of two runs differ:\n%s\n%s", first, again)
	}
	for _, name := range []string{"ttr.expires", "touch.extends", "deadline.while-waiting", "release.delay", "pause.paused"} {
		if !strings.Contains(first, "--- FAIL: TestHelperScenario/beanstalk/beanstalk."+name+" ") {
			t.Errorf("passed %s", name)
		}
	}
	if want := "491 cases: 389 passed, 4 non-strict, 15 different, 53 failed, 8 inconclusive, 22 skipped"; !strings.Contains(first, want) {
		t.Errorf("expected %q", want)
	}
	if t.Failed() {
		t.Log(first)
	}
}

// TestSmallServer tests that the whole suite fails no case of a correct server that shares no code with jobwire.
func TestSmallServer(t *testing.T) {
	jobtest.Conform(t, "beanstalk", jobtest.ConformOptions{Serve: newSmallServer()})
}

// TestReferenceServers tests that the reference servers pass the whole suite, also where it tests interpretations. The
// tests of the suite itself do this with the first instance of each case.
func TestReferenceServers(t *testing.T) {
	for _, name := range catalog.Names() {
		jobtest.Conform(t, name, jobtest.ConformOptions{Serve: reference(name, ""), Levels: codec.Levels})
	}
}
