package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/catalog"
	"jobwire/cmd/internal/capturefile"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/casedata"
	"jobwire/conform/report"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
	"jobwire/loadgen/machine"
	"jobwire/play"
)

type conformOptions struct {
	target   connect.TargetFlags
	profiles []string
	programs []string
	roles    []string       // of conform cases
	suite    *conform.Suite // all cases; nil before load
	cases    string
	color    cli.ColorFlag
	format   string
	html     string
	pcap     string
	run      []string
	skip     []string
	levels   []string
	segments []string
	runner   conform.Runner // --parallel, --fresh, --timeout and --budget
	all      bool
	quick    bool
	failed   bool            // --failed
	ids      []string        // IDs of cases to run, besides run
	only     map[string]bool // IDs of the only cases to run; nil: all
	failFast bool
	watch    []string
	waive    []string
	verbose  bool
	quiet    bool
}

// newConform returns the command "conform", which runs the cases of the suite against a server, client or worker, with
// its subcommands.
func newConform() *cobra.Command {
	o := &conformOptions{}
	cmd := &cobra.Command{
		Use:   "conform PROTOCOL [flags]",
		Short: "Test a server, client or worker against the specification",
	}
	connect.ProtocolCommand(cmd, o.execute)
	f := cmd.Flags()
	o.target.Add(cmd)
	f.StringArrayVar(&o.profiles, "profile", nil,
		"`NAME` or file of the profile of a server to start and test; repeatable")
	f.StringArrayVar(&o.programs, "program", nil, "client or worker program to test, as `ROLE=COMMAND`; repeatable")
	o.addSelection(cmd)
	o.addCases(cmd)
	f.StringArrayVar(&o.waive, "waive", nil, "`RULE` that the server may break without a failure; repeatable")
	f.StringSliceVar(&o.segments, "segments", []string{"plain", "bytewise", "coalesced"},
		"how messages are divided into writes to the socket, as `NAMES` separated by commas; each case runs once per name, with coalesced only if that differs from plain")
	f.BoolVar(&o.all, "all", false, "run all instances of a case, also after three have "+
		"failed in the same way at the end of a time limit, or with a crash or a hang")
	f.BoolVar(&o.runner.NewServerPerCase, "fresh", false, "start a new server process for every case")
	f.BoolVar(&o.failed, "failed", false, "run only the cases that failed in the last run against the same target")
	f.BoolVarP(&o.failFast, "fail-fast", "x", false,
		"stop at the first failure; cases run one at a time unless --parallel is set")
	f.BoolVar(&o.quick, "quick", false, "run only the first instance of each case, with plain segments, "+
		"and no cases that check the server's process")
	f.StringArrayVar(&o.watch, "watch", nil, "run again when the file or folder `PATH`, "+
		"or a file that --exec names, has changed; repeatable")
	f.IntVar(&o.runner.Parallel, "parallel", 8, "number of cases that run in parallel")
	f.DurationVar(&o.runner.Budget, "budget", 5*time.Minute,
		"time after which no further case starts; the most informative cases run first; 0: unlimited")
	f.IntVar(&o.target.Memory, "memory", defaultMemory,
		"limit for the memory of a server that conform starts, in `MIB`, at most a "+
			"quarter of the machine's memory if the flag is not given; a server that needs more is killed, and counts as crashed; 0: unlimited")
	f.DurationVar(&o.runner.Timeout, "timeout", 2*time.Second, "time limit for each reply of the target")
	cli.FormatFlag(cmd, &o.format, append([]string{"text"}, slices.Sorted(maps.Keys(formats))...)...)
	f.StringVar(&o.html, "html", "", "`FILE` for an HTML report with the messages of each case")
	f.StringVar(&o.pcap, "pcap", "", "`FILE` for a capture of the cases that did not pass; packet comments name the case and its rules")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "write all causes and all cases, also those that passed, as they end")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no live display")
	o.color.Add(cmd)
	cli.GroupFlags(cmd, conformFlagGroups)
	cmd.AddCommand(newConformCases(), newConformMatrix(), newConformSelfTest())
	return cmd
}

// conformFlagGroups are the groups in which the help lists the flags of conform and its subcommands.
var conformFlagGroups = []cli.FlagGroup{
	{Title: "Target", Names: "addr exec profile program waive"},
	connect.ConnectionGroup,
	{Title: "Cases", Names: "run failed skip level role cases quick"},
	{Title: "Run", Names: "segments all fail-fast watch fresh parallel timeout budget memory"},
	{Title: "Report", Names: "format html pcap verbose quiet color"},
}

