package mutants

import (
	"slices"
	"strings"
	"time"
)

// abilities are faults of sections "Packet: worker_connect" and "Packet: worker_disconnect".
var abilities = []Mutant{
	{Name: "idle-worker-gets-others-jobs", About: "A worker that has done all jobs of its names gets one of another name.",
		Kills: cases("connect.capabilities"),
		Hook: stolen(func(_ *bench, p *peer, _ *job) bool { return p.job == nil && len(p.done) == 1 && p.lists == 1 },
			func(_ *bench, p *peer, j *job) bool { return j.queued() && !p.does(j.name) })},
	{Name: "one-name-of-three", About: "Of three names the first counts.",
		Kills: cases("connect.several task.one-worker"),
		Hook: announcedAs(func(_ *bench, _ *peer, names []string) []string {
			if len(names) == 3 {
				return names[:1]
			}
			return names
		})},
	{Name: "thirty-two-names", About: "Of a list the first 32 names count.",
		Kills: cases("connect.many"),
		Hook:  announcedAs(func(_ *bench, _ *peer, names []string) []string { return names[:min(32, len(names))] })},
	{Name: "names-in-any-case", About: "Names are compared whatever their case.",
		Kills: cases("connect.whole-name"),
		Hook: announcedAs(func(_ *bench, _ *peer, names []string) []string {
			all := slices.Clone(names)
			for i := range all {
				all[i] = strings.ToLower(all[i])
			}
			return all
		})},
	{Name: "names-of-64-letters", About: "A name comes back cut at 64 letters.",
		Kills: cases("connect.long-name"),
		Hook:  value("job_assign_res", 0, func(_ *bench, _ *peer, v string, _ *job) string { return v[:min(64, len(v))] })},
	{Name: "unannounced-gets-all", About: "A worker that has announced nothing gets any job.",
		Kills: cases("connect.not-yet"),
		Hook:  stolen(func(_ *bench, p *peer, _ *job) bool { return p.lists == 0 }, queued)},
	{Name: "empty-list-is-all", About: "A list without names is of all names.",
		Kills: cases("connect.empty-list"),
		Hook:  stolen(func(_ *bench, p *peer, _ *job) bool { return p.lists > 0 && len(p.can) == 0 && !p.bye }, queued)},
	{Name: "lists-add-up", About: "Another list is added to the first one.",
		Kills: cases("connect.replaces"),
		Hook: func(b *bench) {
			had := map[*peer][]string{}
			announcedAs(func(_ *bench, p *peer, names []string) []string {
				had[p] = append(had[p], names...)
				return had[p]
			})(b)
		}},
	{Name: "list-given-twice-works-twice", About: "A worker that gave its list twice gets its last job twice.",
		Kills: cases("connect.again"),
		Hook: stolen(func(_ *bench, p *peer, _ *job) bool { return p.lists == 2 && len(p.done) == 1 },
			func(_ *bench, p *peer, j *job) bool {
				return p.finished(j) && p.does(j.name) && p.told == 1 && j.kind == 2
			})},
	{Name: "list-drops-job", About: "A worker that announces itself anew has its job no more.",
		Kills: cases("connect.with-a-job"),
		Hook: func(b *bench) {
			b.on("worker_connect", func(p *peer, f *frame, j *job) {
				if j != nil {
					b.give(p, "worker_disconnect")
				}
				b.pass(p, f)
			})
		}},

	// Goodbyes.
	{Name: "goodbye-to-sleeper-unheard", About: "The goodbye of a worker that sleeps is not heard.",
		Kills: cases("disconnect.no-jobs"),
		Hook: func(b *bench) {
			b.on("worker_disconnect", func(p *peer, f *frame, _ *job) {
				if p.last != "worker_sleep" {
					b.pass(p, f)
				}
			})
		}},
	{Name: "goodbye-forgets-nothing", About: "A worker that said goodbye gets jobs as before.",
		Kills: cases("disconnect.asks"),
		Hook:  stolen(func(_ *bench, p *peer, _ *job) bool { return p.bye }, queued)},
	{Name: "goodbye-keeps-job", About: "A worker that said goodbye keeps its job.",
		Kills: cases("retry.goodbye"),
		Hook:  ignored("worker_disconnect", func(_ *bench, p *peer, j *job) bool { return j != nil })},
	{Name: "goodbye-is-for-ever", About: "A worker that said goodbye can announce nothing any more.",
		Kills: cases("disconnect.anew"),
		Hook: func(b *bench) {
			gone := map[*peer]bool{}
			b.on("worker_disconnect", func(p *peer, f *frame, _ *job) { gone[p] = true; b.pass(p, f) })
			ignored("worker_connect", func(_ *bench, p *peer, _ *job) bool { return gone[p] })(b)
		}},
	{Name: "goodbye-silences-sleepers", About: "After a goodbye no sleeper is woken.",
		Kills: cases("disconnect.another"),
		Hook: func(b *bench) {
			said := false
			b.on("worker_disconnect", func(p *peer, f *frame, _ *job) { said = said || p.slept == 0; b.pass(p, f) })
			silent("noop", asWake(func(*bench, *peer, *job) bool { return said }))(b)
		}},
}

