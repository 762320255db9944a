package mutants

import (
	"slices"

	"jobwire/refserver/inject"
)

// working are faults of section "Worker Commands": what workers do to jobs, and the tubes
// that they watch.
var working = []row{
	{Name: "anybody-ends-a-job", About: "Any client can delete a job that another client has reserved.",
		Kills: "timed-out.others-job delete.others-job", Edit: forOthers("delete", "DELETED")},
	{Name: "reserved-once", About: "stats-job counts at most one reservation.",
		Kills: "stats-job.reserves stats-job.buries timed-out.others-job", Edit: atMost("stats-job", "reserves", 1)},
	{Name: "deleted-twice", About: "The server confirms a second delete of the same job.",
		Kills: "delete.reserved stats.commands-about-jobs", Edit: inject.Answer("delete", inject.OfJob(func(j *job) bool { return j.State == "deleted" }), "DELETED")},
	{Name: "deleted-but-peeked", About: "peek-ready, peek-delayed or peek-buried still returns the last deleted job.",
		Kills: "delete.ready delete.delayed delete.buried", Edit: instead("NOT_FOUND", "FOUND", func(m *message, j *job) bool {
			return j.State == "deleted" && "peek-"+j.Before == m.Cause && j.Queue == m.Peer.Tube
		})},
	{Name: "hole-in-the-queue", About: "Deleting a job in the middle of a queue also removes the next job.",
		Kills: "delete.from-the-middle", Edit: inject.On("delete", inject.OfJob(func(j *job) bool { return j.State == "ready" }), func(m *message) {
			ready := m.FindAll(func(j *job) bool { return j.State == "ready" })
			if i := slices.Index(ready, m.Job); i > 0 && i+1 < len(ready) {
				m.Peer.Ask("delete", ready[i+1].ID)
			}
		})},
	{Name: "zero-is-no-id", About: "The server replies BAD_FORMAT to the ID 0.",
		Kills: "delete.not-there pipeline.many", Edit: inject.Answer("delete", func(m *message) bool { return m.Args[0] == "0" }, "BAD_FORMAT")},
	{Name: "worker-ids-of-63-bits", About: "release, bury, touch and other commands reject IDs of 64 bits.",
		Kills: "release.not-there bury.not-there touch.not-there kick-job.not-there stats-job.not-there reserve-job.not-there",
		Edit:  inject.Answer("release bury touch kick-job stats-job reserve-job", func(m *message) bool { return above(m.Args[0], 1<<63) }, "BAD_FORMAT")},

	// release.
	{Name: "released-shown-reserved", About: "stats-job reports a released job as reserved.",
		Kills: "release.released", Edit: shownIf("stats-job", "state", "reserved", func(j *job, all figures) bool { return j.Last == "RELEASED" && all["state"] == "ready" })},
	{Name: "release-does-not-wake", About: "A waiting worker does not get a job that was released.",
		Kills: "release.wakes", Edit: notWoken("release")},
	{Name: "release-keeps-the-priority", About: "release does not change the priority.",
		Kills: "release.priority stats-tube.urgent", Edit: keepsPriority("release")},
	{Name: "released-goes-behind", About: "release sets priority 1 instead of 0.",
		Kills: "release.in-front", Edit: inject.Change("release", 1, inject.ArgIs(1, "0"), inject.To("1"))},
	{Name: "second-of-release-skipped", About: "A job released with a delay of 1 second is ready at once.",
		Kills: "release.delay", Edit: inject.Change("release", 2, inject.ArgIs(2, "1"), inject.To("0"))},
	{Name: "ready-job-released", About: "release accepts a job that is not reserved.",
		Kills: "release.not-reserved", Edit: inject.Answer("release", inject.OfJob(func(j *job) bool { return j.Assigned == 0 }), "RELEASED")},
	{Name: "anybody-releases", About: "Any client can release a job that another client has reserved.",
		Kills: "release.others-job timed-out.others-job", Edit: forOthers("release", "RELEASED")},
	{Name: "released-again", About: "The server confirms a second release of the same job.",
		Kills: "release.twice", Edit: inject.Answer("release", inject.OfJob(func(j *job) bool { return j.Last == "RELEASED" }), "RELEASED")},

	// bury.
	{Name: "buried-job-reserved", About: "A reserve that does not wait returns a buried job.",
		Kills: "bury.buried pause.takes-jobs", Edit: instead("TIMED_OUT", "RESERVED", func(_ *message, j *job) bool { return j.State == "buried" })},
	{Name: "buried-job-times-out", About: "The time to run of a buried job expires if it is one second.",
		Kills: "bury.does-not-time-out", Edit: shownIf("stats-job", "timeouts", "1", func(_ *job, all figures) bool { return all["state"] == "buried" && all["ttr"] == "1" })},
	{Name: "quit-kicks", About: "Jobs that a client has buried become ready when it quits.",
		Kills: "bury.survives-its-client", Edit: inject.On("quit", nil, func(m *message) {
			for _, j := range m.FindAll(func(j *job) bool { return j.Creator == m.Peer && j.State == "buried" }) {
				m.Peer.Ask("kick-job", j.ID)
			}
		})},
	{Name: "bury-keeps-the-priority", About: "bury does not change the priority.",
		Kills: "bury.priority", Edit: keepsPriority("bury")},
	{Name: "buried-peeked-as-put", About: "peek-buried returns the job that was put first instead of the one that was buried first.",
		Kills: "bury.fifo peek.buried kick.buried", Edit: peeked("peek-buried")},
	{Name: "ready-job-buried", About: "bury accepts a job that is not reserved.",
		Kills: "bury.not-reserved", Edit: inject.Answer("bury", inject.OfJob(func(j *job) bool { return j.Assigned == 0 }), "BURIED")},
	{Name: "anybody-buries", About: "Any client can bury a job that another client has reserved.",
		Kills: "bury.others-job timed-out.others-job", Edit: forOthers("bury", "BURIED")},

	// touch.
	{Name: "touch-not-found", About: "touch always replies NOT_FOUND.",
		Kills: "touch.touched touch.extends deadline.still-held number.letters number.letters-behind", Fault: "answer touch NOT_FOUND"},
	{Name: "touch-without-effect", About: "The server confirms touch and does not extend the time.",
		Kills: "touch.extends", Edit: inject.Answer("touch", func(m *message) bool { return m.Job != nil && m.Job.Worker == m.Peer }, "TOUCHED")},
	{Name: "anybody-touches", About: "Any client can touch a job that another client has reserved.",
		Kills: "touch.not-reserved", Edit: inject.Answer("touch", inject.OfJob(func(j *job) bool { return j.Assigned == 0 }), "TOUCHED")},

	// watch and ignore.
	{Name: "two-tubes-counted", About: "The reply to watch counts at most two tubes.",
		Kills: "watch.counts watch.many name.case-matters tube.any-watched stats.commands-about-tubes",
		Edit:  inject.Rewrite("WATCHING", 0, nil, func(v string) string { return decimal(min(2, number(v))) })},
	{Name: "watched-twice-counted-twice", About: "The reply to watch counts a tube again that is watched already.",
		Kills: "watch.twice pipeline.many name.word-of-the-protocol stats.commands-about-tubes", Edit: func(s *inject.Server) {
			again := map[*peer]int{}
			s.On("watch", func(m *message) {
				if slices.Contains(m.Peer.Ask("list-tubes-watched").Args, m.Args[0]) {
					again[m.Peer]++
				}
			})
			s.Out("WATCHING", func(m *message) { m.Args[0] = decimal(number(m.Args[0]) + again[m.Peer]) })
		}},
	{Name: "nine-tubes-at-most", About: "A connection can watch at most nine tubes.",
		Kills: "watch.many", Edit: inject.Out("WATCHING", func(m *message) bool { return number(m.Args[0]) > 9 }, func(m *message) {
			m.Peer.Ask("ignore", m.Peer.Request.Args[0])
			m.Args[0] = "9"
		})},
	{Name: "past-of-a-tube-not-seen", About: "A worker that has received TIMED_OUT gets no jobs that were in a tube before it watched the tube.",
		Kills: "watch.sees-what-was-there", Edit: inject.On("watch", func(m *message) bool { return m.Peer.Reply == "TIMED_OUT" }, func(m *message) {
			m.Pass()
			m.Peer.Ask("ignore", m.Args[0])
		})},
	{Name: "last-tube-ignored", About: "\"ignore\" accepts the last watched tube.",
		Kills: "ignore.last ignore.last-of-its-own", Edit: inject.Replace("NOT_IGNORED", nil, "WATCHING", "0")},
	{Name: "unwatched-not-ignored", About: "The server replies NOT_IGNORED to \"ignore\" of a tube that is not watched.",
		Kills: "ignore.not-watched tube.not-made-by-asking stats.commands-about-tubes",
		Edit:  inject.Answer("ignore", func(m *message) bool { return !slices.Contains(m.Peer.Ask("list-tubes-watched").Args, m.Args[0]) }, "NOT_IGNORED")},
	{Name: "ignored-tube-gives-on", About: "reserve still returns jobs of an ignored tube if it had jobs at that time.",
		Kills: "ignore.no-more-jobs", Edit: inject.On("ignore", nil, func(m *message) {
			m.Pass()
			if t := m.Args[0]; t != "default" && ask(m.Peer, "stats-tube", t).number("current-jobs-ready") > 0 {
				m.Peer.Ask("watch", t)
			}
		})},
	{Name: "ignore-releases", About: "\"ignore\" releases the jobs that the worker has reserved from the tube.",
		Kills: "ignore.keeps-what-is-reserved tube.kept-by-a-reserved-job", Edit: inject.On("ignore", nil, func(m *message) {
			for _, j := range m.Peer.Jobs() {
				if j.Queue == m.Args[0] {
					m.Peer.Ask("release", j.ID, "0", "0")
				}
			}
		})},
}

// forOthers executes a command about a job that another client has reserved.
func forOthers(command, reply string) inject.Edit {
	return inject.On(command, func(m *message) bool { return m.Job != nil && m.Job.Worker != nil && m.Job.Worker != m.Peer }, func(m *message) {
		m.Job.Worker.Ask(command, m.Args...)
		m.Answer(reply)
	})
}

// notWoken sends waiting workers no jobs that a command makes ready.
func notWoken(command string) inject.Edit { return inject.Drop("RESERVED", inject.CauseIs(command)) }

// keepsPriority gives a command the priority that the job was put with.
func keepsPriority(command string) inject.Edit {
	return inject.On(command, inject.OfJob(func(*job) bool { return true }), func(m *message) { m.Args[1] = m.Job.Args[0] })
}

// peeked shows, of the used tube's jobs in the state that the command is named for, the
// one that was put first.
func peeked(command string) inject.Edit {
	return inject.On(command, nil, func(m *message) {
		if j := m.Find(func(j *job) bool { return "peek-"+j.State == command && j.Queue == m.Peer.Tube }); j != nil {
			m.Answer("FOUND", j.ID, j.Data)
		}
	})
}
