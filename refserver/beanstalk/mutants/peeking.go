package mutants

import "jobwire/refserver/inject"

// peeking are faults of section "Other Commands": peek and kick.
var peeking = []row{
	{Name: "others-reserved-not-peeked", About: "peek does not find a job that another client has reserved.",
		Kills: "peek.by-id timeout.negative",
		Edit:  inject.Answer("peek", func(m *message) bool { return m.Job != nil && m.Job.Worker != nil && m.Job.Worker != m.Peer }, "NOT_FOUND")},
	{Name: "nothing-delayed-shown", About: "peek-delayed returns a job with an empty body for a tube that has never had a job.",
		Kills: "peek.nothing-in-any-state peek.used-tube stats.commands-that-ask", Edit: inject.Replace("NOT_FOUND", func(m *message) bool {
			return m.Cause == "peek-delayed" && m.Find(func(j *job) bool { return j.Queue == m.Peer.Tube }) == nil
		}, "FOUND", "0", "")},
	{Name: "ready-peeked-as-put", About: "peek-ready returns the oldest ready job instead of the one with the smallest priority.",
		Kills: "peek.ready", Edit: peeked("peek-ready")},
	{Name: "delayed-peeked-as-put", About: "peek-delayed returns the oldest delayed job instead of the one with the shortest delay left.",
		Kills: "peek.delayed", Edit: peeked("peek-delayed")},
	{Name: "delayed-peeked-everywhere", About: "peek-delayed returns jobs of all tubes.",
		Kills: "peek.used-tube", Edit: instead("NOT_FOUND", "FOUND", func(m *message, j *job) bool { return m.Cause == "peek-delayed" && j.State == "delayed" })},
	{Name: "peeks-counted", About: "stats-job counts a peek as a reservation.",
		Kills: "peek.changes-nothing", Edit: func(s *inject.Server) {
			n := 0
			s.On("peek", func(*message) { n++ })
			figure("stats-job", "reserves", func(_ *message, all figures) string { return decimal(all.number("reserves") + n) })(s)
		}},

	// kick.
	{Name: "kicked-as-put", About: "kick takes the buried jobs that were put first instead of those that were buried first.",
		Kills: "kick.buried peek.buried kick.buried-first stats.commands-about-jobs", Edit: inject.On("kick", nil, func(m *message) {
			n := 0
			for _, j := range m.Jobs {
				if j.State == "buried" && j.Queue == m.Peer.Tube && n < number(m.Args[0]) {
					m.Peer.Ask("kick-job", j.ID)
					n++
				}
			}
			if n > 0 {
				m.Answer("KICKED", decimal(n))
			}
		})},
	{Name: "buried-and-delayed-kicked", About: "kick takes delayed jobs after the buried ones.",
		Kills: "kick.buried-first stats.commands-about-jobs", Edit: inject.On("kick", nil, func(m *message) {
			first := number(m.Peer.Ask("kick", m.Args[0]).Arg(0))
			rest := number(m.Peer.Ask("kick", decimal(max(0, number(m.Args[0])-first))).Arg(0))
			m.Answer("KICKED", decimal(first+rest))
		})},
	{Name: "bound-ignored", About: "kick ignores the bound and takes all jobs.",
		Kills: "kick.buried kick.delayed kick.zero peek.buried", Edit: inject.Change("kick", 0, nil, inject.To("4294967295"))},
	{Name: "nothing-counted-as-one", About: "kick replies KICKED 1 if there is nothing to kick.",
		Kills: "kick.nothing kick.used-tube kick.zero delete.buried number.leading-zeros number.kick-bound stats.commands-about-jobs",
		Edit:  inject.Rewrite("KICKED", 0, inject.ArgIs(0, "0"), inject.To("1"))},
	{Name: "no-bound-is-all", About: "kick with a bound of 0 takes all jobs.",
		Kills: "kick.zero", Edit: inject.Change("kick", 0, inject.ArgIs(0, "0"), inject.To("4294967295"))},
	{Name: "kicked-everywhere", About: "kick takes delayed jobs of all tubes.",
		Kills: "kick.used-tube", Edit: inject.On("kick", nil, func(m *message) {
			if j := m.Find(func(j *job) bool { return j.State == "delayed" && j.Queue != m.Peer.Tube }); j != nil {
				m.Peer.Ask("kick-job", j.ID)
				m.Answer("KICKED", "1")
			}
		})},
	{Name: "kick-does-not-wake", About: "A waiting worker does not get a job that kick makes ready.",
		Kills: "kick.wakes kick.two-waiters", Edit: notWoken("kick")},

	// kick-job.
	{Name: "first-buried-kicked", About: "kick-job kicks the first buried job instead of the one with the given ID.",
		Kills: "kick-job.buried", Edit: inject.On("kick-job", nil, func(m *message) {
			if j := m.Find(func(j *job) bool { return j.State == "buried" }); j != nil {
				m.Args[0] = j.ID
			}
		})},
	{Name: "kick-job-does-not-wake", About: "A waiting worker does not get a job that kick-job makes ready.",
		Kills: "kick-job.delayed", Edit: notWoken("kick-job")},
	{Name: "kicked-into-the-used-tube", About: "kick-job moves the job into the tube that the client uses.",
		Kills: "kick-job.in-its-tube", Edit: inject.On("kick-job", func(m *message) bool {
			return m.Job != nil && m.Peer.Tube != "default" && m.Job.Queue != m.Peer.Tube && m.Job.State == "delayed"
		}, func(m *message) {
			m.Peer.Ask("delete", m.Job.ID)
			m.Peer.Ask("put", m.Job.Args[0], "0", m.Job.Args[2], m.Job.Data)
			m.Answer("KICKED_JOB")
		})},
	{Name: "ready-job-kicked", About: "kick-job replies KICKED to a ready job.",
		Kills: "kick-job.not-kickable", Edit: inject.Answer("kick-job", inject.OfJob(func(j *job) bool { return j.State == "ready" }), "KICKED_JOB")},
}
