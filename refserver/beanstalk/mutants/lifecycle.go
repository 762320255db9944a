package mutants

// lifecycle are faults of section "Job Lifecycle".
var lifecycle = []Mutant{
	{Name: "finished-job-still-seen", About: "A job that its worker has deleted can still be peeked at.",
		Kills: cases("life.typical"),
		Hook: func(b *bench) {
			done := map[string]bool{}
			b.on("delete", func(c *conn, f *frame) {
				j := b.jobs[arg(f, 0)]
				done[arg(f, 0)] = j != nil && j.owner == c && j.producer != c
				b.pass(c, f)
			})
			b.on("peek", func(c *conn, f *frame) {
				if done[arg(f, 0)] {
					b.say(c, "FOUND", arg(f, 0), b.jobs[arg(f, 0)].body)
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "released-shown-ready", About: "A job that was released with a delay is shown as ready.",
		Kills: cases("life.all-states release.delay"),
		Hook: figure("stats-job", "state", func(_ *bench, _ *conn, all map[string]string) string {
			if all["releases"] != "0" && all["state"] == "delayed" {
				return "ready"
			}
			return all["state"]
		})},
	{Name: "reserved-counted-ready", About: "A tube counts reserved jobs as ready too.",
		Kills: cases("life.counted-once stats-tube.jobs"),
		Hook: figure("stats-tube", "current-jobs-ready", func(_ *bench, _ *conn, all map[string]string) string {
			return decimal(whole(all["current-jobs-ready"]) + whole(all["current-jobs-reserved"]))
		})},
	{Name: "reserved-job-given-again", About: "A worker that will not wait gets a job that another has.",
		Kills: cases("life.exclusive ttr.zero deadline.not-others"),
		Hook: func(b *bench) {
			b.on("reserve-with-timeout", func(c *conn, f *frame) {
				j := b.find(func(j *job) bool { return j.state == "reserved" && j.owner != c })
				if arg(f, 0) == "0" && j != nil {
					b.say(c, "RESERVED", j.id, j.body)
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "ids-by-connection", About: "Each connection counts its jobs by itself.",
		Kills: cases("life.ids-differ connection.put-behind-reserve"),
		Hook: func(b *bench) {
			counts := map[*conn]int{}
			b.out("INSERTED", func(c *conn, f *frame) verdict {
				counts[c]++
				return changed(f, 0, decimal(counts[c]))
			})
		}},
	{Name: "id-used-again", About: "The ID of a job that was deleted before its delay was over is given to the next.",
		Kills: cases("life.ids-not-used-again"),
		Hook: func(b *bench) {
			free, now := "", "" // the ID, and the job that has it now
			b.out("DELETED", func(c *conn, _ *frame) verdict {
				if id := arg(&b.peers[c].request, 0); b.jobs[id] != nil && b.jobs[id].delay != "0" && !b.jobs[id].reserved {
					free = id
				}
				return verdict{}
			})
			b.out("INSERTED", func(c *conn, f *frame) verdict {
				if free == "" || now != "" {
					return verdict{}
				}
				now = arg(f, 0)
				return changed(f, 0, free)
			})
			b.on("peek delete", func(c *conn, f *frame) {
				if arg(f, 0) == free && now != "" {
					b.do(c, f.Type.Name, now)
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "released-into-the-used-tube", About: "A job is released into the tube that its worker uses.",
		Kills: cases("life.stays-in-tube tube.kept-by-a-reserved-job reserve-job.delayed"),
		Hook: func(b *bench) {
			now := map[string]string{} // the ID that a job has by now
			b.on("release", func(c *conn, f *frame) {
				j := b.jobs[arg(f, 0)]
				if j == nil || j.owner != c || j.tube == b.peers[c].tube {
					b.pass(c, f)
					return
				}
				b.ask(c, "delete", j.id)
				now[j.id] = arg(b.ask(c, "put", arg(f, 1), arg(f, 2), j.ttr, j.body), 0)
				b.say(c, "RELEASED")
			})
			b.on("stats-job", func(c *conn, f *frame) {
				if id := now[arg(f, 0)]; id != "" {
					b.do(c, "stats-job", id)
					return
				}
				b.pass(c, f)
			})
		}},
}

// tubes are faults of how tubes come and go.
var tubes = []Mutant{
	{Name: "delayed-default-elsewhere", About: "Delayed jobs of a client that has chosen no tube are put into another than default.",
		Kills: cases("tube.default-used"),
		Hook: func(b *bench) {
			b.on("put", func(c *conn, f *frame) {
				if arg(f, 1) == "0" || b.peers[c].tube != "default" {
					b.pass(c, f)
					return
				}
				b.ask(c, "use", "delayed")
				b.pass(c, f)
				b.ask(c, "use", "default")
			})
		}},
	{Name: "default-not-watched", About: "A worker that has chosen no tube watches none.",
		Kills: cases("tube.default-watched stats.connections"),
		Hook:  silent("reserve", func(b *bench, c *conn, _ []string) bool { return !b.peers[c].watched })},
	{Name: "unwatched-tubes-unlisted", About: "A tube that nobody watches is in no list.",
		Kills: cases("tube.made-by-use list.tubes"), Hook: listed("current-watching")},
	{Name: "unused-tubes-unlisted", About: "A tube that nobody uses is in no list.",
		Kills: cases("tube.made-by-watch list.tubes list.tubes-alone"), Hook: listed("current-using")},
	{Name: "tube-made-by-asking", About: "To ask for a tube's statistics makes it.",
		Kills: cases("tube.not-made-by-asking stats.commands-that-ask"),
		Hook: func(b *bench) {
			b.on("stats-tube", func(c *conn, f *frame) {
				b.pass(c, f)
				if b.figures(c, "stats-tube", arg(f, 0)) == nil {
					b.ask(c, "watch", arg(f, 0))
				}
			})
		}},
	{Name: "tube-kept-by-who-used-it", About: "A tube that a client turned away from stays.",
		Kills: cases("tube.gone-when-not-used"),
		Hook: ghosts(func(b *bench, c *conn, f *frame, total int) string {
			if f != nil && f.Type.Name == "use" && total == 0 {
				return b.peers[c].tube
			}
			return ""
		})},
	{Name: "ignored-tube-stays", About: "A tube that a client ignores stays.",
		Kills: cases("tube.gone-when-not-watched tube.not-made-by-asking tube.kept-by-a-buried-job"),
		Hook: ghosts(func(b *bench, c *conn, f *frame, total int) string {
			if f != nil && f.Type.Name == "ignore" && total == 0 {
				return arg(f, 0)
			}
			return ""
		})},
	{Name: "tube-survives-its-client", About: "The tube of a client that is gone stays.",
		Kills: cases("tube.gone-with-its-client"),
		Hook: ghosts(func(b *bench, c *conn, f *frame, total int) string {
			if f == nil {
				return b.peers[c].tube
			}
			return ""
		})},
	{Name: "tube-survives-its-jobs", About: "A tube that is empty by a delete stays.",
		Kills: cases("tube.gone-with-its-last-job tube.kept-by-a-buried-job"),
		Hook: ghosts(func(b *bench, c *conn, f *frame, total int) string {
			if f != nil && f.Type.Name == "delete" && b.jobs[arg(f, 0)] != nil {
				return b.jobs[arg(f, 0)].tube
			}
			return ""
		})},
	{Name: "delayed-jobs-keep-no-tube", About: "A tube with delayed jobs only, which no client refers to, is gone.",
		Kills: cases("tube.kept-by-a-delayed-job stats.commands-that-ask"), Hook: forgotten("current-jobs-delayed")},
	{Name: "buried-jobs-keep-no-tube", About: "A tube with buried jobs only, which no client refers to, is gone.",
		Kills: cases("tube.kept-by-a-buried-job stats.commands-that-ask"), Hook: forgotten("current-jobs-buried")},
	{Name: "released-without-a-tube", About: "A job that is released into a tube that no client refers to is lost.",
		Kills: cases("tube.kept-by-a-reserved-job"),
		Hook: func(b *bench) {
			b.on("release", func(c *conn, f *frame) {
				if j := b.jobs[arg(f, 0)]; j != nil && j.owner == c {
					if t := b.figures(c, "stats-tube", j.tube); t["current-using"] == "0" && t["current-watching"] == "0" {
						b.ask(c, "delete", j.id)
						b.say(c, "RELEASED")
						return
					}
				}
				b.pass(c, f)
			})
		}},
	{Name: "tube-comes-back-with-its-past", About: "A tube counts the jobs that one of its name has had.",
		Kills: cases("tube.comes-back-empty"),
		Hook: figure("stats-tube", "total-jobs", func(b *bench, _ *conn, all map[string]string) string {
			ever := 0
			for _, j := range b.order {
				if j.tube == all["name"] {
					ever++
				}
			}
			return decimal(ever)
		})},
	{Name: "other-tubes-when-empty", About: "A worker that will not wait gets a job of a tube that it does not watch.",
		Kills: cases("tube.separate watch.sees-what-was-there ignore.no-more-jobs pause.at-once pause.takes-jobs"),
		Hook: func(b *bench) {
			b.out("TIMED_OUT", func(c *conn, _ *frame) verdict {
				j := b.find(func(j *job) bool { return j.state == "ready" })
				if j == nil || arg(&b.peers[c].request, 0) != "0" {
					return verdict{}
				}
				return replace("RESERVED", j.id, j.body)
			})
		}},
	{Name: "first-tube-only", About: "Of several tubes that a worker watches only the first is looked at.",
		Kills: cases("tube.any-watched reserve.across-tubes-priority reserve.across-tubes-fifo reserve.waits-on-several-tubes watch.many watch.sees-what-was-there pause.other-tubes"),
		Hook: func(b *bench) {
			b.on("reserve", func(c *conn, f *frame) {
				if all := args(b.ask(c, "list-tubes-watched")); len(all) > 1 {
					for _, t := range all[1:] {
						b.ask(c, "ignore", t)
					}
				}
				b.pass(c, f)
			})
		}},
}

// listed leaves tubes out of list-tubes of which a figure is 0.
func listed(key string) Hook {
	return func(b *bench) {
		b.on("list-tubes", func(c *conn, f *frame) {
			var kept []string
			for _, t := range args(b.ask(c, "list-tubes")) {
				if b.figures(c, "stats-tube", t)[key] != "0" {
					kept = append(kept, t)
				}
			}
			b.say(c, "list-reply", kept...)
		})
	}
}

// ghosts shows statistics of tubes that are gone, if leaves names them when a command, or
// without one the end of a connection, may end them. total is how many jobs the
// tube that the peer uses has had.
func ghosts(leaves func(b *bench, c *conn, f *frame, total int) string) Hook {
	return func(b *bench) {
		kept := map[string]bool{}
		total := func(c *conn) int {
			n := 0
			for _, j := range b.order {
				if j.tube == b.peers[c].tube {
					n++
				}
			}
			return n
		}
		b.on("use ignore delete", func(c *conn, f *frame) {
			kept[leaves(b, c, f, total(c))] = true
			b.pass(c, f)
		})
		b.leaving = func(c *conn) { kept[leaves(b, c, nil, total(c))] = true }
		b.on("stats-tube", func(c *conn, f *frame) {
			if name := arg(f, 0); kept[name] && b.figures(c, "stats-tube", name) == nil {
				b.say(c, "stats-reply", "name", name, "total-jobs", "0")
				return
			}
			b.pass(c, f)
		})
	}
}

// forgotten denies tubes that no client refers to, if that figure is not 0.
func forgotten(key string) Hook {
	return func(b *bench) {
		b.on("stats-tube", func(c *conn, f *frame) {
			t := b.figures(c, "stats-tube", arg(f, 0))
			if t["current-using"] == "0" && t["current-watching"] == "0" && t[key] != "0" {
				b.say(c, "NOT_FOUND")
				return
			}
			b.pass(c, f)
		})
	}
}
