package mutants

import "jobwire/codec"

// grabbing are faults of section "Worker Responses".
var grabbing = []Mutant{
	{Name: "no-job-before-the-first", About: "A server that has never seen a job does not answer who asks for one.",
		Kills: cases("grab.no-job grab.no-job-unique example.walkthrough field.wake-late beyond.grab-all-none"),
		Hook: func(b *bench) {
			b.out("NO_JOB", func(*conn, *frame) verdict { return verdict{Drop: len(b.order) == 0} })
		}},
	{Name: "no-job-unsaid-to-uniq", About: "GRAB_JOB_UNIQ is not answered when there is no job.",
		Kills: cases("grab.no-job-unique"), Hook: noJobUnsaid("GRAB_JOB_UNIQ")},
	{Name: "no-job-unsaid-to-all", About: "GRAB_JOB_ALL is not answered when there is no job.",
		Kills: cases("beyond.grab-all-none"), Hook: noJobUnsaid("GRAB_JOB_ALL")},
	{Name: "unable-worker-refused", About: "A worker that never announced anything may not ask for a job.",
		Kills: cases("grab.no-ability"),
		Hook: func(b *bench) {
			b.on("GRAB_JOB", func(c *conn, f *frame) {
				if len(b.peers[c].functions) == 0 {
					say(c, "ERROR", "NO_ABILITY", "announce something first")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "workload-beside-unique-cut-at-nul", About: "JOB_ASSIGN_UNIQ has the workload up to its first NUL.",
		Kills: cases("grab.assign-unique"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN_UNIQ", func(_ *conn, f *frame) verdict { return replace(changed(f, 3, cut(arg(f, 3), "\x00"))) })
		}},
	{Name: "unique-not-told", About: "A worker is assigned jobs without their unique ID.",
		Kills:  cases("grab.assign-unique grab.assign-unique-background beyond.grab-all-ordinary"),
		Faults: []string{"alter JOB_ASSIGN_UNIQ unique-id="}},
	{Name: "background-unique-forgotten", About: "The unique ID of a background job is not kept.",
		Kills: cases("grab.assign-unique-background"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN_UNIQ", func(_ *conn, f *frame) verdict {
				if j := b.jobs[arg(f, 0)]; j != nil && background(j.typ) {
					return replace(changed(f, 2, ""))
				}
				return verdict{}
			})
		}},
	{Name: "empty-unique-made-up", About: "A job without a unique ID is assigned with its handle in that place.",
		Kills: cases("grab.assign-unique-empty"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN_UNIQ", func(_ *conn, f *frame) verdict {
				if arg(f, 2) == "" {
					return replace(changed(f, 2, arg(f, 0)))
				}
				return verdict{}
			})
		}},
	{Name: "running-job-assigned", About: "A worker that finds nothing gets a job that another one runs.",
		Kills: cases("grab.once grab.race grab.woken-together field.retry-wakes"),
		Hook: assignsInstead(func(j *job, c *conn) bool {
			return j.ended == "" && j.worker != nil && j.worker != c
		})},
	{Name: "equal-jobs-confused", About: "Of two jobs of one function with the same workload one is assigned twice.",
		Kills: cases("grab.race"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN", func(c *conn, f *frame) verdict {
				twin := b.find(func(j *job) bool {
					return j.ended == "" && j.worker != nil && j.worker != c && j.fn == arg(f, 1) && j.workload == arg(f, 2)
				})
				if twin == nil {
					return verdict{}
				}
				return replace(changed(f, 0, twin.handle))
			})
		}},
	{Name: "one-high-job-at-a-time", About: "While a job of high priority runs, the function's next one is withheld.",
		Kills: cases("field.fifo-high"),
		Hook: func(b *bench) {
			b.on("GRAB_JOB", func(c *conn, f *frame) {
				running := b.find(func(j *job) bool {
					return j.typ == "SUBMIT_JOB_HIGH" && j.worker != nil && j.ended == "" && b.peers[c].abilities[j.fn]
				})
				if running != nil {
					say(c, "NO_JOB")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "woken-worker-left-waiting", About: "A worker that was woken is not told when the job has gone.",
		Kills: cases("grab.woken-together"),
		Hook: func(b *bench) {
			wasWoken := false
			b.on("GRAB_JOB", func(c *conn, f *frame) {
				wasWoken = b.peers[c].woken
				b.pass(c, f)
			})
			b.out("NO_JOB", func(*conn, *frame) verdict { return verdict{Drop: wasWoken} })
		}},
	{Name: "completed-job-assigned-again", About: "A worker that finds nothing gets the job that it has completed.",
		Kills: cases("worker.can-do worker.cant-do worker.reset-and-again wake.again worker.all-yours grab.not-again example.walkthrough field.coalesce"),
		Hook: assignsInstead(func(j *job, c *conn) bool {
			return j.ended == "WORK_COMPLETE" && j.worker == c
		})},
}

func noJobUnsaid(to string) Hook {
	return func(b *bench) {
		b.out("NO_JOB", func(*conn, *frame) verdict { return verdict{Drop: b.request.Type.Name == to} })
	}
}

// assignsInstead gives a worker a job in the place of NO_JOB.
func assignsInstead(which func(j *job, c *conn) bool) Hook {
	return func(b *bench) {
		b.out("NO_JOB", func(c *conn, _ *frame) verdict {
			j := b.find(func(j *job) bool { return b.peers[c].abilities[j.fn] && which(j, c) })
			if j == nil {
				return verdict{}
			}
			return replace(&codec.Message{Type: row("JOB_ASSIGN"), Args: [][]byte{[]byte(j.handle), []byte(j.fn), []byte(j.workload)}})
		})
	}
}
