package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/catalog"
	"jobwire/loadgen"
)

// benchFlagGroups are the groups in which the help of bench lists its flags.
var benchFlagGroups = []flagGroup{
	{"Server", []string{"addr", "exec", "pid"}},
	{"Load", []string{"scenario", "list", "clients", "window", "batch", "think", "workers", "grabs", "work", "kill", "functions", "prefix", "size", "seed"}},
	{"Scheduled rate", []string{"rate", "max-in-flight", "search"}},
	{"Crash test", []string{"kills", "kill-after", "allow-loss"}},
	{"Length", []string{"count", "duration", "warmup", "settle"}},
	{"Criteria", []string{"slo", "linear", "baseline", "tolerance"}},
	{"Comparison of servers", []string{"compare", "rounds"}},
	{"Several machines", []string{"share", "start-at"}},
	{"Output", []string{"format", "out", "html", "hlog", "hgrm", "interval", "quiet"}},
}

// checkFlags rejects values that mean nothing, and flags that would have no effect.
func (o *benchOptions) checkFlags(cmd *cobra.Command, sys *catalog.Entry) error {
	f := cmd.Flags()
	var err error
	f.Visit(func(f *pflag.Flag) {
		switch {
		case err != nil:
		case f.Value.String() == "":
			err = fmt.Errorf("--%s is empty: expected a value, or no --%[1]s", f.Name)
		case o.list && f.Name != "list":
			err = fmt.Errorf("--%s has no effect with --list; remove one of them", f.Name)
		}
	})
	if err != nil {
		return err
	}
	for _, v := range []struct {
		name string
		ok   bool
		want string
	}{
		{"clients", o.cfg.Clients >= 1, "at least 1"},
		{"workers", o.cfg.Workers >= 1, "at least 1"},
		{"functions", o.cfg.Functions >= 1, "at least 1"},
		{"window", o.cfg.Window >= 1, "at least 1"},
		{"rounds", o.rounds >= 1, "at least 1"},
		{"pid", o.pid >= 1, "a process ID"},
		{"batch", o.cfg.Batch >= 1, "at least 1"},
		{"kills", o.kills >= 1, "at least 1"},
		{"kill-after", o.killAfter > 0, "a positive time, as 1s"},
		{"allow-loss", o.allowLoss >= 0, "a time that is not negative"},
		{"max-in-flight", o.cfg.MaxFlight >= 1, "at least 1"},
		{"grabs", o.cfg.Grabs >= 0, "at least 1, or 0 for the default"},
		{"count", o.cfg.Count >= 0, "at least 1, or 0 for no limit"},
		{"kill", o.cfg.Kill > 0 && !math.IsInf(o.cfg.Kill, 1), "a positive number"},
		{"duration", o.cfg.Duration > 0, "a positive time, as 30s"},
		{"settle", o.cfg.Settle > 0, "a positive time, as 10s"},
		{"interval", o.cfg.Interval > 0, "a positive time, as 1s"},
		{"warmup", o.cfg.Warmup >= 0, "a time that is not negative"},
		{"think", o.cfg.Think >= 0, "a time that is not negative"},
		{"work", o.cfg.Work >= 0, "a time that is not negative"},
	} {
		if f.Changed(v.name) && !v.ok {
			return fmt.Errorf("--%s %s: expected %s", v.name, f.Lookup(v.name).Value, v.want)
		}
	}
	var sc loadgen.Scenario // if there is none of that name, the run says so
	for _, s := range loadgen.Scenarios(sys.Protocol) {
		if s.Name == o.cfg.Scenario {
			sc = s
		}
	}
	with := "--scenario " + sc.Name
	for _, v := range []struct {
		ignored bool
		names   []string
		why     string
	}{
		{o.rate != "" || o.searching, []string{"window", "batch", "think"}, "has no effect with --rate or --search: clients submit jobs at scheduled times, however many jobs are in flight"},
		{o.rate == "" && !o.searching, []string{"max-in-flight"}, "needs --rate: in a closed loop, --window says how many jobs are in flight"},
		{sc.Name != "" && !sc.Crash, []string{"kills", "kill-after", "allow-loss"}, "has no effect with " + with + ", which does not kill the server; use --scenario crash"},
		{sc.Crash, []string{"interval", "work", "think", "linear"}, "has no effect with " + with},
		{o.searching, []string{"interval"}, "has no effect with --search, which reports no time series"},
		{sc.Backlog, []string{"warmup"}, "has no effect with " + with + ", which measures all jobs"},
		{sc.Backlog, []string{"think"}, "has no effect with " + with + ": clients submit the next job when the server has acknowledged the previous one"},
		{sc.NoWorkers(), []string{"workers", "grabs", "work"}, "has no effect with " + with + ", which has no workers"},
		{sc.NoWorkers(), []string{"functions", "prefix"}, "has no effect with " + with + ", which queues no jobs"},
		{sc.Name == "status", []string{"size"}, "has no effect with " + with + ", whose requests have no payload"},
		{sc.Name != "" && !sc.Kills, []string{"kill"}, "has no effect with " + with + ", which kills no workers; use --scenario chaos"},
		{sc.Kills && o.cfg.Work == 0, []string{"work"}, "0s cannot be used with " + with + ": bench kills workers while they process jobs, so a job must take some time"},
		{len(o.compare) == 0, []string{"rounds"}, "needs --compare"},
		{o.baseline == "", []string{"tolerance"}, "needs --baseline"},
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
	return nil
}

// benchArgs is protocolArg, with a hint for a subcommand behind the protocol.
func benchArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		for _, sub := range cmd.Commands() {
			if sub.Name() == args[1] {
				return errors.New("expected \"" + sub.CommandPath() + " ...\", without the protocol " + args[0])
			}
		}
	}
	return protocolArg(cmd, args)
}
