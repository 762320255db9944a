package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/prose"
	"jobwire/internal/version"
)

type rulesOptions struct {
	format  string
	verbose bool
}

func newRules() *cobra.Command {
	o := &rulesOptions{}
	cmd := &cobra.Command{
		Use:   "rules PROTOCOL [flags]",
		Short: "List the requirements of a protocol and the tests of each requirement",
	}
	onProtocol(cmd, o.execute)
	cmd.Flags().StringVar(&o.format, "format", "text", "output format (text or json)")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print all tests of each requirement (default: the first four)")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *rulesOptions) execute(cmd *cobra.Command, sys *catalog.Entry) error {
	suite, err := conform.Load(sys.Protocol)
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
	return usage(fmt.Errorf("--format: expected text or json, got %q", o.format))
}

func writeRulesJSON(w io.Writer, rules []conform.RuleCoverage) error {
	type row struct {
		ID             codec.RuleID `json:"id"`
		Level          codec.Level  `json:"level"`
		Section        string       `json:"section"`
		Text           string       `json:"text"`
		Interpretation string       `json:"interpretation,omitempty"`
		TestedBy       []string     `json:"tested_by"`
		Untestable     string       `json:"untestable,omitempty"`
	}
	rows := []row{}
	for _, r := range rules {
		rows = append(rows, row{r.ID, r.Level, r.Section, r.Text, r.Reading, append([]string{}, r.TestedBy...), r.Untestable})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"jobwire": version.Get(), "rules": rows})
}

// ruleWidth is the maximum length of a line about a rule, in characters.
const ruleWidth = 100

func (o *rulesOptions) writeText(w io.Writer, rules []conform.RuleCoverage) {
	section, tested, untestable := "", 0, 0
	show := func(s string) { fmt.Fprintln(w, prose.Wrap("    ", "    ", s, ruleWidth)) }
	for _, r := range rules {
		if r.Section != section {
			section = r.Section
			fmt.Fprintf(w, "\n%s\n", section)
		}
		fmt.Fprintf(w, "\n  %s  %s\n", r.ID, r.Level)
		show(r.Text)
		if r.Reading != "" {
			show("Interpretation: " + r.Reading)
		}
		switch n := len(r.TestedBy); {
		case n == 0 && r.Untestable == "":
			fmt.Fprintln(w, "    Not tested")
		case n == 0:
			show("Not testable: " + r.Untestable)
		case n > 4 && !o.verbose:
			fmt.Fprintf(w, "    Tested by %s and %d more\n", strings.Join(r.TestedBy[:4], ", "), n-4)
		default:
			show("Tested by " + strings.Join(r.TestedBy, ", "))
		}
		switch {
		case len(r.TestedBy) > 0:
			tested++
		case r.Untestable != "":
			untestable++
		}
	}
	fmt.Fprintf(w, "\n%d requirements: %d tested, %d not testable, %d not tested\n", len(rules), tested, untestable, len(rules)-tested-untestable)
}
