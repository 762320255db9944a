package fuzzcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec/transcript"
	"jobwire/fuzz"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
	"jobwire/internal/version"
	"jobwire/internal/virtualtime"
)

// Limits of the self-test, for each server.
const (
	faultWithin     = 1_000_000 // executions; a fault that is not found within them is missed
	faultlessWithin = 10_000    // executions
	smallEnough     = 10        // most lines of a transcript that reproduces a fault

	// virtualMinimize is the time limit for minimizing an input in virtual time, in which pauses take no time.
	virtualMinimize = time.Minute

	// processFor is the time limit for a fault that needs a process.
	processFor = 10 * time.Minute

	// processTimeout is the timeout of a reply of a server in a process. It is long, because these servers do not hang,
	// but may be slow on a busy machine.
	processTimeout = 10 * time.Second
)

// proof is the result of the self-test for one injected fault, or for the faultless server.
type proof struct {
	Name     string  `json:"name"`
	Injected string  `json:"injected"`
	About    string  `json:"about,omitempty"`
	Oracle   string  `json:"oracle,omitempty"` // oracle that found the fault
	Text     string  `json:"text,omitempty"`
	Lines    int     `json:"lines,omitempty"`
	Process  bool    `json:"process"` // the server ran in a process of its own
	Count    int64   `json:"executions"`
	Seconds  float64 `json:"seconds"`
	Plays    bool    `json:"plays"`
	Passed   bool    `json:"passed"`
	Seed     uint64  `json:"seed"`
	version.Head
	wire []byte
}

// newFuzzSelfTest returns the command that tests the fuzzer.
func newFuzzSelfTest() *cobra.Command {
	o := &fuzzOptions{timeout: time.Second, minimize: 30 * time.Second, parallel: 4}
	cmd := &cobra.Command{
		Use:   "self-test PROTOCOL [flags]",
		Short: "Check that fuzz finds injected faults",
	}
	connect.ProtocolCommand(cmd, o.runSelfTest)
	f := cmd.Flags()
	f.StringArrayVar(&o.run, "run", nil,
		"only the faults whose name matches `GLOB`; \"none\" is the server without a fault; repeatable")
	cmd.RegisterFlagCompletionFunc("run", connect.Completed(connect.ProtocolCompleter(injectedChoices)))
	f.BoolVar(&o.inMemory, "in-memory", false,
		"only servers that run in memory and in virtual time, without those that need a process")
	f.Int64Var(&o.count, "count", faultlessWithin, "number of message sequences to send to a server without a fault")
	f.Uint64Var(&o.seed, "seed", 0, "random seed (0: choose one)")
	cli.FormatFlag(cmd, &o.format, "text", "json")
	o.addVerbose(cmd)
	cli.GroupFlags(cmd, fuzzFlagGroups)
	return cmd
}

