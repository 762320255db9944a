package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
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
	kills     int
	killAfter time.Duration
	allowLoss time.Duration

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
		Short: "Measure a server under load, and account for every job",
	}
	onProtocol(cmd, o.execute)
	cmd.Args = benchArgs
	f := cmd.Flags()
	o.target.add(cmd)
	f.IntVar(&o.pid, "pid", 0, "process ID of the --addr server, to measure its CPU time")
	f.BoolVar(&o.list, "list", false, "list the scenarios and exit")
	f.StringVar(&o.cfg.Scenario, "scenario", "cycle", "`NAME` of the scenario (see --list)")
	f.IntVar(&o.cfg.Clients, "clients", 16, "number of connections that submit jobs")
	f.IntVar(&o.cfg.Workers, "workers", 4, "number of connections that process jobs")
	f.IntVar(&o.cfg.Functions, "functions", 1, "number of queues (functions or tubes) that jobs are spread over")
	f.StringVar(&o.cfg.Prefix, "prefix", "jobwire", "prefix of the names of queues (functions or tubes)")
	f.IntVar(&o.cfg.Window, "window", 1, "number of jobs that each client keeps in flight (closed loop)")
	f.IntVar(&o.cfg.Batch, "batch", 1, "number of jobs that a client submits together when as many of the window are free (closed loop)")
	f.IntVar(&o.cfg.MaxFlight, "max-in-flight", 0, "most jobs that a client has in flight; jobs beyond are skipped (open loop; 0: up to 65536)")
	f.IntVar(&o.cfg.Grabs, "grabs", 0, "number of unanswered job requests that each worker keeps at the server (0: automatic)")
	f.StringVar(&o.size, "size", "16", "payload size in `BYTES`, such as 1024, 16-4096 or 16-64K:exp")
	f.DurationVar(&o.cfg.Think, "think", 0, "pause of a client after each job (closed loop)")
	f.DurationVar(&o.cfg.Work, "work", 0, "time that a worker takes for a job (default 1ms in scenario chaos)")
	f.Int64Var(&o.cfg.Count, "count", 0, "number of jobs to submit (0: no limit)")
	f.DurationVar(&o.cfg.Duration, "duration", 0, "length of the measurement (default 10s without --count)")
	f.DurationVar(&o.cfg.Warmup, "warmup", 0, "time under load before the measurement begins")
	f.DurationVar(&o.cfg.Settle, "settle", 10*time.Second, "time without any progress until unfinished jobs count as lost")
	f.StringVar(&o.rate, "rate", "", "`RATE` in jobs per second: 5000, poisson:5000, 1000/10s")
	f.Float64Var(&o.cfg.Kill, "kill", 5, "number of workers to kill per second (scenario chaos)")
	f.IntVar(&o.kills, "kills", 10, "number of times that the server is killed (scenarios crash and crash-unique)")
	f.DurationVar(&o.killAfter, "kill-after", time.Second, "mean time from the start of the load to a kill (scenarios crash and crash-unique)")
	f.DurationVar(&o.allowLoss, "allow-loss", 0, "jobs acknowledged so shortly before a kill may be lost (scenarios crash and crash-unique)")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "random seed")
	f.BoolVar(&o.cfg.Check, "linear", false, "check that the server assigns jobs first-in, first-out (needs --count)")
	f.DurationVar(&o.cfg.Interval, "interval", time.Second, "interval of the progress lines and of the time series in the report")
	f.StringArrayVar(&o.slo, "slo", nil, "`OBJECTIVE` to meet, such as p99<5ms, run.max<1s or rate>1k; repeatable")
	f.BoolVar(&o.searching, "search", false, "find the highest rate that meets --slo")
	f.StringArrayVar(&o.compare, "compare", nil, "server to compare, as `NAME=COMMAND`, or embedded for the built-in server; repeatable")
	f.IntVar(&o.rounds, "rounds", 6, "number of runs for each server of --compare")
	f.StringVar(&o.baseline, "baseline", "", "saved result `FILE`; the run fails if a figure is worse than in this result")
	f.StringVar(&o.tolerance, "tolerance", "10%", "how much worse than --baseline a figure may be")
	f.StringVar(&o.share, "share", "", "run part `I/N` of the load: the load is split over N processes")
	f.StringVar(&o.startAt, "start-at", "", "`TIME` at which the load begins, such as 15:04:05 or 2006-01-02T15:04:05Z")
	o.addOutputs(cmd)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress output")
	cmd.AddCommand(newBenchCompare(), newBenchMerge())
	groupFlags(cmd, benchFlagGroups)
	return cmd
}

