package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/target"
)

type conformOptions struct {
	target   targetFlags
	color    colorFlag
	format   string
	run      []string
	skip     []string
	list     bool
	parallel int
	timeout  time.Duration
	waive    []string
	verbose  bool
}

func newConform() *cobra.Command {
	o := &conformOptions{}
	cmd := &cobra.Command{
		Use:   "conform PROTOCOL [flags]",
		Short: "Judge a server by the protocol's document",
		Long: `conform performs conversations with a server and judges what it says. Each case
names the rules that it tests; one that falls short is shown with the conversation,
the offending bytes marked.`,
		Example: `  jobwire conform gearman
  jobwire conform gearman --addr 127.0.0.1:4730
  jobwire conform gearman --exec '/usr/sbin/gearmand -L 127.0.0.1 -p {port} -t 1 -l none'
  jobwire conform gearman --run 'gearman.queue.*' -v
  jobwire conform gearman --format json > report.json`,
		Args:      protocolArg,
		ValidArgs: systemNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.target.add(cmd)
	f.StringVar(&o.format, "format", "text", "text or json")
	f.StringArrayVar(&o.run, "run", nil, "only cases whose ID, or a rule of which, matches the `GLOB`; may be repeated")
	f.StringArrayVar(&o.skip, "skip", nil, "leave out cases that match the `GLOB`; may be repeated")
	f.BoolVar(&o.list, "list", false, "list the cases instead of running them")
	f.IntVar(&o.parallel, "parallel", 8, "cases at a time")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long an answer may take")
	f.StringArrayVar(&o.waive, "waive", nil, "do not hold the server to this `RULE`; may be repeated")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "name the cases that passed too")
	o.color.add(cmd)
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *conformOptions) execute(cmd *cobra.Command, name string) error {
	sys, err := systemNamed(name)
	if err != nil {
		return err
	}
	if o.format != "text" && o.format != "json" {
		return usage(fmt.Errorf("--format %q: it is text or json", o.format))
	}
	if err := o.target.check(); err != nil {
		return err
	}
	if o.parallel < 1 || o.timeout <= 0 {
		return usage(fmt.Errorf("--parallel and --timeout must be above zero"))
	}
	suite, err := conform.Load(sys.protocol)
	if err != nil {
		return usage(err)
	}
	if suite, err = suite.Select(o.run, o.skip); err != nil {
		return usage(err)
	}
	waive, err := ruleIDs(sys.protocol, o.waive)
	if err != nil {
		return err
	}
	if len(suite.Cases) == 0 {
		return usage(fmt.Errorf("--skip leaves no case to run"))
	}
	out := cmd.OutOrStdout()
	if o.list {
		return listCases(out, suite, o.format)
	}
	color, err := o.color.on(out)
	if err != nil {
		return err
	}

	runner := conform.Runner{
		Start:    func(ctx context.Context) (target.Target, error) { return o.target.start(ctx, sys) },
		Parallel: o.parallel,
		Timeout:  o.timeout,
		Waive:    waive,
	}
	text := &conform.Text{W: out, Color: color, Verbose: o.verbose}
	var done func(conform.Result)
	progress := newProgress(cmd.ErrOrStderr(), len(suite.Cases))
	if o.format == "text" {
		done = func(r conform.Result) {
			progress.clear()
			text.Case(r)
			progress.step()
		}
	} else {
		done = func(conform.Result) { progress.step() }
	}
	began := time.Now()
	report := &conform.Report{Protocol: sys.protocol, Target: o.target.name(sys)}
	report.Results = runner.Run(cmd.Context(), suite, done)
	report.Took = time.Since(began)
	progress.clear()
	if o.format == "json" {
		if err := report.WriteJSON(out); err != nil {
			return err
		}
	} else {
		text.Summary(report)
	}
	switch {
	case report.Unreachable():
		return &exit{exitUnreachable, fmt.Errorf("%s could not be judged: %s", report.Target, report.Results[0].Note)}
	case report.Count(conform.Died) > 0:
		return &exit{exitUnreachable, nil}
	case cmd.Context().Err() != nil, report.Failed():
		return &exit{exitFellShort, nil}
	}
	return nil
}

// listCases prints what there is to run.
func listCases(w io.Writer, s *conform.Suite, format string) error {
	if format == "json" {
		type row struct {
			ID    string         `json:"id"`
			Rules []codec.RuleID `json:"rules"`
			Level codec.Level    `json:"level"`
			About string         `json:"about"`
		}
		rows := []row{}
		for _, c := range s.Cases {
			rows = append(rows, row{c.ID, c.Rules, c.Level, c.About})
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"cases": rows})
	}
	section := ""
	for _, c := range s.Cases {
		if c.Section != section {
			section = c.Section
			fmt.Fprintf(w, "%s\n", section)
		}
		fmt.Fprintf(w, "  %-40s %-9s %s\n", c.ID, c.Level, c.About)
	}
	return nil
}
