package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/audit/behavior"
	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/prose"
	"jobwire/internal/version"
)

type rulesOptions struct {
	format  string
	verbose bool
}

// newRules returns the command rules.
func newRules() *cobra.Command {
	o := &rulesOptions{}
	cmd := &cobra.Command{
		Use:   "rules PROTOCOL [RULE...] [flags]",
		Short: "List the rules of a protocol and the tests of each rule",
	}
	connect.ProtocolCommandWith(cmd, connect.ProtocolCompleter(connect.RuleCompletions), o.execute)
	cli.FormatFlag(cmd, &o.format, "text", "json")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false,
		"print all tests of each requirement (default: the first four)")
	return cmd
}

// execute prints the rules of a protocol that match one of the patterns, with the cases that test them, as text or
// JSON.
func (o *rulesOptions) execute(cmd *cobra.Command, sys *catalog.Entry, globs []string) error {
	suite, err := conform.Load(sys.Protocol)
	if err != nil {
		return cli.Usage(err)
	}
	rules, err := conform.Coverage(suite)
	if err != nil {
		return cli.Usage(err)
	}
	for _, r := range behavior.Rules() {
		rules = append(rules, conform.RuleCoverage{Rule: r, TestedBy: []string{"audit", "audit stress"}})
	}
	if rules, err = selectRules(sys.Protocol, rules, globs); err != nil {
		return cli.Usage(err)
	}
	if o.format == "json" {
		return writeRulesJSON(cmd.OutOrStdout(), rules)
	}
	o.writeText(cmd.OutOrStdout(), rules)
	return nil
}

// selectRules returns the rules that match one of the globs, or all if there is no glob. Each glob must match a rule.
func selectRules(p *codec.Protocol, rules []conform.RuleCoverage, globs []string) ([]conform.RuleCoverage, error) {
	matches := func(glob string, r conform.RuleCoverage) bool {
		ok, _ := path.Match(glob, string(r.ID))
		return ok
	}
	for _, glob := range globs {
		if !slices.ContainsFunc(rules, func(r conform.RuleCoverage) bool { return matches(glob, r) }) {
			return nil, fmt.Errorf("%s has no rule %q: to list the rules, run 'jobwire rules %s'", p.Title, glob, p.Name)
		}
	}
	return slices.DeleteFunc(rules, func(r conform.RuleCoverage) bool {
		return len(globs) > 0 && !slices.ContainsFunc(globs, func(glob string) bool { return matches(glob, r) })
	}), nil
}

// writeRulesJSON writes the rules as one JSON object. A rule that no case tests has an empty list, not null, in
// tested_by.
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
	return cli.WriteJSON(w, struct {
		version.Head
		Rules []row `json:"rules"`
	}{version.NewHead(), rows})
}

// ruleWidth is the maximum length of a line about a rule, in characters.
const ruleWidth = 100

// writeText writes the rules by section, wrapped to the width of the terminal, and a last line with the numbers of
// rules that are tested, not testable and not tested. Without --verbose it names at most four cases of a rule.
func (o *rulesOptions) writeText(w io.Writer, rules []conform.RuleCoverage) {
	section, tested, untestable := "", 0, 0
	width := ruleWidth
	if cli.IsTerminal(w) {
		width = min(width, cli.Columns(w))
	}
	show := func(s string) { fmt.Fprintln(w, prose.Wrap("    ", "    ", s, width)) }
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
			show(fmt.Sprintf("Tested by %s and %d more", strings.Join(r.TestedBy[:4], ", "), n-4))
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
	fmt.Fprintf(w, "\n%s: %d tested, %d not testable, %d not tested\n", cli.Counted(len(rules), "requirement"), tested,
		untestable, len(rules)-tested-untestable)
}
