package fuzz

import (
	"context"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/refserver"
	refbeanstalk "jobwire/refserver/beanstalk"
	beanstalkmutants "jobwire/refserver/beanstalk/mutants"
	refdanga "jobwire/refserver/danga"
	dangamutants "jobwire/refserver/danga/mutants"
	refgearman "jobwire/refserver/gearman"
	gearmanmutants "jobwire/refserver/gearman/mutants"
	refgearmonkey "jobwire/refserver/gearmonkey"
	gearmonkeymutants "jobwire/refserver/gearmonkey/mutants"
)

var (
	modelSeed     = flag.Uint64("model-seed", 1, "random seed of the tests of the models")
	modelInputs   = flag.Int("model-inputs", 1000, "inputs of TestModels for each protocol")
	modelProtocol = flag.String("model-protocol", "", "the only protocol whose model is tested")
)

// modeled are the protocols whose models are tested, with their reference servers and mutants.
var modeled = []struct {
	p       *codec.Protocol
	machine func() refserver.Machine
	mutants []mutant.Mutant
	sample  string // names of the mutants that the model must find
}{
	{gearman.Protocol, func() refserver.Machine { return refgearman.New(refgearman.Options{Host: "h"}) }, gearmanmutants.All(), `
		low-is-normal high-is-normal low-background-not-detached handle-given-twice woken-once unique-for-all-functions result-sent-twice others-jobs-when-idle
		sleep-without-a-look finished-jobs-counted exceptions-for-all every-unique-known cant-do-ignored cant-do-resets failed-job-known running-not-counted`},
	{beanstalk.Protocol, func() refserver.Machine { return refbeanstalk.New(refbeanstalk.Options{}) }, beanstalkmutants.All(), `
		jobs-lost-with-their-worker kick-does-not-wake kick-job-does-not-wake first-tube-only bury-keeps-the-priority buried-job-reserved bound-ignored
		any-client-deletes any-client-buries all-waiters-served reserved-job-given-by-id reserved-job-given-again released-into-the-used-tube
		release-does-not-wake ready-job-released put-does-not-wake other-tubes-when-empty unknown-tube-paused tube-survives-its-client default-not-watched
		watched-twice-counted-twice delayed-counted-urgent`},
	{danga.Protocol, func() refserver.Machine { return refdanga.New(refdanga.Options{}) }, dangamutants.All(), `
		unannounced-gets-all two-tasks-of-a-name sleeper-gets-others-jobs result-sent-again progress-for-creator-only last-args-win keys-of-all-names key-kept
		jobs-leave-with-workers duplicate-has-its-own-handle goodbye-is-for-ever goodbye-forgets-nothing code-1-is-success args-are-a-key all-done-is-complete
		unknown-is-complete`},
	{gearmonkey.Protocol, func() refserver.Machine { return refgearmonkey.New(refgearmonkey.Options{}) }, gearmonkeymutants.All(), `
		who-waited-least-first woken-element-stays waits-for-its-first-key popped-job-queued-again lpush-at-the-wrong-end last-key-first
		decr-replies-before-it-counts first-added-hides-others exists-answers-0 missing-count-is-0 hgetall-lists-two-fields del-answers-1`},
}

// inMemory runs an input on a new reference server in memory.
func inMemory(t *testing.T, p *codec.Protocol, machine refserver.Machine, in *input.Input) *exec.Record {
	return runOn(t, p, in, func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, p.Name, refserver.New(machine, refserver.Options{Protocol: p}).Serve)
	})
}

