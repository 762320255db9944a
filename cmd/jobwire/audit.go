package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/internal/target"
	"jobwire/refserver"
)

type auditOptions struct {
	listen   string
	to       string
	exec     string
	duration time.Duration
	format   string
	scripts  string
	waive    []string
	hex      bool
	color    colorFlag

	stress   string
	programs []string
	timeout  time.Duration
	list     bool
	selfTest bool
	relay    bool
}

// auditGC is by how many per cent the heap of an audit grows before it is collected. What is known of
// jobs is some ten megabytes, and short-lived.
const auditGC = 400

func newAudit() *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit PROTOCOL [flags]",
		Short: "Judge clients and workers",
		Long: `audit stands between clients and workers and a server, and judges each message
by its form and by what went before it. The server is the one of --to, which is judged
too, or an embedded one. What passes is not changed.

It ends when it is interrupted, when --duration is over or when the program of --exec
has ended, and tells which rules were broken, by whom, with the bytes and what went
before them; and which statements of the document there was occasion to break. The rules
are those of "jobwire rules".

--stress has drivers, programs around a client or worker library (docs/drivers.md), do the
same work under conditions that are legal and that libraries get wrong. Without
--program they are jobwire's own. The verdicts are completed, failed cleanly, not
recovered, wrong result, hung and crashed.

Exit status 1 if a rule was broken, a driver fell short, or the program of --exec failed
or never connected.`,
		Example: `  jobwire audit gearman --listen 127.0.0.1:4731 --to 127.0.0.1:4730
  jobwire audit gearman --exec 'python3 my_client.py {host} {port}'
  jobwire audit beanstalk --to 127.0.0.1:11300 --duration 1m --format json
  jobwire audit gearmonkey --to 127.0.0.1:6379 --transcripts found/
  jobwire audit gearman --stress all --program 'Client=perl driver.pl {addr}'
  jobwire audit gearman --stress bytewise,closed-within --program 'Worker=./my-worker {addr}'
  jobwire audit gearman --list
  jobwire audit gearman --self-test`,
		Args:      protocolArg,
		ValidArgs: systemNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "the `HOST:PORT` to listen on; port 0 takes a free one (default: the protocol's port on 127.0.0.1, with --exec a free one)")
	f.StringVar(&o.to, "to", "", "the server to stand before, as `HOST:PORT`")
	f.StringVar(&o.exec, "exec", "", "run a `COMMAND` and end with it; {addr}, or {host} and {port}, stand for where it is to connect")
	f.DurationVar(&o.duration, "duration", 0, "end after `DURATION`")
	f.StringVar(&o.format, "format", "text", "text or json")
	f.StringVar(&o.scripts, "transcripts", "", "write the conversations as files that play performs, into this `DIR`")
	f.StringArrayVar(&o.waive, "waive", nil, "let this `RULE` be broken; may be repeated")
	f.BoolVar(&o.hex, "hex", false, "text protocols in hex too")
	f.StringVar(&o.stress, "stress", "", "have drivers work under these `CONDITIONS`, with commas between them, or all")
	f.StringArrayVar(&o.programs, "program", nil, "of --stress: the driver of a role, as `ROLE=COMMAND`; {addr}, or {host} and {port}, say where it connects; may be repeated")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "of --stress: how long a driver may take for a task")
	f.BoolVar(&o.list, "list", false, "list the conditions of --stress")
	f.BoolVar(&o.selfTest, "self-test", false, "have clients and workers with planted faults judged")
	f.BoolVar(&o.relay, "relay", false, "pass on and judge nothing: what the judging costs is measured against this")
	f.MarkHidden("relay")
	o.color.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("stress", "to", "list", "self-test")
	cmd.MarkFlagsMutuallyExclusive("stress", "listen")
	cmd.MarkFlagsMutuallyExclusive("stress", "exec")
	cmd.MarkFlagsMutuallyExclusive("stress", "transcripts")
	cmd.MarkFlagsMutuallyExclusive("stress", "duration")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *auditOptions) execute(cmd *cobra.Command, name string) error {
	sys, err := systemNamed(name)
	if err != nil {
		return err
	}
	p := sys.protocol
	waive, err := ruleIDs(p, o.waive)
	if err != nil {
		return err
	}
	if o.format != "text" && o.format != "json" {
		return usage(fmt.Errorf("--format %q: it is text or json", o.format))
	}
	switch {
	case len(o.programs) > 0 && o.stress == "":
		return usage(errors.New("--program is for --stress; --exec runs a program of its own"))
	case o.list:
		return listConditions(cmd.OutOrStdout())
	case o.selfTest:
		return o.prove(cmd, sys)
	case o.stress != "":
		return o.stressed(cmd, sys)
	}
	color, err := o.color.on(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	var words []string
	if o.exec != "" {
		if words, err = target.Split(o.exec); err != nil {
			return usage(err)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(auditGC))
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	srv, err := o.server(ctx, sys, waive)
	if err != nil {
		return err
	}
	defer srv.Stop()
	ln, err := net.Listen("tcp", o.address(p))
	if err != nil {
		return usage(fmt.Errorf("cannot listen: %w", err))
	}
	if o.duration > 0 {
		defer time.AfterFunc(o.duration, cancel).Stop()
	}
	live := &liveFindings{protocol: p, w: cmd.ErrOrStderr()}
	live.color = color && isTerminal(live.w)
	a := audit.New(audit.Options{Protocol: p, Codec: codec.Options{Waive: waive}, Server: o.to != "", Found: live.show})
	proxy := &audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, srv) }}
	var rec *recording
	if o.scripts != "" {
		if rec, err = record(p); err != nil {
			ln.Close()
			return err
		}
		defer rec.remove()
		proxy.Tap = rec.add
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: auditing %s on %s, before %s; interrupt to stop\n", p.Title, ln.Addr(), srv)
	var run sync.WaitGroup
	var ended error
	if words != nil {
		run.Go(func() {
			defer cancel()
			ended = runProgram(ctx, words, ln.Addr().String(), cmd.ErrOrStderr())
		})
	}
	if o.relay {
		err = relay(ctx, ln, srv)
	} else {
		err = proxy.Serve(ctx, ln)
	}
	cancel()
	run.Wait()
	if err != nil {
		return &exit{exitFellShort, err}
	}
	r := a.Report()
	if o.format == "json" {
		err = r.WriteJSON(cmd.OutOrStdout())
	} else {
		err = r.WriteText(cmd.OutOrStdout(), audit.Shown{Color: color, Hex: o.hex})
	}
	if err == nil && rec != nil {
		err = rec.transcribe(cmd, o.scripts)
	}
	switch {
	case err != nil:
	case ended != nil:
		err = &exit{exitFellShort, fmt.Errorf("the program: %w", ended)}
	case words != nil && r.Connections == 0:
		err = &exit{exitFellShort, errors.New("the program never connected")}
	case r.Violations() > 0:
		err = &exit{exitFellShort, nil}
	}
	return err
}

