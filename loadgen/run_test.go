package loadgen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/internal/memnet"
	"jobwire/loadgen"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
	"jobwire/loadgen/schedule"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	dangaserver "jobwire/refserver/danga"
	gearmanserver "jobwire/refserver/gearman"
	gearmonkeyserver "jobwire/refserver/gearmonkey"
	"jobwire/refserver/inject"
)

// machines returns the state machines of the reference servers of the protocols with a load.
var machines = map[*codec.Protocol]func() refserver.Machine{
	gearman.Protocol:    func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) },
	beanstalk.Protocol:  func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) },
	gearmonkey.Protocol: func() refserver.Machine { return gearmonkeyserver.New(gearmonkeyserver.Options{}) },
	danga.Protocol:      func() refserver.Machine { return dangaserver.New(dangaserver.Options{}) },
}

// newServer returns a reference server with injected faults, if there are any, which stops at the end of the test.
func newServer(t *testing.T, p *codec.Protocol, faults ...string) *refserver.Server {
	t.Helper()
	m, o := machines[p](), refserver.Options{Protocol: p}
	if len(faults) > 0 {
		faulty, err := (&inject.Protocol{Protocol: p}).Wrap(m, &o, strings.Join(faults, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		m = faulty
	}
	srv := refserver.New(m, o)
	t.Cleanup(srv.Close)
	return srv
}

// serving starts a reference server in memory and returns a function that connects to it.
func serving(t *testing.T, p *codec.Protocol, faults ...string) func(context.Context) (net.Conn, error) {
	t.Helper()
	return (&instance{srv: newServer(t, p, faults...)}).Dial
}

// load performs a run against a reference server. The test fails if the run fails.
func load(t *testing.T, cfg loadgen.Config, faults ...string) *loadgen.Result {
	t.Helper()
	if cfg.Dial == nil {
		cfg.Dial = serving(t, cfg.Protocol, faults...)
	}
	res, err := loadgen.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// bubble runs a subtest in virtual time, beside others.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// rate parses a schedule.
func rate(t *testing.T, text string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestScenariosLoseNothing tests that each scenario of each protocol completes all its jobs, in order and without
// faults, also if it kills workers.
func TestScenariosLoseNothing(t *testing.T) {
	for p := range machines {
		for _, sc := range loadgen.Scenarios(p) {
			for _, window := range []int{1, 32} {
				if sc.MaxWindow > 0 && window > sc.MaxWindow {
					continue
				}
				bubble(t, fmt.Sprintf("%s/%s/%d", p.Name, sc.Name, window), func(t *testing.T) {
					dials, dial := 0, serving(t, p)
					cfg := loadgen.Config{Protocol: p, Scenario: sc.Name, Count: 300, Window: window, Clients: 2,
						Functions: 3, Size: loadgen.Sizes{Lo: 16, Hi: 300},
						Dial: func(ctx context.Context) (net.Conn, error) { dials++; return dial(ctx) }}
					if p == gearmonkey.Protocol {
						cfg.Count = 100 // a job takes 15 commands
					}
					if sc.Kills {
						cfg.Count, cfg.Kill, cfg.Work, cfg.DrainTimeout = 200, 200, 20*time.Millisecond, time.Second
					}
					res := load(t, cfg)
					if sc.Kills && p == gearmonkey.Protocol {
						res.Account.Lost = 0 // GearMonkey loses the jobs of killed workers
						res.Jobs = cfg.Count
					}
					if !res.Account.NoFaults() || res.Jobs != cfg.Count || res.Account.OutOfOrder > 0 && !sc.Kills {
						t.Errorf("%d jobs of %d; %+v", res.Jobs, cfg.Count, res.Account)
					}
					if sc.Kills && dials < 10 {
						t.Errorf("%d connections of 2 clients and 4 workers: too few workers were killed", dials)
					}
				})
			}
		}
	}
}

// countingConn is a connection that counts how often each name is written.
type countingConn struct {
	net.Conn
	names  []string
	counts []atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	for i, name := range c.names {
		c.counts[i].Add(int64(bytes.Count(b, []byte(name))))
	}
	return c.Conn.Write(b)
}

// TestZipf tests that the option Zipf distributes the jobs over the functions by a Zipf distribution, and that an
// exponent of 1, an infinite one, or one without several functions is an error.
func TestZipf(t *testing.T) {
	const jobs = 2000
	names, counts := []string{"jobwire-1\x00", "jobwire-2\x00", "jobwire-3\x00"}, make([]atomic.Int64, 3)
	synctest.Test(t, func(t *testing.T) {
		dial := serving(t, gearman.Protocol)
		res := load(t, loadgen.Config{Protocol: gearman.Protocol, Count: jobs, Functions: 3, Zipf: 2,
			Dial: func(ctx context.Context) (net.Conn, error) {
				c, err := dial(ctx)
				return countingConn{c, names, counts}, err
			}})
		if !res.Account.NoFaults() {
			t.Error(res.Account)
		}
	})
	// The weights of the functions are 1, 1/4 and 1/9, so they get 73, 18 and 8 % of the jobs.
	for i, want := range []int64{1469, 367, 163} {
		if n := counts[i].Load(); n < want*8/10 || n > want*12/10 {
			t.Errorf("%d of %d jobs have function %d, expected about %d", n, jobs, i, want)
		}
	}
	for _, cfg := range []loadgen.Config{{Zipf: 1, Functions: 3}, {Zipf: 2}, {Zipf: math.Inf(1), Functions: 3}} {
		cfg.Protocol = gearman.Protocol
		if _, err := cfg.Complete(); err == nil {
			t.Errorf("exponent %v with %d functions is accepted", cfg.Zipf, cfg.Functions)
		}
	}
}

// TestHistoriesOfReferenceServersAreLinearizable tests that the reference servers deliver jobs in an order that a
// single queue may produce.
func TestHistoriesOfReferenceServersAreLinearizable(t *testing.T) {
	for p := range machines {
		bubble(t, p.Name, func(t *testing.T) {
			if res := load(t, loadgen.Config{Protocol: p, Count: 500, Check: true}); !res.Linear.Holds {
				t.Error(res.Linear.Why)
			}
		})
	}
}

// TestDrainingIntervals tests that jobs queued in the measured part are processed after it, and that the intervals
// report how many are left.
func TestDrainingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 40
		var left []int64
		res := load(t, loadgen.Config{Protocol: gearman.Protocol, Scenario: "background", Count: count,
			Clients: 2, Workers: 2, Grabs: 1, Work: 19 * time.Millisecond, Interval: 50 * time.Millisecond,
			OnInterval: func(iv *loadgen.Interval) {
				if iv.Draining {
					left = append(left, iv.Depth)
				}
			}})
		if want := []int64{36, 30, 26, 20, 14, 10, 4}; res.Jobs != count || !slices.Equal(left, want) {
			t.Errorf("%d jobs of %d, %d left after the measured part, expected %d", res.Jobs, count, left, want)
		}
	})
}

// TestInterruptedPhases interrupts runs in each phase: they end within a second, and no job counts as lost.
func TestInterruptedPhases(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cfg   loadgen.Config
		after time.Duration
		fault string
	}{
		{"ramp", loadgen.Config{Ramp: time.Hour, Think: time.Millisecond}, time.Second, ""},
		{"warm-up", loadgen.Config{Warmup: time.Hour, Think: time.Millisecond}, time.Second, ""},
		{"measurement", loadgen.Config{Duration: time.Hour, Think: time.Millisecond}, time.Second, ""},
		{"measurement without progress", loadgen.Config{Duration: time.Hour}, time.Second, "drop WORK_COMPLETE"},
		{"open loop", loadgen.Config{Duration: time.Hour, Rate: rate(t, "100"), MaxFlight: 1000}, time.Second, "drop WORK_COMPLETE"},
		{"jobs in flight at the end", loadgen.Config{Duration: time.Second, DrainTimeout: time.Hour}, 3 * time.Second, "drop WORK_COMPLETE"},
		{"queuing", loadgen.Config{Scenario: "background", DrainTimeout: time.Hour}, time.Second, "drop JOB_CREATED"},
		{"waiting for a backlog", loadgen.Config{Scenario: "background", Count: 100, DrainTimeout: time.Hour}, time.Second, "drop GRAB_JOB*"},
		{"killed workers", loadgen.Config{Scenario: "chaos", Duration: time.Hour, Work: time.Minute}, time.Second, ""},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var faults []string
			if tt.fault != "" {
				faults = append(faults, tt.fault)
			}
			cfg := tt.cfg
			cfg.Protocol, cfg.Clients, cfg.Workers, cfg.Dial = gearman.Protocol, 2, 2, serving(t, gearman.Protocol, faults...)
			ctx, interrupt := context.WithCancel(t.Context())
			time.AfterFunc(tt.after, interrupt)
			begin := time.Now()
			res, err := loadgen.Run(ctx, cfg)
			if took := time.Since(begin) - tt.after; !errors.Is(err, context.Canceled) || took < 0 || took > 1100*time.Millisecond {
				t.Errorf("%v after the interrupt: %v", took, err)
			}
			if res == nil || res.Account.Lost > 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestEndlessLists: a run ends when its connections have received too much of long lists.
func TestEndlessLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		element := []byte(strings.Repeat("$1\r\nx\r\n", 10_000))
		var read atomic.Int64
		_, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearmonkey.Protocol, Count: 100, Clients: 20,
			Dial: func(context.Context) (net.Conn, error) {
				near, far := memnet.Pipe()
				go func() {
					defer far.Close()
					far.Read(make([]byte, 1))
					n, err := far.Write([]byte("*130000\r\n")) // less than one message may have
					for err == nil {
						read.Add(int64(n))
						n, err = far.Write(element)
					}
				}()
				return near, nil
			}})
		if err == nil || !strings.Contains(err.Error(), "of a message that is not complete") || read.Load() > 200<<20 {
			t.Errorf("%v after %d bytes", err, read.Load())
		}
	})
}

