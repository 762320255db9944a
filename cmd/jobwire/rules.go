package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/codec"
	"jobwire/conform"
)

type rulesOptions struct {
	format  string
	verbose bool
}

func newRules() *cobra.Command {
	o := &rulesOptions{}
	cmd := &cobra.Command{
		Use:   "rules PROTOCOL [flags]",
		Short: "List what the protocol's document requires, and what tests it",
		Long: `rules prints the manifest: every statement of the protocol's document in our own
words, with its permanent ID, its level, our reading where the document is
silent, and the cases and vectors that test it, or why nothing can.`,
		Example: `  jobwire rules gearman
  jobwire rules gearman -v
  jobwire rules gearman --format json`,
		Args:      protocolArg,
		ValidArgs: systemNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "text or json")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "name everything that tests a rule")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *rulesOptions) execute(cmd *cobra.Command, name string) error {
	sys, err := systemNamed(name)
	if err != nil {
		return err
	}
	suite, err := conform.Load(sys.protocol)
	if err != nil {
		return usage(err)
	}
	rules, err := conform.Coverage(suite)
	if err != nil {
		return usage(err)
	}
	switch o.format {
	case "json":
		return writeRulesJSON(cmd.OutOrStdout(), rules)
	case "text":
		o.writeText(cmd.OutOrStdout(), rules)
		return nil
	}
	return usage(fmt.Errorf("--format %q: it is text or json", o.format))
}

func writeRulesJSON(w io.Writer, rules []conform.RuleCoverage) error {
	type row struct {
		ID         codec.RuleID `json:"id"`
		Level      codec.Level  `json:"level"`
		Section    string       `json:"section"`
		Text       string       `json:"text"`
		Reading    string       `json:"reading,omitempty"`
		TestedBy   []string     `json:"tested_by"`
		Untestable string       `json:"untestable,omitempty"`
	}
	rows := []row{}
	for _, r := range rules {
		rows = append(rows, row{r.ID, r.Level, r.Section, r.Text, r.Reading, append([]string{}, r.TestedBy...), r.Untestable})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"rules": rows})
}

func (o *rulesOptions) writeText(w io.Writer, rules []conform.RuleCoverage) {
	section, tested, untestable := "", 0, 0
	for _, r := range rules {
		if r.Section != section {
			section = r.Section
			fmt.Fprintf(w, "\n%s\n", section)
		}
		fmt.Fprintf(w, "\n  %s  %s\n", r.ID, r.Level)
		fmt.Fprintf(w, "    %s\n", wrap(r.Text, 4))
		if r.Reading != "" {
			fmt.Fprintf(w, "    Reading: %s\n", wrap(r.Reading, 4))
		}
		switch n := len(r.TestedBy); {
		case n == 0 && r.Untestable == "":
			fmt.Fprintln(w, "    Tested by nothing.")
		case n == 0:
			fmt.Fprintf(w, "    Not testable: %s\n", wrap(r.Untestable, 4))
		case n > 4 && !o.verbose:
			fmt.Fprintf(w, "    Tested by %s and %d more\n", strings.Join(r.TestedBy[:4], ", "), n-4)
		default:
			fmt.Fprintf(w, "    Tested by %s\n", wrap(strings.Join(r.TestedBy, ", "), 4))
		}
		switch {
		case len(r.TestedBy) > 0:
			tested++
		case r.Untestable != "":
			untestable++
		}
	}
	fmt.Fprintf(w, "\n%d rules: %d tested, %d not testable, %d neither\n", len(rules), tested, untestable, len(rules)-tested-untestable)
}

// wrapColumn is where lines of prose are broken.
const wrapColumn = 100

// wrap breaks text at blanks and indents what follows the first line.
func wrap(text string, indent int) string {
	var b strings.Builder
	col := indent
	for i, word := range strings.Fields(text) {
		if i > 0 && col+1+len(word) > wrapColumn {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			col = indent
		} else if i > 0 {
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += len(word)
	}
	return b.String()
}
