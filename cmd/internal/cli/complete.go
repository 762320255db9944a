package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Choices are values of a flag or an argument, each with a description after a tab or without one.
type Choices []cobra.Completion

func (c *Choices) Add(value, about string) {
	*c = append(*c, cobra.CompletionWithDesc(value, about))
}

// After returns the values that begin with typed. It cuts each value after the next period, so that a user completes
// gearman.echo. first and then gearman.echo.client: a protocol has hundreds of cases and rules.
func (c Choices) After(typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all Choices
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

func Names[S ~string](all []S) Choices {
	var c Choices
	for _, name := range all {
		c.Add(string(name), "")
	}
	return c
}

// PlainUsages removes the quotes of placeholders from the usage of all flags, which shells show with a completion.
func PlainUsages(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	for _, c := range cmd.Commands() {
		PlainUsages(c)
	}
}

// FilesNamed is the completion of arguments that are files with one of these extensions.
func FilesNamed(extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(Names(extensions), cobra.ShellCompDirectiveFilterFileExt)
}
