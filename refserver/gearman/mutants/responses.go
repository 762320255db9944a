package mutants

import "strings"

// responses are faults of section "Client Responses": results, handles and status.
var responses = []Mutant{
	{Name: "result-told-twice", About: "A client's first result comes twice.",
		Kills:  cases("work.complete worker.can-do-two maxqueue.room-again example.out-of-order example.interleaved retry.not-after-complete field.unique-reusable field.several-jobs field.answers-twice"),
		Faults: []string{"duplicate from-server WORK_COMPLETE nth=1"}},
	{Name: "result-repeated-at-echo", About: "A client that sends ECHO_REQ next to its result is sent that again.",
		Kills: cases("work.complete retry.not-after-complete field.answers-twice"),
		Hook: func(b *bench) {
			last := map[*conn][]string{}
			b.out("WORK_COMPLETE", func(c *conn, f *frame) verdict {
				last[c] = []string{arg(f, 0), arg(f, 1)}
				return verdict{}
			})
			b.on("ECHO_REQ", func(c *conn, f *frame) {
				if again := last[c]; again != nil {
					say(c, "WORK_COMPLETE", again...)
				}
				b.pass(c, f)
			})
		}},
	{Name: "failure-is-success", About: "A job that its worker says has failed has succeeded.",
		Kills:  cases("work.fail work.all-in-order status.failed field.coalesce-running retry.not-after-fail"),
		Faults: []string{"retype from-peer WORK_FAIL WORK_COMPLETE"}},
	{Name: "empty-data-dropped", About: "A WORK_DATA without data is not passed on.",
		Kills:  cases("work.data"),
		Faults: []string{"drop from-peer WORK_DATA when data="}},
	{Name: "data-held-back", About: "Data is passed on together with what the worker sends next.",
		Kills: cases("work.data-at-once"),
		Hook: func(b *bench) {
			held := map[*conn]*frame{}
			next := func(c *conn, f *frame) {
				if was := held[c]; was != nil {
					delete(held, c)
					b.pass(c, was)
				}
				if f.Type.Name == "WORK_DATA" && b.jobs[arg(f, 0)] != nil {
					was := f.Clone()
					held[c] = &was
					return
				}
				b.pass(c, f)
			}
			b.on(reports, next)
		}},
	{Name: "warning-is-data", About: "A warning arrives as data.",
		Kills:  cases("work.warning work.all-in-order"),
		Faults: []string{"retype from-server WORK_WARNING WORK_DATA"}},
	{Name: "warning-cut-at-nul", About: "A warning ends with its first NUL.",
		Kills: cases("work.warning"),
		Hook: func(b *bench) {
			b.out("WORK_WARNING", func(_ *conn, f *frame) verdict { return replace(changed(f, 1, cut(arg(f, 1), "\x00"))) })
		}},
	{Name: "full-progress-unsaid", About: "Progress that has come to its end is not told.",
		Kills: cases("work.status example.interleaved"),
		Hook: func(b *bench) {
			b.out("WORK_STATUS", func(_ *conn, f *frame) verdict { return verdict{Drop: arg(f, 1) == arg(f, 2)} })
		}},
	{Name: "progress-in-percent", About: "Progress is told in hundredths.",
		Kills:  cases("work.status"),
		Faults: []string{"alter from-server WORK_STATUS denominator=100 when denominator=70"}},
	{Name: "warning-late", About: "What a worker sends behind a warning overtakes it.",
		Kills:  cases("work.all-in-order"),
		Faults: []string{"delay from-server WORK_WARNING 60ms"}},
	{Name: "exception-is-failure", About: "A client that asked for exceptions is told that its job failed.",
		Kills:  cases("work.exception work.exception-each-as-asked retry.not-after-exception"),
		Faults: []string{"retype from-server WORK_EXCEPTION WORK_FAIL"}},
	{Name: "exception-cut-at-nul", About: "An exception ends with its first NUL.",
		Kills: cases("work.exception"),
		Hook: func(b *bench) {
			b.out("WORK_EXCEPTION", func(_ *conn, f *frame) verdict { return replace(changed(f, 1, cut(arg(f, 1), "\x00"))) })
		}},
	{Name: "exceptions-for-all", About: "Every client is sent exceptions.",
		Kills: cases("work.exception-unasked work.exception-each-as-asked"),
		Hook: func(b *bench) {
			why := ""
			b.on("WORK_EXCEPTION", func(c *conn, f *frame) {
				why = arg(f, 1)
				b.pass(c, f)
			})
			b.out("WORK_FAIL", func(_ *conn, f *frame) verdict {
				if b.request == nil || b.request.Type.Name != "WORK_EXCEPTION" {
					return verdict{}
				}
				m := changed(f, 0, arg(f, 0))
				m.Type, m.Args = row("WORK_EXCEPTION"), append(m.Args, []byte(why))
				return replace(m)
			})
		}},
	{Name: "exceptions-as-the-first-asked", About: "What the first client of a job asked for holds for the others.",
		Kills: cases("work.exception-each-as-asked"),
		Hook: func(b *bench) {
			b.out("WORK_FAIL", func(c *conn, f *frame) verdict {
				j := b.jobs[arg(f, 0)]
				if b.request == nil || b.request.Type.Name != "WORK_EXCEPTION" || j == nil || j.clients[0] == c || !b.peers[j.clients[0]].exceptions {
					return verdict{}
				}
				m := changed(f, 0, arg(f, 0))
				m.Type, m.Args = row("WORK_EXCEPTION"), append(m.Args, b.request.Arg(1))
				return replace(m)
			})
		}},
	{Name: "progress-told-to-all", About: "Progress is told to every client that waits for anything.",
		Kills: cases("work.only-to-the-client"),
		Hook: func(b *bench) {
			b.on("WORK_STATUS", func(c *conn, f *frame) {
				b.pass(c, f)
				mine := b.jobs[arg(f, 0)]
				if mine == nil || mine.worker != c {
					return
				}
				for _, j := range b.order {
					for _, w := range j.clients {
						if j != mine && j.ended == "" && w != mine.submitter {
							say(w, "WORK_STATUS", arg(f, 0), arg(f, 1), arg(f, 2))
						}
					}
				}
			})
		}},
	{Name: "progress-untold-is-empty", About: "The status of a job that has told no progress has empty numbers.",
		Kills: cases("number.progress-untold"),
		Hook: func(b *bench) {
			b.out("STATUS_RES", func(_ *conn, f *frame) verdict {
				if arg(f, 3) != "0" || arg(f, 4) != "0" {
					return verdict{}
				}
				m := changed(f, 3, "")
				m.Args[4] = nil
				return replace(m)
			})
		}},
	{Name: "handle-given-twice", About: "A client's background job gets the handle of its job that waits.",
		Kills: cases("handles.distinct"),
		Hook: func(b *bench) {
			b.out("JOB_CREATED", func(c *conn, f *frame) verdict {
				if b.request == nil || b.request.Type.Name != "SUBMIT_JOB_BG" {
					return verdict{}
				}
				first := b.find(func(j *job) bool {
					return j.queued() && j.submitter == c && j.typ == "SUBMIT_JOB"
				})
				if first == nil {
					return verdict{}
				}
				return replace(changed(f, 0, first.handle))
			})
		}},

	// Status.
	{Name: "every-handle-known", About: "A handle of another form than the server's own is known.",
		Kills: cases("status.unknown handle.longest"),
		Hook: func(b *bench) {
			b.out("STATUS_RES", func(_ *conn, f *frame) verdict {
				if !strings.HasPrefix(arg(f, 0), "H:") {
					return replace(changed(f, 1, "1"))
				}
				return verdict{}
			})
		}},
	{Name: "completed-job-known", About: "A job that has completed is still known.",
		Kills: cases("status.finished"), Hook: stillKnown("WORK_COMPLETE")},
	{Name: "failed-job-known", About: "A job that has failed is still known.",
		Kills: cases("status.failed"), Hook: stillKnown("WORK_FAIL")},
	{Name: "known-when-running", About: "A job is not known before a worker has it.",
		Kills:  cases("status.queued status.any-connection epoch.waits"),
		Faults: []string{"alter STATUS_RES known=0 when running=0"}},
	{Name: "known-is-running", About: "Every job that is known is running.",
		Kills:  cases("status.queued epoch.waits"),
		Faults: []string{"alter STATUS_RES running=1 when known=1"}},
	{Name: "running-by-progress", About: "A job is not running before it has told progress.",
		Kills:  cases("status.running"),
		Faults: []string{"alter STATUS_RES running=0 when denominator=0"}},
	{Name: "status-for-the-submitter", About: "Only the connection that submitted a job knows it.",
		Kills: cases("status.any-connection status.progress"),
		Hook: func(b *bench) {
			b.out("STATUS_RES", func(c *conn, f *frame) verdict {
				if j := b.jobs[arg(f, 0)]; j != nil && j.submitter != c {
					return replace(changed(f, 1, "0"))
				}
				return verdict{}
			})
		}},
	{Name: "first-progress-stays", About: "The status has the first progress that a job told.",
		Kills: cases("status.progress"),
		Hook: func(b *bench) {
			first := map[string]*frame{}
			b.on("WORK_STATUS", func(c *conn, f *frame) {
				if was := f.Clone(); first[arg(f, 0)] == nil {
					first[arg(f, 0)] = &was
				}
				b.pass(c, f)
			})
			b.out("STATUS_RES", func(_ *conn, f *frame) verdict {
				was := first[arg(f, 0)]
				if was == nil {
					return verdict{}
				}
				m := changed(f, 3, arg(was, 1))
				m.Args[4] = was.Arg(2)
				return replace(m)
			})
		}},
	{Name: "foreground-progress-forgotten", About: "The progress of a job that a client waits for is not stored.",
		Kills: cases("status.progress-foreground"),
		Hook: func(b *bench) {
			b.out("STATUS_RES", func(_ *conn, f *frame) verdict {
				if j := b.jobs[arg(f, 0)]; j != nil && !background(j.typ) {
					return replace(changed(f, 3, "0"))
				}
				return verdict{}
			})
		}},
}

// stillKnown lets jobs that ended so be known for ever.
func stillKnown(end string) Hook {
	return func(b *bench) {
		b.out("STATUS_RES", func(_ *conn, f *frame) verdict {
			if j := b.jobs[arg(f, 0)]; j != nil && j.ended == end {
				return replace(changed(f, 1, "1"))
			}
			return verdict{}
		})
	}
}
