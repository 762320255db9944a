package drivetest

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/refpeer/internal/peer"
	"jobwire/refserver"
)

// Variant is a correct client or worker: the reference program with an edit, so that it uses a freedom of the
// protocol that the reference program does not use.
type Variant struct {
	Name, Role string
	Edit       func(*peer.Program) // called once for each start of the driver
	// rules of level SHOULD, MAY or INTERPRETATION that it knowingly violates, with the reasons
	Violates map[codec.RuleID]string
}

// Variants tests that all variants pass under all fault profiles and violate no rule except their own, in memory and
// virtual time. profiles is the minimum number of fault profiles that must apply to the protocol. With -short, each
// variant is tested under every second profile, and only the first variant of each role with large payloads.
func (s Suite) Variants(t *testing.T, profiles int, variants []Variant) {
	p := s.Document()
	partners := map[string]audit.Driver{}
	for _, role := range p.Protocol.Roles {
		partners[role] = p.Drive
	}
	large := map[string]bool{} // roles of which a variant is tested with large payloads
	for i := range variants {
		v := &variants[i]
		var all []*audit.FaultProfile
		least := profiles
		for k := range audit.FaultProfiles {
			f := &audit.FaultProfiles[k]
			if testing.Short() && (f.Name == "large" && large[v.Role] || f.Name != "large" && k%2 != i%2) {
				least--
				continue
			}
			all = append(all, f)
		}
		large[v.Role] = true
		o := audit.StressOptions{Protocol: p.Protocol, FaultProfiles: all, Partners: partners, Start: s.start,
			Drivers: map[string]audit.Driver{v.Role: s.edited(v.Edit)}, Limit: time.Minute, Runs: 1}
		t.Run(v.Role+"/"+v.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { v.stress(t, o, least) })
		})
	}
}

// start starts the reference server in memory. Each restart begins with a new server.
func (s Suite) start(ctx context.Context) (target.Target, error) {
	return target.InMemory(ctx, "reference server", func(ctx context.Context, ln net.Listener) error {
		return refserver.New(s.Machine(), refserver.Options{Protocol: s.Document().Protocol}).Serve(ctx, ln)
	})
}

// stress runs a variant under fault profiles and checks the outcomes. least is the minimum number of outcomes.
func (v *Variant) stress(t *testing.T, o audit.StressOptions, least int) {
	outcomes, err := audit.Stress(t.Context(), o)
	if err != nil || len(outcomes) < least {
		t.Errorf("%s, %s: expected at least %d fault profiles, got %d; %v", v.Role, v.Name, least, len(outcomes), err)
	}
	for i := range outcomes {
		v.check(t, &outcomes[i])
	}
}

// check reports an outcome that is not the expected one, and violations of rules.
func (v *Variant) check(t *testing.T, o *audit.Outcome) {
	if !o.Passed() || o.Verdict == verdict.Unsupported {
		t.Errorf("%s, %s: %s: %s: %s: %s", v.Role, v.Name, o.FaultProfile.Name, o.Verdict, o.Task, o.Note)
	}
	for _, b := range o.BrokenRules {
		if v.Violates[b.Rule.ID] == "" {
			t.Errorf("%s, %s: %s: %s: %v", v.Role, v.Name, o.FaultProfile.Name, b.Rule.ID, b.First[0].Err)
		}
	}
	if testing.Verbose() {
		t.Logf("%s, %s: %s: %s in %v, %d runs", v.Role, v.Name, o.FaultProfile.Name, o.Verdict, o.Took.Round(time.Millisecond),
			o.Runs)
	}
}