// addSelection adds the flags that select cases.
func (o *conformOptions) addSelection(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.run, "run", nil, "`GLOB` of case or rule IDs to run, "+
		"or cause:N for the cases of a cause in the last report; repeatable")
	f.StringArrayVar(&o.skip, "skip", nil, "`GLOB` of case or rule IDs to skip; repeatable")
	f.StringSliceVar(&o.levels, "level", nil, "`LEVEL` of the rules to test, such as MUST or SHOULD; repeatable. With INTERPRETATION, a difference from an interpretation is a failure")
}

func (o *conformOptions) addCases(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.cases, "cases", "", "`DIR` of .wire files with cases to use instead of the built-in cases")
}

// newConformCases returns the command that lists cases.
func newConformCases() *cobra.Command {
	o := &conformOptions{}
	cmd := &cobra.Command{
		Use:   "cases PROTOCOL [flags]",
		Short: "List the test cases",
	}
	connect.ProtocolCommand(cmd, func(cmd *cobra.Command, sys *catalog.Entry) error {
		suite, err := o.selected(sys, o.roles)
		if err != nil {
			return cli.Usage(err)
		}
		return listCases(cmd.OutOrStdout(), suite, o.format)
	})
	o.addSelection(cmd)
	cmd.Flags().StringArrayVar(&o.roles, "role", nil, "only cases for programs of this `ROLE`, such as Worker; repeatable")
	o.addCases(cmd)
	cli.FormatFlag(cmd, &o.format, "text", "json")
	cli.GroupFlags(cmd, conformFlagGroups)
	return cmd
}

func (o *conformOptions) execute(cmd *cobra.Command, sys *catalog.Entry) error {
	cli.TuneMemory(cli.SoftMemory, cli.GCPercent)
	keepReport()
	if o.watch != nil {
		return o.watchRuns(cmd, sys)
	}
	return o.once(cmd, sys)
}

// once runs the cases once.
func (o *conformOptions) once(cmd *cobra.Command, sys *catalog.Entry) error {
	if machine := machine.ReadEnvironment(nil).Memory >> 20; !cmd.Flags().Changed("memory") && machine > 0 {
		o.target.Memory = min(o.target.Memory, int(machine/4))
	}
	subjects, err := o.subjects(cmd, sys)
	if err != nil {
		return cli.Usage(err)
	}
	if o.only, err = o.fromLastRun(sys, subjects); err != nil {
		return cli.Usage(err)
	}
	if o.quick && !cmd.Flags().Changed("segments") {
		o.segments = []string{play.Plain.String()}
	}
	switch {
	case cmd.Flags().Changed("parallel"):
	case o.failFast:
		o.runner.Parallel = 1 // a case that misses a time limit while others run would be repeated after all of them
	case o.quick:
		o.runner.Parallel = 16 // most cases wait most of the time
	}
	suite, runner, err := o.plan(sys)
	if err != nil {
		return cli.Usage(err)
	}
	color := o.color.On(cmd.OutOrStdout())
	var page *cli.TextFile
	if o.html != "" { // create the file before the run, so that an invalid name is reported at once
		if page, err = cli.CreateText(o.html); err != nil {
			return cli.Usage(err)
		}
		defer page.Close()
	}
	var packets *capturefile.File
	if o.pcap != "" {
		if packets, err = capturefile.Create(o.pcap, sys.Protocol); err != nil {
			return cli.Usage(err)
		}
		defer packets.File.Close()
	}
	var reports []*conform.Report
	for _, subj := range subjects {
		r := o.runSuite(cmd, sys, suite, runner, subj, color)
		reports = append(reports, r)
		if err := o.keepLastRun(sys, subj, r); err != nil && o.failed {
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: the result is not kept for --failed: %v\n", err)
		}
		if o.failFast && r.Failed() {
			break
		}
	}
	if write := formats[o.format]; write != nil {
		if err := write(cmd.OutOrStdout(), reports); err != nil {
			return err
		}
	}
	if packets != nil {
		if err := capturefile.WriteFailedCases(packets, reports); err != nil {
			return err
		}
	}
	if page != nil {
		if err := errors.Join(report.WriteHTML(page, suite, reports), page.Close()); err != nil {
			return err
		}
	}
	if status := conformStatus(cmd.ErrOrStderr(), reports); status != cli.StatusOK {
		return &cli.Error{Status: status}
	}
	return nil
}

