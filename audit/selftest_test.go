package audit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	gearmanpeer "jobwire/refpeer/gearman"
	"jobwire/refserver"
)

// inapplicable lists the fault profiles that do not apply to a protocol.
var inapplicable = map[string]string{
	"gearman":   "huge-ids",
	"beanstalk": "needless-noops interleaved late-progress unknown-handles unrequested-jobs",
	"danga":     "interleaved rare-replies error-answers late-progress unknown-handles unrequested-jobs huge-ids",
	"gearmonkey": "needless-noops interleaved rare-replies long-handles huge-ids late-progress unknown-handles " +
		"unrequested-jobs",
}

// inMemory returns the options for stress tests of the reference programs of a protocol, in memory.
func inMemory(e *catalog.Entry, profiles ...string) audit.StressOptions {
	o := audit.StressOptions{Protocol: e.Protocol, Partners: map[string]audit.Driver{}}
	for i := range audit.FaultProfiles {
		if len(profiles) == 0 || slices.Contains(profiles, audit.FaultProfiles[i].Name) {
			o.FaultProfiles = append(o.FaultProfiles, &audit.FaultProfiles[i])
		}
	}
	for role, program := range e.Programs {
		o.Partners[role] = audit.Driver(program)
	}
	o.Drivers = o.Partners
	o.Start = func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, e.Protocol.Name, func(ctx context.Context, ln net.Listener) error {
			return refserver.New(e.New(), refserver.Options{Protocol: e.Protocol}).Serve(ctx, ln)
		})
	}
	return o
}

// TestSelfTest: all faulty clients and workers are detected, and the reference clients and workers pass under all fault
// profiles, without violations. A profile that libraries must handle breaks no MUST or SHOULD rule, except where it
// ends a connection inside a message; the others break the rules that they declare. (See also [audit.DangaEffects].)
func TestSelfTest(t *testing.T) {
	bubble := func(do func()) { synctest.Test(t, func(*testing.T) { do() }) }
	for _, e := range catalog.All() {
		t.Run(e.Protocol.Name, func(t *testing.T) {
			var mutants []mutant.Mutant
			if e.PeerMutants != nil {
				if mutants = e.PeerMutants(); len(mutants) < 25 {
					t.Errorf("expected at least 25 faulty clients and workers, got %d", len(mutants))
				}
			}
			r, err := audit.SelfTest(t.Context(), inMemory(e), mutants, bubble)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := r.WriteText(&text); err != nil || r.Passed() == strings.Contains(text.String(), "MISSED") {
				t.Errorf("the report does not have the result %v: %v\n%s", r.Passed(), err, &text)
			}
			for _, m := range r.Mutants {
				if m.Missed != "" {
					t.Errorf("%s: %s: %s", m.Mutant.Name, m.Missed, described(&m.Outcome))
				}
			}
			for _, p := range r.Profiles {
				if p.Missed != "" {
					t.Errorf("the fault profile %s %s", p.Profile.Name, p.Missed)
				}
				for _, b := range p.Broken {
					t.Logf("%s %s: %s (%s)", e.Protocol.Name, p.Profile.Name, b.Rule.ID, b.Rule.Level)
					if binding := b.Rule.Level == codec.Must || b.Rule.Level == codec.Should; binding && !p.Profile.Reported &&
						b.Rule.ID != e.Protocol.Complete && b.Rule.ID != "danga.assign.asked-for" {
						t.Errorf("the fault profile %s, which libraries must handle, breaks %s (%s)", p.Profile.Name, b.Rule.ID,
							b.Rule.Level)
					}
				}
			}
			without := strings.Fields(inapplicable[e.Protocol.Name])
			if want := len(audit.Roles(e.Protocol)) * (len(audit.FaultProfiles) - len(without)); len(r.Faultless) != want {
				t.Errorf("expected %d runs of the reference programs, got %d", want, len(r.Faultless))
			}
			for i := range r.Faultless {
				o := &r.Faultless[i]
				if !o.Passed() || len(o.BrokenRules) > 0 || o.Verdict == verdict.Unsupported || o.Note != "" &&
					!o.FaultProfile.Fails {
					t.Error(described(o))
				}
				if slices.Contains(without, o.FaultProfile.Name) {
					t.Errorf("the fault profile applies: %s", described(o))
				}
			}
		})
	}
}

// TestResultsAreReorderedForASlowWorker: jobs end in an order other than that in which the worker performed them, even
// if the worker is slow.
func TestResultsAreReorderedForASlowWorker(t *testing.T) {
	e, err := catalog.Named("gearman")
	if err != nil {
		t.Fatal(err)
	}
	faulty := e.PeerMutants()
	i := slices.IndexFunc(faulty, func(m mutant.Mutant) bool { return m.Name == "first-come-first-served" })
	for _, tt := range []struct {
		name   string
		client audit.Driver
		want   verdict.Verdict
	}{{faulty[i].Name, audit.Driver(faulty[i].Program), verdict.WrongResult},
		{"reference", gearmanpeer.Drive, verdict.Completed}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pace := time.NewTicker(400 * time.Millisecond) // between jobs
				defer pace.Stop()
				slow := gearmanpeer.Document()
				slow.Edit = func(m *codec.Message) error {
					if m.Type.Name == "JOB_ASSIGN_UNIQ" {
						<-pace.C
					}
					return nil
				}
				o := inMemory(e, "interleaved")
				o.Partners = map[string]audit.Driver{"Worker": slow.Drive}
				o.Drivers = map[string]audit.Driver{"Client": tt.client}
				o.Limit = 10 * time.Second
				out, err := audit.Stress(t.Context(), o)
				if err != nil || len(out) != 1 || out[0].Verdict != tt.want {
					t.Errorf("expected one outcome with the verdict %s, got %+v, %v", tt.want, out, err)
				}
			})
		})
	}
}

// TestInterruptedStress interrupts stress runs at several times. They end soon. Outcomes that are not complete are
// inconclusive, so that an interrupt is not a failure of the driver.
func TestInterruptedStress(t *testing.T) {
	const end = 2 * time.Second
	e, err := catalog.Named("gearman")
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			time.AfterFunc(after, interrupt)
			o := inMemory(e, "plain", "bytewise", "delays", "closed-after", "restarts")
			reported := 0
			o.Done = func(x *audit.Outcome) {
				if reported++; !x.Passed() {
					t.Errorf("interrupted after %v: %s", after, described(x))
				}
			}
			begin := time.Now()
			out, err := audit.Stress(ctx, o)
			switch took := time.Since(begin); {
			case err == nil && took < after: // everything was complete
			case !errors.Is(err, context.Canceled) || took > after+end || len(out) != reported:
				t.Errorf("interrupted after %v: %d outcomes, %d reported, %v after %v", after, len(out), reported, err, took)
			}
			unfinished := 0
			for i := range out {
				if out[i].Unfinished {
					unfinished++
				}
				if out[i].Unfinished != (out[i].Verdict == verdict.Inconclusive) {
					t.Errorf("interrupted after %v: %s", after, described(&out[i]))
				}
			}
			if (unfinished > 0) != (len(out) > 0) {
				t.Errorf("interrupted after %v: %d of %d outcomes are unfinished", after, unfinished, len(out))
			}
		})
	}
}

func described(o *audit.Outcome) string {
	text := fmt.Sprintf("%s, %s: %s %s", o.Role, o.FaultProfile.Name, o.Verdict, o.Note)
	for i := range o.BrokenRules {
		text += fmt.Sprintf("; %s: %v", o.BrokenRules[i].Rule.ID, o.BrokenRules[i].First[0].Err)
	}
	return text
}
