package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/conform"
	"jobwire/internal/target"
)

// How much a self-test does at a time. Most of it is waiting.
const (
	mutantsAtATime = 16
	casesAtATime   = 16
)

// prove runs the suite's self-test.
func (o *conformOptions) prove(cmd *cobra.Command, sys *system, suite *conform.Suite) error {
	switch {
	case o.target != targetFlags{} || len(o.profiles) > 0 || o.cases != "" || o.html != "" || len(o.programs) > 0:
		return usage(errors.New("--self-test brings its own servers and programs, which are made for jobwire's cases, and writes no page: leave --addr, --exec, --profile, --program, --cases and --html away"))
	case o.format != "text" && o.format != "json":
		return usage(fmt.Errorf("--self-test writes text or json, not %s", o.format))
	case sys.mutants == nil:
		return usage(fmt.Errorf("there are no mutants of %s", sys.protocol.Title))
	}
	faultless := conform.Sound{
		Start:    func(ctx context.Context) (target.Target, error) { return (&targetFlags{}).start(ctx, sys) },
		Programs: sys.programs,
	}
	mutants := sys.mutants()
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
	if !report.Held() {
		return &exit{exitFellShort, nil}
	}
	return nil
}

// writeSelfTest lists the mutants with what they kill, and with verbose the cases with what
// they are killed by.
func writeSelfTest(w io.Writer, r *conform.SelfTestReport, verbose bool) error {
	prefix := r.Suite.Protocol.Name + "."
	short := func(ids []string) string { return strings.ReplaceAll(" "+strings.Join(ids, " "), " "+prefix, " ") }
	for _, res := range r.Failed {
		fmt.Fprintf(w, "the faultless: %s %s: %s\n", res.Verdict, res.Case.ID, res.Note)
	}
	for _, m := range r.Mutants {
		mark := "exact "
		if !m.Exact() {
			mark = "INEXACT"
		}
		fmt.Fprintf(w, "%-7s %s: %s\n         kills%s\n", mark, m.Mutant.Name, m.Mutant.About, short(m.Kills))
		if len(m.Survivors) > 0 {
			fmt.Fprintf(w, "         survived by%s\n", short(m.Survivors))
		}
		for _, res := range m.Unexpected {
			fmt.Fprintf(w, "         unexpected: %s: %s\n", strings.TrimPrefix(res.Case.ID, prefix), res.Note)
		}
	}
	by := r.KilledBy()
	if verbose {
		fmt.Fprintln(w)
		for _, c := range r.Suite.Cases {
			fmt.Fprintf(w, "%-40s %s\n", c.ID, strings.Join(by[c.ID], " "))
		}
	}
	unproved := r.Unproved()
	if len(unproved) > 0 && len(r.Failed) == 0 {
		fmt.Fprintf(w, "\nkilled by none:%s\n", short(unproved))
	}
	_, err := fmt.Fprintf(w, "\n%d mutants, %d exact; %d of %d cases killed, in %.1f s\n",
		len(r.Mutants), r.Exact(), len(r.Suite.Cases)-len(unproved), len(r.Suite.Cases), r.Took.Seconds())
	return err
}

// writeSelfTestJSON writes one object.
func writeSelfTestJSON(w io.Writer, r *conform.SelfTestReport, _ bool) error {
	type mutant struct {
		Name       string   `json:"name"`
		About      string   `json:"about"`
		Kills      []string `json:"kills"`
		Survivors  []string `json:"survivors"`
		Unexpected []string `json:"unexpected"`
	}
	type proof struct {
		ID       string   `json:"id"`
		KilledBy []string `json:"killed_by"`
	}
	out := struct {
		Faultless []string       `json:"faultless_failed"`
		Mutants   []mutant       `json:"mutants"`
		Cases     []proof        `json:"cases"`
		Summary   map[string]int `json:"summary"`
	}{Faultless: ids(r.Failed), Mutants: []mutant{}, Cases: []proof{}}
	for _, m := range r.Mutants {
		out.Mutants = append(out.Mutants, mutant{m.Mutant.Name, m.Mutant.About,
			append([]string{}, m.Kills...), append([]string{}, m.Survivors...), ids(m.Unexpected)})
	}
	by := r.KilledBy()
	for _, c := range r.Suite.Cases {
		out.Cases = append(out.Cases, proof{c.ID, append([]string{}, by[c.ID]...)})
	}
	out.Summary = map[string]int{
		"mutants": len(r.Mutants), "exact": r.Exact(),
		"cases": len(r.Suite.Cases), "killed": len(r.Suite.Cases) - len(r.Unproved()),
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// ids names the cases of results.
func ids(results []conform.Result) []string {
	names := []string{}
	for _, r := range results {
		names = append(names, r.Case.ID)
	}
	return names
}
