package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"jobwire/internal/target"
	"jobwire/loadgen"
)

type benchOptions struct {
	target    targetFlags
	pid       int
	cfg       loadgen.Config // what flags set directly
	size      string
	rate      string
	list      bool
	slo       []string
	format    string
	out       string
	hlog      string
	hgrm      string
	html      string
	quiet     bool
	searching bool
	compare   []string
	rounds    int
	baseline  string
	tolerance string
	share     string
	startAt   string

	objective []*loadgen.Objective
	before    []*loadgen.Report // the baseline
	tolerated float64
	part      loadgen.Share
	start     time.Time
}

func newBench() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench PROTOCOL [flags]",
		Short: "Load a server; measure rate and latencies, and account for every job",
		Long: `bench drives a server with many clients and workers, and tells how many jobs a
second came through, how long each stage of their lives took, what they cost in
processor time, and whether any was lost, duplicated, corrupted or answered wrongly.

In a closed loop each client keeps --window jobs under way. With --rate jobs are due
by a schedule, whether or not the server keeps up, and latency counts from when
they were due. A rate is 5000, or poisson:5000 for random arrivals; 1000-9000/30s rises
over that time; 1000/10s,2000/10s does one behind the other.

The report says so where the generator was saturated, so that the figures are its own: it
was behind its schedule by more than 2 ms on average, used over 90 % of the processors that
it may (GOMAXPROCS), or took the most of a machine that was 90 % busy. A percentile is a
dash, or null, unless ten samples lie beyond it.

Without --addr or --exec the server is jobwire's own, in a process of its own. In a closed
loop on a server that is started here, the generator uses half of the processors, and so does
jobwire's own server; the environment's GOMAXPROCS goes before that, for both.`,
		Example: `  jobwire bench gearman
  jobwire bench gearman --count 5000000 --window 128
  jobwire bench gearman --rate 5000 --duration 30s --slo 'p99<5ms'
  jobwire bench gearman --exec '/usr/sbin/gearmand -L 127.0.0.1 -p {port} -t 1 -l none' --format json
  jobwire bench beanstalk --addr 127.0.0.1:11300 --pid 4711 --hlog run.hlog
  jobwire bench gearman --scenario chaos --kill 20 --work 5ms --duration 1m
  jobwire bench gearman --search --slo 'p99<5ms'
  jobwire bench gearman --compare embedded --compare 'gearmand=/usr/sbin/gearmand -L 127.0.0.1 -p {port} -l none' --count 200000
  jobwire bench gearman --count 200000 --out before.json
  jobwire bench gearman --count 200000 --baseline before.json --tolerance 15%
  jobwire bench gearman --addr queue:4730 --share 2/3 --start-at 15:04:05 --out 2.json --hlog 2.hlog
  jobwire bench gearman --list`,
		Args:      protocolArg,
		ValidArgs: systemNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.target.add(cmd)
	f.IntVar(&o.pid, "pid", 0, "the server's process, with --addr, to tell its processor time")
	f.BoolVar(&o.list, "list", false, "list the scenarios instead of running one")
	f.StringVar(&o.cfg.Scenario, "scenario", "cycle", "what clients and workers do; --list tells")
	f.IntVar(&o.cfg.Clients, "clients", 16, "connections that submit jobs")
	f.IntVar(&o.cfg.Workers, "workers", 4, "connections that do them")
	f.IntVar(&o.cfg.Functions, "functions", 1, "functions, or tubes, that jobs are spread over")
	f.StringVar(&o.cfg.Prefix, "prefix", "jobwire", "the beginning of their names")
	f.IntVar(&o.cfg.Window, "window", 1, "jobs that each client has under way at most; it starts new ones when half of them have ended")
	f.IntVar(&o.cfg.Grabs, "grabs", 0, "requests for a job that each worker has outstanding; 0 is what suits the window")
	f.StringVar(&o.size, "size", "16", "payload in bytes, as 1024, 16-4096 evenly spread, or 16-64K:exp")
	f.DurationVar(&o.cfg.Think, "think", 0, "pause of a client between a job's end and its next")
	f.DurationVar(&o.cfg.Work, "work", 0, "time that a worker takes for a job")
	f.Int64Var(&o.cfg.Count, "count", 0, "jobs to run; 0 is as many as the duration allows")
	f.DurationVar(&o.cfg.Duration, "duration", 0, "how long to run; without it, and without --count, 10s or the schedule's length")
	f.DurationVar(&o.cfg.Warmup, "warmup", 0, "time at the beginning that is not measured")
	f.DurationVar(&o.cfg.Settle, "settle", 10*time.Second, "how long to wait, at the end, for jobs of which nothing is heard, until they are lost")
	f.StringVar(&o.rate, "rate", "", "run an open loop by this schedule, in jobs a second")
	f.Float64Var(&o.cfg.Kill, "kill", 0, "workers killed a second, in a scenario that kills (default 5)")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "of everything random")
	f.BoolVar(&o.cfg.Check, "linear", false, "check that the server kept a first-in first-out queue, as far as the times of all requests and replies can tell")
	f.DurationVar(&o.cfg.Interval, "interval", time.Second, "of the time series")
	f.StringArrayVar(&o.slo, "slo", nil, "an `OBJECTIVE`, as 'p99<5ms', 'queued.p99.9<20ms' or 'rate>1000': exit 1 if it is broken; may be repeated")
	f.BoolVar(&o.searching, "search", false, "find the highest rate that holds the --slo, beginning with --rate, and answer with a bracket")
	f.StringArrayVar(&o.compare, "compare", nil, "one of several targets that take turns, as `NAME=COMMAND` with {port} in it, or embedded; repeat it")
	f.IntVar(&o.rounds, "rounds", 6, "turns of each, with --compare")
	f.StringVar(&o.baseline, "baseline", "", "exit 1 if a figure is worse than in this saved `FILE`")
	f.StringVar(&o.tolerance, "tolerance", "10%", "by how much it may be")
	f.StringVar(&o.share, "share", "", "do the part `I/N` of the run, as 2/3, of which other processes do the others; bench merge puts them together")
	f.StringVar(&o.startAt, "start-at", "", "wait until this `TIME`, as 15:04:05 (of today) or 2006-01-02T15:04:05Z")
	o.addOutputs(cmd)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	cmd.AddCommand(newBenchCompare(), newBenchMerge())
	return cmd
}

