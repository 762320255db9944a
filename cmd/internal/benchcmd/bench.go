// Package benchcmd has the command bench and its subcommands.
package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/internal/metrics"
	"jobwire/internal/target"
	"jobwire/loadgen"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
	"jobwire/loadgen/schedule"
)

// benchKind identifies the command that runs a load.
type benchKind uint8

const (
	runBench benchKind = iota
	searchBench
	compareBench
)

// benchOptions has the flags of the commands that run a load, and the values parsed from them.
type benchOptions struct {
	target        connect.TargetFlags
	pid           int
	cfg           loadgen.Config // the flags that have a field in loadgen.Config
	size          string
	rate          string
	slo           []string
	format        string
	out           string
	hlog          string
	hgrm          string
	html          string
	quiet         bool
	kind          benchKind
	servers       []string // values of --server, for bench compare
	rounds        int
	baseline      string
	tolerance     string
	startAt       string
	kills         int
	killAfter     time.Duration
	allowLoss     time.Duration
	stopOnFailure bool
	gauges        gauges
	payloadFile   string

	objective []*report.Objective // parsed values of --slo
	before    []*report.Report    // reports in the files of --baseline
	tolerated float64             // parsed --tolerance: 0.1 is 10 %
	part      loadgen.Share       // --share-index and --shares, and the run
	start     time.Time           // parsed --start-at; zero: start at once
}

// New returns the command "bench" with its subcommands. The command itself measures nothing: it prints its help.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server under load, and check what happened to every job",
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return nil
			case slices.Contains(catalog.Names(), args[0]):
				return fmt.Errorf("expected a command before the protocol, as jobwire bench run %s", args[0])
			}
			return fmt.Errorf("unknown command %q%s", args[0], cli.Suggestion(args[0], cli.CommandNames(c)))
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.AddCommand(newBenchRun(), newBenchSearch(), newBenchCompare(), newBenchMerge(), newBenchReport(),
		newBenchScenarios())
	return cmd
}

// newBenchRun returns the command that measures a server once.
func newBenchRun() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "run PROTOCOL [flags]",
		Short: "Measure a server under load",
	}
	connect.ProtocolCommand(cmd, o.run)
	f := cmd.Flags()
	o.target.Add(cmd)
	o.addLoad(cmd)
	o.addClosedLoop(cmd)
	f.IntVar(&o.pid, "pid", 0, "process ID of the --addr server, to measure its CPU time")
	f.IntVar(&o.kills, "kills", 10, "number of times that the server is killed (scenarios crash and crash-unique)")
	f.DurationVar(&o.killAfter, "kill-after", time.Second,
		"mean time from the first acknowledged job to a kill (scenarios crash and crash-unique)")
	f.DurationVar(&o.allowLoss, "allow-loss", 0,
		"jobs that the server acknowledged less than this time before a kill may be lost (scenarios crash and crash-unique)")
	f.BoolVar(&o.cfg.Check, "linear", false, "check that the server assigns jobs first-in, first-out (needs --count)")
	f.DurationVar(&o.cfg.Interval, "interval", time.Second,
		"interval of the progress lines and of the time series in the report")
	o.addObjectives(cmd)
	f.BoolVar(&o.stopOnFailure, "stop-on-failure", false,
		"end the run after the interval in which a job was lost or processed wrongly")
	f.StringVar(&o.baseline, "baseline", "", "saved result `FILE`; the run fails if a figure is worse than in this result")
	f.StringVar(&o.tolerance, "tolerance", "10%", "`RATIO` by which a figure may be worse than in --baseline")
	f.IntVar(&o.part.Shares, "shares", 0, "number of processes over which the load is split (needs --share-index, --start-at and --output)")
	f.IntVar(&o.part.Index, "share-index", 0, "number of the share that this process runs, from 0 to --shares minus 1")
	f.StringVar(&o.startAt, "start-at", "", "`TIME` at which the load begins, such as 15:04:05 or 2006-01-02T15:04:05Z")
	o.addOutputs(cmd)
	f.StringVar(&o.gauges.addr, "metrics", "", metrics.Usage)
	o.addQuiet(cmd)
	cli.GroupFlags(cmd, benchFlagGroups)
	return cmd
}

// newBenchScenarios returns the command that lists the scenarios of a protocol.
func newBenchScenarios() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scenarios PROTOCOL",
		Short: "List the scenarios: what clients and workers do",
	}
	connect.ProtocolCommand(cmd, func(cmd *cobra.Command, sys *catalog.Entry) error {
		for _, s := range loadgen.Scenarios(sys.Protocol) {
			cli.ListItem(cmd.OutOrStdout(), fmt.Sprintf("%-12s ", s.Name), s.About)
		}
		return nil
	})
	return cmd
}