// runOn runs an input on a new server.
func runOn(t *testing.T, p *codec.Protocol, in *input.Input, start func(context.Context) (target.Target, error)) *exec.Record {
	srv, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Kill(srv)
	x, err := exec.NewExecutor(srv, 0, exec.NewBarrier(p, p.Barriers[0]), &input.Known{}, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer x.CloseCanary()
	x.Steady = true
	return x.Execute(in, "").Clone()
}

// source generates inputs as a worker does: first the cases of the conformance suite, and then other inputs, with pauses or
// without.
type source struct {
	r      *rand.Rand
	g      *input.Generator
	corpus *input.Corpus
	pauses bool
}

func newSource(t *testing.T, p *codec.Protocol, pauses bool) *source {
	suite := suiteOf(t, p)
	var seeds []*input.Input
	for _, c := range suite.Cases {
		if in := input.FromScript(c.Script); in != nil && in.Waits() == 0 {
			seeds = append(seeds, in)
		}
	}
	r := input.NewRand(*modelSeed)
	return &source{r, input.NewGenerator(p, r, &input.Known{}), input.NewCorpus(seeds), pauses}
}

// next generates an input and calls run, which executes the input and returns the record.
func (s *source) next(run func(*input.Input) *exec.Record) {
	s.g.Slow = s.pauses && s.r.IntN(4) == 0
	in, parent := s.corpus.Seed(false), s.corpus.SelectEntry(s.r)
	switch {
	case in != nil:
	case parent != nil && s.r.IntN(3) > 0:
		in = s.g.Mutate(parent.Input, func() *input.Input { return s.corpus.SelectEntry(s.r).Input })
	default:
		in = s.g.Generate()
	}
	if len(in.Steps) == 0 {
		return
	}
	r := run(in)
	s.corpus.Add(in, parent, r.Features)
	r.AddChosen(s.g, in, true)
}

// TestModels tests that the models agree with the reference servers.
func TestModels(t *testing.T) {
	t.Parallel()
	for _, tt := range modeled {
		if *modelProtocol != "" && *modelProtocol != tt.p.Name {
			continue
		}
		t.Run(tt.p.Name, func(t *testing.T) {
			t.Parallel()
			in := newSource(t, tt.p, true)
			inputs := *modelInputs
			if testing.Short() {
				inputs /= 8
			}
			for range inputs {
				in.next(func(c *input.Input) (r *exec.Record) {
					synctest.Test(t, func(t *testing.T) {
						run := func(c *input.Input) *exec.Record { return inMemory(t, tt.p, tt.machine(), c) }
						r = run(c)
						if v := r.Fault; v != nil {
							small := triage.Minimize(tt.p, c, time.Minute, nil, func(d *input.Input) bool { return v.Same(run(d).Fault) })
							t.Fatalf("%v\n%v\nminimized: %v\n%v", v, c, run(small).Fault, small)
						}
					})
					return r
				})
			}
		})
	}
}

// TestModelsFindMutants tests that the models find the faults of the queue in mutants. With -short, only one of 16
// mutants is tested.
func TestModelsFindMutants(t *testing.T) {
	t.Parallel()
	const most = 20_000 // inputs
	for _, tt := range modeled {
		if *modelProtocol != "" && *modelProtocol != tt.p.Name {
			continue
		}
		wanted := map[string]bool{}
		for name := range strings.FieldsSeq(tt.sample) {
			wanted[name] = true
		}
		for _, m := range tt.mutants {
			if !wanted[m.Name] {
				continue
			}
			if delete(wanted, m.Name); testing.Short() && len(wanted)%16 != 0 {
				continue
			}
			t.Run(tt.p.Name+"/"+m.Name, func(t *testing.T) {
				t.Parallel()
				in := newSource(t, tt.p, true)
				for n := range most {
					var found *exec.Fault
					in.next(func(c *input.Input) (r *exec.Record) {
						synctest.Test(t, func(t *testing.T) { r = runOn(t, tt.p, c, m.Start) })
						found = r.Fault
						return r
					})
					if found != nil {
						t.Logf("input %d: %v", n+1, found)
						return
					}
				}
				t.Errorf("not found in %d inputs", most)
			})
		}
		for name := range wanted {
			t.Errorf("%s: there is no mutant %s", tt.p.Name, name)
		}
	}
}

// byteSource is a source of random numbers. It returns the bytes of an input of a Go fuzz target, and then random bytes.
type byteSource struct {
	b    []byte
	rest *rand.PCG
}

func (s *byteSource) Uint64() uint64 {
	if len(s.b) == 0 {
		return s.rest.Uint64()
	}
	var v [8]byte
	n := copy(v[:], s.b)
	s.b = s.b[n:]
	return binary.LittleEndian.Uint64(v[:])
}

func FuzzModelGearman(f *testing.F)    { fuzzModel(f, 0) }
func FuzzModelBeanstalk(f *testing.F)  { fuzzModel(f, 1) }
func FuzzModelDanga(f *testing.F)      { fuzzModel(f, 2) }
func FuzzModelGearMonkey(f *testing.F) { fuzzModel(f, 3) }

// fuzzModel compares a model with its reference server.
func fuzzModel(f *testing.F, n int) {
	p := modeled[n].p
	r := input.NewRand(1)
	for range 200 {
		b := make([]byte, 64+r.IntN(1024))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := input.NewGenerator(p, rand.New(&byteSource{b, rand.NewPCG(1, 1)}), &input.Known{}).Generate()
		if len(in.Steps) == 0 || in.Bytes() > 16<<10 {
			return // long values take most of the time
		}
		synctest.Test(t, func(t *testing.T) {
			if v := inMemory(t, p, modeled[n].machine(), in).Fault; v != nil {
				t.Fatalf("%v\n%v", v, in)
			}
		})
	})
}
