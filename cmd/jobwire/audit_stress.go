package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/internal/target"
	dangapeer "jobwire/refpeer/danga"
	dangapeermutants "jobwire/refpeer/danga/mutants"
	gearmanpeer "jobwire/refpeer/gearman"
	gearmanpeermutants "jobwire/refpeer/gearman/mutants"
	monkeypeer "jobwire/refpeer/gearmonkey"
)

// stressPeers are the reference clients and workers: whoever is not under test in a scenario, and
// what is if no --program is given.
var stressPeers = map[*codec.Protocol]map[string]audit.Driver{
	gearman.Protocol:    {"Client": gearmanpeer.Drive, "Worker": gearmanpeer.Drive},
	danga.Protocol:      {"Application": dangapeer.Drive, "Worker": dangapeer.Drive},
	gearmonkey.Protocol: {"Client": monkeypeer.Drive, "Worker": monkeypeer.Drive},
}

// peerMutants are the clients and workers with planted faults.
var peerMutants = map[*codec.Protocol]func() []gearmanpeermutants.Mutant{
	gearman.Protocol: gearmanpeermutants.All,
	danga.Protocol:   dangapeermutants.All,
}

// stressed has drivers work under conditions.
func (o *auditOptions) stressed(cmd *cobra.Command, sys *system) error {
	conditions, err := conditionsNamed(o.stress)
	if err != nil {
		return err
	}
	p := sys.protocol
	if len(audit.Roles(p)) == 0 {
		return usage(fmt.Errorf("--stress has no work for clients and workers of %s", p.Title))
	}
	drivers := stressPeers[p]
	if len(o.programs) > 0 {
		named, err := programs(o.programs)
		if err != nil {
			return usage(err)
		}
		drivers = map[string]audit.Driver{}
		for role, program := range named {
			if !slices.Contains(audit.Roles(p), role) {
				return usage(fmt.Errorf("--program %s: stress has work for %s", role, strings.Join(audit.Roles(p), ", ")))
			}
			drivers[role] = audit.Driver(program)
		}
	}
	if len(drivers) == 0 {
		return usage(fmt.Errorf("there is no reference client or worker of %s: name one with --program", p.Title))
	}
	waive, err := ruleIDs(p, o.waive)
	if err != nil {
		return err
	}
	color, err := o.color.on(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	opts := stressOptions(sys, conditions, drivers)
	opts.Limit, opts.Codec.Waive = o.timeout, waive
	progress := newProgress(cmd.ErrOrStderr(), len(conditions)*len(drivers))
	opts.Done = func(*audit.Outcome) { progress.step() }
	all, err := audit.Stress(cmd.Context(), opts)
	progress.clear()
	if err != nil {
		return err
	}
	if o.format == "json" {
		err = audit.WriteOutcomesJSON(cmd.OutOrStdout(), p, all)
	} else {
		err = audit.WriteOutcomes(cmd.OutOrStdout(), p, all, audit.Shown{Color: color, Hex: o.hex})
	}
	if err == nil && slices.ContainsFunc(all, func(x audit.Outcome) bool { return !x.Held() }) {
		err = &exit{exitFellShort, nil}
	}
	return err
}

func stressOptions(sys *system, conditions []*audit.Condition, drivers map[string]audit.Driver) audit.StressOptions {
	return audit.StressOptions{
		Protocol: sys.protocol, Conditions: conditions, Drivers: drivers, Partners: stressPeers[sys.protocol],
		Start: func(ctx context.Context) (target.Target, error) { return (&targetFlags{}).start(ctx, sys) },
	}
}

// conditionsNamed reads --stress.
func conditionsNamed(list string) ([]*audit.Condition, error) {
	var all []*audit.Condition
	for name := range strings.SplitSeq(list, ",") {
		c := audit.ConditionNamed(name)
		if name == "all" {
			for i := range audit.Conditions {
				all = append(all, &audit.Conditions[i])
			}
			continue
		}
		if c == nil {
			return nil, usage(fmt.Errorf("--stress: there is no condition %q; --list shows them", name))
		}
		all = append(all, c)
	}
	return all, nil
}

// listConditions writes the names of the conditions, and what they are.
func listConditions(w io.Writer) error {
	for i := range audit.Conditions {
		c := &audit.Conditions[i]
		note := ""
		if c.Fails {
			note = "; a task may fail if the driver works on"
		}
		fmt.Fprintf(w, "%-16s %s%s\n", c.Name, c.About, note)
	}
	return nil
}

// faultTime is how long a planted fault may take for a task that it never answers.
const faultTime = 700 * time.Millisecond

// prove has the faultless client and worker, and those with planted faults, judged.
func (o *auditOptions) prove(cmd *cobra.Command, sys *system) error {
	if peerMutants[sys.protocol] == nil {
		return usage(errors.New("--self-test has planted faults of gearman and danga only"))
	}
	out := cmd.OutOrStdout()
	all, err := conditionsNamed("all")
	if err != nil {
		return err
	}
	sound, err := audit.Stress(cmd.Context(), stressOptions(sys, all, stressPeers[sys.protocol]))
	if err != nil {
		return err
	}
	bad := 0
	for i := range sound {
		if x := &sound[i]; !x.Held() {
			bad++
			fmt.Fprintf(out, "the faultless: %s, %s: %s: %s\n", x.Role, x.Condition.Name, x.Verdict, x.Note)
		}
	}
	mutants := peerMutants[sys.protocol]()
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
			if !ok { // on a busy machine what comes before the fault takes its time, too
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
	fmt.Fprintf(out, "\n%d of %d planted faults are named; the faultless fall short under %d of %d conditions\n", named, len(mutants), bad, len(sound))
	if bad > 0 || named < len(mutants) {
		return &exit{exitFellShort, nil}
	}
	return nil
}

// proveOne has one planted fault judged, under the condition that it is to fail under. A limit of 0 is that
// of any driver.
func proveOne(ctx context.Context, sys *system, m *gearmanpeermutants.Mutant, limit time.Duration) (line string, named bool) {
	condition := audit.ConditionNamed("plain")
	if m.Condition != "" {
		condition = audit.ConditionNamed(m.Condition)
	}
	opts := stressOptions(sys, []*audit.Condition{condition}, map[string]audit.Driver{m.Role: m.Drive})
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
		found = found || b.Rule.ID == m.Rule
	}
	named = found && (m.Verdict == "" || m.Verdict == string(x.Verdict))
	mark := "named  "
	if !named {
		mark = "MISSED "
	}
	return fmt.Sprintf("%s %s: %s\n         %s: %s %s", mark, m.Name, m.About, condition.Name, x.Verdict, strings.Join(rules, " ")), named
}
