package mutants

import (
	"slices"
	"time"
)

// conversations are faults that show in what is said, by whom and in which order.
var conversations = []Mutant{
	{Name: "result-after-one-progress-lost", About: "A job that told its progress just once has no result for the one that waits.",
		Kills: cases("flow.sync announce.unanswered order.worker sync.each-its-own magic.each-its-own status.at-once status.big-endian"),
		Hook: silent("job_complete_res", func(b *bench, _ *peer, j *job) bool {
			return b.cause == "job_complete_announce" && j.announced == 1 && j.key == "" && j.lost == 0
		})},
	{Name: "first-progress-untold", About: "Its own application is not told a job's first progress when it asks.",
		Kills: cases("flow.async status.each-its-own"),
		Hook: value("job_status_res", 0, func(b *bench, p *peer, v string, j *job) string {
			if b.answer() && j != nil && j.announced == 1 && !j.finished && j.by == p.conn {
				return number(0)
			}
			return v
		})},
	{Name: "result-acknowledged", About: "A worker is thanked for the result of a job whose progress it told.",
		Kills: cases("announce.unanswered order.worker sync.leaves-meanwhile"),
		Hook: besides("job_complete_announce", func(_ *bench, p *peer, j *job) bool {
			return j != nil && j.announced > 0 && j.kind == 0 && len(p.done) == 1
		}, "noop")},
	{Name: "creation-overtaken", About: "The answer to an application's second job takes its time.",
		Kills: cases("order.application"),
		Hook: func(b *bench) {
			b.out("job_create_res", func(p *peer, _ *frame, _ *job) verdict {
				if len(p.created) > 1 && p.last != "job_create_req" {
					return verdict{Delay: 20 * time.Millisecond}
				}
				return verdict{}
			})
		}},
	{Name: "assignment-overtaken", About: "The second job of a worker takes its time.",
		Kills: cases("order.worker"),
		Hook: func(b *bench) {
			b.out("job_assign_res", func(p *peer, _ *frame, _ *job) verdict {
				if len(p.done) == 1 {
					return verdict{Delay: 20 * time.Millisecond}
				}
				return verdict{}
			})
		}},
	{Name: "thrown-away-result-pushed", About: "The result of a job that was thrown away is sent to its application.",
		Kills: cases("application.only-answers connect.several sleep.wakes-again throwaway.silent"),
		Hook:  pushed("job_complete_announce", 2)},
	{Name: "thrown-away-progress-pushed", About: "The progress of a job that was thrown away is sent to its application.",
		Kills: cases("application.only-answers throwaway.silent"),
		Hook:  pushed("job_status_announce", 2)},
	{Name: "async-result-pushed", About: "The result of a job of type 1 is sent to its application if it had progress.",
		Kills: cases("application.only-answers status.finished complete.running"),
		Hook:  pushed("job_complete_announce", 1)},
	{Name: "worker-closed-after-three-noes", About: "A worker that is told no three times is hung up on.",
		Kills: cases("flow.worst-case"),
		Hook: func(b *bench) {
			b.on("job_assign_req", func(p *peer, f *frame, _ *job) {
				b.pass(p, f)
				if p.told == 3 {
					p.conn.Close()
				}
			})
		}},
	{Name: "second-sleep-unheard", About: "A worker that was not woken from its first sleep is not heard when it sleeps again.",
		Kills: cases("flow.worst-case-elapsed"),
		Hook:  ignored("worker_sleep", func(_ *bench, p *peer, _ *job) bool { return p.slept > 1 && p.woken == 0 })},
	{Name: "result-needs-next-request", About: "The result of a job of type 1 is there when its worker asks for the next.",
		Kills: cases("dup.waits-for-async flow.best-case direction.both-roles"),
		Hook: incomplete(func(b *bench, _ *peer, j *job) bool {
			return j.kind == 1 && slices.ContainsFunc(b.all, func(p *peer) bool { return p.finished(j) && p.last != "job_assign_req" && !p.left })
		})},
}

// pushed sends what a worker says of a job of that type to the one that created it.
func pushed(typ string, kind byte) Hook {
	res := map[string]string{"job_complete_announce": "job_complete_res", "job_status_announce": "job_status_res"}[typ]
	return func(b *bench) {
		b.on(typ, func(p *peer, f *frame, j *job) {
			b.pass(p, f)
			if j == nil || j.kind != kind || kind == 1 && j.announced == 0 || b.peers[j.by] == nil {
				return
			}
			values := args(f)
			if res == "job_complete_res" {
				values = append([]string{number(1)}, values...)
			}
			b.say(b.peers[j.by], res, values...)
		})
	}
}

