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
	"time"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/catalog"
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

// settleTime is how long the proxy waits for the connections of a program that has exited to close.
const settleTime = time.Second

// auditGC is the GC percentage (GOGC) of an audit. The state of the jobs takes some ten megabytes and is short-lived.
const auditGC = 400

func newAudit() *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit PROTOCOL [flags]",
		Short: "Check the traffic of clients and workers against the protocol",
	}
	onProtocol(cmd, o.execute)
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "`HOST:PORT` on which the proxy listens (port 0: choose a free port)")
	f.StringVar(&o.to, "to", "", "`HOST:PORT` of the server (default: built-in server)")
	f.StringVar(&o.exec, "exec", "", "`COMMAND` that starts a client or worker; it may contain {addr}, {host} and {port}")
	f.DurationVar(&o.duration, "duration", 0, "`DURATION` of the audit, such as 1m (0: no limit)")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the report: text or json")
	f.StringVar(&o.scripts, "transcripts", "", "directory `DIR` for transcripts of the traffic (with --stress: of failed runs)")
	f.StringArrayVar(&o.waive, "waive", nil, "`RULE` whose violations are not reported; repeatable")
	f.BoolVar(&o.hex, "hex", false, "show bytes in hex for text protocols too")
	f.StringVar(&o.stress, "stress", "", "`PROFILES` to test under, separated by commas, or all; --list shows them")
	f.StringArrayVar(&o.programs, "program", nil, "driver that --stress starts, as `ROLE=COMMAND`; repeatable")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "time limit for one task of --stress")
	f.BoolVar(&o.list, "list", false, "list the fault profiles of --stress and exit")
	f.BoolVar(&o.selfTest, "self-test", false, "test that --stress detects faults that are injected into clients and workers")
	f.BoolVar(&o.relay, "relay", false, "only forward the bytes, to measure what the checks cost")
	f.MarkHidden("relay")
	o.color.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("stress", "list", "self-test")
	cmd.MarkFlagsMutuallyExclusive("to", "list", "self-test")
	cmd.MarkFlagsMutuallyExclusive("stress", "listen")
	cmd.MarkFlagsMutuallyExclusive("stress", "exec")
	cmd.MarkFlagsMutuallyExclusive("stress", "duration")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *auditOptions) execute(cmd *cobra.Command, sys *catalog.Entry) error {
	p := sys.Protocol
	waive, err := ruleIDs(p, o.waive)
	if err != nil {
		return err
	}
	if o.format != "text" && o.format != "json" {
		return usage(fmt.Errorf("--format: expected text or json, got %q", o.format))
	}
	switch {
	case len(o.programs) > 0 && o.stress == "":
		return usage(errors.New("--program requires --stress; use --exec to run a program without --stress"))
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
		return usage(fmt.Errorf("listen: %w", err))
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
		defer rec.Discard()
		proxy.Tap = rec.Add
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: auditing %s on %s, forwarding to %s; press Ctrl-C to stop\n", p.Title, ln.Addr(), srv)
	var run sync.WaitGroup
	var ended error
	if words != nil {
		run.Go(func() {
			defer cancel()
			ended = runProgram(ctx, words, ln.Addr().String(), cmd.ErrOrStderr())
			if ctx.Err() == nil {
				proxy.Settle(settleTime)
			}
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
		return &exit{exitFailed, err}
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
		err = &exit{exitFailed, fmt.Errorf("--exec: the command failed: %w", ended)}
	case words != nil && r.Connections == 0:
		err = &exit{exitFailed, errors.New("--exec: the command ended without connecting to the proxy")}
	case r.Failed():
		err = &exit{exitFailed, nil}
	}
	return err
}

// address returns the address on which the proxy listens.
func (o *auditOptions) address(p *codec.Protocol) string {
	switch {
	case o.listen != "":
		return o.listen
	case o.exec != "":
		return "127.0.0.1:0"
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.DefaultPort))
}

// server returns the server to which the proxy forwards: that of --to, or the built-in server, which accepts only
// violations of waived rules.
func (o *auditOptions) server(ctx context.Context, sys *catalog.Entry, waive []codec.RuleID) (target.Target, error) {
	if o.to == "" {
		return target.Func(ctx, "the built-in "+sys.Protocol.Name+" server", func(ctx context.Context, ln net.Listener) error {
			return refserver.New(sys.New(), refserver.Options{Protocol: sys.Protocol, Codec: codec.Options{Waive: waive}}).Serve(ctx, ln)
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
	err = target.WaitGroup(cmd)
	var status *exec.ExitError
	if ctx.Err() != nil && errors.As(err, &status) {
		return nil // this function ended the program
	}
	return err
}

// relay forwards bytes between the clients and the server without any checks.
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
