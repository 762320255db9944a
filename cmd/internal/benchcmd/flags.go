package benchcmd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
)

// addLoad adds the flags that describe a load.
func (o *benchOptions) addLoad(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.cfg.Scenario, "scenario", "cycle", "`NAME` of the scenario (see jobwire bench scenarios)")
	f.IntVar(&o.cfg.Clients, "clients", 16, "number of connections that submit jobs")
	f.IntVar(&o.cfg.Workers, "workers", 4, "number of connections that process jobs")
	f.IntVar(&o.cfg.Functions, "functions", 1, "number of queues (functions or tubes) that jobs are spread over")
	f.Float64Var(&o.cfg.Zipf, "zipf", 0, "`EXPONENT` of the Zipf distribution of jobs over --functions, such as 1.1: the first function or tube gets the most jobs (0: all get equally many)")
	f.StringVar(&o.cfg.Prefix, "prefix", "jobwire", "`PREFIX` of the names of queues (functions or tubes)")
	f.IntVar(&o.cfg.MaxFlight, "max-in-flight", 0,
		"largest number of jobs that a client has in flight; jobs above this limit are not submitted (open loop; 0: up to 65536)")
	f.IntVar(&o.cfg.Grabs, "grabs", 0, "largest number of unanswered job requests of each worker (0: automatic)")
	f.StringVar(&o.size, "size", "16", "payload size in `BYTES`, such as 1024, 16-4096 or 16-64K:exp")
	f.StringVar(&o.payloadFile, "payload-file", "",
		"`FILE` from which payloads take their content, each from another position; without --size, payloads are 16 bytes longer than the file")
	f.DurationVar(&o.cfg.Work, "work", 0, "time that a worker takes for a job (default 1ms in scenario chaos)")
	f.DurationVar(&o.cfg.Duration, "duration", 0, "length of the measurement (default 10s without --count)")
	f.DurationVar(&o.cfg.Warmup, "warmup", 0, "time under load before the measurement begins (default a tenth of --duration, at most 1s; 0s with --count or a rate that changes)")
	f.DurationVar(&o.cfg.DrainTimeout, "settle", 10*time.Second,
		"time without any progress after which unfinished jobs count as lost")
	f.StringVar(&o.rate, "rate", "", "`RATE` in jobs per second: 5000, poisson:5000, 1000/10s")
	f.Float64Var(&o.cfg.Kill, "kill", 5, "number of workers to kill per second (scenario chaos)")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "random seed")
}

// addClosedLoop adds the flags of a closed-loop load, which has no rate.
func (o *benchOptions) addClosedLoop(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.cfg.Window, "window", 1, "number of jobs that each client keeps in flight (closed loop)")
	f.IntVar(&o.cfg.Batch, "batch", 1, "number of jobs that a client submits together, when its --window has room for all of them (closed loop)")
	f.DurationVar(&o.cfg.Think, "think", 0, "pause of a client after each job (closed loop)")
	f.DurationVar(&o.cfg.Ramp, "ramp", 0, "time before the warm-up in which the clients begin to submit, one after the other (closed loop)")
	f.Float64Var(&o.cfg.Reconnect, "reconnect", 0,
		"`NUMBER` of clients per second that finish their jobs, disconnect and connect again (closed loop)")
	f.Int64Var(&o.cfg.Count, "count", 0, "number of jobs to submit (0: no limit)")
}

func (o *benchOptions) addObjectives(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.slo, "slo", nil,
		"`OBJECTIVE` to meet, such as p99<5ms, run.max<1s or rate>1k; repeatable")
}

func (o *benchOptions) addQuiet(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no progress output")
}

