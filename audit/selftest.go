package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/internal/mutant"
	"jobwire/internal/virtualtime"
)

// SelfTestReport is the result of a self-test of the stress test.
type SelfTestReport struct {
	Faultless []Outcome    // of the reference clients and workers
	Mutants   []MutantTest // in the order of the argument of [SelfTest]
	Profiles  []ProfileTest
}

// ProfileTest is what a checker says about the messages that a fault profile has changed.
type ProfileTest struct {
	Profile *FaultProfile
	Broken  []BrokenRule // with faultless clients and workers
	Missed  string       // how these rules, or those with a mutant, differ from [FaultProfile.Breaks]; "": not at all
}

// MutantTest is the result of a client or worker with an injected fault.
type MutantTest struct {
	Mutant  *mutant.Mutant
	Outcome Outcome // under the fault profile that shows the fault
	Missed  string  // how an outcome, with or without the fault profile, differs from the expected one; "": not at all
}

// Passed reports whether all faultless clients and workers passed, and all injected faults were detected.
func (r *SelfTestReport) Passed() bool {
	return !slices.ContainsFunc(r.Faultless, func(o Outcome) bool { return !o.Passed() }) &&
		!slices.ContainsFunc(r.Profiles, func(t ProfileTest) bool { return t.Missed != "" }) &&
		!slices.ContainsFunc(r.Mutants, func(t MutantTest) bool { return t.Missed != "" })
}

// SelfTest runs faultless clients and workers, which must pass, as opts selects, and then each mutant under the fault
// profile that shows its fault, which must be detected. bubble calls a function in a bubble of package synctest, so
// that waiting takes no time; all programs and servers must communicate in memory. Several bubbles exist at the same
// time.
func SelfTest(ctx context.Context, opts StressOptions, mutants []mutant.Mutant,
	bubble func(do func())) (*SelfTestReport, error) {
	opts.Runs, opts.checkProfiles = 1, true
	var tests []func() error
	var faultless [][]Outcome
	for _, role := range Roles(opts.Protocol) {
		for _, p := range opts.FaultProfiles {
			k := len(faultless)
			faultless = append(faultless, nil)
			tests = append(tests, func() (err error) {
				faultless[k], err = opts.alone(role, opts.Drivers[role], p)
				return err
			})
		}
	}
	r := &SelfTestReport{Mutants: make([]MutantTest, len(mutants))}
	for i := range mutants {
		tests = append(tests, func() (err error) {
			r.Mutants[i], err = opts.testMutant(&mutants[i])
			return err
		})
	}
	errs := make([]error, len(tests))
	virtualtime.Each(ctx, len(tests), bubble, func(i int) { errs[i] = tests[i]() })
	r.Faultless = slices.Concat(faultless...)
	if ctx.Err() == nil {
		r.checkProfiles(opts.Protocol, opts.FaultProfiles)
	}
	return r, cmp.Or(ctx.Err(), errors.Join(errs...))
}

// checkProfiles compares the rules that messages violate after the changes of each profile with those that the profile
// declares. A mutant may be gone before a message breaks them.
func (r *SelfTestReport) checkProfiles(p *codec.Protocol, profiles []*FaultProfile) {
	for _, profile := range profiles {
		t, declared, used := ProfileTest{Profile: profile}, profile.Breaks(p), false
		for i := range r.Faultless {
			if o := &r.Faultless[i]; o.FaultProfile == profile {
				used = true
				for _, b := range o.Injected {
					t.Broken = addRule(t.Broken, b)
				}
			}
		}
		all := slices.Clone(t.Broken)
		for i := range r.Mutants {
			if o := &r.Mutants[i].Outcome; o.FaultProfile == profile {
				for _, b := range o.Injected {
					all = addRule(all, b)
				}
			}
		}
		for _, b := range all {
			if !slices.Contains(declared, b.Rule.ID) {
				t.Missed = fmt.Sprintf("breaks %s: %v", b.Rule.ID, b.First[0].Err)
			}
		}
		for _, id := range declared {
			if used && !breaks(t.Broken, id) {
				t.Missed = fmt.Sprintf("does not break %s", id)
			}
		}
		if used {
			r.Profiles = append(r.Profiles, t)
		}
	}
}

