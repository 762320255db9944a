package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/fuzz"
	"jobwire/fuzz/planted"
	"jobwire/internal/target"
)

type fuzzOptions struct {
	target   targetFlags
	seed     uint64
	duration time.Duration
	count    int64
	workers  int
	patience time.Duration
	minimise time.Duration
	known    string
	out      string
	state    string
	seeds    []string
	first    bool
	remote   bool
	format   string
	selfTest bool
	run      []string
	verbose  bool
	planted  string // serve this fault instead of fuzzing
	listen   string
}

func newFuzz() *cobra.Command {
	o := &fuzzOptions{}
	cmd := &cobra.Command{
		Use:   "fuzz PROTOCOL [flags]",
		Short: "Look for conversations that break a server",
		Long: `fuzz holds thousands of conversations a second with a server, each of several peers:
changed ones of jobwire's cases and vectors, and of what led somewhere new. It watches the
server's process, what it prints, its memory, descriptors and processor time, the rules
and the laws of what it answers, and whether others are disturbed.

What it objects to is performed again on fresh servers, made as small as it gets, and
saved: as a transcript that 'jobwire play' repeats against any server, and that
passes where the fault is gone; as a capture; as the bytes for a Go fuzz target.
The same fault is told once. Nothing is told that does not show again.`,
		Example: `  jobwire fuzz gearman
  jobwire fuzz gearman --exec '/usr/sbin/gearmand -L 127.0.0.1 -p {port} -t 1 -l none' --duration 20m
  jobwire fuzz gearman --exec '/usr/sbin/gearmand -L 127.0.0.1 -p {port} -t 1 -l none' --known gearmand
  jobwire fuzz beanstalk --exec 'beanstalkd -l 127.0.0.1 -p {port}' --state beanstalkd.fuzz
  jobwire fuzz gearman --self-test`,
		Args:      protocolArg,
		ValidArgs: systemNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.target.add(cmd)
	f.Uint64Var(&o.seed, "seed", 0, "where chance begins; 0 is somewhere else each time")
	f.DurationVar(&o.duration, "duration", time.Minute, "how long, but for examining what shows last; 0 is until --count, or an interruption")
	f.Int64Var(&o.count, "count", 0, "how many conversations, but those that it begins with at least; 0 is no bound")
	f.IntVar(&o.workers, "workers", 20, "conversations at a time")
	f.DurationVar(&o.patience, "timeout", 2*time.Second, "how long an answer may take")
	f.DurationVar(&o.minimise, "minimise", 30*time.Second, "how long a finding may be made smaller")
	f.StringVar(&o.known, "known", "", "go past what docs/findings.md tells of this `PROFILE`")
	f.StringVarP(&o.out, "out", "o", "findings", "save findings in this `FOLDER`")
	f.StringVar(&o.state, "state", "", "keep in this `FOLDER` what led somewhere new, and what was found, and go on from there")
	f.StringArrayVar(&o.seeds, "seed-file", nil, "begin with this transcript or capture too; may be repeated")
	f.BoolVar(&o.first, "first", false, "stop at the first finding")
	f.BoolVar(&o.remote, "yes-not-loopback", false, "fuzz a server on another machine, which may break")
	f.StringVar(&o.format, "format", "text", "what to write to standard output: text, or json, an object a line")
	f.BoolVar(&o.selfTest, "self-test", false, "fuzz servers with planted faults, which must all be found and told in a few lines that play, and one without, of which nothing may be")
	f.StringArrayVar(&o.run, "run", nil, "of a self-test only faults whose name matches the `GLOB`; may be repeated")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "tell what became of each suspicion, too")
	f.StringVar(&o.planted, "planted", "", "")
	f.StringVar(&o.listen, "listen", "", "")
	f.MarkHidden("planted")
	f.MarkHidden("listen")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *fuzzOptions) execute(cmd *cobra.Command, name string) error {
	sys, err := systemNamed(name)
	if err != nil {
		return err
	}
	if o.planted != "" {
		return o.servePlanted(cmd.Context(), sys)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(fuzzMemory))
	defer debug.SetGCPercent(debug.SetGCPercent(fuzzGarbage))
	if err := o.check(cmd); err != nil {
		return usage(err)
	}
	if o.selfTest {
		return o.prove(cmd, sys)
	}
	if err := o.target.check(); err != nil {
		return usage(err)
	}
	cfg, err := o.config(cmd, sys)
	if err != nil {
		return usage(err)
	}
	out, err := newFuzzOutput(cmd, sys, o)
	if err != nil {
		return usage(err)
	}
	cfg.KnownAs = out.known
	cfg.Found, cfg.Progress, cfg.Keep = out.found, out.progress, out.keep
	if o.verbose {
		cfg.Log = out.log
	}
	out.begin(cfg)
	stats, err := fuzz.Run(cmd.Context(), *cfg)
	if werr := out.end(stats); werr != nil {
		return werr
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if stats.Findings > 0 {
		return &exit{exitFellShort, err}
	}
	return err
}

func (o *fuzzOptions) check(cmd *cobra.Command) error {
	switch {
	case o.workers < 1 || o.patience <= 0 || o.duration < 0 || o.count < 0 || o.minimise < 0:
		return errors.New("--workers and --timeout must be above zero, and nothing below it")
	case o.format != "text" && o.format != "json":
		return fmt.Errorf("--format %q: it is text or json", o.format)
	case o.selfTest && (o.target != targetFlags{} || o.known != "" || o.state != ""):
		return errors.New("--self-test brings its own servers: leave --addr, --exec, --known and --state away")
	case len(o.run) > 0 && !o.selfTest:
		return errors.New("--run is for --self-test")
	case o.target.addr != "" && !o.remote && !isLoopback(o.target.addr):
		return fmt.Errorf("%s is not on this machine: fuzzing breaks servers and loses jobs; --yes-not-loopback does it nevertheless", o.target.addr)
	}
	if _, ok := fuzz.Profiles[o.known]; o.known != "" && !ok {
		var names []string
		for n := range fuzz.Profiles {
			names = append(names, n)
		}
		slices.Sort(names)
		return fmt.Errorf("--known %q: there is %s", o.known, strings.Join(names, ", "))
	}
	return nil
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // what is wrong with it is told elsewhere
	}
	ips, err := net.LookupIP(host)
	return err == nil && !slices.ContainsFunc(ips, func(ip net.IP) bool { return !ip.IsLoopback() })
}

