package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/internal/target"
	"jobwire/internal/version"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/schedule"
)

// Parameters of a search; flags can change the first rate and the duration.
const (
	searchFrom      = 1000            // rate of the first trial, in jobs per second
	searchSlowest   = 1               // lowest rate to try, in jobs per second
	searchDuration  = 5 * time.Second // length of a trial
	searchPrecision = 0.05            // see loadgen.Search
	searchRepeats   = 3               // see loadgen.Search
	searchTrials    = 60              // maximum number of trials
	// at low rates, trials last longer to get enough samples; rates that would need longer trials than this are not tried
	searchTimeout = time.Minute
)

// newBenchSearch returns the command that finds the highest rate that meets the objectives.
func newBenchSearch() *cobra.Command {
	o := &benchOptions{kind: searchBench}
	cmd := &cobra.Command{
		Use:   "search PROTOCOL --slo OBJECTIVE [flags]",
		Short: "Find the highest rate that meets an objective",
	}
	connect.ProtocolCommand(cmd, o.search)
	o.cfg.Window, o.cfg.Batch, o.cfg.Interval = 1, 1, time.Second
	o.target.Add(cmd)
	o.addLoad(cmd)
	o.addObjectives(cmd)
	f := cmd.Flags()
	f.IntVar(&o.pid, "pid", 0, "process ID of the --addr server, to measure its CPU time")
	cli.FormatFlag(cmd, &o.format, "text", "json")
	f.StringVarP(&o.out, "output", "o", "", "`FILE` for the result as JSON, which 'bench report' reads")
	o.addHTML(cmd)
	o.addQuiet(cmd)
	f.Lookup("duration").Usage = "length of each trial (default 5s)"
	f.Lookup("rate").Usage = "`RATE` in jobs per second of the first trial, such as 5000 or poisson:5000 (default 1000)"
	cli.GroupFlags(cmd, benchFlagGroups)
	return cmd
}

// search finds the highest rate that meets the objectives. It starts a new server for each trial, except with --addr.
func (o *benchOptions) search(cmd *cobra.Command, sys *catalog.Entry) error {
	cfg, err := o.plan(cmd, sys)
	switch {
	case err != nil:
		return cli.Usage(err)
	case len(o.objective) == 0:
		return cli.Usage(errors.New("search finds the highest rate that meets an objective: add one with --slo, as --slo 'p99<5ms'"))
	case cfg.Rate != nil && len(cfg.Rate.Steps) > 1:
		return cli.Usage(errors.New("--rate: the search starts at this rate, which must be a single number"))
	}
	files, err := o.open()
	if err != nil {
		return cli.Usage(err)
	}
	defer files.discard()
	first := schedule.Schedule{Steps: []schedule.Step{{From: searchFrom, To: searchFrom}}}
	if cfg.Rate != nil {
		first = *cfg.Rate
	}
	if o.cfg.Duration == 0 {
		cfg.Duration = searchDuration
	}
	samples := 0.0
	for _, objective := range o.objective {
		samples = max(samples, float64(objective.Samples())*1.2)
	}
	live := o.newLive(cmd, sys, cfg.Scenario)
	defer live.end()
	trials := 0
	s := experiment.Search{From: first.Steps[0].From,
		Slowest: max(searchSlowest, samples/max(searchTimeout, cfg.Duration).Seconds()), Precision: searchPrecision,
		Repeats: searchRepeats, Trials: searchTrials, Tried: live.trial}
	s.Try = func(ctx context.Context, rate float64) (experiment.Trial, error) {
		trials++
		c := cfg
		c.Duration = max(c.Duration, time.Duration(samples/rate*float64(time.Second)))
		c.Rate = &schedule.Schedule{Poisson: first.Poisson, Steps: []schedule.Step{{From: rate, To: rate}}}
		c.Prefix = fmt.Sprintf("%s-%d", cfg.Prefix, trials) // a trial must not receive jobs of an earlier trial
		report, err := o.runOnce(cmd, sys, o.target, c, nil, live)
		if report == nil || errors.Is(err, context.Canceled) || errors.Is(err, target.ErrUnreachable) {
			return experiment.Trial{}, err
		}
		return experiment.TrialOf(report, rate), nil
	}
	report := &experiment.SearchReport{Head: version.NewHead(), Environment: machine.ReadEnvironment(os.Args),
		Protocol: sys.Protocol.Name, Scenario: cfg.Scenario,
		Target: o.target.Name(sys), Started: time.Now().UTC().Round(time.Millisecond), SLO: o.slo,
		Seconds: cfg.Duration.Seconds()}
	report.LimitRange, err = s.Run(cmd.Context())
	live.end()
	interrupted := errors.Is(err, context.Canceled)
	switch {
	case report.Trials == nil:
		return err
	case interrupted:
		report.Error = "interrupted"
	case err != nil:
		report.Error = err.Error()
	}
	if err := errors.Join(searchFormats[o.format](cmd.OutOrStdout(), report),
		save(files, report, format.SearchHTML)); err != nil {
		return err
	}
	switch {
	case interrupted:
		fmt.Fprintln(cmd.ErrOrStderr(), "jobwire: the search was interrupted; the result is incomplete")
	case err != nil:
		return err
	}
	return verdictStatus(report.Verdict())
}

// searchFormats has the functions that write the result of a search to standard output, by the value of --format.
var searchFormats = map[string]func(io.Writer, *experiment.SearchReport) error{
	"text": func(w io.Writer, s *experiment.SearchReport) error { return format.SearchText(w, s.LimitRange) },
	"json": format.JSON[*experiment.SearchReport],
}