// alone runs the driver of one role under one fault profile. There is no outcome if the profile does not apply to the
// protocol.
func (o StressOptions) alone(role string, d Driver, p *FaultProfile) ([]Outcome, error) {
	o.FaultProfiles, o.Drivers = []*FaultProfile{p}, map[string]Driver{role: d}
	return Stress(context.Background(), o)
}

// testMutant runs one mutant, first without faults of network and server if these show its fault.
func (o StressOptions) testMutant(m *mutant.Mutant) (MutantTest, error) {
	t := MutantTest{Mutant: m}
	if m.Condition != "" && !m.Fragile {
		plain, err := o.alone(m.Role, Driver(m.Program), FaultProfileNamed("plain"))
		if err != nil {
			return t, err
		}
		if !plain[0].Passed() {
			t.Missed = "fails without the fault profile"
		}
	}
	all, err := o.alone(m.Role, Driver(m.Program), FaultProfileNamed(cmp.Or(m.Condition, "plain")))
	if err != nil {
		return t, err
	}
	t.Outcome = all[0]
	var rules []string
	for _, b := range t.Outcome.BrokenRules {
		// Bytes after an incorrect length may be decoded as the beginning of another message.
		if id := string(b.Rule.ID); m.Rule == "" || id == m.Rule || b.Rule.ID != o.Protocol.Complete {
			rules = append(rules, id)
		}
	}
	switch {
	case m.Verdict != "" && m.Verdict != string(t.Outcome.Verdict):
		t.Missed = "expected the verdict " + m.Verdict
	case strings.Join(rules, " ") != m.Rule:
		t.Missed = "expected violations of: " + cmp.Or(m.Rule, "no rule")
	case m.Rule == "" && t.Outcome.Passed() && !t.Outcome.FaultProfile.Reported:
		t.Missed = "passed"
	}
	return t, nil
}

// WriteText writes the report as text.
func (r *SelfTestReport) WriteText(w io.Writer) error {
	var b strings.Builder
	failed, detected := 0, 0
	for i := range r.Faultless {
		if x := &r.Faultless[i]; !x.Passed() {
			failed++
			fmt.Fprintf(&b, "reference %s under %s: %s: %s\n", x.Role, x.FaultProfile.Name, x.Verdict, x.Note)
		}
	}
	wrong := 0
	for i := range r.Profiles {
		if t := &r.Profiles[i]; t.Missed != "" {
			wrong++
			fmt.Fprintf(&b, "WRONG    the fault profile %s %s\n", t.Profile.Name, t.Missed)
		}
	}
	for i := range r.Mutants {
		t := &r.Mutants[i]
		mark, missed := "detected ", ""
		if t.Missed != "" {
			mark, missed = "MISSED   ", ": "+t.Missed
		} else {
			detected++
		}
		var rules []string
		for _, broken := range t.Outcome.BrokenRules {
			rules = append(rules, string(broken.Rule.ID))
		}
		fmt.Fprintf(&b, "%s%s: %s\n         %s: %s %s%s\n",
			mark, t.Mutant.Name, t.Mutant.About, t.Outcome.FaultProfile.Name, t.Outcome.Verdict, strings.Join(rules, " "),
			missed)
	}
	fmt.Fprintf(&b, "\n%d of %d injected faults detected; the reference client and worker failed in %d of %d runs; "+
		"the rules that a server breaks under a fault profile are not the declared ones in %d of %d\n",
		detected, len(r.Mutants), failed, len(r.Faultless), wrong, len(r.Profiles))
	_, err := io.WriteString(w, b.String())
	return err
}
