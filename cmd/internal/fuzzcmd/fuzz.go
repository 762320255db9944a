// Package fuzzcmd has the command fuzz and its subcommands.
package fuzzcmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/vectors"
	"jobwire/conform"
	"jobwire/fuzz"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
	"jobwire/internal/metrics"
	"jobwire/internal/target"
	"jobwire/internal/textfile"
	"jobwire/internal/transport"
)

// defaultFindings is the folder for findings if the user names none.
const defaultFindings = "findings"

type fuzzOptions struct {
	target   connect.TargetFlags
	seed     uint64
	duration time.Duration
	count    int64
	parallel int
	timeout  time.Duration
	clock    int
	minimize time.Duration
	profile  string
	findings string
	state    string
	seeds    []string
	stop     bool
	remote   bool
	format   string
	html     string
	run      []string
	inMemory bool
	verbose  bool
	quiet    bool
	logs     string
	metrics  string
}

// New returns the command "fuzz" with its subcommands.
func New() *cobra.Command {
	o := &fuzzOptions{}
	cmd := &cobra.Command{
		Use:   "fuzz PROTOCOL [flags]",
		Short: "Fuzz a server and save each failure as a replayable transcript",
	}
	connect.ProtocolCommand(cmd, o.execute)
	f := cmd.Flags()
	o.addServer(cmd)
	f.StringVar(&o.profile, "profile", "", "`NAME` or file of the profile of a server to start; fuzz does not report failures that the profile lists")
	f.BoolVar(&o.remote, "allow-remote", false, "allow a server on another machine (fuzzing may crash the server or lose its jobs)")
	o.addRun(cmd)
	f.Uint64Var(&o.seed, "seed", 0, "random seed (0: choose one)")
	f.StringArrayVar(&o.seeds, "seed-file", nil, "transcript or capture `FILE` with messages to mutate; repeatable")
	f.StringVar(&o.state, "state", "", "`DIR` in which to keep inputs and findings, so that the next run continues from them")
	f.DurationVar(&o.minimize, "minimize", 30*time.Second, "time limit for minimizing each finding")
	f.BoolVar(&o.stop, "stop-on-failure", false, "stop at the first reproduced finding")
	f.StringVar(&o.findings, "findings", defaultFindings, "`DIR` for the transcripts and captures of the findings")
	f.StringVar(&o.logs, "logs", "", "`DIR` for the logs of everything that was sent, one for each server")
	addReportFormat(cmd, &o.format)
	f.StringVar(&o.html, "html", "", "`FILE` for an HTML report")
	f.StringVar(&o.metrics, "metrics", "", metrics.Usage)
	o.addVerbose(cmd)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no live display, and no lines about the progress")
	cli.GroupFlags(cmd, fuzzFlagGroups)
	cmd.AddCommand(newFuzzReplay(), newFuzzReport(), newFuzzSelfTest(), newFuzzServe())
	return cmd
}

// fuzzFlagGroups are the groups in which the help lists the flags of fuzz and its subcommands.
var fuzzFlagGroups = []cli.FlagGroup{
	{Title: "Server", Names: "addr exec profile allow-remote fast-clock"},
	connect.ConnectionGroup,
	{Title: "Faults", Names: "run in-memory"},
	{Title: "Run", Names: "duration count parallel timeout stop-on-failure"},
	{Title: "Messages", Names: "seed seed-file state"},
	{Title: "Findings", Names: "findings minimize format html logs metrics verbose quiet"},
}

// addServer adds the flags about the server and its replies.
func (o *fuzzOptions) addServer(cmd *cobra.Command) {
	o.target.Add(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "time limit for each reply")
	f.IntVar(&o.clock, "fast-clock", 0, "with --exec: also run servers whose clock runs `FACTOR` times as fast, to reach time limits sooner (C programs; needs libfaketime)")
	f.Lookup("fast-clock").NoOptDefVal = "10"
}