// conformStatus returns the exit status for the reports, and prints why a target was not tested.
func conformStatus(w io.Writer, reports []*conform.Report) int {
	status := cli.StatusOK
	for _, r := range reports {
		if r.Interrupted {
			status = max(status, cli.StatusFailed)
		}
		switch {
		case r.Unreachable() != "":
			fmt.Fprintf(w, "jobwire: %s\n", r.Unreachable())
			status = cli.StatusUnreachable
		case r.Lost():
			fmt.Fprintf(w, "jobwire: %s crashed, and no case passed\n", r.Target)
			status = cli.StatusUnreachable
		case r.Failed() || r.Count(verdict.NotRun) > 0:
			status = max(status, cli.StatusFailed)
		case r.Untested() != "" && !r.Interrupted:
			fmt.Fprintf(w, "jobwire: %s: %s\n", r.Target, r.Untested())
			status = max(status, cli.StatusFailed)
		}
	}
	return status
}

// keepReport makes the program end at the third interrupt rather than at the second one, so that the report is not lost
// while servers are stopped or while it is written.
func keepReport() {
	if !cli.Alone {
		return
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		<-signals
		signal.Stop(signals)
	}()
}

// defaultMemory is the limit in MiB for the memory of a server.
const defaultMemory = 2048

// inferAfter is the number of instances of a case that must fail in the same slow way before the rest is inferred.
const inferAfter = 3

// plan returns what the flags select independently of the target: the cases, and the options of the runner.
func (o *conformOptions) plan(sys *catalog.Entry) (*conform.Suite, conform.Runner, error) {
	r := o.runner
	r.InferAfter = inferAfter
	if o.all || o.failFast { // --fail-fast runs the cases in the order of the suite
		r.InferAfter = 0
	}
	switch {
	case o.runner.NewServerPerCase && o.target.Addr != "":
		return nil, r, errors.New("--fresh starts a new server for each case; conform cannot start the server of --addr: use --exec instead")
	}
	var err error
	if r.Waive, err = connect.RuleIDs(sys.Protocol, o.waive); err != nil {
		return nil, r, err
	}
	for _, name := range o.segments {
		how, err := play.SegmentationNamed(name)
		if err != nil {
			return nil, r, fmt.Errorf("--segments: %w", err)
		}
		r.Segments = append(r.Segments, how)
	}
	var roles []string
	if r.Programs = sys.Programs; len(o.programs) > 0 {
		if r.Programs, err = programs(o.programs); err != nil {
			return nil, r, err
		}
		roles = slices.Sorted(maps.Keys(r.Programs))
	}
	r.Strict = slices.Contains(o.levels, string(codec.Interpretation))
	suite, err := o.selected(sys, roles)
	return suite, r, err
}

// selected returns the cases that the flags select: those for programs of the given roles, or all if there is no role.
func (o *conformOptions) selected(sys *catalog.Entry, roles []string) (*conform.Suite, error) {
	suite, err := o.load(sys)
	if err == nil && len(roles) > 0 {
		suite, err = suite.About(roles...)
	}
	if err != nil {
		return nil, err
	}
	if suite, err = o.chosen(suite); err != nil {
		return nil, err
	}
	if suite, err = suite.AtLevels(o.levels); err != nil {
		return nil, err
	}
	if o.only != nil {
		suite = suite.Only(func(c *conform.Case) bool { return o.only[c.ID] })
	}
	if len(suite.Cases) == 0 && o.only != nil {
		return nil, errors.New("no case that failed in the last run is selected by --run, --skip and --level")
	}
	if len(suite.Cases) == 0 {
		return nil, errors.New("no case is selected by --run, --skip and --level")
	}
	if o.quick {
		suite = suite.InProcess().First()
	}
	if len(suite.Cases) == 0 {
		return nil, errors.New("no case is selected by --run, --skip, --level and --quick, " +
			"which leaves out the cases that check the server's process")
	}
	return suite, nil
}

