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
	"jobwire/internal/target"
	"jobwire/refserver"
)

// entryNamed returns the entry of the protocol that an argument names.
func entryNamed(name string) (*catalog.Entry, error) {
	e, err := catalog.Named(name)
	return e, usage(err)
}

// protocolArg is the argument check of commands that take a PROTOCOL.
func protocolArg(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s takes one argument, which is a protocol: %s", cmd.Name(), strings.Join(catalog.Names(), ", "))
}

// ruleIDs checks rule IDs given on the command line.
func ruleIDs(p *codec.Protocol, names []string) ([]codec.RuleID, error) {
	var ids []codec.RuleID
	for _, n := range names {
		if p.Rule(codec.RuleID(n)) == nil {
			return nil, usage(fmt.Errorf("%s has no rule %q: to list the rules, run 'jobwire rules PROTOCOL'", p.Title, n))
		}
		ids = append(ids, codec.RuleID(n))
	}
	return ids, nil
}

// targetFlags say what is to be judged.
type targetFlags struct{ addr, exec string }

func (t *targetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.addr, "addr", "", "use the running server at the address `HOST:PORT`")
	cmd.Flags().StringVar(&t.exec, "exec", "", "start the server with `COMMAND`, in which {port} stands for a free port")
	cmd.MarkFlagsMutuallyExclusive("addr", "exec")
}

// check refuses flags that no target can come of.
func (t *targetFlags) check() error {
	switch {
	case t.addr != "":
		_, err := target.Address(t.addr)
		return usage(err)
	case t.exec != "":
		return usage(target.Check(t.exec))
	}
	return nil
}

// name is what reports call the target.
func (t *targetFlags) name(s *catalog.Entry) string {
	return cmp.Or(t.addr, t.exec, "the built-in "+s.Protocol.Name+" server")
}

// start makes the target: a server elsewhere, a program, or the embedded one.
func (t *targetFlags) start(ctx context.Context, s *catalog.Entry) (target.Target, error) {
	switch {
	case t.addr != "":
		return target.Address(t.addr)
	case t.exec != "":
		return target.Exec(ctx, t.exec)
	}
	return target.Func(ctx, t.name(s), func(ctx context.Context, ln net.Listener) error {
		srv := refserver.New(s.New(), refserver.Options{Protocol: s.Protocol, Codec: codec.Options{Waive: s.Lenient}})
		return srv.Serve(ctx, ln)
	})
}
