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
	{codecgearman.Protocol, starters(gearmanmutants.All(), func(m *gearmanmutants.Mutant) (string, starter) { return m.Name, m.Start }), ""},
	{codecbeanstalk.Protocol, starters(beanstalkmutants.All(), func(m *beanstalkmutants.Mutant) (string, starter) { return m.Name, m.Start }), ""},
	{codecdanga.Protocol, starters(dangamutants.All(), func(m *dangamutants.Mutant) (string, starter) { return m.Name, m.Start }), ""},
	{codecgearmonkey.Protocol, starters(gearmonkeymutants.All(), func(m *gearmonkeymutants.Mutant) (string, starter) { return m.Name, m.Start }), ""},
}

func starters[M any](all []M, of func(*M) (string, starter)) map[string]starter {
	by := map[string]starter{}
	for i := range all {
		name, start := of(&all[i])
		by[name] = start
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
		w := newLive(srv)
		t := &trial{talk: NewTalk(d, w, New(p, quirks...))}
		t.end = func() {
			w.end()
			srv.Stop()
		}
		return t
	}
}

// Models find what is wrong with servers that are wrong on purpose.
func TestMutants(t *testing.T) {
	cases := *casesFlag
	if cases == 0 {
		cases = 400
	}
	for _, tt := range faulty {
		if *protocolFlag != "" && *protocolFlag != tt.p.Name {
			continue
		}
		t.Run(tt.p.Name, func(t *testing.T) {
			names := strings.Fields(tt.sample)
			if *mutantFlag != "" {
				names = strings.Fields(*mutantFlag)
			}
			if slices.Equal(names, []string{"all"}) {
				names = slices.Sorted(maps.Keys(tt.all))
			}
			for _, name := range names {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					begin := tt.all[name]
					if name == "none" {
						begin = func(ctx context.Context) (target.Target, error) {
							return target.Func(ctx, name, func(ctx context.Context, ln net.Listener) error {
								return refserver.New(machineOf(tt.p), refserver.Options{Protocol: tt.p}).Serve(ctx, ln)
							})
						}
					}
					if begin == nil {
						t.Fatal("there is no such mutant")
					}
					d := DictionOf(tt.p)
					r := rand.New(rand.NewPCG(1, uint64(len(name))))
					for n := range cases {
						c := over(tt.p, d, func() (target.Target, error) { return begin(t.Context()) })()
						c.talk.Patience = *patienceFlag
						var err error
						for range *lengthFlag {
							mv := d.Move(r)
							if mv.Deed == Wait {
								continue // real time is dear
							}
							if err = c.talk.Do(mv); err != nil {
								break
							}
						}
						c.end()
						if err != nil {
							var b bytes.Buffer
							if testing.Verbose() {
								transcript.Lines(&b, c.talk.Script())
							}
							t.Logf("found in conversation %d: %v\n%s", n+1, err, b.String())
							return
						}
					}
					t.Errorf("not found in %d conversations", cases)
				})
			}
		})
	}
}
