package benchcmd

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/internal/prose"
	"jobwire/internal/target"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/report"
)

// contender is a server to compare.
type contender struct {
	name   string
	target connect.TargetFlags
}

// contenders parses the values of --server, at least two.
func contenders(flags []string) ([]contender, error) {
	var all []contender
	names := map[string]bool{}
	for _, text := range flags {
		name, command, ok := strings.Cut(text, "=")
		c := contender{name: name, target: connect.TargetFlags{Exec: command}}
		switch {
		case !ok && name != "embedded":
			return nil, fmt.Errorf("--server %q: expected NAME=COMMAND with {port} in the command, or embedded", text)
		case names[name]:
			return nil, fmt.Errorf("--server %q: another --server has the name %s too; choose a different name", text, name)
		case ok:
			if err := target.Check(command); err != nil {
				return nil, fmt.Errorf("--server %s: %w", name, err)
			}
		}
		names[name] = true
		all = append(all, c)
	}
	if len(all) < 2 {
		return nil, errors.New("expected at least two servers to compare: add --server embedded --server 'other=COMMAND -p {port}'")
	}
	return all, nil
}

// comparisonFormats has the functions that write a comparison to standard output, by the value of --format.
var comparisonFormats = map[string]func(io.Writer, *experiment.Comparison) error{
	"text": format.ComparisonText,
	"json": format.JSON[*experiment.Comparison],
	"bench": func(w io.Writer, c *experiment.Comparison) error {
		for _, r := range c.Runs {
			if err := format.GoBench(w, r); err != nil {
				return err
			}
		}
		return nil
	},
}

// compareLive runs the load against each server in turn, and repeats this for each round.
func (o *benchOptions) compareLive(cmd *cobra.Command, sys *catalog.Entry) error {
	all, err := contenders(o.servers)
	if err != nil {
		return cli.Usage(err)
	}
	cfg, err := o.plan(cmd, sys)
	if err != nil {
		return cli.Usage(err)
	}
	files, err := o.open()
	if err != nil {
		return cli.Usage(err)
	}
	defer files.discard()
	stderr := cmd.ErrOrStderr()
	groups := make([]experiment.Group, len(all))
turns:
	for round := range o.rounds {
		for i, c := range all {
			report, err := o.runOnce(cmd, sys, c.target, cfg, nil, nil)
			if cmd.Context().Err() != nil {
				break turns // interrupted: compare the runs so far
			}
			if report == nil || errors.Is(err, target.ErrUnreachable) {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			report.Target = c.name
			groups[i].Name = c.name
			groups[i].Runs = append(groups[i].Runs, report)
			if !o.quiet {
				fmt.Fprintf(stderr, "run %d of %d  %-12s %s jobs/s\n", round+1, o.rounds, c.name,
					prose.Grouped(int64(math.Round(report.Rate))))
			}
		}
	}
	return o.report(cmd, groups, files)
}

// report writes the comparison of the groups, and returns the error with the exit status for their runs.
func (o *benchOptions) report(cmd *cobra.Command, groups []experiment.Group, files *benchFiles) error {
	for _, g := range groups {
		if len(g.Runs) == 0 {
			return &cli.Error{Status: cli.StatusFailed, Err: errors.New("interrupted before each server was measured at least once")}
		}
	}
	c := experiment.Compare(groups)
	asHTML := func(w io.Writer, c *experiment.Comparison) error { return format.ComparisonHTML(w, c, o.tolerated) }
	if err := errors.Join(comparisonFormats[o.format](cmd.OutOrStdout(), c), save(files, c, asHTML)); err != nil {
		return err
	}
	if cmd.Context().Err() != nil {
		return &cli.Error{Status: cli.StatusFailed}
	}
	var verdicts []report.Verdict
	for _, r := range c.Runs {
		verdicts = append(verdicts, r.Result())
	}
	return verdictStatus(verdicts...)
}

// newBenchCompare returns the command that compares servers or saved results.
func newBenchCompare() *cobra.Command {
	o := &benchOptions{kind: compareBench}
	cmd := &cobra.Command{
		Use:   "compare PROTOCOL --server NAME=COMMAND... [flags]\n  jobwire bench compare RESULT... [flags]",
		Short: "Compare servers, or saved results",
		Args:  cli.OneOrMore("expected a protocol, or saved results: files that --output has saved, or folders of such files"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			protocols, _ := cli.Names(catalog.Names()).After(typed)
			return protocols, cobra.ShellCompDirectiveDefault // or saved results
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.html == "" && cmd.Flags().Changed("tolerance") {
				return cli.Usage(errors.New("--tolerance needs --html"))
			}
			var err error
			if o.tolerated, err = experiment.ParseTolerance(o.tolerance); err != nil {
				return cli.Usage(fmt.Errorf("--tolerance: %w", err))
			}
			if slices.Contains(catalog.Names(), args[0]) {
				sys, err := connect.EntryNamed(args[0])
				if err == nil && len(args) > 1 {
					err = cli.Usage(fmt.Errorf("expected a protocol or saved results, got the protocol %s and %s", args[0], args[1]))
				}
				if err != nil {
					return err
				}
				return o.compareLive(cmd, sys)
			}
			return o.compareSaved(cmd, args)
		},
	}
	o.cfg.Interval = time.Second
	o.addLoad(cmd)
	o.addClosedLoop(cmd)
	o.addObjectives(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.servers, "server", nil, "server to compare, as `NAME=COMMAND`, or embedded for the built-in server; repeatable")
	f.IntVar(&o.rounds, "rounds", 6, "number of runs of each server")
	cli.FormatFlag(cmd, &o.format, "text", "json", "bench")
	f.Lookup("format").Usage += " (for benchstat)"
	f.StringVarP(&o.out, "output", "o", "", "`FILE` for the comparison as JSON")
	o.addHTML(cmd)
	f.StringVar(&o.tolerance, "tolerance", "10%", "`RATIO`; the HTML report marks only differences that are larger")
	o.addQuiet(cmd)
	cli.GroupFlags(cmd, benchFlagGroups)
	return cmd
}

// compareSaved compares saved results.
func (o *benchOptions) compareSaved(cmd *cobra.Command, args []string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"format", "output", "html", "tolerance"}, f.Name) && err == nil {
			err = cli.Usage(fmt.Errorf("--%s has no effect on saved results", f.Name))
		}
	})
	if err != nil {
		return err
	}
	var groups []experiment.Group
	for _, arg := range args {
		runs, err := report.ReadFiles(arg)
		if err != nil {
			return cli.Usage(err)
		}
		groups = append(groups, experiment.GroupByTarget(arg, runs)...)
	}
	if len(groups) < 2 {
		return cli.Usage(fmt.Errorf("%s has runs of one server only: name a second result to compare it with", args[0]))
	}
	files, err := o.open()
	if err != nil {
		return cli.Usage(err)
	}
	defer files.discard()
	return o.report(cmd, groups, files)
}
