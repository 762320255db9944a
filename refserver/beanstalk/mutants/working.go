package mutants

// working are faults of section "Worker Commands": what workers do to jobs, and the tubes
// that they watch.
var working = []Mutant{
	{Name: "anybody-ends-a-job", About: "A job that somebody has can be deleted by all.",
		Kills: cases("timed-out.others-job delete.others-job"), Hook: forOthers("delete", "DELETED")},
	{Name: "reserved-once", About: "No more than one reservation of a job is counted.",
		Kills: cases("stats-job.reserves stats-job.buries timed-out.others-job"), Hook: atMost("stats-job", "reserves", 1)},
	{Name: "deleted-twice", About: "A job that is gone can be deleted again.",
		Kills: cases("delete.reserved stats.commands-about-jobs"),
		Hook:  denied("delete", "DELETED", func(_ *bench, _ *conn, j *job) bool { return j.state == "deleted" })},
	{Name: "deleted-but-peeked", About: "The last job that was deleted is still the first of its state.",
		Kills: cases("delete.ready delete.delayed delete.buried"),
		Hook: func(b *bench) {
			b.out("NOT_FOUND", func(c *conn, _ *frame) verdict {
				p := b.peers[c]
				j := b.find(func(j *job) bool {
					return j.state == "deleted" && "peek-"+j.was == p.request.Type.Name && j.tube == p.tube
				})
				if j == nil {
					return verdict{}
				}
				return replace("FOUND", j.id, j.body)
			})
		}},
	{Name: "hole-in-the-queue", About: "A job deleted from the middle of a queue takes the next one with it.",
		Kills: cases("delete.from-the-middle"),
		Hook: func(b *bench) {
			b.on("delete", func(c *conn, f *frame) {
				j, before := b.jobs[arg(f, 0)], false
				if j != nil && j.state == "ready" {
					for _, o := range b.order {
						switch {
						case o == j:
							j = nil
						case o.state != "ready":
						case j != nil:
							before = true
						case before:
							b.ask(c, "delete", o.id)
							before = false
						}
					}
				}
				b.pass(c, f)
			})
		}},
	{Name: "zero-is-no-id", About: "The ID 0 is malformed.",
		Kills: cases("delete.not-there pipeline.many"), Hook: refuses("delete", "BAD_FORMAT", func(a []string) bool { return a[0] == "0" })},
	{Name: "worker-ids-of-63-bits", About: "An ID of 64 bits is malformed in release, bury, touch and other commands.",
		Kills: cases("release.not-there bury.not-there touch.not-there kick-job.not-there stats-job.not-there reserve-job.not-there"),
		Hook: refuses("release bury touch kick-job stats-job reserve-job", "BAD_FORMAT",
			func(a []string) bool { return above(a[0], 1<<63) })},

	// release.
	{Name: "released-shown-reserved", About: "A released job is shown as reserved.",
		Kills: cases("release.released"),
		Hook: figure("stats-job", "state", func(b *bench, _ *conn, all map[string]string) string {
			if j := b.jobs[all["id"]]; j != nil && j.last == "RELEASED" && all["state"] == "ready" {
				return "reserved"
			}
			return all["state"]
		})},
	{Name: "release-does-not-wake", About: "A worker that waits is not told of a job that is released.",
		Kills: cases("release.wakes"), Hook: notWoken("release")},
	{Name: "release-keeps-the-priority", About: "release leaves the priority as it is.",
		Kills: cases("release.priority stats-tube.urgent"), Hook: keepsPriority("release")},
	{Name: "released-goes-behind", About: "A job released with priority 0 gets 1.",
		Kills: cases("release.in-front"),
		Hook: takenFor("release", func(a []string) []string {
			if a[1] == "0" {
				a[1] = "1"
			}
			return a
		})},
	{Name: "second-of-release-skipped", About: "A job released with a delay of 1 is ready at once.",
		Kills: cases("release.delay"),
		Hook: takenFor("release", func(a []string) []string {
			if a[2] == "1" {
				a[2] = "0"
			}
			return a
		})},
	{Name: "ready-job-released", About: "A job that nobody has had can be released.",
		Kills: cases("release.not-reserved"), Hook: denied("release", "RELEASED", func(_ *bench, _ *conn, j *job) bool { return !j.reserved })},
	{Name: "anybody-releases", About: "A job that somebody has can be released by all.",
		Kills: cases("release.others-job timed-out.others-job"), Hook: forOthers("release", "RELEASED")},
	{Name: "released-again", About: "A job can be released twice.",
		Kills: cases("release.twice"), Hook: denied("release", "RELEASED", func(_ *bench, _ *conn, j *job) bool { return j.last == "RELEASED" })},

	// bury.
	{Name: "buried-job-reserved", About: "A worker that will not wait gets a buried job.",
		Kills: cases("bury.buried pause.takes-jobs"),
		Hook: func(b *bench) {
			b.out("TIMED_OUT", func(c *conn, _ *frame) verdict {
				if j := b.find(func(j *job) bool { return j.state == "buried" }); j != nil {
					return replace("RESERVED", j.id, j.body)
				}
				return verdict{}
			})
		}},
	{Name: "buried-job-times-out", About: "The time of a buried job of a second runs out.",
		Kills: cases("bury.does-not-time-out"),
		Hook: figure("stats-job", "timeouts", func(_ *bench, _ *conn, all map[string]string) string {
			if all["state"] == "buried" && all["ttr"] == "1" {
				return "1"
			}
			return all["timeouts"]
		})},
	{Name: "quit-kicks", About: "What a client buried is ready again when it quits.",
		Kills: cases("bury.survives-its-client"),
		Hook: func(b *bench) {
			b.on("quit", func(c *conn, f *frame) {
				for _, j := range b.order {
					if j.producer == c && j.state == "buried" {
						b.ask(c, "kick-job", j.id)
					}
				}
				b.pass(c, f)
			})
		}},
	{Name: "bury-keeps-the-priority", About: "bury leaves the priority as it is.",
		Kills: cases("bury.priority"), Hook: keepsPriority("bury")},
	{Name: "buried-peeked-as-put", About: "peek-buried shows buried jobs in the order in which they were put.",
		Kills: cases("bury.fifo peek.buried kick.buried"), Hook: peeked("peek-buried")},
	{Name: "ready-job-buried", About: "A job that nobody has reserved can be buried.",
		Kills: cases("bury.not-reserved"), Hook: denied("bury", "BURIED", func(_ *bench, _ *conn, j *job) bool { return !j.reserved })},
	{Name: "anybody-buries", About: "A job that somebody has can be buried by all.",
		Kills: cases("bury.others-job timed-out.others-job"), Hook: forOthers("bury", "BURIED")},

	// touch.
	{Name: "touch-not-found", About: "No job is found to be touched.",
		Kills: cases("touch.touched touch.extends deadline.still-held number.letters number.letters-behind"), Faults: []string{"answer touch NOT_FOUND"}},
	{Name: "touch-without-effect", About: "A touch is confirmed, and changes nothing.",
		Kills: cases("touch.extends"),
		Hook:  denied("touch", "TOUCHED", func(_ *bench, c *conn, j *job) bool { return j.owner == c })},
	{Name: "anybody-touches", About: "A job can be touched by all.",
		Kills: cases("touch.not-reserved"), Hook: denied("touch", "TOUCHED", func(_ *bench, c *conn, j *job) bool { return !j.reserved })},

	// watch and ignore.
	{Name: "two-tubes-counted", About: "No more than two tubes are counted as watched.",
		Kills: cases("watch.counts watch.many name.case-matters tube.any-watched stats.commands-about-tubes"),
		Hook: func(b *bench) {
			b.out("WATCHING", func(_ *conn, f *frame) verdict { return changed(f, 0, decimal(min(2, whole(arg(f, 0))))) })
		}},
	{Name: "watched-twice-counted-twice", About: "A tube that is watched already is counted again.",
		Kills: cases("watch.twice pipeline.many name.word-of-the-protocol stats.commands-about-tubes"),
		Hook: func(b *bench) {
			again := map[*conn]int{}
			b.on("watch", func(c *conn, f *frame) {
				for _, t := range args(b.ask(c, "list-tubes-watched")) {
					if t == arg(f, 0) {
						again[c]++
					}
				}
				b.pass(c, f)
			})
			b.out("WATCHING", func(c *conn, f *frame) verdict {
				return changed(f, 0, decimal(whole(arg(f, 0))+again[c]))
			})
		}},
	{Name: "nine-tubes-at-most", About: "A connection watches nine tubes at most.",
		Kills: cases("watch.many"),
		Hook: func(b *bench) {
			b.out("WATCHING", func(c *conn, f *frame) verdict {
				if whole(arg(f, 0)) > 9 {
					b.ask(c, "ignore", arg(&b.peers[c].request, 0))
					return changed(f, 0, "9")
				}
				return verdict{}
			})
		}},
	{Name: "past-of-a-tube-not-seen", About: "A worker that has heard TIMED_OUT does not see what a tube held before it watches it.",
		Kills: cases("watch.sees-what-was-there"),
		Hook: func(b *bench) {
			b.on("watch", func(c *conn, f *frame) {
				late := b.peers[c].heardOf == "TIMED_OUT"
				b.pass(c, f)
				if late {
					b.ask(c, "ignore", arg(f, 0))
				}
			})
		}},
	{Name: "last-tube-ignored", About: "The only tube that is watched can be ignored.",
		Kills: cases("ignore.last ignore.last-of-its-own"),
		Hook:  func(b *bench) { b.out("NOT_IGNORED", func(*conn, *frame) verdict { return replace("WATCHING", "0") }) }},
	{Name: "unwatched-not-ignored", About: "A tube that is not watched is answered by NOT_IGNORED.",
		Kills: cases("ignore.not-watched tube.not-made-by-asking stats.commands-about-tubes"),
		Hook: func(b *bench) {
			b.on("ignore", func(c *conn, f *frame) {
				for _, t := range args(b.ask(c, "list-tubes-watched")) {
					if t == arg(f, 0) {
						b.pass(c, f)
						return
					}
				}
				b.say(c, "NOT_IGNORED")
			})
		}},
	{Name: "ignored-tube-gives-on", About: "A tube that holds jobs when it is ignored goes on giving them.",
		Kills: cases("ignore.no-more-jobs"),
		Hook: func(b *bench) {
			b.on("ignore", func(c *conn, f *frame) {
				b.pass(c, f)
				if t := arg(f, 0); t != "default" && whole(b.figures(c, "stats-tube", t)["current-jobs-ready"]) > 0 {
					b.ask(c, "watch", t)
				}
			})
		}},
	{Name: "ignore-releases", About: "A worker that ignores a tube has the jobs of it no more.",
		Kills: cases("ignore.keeps-what-is-reserved tube.kept-by-a-reserved-job"),
		Hook: func(b *bench) {
			b.on("ignore", func(c *conn, f *frame) {
				for _, j := range b.held(c) {
					if j.tube == arg(f, 0) {
						b.ask(c, "release", j.id, "0", "0")
					}
				}
				b.pass(c, f)
			})
		}},
}