// addRun adds the flags about the length of a run.
func (o *fuzzOptions) addRun(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&o.duration, "duration", time.Minute,
		"length of the run, including the time to reproduce failures (0: no limit, the default with --count)")
	f.Int64Var(&o.count, "count", 0, "number of message sequences to send (0: no limit)")
	f.IntVar(&o.parallel, "parallel", 4, "number of servers to fuzz in parallel (with --addr: 1)")
}

func (o *fuzzOptions) addVerbose(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "log each step of reproducing a failure")
}

// newFuzzReplay returns the command that sends the messages of an earlier run.
func newFuzzReplay() *cobra.Command {
	o := &fuzzOptions{parallel: 1, minimize: time.Second}
	cmd := &cobra.Command{
		Use:   "replay PROTOCOL LOG [flags]",
		Short: "Send the messages in the log of an earlier run",
	}
	connect.ProtocolCommandWith(cmd, nil, o.replayLog)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		if len(args) > 0 {
			return cli.FilesNamed("log")(cmd, args, typed)
		}
		return cli.Names(catalog.Names()).After(typed)
	}
	o.addServer(cmd)
	cli.GroupFlags(cmd, fuzzFlagGroups)
	return cmd
}

// execute fuzzes a server until the duration or the number of executions is reached, or the user interrupts it, and
// writes the findings and the report. It returns an error with the exit status for findings if there are any.
func (o *fuzzOptions) execute(cmd *cobra.Command, sys *catalog.Entry) error {
	begun := time.Now()
	cli.TuneMemory(cli.SoftMemory, 100) // until the server has answered: it may not be one of this protocol
	if err := o.check(sys); err != nil {
		return cli.Usage(err)
	}
	if o.count > 0 && !cmd.Flags().Changed("duration") {
		o.duration = 0
	}
	cfg, err := o.config(cmd, sys)
	if err != nil {
		return cli.Usage(err)
	}
	if cfg.StartFast != nil { // report at once if the program does not work with a fast clock
		t, err := cfg.StartFast(cmd.Context())
		if err != nil {
			return err
		}
		target.Kill(t)
	}
	if o.target.Addr != "" {
		if _, err := o.target.StartChecked(cmd.Context(), sys); err != nil {
			return err
		}
	}
	out, err := newFuzzOutput(cmd, sys, o)
	if err != nil {
		return cli.Usage(err)
	}
	cfg.KnownAs = out.known
	cfg.Found, cfg.Dropped, cfg.Progress, cfg.Keep, cfg.Candidate = out.found, out.dropped, out.progress, out.keep,
		out.candidate
	if o.logs != "" {
		cfg.Log = out.saveLog
	}
	if o.verbose {
		cfg.Note = out.log
	}
	if o.metrics != "" {
		server, err := metrics.Listen(o.metrics)
		if err != nil {
			return cli.Usage(fmt.Errorf("--metrics: %w", err))
		}
		defer server.Close()
		server.Announce(cmd.ErrOrStderr())
		cfg.Progress = func(s fuzz.Stats) {
			server.Set(families(s))
			out.progress(s)
		}
	}
	out.begin(cmd, cfg)
	if cfg.Duration > 0 { // it includes the time to read the seeds
		cfg.Duration = max(time.Millisecond, cfg.Duration-time.Since(begun))
	}
	stats, err := fuzz.Run(cmd.Context(), *cfg)
	interrupted := cmd.Context().Err() != nil
	if err != nil && stats.Executions == 0 && !interrupted {
		out.checks.stop()
		out.live.end()
		return err // there is nothing to report
	}
	if werr := out.End(stats, interrupted); werr != nil {
		return werr
	}
	if interrupted && stats.Executions == 0 {
		return errors.New("the run was interrupted before anything was tested")
	}
	return fuzzVerdict(stats, err)
}

// fuzzVerdict returns the error that sets the exit status of a run. A run that executed nothing, or that left
// candidates unexamined, has not passed.
func fuzzVerdict(s fuzz.Stats, err error) error {
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	switch {
	case s.Findings > 0:
		return &cli.Error{Status: cli.StatusFailed, Err: err}
	case err == nil && (s.Unexamined > 0 || s.Executions == 0):
		return &cli.Error{Status: cli.StatusInvalid}
	}
	return err
}

