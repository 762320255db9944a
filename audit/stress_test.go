package audit_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/audit"
	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/gearman/mutants"
	"jobwire/refserver"
	gearmanserver "jobwire/refserver/gearman"
)

// gearmanServer starts a server of its own.
func gearmanServer(ctx context.Context) (target.Target, error) {
	return target.Func(ctx, "gearman", func(ctx context.Context, ln net.Listener) error {
		return refserver.New(gearmanserver.New(gearmanserver.Options{}), refserver.Options{Protocol: protocol.Protocol}).Serve(ctx, ln)
	})
}

var gearmanPartners = map[string]audit.Driver{"Client": gearman.Drive, "Worker": gearman.Drive}

// stressed has drivers work under conditions.
func stressed(t *testing.T, drivers map[string]audit.Driver, limit time.Duration, conditions ...string) []audit.Outcome {
	t.Helper()
	var all []*audit.Condition
	for i := range audit.Conditions {
		if c := &audit.Conditions[i]; len(conditions) == 0 || slices.Contains(conditions, c.Name) {
			all = append(all, c)
		}
	}
	out, err := audit.Stress(t.Context(), audit.StressOptions{Protocol: protocol.Protocol, Conditions: all, Drivers: drivers, Partners: gearmanPartners, Start: gearmanServer, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func described(o *audit.Outcome) string {
	var rules []string
	for i := range o.Breaches {
		rules = append(rules, string(o.Breaches[i].Rule.ID)+": "+o.Breaches[i].First[0].Err.Error())
	}
	return strings.Join(append([]string{o.Role, o.Condition.Name, string(o.Verdict), o.Note}, rules...), "; ")
}

// TestFaultless: the reference client and worker pass all conditions, with nothing said.
func TestFaultless(t *testing.T) {
	t.Parallel()
	out := stressed(t, gearmanPartners, 5*time.Second)
	if len(out) != 2*len(audit.Conditions) {
		t.Errorf("%d outcomes of %d conditions", len(out), len(audit.Conditions))
	}
	for i := range out {
		o := &out[i]
		if !o.Held() || len(o.Breaches) > 0 || o.Verdict == audit.Unsupported || o.Note != "" && !o.Condition.Fails {
			t.Error(described(o))
		}
		if testing.Verbose() {
			t.Logf("%v %d runs: %s", o.Took, o.Runs, described(o))
		}
	}
}

// TestMutants: each planted fault is named, by its rule or by its verdict.
func TestMutants(t *testing.T) {
	t.Parallel()
	all := mutants.All()
	if len(all) < 25 {
		t.Errorf("there are %d mutants", len(all))
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			condition := m.Condition
			if condition == "" {
				condition = "plain"
			}
			limit := 700 * time.Millisecond
			if m.Verdict != string(audit.Hung) {
				limit = 10 * time.Second
			}
			out := stressed(t, map[string]audit.Driver{m.Role: m.Drive}, limit, condition)
			if len(out) != 1 {
				t.Fatalf("%d outcomes", len(out))
			}
			o := &out[0]
			if m.Verdict != "" && string(o.Verdict) != m.Verdict {
				t.Errorf("%s; want the verdict %s", described(o), m.Verdict)
			}
			var rules []codec.RuleID
			for _, b := range o.Breaches {
				rules = append(rules, b.Rule.ID)
			}
			if m.Rule != "" && !slices.Contains(rules, m.Rule) {
				t.Errorf("%s; want the rule %s", described(o), m.Rule)
			}
			if m.Rule == "" && len(rules) > 0 || len(rules) > 1 {
				t.Errorf("%s: rules beside %s", described(o), m.Rule)
			}
			if o.Held() && len(rules) == 0 {
				t.Errorf("%s held", described(o))
			}
			if m.Condition != "" && !m.Fragile {
				// Nothing is wrong with it otherwise.
				if o := &stressed(t, map[string]audit.Driver{m.Role: m.Drive}, 5*time.Second, "plain")[0]; !o.Held() {
					t.Errorf("plain: %s", described(o))
				}
			}
		})
	}
}
