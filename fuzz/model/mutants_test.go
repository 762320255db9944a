package model

import (
	"bytes"
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	codecbeanstalk "jobwire/codec/beanstalk"
	codecdanga "jobwire/codec/danga"
	codecgearman "jobwire/codec/gearman"
	codecgearmonkey "jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/refserver"
	beanstalkmutants "jobwire/refserver/beanstalk/mutants"
	dangamutants "jobwire/refserver/danga/mutants"
	gearmanmutants "jobwire/refserver/gearman/mutants"
	gearmonkeymutants "jobwire/refserver/gearmonkey/mutants"
)

var patienceFlag = flag.Duration("patience", 2*time.Second, "how long a faulty server is given for what is due")

var mutantFlag = flag.String("mutant", "", "try this mutant; \"all\" is every one of the protocol")

// starter starts a server.
type starter func(context.Context) (target.Target, error)

// faulty are servers with a fault of queue semantics each, which a model has to find. Of
// each protocol a sample is tried where nobody asks for others.
var faulty = []struct {
	p      *codec.Protocol
	all    map[string]starter
	sample string
}{
	{codecgearman.Protocol, starters(gearmanmutants.All()), `
		low-is-normal high-is-normal low-background-not-detached handle-given-twice woken-once unique-for-all-functions result-sent-twice others-jobs-when-idle sleep-without-a-look finished-jobs-counted exceptions-for-all every-unique-known epoch-never-comes cant-do-ignored cant-do-resets failed-job-known
		running-not-counted`},
	{codecbeanstalk.Protocol, starters(beanstalkmutants.All()), `
		jobs-lost-with-their-worker kick-does-not-wake kick-job-does-not-wake first-tube-only bury-keeps-the-priority buried-job-reserved bound-ignored
		any-client-deletes any-client-buries all-waiters-served reserved-job-given-by-id reserved-job-given-again released-into-the-used-tube release-does-not-wake ready-job-released put-does-not-wake other-tubes-when-empty unknown-tube-paused tube-survives-its-client default-not-watched watched-twice-counted-twice delayed-counted-urgent`},
	{codecdanga.Protocol, starters(dangamutants.All()), `
		unannounced-gets-all two-tasks-of-a-name sleeper-gets-others-jobs result-sent-again progress-for-creator-only last-args-win keys-of-all-names key-kept jobs-leave-with-workers duplicate-has-its-own-handle goodbye-is-for-ever goodbye-forgets-nothing code-1-is-success args-are-a-key all-done-is-complete unknown-is-complete`},
	{codecgearmonkey.Protocol, starters(gearmonkeymutants.All()), `
		who-waited-least-first woken-element-stays waits-for-its-first-key popped-job-queued-again lpush-at-the-wrong-end last-key-first decr-replies-before-it-counts
		first-added-hides-others exists-answers-0 missing-count-is-0 hgetall-lists-two-fields del-answers-1 `},
}

func starters(all []mutant.Mutant) map[string]starter {
	by := map[string]starter{}
	for _, m := range all {
		by[m.Name] = m.Start
	}
	return by
}

// over begins conversations with a server over TCP, which is started anew for each.
func over(p *codec.Protocol, d *Diction, start func() (target.Target, error), quirks ...Quirk) func() *trial {
	return func() *trial {
		srv, err := start()
		if err != nil {
			return &trial{err: err, end: func() {}}
		}
		w := newLive(srv, p)
		t := &trial{talk: NewTalk(d, w, New(p, quirks...))}
		t.end = func() {
			w.end()
			srv.Stop()
		}
		return t
	}
}

// converse holds a conversation of random moves with a server of its own, and returns
// what its model complains of, and the transcript.
func converse(p *codec.Protocol, d *Diction, r *rand.Rand, patience time.Duration, start func() (target.Target, error)) (*transcript.Script, error) {
	c := over(p, d, start)()
	defer c.end()
	if c.err != nil {
		return nil, c.err
	}
	c.talk.Patience = patience
	for range *lengthFlag {
		mv := d.Move(r)
		if mv.Deed == Wait {
			continue // real time is dear
		}
		if err := c.talk.Do(mv); err != nil {
			return c.talk.Script(), err
		}
	}
	return nil, nil
}

// Models find what is wrong with servers that are wrong on purpose.
func TestMutants(t *testing.T) {
	cases := *casesFlag
	if cases == 0 {
		cases = 150
	}
	for _, tt := range faulty {
		if *protocolFlag != "" && *protocolFlag != tt.p.Name {
			continue
		}
		t.Run(tt.p.Name, func(t *testing.T) {
			names := strings.Fields(tt.sample)
			if *mutantFlag == "all" {
				names = slices.Sorted(maps.Keys(tt.all))
			} else if *mutantFlag != "" {
				names = strings.Fields(*mutantFlag)
			}
			for _, name := range names {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					start := tt.all[name]
					if start == nil {
						t.Fatal("there is no such mutant")
					}
					d, r := DictionOf(tt.p), rand.New(rand.NewPCG(1, uint64(len(name))))
					for n := range cases {
						if _, err := converse(tt.p, d, r, *patienceFlag, func() (target.Target, error) { return start(t.Context()) }); err != nil {
							t.Logf("found in conversation %d: %v", n+1, err)
							return
						}
					}
					t.Errorf("not found in %d conversations", cases)
				})
			}
		})
	}
}

// The same conversations find nothing wrong with the servers that the faulty ones are made of. These
// are given the time that a busy machine takes.
func TestFaultlessOverTCP(t *testing.T) {
	cases := *casesFlag
	if cases == 0 {
		cases = 100
	}
	for _, tt := range protocols {
		if *protocolFlag != "" && *protocolFlag != tt.p.Name {
			continue
		}
		t.Run(tt.p.Name, func(t *testing.T) {
			t.Parallel()
			d, r := DictionOf(tt.p), rand.New(rand.NewPCG(uint64(*seedFlag), 2))
			start := func() (target.Target, error) {
				return target.Func(t.Context(), tt.p.Name, func(ctx context.Context, ln net.Listener) error {
					return refserver.New(tt.machine(), refserver.Options{Protocol: tt.p}).Serve(ctx, ln)
				})
			}
			for n := range cases {
				if script, err := converse(tt.p, d, r, time.Minute, start); err != nil {
					var b bytes.Buffer
					transcript.Lines(&b, script)
					t.Fatalf("conversation %d: %v\n%s", n+1, err, b.String())
				}
			}
		})
	}
}
