package mutants

import "jobwire/refserver/inject"

// statistics are faults of section "Other Commands": stats-job, stats-tube and stats.
var statistics = []row{
	{Name: "others-reserved-not-described", About: "stats-job does not find a job that another client has reserved.",
		Kills: "stats-job.answered ttr.expires reserve.once",
		Edit:  inject.Answer("stats-job", func(m *message) bool { return m.Job != nil && m.Job.Worker != nil && m.Job.Worker != m.Peer }, "NOT_FOUND")},
	{Name: "job-without-file", About: "The reply to stats-job lacks the key file.",
		Kills: "stats-job.keys stats-job.file", Edit: without("stats-job", "file")},
	{Name: "job-without-buries", About: "The reply to stats-job lacks the key buries.",
		Kills: "stats-job.keys stats-job.as-put stats-job.reserves stats-job.buries stats-job.kicks-delayed", Edit: without("stats-job", "buries")},
	{Name: "file-without-binlog", About: "stats-job reports a binlog file although there is no binlog.",
		Kills: "stats-job.file", Edit: always("stats-job", "file", "1")},
	{Name: "time-of-an-hour-at-most", About: "stats-job reports a time to run of more than an hour as one hour.",
		Kills: "stats-job.as-put", Edit: atMost("stats-job", "ttr", 3600)},
	{Name: "ageless", About: "stats-job always reports an age of 0.",
		Kills: "ttr.from-reservation", Edit: always("stats-job", "age", "0")},
	{Name: "hour-left-at-most", About: "stats-job reports at most one hour as the time left.",
		Kills: "stats-job.time-left-reserved", Edit: atMost("stats-job", "time-left", 3600)},
	{Name: "one-burial-counted", About: "stats-job counts at most one burial.",
		Kills: "stats-job.buries", Edit: atMost("stats-job", "buries", 1)},
	{Name: "kicks-of-delayed-not-counted", About: "stats-job does not count kicks of delayed jobs.",
		Kills: "stats-job.kicks-delayed", Edit: shownIf("stats-job", "kicks", "0", func(_ *job, all figures) bool { return all["buries"] == "0" })},
	{Name: "time-out-counted-as-release", About: "stats-job also counts a timeout as a release.",
		Kills: "timed-out.others-job", Edit: sum("stats-job", "releases", "releases", "timeouts")},
	{Name: "leave-counted-as-time-out", About: "stats-job counts a timeout when the worker disconnects.",
		Kills: "stats-job.lost-connection",
		Edit:  shownIf("stats-job", "timeouts", "1", func(j *job, all figures) bool { return j.Assigned > 0 && j.Last == "RESERVED" && j.Worker == nil })},

	// stats-tube.
	{Name: "default-not-described", About: "stats-tube does not find the tube default.",
		Kills: "stats-tube.answered stats.commands-that-ask", Edit: inject.Answer("stats-tube", func(m *message) bool { return m.Args[0] == "default" }, "NOT_FOUND")},
	{Name: "first-unknown-tube-passed-over", About: "The server does not reply if its first request is stats-tube for an unknown tube.",
		Kills: "stats-tube.not-there tube.not-made-by-asking", Edit: inject.Drop("NOT_FOUND", func(m *message) bool { return m.Heard == 1 && m.Cause == "stats-tube" })},
	{Name: "tube-without-its-name", About: "The reply to stats-tube lacks the key name.",
		Kills: "stats-tube.keys stats-tube.new", Edit: without("stats-tube", "name")},
	{Name: "pause-left-negative", About: "stats-tube reports a negative pause-time-left after a pause has ended.",
		Kills: "stats-tube.new pause.paused", Edit: shownIf("stats-tube", "pause-time-left", "-1", func(_ *job, all figures) bool { return all["pause"] == "0" })},
	{Name: "two-delayed-counted", About: "stats-tube counts at most two delayed jobs.",
		Kills: "stats-tube.jobs", Edit: atMost("stats-tube", "current-jobs-delayed", 2)},
	{Name: "delayed-counted-urgent", About: "stats-tube counts delayed jobs as urgent.",
		Kills: "stats-tube.urgent", Edit: sum("stats-tube", "current-jobs-urgent", "current-jobs-urgent", "current-jobs-delayed")},
	{Name: "two-watchers-counted", About: "stats-tube counts at most two watching connections.",
		Kills: "stats-tube.clients", Edit: atMost("stats-tube", "current-watching", 2)},
	{Name: "one-waiter-counted", About: "stats-tube counts at most one waiting connection.",
		Kills: "stats-tube.waiting", Edit: atMost("stats-tube", "current-waiting", 1)},
	{Name: "living-jobs-counted", About: "total-jobs of a tube does not count deleted jobs.",
		Kills: "stats-tube.total-jobs stats-tube.jobs tube.comes-back-empty",
		Edit:  sum("stats-tube", "total-jobs", "current-jobs-ready", "current-jobs-reserved", "current-jobs-delayed", "current-jobs-buried")},
	{Name: "one-delete-counted", About: "stats-tube counts at most one deletion.",
		Kills: "stats-tube.cmd-delete", Edit: atMost("stats-tube", "cmd-delete", 1)},
	{Name: "pause-does-not-pass", About: "stats-tube always reports the full pause as pause-time-left.",
		Kills: "stats-tube.pause", Edit: sameAs("stats-tube", "pause-time-left", "pause")},

	// stats.
	{Name: "no-statistics-at-first", About: "The server crashes if stats is the first command it receives.",
		Kills: "stats.answered stats.keys-jobs stats.keys-commands stats.keys-server stats.id-kept stats.tubes stats.uptime",
		Edit:  inject.Answer("stats", func(m *message) bool { return m.Heard == 1 }, "INTERNAL_ERROR")},
	{Name: "without-time-outs", About: "The reply to stats lacks the key job-timeouts.",
		Kills: "stats.keys-jobs stats.job-timeouts", Edit: without("stats", "job-timeouts")},
	{Name: "without-commands-that-list", About: "The reply to stats lacks the key cmd-list-tubes.",
		Kills: "stats.keys-commands stats.commands-about-tubes", Edit: without("stats", "cmd-list-tubes")},
	{Name: "without-pid", About: "The reply to stats lacks the key pid.",
		Kills: "stats.keys-server", Edit: without("stats", "pid")},
	{Name: "id-by-connection", About: "stats reports a different server ID on each connection.",
		Kills: "stats.id-kept", Edit: figure("stats", "id", func(m *message, _ figures) string { return "id-" + decimal(int(m.Peer.ID())) })},
	{Name: "ready-counted-urgent", About: "stats counts all ready jobs as urgent.",
		Kills: "stats.jobs", Edit: sameAs("stats", "current-jobs-urgent", "current-jobs-ready")},
	{Name: "deletes-in-vain-not-counted", About: "stats does not count a delete that finds no job.",
		Kills: "stats.commands-about-jobs", Edit: func(s *inject.Server) {
			vain := 0
			s.Out("NOT_FOUND", func(m *message) {
				if m.Cause == "delete" {
					vain++
				}
			})
			figure("stats", "cmd-delete", func(_ *message, all figures) string { return decimal(all.number("cmd-delete") - vain) })(s)
		}},
	{Name: "one-pause-counted", About: "stats counts at most one pause-tube.",
		Kills: "stats.commands-about-tubes", Edit: atMost("stats", "cmd-pause-tube", 1)},
	{Name: "one-peek-counted", About: "stats counts at most one peek-ready.",
		Kills: "stats.commands-that-ask", Edit: atMost("stats", "cmd-peek-ready", 1)},
	{Name: "timed-reserve-not-counted", About: "stats does not count reserve-with-timeout.",
		Kills: "stats.reserve-with-timeout", Edit: always("stats", "cmd-reserve-with-timeout", "0")},
	{Name: "two-tubes-exist", About: "stats counts at most two tubes.",
		Kills: "stats.tubes", Edit: atMost("stats", "current-tubes", 2)},
	{Name: "one-worker-counted", About: "stats counts at most one worker.",
		Kills: "stats.connections", Edit: atMost("stats", "current-workers", 1)},
	{Name: "past-connections-not-counted", About: "total-connections does not count closed connections.",
		Kills: "stats.total-connections", Edit: sameAs("stats", "total-connections", "current-connections")},
	{Name: "no-time-outs-in-all", About: "stats always reports 0 job timeouts.",
		Kills: "stats.job-timeouts", Edit: always("stats", "job-timeouts", "0")},
	{Name: "clock-stands-still", About: "stats always reports an uptime of 0.",
		Kills: "stats.uptime", Edit: always("stats", "uptime", "0")},
}
