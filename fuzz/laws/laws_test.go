package laws

import (
	"bytes"
	"flag"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/prop"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/resp"
	"jobwire/codec/transcript"
)

var (
	seed  = flag.Uint64("seed", 1, "random seed of the first case; each later case has the next seed")
	cases = flag.Int("cases", 1000, "number of cases for each protocol and invariant")
)

var protocols = []*codec.Protocol{gearman.Protocol, beanstalk.Protocol, gearmonkey.Protocol, afterPacket(danga.Protocol), resp.Protocol}

var laws = []struct {
	name string
	make func(*codec.Protocol, uint64) *Case
	law  func(*Case) error
	any  bool // cases may be illegal
}{
	{"append-decode", Legal, AppendDecode, false},
	{"decode-append", Legal, Reencode, false},
	{"prefixes", Legal, Prefixes, false},
	{"chunks", Legal, Chunks, false},
	{"transcripts", Legal, Transcripts, false},
	{"one-field-damaged", Legal, OneFieldDamaged, false},
	{"refused-or-read", InvalidArgs, RefusedOrRead, true},
	{"mutations", Broken, Reencode, false},
	{"mutations-chunks", Broken, Chunks, false},
	{"mutations-transcripts", Broken, Transcripts, false},
}

// TestLaws tests that the codec of each protocol follows each law for random cases.
func TestLaws(t *testing.T) {
	old := debug.SetGCPercent(400) // the test allocates many short-lived cases
	t.Cleanup(func() { debug.SetGCPercent(old) })
	for _, p := range protocols {
		for _, l := range laws {
			t.Run(p.Name+"/"+l.name, func(t *testing.T) {
				t.Parallel()
				n := *cases
				if l.name == "one-field-damaged" && !testing.Short() {
					n *= 10
				}
				try(t, p, l.make, l.law, l.any, n)
			})
		}
	}
}

// try checks a law for a protocol with a number of cases.
func try(t *testing.T, p *codec.Protocol, make func(*codec.Protocol, uint64) *Case, law func(*Case) error, anything bool, cases int) {
	tr := lawCheck{make: make, law: law, anything: anything, next: *seed}
	result := tr.run(t, p, cases)
	if result.Passed() && result.Discarded == 0 {
		return
	}
	var text bytes.Buffer
	if tr.least != nil {
		transcript.Lines(&text, tr.least.Script())
	}
	t.Errorf("%s after %d cases, %d of them discarded: %v %v\n%s\nto repeat it: go test ./fuzz/laws -run '^%s$' -args -seed %d -cases 1\n%s",
		result.Status, result.Succeeded, result.Discarded, tr.broken, result.Error, result.ErrorStack,
		strings.ReplaceAll(t.Name(), "/", "$/^"), tr.next-1, text.Bytes())
}

// lawCheck is a check of one law with many cases.
type lawCheck struct {
	make     func(*codec.Protocol, uint64) *Case
	law      func(*Case) error
	anything bool   // cases need not be legal
	next     uint64 // seed of the next case

	least  *Case // the smallest case that breaks the law
	broken error // the error of the law
}

func (tr *lawCheck) run(t *testing.T, p *codec.Protocol, cases int) *gopter.TestResult {
	var valid func(v any) bool
	if !tr.anything {
		valid = func(v any) bool {
			err := v.(*Case).Valid()
			if err != nil && tr.least == nil {
				tr.broken = fmt.Errorf("made, and refused: %w", err)
			}
			return err == nil
		}
	}
	generate := func(*gopter.GenParameters) *gopter.GenResult {
		c := tr.make(p, tr.next)
		tr.next++
		return &gopter.GenResult{Result: c, ResultType: reflect.TypeFor[*Case](), Shrinker: gopter.NoShrinker, Sieve: valid}
	}
	check := func(c *Case) (bool, error) {
		err := tr.law(c)
		if err != nil {
			tr.least, tr.broken = c, err
		}
		return err == nil, nil
	}
	parameters := gopter.DefaultTestParametersWithSeed(1)
	parameters.MinSuccessfulTests = cases
	result := prop.ForAll(check, generate).Check(parameters)
	if tr.least != nil {
		tr.least = tr.least.Reduce(func(c *Case) bool { return (valid == nil || valid(c)) && tr.law(c) != nil })
		tr.broken = tr.law(tr.least)
	}
	return result
}

// Format makes gopter print only the seed of a case.
func (c *Case) Format(s fmt.State, _ rune) { fmt.Fprint(s, c.Seed) }

// afterPacket returns the Danga protocol with sessions that have sent one packet. The magic of that packet determines the
// magic of later packets. Decoded messages do not contain the magic, so without the first packet, they would not be encoded
// with the same magic again.
func afterPacket(p *codec.Protocol) *codec.Protocol {
	q := *p
	m := codec.Message{Type: p.TypeNamed("worker_sleep")}
	q.NewSession = func(o codec.Options) codec.Session {
		s := p.NewSession(o)
		if _, err := s.Append(nil, codec.Peer, &m); err != nil {
			panic(err)
		}
		return s
	}
	return &q
}
