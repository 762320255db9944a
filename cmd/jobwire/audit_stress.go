package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/internal/target"
)

// drivers returns the reference clients and workers of a protocol that have stress tests, by role.
func drivers(sys *catalog.Entry) map[string]audit.Driver {
	all := map[string]audit.Driver{}
	for _, role := range audit.Roles(sys.Protocol) {
		if program := sys.Programs[role]; program != nil {
			all[role] = audit.Driver(program)
		}
	}
	return all
}

// stressed runs drivers under the fault profiles of --stress, and reports the results.
func (o *auditOptions) stressed(cmd *cobra.Command, sys *catalog.Entry) error {
	conditions, err := conditionsNamed(o.stress)
	if err != nil {
		return err
	}
	p := sys.Protocol
	if len(audit.Roles(p)) == 0 {
		return usage(fmt.Errorf("--stress does not support %s", p.Title))
	}
	tested := drivers(sys)
	if len(o.programs) > 0 {
		named, err := programs(o.programs)
		if err != nil {
			return usage(err)
		}
		tested = map[string]audit.Driver{}
		for role, program := range named {
			if !slices.Contains(audit.Roles(p), role) {
				return usage(fmt.Errorf("--program: expected one of the roles %[2]s, got %[1]q", role, strings.Join(audit.Roles(p), ", ")))
			}
			tested[role] = audit.Driver(program)
		}
	}
	if len(tested) == 0 {
		return usage(fmt.Errorf("no reference client or worker for %s: name a driver with --program", p.Title))
	}
	waive, err := ruleIDs(p, o.waive)
	if err != nil {
		return err
	}
	color, err := o.color.on(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	opts := stressOptions(sys, conditions, tested)
	opts.Limit, opts.Codec.Waive = o.timeout, waive
	if o.to != "" {
		if _, err := o.server(cmd.Context(), sys, nil); err != nil { // report an unreachable server once, not for each run
			return err
		}
		opts.Start = func(context.Context) (target.Target, error) { return target.Address(o.to) }
		opts.Profiles = slices.DeleteFunc(opts.Profiles, func(c *audit.Profile) bool { return c.Restarts })
	}
	progress := newProgress(cmd.ErrOrStderr(), len(opts.Profiles)*len(tested))
	out, shown := cmd.OutOrStdout(), audit.Shown{Color: color, Hex: o.hex}
	var failed error
	if o.scripts != "" {
		opts.Record = func() (audit.Recording, error) { return record(p) }
	}
	opts.Done = func(x *audit.Outcome) {
		progress.clear()
		text := x.AppendText(nil, p, shown)
		if x.Recording != nil {
			defer x.Recording.Discard()
		}
		if !x.Passed() {
			text = fmt.Appendf(text, "    To repeat: %s\n", o.repeats(sys, x))
			if rec, _ := x.Recording.(*recording); rec != nil && rec.bytes > 0 {
				dir := filepath.Join(o.scripts, strings.ToLower(x.Role)+"-"+x.Profile.Name)
				failed = cmp.Or(failed, rec.transcribe(cmd, dir))
			}
		}
		if o.format == "text" {
			_, err := out.Write(text)
			failed = cmp.Or(failed, err)
		}
		progress.step()
	}
	all, err := audit.Stress(cmd.Context(), opts)
	progress.clear()
	if err != nil {
		return err
	}
	if o.format == "json" {
		err = audit.WriteOutcomesJSON(out, p, all)
	} else if err = failed; err == nil {
		err = audit.SummarizeOutcomes(out, p, all)
	}
	if err == nil && slices.ContainsFunc(all, func(x audit.Outcome) bool { return !x.Passed() }) {
		err = &exit{exitFailed, nil}
	}
	return err
}

// repeats returns the command that repeats the run of an outcome.
func (o *auditOptions) repeats(sys *catalog.Entry, x *audit.Outcome) string {
	words := []string{"jobwire", "audit", sys.Protocol.Name, "--stress", x.Profile.Name}
	for _, program := range o.programs {
		if strings.HasPrefix(program, x.Role+"=") {
			words = append(words, "--program", "'"+strings.ReplaceAll(program, "'", `'\\''`)+"'")
		}
	}
	if o.to != "" {
		words = append(words, "--to", o.to)
	}
	return strings.Join(words, " ")
}

func stressOptions(sys *catalog.Entry, conditions []*audit.Profile, tested map[string]audit.Driver) audit.StressOptions {
	return audit.StressOptions{
		Protocol: sys.Protocol, Profiles: conditions, Drivers: tested, Partners: drivers(sys),
		Start: func(ctx context.Context) (target.Target, error) { return (&targetFlags{}).start(ctx, sys) },
	}
}

// conditionsNamed parses --stress: names of fault profiles, separated by commas, or all.
func conditionsNamed(list string) ([]*audit.Profile, error) {
	var all []*audit.Profile
	for name := range strings.SplitSeq(list, ",") {
		c := audit.ProfileNamed(name)
		if name == "all" {
			for i := range audit.Profiles {
				all = append(all, &audit.Profiles[i])
			}
			continue
		}
		if c == nil {
			return nil, usage(fmt.Errorf("--stress: unknown fault profile %q; to list them, add --list", name))
		}
		all = append(all, c)
	}
	return all, nil
}

// listConditions writes the names and descriptions of the fault profiles.
func listConditions(w io.Writer) error {
	for i := range audit.Profiles {
		c := &audit.Profiles[i]
		fmt.Fprintf(w, "%-16s %s%s\n", c.Name, c.About, c.Note())
	}
	return nil
}

// faultTime is the time limit per task for injected faults that may leave a task unanswered.
const faultTime = 700 * time.Millisecond

// prove runs --self-test: it checks that the reference client and worker pass under all fault profiles, and that each
// injected fault is detected.
func (o *auditOptions) prove(cmd *cobra.Command, sys *catalog.Entry) error {
	if sys.PeerMutants == nil {
		var names []string
		for _, e := range catalog.All() {
			if e.PeerMutants != nil {
				names = append(names, e.Protocol.Name)
			}
		}
		return usage(fmt.Errorf("--self-test supports %s only", strings.Join(names, ", ")))
	}
	out := cmd.OutOrStdout()
	all, err := conditionsNamed("all")
	if err != nil {
		return err
	}
	sound, err := audit.Stress(cmd.Context(), stressOptions(sys, all, drivers(sys)))
	if err != nil {
		return err
	}
	bad := 0
	for i := range sound {
		if x := &sound[i]; !x.Passed() {
			bad++
			fmt.Fprintf(out, "reference %s under %s: %s: %s\n", x.Role, x.Profile.Name, x.Verdict, x.Note)
		}
	}
	mutants := sys.PeerMutants()
	lines := make([]string, len(mutants))
	named := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, casesAtATime)
	for i := range mutants {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			line, ok := proveOne(cmd.Context(), sys, &mutants[i], faultTime)
			if !ok { // on a busy machine, the messages before the fault may take longer than faultTime
				line, ok = proveOne(cmd.Context(), sys, &mutants[i], 0)
			}
			mu.Lock()
			defer mu.Unlock()
			if lines[i] = line; ok {
				named++
			}
		})
	}
	wg.Wait()
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
	fmt.Fprintf(out, "\n%d of %d injected faults detected; the reference client and worker failed in %d of %d runs\n", named, len(mutants), bad, len(sound))
	if bad > 0 || named < len(mutants) {
		return &exit{exitFailed, nil}
	}
	return nil
}

