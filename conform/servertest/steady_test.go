package servertest

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/conform/report"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver"
)

var (
	steadyRuns   = flag.Int("steady", 0, "run each suite `N` times against each server, and again with busy processors, and compare the verdicts")
	steadyServer = flag.String("steady-server", "", "with -steady, test only the server with the name, such as danga or gearmand")
)

// TestSteady runs the cases about servers several times against each server, on the machine as it is and with as many busy
// loops as the machine has processors. Each case must have the same verdict every time, except cases that a profile lists
// as flaky.
//
//	go test ./conform/servertest -run TestSteady -timeout 2h -v -args -steady 5
func TestSteady(t *testing.T) {
	if *steadyRuns == 0 {
		t.Skip("takes an hour; run it with -args -steady 5")
	}
	for _, e := range catalog.All() {
		suite, err := mutanttest.Load(t, e.Protocol).About("")
		if err != nil {
			t.Fatal(err)
		}
		test := func(name string, start, startProcess func(context.Context) (target.Target, error), profile *conform.Profile) {
			if *steadyServer != "" && *steadyServer != name {
				return
			}
			t.Run(name, func(t *testing.T) {
				if profile != nil {
					peers.Need(t, name)
				}
				all := verdicts{}
				for _, processors := range []string{"quiet", "busy"} {
					if processors == "busy" {
						defer busyLoops(t)()
					}
					for n := range *steadyRuns {
						begun := time.Now()
						r := conform.Runner{Start: start, StartProcess: startProcess, Parallel: 8, Timeout: 2 * time.Second, Profile: profile, Segments: everySegmentation}
						results := r.Run(t.Context(), suite, nil)
						all.add(results)
						t.Logf("%s, run %d: %v in %v", processors, n+1, tally(results), time.Since(begun).Round(100*time.Millisecond))
					}
				}
				for _, different := range all.different() {
					t.Error(different)
				}
			})
		}
		test(e.Protocol.Name, embedded(e), process(e, "none"), nil)
		for _, name := range realServers(e.Protocol) {
			profile, err := conform.LoadProfile(name, suite)
			if err != nil {
				t.Fatal(err)
			}
			test(name, executed(profile), nil, profile)
		}
	}
}

// everySegmentation is all ways to divide messages into writes.
var everySegmentation = []play.Segmentation{play.Plain, play.Bytewise, play.Coalesced}

// realServers returns the names of the profiles of servers that are not part of jobwire.
func realServers(p *codec.Protocol) []string {
	return slices.DeleteFunc(conform.Profiles(p), func(name string) bool { return name == "embedded" })
}

// embedded returns a function that starts the reference server of the protocol in this process.
func embedded(e *catalog.Entry) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, "embedded", func(ctx context.Context, ln net.Listener) error {
			return refserver.New(e.New(), refserver.Options{Protocol: e.Protocol}).Serve(ctx, ln)
		})
	}
}

// executed returns a function that starts the real server of the profile.
func executed(profile *conform.Profile) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) { return target.Exec(ctx, profile.Exec) }
}

// busyLoops keeps all processors busy until the function that it returns is called.
func busyLoops(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var loops []*exec.Cmd
	for range runtime.NumCPU() {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		loops = append(loops, loop)
	}
	return func() {
		cancel()
		for _, loop := range loops {
			loop.Wait()
		}
	}
}

// verdicts counts the verdicts of each case, with an example of the result.
type verdicts map[string]map[verdict.Verdict][]conform.Result

func (v verdicts) add(results []conform.Result) {
	for _, r := range results {
		got := r.Verdict
		if got == verdict.Flaky { // a flaky case may also pass
			got = verdict.Passed
		}
		if v[r.Case.ID] == nil {
			v[r.Case.ID] = map[verdict.Verdict][]conform.Result{}
		}
		v[r.Case.ID][got] = append(v[r.Case.ID][got], r)
	}
}

// different describes the cases that had several verdicts.
func (v verdicts) different() []string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(v)) {
		if len(v[id]) == 1 {
			continue
		}
		var b strings.Builder
		fmt.Fprint(&b, id)
		for _, verdict := range slices.Sorted(maps.Keys(v[id])) {
			results := v[id][verdict]
			fmt.Fprintf(&b, "\n%s in %d runs", verdict, len(results))
			if results[0].Play != nil {
				fmt.Fprintf(&b, ", first:\n%s", report.Result(results[0]))
			}
		}
		all = append(all, b.String())
	}
	return all
}

// tally counts results by verdict.
func tally(results []conform.Result) map[verdict.Verdict]int {
	counts := map[verdict.Verdict]int{}
	for _, r := range results {
		counts[r.Verdict]++
	}
	return counts
}
