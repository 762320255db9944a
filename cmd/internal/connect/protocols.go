package connect

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/target"
)

// EntryNamed returns the catalog entry of the protocol with this name, or a usage error.
func EntryNamed(name string) (*catalog.Entry, error) {
	e, err := catalog.Named(name)
	return e, cli.Usage(err)
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
		hint := cli.Suggestion(args[0], append(catalog.Names(), cli.CommandNames(cmd)...))
		if hint == "" && cmd.HasAvailableSubCommands() {
			hint = ", or a command: " + strings.Join(cli.CommandNames(cmd), ", ")
		}
		return fmt.Errorf("%w%s", err, hint)
	}
	return nil
}

// ProtocolCommand makes cmd a command with one argument, which is a protocol.
func ProtocolCommand(cmd *cobra.Command, run func(*cobra.Command, *catalog.Entry) error) {
	ProtocolCommandWith(cmd, nil, func(cmd *cobra.Command, e *catalog.Entry, _ []string) error { return run(cmd, e) })
	cmd.Args = protocolArg
}

// ProtocolCommandWith makes cmd a command whose first argument is a protocol. more has the values of the other
// arguments; it may be nil.
func ProtocolCommandWith(cmd *cobra.Command, more Completer, run func(*cobra.Command, *catalog.Entry, []string) error) {
	cmd.Args = protocolFirst
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		switch e := entryOf(cmd, args); {
		case len(args) == 0:
			return cli.Names(catalog.Names()).After(typed)
		case e != nil && more != nil:
			return more(cmd, e).After(typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := EntryNamed(args[0])
		if err != nil {
			return err
		}
		return run(cmd, e, args[1:])
	}
}

// RuleIDs checks rule IDs given on the command line.
func RuleIDs(p *codec.Protocol, names []string) ([]codec.RuleID, error) {
	var ids []codec.RuleID
	for _, n := range names {
		if p.Rule(codec.RuleID(n)) == nil {
			return nil, cli.Usage(fmt.Errorf("%s has no rule %q: to list the rules, run 'jobwire rules %s'", p.Title, n, p.Name))
		}
		ids = append(ids, codec.RuleID(n))
	}
	return ids, nil
}

// TargetFlags has the values of --addr and --exec, which select the server to test, and of the flags about the
// connections to it. Without --addr and --exec it is the built-in server.
type TargetFlags struct {
	Addr, Exec string
	Conn       *connectFlags // nil in commands without these flags
	Memory     int           // limit for the memory of the program of --exec in MiB; 0: no limit
	Env        []string      // added to the environment of the program of --exec
}

func (t *TargetFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.Addr, "addr", "", "use the running server at `ADDRESS`: HOST:PORT, [IPV6]:PORT or unix:PATH")
	cmd.Flags().StringVar(&t.Exec, "exec", "", "start the server with `COMMAND`, in which {port} stands for a free port, or {socket} for the path of a Unix socket")
	cmd.MarkFlagsMutuallyExclusive("addr", "exec")
	t.Conn = new(connectFlags)
	t.Conn.add(cmd)
}

// Builtin reports whether the target is the built-in server.
func (t *TargetFlags) Builtin() bool { return t.Addr == "" && t.Exec == "" }

// Check returns an error if the flags are invalid. It must be called before the target is started.
func (t *TargetFlags) Check(s *catalog.Entry) error {
	var err error
	switch {
	case t.Addr != "":
		_, err = target.Address(t.Addr)
	case t.Exec != "":
		err = target.Check(t.Exec)
	}
	if err == nil {
		err = t.Conn.check(s, t.Builtin())
	}
	return cli.Usage(err)
}

// Connect makes the connections to a target of --addr or --exec as the flags say, and checks that they give the login
// that the server requires. It stops the target if they do not.
func (t *TargetFlags) Connect(ctx context.Context, s *catalog.Entry, tgt target.Target, err error) (target.Target,
	error) {
	if err != nil || t.Conn == nil {
		return tgt, err
	}
	target.Use(tgt, t.Conn.dialer)
	if err := t.Conn.checkLogin(ctx, s, tgt); err != nil {
		tgt.Stop()
		return nil, err
	}
	return tgt, nil
}

// Words returns the flags, except those about a login in the environment, as words of a command line.
func (t *TargetFlags) Words() []string {
	var words []string
	switch {
	case t.Addr != "":
		words = []string{"--addr", t.Addr}
	case t.Exec != "":
		words = []string{"--exec", t.Exec}
	}
	return append(words, t.Conn.words()...)
}

// Name returns the name of the target in reports.
func (t *TargetFlags) Name(s *catalog.Entry) string {
	return cmp.Or(t.Addr, t.Exec, "the built-in "+s.Protocol.Name+" server")
}

// StartChecked starts the target as start does, and returns an error if it is a server of another protocol.
func (t *TargetFlags) StartChecked(ctx context.Context, s *catalog.Entry) (target.Target, error) {
	tgt, err := t.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := t.CheckProtocol(ctx, s, tgt); err != nil {
		tgt.Stop()
		return nil, err
	}
	return tgt, nil
}

// CheckProtocol returns an error if a target of the user is a server of another protocol. It cannot know this if the
// server requires a login that is missing.
func (t *TargetFlags) CheckProtocol(ctx context.Context, s *catalog.Entry, tgt target.Target) error {
	if t.Builtin() || t.Conn != nil && t.Conn.LoginMissing.Load() {
		return nil
	}
	return conform.CheckProtocol(ctx, s.Protocol, tgt)
}

// Start returns the target: a running server, or a program or the built-in server, which it starts.
func (t *TargetFlags) Start(ctx context.Context, s *catalog.Entry) (target.Target, error) {
	switch {
	case t.Addr != "":
		tgt, err := target.Address(t.Addr)
		return t.Connect(ctx, s, tgt, err)
	case t.Exec != "":
		args, err := target.Split(t.Exec)
		if err != nil {
			return nil, err
		}
		tgt, err := target.Command{Args: args, Memory: int64(t.Memory) << 20, Env: t.Env}.Start(ctx)
		return t.Connect(ctx, s, tgt, err)
	}
	return target.Func(ctx, t.Name(s), Builtin(s))
}