// address is where to listen.
func (o *auditOptions) address(p *codec.Protocol) string {
	switch {
	case o.listen != "":
		return o.listen
	case o.exec != "":
		return "127.0.0.1:0"
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.DefaultPort))
}

// server is what the audit stands before. An embedded one lets nothing pass that is not waived.
func (o *auditOptions) server(ctx context.Context, sys *system, waive []codec.RuleID) (target.Target, error) {
	if o.to == "" {
		return target.Func(ctx, "the embedded "+sys.protocol.Name+" server", func(ctx context.Context, ln net.Listener) error {
			machine := sys.server(pflag.NewFlagSet("", pflag.ContinueOnError))
			return refserver.New(machine(), refserver.Options{Protocol: sys.protocol, Codec: codec.Options{Waive: waive}}).Serve(ctx, ln)
		})
	}
	srv, err := target.Address(o.to)
	if err != nil {
		return nil, usage(err)
	}
	c, err := target.Dial(ctx, srv)
	if err != nil {
		return nil, err
	}
	c.Close()
	return srv, nil
}

// liveFindings shows violations as they happen.
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

// runProgram runs a program until it ends or ctx does, and ends with it what it has started.
func runProgram(ctx context.Context, words []string, addr string, output io.Writer) error {
	args, err := target.Expand(words, addr)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return err
	}
	err = cmd.Wait()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var status *exec.ExitError
	if ctx.Err() != nil && errors.As(err, &status) {
		return nil // it was told to
	}
	return err
}

// relay passes on what comes, as plainly as it can be done.
func relay(ctx context.Context, ln net.Listener, srv target.Target) error {
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		near, err := ln.Accept()
		if err != nil {
			return nil
		}
		far, err := target.Dial(ctx, srv)
		if err != nil {
			near.Close()
			continue
		}
		stop := context.AfterFunc(ctx, func() {
			near.Close()
			far.Close()
		})
		pass := func(dst, src net.Conn) {
			io.Copy(dst, src)
			dst.(*net.TCPConn).CloseWrite()
		}
		all.Go(func() {
			defer stop()
			var back sync.WaitGroup
			back.Go(func() { pass(near, far) })
			pass(far, near)
			back.Wait()
			near.Close()
			far.Close()
		})
	}
}
