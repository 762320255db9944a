package loadgen_test

import (
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/loadgen"
)

// without returns a copy of a protocol with another name, without the message types for which drop returns true.
func without(p *codec.Protocol, name string, drop func(*codec.Type) bool) *codec.Protocol {
	other := *p
	other.Name = name
	other.Types = slices.DeleteFunc(slices.Clone(p.Types), drop)
	return &other
}

// TestLoadDerivedFromMessageTypes tests that an adapter without Client and Worker gets the scenarios for which the
// protocol has message types, and that all these scenarios run.
func TestLoadDerivedFromMessageTypes(t *testing.T) {
	for _, tt := range []struct {
		of, protocol *codec.Protocol
		scenarios    []string
		oneGrab      bool
	}{
		{gearman.Protocol, without(gearman.Protocol, "all", func(t *codec.Type) bool { return false }),
			[]string{"cycle", "background", "drain", "priorities", "updates", "chaos", "crash", "echo", "status"}, false},
		{gearman.Protocol, without(gearman.Protocol, "plain", func(t *codec.Type) bool {
			return t.Priority != codec.Normal || t.Does == codec.Echo || t.Does == codec.Query || t.Does == codec.Status || t.Does == codec.Data
		}), []string{"cycle", "background", "drain", "chaos", "crash"}, false},
		{beanstalk.Protocol, without(beanstalk.Protocol, "waiting", func(t *codec.Type) bool { return t.Blocks == codec.UnlessZero }),
			[]string{"cycle", "background", "drain", "priorities", "updates", "chaos", "crash", "status"}, true},
		{beanstalk.Protocol, without(beanstalk.Protocol, "polling", func(t *codec.Type) bool { return t.Blocks == codec.Always }),
			[]string{"cycle", "background", "drain", "priorities", "updates", "chaos", "crash", "status"}, false},
		{danga.Protocol, without(danga.Protocol, "one", func(t *codec.Type) bool { return t.Does == codec.Query }),
			[]string{"cycle", "background", "drain", "updates", "chaos", "crash"}, true},
	} {
		a := &loadgen.Adapter{Protocol: tt.protocol}
		loadgen.Register(a)
		var names []string
		for _, sc := range loadgen.Scenarios(tt.protocol) {
			names = append(names, sc.Name)
		}
		if !slices.Equal(names, tt.scenarios) || a.OneGrab != tt.oneGrab {
			t.Errorf("%s: scenarios %q, one job at a time: %v; expected %q, %v", tt.protocol.Name, names, a.OneGrab, tt.scenarios, tt.oneGrab)
		}
		for _, name := range names {
			bubble(t, tt.protocol.Name+"/"+name, func(t *testing.T) {
				res := load(t, loadgen.Config{Protocol: tt.protocol, Scenario: name, Dial: serving(t, tt.of),
					Count: 300, Clients: 2, Functions: 2})
				if !res.Account.NoFaults() || res.Jobs != 300 {
					t.Errorf("%d jobs, %+v", res.Jobs, res.Account)
				}
			})
		}
	}
}

// TestLoadNeedsAllSteps tests that a protocol without message types for one step of a job has no scenarios.
func TestLoadNeedsAllSteps(t *testing.T) {
	for name, drop := range map[string]codec.Effect{"no submit": codec.Submit, "no ask": codec.Ask, "no end": codec.Complete} {
		p := without(gearman.Protocol, name, func(t *codec.Type) bool {
			return t.Does == drop || t.Does == codec.Echo || t.Does == codec.Query
		})
		loadgen.Register(&loadgen.Adapter{Protocol: p})
		_, err := loadgen.Config{Protocol: p}.Complete()
		if got := loadgen.Scenarios(p); len(got) > 0 || err == nil || err.Error() != "bench does not support Gearman" {
			t.Errorf("%s: %v, scenarios %v", name, err, got)
		}
	}
}