// chosen returns the cases that --run and --skip select, and those of ids.
func (o *conformOptions) chosen(suite *conform.Suite) (*conform.Suite, error) {
	if o.ids == nil {
		return suite.Select(o.run, o.skip)
	}
	chosen := map[string]bool{}
	for _, id := range o.ids {
		chosen[id] = true
	}
	if len(o.run) > 0 {
		others, err := suite.Select(o.run, nil)
		if err != nil {
			return nil, err
		}
		for _, c := range others.Cases {
			chosen[c.ID] = true
		}
	}
	return suite.Only(func(c *conform.Case) bool { return chosen[c.ID] }).Select(nil, o.skip)
}

// programs parses the values of --program: the clients and workers to test, by role.
func programs(flags []string) (map[string]conform.Program, error) {
	all := map[string]conform.Program{}
	for _, text := range flags {
		role, line, ok := strings.Cut(text, "=")
		if !ok || role == "" || all[role] != nil {
			return nil, fmt.Errorf("--program %q: expected ROLE=COMMAND, and each ROLE only once", text)
		}
		program, err := conform.Command(line)
		if err != nil {
			return nil, fmt.Errorf("--program %s: %w", role, err)
		}
		all[role] = program
	}
	return all, nil
}

// load returns the built-in cases, or those in the folder of --cases.
func (o *conformOptions) load(sys *catalog.Entry) (suite *conform.Suite, err error) {
	switch {
	case o.suite != nil:
		return o.suite, nil
	case o.cases == "" && len(o.run) > 0 && o.ids == nil && len(o.skip)+len(o.profiles)+len(o.programs)+len(o.roles) == 0:
		suite, err = conform.LoadSelected(sys.Protocol, o.run) // nothing needs the other cases
	case o.cases == "":
		suite, err = conform.Load(sys.Protocol)
	default:
		st, statErr := os.Stat(o.cases)
		switch {
		case statErr != nil:
			return nil, fmt.Errorf("--cases: %w", statErr)
		case !st.IsDir():
			return nil, fmt.Errorf("--cases %s: expected a folder of .wire files, got a file", o.cases)
		}
		if suite, err = conform.LoadFS(sys.Protocol, os.DirFS(o.cases)); err != nil {
			err = fmt.Errorf("--cases %s: %w", o.cases, err)
		}
	}
	o.suite = suite
	return suite, err
}

// subject is a server to test, and its profile, which lists known failures.
type subject struct {
	name    string // name of the profile, as in --profile; "" without a profile
	target  connect.TargetFlags
	profile *conform.Profile
	version string // of the server, or "" if it is not known
}