// runSelfTest fuzzes servers with injected faults, each of which must be found, and servers without a fault, for which
// there must be no finding. With --run it fuzzes only the selected servers. Servers run in memory and in
// virtual time, unless their faults need a process.
func (o *fuzzOptions) runSelfTest(cmd *cobra.Command, sys *catalog.Entry) error {
	if err := o.check(sys); err != nil {
		return cli.Usage(err)
	}
	cli.TuneMemory(fuzzMemory, fuzzGarbage)
	var servers [2][]faults.Fault // in memory, and in processes
	if none := faults.Faultless(sys.Protocol.Name); o.selected(none.Name) {
		servers[0] = []faults.Fault{none}
		servers[1] = servers[0]
	}
	for _, f := range faults.All() {
		if f.Protocol == sys.Protocol.Name && o.selected(f.Name) {
			kind := 0
			if f.NeedsProcess() {
				kind = 1
			}
			servers[kind] = append(servers[kind], f)
		}
	}
	if o.inMemory {
		servers[1] = nil
	}
	n := len(servers[0]) + len(servers[1])
	if n == 0 {
		return cli.Usage(fmt.Errorf("--run: no injected fault of %s matches; got %q", sys.Protocol.Title, o.run))
	}
	cfg, err := o.config(nil, sys)
	if err != nil {
		return err
	}
	failed, start := 0, time.Now()
	progress := cli.NewProgress(cmd.ErrOrStderr(), n)
	var mu sync.Mutex // of the output
	prove := func(f faults.Fault, process bool) {
		p, proveErr := o.proveOne(cmd, sys, *cfg, f, process)
		mu.Lock()
		defer mu.Unlock()
		if err = errors.Join(err, proveErr); err != nil || cmd.Context().Err() != nil {
			return
		}
		progress.Step()
		progress.Clear()
		if !p.Passed {
			failed++
		}
		if o.format == "json" {
			json.NewEncoder(cmd.OutOrStdout()).Encode(p)
			return
		}
		o.printProof(cmd, p)
	}
	direct := func(do func()) { do() } // prove has a bubble for the server alone
	interrupted := cli.UntilInterrupt(cmd.Context(), func() error {
		virtualtime.Each(cmd.Context(), len(servers[0]), direct, func(i int) { prove(servers[0][i], false) })
		return nil
	})
	if interrupted != nil {
		return interrupted
	}
	for _, f := range servers[1] {
		prove(f, true)
	}
	switch {
	case err != nil:
		return err
	case cmd.Context().Err() != nil:
		return cli.ErrSelfTest
	case o.format == "text":
		fmt.Fprintf(cmd.OutOrStdout(), "\n%s passed, %d failed in %.0f s; random seed %d; jobwire %s\n",
			cli.Counted(n-failed, "server"), failed, time.Since(start).Seconds(), o.seed, version.Get())
	}
	if failed > 0 {
		return &cli.Error{Status: cli.StatusFailed}
	}
	return nil
}

func (o *fuzzOptions) selected(name string) bool {
	for _, glob := range o.run {
		if ok, _ := path.Match(glob, name); ok {
			return true
		}
	}
	return len(o.run) == 0
}