// asWake is a noop that wakes for a new job, or for one that came when a sleeper said once more
// that it sleeps.
func asWake(cond when) when {
	return func(b *bench, p *peer, j *job) bool {
		switch {
		case b.cause == "worker_sleep" && p.slept > 1:
			j = b.find(func(j *job) bool { return j.queued() && p.does(j.name) })
		case b.cause != "job_create_req":
			j = nil
		}
		return j != nil && cond(b, p, j)
	}
}

// sleeping are faults of section "Packet: worker_sleep".
var sleeping = []Mutant{
	{Name: "asked-once-not-woken", About: "A worker that asked once before it slept is not woken.",
		Kills: cases("sleep.wakes"),
		Hook:  silent("noop", asWake(func(_ *bench, p *peer, _ *job) bool { return p.asked == 1 }))},
	{Name: "sync-does-not-wake", About: "A worker that never asked is not woken for a job of type 0.",
		Kills: cases("sleep.wakes-at-once"),
		Hook:  silent("noop", asWake(func(_ *bench, p *peer, j *job) bool { return p.asked == 0 && j.kind == 0 }))},
	{Name: "first-name-wakes", About: "A worker is woken for the first of its names.",
		Kills: cases("sleep.wakes-for-any-name"),
		Hook:  silent("noop", asWake(func(_ *bench, p *peer, j *job) bool { return p.can[0] != j.name }))},
	{Name: "woken-once-in-its-life", About: "A worker is woken once.",
		Kills: cases("sleep.wakes-again"),
		Hook:  silent("noop", asWake(func(_ *bench, p *peer, _ *job) bool { return p.woken > 1 }))},
	{Name: "sleeps-with-its-first-list", About: "A sleeper is woken for the list that it had first.",
		Kills: cases("sleep.wakes-for-the-new-list"),
		Hook:  silent("noop", asWake(func(_ *bench, p *peer, _ *job) bool { return p.lists > 1 }))},
	{Name: "job-kept-for-the-first-woken", About: "Of two that are woken the second is told that there is no job.",
		Kills: cases("sleep.each"),
		Hook: func(b *bench) {
			var first *peer
			b.out("noop", func(p *peer, _ *frame, _ *job) verdict {
				if b.cause == "job_create_req" && (first == nil || p.conn.ID() < first.conn.ID()) {
					first = p
				}
				return verdict{}
			})
			b.on("job_assign_req", func(p *peer, f *frame, _ *job) {
				if first != nil && p != first && p.woken > 0 && first.idle {
					b.say(p, "noop")
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "old-job-does-not-wake", About: "Nobody is woken for a job that was there before.",
		Kills: cases("sleep.late"),
		Hook:  silent("noop", func(b *bench, _ *peer, _ *job) bool { return b.cause == "worker_sleep" })},
	{Name: "sleeper-gets-others-jobs", About: "A worker that asks in its sleep gets a job of another name.",
		Kills: cases("sleep.not-for-others"),
		Hook: stolen(func(_ *bench, p *peer, _ *job) bool { return p.slept > 0 && p.woken == 0 && p.job == nil },
			func(_ *bench, p *peer, j *job) bool { return j.queued() && !p.does(j.name) })},
	{Name: "newest-for-the-woken", About: "A worker that was woken gets the newest job.",
		Kills: cases("sleep.once"),
		Hook: value("job_assign_res", 1, func(b *bench, p *peer, v string, _ *job) string {
			if all := b.queue(p.job.name); p.woken == 1 && len(p.done) == 0 && len(all) > 0 {
				return all[len(all)-1].args
			}
			return v
		})},
	{Name: "waking-worker-told", About: "A worker that was told no is sent a noop when a job comes.",
		Kills: cases("connect.replaces sleep.not-awake"),
		Hook: func(b *bench) {
			b.on("job_create_req", func(p *peer, f *frame, j *job) {
				b.pass(p, f)
				for _, w := range b.peers {
					if w.does(j.name) && w.slept == 0 && w.told == 1 && w.job == nil && len(w.done) == 0 && j.kind == 2 {
						b.say(w, "noop")
					}
				}
			})
		}},
	{Name: "busy-worker-told", About: "A worker that was woken and has its job is sent a noop for the next.",
		Kills: cases("sleep.not-at-work"),
		Hook: func(b *bench) {
			b.on("job_create_req", func(p *peer, f *frame, j *job) {
				b.pass(p, f)
				for _, w := range b.peers {
					if w.does(j.name) && w.woken > 0 && w.job != nil {
						b.say(w, "noop")
					}
				}
			})
		}},
	{Name: "asking-does-not-end-sleep", About: "A sleeper that asks sleeps on.",
		Kills: cases("sleep.by-itself"),
		Hook: func(b *bench) {
			b.on("job_assign_req", func(p *peer, f *frame, _ *job) {
				b.pass(p, f)
				if p.slept > 0 && p.woken == 0 && p.job == nil {
					b.give(p, "worker_sleep")
				}
			})
		}},
	{Name: "job-follows-noop", About: "A worker that was woken and is slow to ask is sent the job.",
		Kills: cases("sleep.once sleep.no-push"),
		Hook: func(b *bench) {
			b.out("noop", func(p *peer, _ *frame, j *job) verdict {
				if b.cause == "job_create_req" {
					b.sendLater(55*time.Millisecond, p, func() bool { return p.idle && j.queued() }, "job_assign_res", j.name, j.args)
				}
				return verdict{}
			})
		}},
	{Name: "job-leaves-with-the-woken", About: "A job is lost when the worker that was woken for it leaves.",
		Kills: cases("sleep.leaves"),
		Hook: whenLeaving(func(b *bench, p *peer) {
			if p.idle && p.job == nil && len(p.can) > 0 && len(b.queue(p.can[0])) == 1 {
				b.consume(p, p.can[0])
			}
		})},
	{Name: "sleep-fails-job", About: "A worker that sleeps over its job fails.",
		Kills: cases("sleep.with-a-job"),
		Hook: func(b *bench) {
			b.on("worker_sleep", func(p *peer, f *frame, j *job) {
				if j != nil {
					b.give(p, "job_complete_announce", "\xff", "")
				}
				b.pass(p, f)
			})
		}},
}

// creating are faults of sections "Packet: job_create_req" and "Packet: job_create_res".
var creating = []Mutant{
	{Name: "lonely-waiter-told", About: "An application that waits while nobody works at all is told that nothing is done.",
		Kills: cases("create.sync"),
		Hook:  lonely(0, "job_status_res", number(0), number(1), number(0))},
	{Name: "lonely-async-told", About: "The application of a job of type 1 is told that nothing is done while nobody works at all.",
		Kills: cases("create.async"),
		Hook:  lonely(1, "job_complete_res", number(0), "\x00", "")},
	{Name: "lonely-thrown-away-told", About: "The application of a job of type 2 is told twice that it was created while nobody works at all.",
		Kills: cases("create.thrown-away"),
		Hook:  lonely(2, "job_create_res")},
	{Name: "handles-per-connection", About: "An application's first handle is the same as every other's.",
		Kills: cases("create.handles-distinct"),
		Hook: value("job_create_res", 0, func(b *bench, p *peer, v string, j *job) string {
			if first := b.find(func(o *job) bool { return o != j && o.handle != "" && o.by != p.conn }); first != nil && j.dups == 0 && len(p.created) == 1 {
				return first.handle
			}
			return v
		})},
	{Name: "handle-used-again", About: "A job gets the handle of a finished one.",
		Kills: cases("dup.finished-anew create.handles-distinct task.one-worker"),
		Hook: value("job_create_res", 0, func(b *bench, _ *peer, v string, j *job) string {
			if old := b.find(func(o *job) bool { return o.finished && o.handle != "" && o.handle != v }); old != nil && j.dups == 0 {
				return old.handle
			}
			return v
		})},
	{Name: "unknown-job-type-thrown-away", About: "A job of an unknown type is answered like one of type 2.",
		Kills: cases("create.type-3 create.type-255"),
		Hook:  told("danga.create.type-known", "job_create_req", "job_create_res")},
	{Name: "job-with-flags-unanswered", About: "A job of type 2 with an odd flag is not answered.",
		Kills: cases("create.flags"),
		Hook: func(b *bench) {
			b.on("job_create_req", func(p *peer, f *frame, _ *job) {
				if arg(f, 2)[0]&1 == 0 {
					b.pass(p, f)
				}
			})
		}},
	{Name: "flag-forces-job", About: "The second flag has a duplicate run.",
		Kills: cases("create.flags-do-nothing"),
		Hook: created(func(_ *bench, _ *peer, a []string, _ *job) {
			if a[2] == "\x02" {
				a[1] = ""
			}
		})},
	{Name: "no-args-is-a-nul", About: "A job without args gets a NUL.",
		Kills: cases("create.args-none task.keys task.one-worker"),
		Hook: value("job_assign_res", 1, func(_ *bench, _ *peer, v string, _ *job) string {
			if v == "" {
				return "\x00"
			}
			return v
		})},
	{Name: "args-trimmed", About: "NULs at the end of args are lost.",
		Kills: cases("retry.all-the-args length.data-like-packets create.args-binary"),
		Hook:  value("job_assign_res", 1, func(_ *bench, _ *peer, v string, _ *job) string { return strings.TrimRight(v, "\x00") })},
	{Name: "args-of-16-bits", About: "Args are cut at 65535 bytes.",
		Kills: cases("create.args-large"),
		Hook:  value("job_assign_res", 1, func(_ *bench, _ *peer, v string, _ *job) string { return v[:min(65535, len(v))] })},
	{Name: "jobs-leave-with-workers", About: "A job of type 0 that waits is lost when a worker leaves that could not do it.",
		Kills: cases("job.waits"),
		Hook: whenLeaving(func(b *bench, p *peer) {
			for _, j := range b.order {
				if p.asked > 0 && j.queued() && j.kind == 0 && !p.does(j.name) && len(p.done) == 0 && b.workers(j.name) == 0 {
					b.consume(p, j.name)
				}
			}
		})},
	{Name: "newest-of-four", About: "Of four jobs the newest is handed out first.",
		Kills: cases("job.order"),
		Hook:  newestOf(3)},
	{Name: "newest-of-three", About: "Of three jobs the newest is handed out first.",
		Kills: cases("dup.whole-key job.order job.order-of-workers"),
		Hook:  newestOf(2)},
}

// lonely tells an application something behind the answer to its only job of a type, if it is
// the only one that ever connected.
func lonely(kind byte, name string, values ...string) Hook {
	return func(b *bench) {
		b.on("job_create_req", func(p *peer, f *frame, j *job) {
			b.pass(p, f)
			if j.kind == kind && j.dups == 0 && len(b.all) == 1 {
				b.sendLater(40*time.Millisecond, p, func() bool { return len(b.all) == 1 && len(p.created) == 1 && p.last == "job_create_req" }, name, values...)
			}
		})
	}
}

// newestOf hands out the newest job while there are so many beside the one whose turn it is.
func newestOf(others int) Hook {
	return value("job_assign_res", 1, func(b *bench, p *peer, v string, _ *job) string {
		if p.job == nil {
			return v
		}
		if all := b.queue(p.job.name); len(all) == others {
			return all[len(all)-1].args
		}
		return v
	})
}
