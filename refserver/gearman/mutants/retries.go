package mutants

import "jobwire/refserver/gearman"

// retries are faults of the document's example, and of what becomes of a lost worker's jobs.
var retries = []Mutant{
	{Name: "empty-unique-is-the-workload", About: "Jobs without a unique ID are the same if their workloads are.",
		Kills: cases("handles.distinct grab.assign-unique-empty grab.race example.empty-unique beyond.prioritystatus"),
		Hook: func(b *bench) {
			b.on("SUBMIT_JOB", func(c *conn, f *frame) {
				if arg(f, 1) == "" {
					f = b.with(f, 1, "-")
				}
				b.pass(c, f)
			})
		}},
	{Name: "results-in-order-of-submission", About: "A result waits for those of the jobs that the client submitted before.",
		Kills: cases("example.out-of-order example.interleaved field.coalesce-by-workload field.several-jobs"),
		Hook: func(b *bench) {
			b.out("WORK_COMPLETE", func(c *conn, f *frame) verdict {
				earlier := b.find(func(j *job) bool { return j.submitter == c && j.ended == "" && !background(j.typ) })
				return verdict{Drop: earlier != nil && earlier.handle != arg(f, 0)}
			})
		}},
	{Name: "one-job-a-client", About: "A client that is told progress cannot submit before the job's end.",
		Kills: cases("example.full-duplex"),
		Hook: func(b *bench) {
			told := map[*conn]*job{}
			b.out("WORK_STATUS", func(c *conn, f *frame) verdict {
				told[c] = b.jobs[arg(f, 0)]
				return verdict{}
			})
			b.on(submissions, func(c *conn, f *frame) {
				if j := told[c]; j != nil && j.ended == "" {
					say(c, "ERROR", "BUSY", "one job at a time")
					return
				}
				b.pass(c, f)
			})
		}},

	{Name: "lost-job-fails", About: "A job fails with its worker.",
		Kills: cases("retry.worker-closes retry.worker-breaks-off retry.client-waits retry.after-data retry.background retry.twice retry.lost-worker-returns field.retry-same-handle field.retry-wakes field.retry-two-jobs"), Slow: settle,
		Server: gearman.Options{Retries: 1}},
	{Name: "one-retry", About: "A job fails with its second worker.",
		Kills: cases("retry.twice"), Slow: settle, Server: gearman.Options{Retries: 2}},
	{Name: "reset-not-noticed", About: "A connection that breaks off is not noticed.",
		Kills: cases("retry.worker-breaks-off"),
		Hook:  func(b *bench) { b.wrap = newNumb }},
	{Name: "lost-job-forgotten-while-others-sleep", About: "A lost worker's job is forgotten if another worker sleeps.",
		Kills: cases("retry.worker-closes retry.worker-breaks-off retry.client-waits field.retry-wakes"), Slow: settle,
		Hook: forgets(func(b *bench, j *job) bool {
			for _, p := range b.peers {
				if p.conn != j.worker && p.asleep && p.abilities[j.fn] {
					return true
				}
			}
			return false
		})},
	{Name: "client-told-of-lost-worker", About: "The client hears that its job failed, though it is handed out again.",
		Kills: cases("retry.client-waits retry.after-data retry.twice retry.lost-worker-returns"), Slow: settle,
		Hook: func(b *bench) {
			b.leaving = func(c *conn) {
				for _, j := range b.running(c) {
					for _, w := range j.clients {
						say(w, "WORK_WARNING", j.handle, "the worker was lost")
					}
				}
			}
		}},
	{Name: "job-with-data-forgotten", About: "A lost worker's job is forgotten if some data was sent.",
		Kills: cases("retry.after-data"), Slow: settle,
		Hook: func(b *bench) {
			began := map[string]bool{}
			forgets(func(_ *bench, j *job) bool { return began[j.handle] })(b)
			b.on("WORK_DATA", func(c *conn, f *frame) {
				began[arg(f, 0)] = true
				b.pass(c, f)
			})
		}},
	{Name: "background-job-forgotten", About: "A lost worker's background job is forgotten.",
		Kills: cases("retry.background field.retry-same-handle"), Slow: settle,
		Hook: forgets(func(_ *bench, j *job) bool { return background(j.typ) })},
	{Name: "retry-under-another-handle", About: "A background job that is handed out again has another handle.",
		Kills: cases("retry.background field.retry-same-handle"), Slow: settle,
		Hook: func(b *bench) {
			b.out(assignments, func(_ *conn, f *frame) verdict {
				if j := b.jobs[arg(f, 0)]; j != nil && j.grabbed && background(j.typ) {
					return replace(changed(f, 0, arg(f, 0)+"-again"))
				}
				return verdict{}
			})
		}},
	{Name: "job-bound-to-the-woken", About: "A job is dropped when a worker that was woken leaves without it.",
		Kills: cases("retry.before-grab"), Slow: settle,
		Hook: func(b *bench) {
			b.leaving = func(c *conn) {
				for _, j := range b.order {
					if p := b.peers[c]; j.queued() && p.woken && p.abilities[j.fn] {
						b.pass(c, b.compose("cancel-job", j.handle))
					}
				}
			}
		}},
	{Name: "retry-for-those-who-were-there", About: "A lost worker's job is only for workers that were connected then.",
		Kills: cases("retry.after-data retry.background retry.twice retry.lost-worker-returns field.retry-same-handle field.retry-two-jobs"), Slow: settle,
		Hook: func(b *bench) {
			lost := false
			newcomer := map[*conn]bool{}
			b.on("CAN_DO", func(c *conn, f *frame) {
				newcomer[c] = newcomer[c] || lost
				b.pass(c, f)
			})
			b.on("GRAB_JOB", func(c *conn, f *frame) {
				if newcomer[c] {
					say(c, "NO_JOB")
					return
				}
				b.pass(c, f)
			})
			b.leaving = func(c *conn) { lost = lost || len(b.running(c)) > 0 }
		}},
	{Name: "result-lost-with-worker", About: "A job whose worker leaves after its result is handed out again.",
		Kills: cases("retry.not-after-complete"), Hook: handedOutAgain("WORK_COMPLETE")},
	{Name: "failed-job-retried", About: "A job that failed is handed out again.",
		Kills: cases("retry.not-after-fail"), Hook: handedOutAgain("WORK_FAIL")},
	{Name: "excepted-job-retried", About: "A job that ended with an exception is handed out again.",
		Kills: cases("retry.not-after-exception"), Hook: handedOutAgain("WORK_EXCEPTION")},
	{Name: "retry-does-not-wake", About: "Nobody is woken for a lost worker's job.",
		Kills: cases("field.retry-wakes"),
		Hook: func(b *bench) {
			b.out("NOOP", func(*conn, *frame) verdict { return verdict{Drop: b.request == nil && !b.ticking} })
		}},
	{Name: "second-job-forgotten", About: "Of a lost worker's jobs only the first is handed out again.",
		Kills: cases("field.retry-two-jobs"), Slow: settle,
		Hook: forgets(func(b *bench, j *job) bool { return b.running(j.worker)[0] != j })},
}

// forgets drops some of the jobs that a lost worker had, without a word to anybody.
func forgets(which func(b *bench, j *job) bool) Hook {
	return func(b *bench) {
		forgetting := false
		b.out("WORK_FAIL", func(*conn, *frame) verdict { return verdict{Drop: forgetting} })
		b.leaving = func(c *conn) {
			var lost []*job
			for _, j := range b.running(c) {
				if which(b, j) {
					lost = append(lost, j)
				}
			}
			forgetting = true
			for _, j := range lost {
				b.pass(c, b.compose("WORK_FAIL", j.handle))
			}
			forgetting = false
		}
	}
}

// handedOutAgain gives jobs that ended so to workers that did not end them.
func handedOutAgain(end string) Hook {
	return assignsInstead(func(j *job, c *conn) bool { return j.ended == end && j.worker != c })
}