// replayLog sends the inputs in a log to a new server.
func (o *fuzzOptions) replayLog(cmd *cobra.Command, sys *catalog.Entry, files []string) error {
	if len(files) != 1 {
		return cli.Usage(fmt.Errorf("expected one log, got %d files", len(files)))
	}
	if err := o.check(sys); err != nil {
		return cli.Usage(err)
	}
	cfg, err := o.config(cmd, sys)
	if err != nil {
		return cli.Usage(err)
	}
	f, err := textfile.Open(files[0], "a log of fuzz")
	if err != nil {
		return cli.Usage(err)
	}
	defer f.Close()
	log, err := input.ReadLog(cfg.Protocol, f)
	if err != nil {
		return cli.Usage(fmt.Errorf("%s: %w", files[0], err))
	}
	w, failures := cmd.OutOrStdout(), 0
	err = fuzz.Replay(cmd.Context(), *cfg, log, func(n int, v *exec.Fault) {
		failures++
		fmt.Fprintf(w, "message sequence %d of %d: %s: %s: %s\n", n, len(log.Entries), triage.FaultSeverity(v),
			triage.Title(sys.Protocol, log.Entries[n-1].Input, v), cli.OneLine(v.Text))
		for line := range strings.Lines(v.Output) {
			fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n"))
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s in %s\n", cli.Counted(failures, "failure"), cli.Counted(len(log.Entries), "message sequence"))
	if failures > 0 {
		return &cli.Error{Status: cli.StatusFailed}
	}
	return nil
}

// check returns an error if a flag is invalid.
func (o *fuzzOptions) check(sys *catalog.Entry) error {
	switch {
	case o.clock > 0 && o.target.Exec == "" && o.profile == "":
		return errors.New("--fast-clock requires --exec, because it starts servers with another clock")
	case o.target.Addr != "" && !o.remote && !isLocal(o.target.Addr):
		return fmt.Errorf("--addr %s is not a loopback address: fuzzing can crash the server and lose jobs; add --allow-remote to allow it", o.target.Addr)
	}
	return o.target.Check(sys)
}

// isLocal reports whether only this machine can have a server at addr: addr is a Unix socket, or its host resolves only
// to loopback addresses. A host that does not resolve is not local.
func isLocal(addr string) bool {
	if network, _ := transport.Split(addr); network != "tcp" {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // target.Check reports the error
	}
	ips, err := net.LookupIP(host)
	return err == nil && !slices.ContainsFunc(ips, func(ip net.IP) bool { return !ip.IsLoopback() })
}

// config returns the configuration of a run: the seeds, the known failures of the profile, and how to start the server.
// A server that is not embedded also gets the reference server for comparison, and with --fast-clock a second way to
// start it, with a fast clock.
func (o *fuzzOptions) config(cmd *cobra.Command, sys *catalog.Entry) (*fuzz.Config, error) {
	suite, err := conform.Load(sys.Protocol)
	if err != nil {
		return nil, err
	}
	seeds, err := o.readSeeds(cmd, sys, suite)
	if err != nil {
		return nil, err
	}
	var known input.Known
	if o.profile != "" {
		profile, err := conform.LoadProfile(o.profile, suite)
		if err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
		if o.target.Builtin() {
			o.target.Exec = profile.Exec
		}
		known = input.Known(profile.Fuzz)
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1 << 32)
	}
	embedded := []string{"serve", sys.Protocol.Name, "--listen", "127.0.0.1:{port}"}
	cfg := &fuzz.Config{
		Protocol: sys.Protocol, Seeds: seeds, Seed: o.seed, Duration: o.duration, Count: o.count, Workers: o.parallel,
		Timeout: o.timeout, Minimize: o.minimize, First: o.stop, Known: known,
		Check: func(ctx context.Context, t target.Target) error { return o.target.CheckProtocol(ctx, sys, t) },
		Works: func() { cli.TuneMemory(fuzzMemory, fuzzGarbage) },
	}
	cfg.Start = func(ctx context.Context) (target.Target, error) {
		return connect.StartSelf(ctx, o.target.Name(sys), embedded...)
	}
	if !o.target.Builtin() {
		const name = "the built-in reference server"
		cfg.Reference = func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, name, connect.Builtin(sys)) // a process would take much longer to start
		}
	}
	switch {
	case o.target.Addr != "":
		cfg.Fixed = true
		cfg.Start = func(ctx context.Context) (target.Target, error) { return o.target.Start(ctx, sys) }
	case o.target.Exec != "":
		words, err := target.Split(o.target.Exec)
		if err != nil {
			return nil, err
		}
		start := func(ctx context.Context, env []string) (target.Target, error) {
			t, err := target.Command{Args: words, Env: append(exec.ServerEnv(), env...), Ready: connect.ReadyTime,
				Grace: connect.GraceTime}.Start(ctx)
			return o.target.Connect(ctx, sys, t, err)
		}
		cfg.Start = func(ctx context.Context) (target.Target, error) { return start(ctx, nil) }
		if o.clock > 1 {
			env, err := fastClock(o.clock)
			if err != nil {
				return nil, err
			}
			cfg.FastClock = o.clock
			cfg.StartFast = func(ctx context.Context) (target.Target, error) {
				t, err := start(ctx, env)
				if err == nil && !target.Loads(t, "libfaketime") {
					target.Kill(t)
					err = cli.Usage(errors.New("--fast-clock: expected a program that reads the clock with the C library, got one in Go, or one that is statically linked"))
				}
				return t, err
			}
		}
	}
	return cfg, nil
}