// benchFlagGroups are the groups in which the help of the commands that run a load lists their flags.
var benchFlagGroups = []cli.FlagGroup{
	{Title: "Server", Names: "addr exec pid server rounds"},
	connect.ConnectionGroup,
	{Title: "Load",
		Names: "scenario clients window batch think ramp reconnect workers grabs work kill functions zipf prefix size payload-file seed"},
	{Title: "Scheduled rate", Names: "rate max-in-flight"},
	{Title: "Crash test", Names: "kills kill-after allow-loss"},
	{Title: "Length", Names: "count duration warmup settle"},
	{Title: "Criteria", Names: "slo stop-on-failure linear baseline tolerance"},
	{Title: "Several machines", Names: "shares share-index start-at"},
	{Title: "Output", Names: "format output html hlog hgrm metrics interval quiet"},
}

// checkFlags rejects flags that would have no effect.
func (o *benchOptions) checkFlags(cmd *cobra.Command, sys *catalog.Entry) error {
	f := cmd.Flags()
	sc := scenarioNamed(sys, o.cfg.Scenario)
	if sc.Crash && o.kind != runBench {
		return fmt.Errorf("--scenario %s needs 'jobwire bench run'", sc.Name)
	}
	with := "--scenario " + sc.Name
	for _, v := range []struct {
		ignored bool
		names   []string
		why     string
	}{
		{o.rate != "", []string{"window", "batch", "think"},
			"has no effect with --rate: clients submit jobs at scheduled times, however many jobs are in flight"},
		{o.rate != "", []string{"ramp"}, "cannot be used with --rate: use a rate that rises, such as --rate 100-5000/10s"},
		{o.rate != "", []string{"reconnect"}, "cannot be used with --rate: a client that is about to reconnect submits no jobs"},
		{sc.Backlog, []string{"ramp", "reconnect"}, "cannot be used with " + with + ", which first queues all jobs"},
		{o.rate == "" && o.kind != searchBench, []string{"max-in-flight"},
			"needs --rate: in a closed loop, --window says how many jobs are in flight"},
		{sc.Name != "" && !sc.Crash, []string{"kills", "kill-after", "allow-loss"}, "has no effect with " + with +
			", which does not kill the server; use --scenario crash"},
		{sc.Crash, []string{"interval", "work", "think", "linear", "stop-on-failure", "metrics"},
			"has no effect with " + with},
		{sc.Backlog, []string{"warmup"}, "has no effect with " + with + ", which measures all jobs"},
		{sc.Backlog, []string{"think"}, "has no effect with " + with +
			": clients submit the next job when the server has acknowledged the previous one"},
		{sc.NoWorkers(), []string{"workers", "grabs", "work"}, "has no effect with " + with + ", which has no workers"},
		{sc.NoWorkers(), []string{"functions", "zipf", "prefix"}, "has no effect with " + with + ", which queues no jobs"},
		{sc.Name == "status", []string{"size", "payload-file"}, "has no effect with " + with +
			", whose requests have no payload"},
		{sc.Name != "" && !sc.Kills, []string{"kill"}, "has no effect with " + with +
			", which kills no workers; use --scenario chaos"},
		{sc.Kills && o.cfg.Work == 0, []string{"work"}, "0s cannot be used with " + with +
			": bench kills workers while they process jobs, so a job must take some time"},
		{o.part.Shares > 0, []string{"baseline"}, "cannot be used with --shares: compare the results of 'bench merge'"},
		{o.part.Shares > 0, []string{"hlog"}, "cannot be used with --shares: the histogram log is beside the file of --output"},
		{o.baseline == "" && o.kind != compareBench, []string{"tolerance"}, "needs --baseline"},
	} {
		for _, name := range v.names {
			if v.ignored && f.Changed(name) {
				return fmt.Errorf("--%s %s", name, v.why)
			}
		}
	}
	if !sc.Kills {
		o.cfg.Kill = 0
	}
	switch index := o.kind == runBench && f.Changed("share-index"); {
	case o.part.Shares > 0 && (!index || o.startAt == "" || !strings.HasSuffix(o.out, ".json")):
		return errors.New("--shares needs --share-index, --start-at and --output FILE.json")
	case o.part.Shares == 0 && index:
		return errors.New("--share-index needs --shares")
	}
	return nil
}
