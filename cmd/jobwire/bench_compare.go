package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/internal/target"
	"jobwire/loadgen"
)

// contender is one of several targets that are compared.
type contender struct {
	name   string
	target targetFlags
}

// contenders reads --compare.
func contenders(flags []string) ([]contender, error) {
	var all []contender
	names := map[string]bool{}
	for _, text := range flags {
		name, command, ok := strings.Cut(text, "=")
		c := contender{name: name, target: targetFlags{exec: command}}
		switch {
		case !ok && name != "embedded":
			return nil, fmt.Errorf("--compare %q: want NAME=COMMAND with {port} in it, or embedded", text)
		case names[name]:
			return nil, fmt.Errorf("--compare %q: %s is there already", text, name)
		case ok:
			if err := target.Check(command); err != nil {
				return nil, fmt.Errorf("--compare %s: %w", name, err)
			}
		}
		names[name] = true
		all = append(all, c)
	}
	if len(all) < 2 {
		return nil, errors.New("--compare takes at least two targets: repeat it, as --compare embedded --compare 'other=COMMAND -p {port}'")
	}
	return all, nil
}

// comparisonFormats are how a comparison is written to standard output.
var comparisonFormats = map[string]func(*loadgen.Comparison, io.Writer) error{
	"text": (*loadgen.Comparison).WriteText,
	"json": (*loadgen.Comparison).WriteJSON,
	"bench": func(c *loadgen.Comparison, w io.Writer) error {
		for _, r := range c.Runs {
			if err := loadgen.WriteGoBench(w, r); err != nil {
				return err
			}
		}
		return nil
	},
}

func checkComparisonFormat(format string) error {
	if comparisonFormats[format] == nil {
		return usage(fmt.Errorf("--format %q: a comparison is written as bench, json or text", format))
	}
	return nil
}

// compareLive has the targets take turns.
func (o *benchOptions) compareLive(cmd *cobra.Command, sys *system, cfg loadgen.Config) error {
	all, err := contenders(o.compare)
	if err != nil {
		return usage(err)
	}
	switch {
	case o.target != targetFlags{}:
		return usage(errors.New("--compare names the targets: leave --addr and --exec away"))
	case o.rounds < 1:
		return usage(errors.New("--rounds must be above zero"))
	case o.hlog != "" || o.hgrm != "" || o.html != "" || o.baseline != "":
		return usage(errors.New("--compare writes no histograms and pages, and takes no baseline"))
	}
	if err := checkComparisonFormat(o.format); err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	groups := make([]loadgen.Group, len(all))
turns:
	for round := range o.rounds {
		for i, c := range all {
			report, err := o.runOnce(cmd, sys, c.target, cfg, nil)
			if cmd.Context().Err() != nil {
				break turns // what there is, is compared
			}
			if report == nil || errors.Is(err, target.ErrUnreachable) {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			report.Target = c.name
			groups[i].Name = c.name
			groups[i].Runs = append(groups[i].Runs, report)
			if !o.quiet {
				fmt.Fprintf(stderr, "round %d of %d  %-12s %s jobs/s\n", round+1, o.rounds, c.name, loadgen.Grouped(int64(math.Round(report.Rate))))
			}
		}
	}
	return o.tell(cmd, groups)
}

// tell writes what a comparison shows.
func (o *benchOptions) tell(cmd *cobra.Command, groups []loadgen.Group) error {
	for _, g := range groups {
		if len(g.Runs) == 0 {
			return &exit{exitFellShort, errors.New("interrupted before each target had a run")}
		}
	}
	c := loadgen.Compare(groups)
	if err := comparisonFormats[o.format](c, cmd.OutOrStdout()); err != nil {
		return err
	}
	if o.out != "" {
		if err := create(o.out, c.WriteJSON); err != nil {
			return err
		}
	}
	for _, r := range c.Runs {
		if !r.Held() {
			return &exit{exitFellShort, nil}
		}
	}
	if cmd.Context().Err() != nil {
		return &exit{exitFellShort, nil}
	}
	return nil
}

func newBenchCompare() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "compare RESULT... [flags]",
		Short: "Compare saved results",
		Long: `compare holds what bench --out has saved against the first of it: medians, and their
ratios with the interval in which 95 % of ratios lie that come of runs drawn at random.
Each argument is a file, several with commas between them, or a folder of .json files. Where
one has runs of several targets, as bench --compare saves them, they are held apart.`,
		Example: `  jobwire bench compare both.json
  jobwire bench compare before.json after.json
  jobwire bench compare before/ after/
  jobwire bench compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("compare takes saved results: files that bench --out has saved, or folders of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkComparisonFormat(o.format); err != nil {
				return err
			}
			var groups []loadgen.Group
			for _, arg := range args {
				runs, err := savedReports(arg)
				if err != nil {
					return usage(err)
				}
				groups = append(groups, byTarget(arg, runs)...)
			}
			if len(groups) < 2 {
				return usage(fmt.Errorf("%s is of one target: compare it with another result", args[0]))
			}
			return o.tell(cmd, groups)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "what to write to standard output: bench, json or text")
	cmd.Flags().StringVar(&o.out, "out", "", "save the comparison as JSON to this `FILE` too")
	return cmd
}

// byTarget groups the runs of an argument.
func byTarget(arg string, runs []*loadgen.Report) []loadgen.Group {
	var groups []loadgen.Group
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g loadgen.Group) bool { return g.Name == r.Target })
		if i < 0 {
			i = len(groups)
			groups = append(groups, loadgen.Group{Name: r.Target})
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	if len(groups) == 1 {
		groups[0].Name = arg
	}
	return groups
}

// savedReports reads the reports of an argument: a file, several with commas between them, or a
// folder.
func savedReports(arg string) ([]*loadgen.Report, error) {
	var all []*loadgen.Report
	for name := range strings.SplitSeq(arg, ",") {
		files := []string{name}
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			if files, err = filepath.Glob(filepath.Join(name, "*.json")); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			runs, err := readReports(file)
			if err != nil {
				return nil, err
			}
			all = append(all, runs...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there are no .json files", arg)
	}
	return all, nil
}

func readReports(file string) ([]*loadgen.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runs, err := loadgen.ReadReports(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return runs, nil
}

// parseTolerance reads "10%" or "0.1".
func parseTolerance(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || v < 0 || v >= 10 {
		return 0, fmt.Errorf("--tolerance %q: want 10%% or 0.1", text)
	}
	return v, nil
}
