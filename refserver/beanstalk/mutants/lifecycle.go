package mutants

import (
	"slices"

	"jobwire/refserver/inject"
)

// lifecycle are faults of section "Job Lifecycle".
var lifecycle = []row{
	{Name: "finished-job-still-seen", About: "peek still finds a job that its worker has deleted.",
		Kills: "life.typical", Edit: func(s *inject.Server) {
			done := map[string]bool{}
			s.On("delete", func(m *message) { done[m.Args[0]] = m.Job != nil && m.Job.Worker == m.Peer && m.Job.Creator != m.Peer })
			s.On("peek", func(m *message) {
				if done[m.Args[0]] {
					m.Answer("FOUND", m.Job.ID, m.Job.Data)
				}
			})
		}},
	{Name: "released-shown-ready", About: "stats-job reports a job that was released with a delay as ready.",
		Kills: "life.all-states release.delay",
		Edit:  shownIf("stats-job", "state", "ready", func(_ *job, all figures) bool { return all["releases"] != "0" && all["state"] == "delayed" })},
	{Name: "reserved-counted-ready", About: "stats-tube counts reserved jobs as ready.",
		Kills: "life.counted-once stats-tube.jobs", Edit: sum("stats-tube", "current-jobs-ready", "current-jobs-ready", "current-jobs-reserved")},
	{Name: "reserved-job-given-again", About: "A reserve that does not wait returns a job that another worker has reserved.",
		Kills: "life.exclusive ttr.zero deadline.not-others", Edit: inject.On("reserve-with-timeout", inject.ArgIs(0, "0"), func(m *message) {
			if j := m.Find(func(j *job) bool { return j.State == "reserved" && j.Worker != m.Peer }); j != nil {
				m.Answer("RESERVED", j.ID, j.Data)
			}
		})},
	{Name: "ids-by-connection", About: "The server numbers the jobs of each connection separately.",
		Kills: "life.ids-differ connection.put-behind-reserve", Edit: func(s *inject.Server) {
			counts := map[*peer]int{}
			s.Out("INSERTED", func(m *message) {
				counts[m.Peer]++
				m.Args[0] = decimal(counts[m.Peer])
			})
		}},
	{Name: "id-used-again", About: "The server reuses the ID of a delayed job that was deleted.",
		Kills: "life.ids-not-used-again", Edit: func(s *inject.Server) {
			free, now := "", "" // the ID, and the job that has it now
			s.Out("DELETED", func(m *message) {
				if m.Job != nil && m.Job.Args[1] != "0" && m.Job.Assigned == 0 {
					free = m.Job.ID
				}
			})
			s.Out("INSERTED", func(m *message) {
				if free != "" && now == "" {
					now = m.Args[0]
					m.Args[0] = free
				}
			})
			s.On("peek delete", func(m *message) {
				if m.Args[0] == free && now != "" {
					m.Args[0] = now
				}
			})
		}},
	{Name: "released-into-the-used-tube", About: "release puts a job into the tube that the worker uses, not into the job's own tube.",
		Kills: "life.stays-in-tube tube.kept-by-a-reserved-job reserve-job.delayed", Edit: func(s *inject.Server) {
			now := map[string]string{} // the ID that a job has by now
			s.On("release", func(m *message) {
				if j := m.Job; j != nil && j.Worker == m.Peer && j.Queue != m.Peer.Tube {
					m.Peer.Ask("delete", j.ID)
					now[j.ID] = m.Peer.Ask("put", m.Args[1], m.Args[2], j.Args[2], j.Data).Arg(0)
					m.Answer("RELEASED")
				}
			})
			s.On("stats-job", func(m *message) {
				if id := now[m.Args[0]]; id != "" {
					m.Args[0] = id
				}
			})
		}},
}