// forOthers carries out a command about a job that somebody else has.
func forOthers(command, reply string) Hook {
	return func(b *bench) {
		b.on(command, func(c *conn, f *frame) {
			j := b.jobs[arg(f, 0)]
			if j == nil || j.owner == nil || j.owner == c {
				b.pass(c, f)
				return
			}
			b.ask(j.owner, command, args(f)...)
			b.say(c, reply)
		})
	}
}

// notWoken keeps from workers that wait what becomes ready by some cause.
func notWoken(cause string) Hook {
	return func(b *bench) {
		b.out("RESERVED", func(*conn, *frame) verdict { return verdict{Drop: b.cause == cause} })
	}
}

// keepsPriority gives a command the priority that the job was put with.
func keepsPriority(command string) Hook {
	return func(b *bench) {
		b.on(command, func(c *conn, f *frame) {
			a := args(f)
			if j := b.jobs[a[0]]; j != nil {
				a[1] = j.priority
			}
			b.pass(c, compose(command, a...))
		})
	}
}

// peeked shows, of the used tube's jobs in the state that the command is named for, the
// one that was put first.
func peeked(command string) Hook {
	return func(b *bench) {
		b.on(command, func(c *conn, f *frame) {
			j := b.find(func(j *job) bool { return "peek-"+j.state == command && j.tube == b.peers[c].tube })
			if j == nil {
				b.pass(c, f)
				return
			}
			b.say(c, "FOUND", j.id, j.body)
		})
	}
}
