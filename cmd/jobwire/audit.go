package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/refserver"
)

type auditOptions struct {
	target   connect.TargetFlags
	listen   connect.ListenFlags
	program  string
	duration time.Duration
	format   string
	scripts  string
	pcap     string
	waive    []string
	levels   []string
	hex      bool
	color    cli.ColorFlag
}

// settleTime is how long the proxy waits for the connections of a program that has exited to close.
const settleTime = time.Second

// newAudit returns the command "audit", which runs a proxy between clients or workers and a server and checks their
// traffic, with its subcommands.
func newAudit() *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit PROTOCOL [flags]",
		Short: "Check the traffic of clients and workers against the protocol",
	}
	connect.ProtocolCommand(cmd, o.execute)
	f := cmd.Flags()
	o.target.Add(cmd)
	f.StringVar(&o.program, "program", "", "start the client or worker with `COMMAND`, in which {addr}, {host} and {port} stand for the address of the proxy")
	o.listen.Add(cmd, "listen", "`ADDRESS` on which the proxy listens: HOST:PORT or unix:PATH (port 0: choose a free port)")
	f.DurationVar(&o.duration, "duration", 0, "length of the audit, such as 1m (0: no limit)")
	f.StringVar(&o.pcap, "pcap", "", "write a capture of the traffic to `FILE`, with a packet comment for each violation")
	o.addReport(cmd, "`DIR` for transcripts of the traffic", "github", "json")
	cli.GroupFlags(cmd, auditFlagGroups)
	cmd.AddCommand(newAuditStress(), newAuditProfiles(), newAuditSelfTest())
	return cmd
}

// auditFlagGroups are the groups in which the help lists the flags of audit and audit stress.
var auditFlagGroups = []cli.FlagGroup{
	{Title: "Server", Names: "addr exec"},
	connect.ConnectionGroup,
	{Title: "Client or worker", Names: "program listen listen-cert listen-key listen-client-ca duration timeout"},
	{Title: "Report", Names: "format transcripts pcap waive level hex color quiet"},
}

// addReport adds the flags about violations and the report. formats are the values of --format besides text.
func (o *auditOptions) addReport(cmd *cobra.Command, transcripts string, formats ...string) {
	f := cmd.Flags()
	cli.FormatFlag(cmd, &o.format, append([]string{"text"}, formats...)...)
	f.StringVar(&o.scripts, "transcripts", "", transcripts)
	f.StringArrayVar(&o.waive, "waive", nil, "`RULE` whose violations are not reported; repeatable")
	f.StringSliceVar(&o.levels, "level", nil,
		"`LEVEL` of the rules whose violations fail; repeatable (default: MUST, DE-FACTO, EXTENSION and RESOURCE)")
	f.BoolVar(&o.hex, "hex", false, "show bytes in hex for text protocols too")
	o.color.Add(cmd)
}

// check checks the flags that audit and audit stress have in common, and returns the waived rules and whether to use
// color.
func (o *auditOptions) check(cmd *cobra.Command, sys *catalog.Entry) (waive []codec.RuleID, color bool, err error) {
	if err := o.target.Check(sys); err != nil {
		return nil, false, err
	}
	if waive, err = connect.RuleIDs(sys.Protocol, o.waive); err != nil {
		return nil, false, err
	}
	for _, l := range o.levels {
		if !slices.Contains(codec.Levels, codec.Level(l)) {
			return nil, false, cli.Usage(fmt.Errorf("--level: unknown level %q: expected one of %s", l,
				strings.Trim(fmt.Sprint(codec.Levels), "[]")))
		}
	}
	return waive, o.color.On(cmd.OutOrStdout()), nil
}

// failing returns the levels whose violations fail; nil is the default.
func (o *auditOptions) failing() (all audit.Levels) {
	for _, l := range o.levels {
		all = append(all, codec.Level(l))
	}
	return all
}

