package selftest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"jobwire/conform"
	"jobwire/conform/report"
)

// WriteText writes the mutants with the cases that they fail. If verbose is set, it also writes the cases with the
// mutants that fail them.
func (r *Report) WriteText(w io.Writer, verbose bool) error {
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
			fmt.Fprintf(w, "         cases that passed, although the injected fault should make them fail:%s\n",
				short(m.Survivors))
		}
		for _, res := range m.Unexpected {
			fmt.Fprintf(w, "         case that failed, although the injected fault should not affect it: %s: %s\n",
				strings.TrimPrefix(res.Case.ID, prefix), res.Note)
		}
		for _, res := range m.Hidden {
			fmt.Fprintf(w, "         case that failed, although the condition of the fault was never true in it: %s: %s\n",
				strings.TrimPrefix(res.Case.ID, prefix), res.Note)
		}
		if !m.Effective {
			fmt.Fprintf(w, "         the condition of the fault is true in no case\n")
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
	unproved := r.WithoutMutant()
	if len(unproved) > 0 && len(r.Failed) == 0 {
		fmt.Fprintf(w, "\ncases that passed with every injected fault, so that nothing shows that they can fail:%s\n",
			short(unproved))
	}
	if n := r.Runs; n.Done < n.Possible {
		fmt.Fprintf(w, "\n%d of %d possible runs of a case against a faulty program took place; in the others, the condition of the fault is never true. A sample of %d of these took place too.\n", n.Done, n.Possible, n.Sampled)
	}
	_, err := fmt.Fprintf(w, "\n%d servers, clients and workers with one injected fault each: for %d of them exactly the expected cases fail.\n%d of %d cases fail with at least one injected fault. Took %.1f s.\n",
		len(r.Mutants), r.Exact(), len(r.Suite.Names())-len(unproved), len(r.Suite.Names()), r.Took.Seconds())
	return err
}

// WriteJSON writes the report as one JSON object, which docs/schema/conform.json describes.
func (r *Report) WriteJSON(w io.Writer) error {
	type mutant struct {
		Name       string   `json:"name"`
		About      string   `json:"about"`
		Failed     []string `json:"failed"`
		Survivors  []string `json:"survivors"`
		Unexpected []string `json:"unexpected"`
		Hidden     []string `json:"hidden"`
		Effective  bool     `json:"effective"`
	}
	type proof struct {
		ID       string   `json:"id"`
		KilledBy []string `json:"killed_by"`
	}
	out := struct {
		report.HeadJSON
		Protocol  string         `json:"protocol"`
		Faultless []string       `json:"faultless_failed"`
		Mutants   []mutant       `json:"mutants"`
		Runs      RunCounts      `json:"runs"`
		Cases     []proof        `json:"cases"`
		Summary   map[string]int `json:"summary"`
	}{HeadJSON: report.NewHeadJSON(r.Began, r.Took, r.Interrupted), Protocol: r.Suite.Protocol.Name, Faultless: ids(r.Failed),
		Mutants: []mutant{}, Runs: r.Runs, Cases: []proof{}}
	for _, m := range r.Mutants {
		out.Mutants = append(out.Mutants, mutant{m.Mutant.Name, m.Mutant.About,
			append([]string{}, m.Failed...), append([]string{}, m.Survivors...), ids(m.Unexpected), ids(m.Hidden), m.Effective})
	}
	by := r.KilledBy()
	for _, name := range r.Suite.Names() {
		out.Cases = append(out.Cases, proof{name, append([]string{}, by[name]...)})
	}
	out.Summary = map[string]int{
		"mutants": len(r.Mutants), "exact": r.Exact(),
		"cases": len(out.Cases), "killed": len(out.Cases) - len(r.WithoutMutant()),
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// ids returns the IDs of the cases of the results.
func ids(results []conform.Result) []string {
	names := []string{}
	for _, r := range results {
		names = append(names, r.Case.ID)
	}
	return names
}
