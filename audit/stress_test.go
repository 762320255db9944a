package audit_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	beanstalkpeer "jobwire/refpeer/beanstalk"
	beanstalkmutants "jobwire/refpeer/beanstalk/mutants"
	dangapeer "jobwire/refpeer/danga"
	dangamutants "jobwire/refpeer/danga/mutants"
	gearmanpeer "jobwire/refpeer/gearman"
	"jobwire/refpeer/gearman/mutants"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	dangaserver "jobwire/refserver/danga"
	gearmanserver "jobwire/refserver/gearman"
)

// kind is a protocol with correct and faulty clients and workers.
type kind struct {
	protocol *codec.Protocol
	machine  func() refserver.Machine
	peers    map[string]audit.Driver
	mutants  []mutant.Mutant
	without  []string // fault profiles that do not apply to the protocol
}

var kinds = []kind{
	{gearman.Protocol, func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) },
		map[string]audit.Driver{"Client": gearmanpeer.Drive, "Worker": gearmanpeer.Drive}, mutants.All(), []string{"huge-ids"}},
	{danga.Protocol, func() refserver.Machine { return dangaserver.New(dangaserver.Options{}) },
		map[string]audit.Driver{"Application": dangapeer.Drive, "Worker": dangapeer.Drive}, dangamutants.All(), []string{"interleaved", "error-answers", "late-progress", "unknown-handles", "unrequested-jobs", "huge-ids"}},
	{beanstalk.Protocol, func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) },
		map[string]audit.Driver{"Client": beanstalkpeer.Drive}, beanstalkmutants.All(), []string{"needless-noops", "interleaved", "late-progress", "unknown-handles", "unrequested-jobs"}},
}

// shortLimit and longLimit are the time limits per task: a program with a fault that leaves a task unanswered is given the
// short one first.
const (
	shortLimit = 700 * time.Millisecond
	longLimit  = 5 * time.Second // the default
)

// stressed runs drivers under fault profiles.
func (k *kind) stressed(t *testing.T, drivers map[string]audit.Driver, limit time.Duration, conditions ...string) []audit.Outcome {
	t.Helper()
	var all []*audit.Profile
	for i := range audit.Profiles {
		if c := &audit.Profiles[i]; len(conditions) == 0 || slices.Contains(conditions, c.Name) {
			all = append(all, c)
		}
	}
	start := func(ctx context.Context) (target.Target, error) { // a separate server for each run
		return target.Func(ctx, k.protocol.Name, func(ctx context.Context, ln net.Listener) error {
			return refserver.New(k.machine(), refserver.Options{Protocol: k.protocol}).Serve(ctx, ln)
		})
	}
	out, err := audit.Stress(t.Context(), audit.StressOptions{Protocol: k.protocol, Profiles: all, Drivers: drivers, Partners: k.peers, Start: start, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestResultsAreReorderedForASlowWorker: jobs end in an order other than that in which the worker performed them, even if the worker is
// slow.
func TestResultsAreReorderedForASlowWorker(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	mixes := k.mutants[slices.IndexFunc(k.mutants, func(m mutant.Mutant) bool { return m.Name == "first-come-first-served" })]
	for _, tt := range []struct {
		name   string
		driver audit.Driver
		want   audit.Verdict
	}{{mixes.Name, mixes.Program, audit.Wrong}, {"reference", gearmanpeer.Drive, audit.Completed}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pace := time.NewTicker(400 * time.Millisecond) // between jobs
			defer pace.Stop()
			slow := gearmanpeer.Document()
			slow.Edit = func(m *codec.Message) error {
				if m.Type.Name == "JOB_ASSIGN_UNIQ" {
					<-pace.C
				}
				return nil
			}
			k := k
			k.peers = map[string]audit.Driver{"Worker": func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
				return (&gearmanpeer.Driver{Program: slow}).Drive(ctx, addr, tasks, answers)
			}}
			if out := k.stressed(t, map[string]audit.Driver{"Client": tt.driver}, 10*time.Second, "interleaved"); out[0].Verdict != tt.want {
				t.Errorf("%s; want %s", described(&out[0]), tt.want)
			}
		})
	}
}

func described(o *audit.Outcome) string {
	var rules []string
	for i := range o.Breaches {
		rules = append(rules, string(o.Breaches[i].Rule.ID)+": "+o.Breaches[i].First[0].Err.Error())
	}
	return strings.Join(append([]string{o.Role, o.Profile.Name, string(o.Verdict), o.Note}, rules...), "; ")
}