func (o *fuzzOptions) config(cmd *cobra.Command, sys *system) (*fuzz.Config, error) {
	seeds, err := o.readSeeds(cmd, sys)
	if err != nil {
		return nil, err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1 << 32)
	}
	embedded := []string{"serve", sys.protocol.Name, "--listen", "127.0.0.1:{port}"}
	cfg := &fuzz.Config{
		Protocol: sys.protocol, Seeds: seeds, Seed: o.seed, Duration: o.duration, Count: o.count, Workers: o.workers,
		Patience: o.patience, Minimise: o.minimise, First: o.first, Known: fuzz.Profiles[o.known],
		Start: func(ctx context.Context) (target.Target, error) {
			return startSelf(ctx, o.target.name(sys), embedded...)
		},
	}
	if o.selfTest || o.target != (targetFlags{}) {
		cfg.Reference = func(ctx context.Context) (target.Target, error) { return startSelf(ctx, "the reference", embedded...) }
	}
	switch {
	case o.target.addr != "":
		cfg.Fixed = true
		cfg.Start = func(context.Context) (target.Target, error) { return target.Address(o.target.addr) }
	case o.target.exec != "":
		words, err := target.Split(o.target.exec)
		if err != nil {
			return nil, err
		}
		cfg.Start = func(ctx context.Context) (target.Target, error) {
			return target.Command{Args: words, Ready: fuzzReady, Grace: fuzzGrace}.Start(ctx)
		}
	}
	return cfg, nil
}

// fuzzMemory is what the fuzzer itself is to get by with, in bytes.
const fuzzMemory = 256 << 20

// fuzzGarbage is how much garbage there may be before it is collected, in percent of what is used:
// conversations leave much, and use little.
const fuzzGarbage = 800

// fuzzReady is how long a server may take to start, on a machine that the fuzzer keeps busy.
const fuzzReady = 30 * time.Second

// fuzzGrace is how long a server may take to end: what it would save is of no interest.
const fuzzGrace = 20 * time.Millisecond

// startSelf starts this program as a server in a process of its own.
func startSelf(ctx context.Context, name string, args ...string) (target.Target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return target.Command{Name: name, Args: append([]string{self}, args...), Ready: fuzzReady, Grace: fuzzGrace}.Start(ctx)
}

// readSeeds makes conversations of the corpus, of the cases, and of the files named.
func (o *fuzzOptions) readSeeds(cmd *cobra.Command, sys *system) ([]*fuzz.Conv, error) {
	var seeds []*fuzz.Conv
	vectors, err := readVectors(sys.protocol)
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if c := fuzz.FromScript(v.script); c != nil {
			seeds = append(seeds, c)
		}
	}
	suite, err := conform.Load(sys.protocol)
	if err != nil {
		return nil, err
	}
	for _, cs := range suite.Cases {
		if cs.Program == "" {
			if c := fuzz.FromScript(cs.Script); c != nil {
				seeds = append(seeds, c)
			}
		}
	}
	for _, name := range o.seeds {
		more, err := seedsOf(cmd, sys.protocol, name)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, more...)
	}
	return seeds, nil
}

func seedsOf(cmd *cobra.Command, p *codec.Protocol, name string) ([]*fuzz.Conv, error) {
	if ext := filepath.Ext(name); ext == ".pcap" || ext == ".pcapng" || ext == ".cap" {
		return captureSeeds(p, name)
	}
	_, scripts, err := readScripts(cmd, p.Name, name)
	if err != nil {
		return nil, err
	}
	var seeds []*fuzz.Conv
	for _, s := range scripts {
		if c := fuzz.FromScript(s); c != nil {
			seeds = append(seeds, c)
		}
	}
	return seeds, nil
}

// servePlanted is what the self-test starts.
func (o *fuzzOptions) servePlanted(ctx context.Context, sys *system) error {
	fault := planted.Faultless(sys.protocol.Name)
	if o.planted != "none" {
		f := planted.Named(o.planted)
		if f == nil || f.Protocol != sys.protocol.Name {
			return usage(fmt.Errorf("no fault %q is planted", o.planted))
		}
		fault = *f
	}
	ln, err := net.Listen("tcp", o.listen)
	if err != nil {
		return usage(fmt.Errorf("cannot listen: %w", err))
	}
	return fault.Serve(ctx, ln)
}
