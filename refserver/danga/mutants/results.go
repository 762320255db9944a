package mutants

import "strings"

// assigning are faults of sections "Packet: job_assign_req" and "Packet: job_assign_res", and of the
// jobs of "Task summary".
var assigning = []Mutant{
	{Name: "args-end-at-blank", About: "Args end at their first blank.",
		Kills: cases("assign.name-and-args task.crons"),
		Hook: value("job_assign_res", 1, func(_ *bench, _ *peer, v string, _ *job) string {
			v, _, _ = strings.Cut(v, " ")
			return v
		})},
	{Name: "second-no-told-twice", About: "A worker that is told no for the second time is told so twice.",
		Kills: cases("transport.in-a-segment magic.changes-in-a-byte assign.no-job"),
		Hook:  besides("job_assign_req", func(_ *bench, p *peer, _ *job) bool { return p.told == 2 && p.slept == 0 }, "noop")},
	{Name: "running-job-handed-out", About: "A job of type 0 that a worker has is given to another.",
		Kills: cases("assign.locked"),
		Hook: stolen(func(_ *bench, p *peer, _ *job) bool { return p.job == nil },
			func(_ *bench, p *peer, j *job) bool { return j.worker != nil && j.kind == 0 && p.does(j.name) })},
	{Name: "no-means-later", About: "A worker that was told no is sent a job of type 1 when it comes.",
		Kills: cases("assign.not-pushed"),
		Hook: func(b *bench) {
			b.on("job_create_req", func(p *peer, f *frame, j *job) {
				b.pass(p, f)
				for _, w := range b.peers {
					if w.does(j.name) && w.slept == 0 && w.told == 1 && len(w.done) == 0 && j.kind == 1 {
						b.say(w, "job_assign_res", j.name, j.args)
					}
				}
			})
		}},
	{Name: "second-end-of-work-untold", About: "A worker that has done two jobs is not told that there are no more.",
		Kills: cases("dup.empty-key dup.finished-anew order.worker application.only-answers assign.next"),
		Hook:  silent("noop", func(b *bench, p *peer, _ *job) bool { return b.cause == "job_assign_req" && len(p.done) == 2 })},
	{Name: "storable-header-stripped", About: "The head of frozen args is lost.",
		Kills: cases("task.mail task.keys"),
		Hook:  value("job_assign_res", 1, func(_ *bench, _ *peer, v string, _ *job) string { return strings.TrimPrefix(v, "\x04\x0b") })},
	{Name: "name-ends-at-slash", About: "A name comes back without what stands behind a slash.",
		Kills: cases("task.crons"),
		Hook: value("job_assign_res", 0, func(_ *bench, _ *peer, v string, _ *job) string {
			v, _, _ = strings.Cut(v, "/")
			return v
		})},
}

// streamed is progress that reaches who waits.
func streamed(cond when) when {
	return func(b *bench, p *peer, j *job) bool { return b.cause == "job_status_announce" && cond(b, p, j) }
}

