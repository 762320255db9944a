package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/internal/prose"
	"jobwire/internal/target"
	"jobwire/loadgen"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/machine"
)

// killable is a target as a loadgen.Server.
type killable struct{ target.Target }

func (k killable) Dial(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, k.Target) }
func (k killable) Kill()                                      { target.Kill(k.Target) }

// crashFormats has the functions that write the report of a crash test to standard output, by the value of --format.
var crashFormats = map[string]func(io.Writer, *experiment.CrashReport) error{
	"text": format.CrashText,
	"json": format.JSON[*experiment.CrashReport],
	"html": format.CrashHTML,
}

// crash runs the scenario crash and writes its report.
func (o *benchOptions) crash(cmd *cobra.Command, sys *catalog.Entry, cfg loadgen.Config) error {
	switch {
	case o.target.Addr != "":
		return cli.Usage(errors.New("--scenario " + cfg.Scenario + " kills and starts the server: use --exec instead of --addr"))
	case crashFormats[o.format] == nil:
		return cli.Usage(fmt.Errorf("--format %s: expected text, json or html with --scenario %s", o.format, cfg.Scenario))
	case o.hlog != "" || o.hgrm != "" || o.baseline != "" || o.part.Shares > 0 || len(o.objective) > 0:
		return cli.Usage(errors.New("--scenario " + cfg.Scenario +
			" cannot be used with --slo, --baseline, --shares, --hlog or --hgrm"))
	}
	files, err := o.open()
	if err != nil {
		return cli.Usage(err)
	}
	defer files.discard()
	dir, err := os.MkdirTemp("", "jobwire-crash-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tf := o.target
	tf.Exec = strings.ReplaceAll(tf.Exec, "{dir}", dir)
	stderr := cmd.ErrOrStderr()
	rounds := 0
	k := &experiment.CrashTest{Kills: o.kills, After: o.killAfter, Crash: loadgen.Crash{Config: cfg, AllowLoss: o.allowLoss,
		Start: func(ctx context.Context) (loadgen.Server, error) {
			t, err := startApart(ctx, sys, tf, false)
			if err != nil {
				return nil, err
			}
			return killable{t}, nil
		},
		Waiting: func(missing int64, atMost time.Duration) {
			if !o.quiet {
				fmt.Fprintf(stderr, "kill %d of %d  %s missing; waiting for up to %v (--settle)\n", rounds+1, o.kills,
					prose.Count(missing, "job"), atMost)
			}
		}},
		Watch: func(c *loadgen.CrashRound) {
			if rounds++; !o.quiet {
				fmt.Fprintf(stderr, "kill %d of %d  %s acknowledged, %s lost\n", rounds, o.kills, prose.Grouped(c.Acknowledged),
					prose.Grouped(c.Lost))
			}
		}}
	report, err := k.Run(cmd.Context())
	if report == nil {
		return err
	}
	report.Target, report.Environment = o.target.Name(sys), machine.ReadEnvironment(os.Args)
	if err := errors.Join(crashFormats[o.format](cmd.OutOrStdout(), report),
		save(files, report, format.CrashHTML)); err != nil {
		return err
	}
	if len(report.Rounds) == 0 && errors.Is(err, target.ErrUnreachable) {
		return &cli.Error{Status: cli.StatusUnreachable}
	}
	return verdictStatus(report.Verdict)
}