// tubes are faults of how tubes come and go.
var tubes = []row{
	{Name: "delayed-default-elsewhere", About: "The server puts delayed jobs of a client without a \"use\" into a tube other than default.",
		Kills: "tube.default-used", Edit: inject.On("put", func(m *message) bool { return m.Args[1] != "0" && m.Peer.Tube == "default" },
			func(m *message) { putInto(m, "delayed") })},
	{Name: "default-not-watched", About: "A worker without a \"watch\" does not watch the tube default.",
		Kills: "tube.default-watched stats.connections", Edit: inject.Ignore("reserve", func(m *message) bool { return m.Peer.Count["watch"] == 0 })},
	{Name: "unwatched-tubes-unlisted", About: "list-tubes omits tubes that no client watches.",
		Kills: "tube.made-by-use list.tubes", Edit: listed("current-watching")},
	{Name: "unused-tubes-unlisted", About: "list-tubes omits tubes that no client uses.",
		Kills: "tube.made-by-watch list.tubes list.tubes-alone", Edit: listed("current-using")},
	{Name: "tube-made-by-asking", About: "stats-tube creates the tube.",
		Kills: "tube.not-made-by-asking stats.commands-that-ask", Edit: inject.On("stats-tube", nil, func(m *message) {
			if m.Pass(); ask(m.Peer, "stats-tube", m.Args[0]) == nil {
				m.Peer.Ask("watch", m.Args[0])
			}
		})},
	{Name: "tube-kept-by-who-used-it", About: "A tube remains when its last client uses another tube.",
		Kills: "tube.gone-when-not-used", Edit: remaining("use", func(m *message, total int) string { return ifNone(total, m.Peer.Tube) })},
	{Name: "ignored-tube-stays", About: "A tube remains when its last client ignores it.",
		Kills: "tube.gone-when-not-watched tube.not-made-by-asking tube.kept-by-a-buried-job",
		Edit:  remaining("ignore", func(m *message, total int) string { return ifNone(total, m.Args[0]) })},
	{Name: "tube-survives-its-client", About: "A tube remains when its last client disconnects.",
		Kills: "tube.gone-with-its-client", Edit: remaining(inject.Closed, func(m *message, _ int) string { return m.Peer.Tube })},
	{Name: "tube-survives-its-jobs", About: "A tube remains when its last job is deleted.",
		Kills: "tube.gone-with-its-last-job tube.kept-by-a-buried-job", Edit: remaining("delete", func(m *message, _ int) string {
			if m.Job == nil {
				return ""
			}
			return m.Job.Queue
		})},
	{Name: "delayed-jobs-keep-no-tube", About: "The server removes a tube that has only delayed jobs and no clients.",
		Kills: "tube.kept-by-a-delayed-job stats.commands-that-ask", Edit: denied("current-jobs-delayed")},
	{Name: "buried-jobs-keep-no-tube", About: "The server removes a tube that has only buried jobs and no clients.",
		Kills: "tube.kept-by-a-buried-job stats.commands-that-ask", Edit: denied("current-jobs-buried")},
	{Name: "released-without-a-tube", About: "The server loses a job that is released into a tube without clients.",
		Kills: "tube.kept-by-a-reserved-job",
		Edit: inject.On("release", func(m *message) bool {
			return m.Job != nil && m.Job.Worker == m.Peer && unused(m.Peer, m.Job.Queue) != nil
		}, func(m *message) {
			m.Peer.Ask("delete", m.Job.ID)
			m.Answer("RELEASED")
		})},
	{Name: "tube-comes-back-with-its-past", About: "The job counts of a new tube include those of a removed tube with the same name.",
		Kills: "tube.comes-back-empty", Edit: figure("stats-tube", "total-jobs", func(m *message, all figures) string {
			return decimal(len(m.FindAll(func(j *job) bool { return j.Queue == all["name"] })))
		})},
	{Name: "other-tubes-when-empty", About: "A reserve that does not wait returns a job from a tube that the worker does not watch.",
		Kills: "tube.separate watch.sees-what-was-there ignore.no-more-jobs pause.at-once pause.takes-jobs",
		Edit:  instead("TIMED_OUT", "RESERVED", func(m *message, j *job) bool { return j.State == "ready" && m.Peer.Request.Arg(0) == "0" })},
	{Name: "first-tube-only", About: "reserve looks only at the first of several watched tubes.",
		Kills: "tube.any-watched reserve.across-tubes-priority reserve.across-tubes-fifo reserve.waits-on-several-tubes watch.many watch.sees-what-was-there pause.other-tubes",
		Edit: inject.On("reserve", nil, func(m *message) {
			for _, t := range m.Peer.Ask("list-tubes-watched").Args[1:] {
				m.Peer.Ask("ignore", t)
			}
		})},
}

// listed removes tubes from the reply to list-tubes of which a figure is 0.
func listed(key string) inject.Edit {
	return inject.On("list-tubes", nil, func(m *message) {
		m.Answer("list-reply", slices.DeleteFunc(m.Peer.Ask("list-tubes").Args, func(t string) bool {
			return ask(m.Peer, "stats-tube", t)[key] == "0"
		})...)
	})
}

// remaining shows statistics of tubes that are gone, if left returns their names when a command, or
// the end of a connection, may end them. total is the number of jobs that the
// tube that the peer uses has had.
func remaining(types string, left func(m *message, total int) string) inject.Edit {
	return func(s *inject.Server) {
		kept := map[string]bool{}
		s.On(types, func(m *message) {
			kept[left(m, len(m.FindAll(func(j *job) bool { return j.Queue == m.Peer.Tube })))] = true
		})
		s.On("stats-tube", func(m *message) {
			if name := m.Args[0]; kept[name] && ask(m.Peer, "stats-tube", name) == nil {
				m.Answer("stats-reply", "name", name, "total-jobs", "0")
			}
		})
	}
}

// ifNone returns the tube if it has had no jobs.
func ifNone(total int, tube string) string {
	if total > 0 {
		return ""
	}
	return tube
}

// unused returns the statistics of a tube that no client uses or watches, or nil.
func unused(p *peer, tube string) figures {
	if t := ask(p, "stats-tube", tube); t["current-using"] == "0" && t["current-watching"] == "0" {
		return t
	}
	return nil
}

// denied denies tubes that no client uses or watches, if a figure is not 0.
func denied(key string) inject.Edit {
	return inject.Answer("stats-tube", func(m *message) bool {
		t := unused(m.Peer, m.Args[0])
		return t != nil && t[key] != "0"
	}, "NOT_FOUND")
}