// subjects returns the servers to test: one for each profile, or the server of
// --addr or --exec, for which a profile only lists known failures.
func (o *conformOptions) subjects(cmd *cobra.Command, sys *catalog.Entry) ([]subject, error) {
	if len(o.profiles) == 0 {
		return []subject{{target: o.target, version: builtinVersion(o.target)}}, o.target.Check(sys)
	}
	explicit := !o.target.Builtin()
	if explicit && len(o.profiles) > 1 {
		return nil, errors.New("--addr and --exec name one server, so only one --profile is allowed with them")
	}
	whole, err := o.load(sys) // profiles may name cases that are not selected
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, name := range o.profiles {
		p, err := conform.LoadProfile(name, whole)
		if err != nil {
			return nil, err
		}
		s := subject{name: name, target: o.target, profile: p}
		if !explicit {
			s.target.Exec = p.Exec
			if s.version, err = p.ServerVersion(cmd.Context()); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: the version of %s is not known: %v\n", p.Name, err)
			}
		}
		s.version = cmp.Or(s.version, builtinVersion(s.target))
		if err := s.target.Check(sys); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// builtinVersion returns the version of the built-in server, or "" if the target is another server.
func builtinVersion(t connect.TargetFlags) string {
	if t.Builtin() {
		return version.Number
	}
	return ""
}

// runSuite runs the suite against one subject, and prints the results as text if --format is text.
func (o *conformOptions) runSuite(cmd *cobra.Command, sys *catalog.Entry, suite *conform.Suite, runner conform.Runner,
	subj subject, color bool) *conform.Report {
	run := &conform.Report{Protocol: sys.Protocol, Target: o.nameOf(subj, sys), Server: subj.target.Name(sys),
		Version: subj.version}
	runner.Start = func(ctx context.Context) (target.Target, error) { return subj.target.Start(ctx, sys) }
	if subj.target.Builtin() {
		runner.StartProcess = func(ctx context.Context) (target.Target,
			error) {
			return connect.StartBuiltin(ctx, o.nameOf(subj, sys), sys)
		}
	}
	if runner.Profile = subj.profile; subj.profile != nil {
		runner.Waive = append(slices.Clip(runner.Waive), subj.profile.Waive...)
	}
	runner.Command = o.command(cmd, sys, subj)
	runner.Note = func(note string) { run.Notes = append(run.Notes, note) }
	text := &report.Text{W: cmd.OutOrStdout(), Color: color, Verbose: o.verbose}
	endLive := o.showLive(cmd, run, len(suite.Cases), &runner)
	defer endLive()
	run.Began = time.Now()
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	run.Results = runner.Run(ctx, suite, func(r conform.Result) {
		if o.failFast && r.Verdict.FailsRun() {
			stop(conform.ErrFirstFailure)
		}
		if o.format == "text" {
			text.Case(r)
		}
	})
	run.Took = time.Since(run.Began)
	run.EndedBy(context.Cause(ctx))
	endLive()
	if o.format == "text" {
		text.Summary(run)
	}
	return run
}

// flagsOfRun are the flags that select cases and that say when, how fast and how often they run and how the report
// looks.
const flagsOfRun = "run skip level failed fail-fast watch quick parallel budget format html pcap color verbose quiet"

// command returns the command line that tests one subject as this command does, without flagsOfRun.
func (o *conformOptions) command(cmd *cobra.Command, sys *catalog.Entry, subj subject) string {
	words := []string{"jobwire", "conform", sys.Protocol.Name}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(strings.Fields(flagsOfRun), f.Name) {
			return
		}
		switch values := f.Value.(type) {
		case pflag.SliceValue:
			for _, v := range values.GetSlice() {
				if f.Name != "profile" || v == subj.name {
					words = append(words, "--"+f.Name, v)
				}
			}
		default:
			if f.Value.Type() == "bool" {
				words = append(words, "--"+f.Name)
			} else {
				words = append(words, "--"+f.Name, f.Value.String())
			}
		}
	})
	return target.Join(words)
}

// nameOf returns the name of the tested server, clients and workers in reports.
func (o *conformOptions) nameOf(subj subject, sys *catalog.Entry) string {
	name := subj.target.Name(sys)
	if subj.profile != nil {
		name = subj.profile.Name
		if !subj.target.Builtin() && subj.version != "" {
			name += " " + subj.version
		}
	}
	if len(o.programs) > 0 {
		name = strings.Join(o.programs, " and ") + ", with " + name
	}
	return name
}

// formats has the functions that write machine-readable reports, by the value of --format.
var formats = map[string]func(io.Writer, []*conform.Report) error{
	"github": report.WriteGitHub,
	"json":   report.WriteJSON,
	"junit":  report.WriteJUnit,
	"tap":    report.WriteTAP,
}

// listCases prints the selected cases: as text one line for all instances of a case, as JSON each instance.
func listCases(w io.Writer, s *conform.Suite, format string) error {
	if format == "json" {
		e := json.NewEncoder(w) // without indentation, which would double the size
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			version.Head
			Protocol casedata.Protocol `json:"protocol"`
			Timeout  float64           `json:"timeout"`
			Cases    []casedata.Case   `json:"cases"`
		}{version.NewHead(), casedata.ProtocolOf(s.Protocol), play.DefaultTimeout.Seconds(), casedata.Cases(s)})
	}
	instances := map[string]int{}
	for _, c := range s.Cases {
		instances[c.Family]++
	}
	section := ""
	for _, c := range s.Cases {
		n := instances[c.Family]
		if n == 0 {
			continue // listed with the first instance
		}
		instances[c.Family] = 0
		if c.Section != section {
			section = c.Section
			fmt.Fprintf(w, "%s\n", section)
		}
		about := c.About
		if n > 1 {
			about += fmt.Sprintf(" (1 of %d instances)", n)
		}
		if cli.IsTerminal(w) {
			fmt.Fprintf(w, "  %s  %s\n", c.Family, c.Level)
			cli.ListItem(w, "      ", about)
			continue
		}
		fmt.Fprintf(w, "  %-40s %-9s %s\n", c.Family, c.Level, about)
	}
	return nil
}
