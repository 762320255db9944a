package mutants

// statistics are faults of section "Other Commands": stats-job, stats-tube and stats.
var statistics = []Mutant{
	{Name: "others-reserved-not-described", About: "A job that somebody else has is not found by stats-job.",
		Kills: cases("stats-job.answered ttr.expires reserve.once"),
		Hook:  denied("stats-job", "NOT_FOUND", func(_ *bench, c *conn, j *job) bool { return j.owner != nil && j.owner != c })},
	{Name: "job-without-file", About: "stats-job does not tell the file.",
		Kills: cases("stats-job.keys stats-job.file"), Hook: without("stats-job", "file")},
	{Name: "job-without-buries", About: "stats-job does not tell of burials.",
		Kills: cases("stats-job.keys stats-job.as-put stats-job.reserves stats-job.buries stats-job.kicks-delayed"), Hook: without("stats-job", "buries")},
	{Name: "file-without-binlog", About: "A job is in a file, though there is none.",
		Kills: cases("stats-job.file"), Hook: always("stats-job", "file", "1")},
	{Name: "time-of-an-hour-at-most", About: "A time to run of more than an hour is told as one.",
		Kills: cases("stats-job.as-put"), Hook: atMost("stats-job", "ttr", 3600)},
	{Name: "ageless", About: "A job does not grow older.",
		Kills: cases("ttr.from-reservation"), Hook: always("stats-job", "age", "0")},
	{Name: "hour-left-at-most", About: "No more than an hour is told as the time that is left.",
		Kills: cases("stats-job.time-left-reserved"), Hook: atMost("stats-job", "time-left", 3600)},
	{Name: "one-burial-counted", About: "No more than one burial of a job is counted.",
		Kills: cases("stats-job.buries"), Hook: atMost("stats-job", "buries", 1)},
	{Name: "kicks-of-delayed-not-counted", About: "Only kicks of buried jobs are counted.",
		Kills: cases("stats-job.kicks-delayed"),
		Hook: figure("stats-job", "kicks", func(_ *bench, _ *conn, all map[string]string) string {
			if all["buries"] == "0" {
				return "0"
			}
			return all["kicks"]
		})},
	{Name: "time-out-counted-as-release", About: "A time-out is counted as a release too.",
		Kills: cases("timed-out.others-job"),
		Hook: figure("stats-job", "releases", func(_ *bench, _ *conn, all map[string]string) string {
			return decimal(whole(all["releases"]) + whole(all["timeouts"]))
		})},
	{Name: "leave-counted-as-time-out", About: "It is counted as a time-out that the worker left.",
		Kills: cases("stats-job.lost-connection"),
		Hook: figure("stats-job", "timeouts", func(b *bench, _ *conn, all map[string]string) string {
			if j := b.jobs[all["id"]]; j != nil && j.reserved && j.last == "RESERVED" && j.owner == nil {
				return "1"
			}
			return all["timeouts"]
		})},

	// stats-tube.
	{Name: "default-not-described", About: "The tube default is not found by stats-tube.",
		Kills: cases("stats-tube.answered stats.commands-that-ask"),
		Hook:  refuses("stats-tube", "NOT_FOUND", func(a []string) bool { return a[0] == "default" })},
	{Name: "first-unknown-tube-passed-over", About: "A server that is asked for a tube first of all says nothing.",
		Kills: cases("stats-tube.not-there tube.not-made-by-asking"),
		Hook: func(b *bench) {
			b.out("NOT_FOUND", func(c *conn, _ *frame) verdict {
				return verdict{Drop: b.heard == 1 && b.peers[c].request.Type.Name == "stats-tube"}
			})
		}},
	{Name: "tube-without-its-name", About: "stats-tube does not tell the name.",
		Kills: cases("stats-tube.keys stats-tube.new"), Hook: without("stats-tube", "name")},
	{Name: "pause-left-negative", About: "Of a pause that is over less than nothing is left.",
		Kills: cases("stats-tube.new pause.paused"),
		Hook: figure("stats-tube", "pause-time-left", func(_ *bench, _ *conn, all map[string]string) string {
			if all["pause"] == "0" {
				return "-1"
			}
			return all["pause-time-left"]
		})},
	{Name: "two-delayed-counted", About: "No more than two delayed jobs are counted.",
		Kills: cases("stats-tube.jobs"), Hook: atMost("stats-tube", "current-jobs-delayed", 2)},
	{Name: "delayed-counted-urgent", About: "Delayed jobs are counted as urgent.",
		Kills: cases("stats-tube.urgent"),
		Hook: figure("stats-tube", "current-jobs-urgent", func(_ *bench, _ *conn, all map[string]string) string {
			return decimal(whole(all["current-jobs-urgent"]) + whole(all["current-jobs-delayed"]))
		})},
	{Name: "two-watchers-counted", About: "No more than two watching connections are counted.",
		Kills: cases("stats-tube.clients"), Hook: atMost("stats-tube", "current-watching", 2)},
	{Name: "one-waiter-counted", About: "No more than one waiting connection is counted.",
		Kills: cases("stats-tube.waiting"), Hook: atMost("stats-tube", "current-waiting", 1)},
	{Name: "living-jobs-counted", About: "A tube forgets to count jobs that are gone.",
		Kills: cases("stats-tube.total-jobs stats-tube.jobs tube.comes-back-empty"),
		Hook: figure("stats-tube", "total-jobs", func(_ *bench, _ *conn, all map[string]string) string {
			return decimal(whole(all["current-jobs-ready"]) + whole(all["current-jobs-reserved"]) +
				whole(all["current-jobs-delayed"]) + whole(all["current-jobs-buried"]))
		})},
	{Name: "one-delete-counted", About: "No more than one deletion in a tube is counted.",
		Kills: cases("stats-tube.cmd-delete"), Hook: atMost("stats-tube", "cmd-delete", 1)},
	{Name: "pause-does-not-pass", About: "The whole length of a pause is told as what is left.",
		Kills: cases("stats-tube.pause"),
		Hook:  figure("stats-tube", "pause-time-left", func(_ *bench, _ *conn, all map[string]string) string { return all["pause"] })},

	// stats.
	{Name: "no-statistics-at-first", About: "A server that is asked for its statistics first of all fails.",
		Kills: cases("stats.answered stats.keys-jobs stats.keys-commands stats.keys-server stats.id-kept stats.tubes stats.uptime"),
		Hook: func(b *bench) {
			b.on("stats", func(c *conn, f *frame) {
				if b.heard == 1 {
					b.say(c, "INTERNAL_ERROR")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "without-time-outs", About: "stats does not tell of time-outs.",
		Kills: cases("stats.keys-jobs stats.job-timeouts"), Hook: without("stats", "job-timeouts")},
	{Name: "without-commands-that-list", About: "stats does not tell of list-tubes.",
		Kills: cases("stats.keys-commands stats.commands-about-tubes"), Hook: without("stats", "cmd-list-tubes")},
	{Name: "without-pid", About: "stats does not tell the process.",
		Kills: cases("stats.keys-server"), Hook: without("stats", "pid")},
	{Name: "id-by-connection", About: "Every connection is told another ID of the server.",
		Kills: cases("stats.id-kept"),
		Hook:  figure("stats", "id", func(_ *bench, c *conn, _ map[string]string) string { return "id-" + decimal(int(c.ID())) })},
	{Name: "ready-counted-urgent", About: "All ready jobs are counted as urgent.",
		Kills: cases("stats.jobs"),
		Hook:  figure("stats", "current-jobs-urgent", func(_ *bench, _ *conn, all map[string]string) string { return all["current-jobs-ready"] })},
	{Name: "deletes-in-vain-not-counted", About: "A delete that finds no job is not counted.",
		Kills: cases("stats.commands-about-jobs"),
		Hook: func(b *bench) {
			vain := 0
			b.out("NOT_FOUND", func(c *conn, _ *frame) verdict {
				if b.peers[c].request.Type.Name == "delete" {
					vain++
				}
				return verdict{}
			})
			figure("stats", "cmd-delete", func(_ *bench, _ *conn, all map[string]string) string {
				return decimal(whole(all["cmd-delete"]) - vain)
			})(b)
		}},
	{Name: "one-pause-counted", About: "No more than one pause is counted.",
		Kills: cases("stats.commands-about-tubes"), Hook: atMost("stats", "cmd-pause-tube", 1)},
	{Name: "one-peek-counted", About: "No more than one peek-ready is counted.",
		Kills: cases("stats.commands-that-ask"), Hook: atMost("stats", "cmd-peek-ready", 1)},
	{Name: "timed-reserve-not-counted", About: "A reserve with a timeout is not counted.",
		Kills: cases("stats.reserve-with-timeout"), Hook: always("stats", "cmd-reserve-with-timeout", "0")},
	{Name: "two-tubes-exist", About: "No more than two tubes are counted.",
		Kills: cases("stats.tubes"), Hook: atMost("stats", "current-tubes", 2)},
	{Name: "one-worker-counted", About: "No more than one worker is counted.",
		Kills: cases("stats.connections"), Hook: atMost("stats", "current-workers", 1)},
	{Name: "past-connections-not-counted", About: "Connections that have ended are not counted among all.",
		Kills: cases("stats.total-connections"),
		Hook:  figure("stats", "total-connections", func(_ *bench, _ *conn, all map[string]string) string { return all["current-connections"] })},
	{Name: "no-time-outs-in-all", About: "The server does not count time-outs.",
		Kills: cases("stats.job-timeouts"), Hook: always("stats", "job-timeouts", "0")},
	{Name: "clock-stands-still", About: "The server has been up for no time.",
		Kills: cases("stats.uptime"), Hook: always("stats", "uptime", "0")},
}