// fuzzMemory is the soft memory limit in bytes. Near it, the garbage collector runs more often. The corpus and the logs
// of a long run need a third of it.
const fuzzMemory = 1 << 30

// fuzzGarbage is the GC percentage (GOGC). It is high because inputs produce much garbage, but little memory stays in
// use.
const fuzzGarbage = 800

// fastClock returns the environment variables with which the clock of a program runs the given number of times as fast.
func fastClock(times int) ([]string, error) {
	for _, folder := range []string{"/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib*/faketime"} {
		if found, _ := filepath.Glob(filepath.Join(folder, "libfaketimeMT.so.1")); len(found) > 0 {
			return []string{"LD_PRELOAD=" + found[0], fmt.Sprintf("FAKETIME=+0 x%d", times)}, nil
		}
	}
	return nil, errors.New("--fast-clock: libfaketime is not installed (Debian package libfaketime)")
}

// readSeeds returns fuzzer inputs with the messages of the corpus, of the cases that test a server, and of the files of
// --seed-file.
func (o *fuzzOptions) readSeeds(cmd *cobra.Command, sys *catalog.Entry, suite *conform.Suite) ([]*input.Input, error) {
	var seeds []*input.Input
	all, err := vectors.Read(sys.Protocol)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if c := input.FromScript(v.Script); c != nil {
			seeds = append(seeds, c)
		}
	}
	for _, cs := range suite.Cases {
		if cs.Program == "" && len(cs.Watch) == 0 && cs.Descriptors == 0 {
			if c := input.FromScript(cs.Script); c != nil {
				seeds = append(seeds, c)
			}
		}
	}
	for _, name := range o.seeds {
		more, err := seedsOf(cmd, sys.Protocol, name)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, more...)
	}
	return seeds, nil
}

// seedsOf returns the fuzzer inputs in a file of --seed-file, a capture or transcripts.
func seedsOf(cmd *cobra.Command, p *codec.Protocol, name string) ([]*input.Input, error) {
	if ext := filepath.Ext(name); ext == ".pcap" || ext == ".pcapng" || ext == ".cap" {
		return captureSeeds(p, name)
	}
	_, scripts, err := connect.ReadScripts(cmd, p.Name, name)
	if err != nil {
		return nil, err
	}
	var seeds []*input.Input
	for _, s := range scripts {
		if c := input.FromScript(s); c != nil {
			seeds = append(seeds, c)
		}
	}
	return seeds, nil
}
