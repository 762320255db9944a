package mutants

import "time"

// field are faults in what the documents leave open and servers agree on.
var field = []Mutant{
	{Name: "error-closes", About: "A connection ends with an option that nobody knows.",
		Kills: cases("field.connection-survives"),
		Hook: func(b *bench) {
			b.out("ERROR", func(_ *conn, f *frame) verdict { return verdict{Close: arg(f, 0) == "UNKNOWN_OPTION"} })
		}},
	{Name: "worker-not-heard-after-error", About: "A worker that runs a job is not heard after an error.",
		Kills: cases("field.worker-survives"),
		Hook: func(b *bench) {
			b.out("ERROR", func(c *conn, f *frame) verdict {
				if arg(f, 0) == "JOB_NOT_FOUND" && len(b.running(c)) > 0 {
					b.deaf[c] = true
				}
				return verdict{}
			})
		}},
	{Name: "first-created-overtaken", About: "A client's first JOB_CREATED is overtaken by what comes next.",
		Kills:  cases("field.order-of-submissions submit.created-first"),
		Faults: []string{"delay JOB_CREATED 60ms nth=1"}},
	{Name: "newcomer-first", About: "A client's job overtakes those of others.",
		Kills: cases("field.fifo"),
		Hook: func(b *bench) {
			b.on("SUBMIT_JOB", func(c *conn, f *frame) {
				others := b.find(func(j *job) bool { return j.queued() && j.fn == arg(f, 0) && j.submitter != c })
				if others != nil && arg(f, 1) == "" {
					f = b.to(f, "SUBMIT_JOB_HIGH")
				}
				b.pass(c, f)
			})
		}},
	// Unique IDs.
	{Name: "progress-for-the-first-client", About: "Of several clients of a job the first alone hears its progress.",
		Kills: cases("field.coalesce beyond.status-unique-running"),
		Hook: func(b *bench) {
			b.out("WORK_STATUS", func(c *conn, f *frame) verdict {
				j := b.jobs[arg(f, 0)]
				return verdict{Drop: j != nil && len(j.clients) > 0 && j.clients[0] != c}
			})
		}},
	{Name: "joined-too-late", About: "A client that joins a running job hears nothing of it.",
		Kills: cases("field.coalesce-running"),
		Hook: func(b *bench) {
			late := map[*conn]bool{}
			b.on("SUBMIT_JOB", func(c *conn, f *frame) {
				if b.find(func(j *job) bool {
					return j.worker != nil && j.ended == "" && j.fn == arg(f, 0) && j.unique == arg(f, 1) && j.unique != ""
				}) != nil {
					late[c] = true
				}
				b.pass(c, f)
			})
			b.out("WORK_FAIL WORK_COMPLETE", func(c *conn, _ *frame) verdict { return verdict{Drop: late[c]} })
		}},
	{Name: "background-stays-so", About: "A client that joins a background job hears nothing of it.",
		Kills: cases("field.coalesce-background"), Hook: resultLost("SUBMIT_JOB_BG")},
	{Name: "job-leaves-with-first-client", About: "A job fails when the client that submitted it first leaves.",
		Kills: cases("field.coalesce-one-leaves"), Slow: settle,
		Hook: func(b *bench) {
			b.wrap = quick
			b.leaving = func(c *conn) {
				for _, j := range b.order {
					if j.queued() && j.submitter == c && len(j.clients) > 1 {
						b.pass(c, b.compose("cancel-job", j.handle))
					}
				}
			}
		}},
	{Name: "dash-is-an-id", About: "The unique ID \"-\" is one as any other.",
		Kills: cases("field.coalesce-by-workload"),
		Hook: func(b *bench) {
			b.on(submissions, func(c *conn, f *frame) {
				if arg(f, 1) == "-" {
					f = b.with(f, 1, "dash")
				}
				b.pass(c, f)
			})
		}},
	{Name: "unique-for-all-functions", About: "A unique ID is a job's, whatever its function.",
		Kills: cases("field.unique-per-function"),
		Hook: func(b *bench) {
			b.on(submissions, func(c *conn, f *frame) {
				if same := b.find(func(j *job) bool { return j.ended == "" && j.unique == arg(f, 1) && j.unique != "" && j.unique != "-" }); same != nil {
					f = b.with(f, 0, same.fn)
				}
				b.pass(c, f)
			})
		}},
	{Name: "unique-for-ever", About: "A unique ID whose job is finished still stands for it.",
		Kills: cases("field.unique-reusable"),
		Hook: func(b *bench) {
			b.on("SUBMIT_JOB", func(c *conn, f *frame) {
				if was := b.find(func(j *job) bool {
					return j.ended != "" && j.fn == arg(f, 0) && j.unique == arg(f, 1) && j.unique != ""
				}); was != nil {
					say(c, "JOB_CREATED", was.handle)
					return
				}
				b.pass(c, f)
			})
		}},

	// Waiting and waking.
	{Name: "job-without-worker-fails", About: "A job fails soon if nobody has announced its function.",
		Kills: cases("field.no-worker-yet"), Hook: failsWithoutWorker},
	{Name: "sleep-without-a-look", About: "A worker that goes to sleep is not woken for a job that waits already.",
		Kills:  cases("field.wake-late"),
		Faults: inOrder,
		Hook: func(b *bench) {
			b.out("NOOP", func(*conn, *frame) verdict {
				return verdict{Drop: b.request != nil && b.request.Type.Name == "PRE_SLEEP"}
			})
		}},

	// Jobs and their workers.
	{Name: "oldest-job-first", About: "A worker has to finish its jobs in the order in which it got them.",
		Kills: cases("field.several-jobs"),
		Hook: func(b *bench) {
			b.on(results, func(c *conn, f *frame) {
				if all := b.running(c); len(all) > 0 && b.jobs[arg(f, 0)] != nil && all[0].handle != arg(f, 0) {
					say(c, "ERROR", "NOT_YET", "another job comes first")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "second-result-told", About: "A second result for a job is refused, but reaches the client.",
		Kills: cases("field.answers-twice"),
		Hook: func(b *bench) {
			b.on("WORK_COMPLETE", func(c *conn, f *frame) {
				if j := b.jobs[arg(f, 0)]; j != nil && j.ended == "WORK_COMPLETE" {
					say(j.submitter, "WORK_COMPLETE", arg(f, 0), arg(f, 1))
				}
				b.pass(c, f)
			})
		}},
	{Name: "any-worker-may-answer", About: "A result is taken from a worker that does not hold the job.",
		Kills: cases("field.answers-for-another"),
		Hook: func(b *bench) {
			b.on("WORK_COMPLETE", func(c *conn, f *frame) {
				if j := b.jobs[arg(f, 0)]; j != nil && j.ended == "" && j.worker != nil {
					c = j.worker
				}
				b.pass(c, f)
			})
		}},
	{Name: "result-without-grab-taken", About: "A result is taken for a job that nobody has grabbed.",
		Kills: cases("field.answers-unassigned"),
		Hook: func(b *bench) {
			b.on("WORK_COMPLETE", func(c *conn, f *frame) {
				if j := b.jobs[arg(f, 0)]; j != nil && j.queued() {
					say(j.submitter, "WORK_COMPLETE", arg(f, 0), arg(f, 1))
					return
				}
				b.pass(c, f)
			})
		}},
}

// failsWithoutWorker fails a job that had no worker for a while. Only time is counted in
// which the server itself was not late: a busy machine delays workers too.
func failsWithoutWorker(b *bench) {
	const tick, ticks = 5 * time.Millisecond, 8
	var j *job
	var left int
	wait := func() { b.alarm = time.Now().Add(tick) }
	b.ring = func() {
		if left--; time.Since(b.due) > tick {
			left = ticks
		}
		switch {
		case !j.queued() || b.announced(j.fn):
		case left > 0:
			wait()
		default:
			b.pass(j.submitter, b.compose("cancel-job", j.handle))
		}
	}
	b.on("SUBMIT_JOB", func(c *conn, f *frame) {
		b.pass(c, f)
		if n := len(b.order); n > 0 {
			j, left = b.order[n-1], ticks
			wait()
		}
	})
	b.on("shutdown", func(c *conn, f *frame) {
		b.alarm = time.Time{}
		b.pass(c, f)
	})
	b.out("OK", func(*conn, *frame) verdict { return verdict{Drop: b.ticking} })
}