func (o *benchOptions) execute(cmd *cobra.Command, sys *catalog.Entry) error {
	if err := o.checkFlags(cmd, sys); err != nil {
		return usage(err)
	}
	if o.list {
		return listScenarios(cmd.OutOrStdout(), sys)
	}
	cfg, err := o.plan(sys)
	if err != nil {
		return usage(err)
	}
	switch {
	case slices.ContainsFunc(loadgen.Scenarios(sys.Protocol), func(s loadgen.Scenario) bool { return s.Crash && s.Name == cfg.Scenario }):
		return o.crash(cmd, sys, cfg)
	case (o.searching || len(o.compare) > 0) && (o.part.N > 0 || !o.start.IsZero()):
		return usage(errors.New("--share and --start-at cannot be used with --search or --compare"))
	case o.searching && len(o.compare) > 0:
		return usage(errors.New("--search and --compare are mutually exclusive: run a search for each server"))
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
func (o *benchOptions) plan(sys *catalog.Entry) (cfg loadgen.Config, err error) {
	cfg = o.cfg
	cfg.Protocol = sys.Protocol
	if err := o.checkOutputs(); err != nil {
		return cfg, err
	}
	if o.pid != 0 && o.target.addr == "" {
		return cfg, errors.New("--pid needs --addr: bench knows the process of a server that it starts itself")
	}
	if p := (loadgen.Processor{Pid: o.pid}); o.pid != 0 && !p.Found() {
		return cfg, fmt.Errorf("--pid %d: no such process in /proc", o.pid)
	}
	if err := o.target.check(); err != nil {
		return cfg, err
	}
	if cfg.Size, err = loadgen.ParseSizes(o.size); err != nil {
		return cfg, fmt.Errorf("--size: %w", err)
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
func (o *benchOptions) runOnce(cmd *cobra.Command, sys *catalog.Entry, tf targetFlags, cfg loadgen.Config, log *loadgen.Log) (*loadgen.Report, error) {
	t, err := startApart(cmd.Context(), sys, tf, cfg.Rate != nil)
	if err != nil {
		return nil, err
	}
	defer t.Stop()
	if err := waitUntil(cmd.Context(), o.start); err != nil {
		return nil, &exit{exitFellShort, errors.New("interrupted before the run started")}
	}
	return o.measure(cmd, t, cfg, log)
}

// measure loads a target.
func (o *benchOptions) measure(cmd *cobra.Command, t target.Target, cfg loadgen.Config, log *loadgen.Log) (*loadgen.Report, error) {
	live := newBenchProgress(cmd.ErrOrStderr(), o.quiet || o.searching || len(o.compare) > 0)
	recorder := &loadgen.Recorder{Target: t.String(), Share: o.part.String(), Environment: loadgen.ReadEnvironment(os.Args), Processor: loadgen.Processor{Pid: max(o.pid, target.Pid(t))}, Log: log, Heat: o.html != "", Live: live.interval}
	recorder.Attach(&cfg)
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
	report := recorder.Report(res)
	report.Judge(o.objective)
	return report, err
}

// benchStatus is the exit status of a run that has been reported.
func benchStatus(err error, report *loadgen.Report) error {
	switch {
	case errors.Is(err, target.ErrUnreachable):
		return &exit{exitUnreachable, nil}
	}
	return verdictStatus(report.Result())
}

// verdictStatus is the exit status of the worst of some verdicts.
func verdictStatus(all ...loadgen.Verdict) error {
	switch {
	case slices.Contains(all, loadgen.Failed):
		return &exit{exitFellShort, nil}
	case slices.Contains(all, loadgen.Invalid):
		return &exit{exitInvalid, nil}
	}
	return nil
}

func listScenarios(w io.Writer, sys *catalog.Entry) error {
	for _, s := range loadgen.Scenarios(sys.Protocol) {
		fmt.Fprintf(w, "%-12s %s\n", s.Name, s.About)
	}
	return nil
}
