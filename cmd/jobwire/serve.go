package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/prose"
	"jobwire/internal/transport"
	"jobwire/refserver"
	"jobwire/refserver/inject"
)

type serveOptions struct {
	listen  connect.ListenFlags
	login   string
	strict  bool
	trace   bool
	bytes   bool
	hex     bool
	audit   bool
	faults  []string
	waive   []string
	maxData int
	color   cli.ColorFlag

	machines map[string]func() refserver.Machine // by protocol
	owners   map[string]string                   // the protocol of each flag that only one protocol has
}

// newServe returns the command "serve". It adds the flags of the reference servers of all protocols and records in
// o.owners which protocol a flag belongs to, so that execute can reject the flags of other protocols.
func newServe() *cobra.Command {
	o := &serveOptions{machines: map[string]func() refserver.Machine{}, owners: map[string]string{}}
	cmd := &cobra.Command{
		Use:   "serve PROTOCOL [flags]",
		Short: "Run a reference server",
		Long:  inject.FaultSyntax(),
	}
	connect.ProtocolCommand(cmd, o.execute)
	f := cmd.Flags()
	o.listen.Add(cmd, "tls", "`ADDRESS` to listen on: HOST:PORT or unix:PATH; port 0: a free port (default 127.0.0.1 and the usual port of the protocol)")
	f.StringVar(&o.login, "login-file", "", "require a login: `FILE` with the password, or with the user name and the password on two lines")
	f.BoolVar(&o.strict, "strict", false, "check every rule, and close a connection when its peer first breaks one")
	f.BoolVar(&o.trace, "trace", false, "print every message")
	f.BoolVar(&o.bytes, "annotate", false, "print every message with its bytes and their meaning")
	f.BoolVar(&o.hex, "hex", false, "like --annotate, with bytes in hex for text protocols too")
	f.BoolVar(&o.audit, "audit", false, "print each message that breaks a rule; exit with 1 if there was one")
	f.StringArrayVar(&o.faults, "fault", nil, "`FAULT` to inject into the server, in the notation that this help describes; repeatable")
	f.StringArrayVar(&o.waive, "waive", nil, "`RULE` that clients and workers may break; repeatable")
	f.IntVar(&o.maxData, "max-data", 0, "maximum `SIZE` in bytes of the data of a message (0: the default of the protocol)")
	o.color.Add(cmd)
	for _, sys := range catalog.All() {
		own := pflag.NewFlagSet(sys.Protocol.Name, pflag.ContinueOnError)
		o.machines[sys.Protocol.Name] = sys.Server(own)
		own.VisitAll(func(fl *pflag.Flag) {
			fl.Usage = sys.Protocol.Name + ": " + fl.Usage
			o.owners[fl.Name] = sys.Protocol.Name
			f.AddFlag(fl)
		})
	}
	cli.GroupFlags(cmd, []cli.FlagGroup{
		{Title: "Server", Names: "listen tls-cert tls-key tls-client-ca login-file strict waive max-data fault"},
		{Title: "Output", Names: "trace annotate hex audit color"},
	})
	return cmd
}

// execute runs the reference server until the user interrupts it, with the faults, login and limits of the flags. It
// prints messages or violations while the server runs; with --audit it returns an error with StatusFailed if there was
// a violation.
func (o *serveOptions) execute(cmd *cobra.Command, sys *catalog.Entry) error {
	p := sys.Protocol
	waive, err := connect.RuleIDs(p, o.waive)
	if err != nil {
		return err
	}
	if !o.strict {
		waive = append(waive, sys.Lenient...)
	}
	for flag, owner := range o.owners {
		if cmd.Flags().Changed(flag) && owner != p.Name {
			return cli.Usage(fmt.Errorf("--%s works only with 'serve %s'", flag, owner))
		}
	}
	opts := refserver.Options{Protocol: p, Strict: o.strict, Codec: codec.Options{MaxData: o.maxData, Waive: waive}}
	out := cmd.OutOrStdout()
	if o, ok := out.(*cli.Output); ok {
		// if standard output is not read, the spool may still write to it after this command has ended
		out = cli.NewOutput(o.To.W)
	}
	color := o.color.On(out)
	what, tracing := "trace: %s messages", o.trace || o.bytes || o.hex
	if !tracing {
		what = "audit: %s violations"
	}
	w := &watcher{trace: o.trace, bytes: o.bytes ||
		o.hex, roles: map[uint64]string{}, printer: transcript.Printer{Protocol: p, Fold: 8, Color: color, Hex: o.hex}}
	machine := o.machines[p.Name]()
	if o.login != "" {
		m, ok := machine.(interface{ RequireLogin(user, password string) })
		if !ok {
			return cli.Usage(fmt.Errorf("--login-file: %s has no login", p.Title))
		}
		credentials, err := transport.ReadCredentials(o.login)
		if err != nil {
			return cli.Usage(fmt.Errorf("--login-file: %w", err))
		}
		m.RequireLogin(credentials.User, credentials.Password)
	}
	drainer, drains := machine.(interface{ Drain() })
	if len(o.faults) > 0 {
		faulty, err := sys.Injector().Wrap(machine, &opts, strings.Join(o.faults, "\n"))
		if err != nil {
			return cli.Usage(err)
		}
		faulty.Errors = func(err error) { fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: --fault: %v\n", err) }
		machine = faulty
	}
	ln, err := o.listen.Listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(p.DefaultPort)))
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: serving %s on %s; press Ctrl-C to stop\n", p.Title, transport.Name(ln))
	if drains {
		defer onDrainSignal(drainer.Drain)()
	}
	watching := tracing || o.audit
	if watching {
		w.out = newSpool(out, what)
		opts.Trace = w.message
	}
	err = refserver.New(machine, opts).Serve(cmd.Context(), ln)
	if watching {
		missing, failed := w.out.close()
		if missing != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s\n", missing)
		}
		if err == nil && failed != nil {
			err = fmt.Errorf("cannot write: %w", failed)
		}
	}
	if o.audit {
		noun := "violations"
		if w.violations == 1 {
			noun = "violation"
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s %s\n", prose.Grouped(int64(w.violations)), noun)
	}
	if err != nil || w.violations > 0 && o.audit {
		return &cli.Error{Status: cli.StatusFailed, Err: err}
	}
	return nil
}

// watcher prints and counts messages of a server: all messages, or those that violate a rule.
type watcher struct {
	out        *spool
	trace      bool
	bytes      bool
	printer    transcript.Printer
	roles      map[uint64]string // by ID of the connection, once known
	mu         sync.Mutex
	buf        []byte
	violations int
}

// message prints one message. It is the trace hook of the server.
func (w *watcher) message(c *refserver.Conn, from codec.Side, f *codec.Frame, raw []byte, err *codec.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The server does not know the names of actors: use the role and the ID of the connection.
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
	if len(w.buf) > 0 {
		w.out.add(w.buf)
	}
}

// role returns the role of a connection. It is known after the first message that only one role sends or receives.
// Until then, role returns the first role that the message allows.
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
