package servertest

import (
	"cmp"
	"context"
	"flag"
	"net"
	"regexp"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/play"
	"jobwire/refserver/inject"
)

var (
	everyInstance = flag.Bool("every-instance", false, "test variants of the reference servers with all instances of cases, and not only the first")
	variantNamed  = flag.String("variant", "", "test only variants whose PROTOCOL/NAME matches the regular expression")
)

// variant is a server that differs from the reference server in a way that the specification allows.
type variant struct {
	inject.MutantSpec // About says what is different, and why it is allowed

	// customary permits failures of cases with the level DE-FACTO. The variant then does something that the
	// specification allows but no known server does.
	customary bool

	lacks    []string // capabilities, as in a profile
	parallel int      // cases at a time; 0: 8
}

// TestVariants tests variants of the reference servers that differ where the specification leaves a choice. No case may
// fail: a case that fails would report a correct server as faulty. With -short, only one of eight variants is tested.
func TestVariants(t *testing.T) {
	t.Parallel()
	only := regexp.MustCompile(*variantNamed)
	for _, e := range catalog.All() {
		suite, err := mutanttest.Load(t, e.Protocol).About("")
		if err != nil {
			t.Fatal(err)
		}
		suite = suite.InProcess()
		if !*everyInstance {
			suite = suite.First()
		}
		names := map[string]bool{}
		for i, v := range append(variants[e.Protocol.Name], everywhere...) {
			name := e.Protocol.Name + "/" + v.Name
			if names[name] {
				t.Errorf("two variants have the name %s", name)
			}
			if names[name] = true; !only.MatchString(name) || testing.Short() && i%8 != 0 {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testVariant(t, e, suite, &v)
			})
		}
	}
}

// testVariant runs the suite against a variant.
func testVariant(t *testing.T, e *catalog.Entry, suite *conform.Suite, v *variant) {
	system := inject.Protocol{Protocol: e.Protocol, New: e.New, Waive: e.Lenient, Raw: sampleReply[e.Protocol.Name]}
	start := func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, v.Name, func(ctx context.Context, ln net.Listener) error { return system.Serve(ctx, ln, &v.MutantSpec) })
	}
	r := conform.Runner{Start: start, Parallel: cmp.Or(v.parallel, 8), Timeout: 10 * time.Second, Segments: []play.Segmentation{play.Plain}, Profile: &conform.Profile{Lacks: v.lacks}}
	begun := time.Now()
	results := r.Run(t.Context(), suite, nil)
	took := time.Since(begun)
	for _, res := range results {
		switch {
		case res.Verdict == conform.Passed || res.Verdict == conform.NonStrict:
		case res.Verdict.FailsRun() && !(v.customary && res.Verdict == conform.Failed && res.Case.Level == codec.DeFacto):
			t.Errorf("%s: %s: %s\n%s", res.Case.ID, res.Verdict, res.Note, res.Text())
		default:
			t.Logf("%s: %s: %s", res.Case.ID, res.Verdict, res.Note)
		}
	}
	t.Logf("%s %v in %v", v.About, tally(results), took.Round(time.Millisecond))
}