func (o *benchOptions) execute(cmd *cobra.Command, name string) error {
	sys, err := systemNamed(name)
	if err != nil {
		return err
	}
	if o.list {
		return listScenarios(cmd.OutOrStdout(), sys)
	}
	cfg, err := o.plan(sys)
	if err != nil {
		return usage(err)
	}
	switch {
	case (o.searching || len(o.compare) > 0) && (o.part.N > 0 || !o.start.IsZero()):
		return usage(errors.New("--share and --start-at are for one run, not for --search and --compare"))
	case o.searching && len(o.compare) > 0:
		return usage(errors.New("--search and --compare do not go together: compare the rates that searches find"))
	case o.searching:
		return o.search(cmd, sys, cfg)
	case len(o.compare) > 0:
		return o.compareLive(cmd, sys, cfg)
	}
	files, err := o.open()
	if err != nil {
		return usage(err)
	}
	defer files.discard()
	report, err := o.runOnce(cmd, sys, o.target, cfg, files.log)
	if report == nil {
		return err
	}
	if o.before != nil {
		if err := report.Baseline(o.before, o.tolerated); err != nil {
			return usage(err)
		}
	}
	if err := errors.Join(benchFormats[o.format](cmd.OutOrStdout(), report), files.write(report)); err != nil {
		return err
	}
	return benchStatus(err, report)
}

