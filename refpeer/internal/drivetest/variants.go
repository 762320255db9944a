package drivetest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/internal/target"
	"jobwire/refserver"
)

// Variant is a correct client or worker: the reference program P with an edit, so that it uses a freedom of the
// protocol that the reference program does not use.
type Variant[P any] struct {
	Name, Role string
	Edit       func(*P)                // called once for each start of the driver
	Violates   map[codec.RuleID]string // rules of level SHOULD, MAY or INTERPRETATION that it knowingly violates, with the reasons
}

// variantRuns is how many runs of a variant are concurrent; they wait most of the time. largeRuns is how many variants
// run concurrently under the profile large, which needs much memory.
const (
	variantRuns = 8
	largeRuns   = 2
)

// Variants tests that all variants pass under all fault profiles and violate no rule except their own. profiles is the
// minimum number of fault profiles that must apply to the protocol. The variants run at the same time. With -short,
// only one of six is tested, and only the first of these for each role with large payloads.
func Variants[P any](t *testing.T, b Suite, profiles int, edited func(func(*P)) Driver, variants []Variant[P]) {
	var all []*audit.Profile
	for i := range audit.Profiles {
		if p := &audit.Profiles[i]; p.Name != "large" {
			all = append(all, p)
		}
	}
	large := make(chan struct{}, largeRuns)
	partners := map[string]audit.Driver{}
	for _, role := range b.Protocol.Roles {
		partners[role] = audit.Driver(b.Drive)
	}
	start := func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, b.Protocol.Name, func(ctx context.Context, ln net.Listener) error {
			return refserver.New(b.Machine(), refserver.Options{Protocol: b.Protocol}).Serve(ctx, ln)
		})
	}
	var done sync.WaitGroup
	apart := 1
	if testing.Short() {
		apart = 6
	}
	for i := 0; i < len(variants); i += apart {
		v := &variants[i]
		o := audit.StressOptions{Protocol: b.Protocol, Profiles: all, Partners: partners, Start: start,
			Drivers: map[string]audit.Driver{v.Role: audit.Driver(edited(v.Edit))}, Limit: time.Minute, Runs: variantRuns}
		done.Go(func() { v.stress(t, o, profiles-1) })
		if testing.Short() && i > 0 && v.Role == variants[i-apart].Role {
			continue
		}
		done.Go(func() {
			large <- struct{}{}
			defer func() { <-large }()
			alone := o
			alone.Profiles = []*audit.Profile{audit.ProfileNamed("large")}
			v.stress(t, alone, 1)
		})
	}
	done.Wait()
}

// stress runs a variant under fault profiles and checks the outcomes. least is the minimum number of outcomes.
func (v *Variant[P]) stress(t *testing.T, o audit.StressOptions, least int) {
	outcomes, err := audit.Stress(t.Context(), o)
	if err != nil || len(outcomes) < least {
		t.Errorf("%s, %s: expected at least %d fault profiles, got %d; %v", v.Role, v.Name, least, len(outcomes), err)
	}
	for i := range outcomes {
		v.check(t, &outcomes[i])
	}
}

// check reports an outcome that is not the expected one, and violations of rules.
func (v *Variant[P]) check(t *testing.T, o *audit.Outcome) {
	if !o.Passed() || o.Verdict == audit.Unsupported {
		t.Errorf("%s, %s: %s: %s: %s: %s", v.Role, v.Name, o.Profile.Name, o.Verdict, o.Task, o.Note)
	}
	for _, b := range o.Breaches {
		if v.Violates[b.Rule.ID] == "" {
			t.Errorf("%s, %s: %s: %s: %v", v.Role, v.Name, o.Profile.Name, b.Rule.ID, b.First[0].Err)
		}
	}
	if testing.Verbose() {
		t.Logf("%s, %s: %s: %s in %v, %d runs", v.Role, v.Name, o.Profile.Name, o.Verdict, o.Took.Round(time.Millisecond), o.Runs)
	}
}
