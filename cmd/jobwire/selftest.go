package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/internal/target"
)

// Numbers of mutants, and of cases for each, that a self-test runs in parallel. They are high because most of the time is
// spent waiting.
const (
	mutantsAtATime = 16
	casesAtATime   = 16
)

// prove runs the suite's self-test.
func (o *conformOptions) prove(cmd *cobra.Command, sys *catalog.Entry, suite *conform.Suite) error {
	switch {
	case o.target != targetFlags{} || len(o.profiles) > 0 || o.cases != "" || o.html != "" || len(o.programs) > 0:
		return usage(errors.New("--self-test starts its own servers and programs and writes no HTML page: it cannot be combined with --addr, --exec, --profile, --program, --cases or --html"))
	case o.format != "text" && o.format != "json":
		return usage(fmt.Errorf("--format %s: expected text or json with --self-test", o.format))
	case sys.Mutants == nil:
		return usage(fmt.Errorf("there are no servers with injected faults for %s", sys.Protocol.Title))
	}
	faultless := conform.Sound{
		Start:    func(ctx context.Context) (target.Target, error) { return (&targetFlags{}).start(ctx, sys) },
		Programs: sys.Programs,
	}
	mutants := sys.Mutants()
	progress := newProgress(cmd.ErrOrStderr(), len(mutants))
	report := conform.SelfTest(cmd.Context(), suite, faultless, mutants,
		conform.SelfTestOptions{Mutants: mutantsAtATime, Cases: casesAtATime},
		func(*conform.MutantResult) { progress.step() })
	progress.clear()
	write := writeSelfTest
	if o.format == "json" {
		write = writeSelfTestJSON
	}
	if err := write(cmd.OutOrStdout(), report, o.verbose); err != nil {
		return err
	}
	if !report.Passed() {
		return &exit{exitFailed, nil}
	}
	return nil
}

// writeSelfTest lists the mutants with the cases that fail, and with verbose the cases with the mutants that make them
// fail.
func writeSelfTest(w io.Writer, r *conform.SelfTestReport, verbose bool) error {
	prefix := r.Suite.Protocol.Name + "."
	short := func(ids []string) string { return strings.ReplaceAll(" "+strings.Join(ids, " "), " "+prefix, " ") }
	for _, res := range r.Failed {
		fmt.Fprintf(w, "reference server: %s %s: %s\n", res.Verdict, res.Case.ID, res.Note)
	}
	for _, m := range r.Mutants {
		mark := "exact "
		if !m.Exact() {
			mark = "INEXACT"
		}
		fmt.Fprintf(w, "%-7s %s: %s\n         failed cases:%s\n", mark, m.Mutant.Name, m.Mutant.About, short(m.Failed))
		if len(m.Survivors) > 0 {
			fmt.Fprintf(w, "         cases that passed, although the injected fault should make them fail:%s\n", short(m.Survivors))
		}
		for _, res := range m.Unexpected {
			fmt.Fprintf(w, "         case that failed, although the injected fault should not affect it: %s: %s\n", strings.TrimPrefix(res.Case.ID, prefix), res.Note)
		}
	}
	if r.Interrupted {
		fmt.Fprintf(w, "\nthe self-test was interrupted: the results are incomplete\n")
	}
	by := r.KilledBy()
	if verbose {
		fmt.Fprintln(w)
		for _, name := range r.Suite.Names() {
			fmt.Fprintf(w, "%-40s %s\n", name, strings.Join(by[name], ", "))
		}
	}
	unproved := r.Unproved()
	if len(unproved) > 0 && len(r.Failed) == 0 {
		fmt.Fprintf(w, "\ncases that passed with every injected fault, so that nothing shows that they can fail:%s\n", short(unproved))
	}
	_, err := fmt.Fprintf(w, "\n%d servers, clients and workers with one injected fault each: for %d of them exactly the expected cases fail.\n%d of %d cases fail with at least one injected fault. Took %.1f s.\n",
		len(r.Mutants), r.Exact(), len(r.Suite.Names())-len(unproved), len(r.Suite.Names()), r.Took.Seconds())
	return err
}

// writeSelfTestJSON writes the report as one JSON object.
func writeSelfTestJSON(w io.Writer, r *conform.SelfTestReport, _ bool) error {
	type mutant struct {
		Name       string   `json:"name"`
		About      string   `json:"about"`
		Failed     []string `json:"failed"`
		Survivors  []string `json:"survivors"`
		Unexpected []string `json:"unexpected"`
	}
	type proof struct {
		ID       string   `json:"id"`
		KilledBy []string `json:"killed_by"`
	}
	out := struct {
		conform.HeadJSON
		Protocol  string         `json:"protocol"`
		Faultless []string       `json:"faultless_failed"`
		Mutants   []mutant       `json:"mutants"`
		Cases     []proof        `json:"cases"`
		Summary   map[string]int `json:"summary"`
	}{HeadJSON: conform.NewHeadJSON(r.Began, r.Took, r.Interrupted), Protocol: r.Suite.Protocol.Name, Faultless: ids(r.Failed), Mutants: []mutant{}, Cases: []proof{}}
	for _, m := range r.Mutants {
		out.Mutants = append(out.Mutants, mutant{m.Mutant.Name, m.Mutant.About,
			append([]string{}, m.Failed...), append([]string{}, m.Survivors...), ids(m.Unexpected)})
	}
	by := r.KilledBy()
	for _, name := range r.Suite.Names() {
		out.Cases = append(out.Cases, proof{name, append([]string{}, by[name]...)})
	}
	out.Summary = map[string]int{
		"mutants": len(r.Mutants), "exact": r.Exact(),
		"cases": len(out.Cases), "killed": len(out.Cases) - len(r.Unproved()),
	}
	return writeJSON(w, out)
}

// ids returns the IDs of the cases of results.
func ids(results []conform.Result) []string {
	names := []string{}
	for _, r := range results {
		names = append(names, r.Case.ID)
	}
	return names
}