// proveOne fuzzes one server.
func (o *fuzzOptions) proveOne(cmd *cobra.Command, sys *catalog.Entry, cfg fuzz.Config, f faults.Fault,
	process bool) (p *proof, err error) {
	faultless := f.Script == ""
	cfg.First, cfg.Count, cfg.Duration = true, faultWithin, 0
	if faultless {
		cfg.Count = o.count
	}
	p = &proof{
		Name: f.Name, Injected: f.Oracle, About: f.About, Process: process,
		Passed: faultless, Seed: o.seed, Head: version.NewHead(),
	}
	cfg.Found = func(fd *triage.Finding) {
		if !fd.Reproduced && p.Oracle != "" {
			return
		}
		p.Oracle, p.Text, p.Plays, p.wire = fd.Fault.Oracle, fd.Fault.String(), fd.Plays, body(fd)
		if fd.Script != nil {
			p.Lines = lines(fd.Script)
		}
		p.Passed = !faultless && p.Plays && p.Lines <= smallEnough
	}
	if o.verbose {
		cfg.Note = func(line string) { fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %s\n", f.Name, cli.OneLine(line)) }
	}
	run := func(ctx context.Context) {
		stats, runErr := fuzz.Run(ctx, cfg)
		if err = runErr; errors.Is(err, context.Canceled) {
			err = nil
		}
		p.Count = stats.Executions
	}
	begin := time.Now()
	start := func(f faults.Fault) func(context.Context) (target.Target, error) {
		return func(ctx context.Context) (target.Target, error) { return target.InMemory(ctx, f.Name, f.Serve) }
	}
	cfg.Reference = start(faults.Faultless(sys.Protocol.Name))
	if process {
		cfg.Timeout, cfg.Duration = processTimeout, processFor
		args := []string{"fuzz", "serve", sys.Protocol.Name, f.Name, "--listen", "127.0.0.1:{port}"}
		cfg.Start = func(ctx context.Context) (target.Target, error) {
			return connect.StartSelf(ctx, f.Name, args...)
		}
		run(cmd.Context())
	} else {
		cfg.Sequential, cfg.Start, cfg.Minimize = true, start(f), virtualMinimize
		virtualtime.Run(func() {
			virtualtime.Forward()
			run(context.WithoutCancel(cmd.Context())) // nothing in the bubble waits outside of it
		})
	}
	p.Seconds = time.Since(begin).Seconds()
	return p, err
}

// lines counts the steps of a script.
func lines(s *transcript.Script) int { return len(s.Steps) }

// printProof prints the result for one injected fault: that the fuzzer found it, missed it, or made no transcript that
// is short enough and reproduces it. For the server without a fault every finding is a failure.
func (o *fuzzOptions) printProof(cmd *cobra.Command, p *proof) {
	w := cmd.OutOrStdout()
	switch {
	case p.Injected == "" && p.Oracle == "":
		fmt.Fprintf(w, "passed  server without a fault: no findings in %s, %.1f s\n", cli.Counted(int(p.Count), "execution"),
			p.Seconds)
	case p.Oracle == "":
		fmt.Fprintf(w, "MISSED  injected fault %s (%s): no findings in %s, %.1f s\n        %s\n", p.Name, p.Injected,
			cli.Counted(int(p.Count), "execution"), p.Seconds, p.About)
	case p.Injected == "":
		fmt.Fprintf(w, "FAILED  server without a fault: expected no findings, got %s\n", cli.OneLine(p.Text))
	default:
		mark := "found "
		if !p.Passed {
			mark = "FAILED"
		}
		fmt.Fprintf(w, "%s  %s (%s) in %s, %.1f s; transcript of %s\n        %s\n        %s\n", mark, p.Name, p.Injected,
			cli.Counted(int(p.Count), "execution"), p.Seconds, cli.Counted(p.Lines, "line"), p.About, cli.OneLine(p.Text))
		if !p.Plays {
			fmt.Fprintf(w, "        'jobwire play' does not show the fault with this transcript\n")
		} else if p.Lines > smallEnough {
			fmt.Fprintf(w, "        expected a transcript of at most %d lines\n", smallEnough)
		}
	}
	if o.verbose || !p.Passed {
		fmt.Fprintf(w, "%s\n", p.wire)
	}
}

// newFuzzServe returns the command with which the self-test starts its servers. Help does not list it: serve has faults
// for users.
func newFuzzServe() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:    "serve PROTOCOL FAULT [flags]",
		Short:  "Run the server with an injected fault of the self-test",
		Hidden: true,
	}
	connect.ProtocolCommandWith(cmd, connect.ProtocolCompleter(injectedChoices),
		func(cmd *cobra.Command, sys *catalog.Entry, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("expected the name of one injected fault, got %d", len(args)))
			}
			fault := faults.Named(args[0])
			if none := faults.Faultless(sys.Protocol.Name); args[0] == none.Name {
				fault = &none
			}
			if fault == nil || fault.Protocol != sys.Protocol.Name {
				return cli.Usage(fmt.Errorf("%s has no injected fault %q", sys.Protocol.Title, args[0]))
			}
			ln, err := net.Listen("tcp", listen)
			if err != nil {
				return cli.Usage(fmt.Errorf("cannot listen: %w", err))
			}
			return fault.Serve(cmd.Context(), ln)
		})
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "`HOST:PORT` to listen on")
	return cmd
}

// injectedChoices returns the faults that 'jobwire fuzz self-test' injects.
func injectedChoices(e *catalog.Entry) cli.Choices {
	var c cli.Choices
	c.Add(faults.Faultless(e.Protocol.Name).Name, "The server without a fault.")
	for _, f := range faults.All() {
		if f.Protocol == e.Protocol.Name {
			c.Add(f.Name, f.About)
		}
	}
	return c
}
