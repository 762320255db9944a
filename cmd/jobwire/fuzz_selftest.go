package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/codec/transcript"
	"jobwire/fuzz"
	"jobwire/fuzz/faults"
	"jobwire/internal/target"
	"jobwire/internal/version"
)

// Limits of the self-test, for each server. The run with the faultless server is also limited to a number of executions,
// because the number per second depends on the machine.
const (
	faultFor        = 10 * time.Minute // a fault that is not found within this time is missed
	faultlessWithin = 10_000
	faultlessFor    = 60 * time.Second
	smallEnough     = 10 // most lines of a transcript that reproduces a fault
)

// proof is the result of the self-test for one injected fault, or for the faultless server.
type proof struct {
	Name     string  `json:"name"`
	Injected string  `json:"injected"`
	About    string  `json:"about,omitempty"`
	Oracle   string  `json:"oracle,omitempty"` // oracle that found the fault
	Text     string  `json:"text,omitempty"`
	Lines    int     `json:"lines,omitempty"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"executions_per_second"`
	Plays    bool    `json:"plays"`
	Passed   bool    `json:"passed"`
	Seed     uint64  `json:"seed"`
	version.Head
	wire []byte
}

// newFuzzSelfTest returns the command that tests the fuzzer.
func newFuzzSelfTest() *cobra.Command {
	o := &fuzzOptions{timeout: time.Second, minimize: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "self-test PROTOCOL [flags]",
		Short: "Check that fuzz finds injected faults",
	}
	onProtocol(cmd, o.runSelfTest)
	f := cmd.Flags()
	f.StringArrayVar(&o.run, "run", nil, "only the faults whose name matches `GLOB`; repeatable")
	cmd.RegisterFlagCompletionFunc("run", completed(ofProtocol(injectedChoices)))
	o.addRun(cmd)
	f.Lookup("duration").Usage = "length of the run with the server without a fault"
	f.Lookup("count").Usage = "number of message sequences to send to the server without a fault"
	f.Uint64Var(&o.seed, "seed", 0, "random seed (0: choose one)")
	formatFlag(cmd, &o.format, "text", "json")
	o.addVerbose(cmd)
	groupFlags(cmd, fuzzFlagGroups)
	return cmd
}

// runSelfTest fuzzes servers with injected faults, each of which must be found, and a server without a fault, for which
// there must be no finding. With --run it fuzzes only the selected servers with faults.
func (o *fuzzOptions) runSelfTest(cmd *cobra.Command, sys *catalog.Entry) error {
	if err := o.check(sys); err != nil {
		return usage(err)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(fuzzMemory))
	defer debug.SetGCPercent(debug.SetGCPercent(fuzzGarbage))
	if o.count > 0 && !cmd.Flags().Changed("duration") {
		o.duration = 0
	}
	servers := []faults.Fault{faults.Faultless(sys.Protocol.Name)}
	for _, f := range faults.All() {
		if f.Protocol == sys.Protocol.Name && o.selected(f.Name) {
			servers = append(servers, f)
		}
	}
	if len(servers) == 1 && len(o.run) > 0 {
		return usage(fmt.Errorf("--run: no injected fault of %s matches; got %q", sys.Protocol.Title, o.run))
	}
	if len(o.run) > 0 {
		servers = servers[1:]
	}
	progress := newProgress(cmd.ErrOrStderr(), len(servers))
	failed, start := 0, time.Now()
	for _, f := range servers {
		if cmd.Context().Err() != nil {
			return &exit{exitFailed, nil}
		}
		p, err := o.proveOne(cmd, sys, f)
		if err != nil {
			return err
		}
		progress.step()
		progress.clear()
		if !p.Passed {
			failed++
		}
		if o.format == "json" {
			json.NewEncoder(cmd.OutOrStdout()).Encode(p)
			continue
		}
		o.printProof(cmd, p)
	}
	if o.format == "text" {
		fmt.Fprintf(cmd.OutOrStdout(), "\n%s passed, %d failed in %.0f s; random seed %d; jobwire %s\n", counted(len(servers)-failed, "server"), failed, time.Since(start).Seconds(), o.seed, version.Get())
	}
	if failed > 0 {
		return &exit{exitFailed, nil}
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

func (o *fuzzOptions) proveOne(cmd *cobra.Command, sys *catalog.Entry, f faults.Fault) (*proof, error) {
	cfg, err := o.config(nil, sys)
	if err != nil {
		return nil, err
	}
	args := []string{"fuzz", "serve", sys.Protocol.Name, f.Name, "--listen", "127.0.0.1:{port}"}
	cfg.Reference, cfg.Start = cfg.Start, func(ctx context.Context) (target.Target, error) { return startSelf(ctx, f.Name, args...) }
	cfg.First, cfg.Count, cfg.Duration, cfg.Minimize = true, 0, faultFor, 30*time.Second
	cfg.Timeout = time.Second
	faultless := f.Edit == nil
	if faultless {
		cfg.Count, cfg.Duration = faultlessWithin, faultlessFor
		if o.count > 0 || o.duration > time.Minute {
			cfg.Count, cfg.Duration = o.count, o.duration
		}
	}
	p := &proof{Name: f.Name, Injected: f.Oracle, About: f.About, Passed: faultless, Seed: o.seed, Head: version.NewHead()}
	cfg.Found = func(fd *fuzz.Finding) {
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
		cfg.Note = func(line string) { fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %s\n", f.Name, oneLine(line)) }
	}
	stats, err := fuzz.Run(cmd.Context(), *cfg)
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	p.Seconds = stats.Elapsed.Seconds()
	p.Rate = float64(stats.Executions) / p.Seconds
	return p, nil
}

// lines counts the steps of a script.
func lines(s *transcript.Script) int { return len(s.Steps) }

func (o *fuzzOptions) printProof(cmd *cobra.Command, p *proof) {
	w := cmd.OutOrStdout()
	switch {
	case p.Injected == "" && p.Oracle == "":
		fmt.Fprintf(w, "passed  server without a fault: no findings in %.0f s, %.0f executions/s\n", p.Seconds, p.Rate)
	case p.Oracle == "":
		fmt.Fprintf(w, "MISSED  injected fault %s (%s): no findings in %.0f s, %.0f executions/s\n        %s\n", p.Name, p.Injected, p.Seconds, p.Rate, p.About)
	case p.Injected == "":
		fmt.Fprintf(w, "FAILED  server without a fault: expected no findings, got %s\n", oneLine(p.Text))
	default:
		mark := "found "
		if !p.Passed {
			mark = "FAILED"
		}
		fmt.Fprintf(w, "%s  %s (%s) in %.1f s; transcript of %s\n        %s\n        %s\n", mark, p.Name, p.Injected, p.Seconds, counted(p.Lines, "line"), p.About, oneLine(p.Text))
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
	onProtocolAnd(cmd, ofProtocol(injectedChoices), func(cmd *cobra.Command, sys *catalog.Entry, args []string) error {
		if len(args) != 1 {
			return usage(fmt.Errorf("expected the name of one injected fault, got %d", len(args)))
		}
		fault := faults.Named(args[0])
		if none := faults.Faultless(sys.Protocol.Name); args[0] == none.Name {
			fault = &none
		}
		if fault == nil || fault.Protocol != sys.Protocol.Name {
			return usage(fmt.Errorf("%s has no injected fault %q", sys.Protocol.Title, args[0]))
		}
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			return usage(fmt.Errorf("cannot listen: %w", err))
		}
		return fault.Serve(cmd.Context(), ln)
	})
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "`HOST:PORT` to listen on")
	return cmd
}
