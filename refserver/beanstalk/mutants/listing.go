package mutants

import "slices"

// listing are faults of section "Other Commands": lists of tubes, quit and pause-tube; and of
// what stands beyond the document.
var listing = []Mutant{
	{Name: "past-tubes-listed", About: "A tube that is gone stays in the list.",
		Kills: cases("list.tubes-alone"),
		Hook: func(b *bench) {
			used := []string{}
			b.out("USING", func(_ *conn, f *frame) verdict {
				if t := arg(f, 0); !slices.Contains(used, t) {
					used = append(used, t)
				}
				return verdict{}
			})
			b.out("list-reply", func(c *conn, f *frame) verdict {
				all := args(f)
				for _, t := range used {
					if b.peers[c].request.Type.Name == "list-tubes" && !slices.Contains(all, t) {
						all = append(all, t)
					}
				}
				return replace("list-reply", all...)
			})
		}},
	{Name: "no-list-at-first", About: "A server that is asked first of all for the tubes that are watched fails.",
		Kills: cases("list.in-any-yaml tube.default-watched"),
		Hook: func(b *bench) {
			b.on("list-tubes-watched", func(c *conn, f *frame) {
				if b.heard == 1 {
					b.say(c, "INTERNAL_ERROR")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "first-watched-listed", About: "list-tubes-watched tells one tube.",
		Kills: cases("list.watched watch.twice ignore.not-watched"),
		Hook: func(b *bench) {
			b.out("list-reply", func(c *conn, f *frame) verdict {
				if b.peers[c].request.Type.Name == "list-tubes-watched" {
					return replace("list-reply", args(f)[:1]...)
				}
				return verdict{}
			})
		}},

	// quit.
	{Name: "farewell", About: "quit as the first command is answered.",
		Kills: cases("quit.closes stats.total-connections"),
		Hook: func(b *bench) {
			b.on("quit", func(c *conn, f *frame) {
				if b.heard == 1 {
					b.blurt(c, "BYE\r\n")
				}
				b.pass(c, f)
			})
		}},
	{Name: "quit-behind-a-peek-passed-over", About: "quit right behind a peek has no effect.",
		Kills: cases("quit.after-replies"),
		Hook:  silent("quit", func(b *bench, c *conn, _ []string) bool { return b.peers[c].before == "peek-ready" })},
	{Name: "quit-undoes-the-put", About: "A job whose client quits right behind the put is lost.",
		Kills: cases("quit.with-a-put-before"),
		Hook: func(b *bench) {
			b.on("quit", func(c *conn, f *frame) {
				if j := b.find(func(j *job) bool { return j.producer == c }); j != nil && b.peers[c].before == "put" && j.tube != "default" {
					b.ask(c, "delete", j.id)
				}
				b.pass(c, f)
			})
		}},
	{Name: "quit-with-argument-passed-over", About: "quit with an argument is not answered.",
		Kills: cases("quit.surplus"), Hook: passedOver(`^quit \S`)},

	// pause-tube.
	{Name: "second-of-pause-skipped", About: "A pause of a second is none.",
		Kills: cases("pause.paused pause.waiting-ends"), Hook: pausedFor(func(_ *bench, _, length string) string {
			if length == "1" {
				return "0"
			}
			return length
		})},
	{Name: "put-ends-a-pause", About: "A job that is put into a paused tube for which a worker waits ends the pause.",
		Kills: cases("pause.waiting pause.waiting-ends"),
		Hook: func(b *bench) {
			b.on("put", func(c *conn, f *frame) {
				if t := b.figures(c, "stats-tube", b.peers[c].tube); t["pause"] != "0" && t["current-waiting"] != "0" {
					b.ask(c, "pause-tube", t["name"], "0")
				}
				b.pass(c, f)
			})
		}},
	{Name: "used-tube-paused-too", About: "After a pause the next tube that a client uses is paused too.",
		Kills: cases("pause.other-tubes"),
		Hook: func(b *bench) {
			paused := false
			b.on("pause-tube", func(c *conn, f *frame) {
				paused = arg(f, 1) == "100"
				b.pass(c, f)
			})
			b.on("use", func(c *conn, f *frame) {
				b.pass(c, f)
				if paused {
					b.ask(c, "pause-tube", arg(f, 0), "100")
				}
			})
		}},
	{Name: "paused-tube-not-kicked", About: "In a paused tube nothing is kicked.",
		Kills: cases("pause.takes-jobs"),
		Hook: func(b *bench) {
			b.on("kick", func(c *conn, f *frame) {
				if b.figures(c, "stats-tube", b.peers[c].tube)["pause"] != "0" {
					b.say(c, "KICKED", "0")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "no-tube-paused", About: "The pause of a tube that does not exist is confirmed.",
		Kills: cases("pause.not-there tube.not-made-by-asking"),
		Hook: func(b *bench) {
			b.out("NOT_FOUND", func(c *conn, _ *frame) verdict {
				if r := &b.peers[c].request; r.Type.Name == "pause-tube" && len(arg(r, 0)) < 200 {
					return replace("PAUSED")
				}
				return verdict{}
			})
		}},
	{Name: "pause-of-zero-without-effect", About: "A pause of 0 seconds leaves the one that goes on.",
		Kills: cases("pause.zero"), Hook: pausedFor(func(_ *bench, was, length string) string {
			if length == "0" {
				return was
			}
			return length
		})},
	{Name: "longest-pause-stays", About: "A shorter pause leaves the one that goes on.",
		Kills: cases("pause.shorter"), Hook: pausedFor(func(_ *bench, was, length string) string {
			if length == "0" {
				return length
			}
			return decimal(max(whole(was), whole(length)))
		})},
	{Name: "pause-in-letters-is-zero", About: "A word where the length of a pause is due counts as 0.",
		Kills: cases("pause.no-number"), Hook: readAs(`^pause-tube default [a-z]+\r`, "pause-tube default 0\r")},

	// reserve-job.
	{Name: "ready-job-not-reserved-by-id", About: "reserve-job does not find ready jobs.",
		Kills: cases("reserve-job.ready"), Hook: notReserved("ready")},
	{Name: "delayed-job-not-reserved-by-id", About: "reserve-job does not find delayed jobs.",
		Kills: cases("reserve-job.delayed"), Hook: notReserved("delayed")},
	{Name: "buried-job-not-reserved-by-id", About: "reserve-job does not find buried jobs.",
		Kills: cases("reserve-job.buried"), Hook: notReserved("buried")},
	{Name: "reserved-job-given-by-id", About: "reserve-job gives a job that somebody has.",
		Kills: cases("reserve-job.reserved"),
		Hook: func(b *bench) {
			b.on("reserve-job", func(c *conn, f *frame) {
				if j := b.jobs[arg(f, 0)]; j != nil && j.owner != nil {
					b.say(c, "RESERVED", j.id, j.body)
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "id-to-reserve-in-letters-is-zero", About: "A word where reserve-job has its ID counts as 0.",
		Kills: cases("reserve-job.malformed"), Hook: readAs(`^reserve-job [a-z]+\r`, "reserve-job 0\r")},
}

// pausedFor changes the length of a pause. was is how long the one is that goes on.
func pausedFor(change func(b *bench, was, length string) string) Hook {
	return func(b *bench) {
		was := map[string]string{}
		b.on("pause-tube", func(c *conn, f *frame) {
			tube := arg(f, 0)
			if was[tube] == "" {
				was[tube] = "0"
			}
			length := change(b, was[tube], arg(f, 1))
			was[tube] = length
			b.pass(c, compose("pause-tube", tube, length))
		})
	}
}

// notReserved hides jobs in one state from reserve-job.
func notReserved(state string) Hook {
	return denied("reserve-job", "NOT_FOUND", func(_ *bench, _ *conn, j *job) bool { return j.state == state })
}