// plan reads everything from the flags that does not depend on the target.
func (o *benchOptions) plan(sys *system) (cfg loadgen.Config, err error) {
	cfg = o.cfg
	cfg.Protocol = sys.protocol
	if err := o.checkOutputs(); err != nil {
		return cfg, err
	}
	if o.pid != 0 && o.target.addr == "" {
		return cfg, errors.New("--pid names the process of a server that --addr names; what is started here is known")
	}
	if p := (loadgen.Processor{Pid: o.pid}); o.pid != 0 && !p.Found() {
		return cfg, fmt.Errorf("--pid %d: there is no such process to be seen in /proc", o.pid)
	}
	if err := o.target.check(); err != nil {
		return cfg, err
	}
	if cfg.Size, err = loadgen.ParseSizes(o.size); err != nil {
		return cfg, fmt.Errorf("--size %w", err)
	}
	if o.rate != "" {
		if cfg.Rate, err = loadgen.ParseSchedule(o.rate); err != nil {
			return cfg, fmt.Errorf("--rate: %w", err)
		}
		if cfg.Count == 0 && cfg.Duration == 0 {
			cfg.Duration = cfg.Rate.Length()
		}
	}
	if o.tolerated, err = parseTolerance(o.tolerance); err != nil {
		return cfg, err
	}
	if o.baseline != "" {
		if o.before, err = readReports(o.baseline); err != nil {
			return cfg, fmt.Errorf("--baseline: %w", err)
		}
	}
	if o.share != "" {
		if o.part, err = loadgen.ParseShare(o.share); err != nil {
			return cfg, fmt.Errorf("--share: %w", err)
		}
	}
	if o.startAt != "" {
		if o.start, err = parseStart(o.startAt, time.Now()); err != nil {
			return cfg, fmt.Errorf("--start-at: %w", err)
		}
	}
	kills := slices.ContainsFunc(loadgen.Scenarios(sys.protocol), func(s loadgen.Scenario) bool { return s.Name == cfg.Scenario && s.Kills })
	switch {
	case cfg.Kill < 0:
		return cfg, errors.New("--kill must not be below zero")
	case kills && cfg.Kill == 0:
		cfg.Kill = 5
	case !kills && cfg.Kill > 0:
		return cfg, fmt.Errorf("--kill is for a scenario that kills workers; %s does not: try --scenario chaos", cfg.Scenario)
	}
	if cfg, err = o.part.Of(cfg); err != nil {
		return cfg, fmt.Errorf("--share: %w", err)
	}
	if cfg, err = cfg.Complete(); err != nil {
		return cfg, err
	}
	if o.before != nil {
		if err := loadgen.CheckBaseline(cfg, o.before); err != nil {
			return cfg, fmt.Errorf("--baseline: %w", err)
		}
	}
	return cfg, nil
}

// runOnce starts a target and loads it. The report is nil if there was no run.
func (o *benchOptions) runOnce(cmd *cobra.Command, sys *system, tf targetFlags, cfg loadgen.Config, log *loadgen.Log) (*loadgen.Report, error) {
	t, err := startApart(cmd.Context(), sys, tf, cfg.Rate != nil)
	if err != nil {
		return nil, err
	}
	defer t.Stop()
	if err := waitUntil(cmd.Context(), o.start); err != nil {
		return nil, &exit{exitFellShort, errors.New("interrupted before the run began")}
	}
	return o.measure(cmd, t, cfg, log)
}

// measure loads a target.
func (o *benchOptions) measure(cmd *cobra.Command, t target.Target, cfg loadgen.Config, log *loadgen.Log) (*loadgen.Report, error) {
	live := newBenchProgress(cmd.ErrOrStderr(), o.quiet || o.searching || len(o.compare) > 0)
	tape := &loadgen.Tape{Target: t.String(), Share: o.part.String(), Processor: loadgen.Processor{Pid: max(o.pid, target.Pid(t))}, Log: log, Heat: o.html != "", Live: live.interval}
	tape.Attach(&cfg)
	cfg.Dial = dialer(t)
	res, err := loadgen.Run(cmd.Context(), cfg)
	live.end()
	if err != nil && !errors.Is(err, context.Canceled) {
		if died := target.Died(t); died != nil {
			err = died
		}
	}
	if res == nil {
		return nil, err
	}
	res.Err = err
	report := tape.Report(res)
	report.Judge(o.objective)
	return report, err
}

// benchStatus is what becomes of a run that has been reported.
func benchStatus(err error, report *loadgen.Report) error {
	switch {
	case errors.Is(err, target.ErrUnreachable):
		return &exit{exitUnreachable, nil}
	case !report.Held():
		return &exit{exitFellShort, nil}
	}
	return nil
}

func listScenarios(w io.Writer, sys *system) error {
	for _, s := range loadgen.Scenarios(sys.protocol) {
		fmt.Fprintf(w, "%-12s %s\n", s.Name, s.About)
	}
	return nil
}