// proveOne runs a client or worker with one injected fault under the fault profile that shows the fault, and reports
// whether it was detected. limit is the time limit per task if the fault may leave a task unanswered; 0 is the default.
func proveOne(ctx context.Context, sys *catalog.Entry, m *conform.Mutant, limit time.Duration) (line string, named bool) {
	condition := audit.ProfileNamed("plain")
	if m.Condition != "" {
		condition = audit.ProfileNamed(m.Condition)
	}
	opts := stressOptions(sys, []*audit.Profile{condition}, map[string]audit.Driver{m.Role: m.Program})
	if m.Verdict == string(audit.Hung) || m.Verdict == "" {
		opts.Limit = limit
	}
	all, err := audit.Stress(ctx, opts)
	if err != nil {
		return err.Error(), false
	}
	x := &all[0]
	found := m.Rule == ""
	var rules []string
	for _, b := range x.Breaches {
		rules = append(rules, string(b.Rule.ID))
		found = found || string(b.Rule.ID) == m.Rule
	}
	named = found && (m.Verdict == "" || m.Verdict == string(x.Verdict))
	mark := "detected "
	if !named {
		mark = "MISSED   "
	}
	return fmt.Sprintf("%s%s: %s\n         %s: %s %s", mark, m.Name, m.About, condition.Name, x.Verdict, strings.Join(rules, " ")), named
}
