package beanstalk_test

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"jobwire/audit"
	_ "jobwire/catalog"
	protocol "jobwire/codec/beanstalk"
	"jobwire/internal/target"
	"jobwire/refpeer/beanstalk"
	"jobwire/refserver"
)

// variants are correct clients. Each uses a freedom of the protocol that the reference client does not use.
var variants = []struct {
	name string
	edit func(*beanstalk.Program)
}{
	{"reference", func(*beanstalk.Program) {}},
	{"one connection per task", func(p *beanstalk.Program) { p.PerTask = true }},
	{"watches more tubes and ignores default late", func(p *beanstalk.Program) {
		p.LateIgnore = true
		p.Watch = beanstalk.Sequence{{Do: "watch spare.1"}, {Do: "watch {TUBE}"}, {Do: "watch spare.2"}, {Do: "watch {TUBE}"}}
	}},
	{"polls with reserve-with-timeout 0", func(p *beanstalk.Program) { p.InPieces = true }},
	{"waits for one second at a time", func(p *beanstalk.Program) { p.InPieces, p.Piece = true, 1 }},
	{"measures timeouts itself", func(p *beanstalk.Program) { p.OwnLimit = true }},
	{"reserves jobs by their IDs", func(p *beanstalk.Program) { p.ByID = true }},
	{"pipelined", func(p *beanstalk.Program) { p.Pipelined = true }},
	{"pipelined, on a connection per task, closed without quit", func(p *beanstalk.Program) { p.Pipelined, p.PerTask, p.Leave = true, true, nil }},
	{"asks for tubes before it uses one", func(p *beanstalk.Program) {
		p.Use = beanstalk.Sequence{{Do: "list-tubes"}, {Do: "list-tube-used"}, {Do: "use {TUBE}"}, {Do: "list-tubes-watched"}, {Do: "stats-tube {TUBE}"}, {Do: "stats"}}
	}},
	{"connects again with reserved jobs", func(p *beanstalk.Program) { p.Reconnects = true }},
	{"touches often", func(p *beanstalk.Program) {
		reserved := func(t *beanstalk.Task) bool { return t.Reserved }
		p.Reserved = beanstalk.Sequence{{Do: "touch {ID}"}, {Do: "touch {ID}"}}
		p.Release = append(beanstalk.Sequence{{Do: "touch {ID}"}}, p.Release...)
		p.Bury = append(beanstalk.Sequence{{Do: "touch {ID}"}}, p.Bury...)
		p.Delete = append(beanstalk.Sequence{{Do: "touch {ID}", If: reserved}}, p.Delete...)
	}},
	{"kicks by ID", func(p *beanstalk.Program) {
		p.Bury = append(p.Bury, beanstalk.Step{Do: "kick-job {ID}"}, beanstalk.Step{Do: "reserve-job {ID}"}, p.Bury[0])
	}},
	{"numbers with leading zeros", func(p *beanstalk.Program) {
		zeros := func(_ *beanstalk.Task, b []byte) []byte {
			line, rest, _ := bytes.Cut(b, []byte("\r\n"))
			words := bytes.Fields(line)
			for i, w := range words {
				if _, err := strconv.ParseUint(string(w), 10, 64); err == nil {
					words[i] = append([]byte("000"), w...)
				}
			}
			return append(append(bytes.Join(words, []byte(" ")), "\r\n"...), rest...)
		}
		for _, s := range []beanstalk.Sequence{p.Put, p.Reserve, p.Delete, p.Release, p.Bury, p.Touch, p.Peek, p.Kick, p.Stats} {
			for i := range s {
				s[i].Raw = zeros
			}
		}
	}},
}

// TestVariants: all correct clients pass under all fault profiles, and violate no rule. The variants run at the same time,
// because they wait for the server most of the time.
func TestVariants(t *testing.T) {
	var profiles []*audit.Profile
	for i := range audit.Profiles {
		profiles = append(profiles, &audit.Profiles[i])
	}
	start := func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, "beanstalk", func(ctx context.Context, ln net.Listener) error {
			return refserver.New(bench.Machine(), refserver.Options{Protocol: protocol.Protocol}).Serve(ctx, ln)
		})
	}
	var all sync.WaitGroup
	for _, v := range variants {
		all.Go(func() {
			outcomes, err := audit.Stress(t.Context(), audit.StressOptions{Protocol: protocol.Protocol, Profiles: profiles,
				Drivers: map[string]audit.Driver{"Client": audit.Driver(edited(v.edit))}, Start: start, Limit: 20 * time.Second})
			if err != nil || len(outcomes) < 14 {
				t.Errorf("%s: expected at least 14 fault profiles for Beanstalk, got %d; %v", v.name, len(outcomes), err)
			}
			for _, o := range outcomes {
				if !o.Passed() || o.Verdict == audit.Unsupported {
					t.Errorf("%s: %s: %s: %s", v.name, o.Profile.Name, o.Verdict, o.Note)
				}
				for _, b := range o.Breaches {
					t.Errorf("%s: %s: %s: %v", v.name, o.Profile.Name, b.Rule.ID, b.First[0].Err)
				}
			}
		})
	}
	all.Wait()
}
