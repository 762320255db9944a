package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/internal/prose"
	"jobwire/internal/target"
	"jobwire/loadgen"
)

// killable is a target as a loadgen.Server.
type killable struct{ target.Target }

func (k killable) Dial(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, k.Target) }
func (k killable) Kill()                                      { target.Kill(k.Target) }

// crash runs the scenario crash and writes its report.
func (o *benchOptions) crash(cmd *cobra.Command, sys *catalog.Entry, cfg loadgen.Config) error {
	switch {
	case o.target.addr != "":
		return usage(errors.New("--scenario crash kills and starts the server: use --exec instead of --addr"))
	case o.format != "text" && o.format != "json":
		return usage(fmt.Errorf("--format %s: expected text or json with --scenario crash", o.format))
	case o.hlog != "" || o.hgrm != "" || o.html != "" || o.baseline != "" || o.part.Shares > 0 || len(o.objective) > 0:
		return usage(errors.New("--scenario crash cannot be used with --slo, --baseline, --shares, --hlog, --hgrm or --html"))
	}
	dir, err := os.MkdirTemp("", "jobwire-crash-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tf := o.target
	tf.exec = strings.ReplaceAll(tf.exec, "{dir}", dir)
	stderr := cmd.ErrOrStderr()
	rounds := 0
	k := &loadgen.Crash{Config: cfg, Kills: o.kills, After: o.killAfter, AllowLoss: o.allowLoss,
		Start: func(ctx context.Context) (loadgen.Server, error) {
			t, err := startApart(ctx, sys, tf, false)
			if err != nil {
				return nil, err
			}
			return killable{t}, nil
		},
		Watch: func(c *loadgen.CrashRound) {
			if rounds++; !o.quiet {
				fmt.Fprintf(stderr, "kill %d of %d  %s acknowledged, %s lost\n", rounds, o.kills, prose.Grouped(c.Acknowledged), prose.Grouped(c.Lost))
			}
		}}
	report, err := k.Run(cmd.Context())
	if report == nil {
		return err
	}
	report.Target, report.Environment = o.target.name(sys), loadgen.ReadEnvironment(os.Args)
	write := report.WriteText
	if o.format == "json" {
		write = report.WriteJSON
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if o.out != "" {
		if err := create(o.out, report.WriteJSON); err != nil {
			return err
		}
	}
	if len(report.Rounds) == 0 && errors.Is(err, target.ErrUnreachable) {
		return &exit{exitUnreachable, nil}
	}
	return verdictStatus(report.Verdict)
}
