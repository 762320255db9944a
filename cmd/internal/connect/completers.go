package connect

import (
	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
)

// A completer returns the values of an argument or a flag. The protocol is nil if the command line does not name one.
type Completer func(cmd *cobra.Command, e *catalog.Entry) cli.Choices

// Completed returns the completion function of a flag for cobra.
func Completed(complete Completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(cmd, entryOf(cmd, args)).After(typed)
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

// ProtocolCompleter returns a completer for values that depend on the protocol.
func ProtocolCompleter(complete func(*catalog.Entry) cli.Choices) Completer {
	return func(_ *cobra.Command, e *catalog.Entry) cli.Choices {
		if e == nil {
			return nil
		}
		return complete(e)
	}
}

func RuleCompletions(e *catalog.Entry) cli.Choices {
	var c cli.Choices
	for _, r := range e.Protocol.Rules {
		c.Add(string(r.ID), r.Text)
	}
	return c
}