// TestRunThatTakesNoTime tests that the rate of a run whose measured part takes no time is not known: no format prints
// an infinite or negative rate, and an objective for the rate is neither met nor missed.
func TestRunThatTakesNoTime(t *testing.T) {
	for name, cfg := range map[string]loadgen.Config{
		"closed loop":                {Protocol: gearman.Protocol, Count: 20},
		"open loop that was stopped": {Protocol: gearman.Protocol, Rate: rate(t, "1000"), MaxFlight: 1000},
	} {
		bubble(t, name, func(t *testing.T) {
			cfg.Dial = serving(t, cfg.Protocol)
			recorder := &report.Recorder{Target: "a server", Processor: &machine.Processor{}}
			recorder.Attach(&cfg)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if cfg.Rate != nil {
				cancel()
			}
			res, err := loadgen.Run(ctx, cfg)
			if res == nil {
				t.Fatal(err)
			}
			r := recorder.Report(res)
			if r.Seconds != 0 || r.Jobs != cfg.Count {
				t.Fatalf("%d jobs in %v s", r.Jobs, r.Seconds)
			}
			want := report.Invalid
			if cfg.Rate != nil {
				want = report.Failed // because it was interrupted
			}
			objective, err := report.ParseObjective("rate>50")
			if err != nil {
				t.Fatal(err)
			}
			r.Check([]*report.Objective{objective})
			trial := experiment.TrialOf(r, 1000)
			if r.Verdict != want || trial.Result() != want || trial.Achieved != 0 || r.Objectives[0].Result != report.Invalid {
				t.Errorf("verdict %s: %q; trial %+v", r.Verdict, r.Reasons, trial)
			}
			var saved, shown bytes.Buffer
			for _, write := range []func(io.Writer, *report.Report) error{format.Text, format.CSV, format.GoBench, format.Prometheus} {
				if err := write(&shown, r); err != nil {
					t.Error(err)
				}
			}
			if err := format.SearchText(&shown, &experiment.LimitRange{Trials: []experiment.Trial{trial}}); err != nil {
				t.Error(err)
			}
			if bad := regexp.MustCompile(`(?i)\bnan\b|\binf\b|-[0-9]+ jobs/s|[0-9],[0-9]{3},[0-9]{3} jobs/s`).FindString(shown.String()); bad != "" {
				t.Errorf("%q in\n%s", bad, &shown)
			}
			if err := format.JSON(&saved, r); err != nil {
				t.Fatal(err)
			}
			if _, err := report.ReadReports(&saved); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBrokenProbes runs a load against servers that do not answer, refuse or wrongly answer the requests with which
// other commands test whether a server answers: no job is lost, because a load does not depend on them.
func TestBrokenProbes(t *testing.T) {
	wrong := map[*codec.Protocol]string{gearman.Protocol: "ERROR code text", beanstalk.Protocol: "UNKNOWN_COMMAND",
		danga.Protocol: "noop", gearmonkey.Protocol: `error "ERR unknown command"`}
	for p := range machines {
		var drop, answer []string
		for _, b := range p.Barriers {
			request, condition := b.Request[0], ""
			if request == "command" { // the word distinguishes the commands
				condition = fmt.Sprintf(" when command == %q", b.Request[1])
			}
			drop = append(drop, "drop "+request+condition)
			answer = append(answer, "answer "+request+" "+wrong[p]+condition)
		}
		for _, faults := range [][]string{drop, answer} {
			bubble(t, p.Name+"/"+faults[0], func(t *testing.T) {
				cfg := loadgen.Config{Protocol: p, Count: 50, Clients: 2, Workers: 2}
				if res := load(t, cfg, faults...); !res.Account.NoFaults() || res.Jobs != 50 {
					t.Errorf("%q: %d jobs of 50; %+v", faults, res.Jobs, res.Account)
				}
			})
		}
	}
}