// TestReferenceDriversPassAllProfiles: the reference drivers pass under all fault profiles, without violations.
func TestReferenceDriversPassAllProfiles(t *testing.T) {
	t.Parallel()
	for i := range kinds {
		k := &kinds[i]
		t.Run(k.protocol.Name, func(t *testing.T) {
			t.Parallel()
			out := k.stressed(t, k.peers, 20*time.Second)
			if len(out) != len(k.peers)*(len(audit.Profiles)-len(k.without)) {
				t.Errorf("%d outcomes of %d conditions", len(out), len(audit.Profiles))
			}
			for i := range out {
				o := &out[i]
				if !o.Passed() || len(o.Breaches) > 0 || o.Verdict == audit.Unsupported || o.Note != "" && !o.Profile.Fails {
					t.Error(described(o))
				}
				if slices.Contains(k.without, o.Profile.Name) {
					t.Errorf("%s has no way to be %s", k.protocol.Title, o.Profile.Name)
				}
				if testing.Verbose() {
					t.Logf("%v %d runs: %s", o.Took, o.Runs, described(o))
				}
			}
		})
	}
}

// With -short, one of every shortMutants mutants is tested.
const shortMutants = 3

// TestMutants: each injected fault is found, by its rule or by its verdict. With -short, one of several faults is tested.
func TestMutants(t *testing.T) {
	t.Parallel()
	for i := range kinds {
		k := &kinds[i]
		if len(k.mutants) < 25 {
			t.Errorf("there are %d mutants of %s", len(k.mutants), k.protocol.Name)
		}
		for j, m := range k.mutants {
			if m.Fragile || testing.Short() && j%shortMutants != 0 {
				continue
			}
			t.Run(k.protocol.Name+"/"+m.Name, func(t *testing.T) {
				t.Parallel()
				k.test(t, &m)
			})
		}
	}
}

// TestFragileMutants runs the mutants that TestMutants leaves out, one at a time: they depend on the number of bytes that a
// read returns, and that changes if the machine is busy.
func TestFragileMutants(t *testing.T) {
	for i := range kinds {
		k := &kinds[i]
		for j, m := range k.mutants {
			if m.Fragile && (!testing.Short() || j%shortMutants == 0) {
				t.Run(k.protocol.Name+"/"+m.Name, func(t *testing.T) { k.test(t, &m) })
			}
		}
	}
}

func (k *kind) test(t *testing.T, m *mutant.Mutant) {
	t.Helper()
	condition := m.Condition
	if condition == "" {
		condition = "plain"
	}
	limit := shortLimit
	if m.Verdict != string(audit.Hung) {
		limit = longLimit
	}
	var o *audit.Outcome
	for tries := 0; ; tries++ {
		out := k.stressed(t, map[string]audit.Driver{m.Role: m.Program}, limit, condition)
		if len(out) != 1 {
			t.Fatalf("%d outcomes", len(out))
		}
		o = &out[0]
		broken := slices.ContainsFunc(o.Breaches, func(b audit.BrokenRule) bool { return string(b.Rule.ID) == m.Rule })
		switch {
		case m.Fragile && tries < 4 && o.Passed():
			// A program that depends on the number of bytes that a read returns fails only if it reads each piece before the
			// next one arrives. On a busy machine it may read too late.
			continue
		case limit == shortLimit && m.Rule != "" && !broken:
			limit = longLimit // on a busy machine, the messages before the fault may take longer than shortLimit
			continue
		}
		break
	}
	if m.Verdict != "" && string(o.Verdict) != m.Verdict {
		t.Errorf("%s; want the verdict %s", described(o), m.Verdict)
	}
	var rules []string
	for _, b := range o.Breaches {
		// Bytes after an incorrect length may be decoded as the beginning of another message.
		if m.Rule == "" || m.Rule == string(b.Rule.ID) || b.Rule.ID != k.protocol.Complete {
			rules = append(rules, string(b.Rule.ID))
		}
	}
	if m.Rule != "" && !slices.Contains(rules, m.Rule) {
		t.Errorf("%s; want the rule %s", described(o), m.Rule)
	}
	if m.Rule == "" && len(rules) > 0 || len(rules) > 1 {
		t.Errorf("%s: rules beside %s", described(o), m.Rule)
	}
	if o.Passed() && !o.Profile.Reported && len(rules) == 0 {
		t.Errorf("%s held", described(o))
	}
	if m.Condition != "" && !m.Fragile {
		// The program passes without faults.
		if o := &k.stressed(t, map[string]audit.Driver{m.Role: m.Program}, 20*time.Second, "plain")[0]; !o.Passed() {
			t.Errorf("plain: %s", described(o))
		}
	}
}
