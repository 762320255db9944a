package servertest

import (
	"context"
	"flag"
	"hash/fnv"
	"net"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/conform/report"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/internal/virtualtime"
	"jobwire/play"
	"jobwire/refserver/inject"
)

var variantNamed = flag.String("variant", "", "test only variants whose PROTOCOL/NAME matches the regular expression")

// variant is a server that differs from the reference server in a way that the specification allows.
type variant struct {
	inject.MutantSpec // About says what is different, and why it is allowed

	// customary permits failures of cases with the level DE-FACTO. The variant then does something that the
	// specification allows but no known server does.
	customary bool

	lacks []string // capabilities, as in a profile
}

// TestVariants tests variants of the reference servers that differ where the specification leaves a choice. No case may
// fail: a case that fails would report a correct server as faulty. With -short, only some instances of each case run.
func TestVariants(t *testing.T) {
	t.Parallel()
	only := regexp.MustCompile(*variantNamed)
	for _, e := range catalog.All() {
		suite, err := mutanttest.Load(t, e.Protocol).About("")
		if err != nil {
			t.Fatal(err)
		}
		suite = suite.InProcess()
		names := map[string]bool{}
		for _, v := range append(variants[e.Protocol.Name], everywhere...) {
			name := e.Protocol.Name + "/" + v.Name
			if names[name] {
				t.Errorf("two variants have the name %s", name)
			}
			if names[name] = true; !only.MatchString(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testVariant(t, e, suite, &v) })
			})
		}
	}
}

// testVariant runs the suite against a variant.
func testVariant(t *testing.T, e *catalog.Entry, suite *conform.Suite, v *variant) {
	name := e.Protocol.Name + "/" + v.Name
	system := inject.Protocol{Protocol: e.Protocol, New: e.New, Waive: e.Lenient, Raw: sampleReply[e.Protocol.Name]}
	start := func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, v.Name, func(ctx context.Context, ln net.Listener) error {
			return system.Serve(ctx, ln, &v.MutantSpec)
		})
	}
	if testing.Short() {
		suite = some(suite, name)
	}
	profile := &conform.Profile{Lacks: v.lacks}
	r := &conform.Runner{Start: start, Segments: []play.Segmentation{play.Plain}, Profile: profile}
	results := runInBubble(t, r, suite)
	for _, res := range results {
		switch {
		case res.Verdict == verdict.Passed || res.Verdict == verdict.NonStrict:
		case res.Verdict.FailsRun() && !(v.customary && res.Verdict == verdict.Failed && res.Level() == codec.DeFacto):
			t.Errorf("%s: %s: %s\n%s", res.Case.ID, res.Verdict, res.Note, report.Result(res))
		default:
			t.Logf("%s: %s: %s", res.Case.ID, res.Verdict, res.Note)
		}
	}
	t.Logf("%s %v", v.About, tally(results))
}

// others is the number of instances besides the first of each case that run against a variant with -short.
const others = 12

// some returns the suite with the first instance of every second case, and a few others. They differ between variants.
func some(suite *conform.Suite, variant string) *conform.Suite {
	part := *suite
	h := fnv.New32a()
	h.Write([]byte(variant))
	apart := max(1, len(suite.Cases)/others)
	chosen := int(h.Sum32() % uint32(apart))
	part.Cases = nil
	cases := int(h.Sum32() % 2)
	for i, c := range suite.Cases {
		first := i == 0 || suite.Cases[i-1].Family != c.Family
		if first {
			cases++
		}
		if first && cases%2 == 0 || i%apart == chosen {
			part.Cases = append(part.Cases, c)
		}
	}
	return &part
}

// runInBubble runs a suite in the bubble of t against servers in memory.
func runInBubble(t *testing.T, r *conform.Runner, suite *conform.Suite) []conform.Result {
	virtualtime.Forward()
	r.Virtual = true
	results := r.Run(t.Context(), suite, nil)
	wait(time.Minute) // until delayed connections have ended
	return results
}
