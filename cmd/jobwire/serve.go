package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/refserver"
)

type serveOptions struct {
	listen  string
	strict  bool
	trace   bool
	bytes   bool
	hex     bool
	audit   bool
	faults  []string
	waive   []string
	maxData int
	color   colorFlag

	machines map[string]func() refserver.Machine // by protocol
	owners   map[string]string                   // of the flags that only one protocol has
}

func newServe() *cobra.Command {
	o := &serveOptions{machines: map[string]func() refserver.Machine{}, owners: map[string]string{}}
	cmd := &cobra.Command{
		Use:   "serve PROTOCOL [flags]",
		Short: "Serve the reference server",
		Long: `serve runs the reference server until it is interrupted. It takes everything that
the protocol's document defines, answers what breaks a rule with an error and
goes on; --strict ends such connections instead.

Faults make it misbehave on purpose, to see what clients and workers make of it:
` + refserver.FaultSyntax(),
		Example: `  jobwire serve gearman
  jobwire serve gearman --listen 127.0.0.1:0 --trace
  jobwire serve gearman --strict --audit
  jobwire serve gearman --fault 'delay WORK_COMPLETE 500ms' --fault 'split * 1'`,
		Args:      protocolArg,
		ValidArgs: systemNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "the `HOST:PORT` to listen on; port 0 takes a free one (default: the protocol's port on 127.0.0.1)")
	f.BoolVar(&o.strict, "strict", false, "waive nothing, and close a connection at its first violation")
	f.BoolVar(&o.trace, "trace", false, "show every message on standard output")
	f.BoolVar(&o.bytes, "annotate", false, "show every byte of every message")
	f.BoolVar(&o.hex, "hex", false, "show every byte in hex, those of text protocols too")
	f.BoolVar(&o.audit, "audit", false, "report every violation on standard output; exit 1 if there were any")
	f.StringArrayVar(&o.faults, "fault", nil, "misbehave as `SPEC` says; may be repeated")
	f.StringArrayVar(&o.waive, "waive", nil, "let peers break this `RULE`; may be repeated")
	f.IntVar(&o.maxData, "max-data", 0, "the largest message taken, in bytes of data; 0 is the protocol's default")
	o.color.add(cmd)
	for _, sys := range systems {
		own := pflag.NewFlagSet(sys.protocol.Name, pflag.ContinueOnError)
		o.machines[sys.protocol.Name] = sys.server(own)
		own.VisitAll(func(fl *pflag.Flag) {
			fl.Usage = sys.protocol.Name + ": " + fl.Usage
			o.owners[fl.Name] = sys.protocol.Name
			f.AddFlag(fl)
		})
	}
	return cmd
}

func (o *serveOptions) execute(cmd *cobra.Command, name string) error {
	sys, err := systemNamed(name)
	if err != nil {
		return err
	}
	p := sys.protocol
	waive, err := ruleIDs(p, o.waive)
	if err != nil {
		return err
	}
	if !o.strict {
		waive = append(waive, sys.waive...)
	}
	if o.maxData < 0 {
		return usage(errors.New("--max-data must not be below zero"))
	}
	for flag, owner := range o.owners {
		if cmd.Flags().Changed(flag) && owner != p.Name {
			return usage(fmt.Errorf("--%s is for serve %s", flag, owner))
		}
	}
	opts := refserver.Options{Protocol: p, Strict: o.strict, Codec: codec.Options{MaxData: o.maxData, Waive: waive}}
	for _, text := range o.faults {
		f, err := refserver.ParseFault(p, text)
		if err != nil {
			return usage(err)
		}
		opts.Faults = append(opts.Faults, f)
	}
	out := cmd.OutOrStdout()
	color, err := o.color.on(out)
	if err != nil {
		return err
	}
	w := &watcher{out: out, trace: o.trace, bytes: o.bytes || o.hex, roles: map[uint64]string{}, printer: transcript.Printer{Protocol: p, Fold: 8, Color: color, Hex: o.hex}}
	if o.trace || o.bytes || o.hex || o.audit {
		opts.Trace = w.message
	}
	addr := o.listen
	if addr == "" {
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.DefaultPort))
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return usage(fmt.Errorf("cannot listen: %w", err))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: serving %s on %s; interrupt to stop\n", p.Title, ln.Addr())
	machine := o.machines[p.Name]()
	if d, ok := machine.(interface{ Drain() }); ok {
		defer onDrainSignal(d.Drain)()
	}
	if err := refserver.New(machine, opts).Serve(cmd.Context(), ln); err != nil {
		return &exit{exitFellShort, err}
	}
	if o.audit {
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %d violations\n", w.violations)
		if w.violations > 0 {
			return &exit{exitFellShort, nil}
		}
	}
	return nil
}

// watcher prints what passes through a server.
type watcher struct {
	out        io.Writer
	trace      bool
	bytes      bool
	printer    transcript.Printer
	roles      map[uint64]string // by connection, as soon as it shows
	mu         sync.Mutex
	buf        []byte
	violations int
}

// message is the server's trace hook.
func (w *watcher) message(c *refserver.Conn, from codec.Side, f *codec.Frame, raw []byte, err *codec.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A server cannot know an actor's name: its role and the connection have to do.
	actor := w.role(c.ID(), from, f) + " " + strconv.FormatUint(c.ID(), 10)
	w.buf = w.buf[:0]
	switch {
	case err != nil && from == codec.Peer:
		w.violations++
		w.buf = w.printer.AppendBroken(w.buf, actor, f, raw, err)
	case w.bytes:
		w.buf = append(w.printer.AppendFrame(w.buf, actor, f), '\n')
	case w.trace:
		w.buf = w.printer.AppendLine(w.buf, actor, f)
	}
	w.out.Write(w.buf)
}

// role names the role of a connection: the first that a message shows it to have, and until
// then the first that its messages allow.
func (w *watcher) role(id uint64, from codec.Side, f *codec.Frame) string {
	if role := w.roles[id]; role != "" {
		return role
	}
	p := w.printer.Protocol
	if f.Type == nil {
		return p.Roles[0]
	}
	set := f.Type.Req
	if from == codec.Server {
		set = f.Type.Res
	}
	role, more, _ := strings.Cut(p.RoleNames(set), "/")
	if more == "" {
		w.roles[id] = role
	}
	return role
}
