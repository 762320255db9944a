package mutants

import (
	"context"
	"testing"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
)

// tolerated are servers that do what the rules call tolerable, or leave to a server.
var tolerated = map[string]Hook{
	// It wakes every sleeper for every job.
	"wakes-all": func(b *bench) {
		b.on("job_create_req", func(p *peer, f *frame, j *job) {
			b.pass(p, f)
			for _, w := range b.peers {
				if w.asleep && !w.does(j.name) {
					w.asleep = false
					b.muted = true
					b.give(w, "job_assign_req") // which ends its sleep
					b.muted = false
					b.say(w, "noop")
				}
			}
		})
	},
	// It wakes one sleeper for a job.
	"wakes-one": func(b *bench) {
		var last *job
		b.out("noop", func(_ *peer, _ *frame, j *job) verdict {
			if b.cause != "job_create_req" {
				return verdict{}
			}
			again := last == j
			last = j
			return verdict{Drop: again}
		})
	},
	// It ignores what is illegal, as long as it can tell where the next packet begins.
	"ignores-violations": func(b *bench) {
		b.rejected = func(_ *peer, _ *frame, e *codec.Error) bool { return !e.Fatal }
	},
	// It gives a handle to everybody.
	"handles-for-all": func(b *bench) {
		n := uint32(0)
		b.out("job_create_res", func(_ *peer, f *frame, _ *job) verdict {
			if len(args(f)) > 0 {
				return verdict{}
			}
			n++
			return replace("job_create_res", "none:"+string(rune('A'+n/26))+string(rune('a'+n%26)))
		})
	},
}

// No case fails a server for what is tolerable, also where other cases' jobs show on it.
func TestToleratedServersFailNoCase(t *testing.T) {
	for name, hook := range tolerated {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := conform.Runner{Parallel: 8, Timeout: 5 * time.Second, Bare: true, Start: func(ctx context.Context) (target.Target, error) {
				return (&Mutant{Name: name, Hook: hook}).Start(ctx)
			}}
			lax := 0
			for _, res := range r.Run(t.Context(), mutanttest.Suite(t, protocol.Protocol, ""), nil) {
				switch res.Verdict {
				case conform.Passed:
				case conform.Lax:
					lax++
				default:
					t.Errorf("%s: %s, %s", res.Case.ID, res.Verdict, res.Note)
				}
			}
			if lax == 0 {
				t.Error("no case has noticed it")
			}
		})
	}
}
