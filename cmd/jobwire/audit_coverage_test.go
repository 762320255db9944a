package main

import (
	"slices"
	"testing"
	"testing/synctest"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/internal/verdict"
	"jobwire/internal/virtualtime"
)

// unexercised lists the rules that no task of a driver can exercise.
var unexercised = []struct {
	roles []string
	rules []codec.RuleID
	why   string
}{
	{[]string{"Client", "Worker", "Operator"}, []codec.RuleID{"resp.inline.words"},
		"it is about commands that people type; libraries send commands as arrays"},
	{[]string{"Operator"}, []codec.RuleID{"gearmonkey.placeholder.count", "gearmonkey.placeholder.range"},
		"the specification has no operators, so there is no library for them: people inspect and repair queues with redis-cli"},
}

// TestStressCoverage runs the reference drivers without faults: the tasks must exercise each rule about clients and workers, so
// that a library that violates a rule is found.
func TestStressCoverage(t *testing.T) {
	eachProtocol(t, func(t *testing.T, sys *catalog.Entry) {
		if len(audit.Roles(sys.Protocol)) == 0 {
			t.Skip("the protocol has no tasks")
		}
		synctest.Test(t, func(t *testing.T) {
			virtualtime.Forward()
			opts := stressOf(sys, []*audit.FaultProfile{audit.FaultProfileNamed("plain")}, drivers(sys))
			opts.Start = inMemory(sys)
			all, err := audit.Stress(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			for i := range all {
				if all[i].Verdict != verdict.Completed {
					t.Errorf("%s: %s: %s: %s", all[i].Role, all[i].Verdict, all[i].Task, all[i].Note)
				}
			}
			parts := audit.StressCoverage(sys.Protocol, all)
			if len(parts) < len(audit.Roles(sys.Protocol)) {
				t.Errorf("expected the coverage of %v, got %d roles", audit.Roles(sys.Protocol), len(parts))
			}
			for _, p := range parts {
				for _, rule := range p.Missing {
					if !excused(p.Role, rule) {
						t.Errorf("%s: no task exercises %s", p.Role, rule)
					}
				}
				for _, rule := range p.Exercised {
					if excused(p.Role, rule) {
						t.Errorf("%s: a task exercises %s, which is listed as impossible", p.Role, rule)
					}
				}
			}
		})
	})
}

func excused(role string, rule codec.RuleID) bool {
	for _, x := range unexercised {
		if slices.Contains(x.roles, role) && slices.Contains(x.rules, rule) {
			return true
		}
	}
	return false
}