// run runs the load once against the target, and writes the report.
func (o *benchOptions) run(cmd *cobra.Command, sys *catalog.Entry) error {
	cfg, err := o.plan(cmd, sys)
	if err != nil {
		return cli.Usage(err)
	}
	if scenarioNamed(sys, cfg.Scenario).Crash {
		return o.crash(cmd, sys, cfg)
	}
	files, err := o.open()
	if err != nil {
		return cli.Usage(err)
	}
	defer files.discard()
	if o.gauges.addr != "" {
		if o.gauges.server, err = metrics.Listen(o.gauges.addr); err != nil {
			return cli.Usage(fmt.Errorf("--metrics: %w", err))
		}
		defer o.gauges.server.Close()
		o.gauges.server.Announce(cmd.ErrOrStderr())
	}
	live := o.newLive(cmd, sys, cfg.Scenario)
	report, err := o.runOnce(cmd, sys, o.target, cfg, files.log, live)
	live.end()
	if report == nil {
		return err
	}
	if o.before != nil {
		if err := experiment.Baseline(report, o.before, o.tolerated); err != nil {
			return cli.Usage(err)
		}
	}
	if err := errors.Join(benchFormats[o.format](cmd.OutOrStdout(), report), files.write(report)); err != nil {
		return err
	}
	return benchStatus(err, report)
}

// defaultWarmup returns the warm-up of a run without --warmup: a tenth of the duration, at most 1 s, and 0 if the run
// measures all jobs or its rate changes.
func defaultWarmup(cfg *loadgen.Config, sc loadgen.Scenario) time.Duration {
	if cfg.Count > 0 || sc.Backlog || sc.Crash || !cfg.Rate.Constant() {
		return 0
	}
	return min(time.Second, cmp.Or(cfg.Duration, loadgen.DefaultDuration)/10)
}

// scenarioNamed returns the scenario with this name. If there is none, it returns an empty scenario; loadgen.Run
// reports the error.
func scenarioNamed(sys *catalog.Entry, name string) loadgen.Scenario {
	for _, s := range loadgen.Scenarios(sys.Protocol) {
		if s.Name == name {
			return s
		}
	}
	return loadgen.Scenario{}
}

// plan checks the flags and returns the configuration of the run. It does not need the target.
func (o *benchOptions) plan(cmd *cobra.Command, sys *catalog.Entry) (cfg loadgen.Config, err error) {
	if err := o.checkFlags(cmd, sys); err != nil {
		return cfg, err
	}
	cfg = o.cfg
	cfg.Protocol = sys.Protocol
	if err := o.parseObjectives(); err != nil {
		return cfg, err
	}
	if o.pid != 0 && o.target.Addr == "" {
		return cfg, errors.New("--pid needs --addr: bench knows the process of a server that it starts itself")
	}
	if p := (machine.Processor{Pid: o.pid}); o.pid != 0 && !p.Found() {
		return cfg, fmt.Errorf("--pid %d: no such process in /proc", o.pid)
	}
	if err := o.target.Check(sys); err != nil {
		return cfg, err
	}
	if cfg.Size, err = loadgen.ParseSizes(o.size); err != nil {
		return cfg, fmt.Errorf("--size: %w", err)
	}
	if o.payloadFile != "" {
		if cfg.Content, err = loadgen.ReadPayload(o.payloadFile); err != nil {
			return cfg, fmt.Errorf("--payload-file: %w", err)
		}
		if !cmd.Flags().Changed("size") {
			n := loadgen.MinPayload + len(cfg.Content)
			cfg.Size = loadgen.Sizes{Lo: n, Hi: n}
		}
	}
	if o.rate != "" {
		if cfg.Rate, err = schedule.Parse(o.rate); err != nil {
			return cfg, fmt.Errorf("--rate: %w", err)
		}
		if cfg.Count == 0 && cfg.Duration == 0 {
			cfg.Duration = cfg.Rate.Length()
		}
	}
	if !cmd.Flags().Changed("warmup") {
		cfg.Warmup = defaultWarmup(&cfg, scenarioNamed(sys, cfg.Scenario))
	}
	if o.baseline != "" {
		if o.tolerated, err = experiment.ParseTolerance(o.tolerance); err != nil {
			return cfg, fmt.Errorf("--tolerance: %w", err)
		}
		if o.before, err = report.ReadFile(o.baseline); err != nil {
			return cfg, fmt.Errorf("--baseline: %w", err)
		}
	}
	now := time.Now()
	if o.startAt != "" {
		if o.start, err = loadgen.ParseStart(o.startAt, now); err != nil {
			return cfg, fmt.Errorf("--start-at: %w", err)
		}
		if past := now.Sub(o.start).Round(time.Second); o.part.Shares == 0 && past > 0 {
			return cfg, fmt.Errorf("--start-at %s: expected a time in the future, got one %v ago", o.startAt, past)
		}
	}
	if cfg, err = o.part.Of(cfg); err != nil {
		return cfg, fmt.Errorf("--shares: %w", err)
	}
	if cfg, err = cfg.Complete(); err != nil {
		return cfg, err
	}
	if o.part.Shares > 0 {
		o.part.Run = loadgen.RunID(o.start, o.part.Shares)
		o.hlog = strings.TrimSuffix(o.out, ".json") + ".hlog"
		if _, err := cfg.Late(o.late(now)); err != nil {
			return cfg, fmt.Errorf("--start-at %s was %v ago: %w", o.startAt, o.late(now).Round(time.Second), err)
		}
	}
	if o.before != nil {
		if err := experiment.CheckBaseline(cfg, o.before); err != nil {
			return cfg, fmt.Errorf("--baseline: %w", err)
		}
	}
	return cfg, nil
}

