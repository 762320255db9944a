package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/conform"
	"jobwire/internal/target"
	peer "jobwire/refpeer/gearmonkey"
	peermutants "jobwire/refpeer/gearmonkey/mutants"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	beanstalkmutants "jobwire/refserver/beanstalk/mutants"
	dangaserver "jobwire/refserver/danga"
	dangamutants "jobwire/refserver/danga/mutants"
	gearmanserver "jobwire/refserver/gearman"
	"jobwire/refserver/gearman/mutants"
	gearmonkeyserver "jobwire/refserver/gearmonkey"
	gearmonkeymutants "jobwire/refserver/gearmonkey/mutants"
)

// system is a protocol with its reference server.
type system struct {
	protocol *codec.Protocol
	waive    []codec.RuleID // what its reference server lets pass unless told to be strict

	// server adds the flags that only this server has to those of serve, and returns
	// what makes its machine once they are parsed.
	server func(*pflag.FlagSet) func() refserver.Machine

	mutants func() []conform.Mutant // faulty ones that prove the suite

	// programs are the reference client and worker, by their roles, where the suite has cases
	// about such.
	programs map[string]conform.Program
}

// systems are all that jobwire speaks. Adding one is a line here.
var systems = []system{
	{gearman.Protocol, []codec.RuleID{gearman.RuleAdminSpacing}, gearmanServer, gearmanMutants, nil},
	{beanstalk.Protocol, nil, beanstalkServer, beanstalkMutants, nil},
	{gearmonkey.Protocol, nil, gearmonkeyServer, gearmonkeyMutants, map[string]conform.Program{"Client": peer.Drive, "Worker": peer.Drive}},
	{danga.Protocol, nil, dangaServer, dangaMutants, nil},
}

func gearmanServer(f *pflag.FlagSet) func() refserver.Machine {
	retries := f.Uint("retries", 0, "fail a job with the `N`th worker that it loses, at 1 with the first; 0 is never")
	return func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{Retries: int(*retries)}) }
}

func beanstalkServer(f *pflag.FlagSet) func() refserver.Machine {
	draining := f.Bool("draining", false, "take no new jobs, as behind SIGUSR1")
	return func() refserver.Machine {
		return beanstalkserver.New(beanstalkserver.Options{Draining: *draining})
	}
}

func dangaServer(f *pflag.FlagSet) func() refserver.Machine {
	keep := f.Duration("keep-results", dangaserver.DefaultKeepTime, "forget the results of jobs with a handle after `DURATION`")
	return func() refserver.Machine { return dangaserver.New(dangaserver.Options{KeepTime: *keep}) }
}

func gearmonkeyServer(*pflag.FlagSet) func() refserver.Machine {
	return func() refserver.Machine { return gearmonkeyserver.New(gearmonkeyserver.Options{}) }
}

func gearmanMutants() []conform.Mutant {
	var all []conform.Mutant
	for _, m := range mutants.All() {
		all = append(all, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Start: m.Start})
	}
	return all
}

func beanstalkMutants() []conform.Mutant {
	var all []conform.Mutant
	for _, m := range beanstalkmutants.All() {
		all = append(all, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Start: m.Start})
	}
	return all
}

func dangaMutants() []conform.Mutant {
	var all []conform.Mutant
	for _, m := range dangamutants.All() {
		all = append(all, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Start: m.Start})
	}
	return all
}

func gearmonkeyMutants() []conform.Mutant {
	var all []conform.Mutant
	for _, m := range gearmonkeymutants.All() {
		all = append(all, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Start: m.Start})
	}
	for _, m := range peermutants.All() {
		all = append(all, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Role: m.Role, Program: m.Drive})
	}
	return all
}

func systemNames() []string {
	var names []string
	for _, s := range systems {
		names = append(names, s.protocol.Name)
	}
	return names
}

// systemNamed finds the system that an argument names.
func systemNamed(name string) (*system, error) {
	for i := range systems {
		if systems[i].protocol.Name == name {
			return &systems[i], nil
		}
	}
	return nil, usage(fmt.Errorf("%q is no protocol; there is %s", name, strings.Join(systemNames(), ", ")))
}

// protocolArg is the argument check of commands that take a PROTOCOL.
func protocolArg(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s takes one argument, a protocol: %s", cmd.Name(), strings.Join(systemNames(), ", "))
}

// ruleIDs checks rule IDs given on the command line.
func ruleIDs(p *codec.Protocol, names []string) ([]codec.RuleID, error) {
	var ids []codec.RuleID
	for _, n := range names {
		if p.Rule(codec.RuleID(n)) == nil {
			return nil, usage(fmt.Errorf("%s has no rule %q", p.Title, n))
		}
		ids = append(ids, codec.RuleID(n))
	}
	return ids, nil
}

// targetFlags say what is to be judged.
type targetFlags struct{ addr, exec string }

func (t *targetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.addr, "addr", "", "the server to talk to, as `HOST:PORT`")
	cmd.Flags().StringVar(&t.exec, "exec", "", "a `COMMAND` that starts the server; {port} stands for a free port")
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
func (t *targetFlags) name(s *system) string {
	return cmp.Or(t.addr, t.exec, "the embedded "+s.protocol.Name+" server")
}

// start makes the target: a server elsewhere, a program, or the embedded one.
func (t *targetFlags) start(ctx context.Context, s *system) (target.Target, error) {
	switch {
	case t.addr != "":
		return target.Address(t.addr)
	case t.exec != "":
		return target.Exec(ctx, t.exec)
	}
	return target.Func(ctx, t.name(s), func(ctx context.Context, ln net.Listener) error {
		machine := s.server(pflag.NewFlagSet("", pflag.ContinueOnError))
		srv := refserver.New(machine(), refserver.Options{Protocol: s.protocol, Codec: codec.Options{Waive: s.waive}})
		return srv.Serve(ctx, ln)
	})
}
