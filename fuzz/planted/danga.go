package planted

import (
	"slices"

	"jobwire/codec/danga"
)

// inDanga are the faults of servers of the Danga draft.
var inDanga = []Fault{
	{Name: "asleep-disconnected", Protocol: "danga", Oracle: Exit,
		About: "A worker that takes back its names while it is asleep breaks an assertion.",
		Hook:  upon("worker_disconnect", exits(1, "Assertion 'worker.awake' failed.\n"), after("worker_connect worker_sleep"))},
	{Name: "names-missing", Protocol: "danga", Oracle: Hang,
		About: "A worker that asks for a job behind an empty list of names is not heard any more.",
		Hook: func(b *bench) {
			b.on("worker_connect", func(p *peer, f *frame) {
				p.mark = len(args(f)) == 0
				b.pass(p, f)
			})
			b.on("job_assign_req", func(p *peer, f *frame) {
				if p.deaf = p.mark; !p.deaf {
					b.pass(p, f)
				}
			})
		}},
	{Name: "empty-result-counted-one", Protocol: "danga", Oracle: Framing,
		About: "A result without data is told to be one byte longer than it is.",
		Hook: told("job_complete_res", func(_ *bench, _ *peer, f *frame) verdict {
			text := slices.Clone(f.Raw)
			text[8]++ // the last byte of the length
			return raw(string(text))
		}, is("Result data", ""))},
	{Name: "empty-args-of-another", Protocol: "danga", Oracle: Disclosure,
		About: "A job without args is given to its worker with those of the last job that had some.",
		Hook: func(b *bench) {
			last := ""
			b.on("job_create_req", func(p *peer, f *frame) {
				if a := arg(f, "Args"); a != "" {
					last = a
				}
				b.pass(p, f)
			})
			b.out("job_assign_res", func(_ *peer, f *frame) verdict {
				if arg(f, "Args") != "" || last == "" {
					return verdict{}
				}
				return b.changed(f, 1, last)
			})
		}},
	{Name: "long-key-lost", Protocol: "danga", Oracle: Lost,
		About: "A job with a handle whose duplicate key has 4096 bytes, the most there may be, is acknowledged and never assigned.",
		Hook: instead("job_create_req", func(b *bench, p *peer, f *frame) {
			a := args(f)
			a[0] += "~" // a name that nobody can do
			b.give(p, "job_create_req", a...)
		}, sized("Duplicate key", danga.MaxText), is("Job type", "\x01"))},
}
