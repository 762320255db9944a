package model

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/commands"
	"github.com/leanovate/gopter/gen"

	"jobwire/codec"
	codecbeanstalk "jobwire/codec/beanstalk"
	codecdanga "jobwire/codec/danga"
	codecgearman "jobwire/codec/gearman"
	codecgearmonkey "jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/refserver"
	refbeanstalk "jobwire/refserver/beanstalk"
	refdanga "jobwire/refserver/danga"
	refgearman "jobwire/refserver/gearman"
	refgearmonkey "jobwire/refserver/gearmonkey"
)

var (
	seedFlag     = flag.Int64("seed", 0, "seed of the first case; 0 takes the fixed ones of CI")
	casesFlag    = flag.Int("cases", 0, "how many conversations; 0 is a few")
	protocolFlag = flag.String("protocol", "", "only this protocol")
	lengthFlag   = flag.Int("length", 40, "moves of a conversation")
	saveFlag     = flag.String("save", "", "a directory for the transcripts of what fails; \"\" is a temporary one")
)

// protocols are what there are models of, with the server that each must hold for.
var protocols = []protocolRow{
	{codecgearman.Protocol, func() refserver.Machine { return refgearman.New(refgearman.Options{Host: "h"}) }},
	{codecdanga.Protocol, func() refserver.Machine { return refdanga.New(refdanga.Options{}) }},
	{codecgearmonkey.Protocol, func() refserver.Machine { return refgearmonkey.New(refgearmonkey.Options{}) }},
	{codecbeanstalk.Protocol, func() refserver.Machine { return refbeanstalk.New(refbeanstalk.Options{}) }},
}

type protocolRow struct {
	p       *codec.Protocol
	machine func() refserver.Machine
}

// move is a Move as a command of gopter's.
type move struct {
	d *Diction
	Move
}

func (m move) Run(sut commands.SystemUnderTest) commands.Result { return sut.(*trial).do(m.Move) }
func (m move) NextState(s commands.State) commands.State        { return s }
func (m move) PreCondition(commands.State) bool                 { return true }
func (m move) String() string                                   { return m.d.Show(m.Move) }
func (m move) PostCondition(_ commands.State, result commands.Result) *gopter.PropResult {
	if err, _ := result.(error); err != nil {
		return &gopter.PropResult{Status: gopter.PropFalse, Labels: []string{err.Error()}}
	}
	return &gopter.PropResult{Status: gopter.PropTrue}
}

// trial is one conversation and the server that it is held with.
type trial struct {
	talk *Talk
	err  error
	end  func()
	law  *law
}

func (t *trial) do(mv Move) error {
	if t.err == nil {
		t.err = t.talk.Do(mv)
		if t.err != nil {
			t.law.failed = t
		}
	}
	return t.err
}

// law is the property of one protocol, and the last conversation that broke it.
type law struct {
	d      *Diction
	begin  func() *trial
	failed *trial
}

func (l *law) NewSystemUnderTest(commands.State) commands.SystemUnderTest {
	t := l.begin()
	t.law = l
	return t
}
func (l *law) DestroySystemUnderTest(s commands.SystemUnderTest) { s.(*trial).end() }
func (l *law) GenInitialState() gopter.Gen                       { return gen.Const(0) }
func (l *law) InitialPreCondition(commands.State) bool           { return true }
func (l *law) GenCommand(commands.State) gopter.Gen {
	return func(p *gopter.GenParameters) *gopter.GenResult {
		r := rand.New(rand.NewPCG(p.NextUint64(), 8))
		return &gopter.GenResult{
			Result:     move{l.d, l.d.Move(r)},
			ResultType: reflect.TypeFor[move](),
			Shrinker: func(v any) gopter.Shrink {
				all := l.d.Simpler(v.(move).Move)
				return func() (any, bool) {
					if len(all) == 0 {
						return nil, false
					}
					mv := all[0]
					all = all[1:]
					return move{l.d, mv}, true
				}
			},
		}
	}
}

// check holds conversations against the model; it returns the line of the failure, and
// how many there were before it.
func (l *law) check(cases int, seed int64) (passed int, failure *gopter.TestResult) {
	params := gopter.DefaultTestParametersWithSeed(seed)
	params.MinSuccessfulTests, params.MaxSize, params.Workers = cases, *lengthFlag, 1
	result := commands.Prop(l).Check(params)
	if result.Passed() {
		return result.Succeeded, nil
	}
	return result.Succeeded, result
}

// inMemory begins conversations with a fresh server in this process each.
func inMemory(p *codec.Protocol, d *Diction, machine func() refserver.Machine) func() *trial {
	return func() *trial {
		ctx, cancel := context.WithCancel(context.Background())
		w := &memory{server: refserver.New(machine(), refserver.Options{Protocol: p}), ctx: ctx}
		t := &trial{talk: NewTalk(d, w, New(p))}
		t.end = func() {
			t.talk.End()
			w.server.Close()
			cancel()
		}
		return t
	}
}

// report tells of a failure and saves its transcript.
func (l *law) report(t *testing.T, seed int64, cases int, extra string, r *gopter.TestResult) {
	t.Helper()
	if l.failed == nil {
		t.Fatalf("seed %d: %v: %v\n%s", seed, r.Error, r.Args, r.ErrorStack)
	}
	dir := *saveFlag
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "jobwire-model")
	}
	os.MkdirAll(dir, 0o777)
	var b bytes.Buffer
	for line := range strings.SplitSeq(l.failed.err.Error(), "\n") {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	if err := transcript.Lines(&b, l.failed.talk.Script()); err != nil {
		fmt.Fprintf(&b, "# %v\n", err)
	}
	file := filepath.Join(dir, fmt.Sprintf("%s-%d.wire", l.d.p.Name, seed))
	os.WriteFile(file, b.Bytes(), 0o666)
	t.Errorf("%v\n%s\nsaved as %s; again: go test ./fuzz/model -run %s -args -protocol %s -seed %d -cases %d -length %d%s",
		l.failed.err, b.String(), file, t.Name(), l.d.p.Name, seed, cases, *lengthFlag, extra)
}

// The reference servers do what the models say.
func TestReferenceServers(t *testing.T) {
	cases := *casesFlag
	if cases == 0 {
		cases = 300
	}
	for _, tt := range protocols {
		if *protocolFlag != "" && *protocolFlag != tt.p.Name {
			continue
		}
		t.Run(tt.p.Name, func(t *testing.T) {
			const batch = 500
			var done atomic.Int64
			begin := time.Now()
			next := make(chan int, cases/batch+1)
			for i := range (cases + batch - 1) / batch {
				next <- i
			}
			close(next)
			t.Run("cases", func(t *testing.T) {
				for w := range 2 {
					t.Run(fmt.Sprint(w), func(t *testing.T) {
						t.Parallel()
						for i := range next {
							seed := *seedFlag + int64(i)
							if *seedFlag == 0 {
								seed = 1 + int64(i)
							}
							l := &law{d: DictionOf(tt.p)}
							l.begin = inMemory(tt.p, l.d, tt.machine)
							n := min(batch, cases-i*batch)
							synctest.Test(t, func(t *testing.T) {
								passed, failure := l.check(n, seed)
								done.Add(int64(passed))
								if failure != nil {
									l.report(t, seed, n, "", failure)
								}
							})
							if t.Failed() {
								return
							}
						}
					})
				}
			})
			t.Logf("%d conversations in %v", done.Load(), time.Since(begin).Round(time.Millisecond))
		})
	}
}
