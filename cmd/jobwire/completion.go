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
	"jobwire/codec"
	"jobwire/codec/vectors"
	"jobwire/conform"
	"jobwire/fuzz/faults"
	"jobwire/loadgen"
	"jobwire/play"
)

// choices are values of a flag or an argument, each with a description after a tab or without one.
type choices []cobra.Completion

func (c *choices) add(value, about string) {
	*c = append(*c, cobra.CompletionWithDesc(value, about))
}

// A completer returns the values of an argument or a flag. The protocol is nil if the command line does not name one.
type completer func(cmd *cobra.Command, e *catalog.Entry) choices

// flagCompleters has the values of flags, by the name of the flag. Commands set the values of --format themselves.
var flagCompleters = map[string]completer{
	"actor":     actorChoices,
	"interface": interfaceChoices,
	"level":     func(*cobra.Command, *catalog.Entry) choices { return names(codec.Levels) },
	"profile":   ofProtocol(func(e *catalog.Entry) choices { return names(conform.Profiles(e.Protocol)) }),
	"program":   ofProtocol(programChoices),
	"protocol":  func(*cobra.Command, *catalog.Entry) choices { return names(catalog.Names()) },
	"role":      ofProtocol(func(e *catalog.Entry) choices { return names(slices.Sorted(maps.Keys(e.Programs))) }),
	"run":       ofProtocol(caseChoices),
	"scenario":  ofProtocol(scenarioChoices),
	"segments": func(*cobra.Command, *catalog.Entry) choices {
		return choices{play.Plain.String(), play.Bytewise.String(), play.Coalesced.String()}
	},
	"skip":  ofProtocol(caseChoices),
	"waive": ofProtocol(ruleChoices),
}

// completeFlags sets the completion of the flags of a command and its subcommands. Flags without a completer complete
// files or directories if their value is one, and otherwise nothing.
func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, set := cmd.GetFlagCompletionFunc(f.Name); set {
			return
		}
		if complete := flagCompleters[f.Name]; complete != nil {
			cmd.RegisterFlagCompletionFunc(f.Name, completed(complete))
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

// plainUsages removes the quotes of placeholders from the usage of all flags, which shells show with a completion.
func plainUsages(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	for _, c := range cmd.Commands() {
		plainUsages(c)
	}
}

// completed returns the completion function of a flag for cobra.
func completed(complete completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(cmd, entryOf(cmd, args)).after(typed)
	}
}

// entryOf returns the protocol that a command line names as its first argument or with --protocol, or nil.
func entryOf(cmd *cobra.Command, args []string) *catalog.Entry {
	if f := cmd.Flags().Lookup("protocol"); f != nil && f.Changed {
		args = []string{f.Value.String()}
	}
	if len(args) == 0 {
		return nil
	}
	e, _ := catalog.Named(args[0])
	return e
}

// after returns the values that begin with typed. It cuts each value after the next period, so that a user completes
// gearman.echo. first and then gearman.echo.client: a protocol has hundreds of cases and rules.
func (c choices) after(typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all choices
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	for _, choice := range c {
		value, _, _ := strings.Cut(choice, "\t")
		if !strings.HasPrefix(value, typed) {
			continue
		}
		if head, _, more := strings.Cut(value[len(typed):], "."); more {
			choice = typed + head + "."
		}
		if !slices.Contains(all, choice) {
			all = append(all, choice)
		}
		if strings.HasSuffix(choice, ".") && !strings.Contains(choice, "\t") || strings.HasSuffix(choice, "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return all, directive
}

// ofProtocol returns a completer for values that depend on the protocol.
func ofProtocol(complete func(*catalog.Entry) choices) completer {
	return func(_ *cobra.Command, e *catalog.Entry) choices {
		if e == nil {
			return nil
		}
		return complete(e)
	}
}

func names[S ~string](all []S) choices {
	var c choices
	for _, name := range all {
		c.add(string(name), "")
	}
	return c
}

func caseChoices(e *catalog.Entry) choices {
	suite, err := conform.Load(e.Protocol)
	if err != nil {
		return nil
	}
	var c choices
	seen := map[string]bool{}
	for _, cs := range suite.Cases {
		if !seen[cs.Family] {
			seen[cs.Family] = true
			c.add(cs.Family, cs.About)
		}
	}
	rules := slices.DeleteFunc(ruleChoices(e), func(choice string) bool {
		id, _, _ := strings.Cut(choice, "\t")
		return seen[id]
	})
	return append(c, rules...)
}

func ruleChoices(e *catalog.Entry) choices {
	var c choices
	for _, r := range e.Protocol.Rules {
		c.add(string(r.ID), r.Text)
	}
	return c
}

func scenarioChoices(e *catalog.Entry) choices {
	var c choices
	for _, s := range loadgen.Scenarios(e.Protocol) {
		c.add(s.Name, s.About)
	}
	return c
}

func faultProfileChoices(*catalog.Entry) choices {
	var c choices
	for i := range audit.Profiles {
		c.add(audit.Profiles[i].Name, audit.Profiles[i].About)
	}
	return c
}

func vectorChoices(e *catalog.Entry) choices {
	var c choices
	all, _ := vectors.Read(e.Protocol)
	for _, v := range all {
		c.add(v.Name, "")
	}
	return c
}

// injectedChoices returns the faults that 'jobwire fuzz self-test' injects.
func injectedChoices(e *catalog.Entry) choices {
	var c choices
	for _, f := range faults.All() {
		if f.Protocol == e.Protocol.Name {
			c.add(f.Name, f.About)
		}
	}
	return c
}

func programChoices(e *catalog.Entry) choices {
	var c choices
	for _, role := range slices.Sorted(maps.Keys(e.Programs)) {
		c.add(role+"=", "")
	}
	return c
}

func interfaceChoices(*cobra.Command, *catalog.Entry) choices {
	c := choices{"any"}
	all, _ := net.Interfaces()
	for _, i := range all {
		c.add(i.Name, i.Flags.String())
	}
	return c
}

// actorChoices returns the actors of the transcripts that are named on the command line.
func actorChoices(cmd *cobra.Command, _ *catalog.Entry) choices {
	protocol, _ := cmd.Flags().GetString("protocol")
	var c choices
	for _, file := range cmd.Flags().Args() {
		_, scripts, _ := readScripts(cmd, protocol, file)
		for _, s := range scripts {
			for i := range s.Steps {
				if name := s.Steps[i].Peer.Name; !slices.Contains(c, name) {
					c.add(name, "")
				}
			}
		}
	}
	return c
}

// filesNamed is the completion of arguments that are files with one of these extensions.
func filesNamed(extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(names(extensions), cobra.ShellCompDirectiveFilterFileExt)
}
