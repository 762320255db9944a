package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/internal/target"
	"jobwire/internal/version"
	"jobwire/loadgen"
)

// What a search does unless flags say otherwise.
const (
	searchFrom      = 1000 // jobs a second
	searchSlowest   = 1
	searchDuration  = 5 * time.Second
	searchPrecision = 0.05
	searchRepeats   = 3
	searchTrials    = 60
	searchPatience  = time.Minute // the longest that a trial is made for the sake of its samples
)

// searchReport is what a search writes as JSON.
type searchReport struct {
	Jobwire  version.Info `json:"jobwire"`
	Protocol string       `json:"protocol"`
	Scenario string       `json:"scenario"`
	Target   string       `json:"target"`
	SLO      []string     `json:"slo"`
	Seconds  float64      `json:"seconds_per_trial"`
	*loadgen.Bracket
}

// newBenchSearch returns the command that finds the highest rate that meets objectives.
func newBenchSearch() *cobra.Command {
	o := &benchOptions{kind: searchBench}
	cmd := &cobra.Command{
		Use:   "search PROTOCOL --slo OBJECTIVE [flags]",
		Short: "Find the highest rate that meets an objective",
	}
	onProtocol(cmd, o.search)
	o.cfg.Window, o.cfg.Batch, o.cfg.Interval = 1, 1, time.Second
	o.target.add(cmd)
	o.addLoad(cmd)
	o.addObjectives(cmd)
	f := cmd.Flags()
	f.IntVar(&o.pid, "pid", 0, "process ID of the --addr server, to measure its CPU time")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the result: json or text")
	f.StringVar(&o.out, "out", "", "`FILE` for the result as JSON")
	o.addQuiet(cmd)
	f.Lookup("duration").Usage = "length of each trial (default 5s)"
	f.Lookup("rate").Usage = "`RATE` in jobs per second of the first trial, such as 5000 or poisson:5000 (default 1000)"
	groupFlags(cmd, benchFlagGroups)
	return cmd
}

// search finds the highest rate that meets the objectives. Each trial has a new server, unless it runs already.
func (o *benchOptions) search(cmd *cobra.Command, sys *catalog.Entry) error {
	cfg, err := o.plan(cmd, sys)
	switch {
	case err != nil:
		return usage(err)
	case len(o.objective) == 0:
		return usage(errors.New("search finds the highest rate that meets an objective: add one with --slo, as --slo 'p99<5ms'"))
	case o.format != "text" && o.format != "json":
		return usage(fmt.Errorf("--format %s: expected json or text", o.format))
	case cfg.Rate != nil && len(cfg.Rate.Steps) > 1:
		return usage(errors.New("--rate: the search starts at this rate, which must be a single number"))
	}
	schedule := loadgen.Schedule{Steps: []loadgen.Step{{From: searchFrom, To: searchFrom}}}
	if cfg.Rate != nil {
		schedule = *cfg.Rate
	}
	if o.cfg.Duration == 0 {
		cfg.Duration = searchDuration
	}
	samples := 0.0
	for _, objective := range o.objective {
		samples = max(samples, float64(objective.Samples())*1.2)
	}
	stderr := cmd.ErrOrStderr()
	trials := 0
	s := loadgen.Search{From: schedule.Steps[0].From, Slowest: max(searchSlowest, samples/max(searchPatience, cfg.Duration).Seconds()), Precision: searchPrecision, Repeats: searchRepeats, Trials: searchTrials}
	s.Try = func(ctx context.Context, rate float64) (loadgen.Trial, error) {
		trials++
		c := cfg
		c.Duration = max(c.Duration, time.Duration(samples/rate*float64(time.Second)))
		c.Rate = &loadgen.Schedule{Poisson: schedule.Poisson, Steps: []loadgen.Step{{From: rate, To: rate}}}
		c.Prefix = fmt.Sprintf("%s-%d", cfg.Prefix, trials) // what one trial left behind is not the next one's
		report, err := o.runOnce(cmd, sys, o.target, c, nil)
		if report == nil || errors.Is(err, context.Canceled) || errors.Is(err, target.ErrUnreachable) {
			return loadgen.Trial{}, err
		}
		t := report.Trial(rate)
		if !o.quiet {
			loadgen.WriteTrial(stderr, &t)
		}
		return t, nil
	}
	bracket, err := s.Run(cmd.Context())
	if bracket.Trials == nil {
		return err
	}
	report := searchReport{version.Get(), sys.Protocol.Name, cfg.Scenario, o.target.name(sys), o.slo, cfg.Duration.Seconds(), bracket}
	write := func(w io.Writer) error { return loadgen.WriteBracket(w, bracket) }
	asJSON := func(w io.Writer) error { return writeJSON(w, report) }
	if o.format == "json" {
		write = asJSON
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if o.out != "" {
		if err := create(o.out, asJSON); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "jobwire: the search was interrupted; the result is incomplete")
		return &exit{exitFellShort, nil}
	case err != nil:
		return err
	case bracket.Held == 0 && bracket.Saturated:
		return &exit{exitInvalid, nil}
	case bracket.Held == 0:
		return &exit{exitFellShort, nil}
	}
	return nil
}