// runOnce starts the target, waits for the start time, and runs the load. The report is nil if the run did not start.
func (o *benchOptions) runOnce(cmd *cobra.Command, sys *catalog.Entry, tf connect.TargetFlags, cfg loadgen.Config,
	log *latency.Log, live *live) (*report.Report, error) {
	t, err := startApart(cmd.Context(), sys, tf, cfg.Rate != nil)
	if err != nil {
		return nil, err
	}
	defer t.Stop()
	if !o.start.IsZero() {
		ctx, cancel := context.WithTimeout(cmd.Context(), reachTimeout)
		defer cancel()
		if err := target.Alive(ctx, t); err != nil {
			return nil, err
		}
		late := o.late(time.Now())
		if cfg, err = cfg.Late(late); err != nil {
			return nil, &cli.Error{Status: cli.StatusFailed,
				Err: fmt.Errorf("--start-at %s was %v ago: %w", o.startAt, late.Round(time.Second), err)}
		}
		o.part.Late = late.Seconds()
	}
	if err := loadgen.WaitUntil(cmd.Context(), o.start); err != nil {
		return nil, &cli.Error{Status: cli.StatusFailed, Err: errors.New("interrupted before the run started")}
	}
	return o.measure(cmd, t, cfg, log, live)
}

// reachTimeout is the time in which the target must accept a connection before a run that waits for its start time.
const reachTimeout = 5 * time.Second

// late returns the time since --start-at, or 0 if it is in the future.
func (o *benchOptions) late(now time.Time) time.Duration { return max(0, now.Sub(o.start)) }

// errStopOnFailure is the cause for which --stop-on-failure cancels a run.
var errStopOnFailure = errors.New("--stop-on-failure: a job was lost or processed wrongly")

// measure runs the load against a running target. The report is nil if the run did not start.
func (o *benchOptions) measure(cmd *cobra.Command, t target.Target, cfg loadgen.Config,
	log *latency.Log, live *live) (*report.Report, error) {
	recorder := &report.Recorder{Target: t.String(), Share: o.part, Environment: machine.ReadEnvironment(os.Args),
		Processor: &machine.Processor{Pid: max(o.pid, target.Pid(t))}, Log: log}
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	recorder.OnInterval = func(iv *loadgen.Interval, measured bool) {
		live.interval(iv, measured)
		o.gauges.interval(iv, measured)
		if o.stopOnFailure && !iv.Account.NoFaults() {
			stop(errStopOnFailure)
		}
	}
	recorder.Attach(&cfg)
	cfg.Dial = dialer(t)
	live.begin(cfg)
	res, err := loadgen.Run(ctx, cfg)
	if context.Cause(ctx) == errStopOnFailure {
		err = errStopOnFailure
	}
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
	report.Check(o.objective)
	return report, err
}

// benchStatus returns the error with the exit status of a run whose report has been printed. err is the error of the
// run. One share of a load succeeds if its measurement is complete: merge gives the verdict on the whole load.
func benchStatus(err error, report *report.Report) error {
	switch {
	case errors.Is(err, target.ErrUnreachable):
		return &cli.Error{Status: cli.StatusUnreachable}
	case report.Share != nil && err == nil:
		return nil
	}
	return verdictStatus(report.Result())
}

// verdictStatus returns the error with the exit status of the worst verdict, or nil if all runs passed.
func verdictStatus(all ...report.Verdict) error {
	switch report.Worst(all...) {
	case report.Failed:
		return &cli.Error{Status: cli.StatusFailed}
	case report.Invalid:
		return &cli.Error{Status: cli.StatusInvalid}
	}
	return nil
}