// execute runs the proxy until --duration ends, the command of --program exits or the user interrupts it, and prints
// violations as they occur. Then it writes the report and the files of --pcap and the transcripts, and returns an error
// whose exit status states the outcome.
func (o *auditOptions) execute(cmd *cobra.Command, sys *catalog.Entry) error {
	cli.TuneMemory(cli.SoftMemory, cli.GCPercent)
	p := sys.Protocol
	waive, color, err := o.check(cmd, sys)
	if err != nil {
		return err
	}
	var words []string
	if o.program != "" {
		if words, err = target.Split(o.program); err != nil {
			return cli.Usage(err)
		}
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	o.target.Conn.Warnings = cmd.ErrOrStderr()
	srv, err := o.server(ctx, sys, waive)
	if err != nil {
		return err
	}
	defer srv.Stop()
	ln, err := o.listen.Listen(o.address(p))
	if err != nil {
		return err
	}
	if o.duration > 0 {
		defer time.AfterFunc(o.duration, cancel).Stop()
	}
	live := &liveFindings{protocol: p, w: cmd.ErrOrStderr()}
	if live.color = color && cli.IsTerminal(live.w); live.color {
		cli.AllowColors(live.w)
	}
	found := live.show
	var rec *recording
	if o.scripts != "" || o.pcap != "" {
		if rec, err = record(p, o.pcap); err != nil {
			ln.Close()
			return cli.Usage(err)
		}
		defer rec.Discard()
		found = func(f *audit.Finding) {
			live.show(f)
			rec.Note(f)
		}
	}
	a := audit.New(audit.Options{Protocol: p, Codec: codec.Options{Waive: waive}, Server: !o.target.Builtin(),
		Levels: o.failing(), Found: found})
	proxy := &audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, srv) }}
	if rec != nil {
		proxy.Tap = rec.Add
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: auditing %s on %s, forwarding to %s; press Ctrl-C to stop\n", p.Title,
		transport.Name(ln), srv)
	var run sync.WaitGroup
	var ended error
	if words != nil {
		run.Go(func() {
			defer cancel()
			ended = runProgram(a.Watching(ctx), words, transport.Name(ln), cmd.ErrOrStderr())
			if ctx.Err() == nil {
				proxy.Drain(settleTime)
			}
		})
	}
	err = proxy.Serve(ctx, ln)
	cancel()
	run.Wait()
	if err != nil {
		return &cli.Error{Status: cli.StatusFailed, Err: err}
	}
	r := a.Report()
	switch o.format {
	case "json":
		err = r.WriteJSON(cmd.OutOrStdout())
	case "github":
		err = r.WriteGitHub(cmd.OutOrStdout())
	default:
		err = r.WriteText(cmd.OutOrStdout(), audit.TextOptions{Color: color, Hex: o.hex})
	}
	if err == nil && rec != nil {
		err = rec.finish()
	}
	if err == nil && o.scripts != "" {
		err = rec.transcribe(cmd.ErrOrStderr(), o.scripts)
	}
	switch {
	case err != nil:
		return err
	case ended != nil:
		return &cli.Error{Status: cli.StatusFailed, Err: fmt.Errorf("--program: the command failed: %w", ended)}
	}
	return o.outcome(r, cmd.Context().Err() != nil)
}

// outcome returns the error with the exit status for a report: a violation, or why nothing was checked.
func (o *auditOptions) outcome(r *audit.Report, interrupted bool) error {
	switch {
	case o.program != "" && r.Connections == 0 && interrupted:
		return &cli.Error{Status: cli.StatusFailed,
			Err: errors.New("--program: interrupted before the command connected to the proxy")}
	case o.program != "" && r.Connections == 0:
		return &cli.Error{Status: cli.StatusFailed,
			Err: errors.New("--program: the command ended without connecting to the proxy")}
	case r.Failed():
		return &cli.Error{Status: cli.StatusFailed}
	case r.Untested() != "" && interrupted:
		return &cli.Error{Status: cli.StatusInvalid, Err: errors.New("interrupted: " + r.Untested())}
	case r.Untested() != "":
		return &cli.Error{Status: cli.StatusInvalid, Err: errors.New(r.Untested())}
	case r.Incomplete() != "":
		return &cli.Error{Status: cli.StatusInvalid, Err: errors.New(r.Incomplete())}
	}
	return nil
}

// address returns the address on which the proxy listens without --listen.
func (o *auditOptions) address(p *codec.Protocol) string {
	if o.program != "" {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.DefaultPort))
}

// server returns the server to which the proxy forwards: that of --addr or --exec, or the built-in server, which
// accepts only violations of waived rules.
func (o *auditOptions) server(ctx context.Context, sys *catalog.Entry, waive []codec.RuleID) (target.Target, error) {
	if o.target.Builtin() {
		return target.Func(ctx, "the built-in "+sys.Protocol.Name+" server",
			func(ctx context.Context, ln net.Listener) error {
				return refserver.New(sys.New(), refserver.Options{Protocol: sys.Protocol, Codec: codec.Options{Waive: waive}}).Serve(ctx, ln)
			})
	}
	srv, err := o.target.StartChecked(ctx, sys)
	if err != nil {
		return nil, err
	}
	c, err := target.Dial(ctx, srv)
	if err != nil {
		srv.Stop()
		return nil, err
	}
	c.Close()
	return srv, nil
}

// liveFindings prints violations when they are found.
type liveFindings struct {
	protocol *codec.Protocol
	w        io.Writer
	color    bool
	buf      []byte
}

func (l *liveFindings) show(f *audit.Finding) {
	l.buf = f.AppendLine(l.buf[:0], l.protocol, l.color)
	l.w.Write(l.buf)
}

// runProgram runs a program until it exits or ctx is done, and then ends the processes that it has started.
func runProgram(ctx context.Context, words []string, addr string, output io.Writer) error {
	cmd, err := target.GroupCommand(ctx, words, addr)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return err
	}
	target.Started(ctx, cmd.Process.Pid)
	err = target.WaitGroup(cmd)
	var status *exec.ExitError
	if ctx.Err() != nil && errors.As(err, &status) || errors.Is(err, exec.ErrWaitDelay) {
		return nil // this function ended the program, or a process that the program started still has its output open
	}
	return err
}