// progressing are faults of the packets of status.
var progressing = []Mutant{
	{Name: "same-progress-untold", About: "Progress that has not changed is not told.",
		Kills: cases("dup.both-wait dup.waits-from-the-middle status.streamed"),
		Hook: func(b *bench) {
			was := map[*job]string{}
			b.out("job_status_res", func(_ *peer, f *frame, j *job) verdict {
				if b.answer() {
					return verdict{}
				}
				same := was[j] == string(f.Raw)
				was[j] = string(f.Raw)
				return verdict{Drop: same}
			})
		}},
	{Name: "last-second-untold", About: "Progress of a job that ends in a second is not told.",
		Kills: cases("sync.each-its-own status.at-once status.any-ratio"),
		Hook:  silent("job_status_res", streamed(func(_ *bench, _ *peer, j *job) bool { return j.progress[8:] == number(1) }))},
	{Name: "numbers-of-24-bits", About: "The highest byte of a numerator is lost.",
		Kills: cases("status.big-endian status.any-ratio"),
		Hook:  value("job_status_res", 0, func(_ *bench, _ *peer, v string, _ *job) string { return "\x00" + v[1:] })},
	{Name: "remaining-of-15-bits", About: "The time remaining is cut at 15 bits, but if nobody knows it.",
		Kills: cases("status.big-endian status.any-ratio"),
		Hook: value("job_status_res", 2, func(_ *bench, _ *peer, v string, _ *job) string {
			if v == number(1<<32-1) {
				return v
			}
			return number(numberOf(v) & 0x7fff)
		})},
	{Name: "ratio-at-most-one", About: "A numerator is cut at its denominator.",
		Kills: cases("status.any-ratio"),
		Hook: func(b *bench) {
			b.out("job_status_res", func(_ *peer, f *frame, _ *job) verdict {
				if n, d := arg(f, 0), arg(f, 1); n > d {
					return changed(f, 0, d)
				}
				return verdict{}
			})
		}},
	{Name: "unknown-time-is-none", About: "A time that nobody knows is told as 0.",
		Kills: cases("status.time-unknown"),
		Hook: value("job_status_res", 2, func(b *bench, _ *peer, v string, j *job) string {
			if j != nil && j.announced > 0 && v == number(1<<32-1) {
				return number(0)
			}
			return v
		})},
	{Name: "second-question-is-progress", About: "A job that waits has made progress when it is asked for again.",
		Kills: cases("order.application status.none-yet"),
		Hook: func(b *bench) {
			asked := map[*job]int{}
			value("job_status_res", 0, func(b *bench, _ *peer, v string, j *job) string {
				if j == nil || j.assigned {
					return v
				}
				asked[j]++
				return number(uint32(asked[j] - 1))
			})(b)
		}},
	{Name: "assignment-is-progress", About: "A job that was assigned has made progress.",
		Kills: cases("status.none-announced"),
		Hook: value("job_status_res", 0, func(b *bench, _ *peer, v string, j *job) string {
			if b.answer() && j != nil && j.worker != nil && j.announced == 0 {
				return number(1)
			}
			return v
		})},
	{Name: "first-progress-stays", About: "Whoever asks is told the first progress.",
		Kills: cases("status.latest"),
		Hook: func(b *bench) {
			b.out("job_status_res", func(_ *peer, _ *frame, j *job) verdict {
				if !b.answer() || j == nil || j.announced < 2 || j.finished {
					return verdict{}
				}
				return replace("job_status_res", j.first[:4], j.first[4:8], j.first[8:])
			})
		}},
	{Name: "progress-of-the-latest", About: "Whoever asks is told the progress that any job made last.",
		Kills: cases("status.each-its-own"),
		Hook: func(b *bench) {
			var latest *job
			b.on("job_status_announce", func(p *peer, f *frame, j *job) {
				if j != nil {
					latest = j
				}
				b.pass(p, f)
			})
			b.out("job_status_res", func(_ *peer, _ *frame, j *job) verdict {
				if !b.answer() || j == nil || j.announced == 0 || j.finished {
					return verdict{}
				}
				return replace("job_status_res", latest.progress[:4], latest.progress[4:8], latest.progress[8:])
			})
		}},
	{Name: "finished-is-not-begun", About: "Of a finished job none is done.",
		Kills: cases("status.finished"),
		Hook: value("job_status_res", 0, func(b *bench, _ *peer, v string, j *job) string {
			if j != nil && j.finished {
				return number(0)
			}
			return v
		})},
	{Name: "unknown-status-unanswered", About: "A question for the status of an unknown job is not answered.",
		Kills: cases("status.unknown-handle"),
		Hook:  silent("job_status_res", func(b *bench, _ *peer, j *job) bool { return b.answer() && j == nil })},
	{Name: "progress-without-a-job", About: "Progress of a worker that never asked is that of the first job of its name.",
		Kills: cases("status.no-job"),
		Hook: func(b *bench) {
			b.on("job_status_announce", func(p *peer, f *frame, j *job) {
				if other := b.ofName(p); j == nil && p.asked == 0 && other != nil {
					b.toWaiting(other, "job_status_res", args(f)...)
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "progress-behind-result", About: "Progress behind the result reaches the application.",
		Kills: cases("status.after-result"),
		Hook: func(b *bench) {
			b.on("job_status_announce", func(p *peer, f *frame, j *job) {
				if j == nil && len(p.done) > 0 {
					b.toWaiting(p.done[0], "job_status_res", args(f)...)
					return
				}
				b.pass(p, f)
			})
		}},
}

// finishing are faults of the packets of completion.
var finishing = []Mutant{
	{Name: "a-second-at-most", About: "Every job took a second.",
		Kills: cases("complete.elapsed-long"),
		Hook:  value("job_complete_res", 0, func(_ *bench, _ *peer, v string, _ *job) string { return number(min(1, numberOf(v))) })},
	{Name: "no-time-is-zero", About: "A job that took less than a second took none, to who waits.",
		Kills: cases("complete.elapsed"),
		Hook: value("job_complete_res", 0, func(b *bench, _ *peer, v string, _ *job) string {
			if b.cause == "job_complete_announce" && v == number(1) {
				return number(0)
			}
			return v
		})},
	{Name: "elapsed-little-endian", About: "The time that a job took has its least significant byte first.",
		Kills: cases("complete.elapsed-long complete.elapsed"),
		Hook: value("job_complete_res", 0, func(_ *bench, _ *peer, v string, _ *job) string {
			return string([]byte{v[3], v[2], v[1], v[0]})
		})},
	{Name: "result-trimmed", About: "NULs at the end of a result are lost.",
		Kills: cases("length.data-like-packets complete.result-binary"),
		Hook:  value("job_complete_res", 2, func(_ *bench, _ *peer, v string, _ *job) string { return strings.TrimRight(v, "\x00") })},
	{Name: "empty-result-is-a-nul", About: "Who asks for a result without data gets a NUL.",
		Kills: cases("complete.result-empty"),
		Hook: value("job_complete_res", 2, func(b *bench, _ *peer, v string, j *job) string {
			if b.answer() && j != nil && j.finished && v == "" && j.code == 0 {
				return "\x00"
			}
			return v
		})},
	{Name: "result-of-16-bits", About: "A result is cut at 65535 bytes.",
		Kills: cases("complete.result-large"),
		Hook:  value("job_complete_res", 2, func(_ *bench, _ *peer, v string, _ *job) string { return v[:min(65535, len(v))] })},
	{Name: "code-1-is-success", About: "The error code 1 is told as a success.",
		Kills: cases("retry.not-after-error complete.code-1 complete.each-its-own"),
		Hook: value("job_complete_res", 1, func(_ *bench, _ *peer, v string, _ *job) string {
			if v == "\x01" {
				return "\x00"
			}
			return v
		})},
	{Name: "codes-of-seven-bits", About: "An error code loses its highest bit.",
		Kills: cases("complete.code-128 complete.code-255"),
		Hook: value("job_complete_res", 1, func(_ *bench, _ *peer, v string, j *job) string {
			if j == nil {
				return v
			}
			return string([]byte{v[0] & 0x7f})
		})},
	{Name: "code-255-means-running", About: "A job that ended with code 255 is incomplete.",
		Kills: cases("complete.code-255"),
		Hook:  incomplete(func(_ *bench, _ *peer, j *job) bool { return j.code == 255 })},
	{Name: "result-told-again", About: "When a worker leaves, the result of its last job is told again.",
		Kills: cases("retry.not-after-result complete.once"),
		Hook: whenLeaving(func(b *bench, p *peer) {
			if len(p.done) > 0 && p.last == "job_complete_announce" {
				j := p.done[len(p.done)-1]
				b.toWaiting(j, "job_complete_res", number(1), string([]byte{j.code}), j.result)
			}
		})},
	{Name: "result-told-once", About: "A result is told to who asks first.",
		Kills: cases("complete.kept complete.each-its-own"),
		Hook: func(b *bench) {
			told := map[*job]bool{}
			incomplete(func(_ *bench, _ *peer, j *job) bool {
				was := told[j]
				told[j] = true
				return was
			})(b)
		}},
	{Name: "result-of-the-latest", About: "Whoever asks is told the result that came last.",
		Kills: cases("dup.finished-anew complete.each-its-own"),
		Hook: func(b *bench) {
			var latest *job
			b.on("job_complete_announce", func(p *peer, f *frame, j *job) {
				if j != nil {
					latest = j
				}
				b.pass(p, f)
			})
			value("job_complete_res", 2, func(b *bench, _ *peer, v string, j *job) string {
				if b.answer() && j != nil && j.finished {
					return latest.result
				}
				return v
			})(b)
		}},
	{Name: "waiting-unanswered", About: "A question whether a job is completed is answered once a worker has had it.",
		Kills: cases("order.application sync.async-meanwhile complete.waiting"),
		Hook:  silent("job_complete_res", func(b *bench, _ *peer, j *job) bool { return b.answer() && j != nil && !j.assigned })},
	{Name: "all-done-is-complete", About: "A job that has told that all is done is complete.",
		Kills: cases("complete.running"),
		Hook: value("job_complete_res", 0, func(b *bench, _ *peer, v string, j *job) string {
			if j != nil && !j.finished && j.progress != "" && j.progress[:4] == j.progress[4:8] {
				return number(1)
			}
			return v
		})},
	{Name: "unknown-is-complete", About: "An unknown job is complete.",
		Kills: cases("complete.unknown-handle"),
		Hook: value("job_complete_res", 0, func(b *bench, _ *peer, v string, j *job) string {
			if b.answer() && j == nil {
				return number(1)
			}
			return v
		})},
	{Name: "result-without-a-job", About: "The result of a worker that never asked is that of the first job of its name that waits.",
		Kills: cases("complete.no-job"),
		Hook:  resultOfAny(func(j *job) bool { return j.queued() })},
	{Name: "result-of-anothers-job", About: "The result of a worker that never asked is that of the job that another one is doing.",
		Kills: cases("complete.by-another"),
		Hook:  resultOfAny(func(j *job) bool { return j.worker != nil })},
	{Name: "second-result-counts", About: "A second result replaces the first one.",
		Kills: cases("complete.twice"),
		Hook: func(b *bench) {
			second := map[*job]string{}
			b.on("job_complete_announce", func(p *peer, f *frame, j *job) {
				if j == nil && len(p.done) > 0 {
					second[p.done[0]] = arg(f, 1)
				}
				b.pass(p, f)
			})
			value("job_complete_res", 2, func(b *bench, _ *peer, v string, j *job) string {
				if data, ok := second[j]; ok && b.answer() {
					return data
				}
				return v
			})(b)
		}},
}

// resultOfAny takes the result of a worker without a job for that of a job of its name.
func resultOfAny(which func(j *job) bool) Hook {
	return func(b *bench) {
		b.on("job_complete_announce", func(p *peer, f *frame, j *job) {
			if other := b.ofName(p); j == nil && p.asked == 0 && other != nil && which(other) {
				b.toWaiting(other, "job_complete_res", number(1), arg(f, 0), arg(f, 1))
				return
			}
			b.pass(p, f)
		})
	}
}
