package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/play"
)

type conformOptions struct {
	target   targetFlags
	profiles []string
	programs []string
	cases    string
	color    colorFlag
	format   string
	html     string
	run      []string
	skip     []string
	list     bool
	levels   []string
	segments []string
	parallel int
	fresh    bool
	timeout  time.Duration
	waive    []string
	verbose  bool
	selfTest bool
}

func newConform() *cobra.Command {
	o := &conformOptions{}
	cmd := &cobra.Command{
		Use:   "conform PROTOCOL [flags]",
		Short: "Judge a server, a client or a worker by the protocol's document",
		Long: `conform performs conversations with a server and judges what it says. Each case
names the rules that it tests; one that falls short is shown with the conversation,
the offending bytes marked. A target that dies is restarted, and the death is a
verdict on the case that it died of.

Some cases are about a client or a worker. Such a program is started for each of them, told
on standard input what to do, and watched on its way to the server through a relay.
Without --program it is jobwire's own; see docs/drivers.md for what yours has to do.`,
		Example: `  jobwire conform gearman
  jobwire conform gearman --addr 127.0.0.1:4730
  jobwire conform gearman --exec '/usr/sbin/gearmand -L 127.0.0.1 -p {port} -t 1 -l none'
  jobwire conform gearman --profile gearmand
  jobwire conform gearman --profile my-server.yaml --level MUST
  jobwire conform gearman --run 'gearman.queue.*' -v
  jobwire conform gearman --format json > report.json
  jobwire conform gearman --profile embedded --profile gearmand --html matrix.html
  jobwire conform gearmonkey --program 'Worker=./my-worker {host} {port}'`,
		Args:      protocolArg,
		ValidArgs: systemNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.target.add(cmd)
	f.StringArrayVar(&o.profiles, "profile", nil, "what is known of the server, by `NAME` or file: how to start it, what it lacks, where it falls short; may be repeated")
	f.StringArrayVar(&o.programs, "program", nil, "judge a client or worker instead, as `ROLE=COMMAND`; {addr}, or {host} and {port}, say where it connects; may be repeated")
	f.StringVar(&o.cases, "cases", "", "judge by the .wire files in this `FOLDER` instead of jobwire's own")
	f.StringVar(&o.format, "format", "text", "what to write to standard output: text, json, junit or tap")
	f.StringVar(&o.html, "html", "", "write a page with all results, conversations included, to this `FILE`")
	f.StringArrayVar(&o.run, "run", nil, "only cases whose ID, or a rule of which, matches the `GLOB`; may be repeated")
	f.StringArrayVar(&o.skip, "skip", nil, "leave out cases that match the `GLOB`; may be repeated")
	f.BoolVar(&o.list, "list", false, "list the cases instead of running them")
	f.StringSliceVar(&o.levels, "level", nil, "only cases of this `LEVEL`: MUST, SHOULD, MAY, DE-FACTO or EXTENSION; may be repeated")
	f.StringSliceVar(&o.segments, "segments", []string{"plain", "bytewise", "coalesced"}, "the ways in which each case is sent")
	f.BoolVar(&o.fresh, "fresh", false, "start a server for every case")
	f.IntVar(&o.parallel, "parallel", 8, "cases at a time")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long an answer may take")
	f.StringArrayVar(&o.waive, "waive", nil, "do not hold the server to this `RULE`; may be repeated")
	f.BoolVar(&o.selfTest, "self-test", false, "judge the cases themselves: run them against faulty servers, each of which must fail exactly the cases named for it")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "name the cases that passed too")
	o.color.add(cmd)
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *conformOptions) execute(cmd *cobra.Command, name string) error {
	sys, err := systemNamed(name)
	if err != nil {
		return err
	}
	suite, runner, err := o.plan(sys)
	if err != nil {
		return usage(err)
	}
	if o.list {
		return listCases(cmd.OutOrStdout(), suite, o.format)
	}
	if o.selfTest {
		return o.prove(cmd, sys, suite)
	}
	subjects, err := o.subjects(sys)
	if err != nil {
		return usage(err)
	}
	color, err := o.color.on(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	var page *os.File
	if o.html != "" { // before the work, not behind it
		if page, err = os.Create(o.html); err != nil {
			return usage(err)
		}
		defer page.Close()
	}
	var reports []*conform.Report
	for _, subj := range subjects {
		reports = append(reports, o.judge(cmd, sys, suite, runner, subj, color))
	}
	if write := formats[o.format]; write != nil {
		if err := write(cmd.OutOrStdout(), reports); err != nil {
			return err
		}
	}
	if page != nil {
		if err := errors.Join(conform.WriteHTML(page, suite, reports), page.Close()); err != nil {
			return err
		}
	}
	status := exitHeld
	for _, r := range reports {
		switch {
		case r.Unreachable():
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s could not be judged: %s\n", r.Target, r.Results[0].Note)
			status = exitUnreachable
		case r.Lost():
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s died of whatever it was sent\n", r.Target)
			status = exitUnreachable
		case r.Failed():
			status = max(status, exitFellShort)
		case !r.Judged():
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: no case came to a verdict about %s\n", r.Target)
			status = max(status, exitFellShort)
		}
	}
	if cmd.Context().Err() != nil {
		status = max(status, exitFellShort)
	}
	if status != exitHeld {
		return &exit{status, nil}
	}
	return nil
}

// plan reads everything from the flags that does not depend on the target.
func (o *conformOptions) plan(sys *system) (*conform.Suite, conform.Runner, error) {
	r := conform.Runner{Parallel: o.parallel, Timeout: o.timeout, Fresh: o.fresh}
	switch {
	case formats[o.format] == nil && o.format != "text":
		return nil, r, fmt.Errorf("--format %q: it is %s", o.format, strings.Join(formatNames(), ", "))
	case len(o.segments) == 0:
		return nil, r, errors.New("--segments names no way of sending")
	case o.parallel < 1 || o.timeout <= 0:
		return nil, r, errors.New("--parallel and --timeout must be above zero")
	case o.fresh && o.target.addr != "":
		return nil, r, errors.New("--fresh starts servers, which --addr cannot; use --exec")
	}
	var err error
	if r.Waive, err = ruleIDs(sys.protocol, o.waive); err != nil {
		return nil, r, err
	}
	for _, name := range o.segments {
		how, err := play.SegmentationNamed(name)
		if err != nil {
			return nil, r, fmt.Errorf("--segments: %w", err)
		}
		r.Segments = append(r.Segments, how)
	}
	suite, err := o.load(sys)
	if err != nil {
		return nil, r, err
	}
	if r.Programs = sys.programs; len(o.programs) > 0 {
		if r.Programs, err = programs(o.programs); err != nil {
			return nil, r, err
		}
		if suite, err = suite.About(slices.Sorted(maps.Keys(r.Programs))...); err != nil {
			return nil, r, err
		}
	}
	if suite, err = suite.Select(o.run, o.skip); err != nil {
		return nil, r, err
	}
	if suite, err = suite.AtLevels(o.levels); err != nil {
		return nil, r, err
	}
	if len(suite.Cases) == 0 {
		return nil, r, errors.New("the selection leaves no case to run")
	}
	return suite, r, nil
}

// programs reads the flags that say which clients and workers are to be judged.
func programs(flags []string) (map[string]conform.Program, error) {
	all := map[string]conform.Program{}
	for _, text := range flags {
		role, line, ok := strings.Cut(text, "=")
		if !ok || role == "" || all[role] != nil {
			return nil, fmt.Errorf("--program %q: want ROLE=COMMAND, once for a role", text)
		}
		program, err := conform.Command(line)
		if err != nil {
			return nil, fmt.Errorf("--program %s: %w", role, err)
		}
		all[role] = program
	}
	return all, nil
}

// load reads the suite: jobwire's own, or the one in a folder.
func (o *conformOptions) load(sys *system) (*conform.Suite, error) {
	if o.cases == "" {
		return conform.Load(sys.protocol)
	}
	return conform.LoadFS(sys.protocol, os.DirFS(o.cases))
}

// subject is a server to be judged, and what is known of it.
type subject struct {
	target  targetFlags
	profile *conform.Profile
}

// subjects reads the profiles. Where --addr or --exec say which server to judge,
// a profile only tells what is known of it.
func (o *conformOptions) subjects(sys *system) ([]subject, error) {
	if len(o.profiles) == 0 {
		return []subject{{target: o.target}}, o.target.check()
	}
	explicit := o.target != targetFlags{}
	if explicit && len(o.profiles) > 1 {
		return nil, errors.New("--addr and --exec name one server: give one --profile with them")
	}
	whole, err := o.load(sys) // profiles know cases that may not be selected
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, name := range o.profiles {
		p, err := conform.LoadProfile(name, whole)
		if err != nil {
			return nil, err
		}
		s := subject{target: o.target, profile: p}
		if !explicit {
			s.target.exec = p.Exec
		}
		if err := s.target.check(); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// judge runs the suite against one subject, telling of it on the way.
func (o *conformOptions) judge(cmd *cobra.Command, sys *system, suite *conform.Suite, runner conform.Runner, subj subject, color bool) *conform.Report {
	report := &conform.Report{Protocol: sys.protocol, Target: o.nameOf(subj, sys)}
	runner.Start = func(ctx context.Context) (target.Target, error) { return subj.target.start(ctx, sys) }
	if runner.Profile = subj.profile; subj.profile != nil {
		runner.Waive = append(slices.Clip(runner.Waive), subj.profile.Waive...)
	}
	text := &conform.Text{W: cmd.OutOrStdout(), Color: color, Verbose: o.verbose}
	progress := newProgress(cmd.ErrOrStderr(), len(suite.Cases))
	began := time.Now()
	report.Results = runner.Run(cmd.Context(), suite, func(r conform.Result) {
		if o.format == "text" {
			progress.clear()
			text.Case(r)
		}
		progress.step()
	})
	report.Took = time.Since(began)
	progress.clear()
	if o.format == "text" {
		text.Summary(report)
	}
	return report
}

// nameOf is what reports call what is judged.
func (o *conformOptions) nameOf(subj subject, sys *system) string {
	name := subj.target.name(sys)
	if subj.profile != nil {
		name = subj.profile.Name
	}
	if len(o.programs) > 0 {
		name = strings.Join(o.programs, " and ") + ", with " + name
	}
	return name
}

// formats are the machine-readable reports on standard output.
var formats = map[string]func(io.Writer, []*conform.Report) error{
	"json":  conform.WriteJSON,
	"junit": conform.WriteJUnit,
	"tap":   conform.WriteTAP,
}

func formatNames() []string { return append([]string{"text"}, slices.Sorted(maps.Keys(formats))...) }

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
