package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/codec/vectors"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/play"
)

// newPlayCase returns the command that makes a test case of a transcript.
func newPlayCase() *cobra.Command {
	o := &playOptions{}
	cmd := &cobra.Command{
		Use:   "case NAME FILE [flags]",
		Short: "Convert a recorded transcript to a case of 'jobwire conform'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("expected the name of the case and one transcript, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.writeCase(cmd, args[0], args[1]) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return cli.FilesNamed("wire")(cmd, args, typed)
		},
	}
	o.target.Add(cmd)
	o.addTranscript(cmd)
	cli.GroupFlags(cmd, playFlagGroups)
	return cmd
}

// writeCase plays a transcript through the audit proxy, and prints it as a test case. The case lists the rules that the
// audit checked in the replies of the server.
func (o *playOptions) writeCase(cmd *cobra.Command, name, file string) error {
	sys, scripts, waive, err := o.read(cmd, []string{file})
	if err != nil {
		return err
	}
	if len(scripts) != 1 {
		return cli.Usage(fmt.Errorf("%s: expected one transcript, got %d", file, len(scripts)))
	}
	s := scripts[0]
	t, err := o.target.Start(cmd.Context(), sys)
	if err != nil {
		return err
	}
	defer t.Stop()
	limits := codec.Options{Waive: waive}
	a := audit.New(audit.Options{Protocol: sys.Protocol, Codec: limits, Server: true})
	proxy := &audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, t) }}
	front, err := target.Func(cmd.Context(), t.String(), proxy.Serve)
	if err != nil {
		return err
	}
	defer front.Stop()
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, front) }
	r := play.Peers(cmd.Context(), s, dial, play.Options{Timeout: o.timeout, Exact: o.exact, Codec: limits})
	if r.Failure != nil {
		if err := o.otherServer(cmd.Context(), sys, t, s, r); err != nil {
			return err
		}
		return &cli.Error{Status: o.report(cmd, s, r, play.ReportOptions{}, false)}
	}
	report := a.Report()
	for i := range report.BrokenRules {
		if b := &report.BrokenRules[i]; b.By == codec.Server {
			return &cli.Error{Status: cli.StatusFailed, Err: fmt.Errorf("the replies match the transcript, but the server breaks rule %s: for details, run 'jobwire audit'", b.Rule.ID)}
		}
	}
	format, err := vectors.Rules(sys.Protocol)
	if err != nil {
		return err
	}
	rules := report.ServerRules(format)
	if len(rules) == 0 {
		return &cli.Error{Status: cli.StatusFailed, Err: errors.New("no rule applies to a message of the server in this transcript, so a test case of it would test nothing")}
	}
	about := cmp.Or(s.Value("about"), fmt.Sprintf("The messages recorded in %s.", filepath.Base(s.File)))
	text, err := conform.CaseText(s, name, about, rules)
	if err != nil {
		return cli.Usage(err)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
