package mutants

// peeking are faults of section "Other Commands": peek and kick.
var peeking = []Mutant{
	{Name: "others-reserved-not-peeked", About: "A job that somebody else has is not found by peek.",
		Kills: cases("peek.by-id timeout.negative"),
		Hook:  denied("peek", "NOT_FOUND", func(_ *bench, c *conn, j *job) bool { return j.owner != nil && j.owner != c })},
	{Name: "nothing-delayed-shown", About: "In a tube that never had a job peek-delayed finds one without a body.",
		Kills: cases("peek.nothing-in-any-state peek.used-tube stats.commands-that-ask"),
		Hook: func(b *bench) {
			b.out("NOT_FOUND", func(c *conn, _ *frame) verdict {
				p := b.peers[c]
				if p.request.Type.Name != "peek-delayed" || b.find(func(j *job) bool { return j.tube == p.tube }) != nil {
					return verdict{}
				}
				return replace("FOUND", "0", "")
			})
		}},
	{Name: "ready-peeked-as-put", About: "peek-ready shows ready jobs in the order in which they were put.",
		Kills: cases("peek.ready"), Hook: peeked("peek-ready")},
	{Name: "delayed-peeked-as-put", About: "peek-delayed shows delayed jobs in the order in which they were put.",
		Kills: cases("peek.delayed"), Hook: peeked("peek-delayed")},
	{Name: "delayed-peeked-everywhere", About: "peek-delayed sees all tubes.",
		Kills: cases("peek.used-tube"),
		Hook: func(b *bench) {
			b.out("NOT_FOUND", func(c *conn, _ *frame) verdict {
				j := b.find(func(j *job) bool { return j.state == "delayed" })
				if b.peers[c].request.Type.Name != "peek-delayed" || j == nil {
					return verdict{}
				}
				return replace("FOUND", j.id, j.body)
			})
		}},
	{Name: "peeks-counted", About: "A job counts it as a reservation that it is peeked at.",
		Kills: cases("peek.changes-nothing"),
		Hook: func(b *bench) {
			n := 0
			b.on("peek", func(c *conn, f *frame) {
				n++
				b.pass(c, f)
			})
			figure("stats-job", "reserves", func(_ *bench, _ *conn, all map[string]string) string {
				return decimal(whole(all["reserves"]) + n)
			})(b)
		}},

	// kick.
	{Name: "kicked-as-put", About: "kick takes buried jobs in the order in which they were put.",
		Kills: cases("kick.buried peek.buried kick.buried-first stats.commands-about-jobs"),
		Hook: func(b *bench) {
			b.on("kick", func(c *conn, f *frame) {
				n := 0
				for _, j := range b.order {
					if j.state == "buried" && j.tube == b.peers[c].tube && n < whole(arg(f, 0)) {
						b.ask(c, "kick-job", j.id)
						n++
					}
				}
				if n == 0 {
					b.pass(c, f)
					return
				}
				b.say(c, "KICKED", decimal(n))
			})
		}},
	{Name: "buried-and-delayed-kicked", About: "kick takes buried jobs, and then delayed ones.",
		Kills: cases("kick.buried-first stats.commands-about-jobs"),
		Hook: func(b *bench) {
			b.on("kick", func(c *conn, f *frame) {
				first := whole(arg(b.ask(c, "kick", arg(f, 0)), 0))
				rest := whole(arg(b.ask(c, "kick", decimal(max(0, whole(arg(f, 0))-first))), 0))
				b.say(c, "KICKED", decimal(first+rest))
			})
		}},
	{Name: "bound-ignored", About: "kick takes all jobs.",
		Kills: cases("kick.buried kick.delayed kick.zero peek.buried"),
		Hook:  takenFor("kick", func([]string) []string { return []string{"4294967295"} })},
	{Name: "nothing-counted-as-one", About: "Where there is nothing to kick one job is told.",
		Kills: cases("kick.nothing kick.used-tube kick.zero delete.buried number.leading-zeros number.kick-bound stats.commands-about-jobs"),
		Hook: func(b *bench) {
			b.out("KICKED", func(_ *conn, f *frame) verdict { return changed(f, 0, decimal(max(1, whole(arg(f, 0))))) })
		}},
	{Name: "no-bound-is-all", About: "A bound of 0 is none.",
		Kills: cases("kick.zero"),
		Hook: takenFor("kick", func(a []string) []string {
			if a[0] == "0" {
				a[0] = "4294967295"
			}
			return a
		})},
	{Name: "kicked-everywhere", About: "kick sees the delayed jobs of all tubes.",
		Kills: cases("kick.used-tube"),
		Hook: func(b *bench) {
			b.on("kick", func(c *conn, f *frame) {
				if j := b.find(func(j *job) bool { return j.state == "delayed" && j.tube != b.peers[c].tube }); j != nil {
					b.ask(c, "kick-job", j.id)
					b.say(c, "KICKED", "1")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "kick-does-not-wake", About: "A worker that waits is not told of a job that is kicked.",
		Kills: cases("kick.wakes kick.two-waiters"), Hook: notWoken("kick")},

	// kick-job.
	{Name: "first-buried-kicked", About: "kick-job takes the first buried job, whatever its ID.",
		Kills: cases("kick-job.buried"),
		Hook: func(b *bench) {
			b.on("kick-job", func(c *conn, f *frame) {
				j := b.find(func(j *job) bool { return j.state == "buried" })
				if j == nil {
					b.pass(c, f)
					return
				}
				b.do(c, "kick-job", j.id)
			})
		}},
	{Name: "kick-job-does-not-wake", About: "A worker that waits is not told of a job that kick-job makes ready.",
		Kills: cases("kick-job.delayed"), Hook: notWoken("kick-job")},
	{Name: "kicked-into-the-used-tube", About: "kick-job makes a job ready in the tube that its client uses.",
		Kills: cases("kick-job.in-its-tube"),
		Hook: func(b *bench) {
			b.on("kick-job", func(c *conn, f *frame) {
				j, p := b.jobs[arg(f, 0)], b.peers[c]
				if j == nil || p.tube == "default" || j.tube == p.tube || j.state != "delayed" {
					b.pass(c, f)
					return
				}
				b.ask(c, "delete", j.id)
				b.ask(c, "put", j.priority, "0", j.ttr, j.body)
				b.say(c, "KICKED_JOB")
			})
		}},
	{Name: "ready-job-kicked", About: "A ready job can be kicked.",
		Kills: cases("kick-job.not-kickable"),
		Hook:  denied("kick-job", "KICKED_JOB", func(_ *bench, _ *conn, j *job) bool { return j.state == "ready" })},
}
