package mutants

import (
	"strconv"
	"time"
)

// requests are faults of section "Client Requests".
var requests = []Mutant{
	{Name: "result-of-keyed-job-lost", About: "The result of a job with a unique ID and one client is lost.",
		Kills: cases("submit.normal submit.workload-binary grab.assign-unique retry.client-waits field.unique-reusable"),
		Hook: func(b *bench) {
			b.out("WORK_COMPLETE", func(_ *conn, f *frame) verdict {
				if j := b.jobs[arg(f, 0)]; j != nil && j.typ == "SUBMIT_JOB" && j.unique != "" && len(j.clients) == 1 {
					return drop
				}
				return verdict{}
			})
		}},
	{Name: "high-result-lost", About: "The result of a job of high priority does not reach its client.",
		Kills: cases("submit.high"), Hook: resultLost("SUBMIT_JOB_HIGH")},
	{Name: "low-result-lost", About: "The result of a job of low priority does not reach its client.",
		Kills: cases("submit.low"), Hook: resultLost("SUBMIT_JOB_LOW")},
	{Name: "background-progress-told", About: "The client of a background job is told of its progress.",
		Kills: cases("submit.background status.progress"), Hook: toldToSubmitter("SUBMIT_JOB_BG", "WORK_STATUS")},
	{Name: "background-result-told", About: "The client of a background job is told of its result.",
		Kills: cases("submit.background status.finished wake.again field.coalesce-background"), Hook: toldToSubmitter("SUBMIT_JOB_BG", "WORK_COMPLETE")},
	{Name: "background-failure-told", About: "The client of a background job is told of its failure.",
		Kills: cases("submit.background-failure"), Hook: toldToSubmitter("SUBMIT_JOB_BG", "WORK_FAIL")},
	{Name: "high-background-not-detached", About: "SUBMIT_JOB_HIGH_BG is taken for SUBMIT_JOB_HIGH.",
		Kills:  cases("submit.high-background"),
		Faults: []string{"retype SUBMIT_JOB_HIGH_BG SUBMIT_JOB_HIGH"}},
	{Name: "low-background-not-detached", About: "SUBMIT_JOB_LOW_BG is taken for SUBMIT_JOB_LOW.",
		Kills:  cases("submit.low-background"),
		Faults: []string{"retype SUBMIT_JOB_LOW_BG SUBMIT_JOB_LOW"}},
	{Name: "background-job-leaves-with-client", About: "A background job that waits is dropped when its client leaves.",
		Kills: cases("submit.background-client-leaves retry.background"), Slow: settle,
		Hook: func(b *bench) {
			b.leaving = func(c *conn) {
				for _, j := range b.order {
					if j.queued() && j.typ == "SUBMIT_JOB_BG" && j.submitter == c {
						b.pass(c, b.compose("cancel-job", j.handle))
					}
				}
			}
		}},
	{Name: "created-late", About: "JOB_CREATED is overtaken by the result of a quick worker.",
		Kills:  cases("submit.created-first"),
		Faults: []string{"delay JOB_CREATED 60ms"}},
	{Name: "empty-workload-passed-over", About: "A submission without a workload is not answered.",
		Kills:  cases("submit.workload-empty"),
		Faults: []string{"drop SUBMIT_JOB when workload="}},
	{Name: "workload-cut-at-nul", About: "JOB_ASSIGN has the workload up to its first NUL.",
		Kills: cases("submit.workload-binary grab.assign"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN", func(_ *conn, f *frame) verdict { return replace(changed(f, 2, cut(arg(f, 2), "\x00"))) })
		}},
	{Name: "workload-cut-at-64-kibibytes", About: "JOB_ASSIGN has at most 64 KiB of the workload.",
		Kills: cases("submit.workload-large submit.workload-16-mebibytes"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN", func(_ *conn, f *frame) verdict {
				return replace(changed(f, 2, arg(f, 2)[:min(len(f.Arg(2)), 64<<10)]))
			})
		}},
	{Name: "large-result-not-passed-on", About: "A result of more than 8 MiB does not reach the client.",
		Kills: cases("submit.workload-16-mebibytes"),
		Hook: func(b *bench) {
			b.out("WORK_COMPLETE", func(_ *conn, f *frame) verdict {
				if len(f.Arg(1)) > 8<<20 {
					return drop
				}
				return verdict{}
			})
		}},
	{Name: "long-function-ends-the-server", About: "A function's name of more than 512 bytes overflows.",
		Kills: cases("submit.function-of-600-bytes"), Hook: overflows(0)},
	{Name: "long-unique-ends-the-server", About: "A unique ID of more than 512 bytes overflows.",
		Kills: cases("submit.unique-of-600-bytes"), Hook: overflows(1)},
	{Name: "empty-function-passed-over", About: "A submission without a function's name is not answered.",
		Kills:  cases("submit.function-empty args.missing-all"),
		Faults: []string{"drop SUBMIT_JOB when function="}},
	{Name: "leaving-client-ends-the-server", About: "A client that leaves while its job waits takes the server with it.",
		Kills: cases("submit.client-leaves-while-queued field.coalesce-one-leaves"), Slow: settle,
		Hook: func(b *bench) {
			b.wrap = quick
			b.leaving = func(c *conn) {
				if b.find(func(j *job) bool { return j.queued() && !background(j.typ) && j.submitter == c }) != nil {
					b.die(c)
				}
			}
		}},
	{Name: "worker-pays-for-the-client", About: "A worker that reports on a job whose client has left is cut off.",
		Kills: cases("submit.client-leaves-while-running"), Slow: settle,
		Hook: func(b *bench) {
			b.on("WORK_DATA WORK_COMPLETE", func(c *conn, f *frame) {
				if j := b.jobs[arg(f, 0)]; j != nil && !background(j.typ) && j.worker == c && len(j.clients) == 0 {
					c.Close()
					return
				}
				b.pass(c, f)
			})
		}},

	// Priorities.
	{Name: "high-background-is-normal", About: "SUBMIT_JOB_HIGH_BG has normal priority.",
		Kills:  cases("queue.background queue.foreground-and-background"),
		Faults: []string{"retype SUBMIT_JOB_HIGH_BG SUBMIT_JOB_BG"}},
	{Name: "high-is-normal", About: "SUBMIT_JOB_HIGH has normal priority.",
		Kills:  cases("queue.high-first queue.three-priorities maxqueue.high maxqueue.normal beyond.prioritystatus"),
		Faults: []string{"retype SUBMIT_JOB_HIGH SUBMIT_JOB"}},
	{Name: "low-background-is-normal", About: "SUBMIT_JOB_LOW_BG has normal priority.",
		Kills:  cases("queue.background"),
		Faults: []string{"retype SUBMIT_JOB_LOW_BG SUBMIT_JOB_BG"}},
	{Name: "low-is-normal", About: "SUBMIT_JOB_LOW has normal priority.",
		Kills:  cases("queue.low-last queue.three-priorities maxqueue.low"),
		Faults: []string{"retype SUBMIT_JOB_LOW SUBMIT_JOB"}},
	{Name: "background-waits-for-foreground", About: "A background job of high priority comes behind those that clients wait for.",
		Kills: cases("queue.foreground-and-background"),
		Hook: func(b *bench) {
			b.on("SUBMIT_JOB_HIGH_BG", func(c *conn, f *frame) {
				if b.find(func(j *job) bool { return j.queued() && j.fn == arg(f, 0) && !background(j.typ) }) != nil {
					f = b.to(f, "SUBMIT_JOB_LOW_BG")
				}
				b.pass(c, f)
			})
		}},

	// Times.
	{Name: "epoch-not-kept", About: "A job for later is run at once.",
		Kills:  cases("epoch.waits"),
		Faults: []string{"retype SUBMIT_JOB_EPOCH SUBMIT_JOB_BG"}},
	{Name: "epoch-never-comes", About: "A job for a time is never run.",
		Kills:  cases("epoch.comes epoch.wakes epoch.past epoch.background"),
		Faults: []string{"alter SUBMIT_JOB_EPOCH epoch-time=99999999999"}},
	{Name: "epoch-does-not-wake", About: "Nobody is woken for a job whose time has come.",
		Kills: cases("epoch.wakes"),
		Hook: func(b *bench) {
			b.out("NOOP", func(*conn, *frame) verdict { return verdict{Drop: b.ticking} })
		}},
	{Name: "epoch-past-refused", About: "A job for a time that has passed is refused.",
		Kills: cases("epoch.past epoch.background"),
		Hook: func(b *bench) {
			b.on("SUBMIT_JOB_EPOCH", func(c *conn, f *frame) {
				if past(f) {
					say(c, "ERROR", "TOO_LATE", "that time has passed")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "epoch-not-detached", About: "The client of a job for a time that has passed hears of its result.",
		Kills: cases("epoch.background"),
		Hook: func(b *bench) {
			b.on("SUBMIT_JOB_EPOCH", func(c *conn, f *frame) {
				if past(f) {
					f = b.to(f, "SUBMIT_JOB")
				}
				b.pass(c, f)
			})
		}},
	{Name: "schedule-not-kept", About: "A scheduled job is run at once.",
		Kills:  cases("number.schedule-out-of-range sched.waits"),
		Faults: []string{"retype SUBMIT_JOB_SCHED SUBMIT_JOB_BG"}},
	{Name: "schedule-not-answered", About: "SUBMIT_JOB_SCHED is not answered.",
		Kills:  cases("number.schedule-out-of-range sched.waits sched.background sched.never"),
		Faults: []string{"drop SUBMIT_JOB_SCHED"}},
	{Name: "impossible-day-not-answered", About: "A job for a day that never comes is not answered.",
		Kills:  cases("sched.never"),
		Faults: []string{"drop ERROR when error-code=NO_SUCH_TIME"}},

	// Options.
	{Name: "option-unknown", About: "The option exceptions is not known.",
		Kills:  cases("option.exceptions option.exceptions-worker option.twice work.exception work.exception-each-as-asked retry.not-after-exception"),
		Faults: []string{"answer OPTION_REQ ERROR UNKNOWN_OPTION exceptions when option=exceptions"}},
	{Name: "option-not-twice", About: "An option that is set already cannot be set again.",
		Kills:  cases("option.twice"),
		Faults: []string{"answer OPTION_REQ ERROR OPTION_SET again nth=2"}},
	{Name: "any-option-is-one", About: "An option that nobody knows is confirmed.",
		Kills:  cases("error.form option.unknown option.empty field.connection-survives"),
		Faults: []string{"retype ERROR OPTION_RES when error-code=UNKNOWN_OPTION"}},
	{Name: "empty-option-passed-over", About: "An option request without a name is not answered.",
		Kills:  cases("option.empty"),
		Faults: []string{"drop OPTION_REQ when option="}},
}

// resultLost keeps the results of jobs back that were submitted so.
func resultLost(typ string) Hook {
	return func(b *bench) {
		b.out("WORK_COMPLETE", func(_ *conn, f *frame) verdict {
			j := b.jobs[arg(f, 0)]
			return verdict{Drop: j != nil && j.typ == typ}
		})
	}
}

// toldToSubmitter sends a worker's reports on detached jobs to those who submitted them.
func toldToSubmitter(typ, report string) Hook {
	return func(b *bench) {
		b.on(report, func(c *conn, f *frame) {
			if j := b.jobs[arg(f, 0)]; j != nil && j.typ == typ && j.worker == c && j.ended == "" {
				var m []string
				for i := range f.Type.Fields {
					m = append(m, arg(f, i))
				}
				say(j.submitter, report, m...)
			}
			b.pass(c, f)
		})
	}
}

// overflows ends the server where an argument of a submission is long.
func overflows(field int) Hook {
	return func(b *bench) {
		b.on(submissions, func(c *conn, f *frame) {
			if len(f.Arg(field)) > 512 {
				b.die(c)
				return
			}
			b.pass(c, f)
		})
	}
}

// past reports whether the time of a SUBMIT_JOB_EPOCH has passed.
func past(f *frame) bool {
	n, err := strconv.ParseInt(arg(f, 2), 10, 64)
	return err == nil && n < time.Now().Unix()
}
