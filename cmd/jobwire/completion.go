package main

import (
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/vectors"
	"jobwire/conform"
	"jobwire/loadgen"
	"jobwire/play"
)

// flagCompleters has the values of flags, by the name of the flag. Commands set the values of --format themselves.
var flagCompleters = map[string]connect.Completer{
	"actor":     actorChoices,
	"interface": interfaceChoices,
	"level":     func(*cobra.Command, *catalog.Entry) cli.Choices { return cli.Names(codec.Levels) },
	"profile":   connect.ProtocolCompleter(func(e *catalog.Entry) cli.Choices { return cli.Names(conform.Profiles(e.Protocol)) }),
	"program":   connect.ProtocolCompleter(programChoices),
	"protocol":  func(*cobra.Command, *catalog.Entry) cli.Choices { return cli.Names(catalog.Names()) },
	"role":      connect.ProtocolCompleter(func(e *catalog.Entry) cli.Choices { return cli.Names(slices.Sorted(maps.Keys(e.Programs))) }),
	"run":       connect.ProtocolCompleter(caseChoices),
	"scenario":  connect.ProtocolCompleter(scenarioChoices),
	"segments": func(*cobra.Command, *catalog.Entry) cli.Choices {
		return cli.Choices{play.Plain.String(), play.Bytewise.String(), play.Coalesced.String()}
	},
	"skip":  connect.ProtocolCompleter(caseChoices),
	"waive": connect.ProtocolCompleter(connect.RuleCompletions),
}

// completeFlags sets the completion of the flags of a command and its subcommands. Flags without a completer complete
// files or directories if their value is one, and otherwise nothing.
func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, set := cmd.GetFlagCompletionFunc(f.Name); set {
			return
		}
		if complete := flagCompleters[f.Name]; complete != nil {
			cmd.RegisterFlagCompletionFunc(f.Name, connect.Completed(complete))
			return
		}
		switch value, _ := pflag.UnquoteUsage(f); value {
		case "FILE", "COMMAND", "NAME=COMMAND", "ROLE=COMMAND":
		case "DIR":
			cmd.MarkFlagDirname(f.Name)
		default:
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}

// caseChoices returns the shell completions for the name of a case: the cases of the suite with their descriptions,
// then the rules that do not have the name of a case. It returns nil if the suite cannot be read.
func caseChoices(e *catalog.Entry) cli.Choices {
	suite, err := conform.Load(e.Protocol)
	if err != nil {
		return nil
	}
	var c cli.Choices
	seen := map[string]bool{}
	for _, cs := range suite.Cases {
		if !seen[cs.Family] {
			seen[cs.Family] = true
			c.Add(cs.Family, cs.About)
		}
	}
	rules := slices.DeleteFunc(connect.RuleCompletions(e), func(choice string) bool {
		id, _, _ := strings.Cut(choice, "\t")
		return seen[id]
	})
	return append(c, rules...)
}

func scenarioChoices(e *catalog.Entry) cli.Choices {
	var c cli.Choices
	for _, s := range loadgen.Scenarios(e.Protocol) {
		c.Add(s.Name, s.About)
	}
	return c
}

func faultProfileChoices(*catalog.Entry) cli.Choices {
	var c cli.Choices
	for i := range audit.FaultProfiles {
		c.Add(audit.FaultProfiles[i].Name, audit.FaultProfiles[i].About)
	}
	return c
}

func vectorChoices(e *catalog.Entry) cli.Choices {
	var c cli.Choices
	all, _ := vectors.Read(e.Protocol)
	for _, v := range all {
		c.Add(v.Name, "")
	}
	return c
}

func programChoices(e *catalog.Entry) cli.Choices {
	var c cli.Choices
	for _, role := range slices.Sorted(maps.Keys(e.Programs)) {
		c.Add(role+"=", "")
	}
	return c
}

func interfaceChoices(*cobra.Command, *catalog.Entry) cli.Choices {
	c := cli.Choices{"any"}
	all, _ := net.Interfaces()
	for _, i := range all {
		c.Add(i.Name, i.Flags.String())
	}
	return c
}

// actorChoices returns the actors of the transcripts that are named on the command line.
func actorChoices(cmd *cobra.Command, _ *catalog.Entry) cli.Choices {
	protocol, _ := cmd.Flags().GetString("protocol")
	var c cli.Choices
	for _, file := range cmd.Flags().Args() {
		_, scripts, _ := connect.ReadScripts(cmd, protocol, file)
		for _, s := range scripts {
			for i := range s.Steps {
				if name := s.Steps[i].Peer.Name; !slices.Contains(c, name) {
					c.Add(name, "")
				}
			}
		}
	}
	return c
}
