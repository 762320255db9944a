package jobtest_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

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

// scenarios are calls of Conform whose subtests do not all pass. TestScenario performs one of them in another process.
var scenarios = map[string]jobtest.ConformOptions{
	"wrong data":      {Serve: reference("gearman", "alter ECHO_RES data=other"), Run: []string{"gearman.echo.client", "gearman.submit.foreground", "gearman.resource.*"}},
	"nothing decided": {Serve: reference("gearman", ""), Run: []string{"gearman.resource.*"}, Levels: []codec.Level{codec.Resource}},
	"no server":       {Addr: "unix:/no/such/socket", Run: []string{"gearman.echo.*"}},
	"two servers":     {Addr: "unix:/no/such/socket", Exec: "server {port}"},
	"unknown level":   {Addr: "unix:/no/such/socket", Levels: []codec.Level{"must"}},
}

const scenarioVariable = "JOBTEST_SCENARIO"

// TestScenario runs Conform as the environment variable says. TestResultsOfSubtests starts it in another process,
// because its subtests fail on purpose.
func TestScenario(t *testing.T) {
	o, ok := scenarios[os.Getenv(scenarioVariable)]
	if !ok {
		t.Skip("TestResultsOfSubtests runs this test in another process")
	}
	jobtest.Conform(t, "gearman", o)
}

// TestResultsOfSubtests tests that Conform passes, fails and skips the subtest of each case as the case did, prints the
// rule and the difference of a failure, and fails if it could test nothing.
func TestResultsOfSubtests(t *testing.T) {
	tests := []struct {
		scenario, run string
		want          []string // parts of the output
		not           string   // a regular expression that does not match the output; "": any
	}{
		{"wrong data", "TestScenario", []string{
			"--- FAIL: TestScenario/gearman/gearman.echo.client", "--- PASS: TestScenario/gearman/gearman.submit.foreground",
			"--- SKIP: TestScenario/gearman/gearman.resource.", "skipped: ",
			"failed            gearman.echo.client", "Rule gearman.echo.same-data (MUST, specification section \"Client/Worker\")", "^^ differs: byte 12, Data: expected test, got other"}, ""},
		{"wrong data", "TestScenario/gearman/submit", []string{"--- PASS: TestScenario/gearman/gearman.submit.foreground", "\nPASS\n"}, "echo"},
		{"nothing decided", "TestScenario", []string{"--- SKIP: TestScenario/gearman/", "the run shows nothing about the target: all cases were skipped", "--- FAIL: TestScenario/gearman "}, "--- FAIL: TestScenario/gearman/"},
		{"no server", "TestScenario", []string{"unix:/no/such/socket: cannot connect", "--- FAIL: TestScenario/gearman/", "not run: "}, "PASS"},
		{"two servers", "TestScenario", []string{"expected exactly one of Serve, Exec and Addr"}, "--- PASS"},
		{"unknown level", "TestScenario", []string{`got "must"`}, "--- PASS"},
	}
	for _, tt := range tests {
		t.Run(tt.scenario+" "+tt.run, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.short", "-test.run", tt.run)
			cmd.Env = append(os.Environ(), scenarioVariable+"="+tt.scenario)
			out, _ := cmd.CombinedOutput() // the output contains the status
			for _, part := range tt.want {
				if !strings.Contains(string(out), part) {
					t.Errorf("the output does not contain %q", part)
				}
			}
			if tt.not != "" && regexp.MustCompile(tt.not).Match(out) {
				t.Errorf("the output matches %q", tt.not)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
