package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/internal/prose"
)

// FormatFlag adds --format. The first format is the default.
func FormatFlag(cmd *cobra.Command, format *string, formats ...string) {
	ChoiceFlag(cmd, format, "format", "`FORMAT` of the output: "+strings.Join(formats, ", "), formats...)
}

// ChoiceFlag adds a flag whose value is one of several. The first is the default.
func ChoiceFlag(cmd *cobra.Command, value *string, name, about string, allowed ...string) {
	*value = allowed[0]
	cmd.Flags().Var(choice{value, allowed}, name, about)
	cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(Names(allowed), cobra.ShellCompDirectiveNoFileComp))
}

// choice is the value of a flag that is one of several.
type choice struct {
	value   *string
	allowed []string
}

func (c choice) String() string {
	if c.value == nil { // pflag compares with the zero value
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return "string" }

func (c choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		n := len(c.allowed) - 1
		return fmt.Errorf("expected %s or %s", strings.Join(c.allowed[:n], ", "), c.allowed[n])
	}
	*c.value = text
	return nil
}

// OneOrMore is the argument check of commands that take one or more arguments.
func OneOrMore(missing string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New(missing)
		}
		return nil
	}
}

// exclusiveFlags is the annotation in which cobra keeps the groups of
// Command.MarkFlagsMutuallyExclusive: names separated by spaces.
const exclusiveFlags = "cobra_annotation_mutually_exclusive"

// CheckExclusive returns an error if two flags of one group are set. Its message is
// plainer than that of cobra's own check, which runs later.
func CheckExclusive(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		for _, group := range f.Annotations[exclusiveFlags] {
			for _, name := range strings.Fields(group) {
				if other := flags.Lookup(name); other != nil && other.Changed && name < f.Name && err == nil {
					err = fmt.Errorf("--%s and --%s are mutually exclusive", name, f.Name)
				}
			}
		}
	})
	return err
}

// SuggestFlag adds to the error about an unknown flag the subcommand of this name, or the most similar flag.
func SuggestFlag(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		var limit errLimit
		switch {
		case errors.Is(err, errEmpty):
			return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, errEmpty)
		case errors.As(err, &limit):
			return fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), limit)
		}
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.Name() == unknown.GetSpecifiedName() {
			return fmt.Errorf("%w; did you mean the command %q?", err, c.CommandPath())
		}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return fmt.Errorf("%w%s", err, Suggestion("--"+unknown.GetSpecifiedName(), names))
}

// Suggestion returns "; did you mean NAME?" for the name most similar to one that was
// typed, or "" if none is similar.
func Suggestion(typed string, names []string) string {
	best, least := "", max(2, len(typed)/3)+1
	for _, name := range names {
		if d := prose.Distance(typed, name); d < least {
			best, least = name, d
		} else if best == "" && len(typed) > 2 && strings.HasPrefix(name, typed) {
			best = name
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// CommandNames returns the names of the commands directly below cmd.
func CommandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// ColorFlag is the value of --color.
type ColorFlag struct{ when string }

func (c *ColorFlag) Add(cmd *cobra.Command) {
	ChoiceFlag(cmd, &c.when, "color", "`WHEN` to use color: auto (on a terminal), always or never", "auto", "always",
		"never")
}

// On reports whether to use color in the output to w.
func (c *ColorFlag) On(w io.Writer) bool {
	on := c.when == "always" || c.when == "auto" && WantsColor(w)
	if on {
		AllowColors(w)
	}
	return on
}
