package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/refserver"
)

// entryNamed returns the catalog entry of the protocol with this name, or a usage error.
func entryNamed(name string) (*catalog.Entry, error) {
	e, err := catalog.Named(name)
	return e, usage(err)
}

// protocolArg is the argument check of commands that take a PROTOCOL only.
func protocolArg(cmd *cobra.Command, args []string) error {
	if err := protocolFirst(cmd, args); err != nil || len(args) == 1 {
		return err
	}
	return fmt.Errorf("expected one argument, which is a protocol, got %d", len(args))
}

// protocolFirst is the argument check of commands that take a PROTOCOL and more.
func protocolFirst(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s needs a protocol: %s", cmd.Name(), strings.Join(catalog.Names(), ", "))
	}
	if _, err := catalog.Named(args[0]); err != nil {
		hint := suggestion(args[0], append(catalog.Names(), commandNames(cmd)...))
		if hint == "" && cmd.HasAvailableSubCommands() {
			hint = ", or a command: " + strings.Join(commandNames(cmd), ", ")
		}
		return fmt.Errorf("%w%s", err, hint)
	}
	return nil
}

// onProtocol makes cmd a command with one argument, which is a protocol.
func onProtocol(cmd *cobra.Command, run func(*cobra.Command, *catalog.Entry) error) {
	onProtocolAnd(cmd, nil, func(cmd *cobra.Command, e *catalog.Entry, _ []string) error { return run(cmd, e) })
	cmd.Args = protocolArg
}

// onProtocolAnd makes cmd a command whose first argument is a protocol. more has the values of the other arguments; it
// may be nil.
func onProtocolAnd(cmd *cobra.Command, more completer, run func(*cobra.Command, *catalog.Entry, []string) error) {
	cmd.Args = protocolFirst
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		switch e := entryOf(cmd, args); {
		case len(args) == 0:
			return names(catalog.Names()).after(typed)
		case e != nil && more != nil:
			return more(cmd, e).after(typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := entryNamed(args[0])
		if err != nil {
			return err
		}
		return run(cmd, e, args[1:])
	}
}

// ruleIDs checks rule IDs given on the command line.
func ruleIDs(p *codec.Protocol, names []string) ([]codec.RuleID, error) {
	var ids []codec.RuleID
	for _, n := range names {
		if p.Rule(codec.RuleID(n)) == nil {
			return nil, usage(fmt.Errorf("%s has no rule %q: to list the rules, run 'jobwire rules %s'", p.Title, n, p.Name))
		}
		ids = append(ids, codec.RuleID(n))
	}
	return ids, nil
}

// targetFlags has the values of --addr and --exec, which select the server to test, and of the flags about the
// connections to it. Without --addr and --exec it is the built-in server.
type targetFlags struct {
	addr, exec string
	conn       *connectFlags // nil in commands without these flags
	memory     int           // limit for the memory of the program of --exec in MiB; 0: no limit
}

func (t *targetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.addr, "addr", "", "use the running server at `ADDRESS`: HOST:PORT, [IPV6]:PORT or unix:PATH")
	cmd.Flags().StringVar(&t.exec, "exec", "", "start the server with `COMMAND`, in which {port} stands for a free port, or {socket} for the path of a Unix socket")
	cmd.MarkFlagsMutuallyExclusive("addr", "exec")
	t.conn = new(connectFlags)
	t.conn.add(cmd)
}

// builtin reports whether the target is the built-in server.
func (t *targetFlags) builtin() bool { return t.addr == "" && t.exec == "" }

// check returns an error if the flags are invalid. It must be called before the target is started.
func (t *targetFlags) check(s *catalog.Entry) error {
	var err error
	switch {
	case t.addr != "":
		_, err = target.Address(t.addr)
	case t.exec != "":
		err = target.Check(t.exec)
	}
	if err == nil {
		err = t.conn.check(s, t.builtin())
	}
	return usage(err)
}

// connect makes the connections to a target of --addr or --exec as the flags say, and checks that they give the login
// that the server requires. It stops the target if they do not.
func (t *targetFlags) connect(ctx context.Context, s *catalog.Entry, tgt target.Target, err error) (target.Target,
	error) {
	if err != nil || t.conn == nil {
		return tgt, err
	}
	target.Use(tgt, t.conn.dialer)
	if err := t.conn.checkLogin(ctx, s, tgt); err != nil {
		tgt.Stop()
		return nil, err
	}
	return tgt, nil
}

// words returns the flags, except those about a login in the environment, as words of a command line.
func (t *targetFlags) words() []string {
	var words []string
	switch {
	case t.addr != "":
		words = []string{"--addr", t.addr}
	case t.exec != "":
		words = []string{"--exec", t.exec}
	}
	return append(words, t.conn.words()...)
}

// name returns the name of the target in reports.
func (t *targetFlags) name(s *catalog.Entry) string {
	return cmp.Or(t.addr, t.exec, "the built-in "+s.Protocol.Name+" server")
}

// startChecked starts the target as start does, and returns an error if it is a server of another protocol.
func (t *targetFlags) startChecked(ctx context.Context, s *catalog.Entry) (target.Target, error) {
	tgt, err := t.start(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := t.checkProtocol(ctx, s, tgt); err != nil {
		tgt.Stop()
		return nil, err
	}
	return tgt, nil
}

// checkProtocol returns an error if a target of the user is a server of another protocol. It cannot know this if the
// server requires a login that is missing.
func (t *targetFlags) checkProtocol(ctx context.Context, s *catalog.Entry, tgt target.Target) error {
	if t.builtin() || t.conn != nil && t.conn.loginMissing.Load() {
		return nil
	}
	return conform.CheckProtocol(ctx, s.Protocol, tgt)
}

// start returns the target: a running server, or a program or the built-in server, which it starts.
func (t *targetFlags) start(ctx context.Context, s *catalog.Entry) (target.Target, error) {
	switch {
	case t.addr != "":
		tgt, err := target.Address(t.addr)
		return t.connect(ctx, s, tgt, err)
	case t.exec != "":
		tgt, err := target.ExecWithin(ctx, t.exec, int64(t.memory)<<20)
		return t.connect(ctx, s, tgt, err)
	}
	return target.Func(ctx, t.name(s), serve(s))
}

// serve returns a function that runs the reference server with the defaults of its flags.
func serve(s *catalog.Entry) func(context.Context, net.Listener) error {
	return func(ctx context.Context, ln net.Listener) error {
		return refserver.New(s.New(), refserver.Options{Protocol: s.Protocol,
			Codec: codec.Options{Waive: s.Lenient}}).Serve(ctx, ln)
	}
}