// applications are faults of those that wait, and of those that do not.
var applications = []Mutant{
	{Name: "async-dropped", About: "A job of type 1 is dropped with its application if no worker has it.",
		Kills: cases("async.detached violation.job-goes-on"),
		Hook:  whenLeaving(func(b *bench, p *peer) { b.dropQueued(p, 1) })},
	{Name: "thrown-away-dropped", About: "A job of type 2 is dropped with its application.",
		Kills: cases("throwaway.detached"),
		Hook:  whenLeaving(func(b *bench, p *peer) { b.dropQueued(p, 2) })},
	{Name: "result-of-orphan-dropped", About: "The result of a job of type 1 is dropped if its application left meanwhile.",
		Kills: cases("async.detached-while-running"),
		Hook:  incomplete(func(_ *bench, _ *peer, j *job) bool { return j.orphan })},
	{Name: "progress-for-creator-only", About: "Only the one that created a job is told its progress.",
		Kills: cases("async.any-connection status.time-unknown"),
		Hook: instead("job_status_res", func(b *bench, p *peer, j *job) bool { return b.answer() && j != nil && j.by != p.conn },
			"job_status_res", number(0), number(0), number(0))},
	{Name: "result-for-creator-only", About: "Only the one that created a job is told its result.",
		Kills: cases("async.detached async.detached-while-running async.any-connection violation.job-goes-on complete.kept"),
		Hook:  incomplete(func(_ *bench, p *peer, j *job) bool { return !slices.Contains(p.created, j) })},
	{Name: "name-of-dropped-locked", About: "When an application leaves a job that no worker has, no more of its name can be created.",
		Kills: cases("sync.leaves-before"),
		Hook: func(b *bench) {
			locked := map[string]bool{}
			b.ending = func(p *peer) {
				if j := p.waits(); j != nil && j.queued() && len(j.waits) == 1 {
					locked[j.name] = true
				}
			}
			b.on("job_create_req", func(p *peer, f *frame, j *job) {
				if !locked[j.name] {
					b.pass(p, f)
				}
			})
		}},
	{Name: "worker-of-dropped-closed", About: "A worker that says anything of a job that nobody waits for any more is hung up on.",
		Kills: cases("sync.leaves-meanwhile"),
		Hook: func(b *bench) {
			b.on("job_status_announce job_complete_announce", func(p *peer, f *frame, j *job) {
				if j != nil && j.kind == 0 && j.orphan && len(j.waits) == 0 {
					p.conn.Close()
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "second-wait-fails", About: "A second job of type 0 on a connection fails at once, and that is the answer.",
		Kills: cases("sync.second-meanwhile"),
		Hook: func(b *bench) {
			b.on("job_create_req", func(p *peer, f *frame, j *job) {
				if first := p.waits(); first != nil && first != j && arg(f, 3) == sync {
					b.say(p, "job_complete_res", number(1), "\xff", "")
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "question-while-waiting-fails", About: "A question that comes while its application waits is answered by a failure.",
		Kills: cases("sync.asks-meanwhile"),
		Hook: func(b *bench) {
			b.on("job_status_req", func(p *peer, f *frame, _ *job) {
				if p.waits() != nil {
					b.say(p, "job_complete_res", number(1), "\xff", "")
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "nothing-while-waiting", About: "An application that waits may create no job of type 1.",
		Kills: cases("sync.async-meanwhile"),
		Hook: func(b *bench) {
			b.on("job_create_req", func(p *peer, f *frame, j *job) {
				if first := p.waits(); first != nil && first != j && arg(f, 3) == async {
					p.conn.Close()
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "waits-once", About: "An application is told the result of the first job that it waits for, and of no other.",
		Kills: cases("transport.persistent dup.failed-anew sync.next"),
		Hook: silent("job_complete_res", func(b *bench, p *peer, j *job) bool {
			return b.cause == "job_complete_announce" && len(p.created) > 1 && p.created[0] != j && p.created[0].kind == 0 && p.created[0].finished
		})},
	{Name: "result-to-the-oldest", About: "Results go to whoever has waited longest.",
		Kills: cases("sync.each-its-own"),
		Hook: func(b *bench) {
			b.out("job_status_res job_complete_res", func(p *peer, f *frame, j *job) verdict {
				if b.answer() {
					return verdict{}
				}
				for _, q := range b.all {
					if q == p {
						break
					}
					if other := q.waits(); !q.left && other != nil && other != j {
						b.say(q, f.Type.Name, args(f)...)
						return drop
					}
				}
				return verdict{}
			})
		}},
}

// dropQueued drops the jobs of a type that the leaving peer created and nobody has.
func (b *bench) dropQueued(p *peer, kind byte) {
	for _, j := range p.created {
		if j.kind == kind && j.by == p.conn && j.queued() && len(b.queue(j.name)) == 1 && len(j.waits) == 0 && !j.assigned {
			b.consume(p, j.name)
		}
	}
}
