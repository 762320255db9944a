package mutants

import (
	"cmp"
	"slices"

	"jobwire/refserver/inject"
)

// listing are faults of section "Other Commands": lists of tubes, quit and pause-tube; and of
// what the specification lacks.
var listing = []row{
	{Name: "past-tubes-listed", About: "list-tubes still lists tubes that no longer exist.",
		Kills: "list.tubes-alone", Edit: func(s *inject.Server) {
			var used []string
			s.Out("USING", func(m *message) { used = append(used, m.Args[0]) })
			s.Out("list-reply", func(m *message) {
				for _, t := range used {
					if m.Cause == "list-tubes" && !slices.Contains(m.Args, t) {
						m.Args = append(m.Args, t)
					}
				}
			})
		}},
	{Name: "no-list-at-first", About: "The server crashes if list-tubes-watched is the first command it receives.",
		Kills: "list.in-any-yaml tube.default-watched", Edit: inject.Answer("list-tubes-watched", func(m *message) bool { return m.Heard == 1 }, "INTERNAL_ERROR")},
	{Name: "first-watched-listed", About: "list-tubes-watched lists only one tube.",
		Kills: "list.watched watch.twice ignore.not-watched", Edit: inject.Out("list-reply", inject.CauseIs("list-tubes-watched"), func(m *message) { m.Args = m.Args[:1] })},

	// quit.
	{Name: "farewell", About: "The server replies to quit if it is the first command of a connection.",
		Kills: "quit.closes stats.total-connections", Edit: inject.On("quit", func(m *message) bool { return m.Heard == 1 }, func(m *message) { m.Peer.Send("BYE\r\n") })},
	{Name: "quit-behind-a-peek-passed-over", About: "The server ignores a quit that immediately follows a peek.",
		Kills: "quit.after-replies", Edit: inject.Ignore("quit", func(m *message) bool { return m.Peer.Last() == "peek-ready" })},
	{Name: "quit-undoes-the-put", About: "The server loses a job if quit immediately follows the put.",
		Kills: "quit.with-a-put-before", Edit: inject.On("quit", func(m *message) bool { return m.Peer.Last() == "put" }, func(m *message) {
			if j := m.Find(func(j *job) bool { return j.Creator == m.Peer }); j != nil && j.Queue != "default" {
				m.Peer.Ask("delete", j.ID)
			}
		})},
	{Name: "quit-with-argument-passed-over", About: "The server does not reply to quit with an argument.",
		Kills: "quit.surplus", Edit: inject.Ignore(inject.Illegal, text(`^quit \S`))},

	// pause-tube.
	{Name: "second-of-pause-skipped", About: "pause-tube with a pause of 1 second has no effect.",
		Kills: "pause.paused pause.waiting-ends", Edit: inject.Change("pause-tube", 1, inject.ArgIs(1, "1"), inject.To("0"))},
	{Name: "put-ends-a-pause", About: "A put into a paused tube ends the pause if a worker waits for the tube.",
		Kills: "pause.waiting pause.waiting-ends", Edit: inject.On("put", nil, func(m *message) {
			if t := ask(m.Peer, "stats-tube", m.Peer.Tube); t["pause"] != "0" && t["current-waiting"] != "0" {
				m.Peer.Ask("pause-tube", t["name"], "0")
			}
		})},
	{Name: "used-tube-paused-too", About: "pause-tube also pauses the next tube that a client uses.",
		Kills: "pause.other-tubes", Edit: func(s *inject.Server) {
			paused := false
			s.On("pause-tube", func(m *message) { paused = m.Args[1] == "100" })
			s.On("use", func(m *message) {
				if m.Pass(); paused {
					m.Peer.Ask("pause-tube", m.Args[0], "100")
				}
			})
		}},
	{Name: "paused-tube-not-kicked", About: "kick does nothing in a paused tube.",
		Kills: "pause.takes-jobs", Edit: inject.Answer("kick", func(m *message) bool { return ask(m.Peer, "stats-tube", m.Peer.Tube)["pause"] != "0" }, "KICKED", "0")},
	{Name: "no-tube-paused", About: "The server confirms pause-tube for a tube that does not exist.",
		Kills: "pause.not-there tube.not-made-by-asking",
		Edit:  inject.Replace("NOT_FOUND", func(m *message) bool { return m.Cause == "pause-tube" && len(m.Peer.Request.Args[0]) < 200 }, "PAUSED")},
	{Name: "pause-of-zero-without-effect", About: "pause-tube with 0 seconds does not end a pause.",
		Kills: "pause.zero", Edit: pausedFor(func(was, length string) string {
			if length == "0" {
				return was
			}
			return length
		})},
	{Name: "longest-pause-stays", About: "A new pause that is shorter does not replace a longer one.",
		Kills: "pause.shorter", Edit: pausedFor(func(was, length string) string {
			if length == "0" {
				return length
			}
			return decimal(max(number(was), number(length)))
		})},
	{Name: "pause-in-letters-is-zero", About: "The server reads a pause that is not a number as 0.",
		Kills: "pause.no-number", Edit: readAs(`^pause-tube default [a-z]+\r`, "pause-tube default 0\r")},

	// reserve-job.
	{Name: "ready-job-not-reserved-by-id", About: "reserve-job does not find ready jobs.",
		Kills: "reserve-job.ready", Edit: notReserved("ready")},
	{Name: "delayed-job-not-reserved-by-id", About: "reserve-job does not find delayed jobs.",
		Kills: "reserve-job.delayed", Edit: notReserved("delayed")},
	{Name: "buried-job-not-reserved-by-id", About: "reserve-job does not find buried jobs.",
		Kills: "reserve-job.buried", Edit: notReserved("buried")},
	{Name: "reserved-job-given-by-id", About: "reserve-job returns a job that another worker has reserved.",
		Kills: "reserve-job.reserved", Edit: inject.On("reserve-job", inject.OfJob(func(j *job) bool { return j.Worker != nil }),
			func(m *message) { m.Answer("RESERVED", m.Job.ID, m.Job.Data) })},
	{Name: "id-to-reserve-in-letters-is-zero", About: "The server reads an ID of reserve-job that is not a number as 0.",
		Kills: "reserve-job.malformed", Edit: readAs(`^reserve-job [a-z]+\r`, "reserve-job 0\r")},
}

// pausedFor changes the length of a pause. was is the length of the previous one.
func pausedFor(change func(was, length string) string) inject.Edit {
	return func(s *inject.Server) {
		was := map[string]string{}
		s.On("pause-tube", func(m *message) {
			tube := m.Args[0]
			was[tube] = change(cmp.Or(was[tube], "0"), m.Args[1])
			m.Args[1] = was[tube]
		})
	}
}

// notReserved hides jobs in a state from reserve-job.
func notReserved(state string) inject.Edit {
	return inject.Answer("reserve-job", inject.OfJob(func(j *job) bool { return j.State == state }), "NOT_FOUND")
}
