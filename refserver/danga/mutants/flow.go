package mutants

import (
	"slices"
	"time"

	"jobwire/refserver/inject"
)

// conversations are faults that show in what is said, by whom and in which order.
var conversations = []row{
	{Name: "result-after-one-progress-lost", About: "The server does not send the result of a job with exactly one progress report to the waiting application.",
		Kills: "flow.sync announce.unanswered order.worker sync.each-its-own magic.each-its-own status.at-once status.big-endian status.many",
		Edit: inject.Drop("job_complete_res", func(m *message) bool {
			return m.Cause == "job_complete_announce" && m.Job.Reports == 1 && m.Job.Unique == "" && m.Job.Lost == 0
		})},
	{Name: "first-progress-untold", About: "job_status_res does not show the first progress of a job to the application that created it.",
		Kills: "flow.async status.each-its-own status.numbers-asked",
		Edit: inject.Rewrite("job_status_res", 0, func(m *message) bool {
			return answer(m) && m.Job != nil && m.Job.Reports == 1 && m.Job.Ended == "" && m.Job.Creator == m.Peer
		}, inject.To(number(0)))},
	{Name: "result-acknowledged", About: "The server replies to job_complete_announce if the worker has reported progress of the job.",
		Kills: "announce.unanswered order.worker sync.leaves-meanwhile", Edit: inject.After("job_complete_announce", func(m *message) bool {
			return m.Job != nil && m.Job.Reports > 0 && m.Job.Type == sync && len(m.Peer.Done) == 1
		}, "noop")},
	{Name: "creation-overtaken", About: "The server delays the reply to the second job_create_req of an application.",
		Kills: "order.application", Edit: inject.Out("job_create_res", func(m *message) bool { return len(m.Peer.Created) > 1 && m.Peer.Last() != "job_create_req" },
			func(m *message) { m.Delay = 20 * time.Millisecond })},
	{Name: "assignment-overtaken", About: "The server delays the second job_assign_res of a worker.",
		Kills: "order.worker", Edit: inject.Out("job_assign_res", func(m *message) bool { return len(m.Peer.Done) == 1 },
			func(m *message) { m.Delay = 20 * time.Millisecond })},
	{Name: "thrown-away-result-pushed", About: "The server sends the result of a type 2 job to its application.",
		Kills: "application.only-answers connect.several sleep.wakes-again throwaway.silent", Edit: pushed("job_complete_announce", throw)},
	{Name: "thrown-away-progress-pushed", About: "The server sends the progress of a type 2 job to its application.",
		Kills: "application.only-answers throwaway.silent", Edit: pushed("job_status_announce", throw)},
	{Name: "async-result-pushed", About: "The server sends the result of a type 1 job to its application if the worker has reported progress.",
		Kills: "application.only-answers status.finished complete.running", Edit: pushed("job_complete_announce", async)},
	{Name: "worker-closed-after-three-noes", About: "The server closes the connection of a worker after three noop replies to job_assign_req.",
		Kills: "flow.worst-case", Edit: inject.On("job_assign_req", nil, func(m *message) {
			if m.Pass(); m.Peer.Refused == 3 {
				m.Peer.Close()
			}
		})},
	{Name: "second-sleep-unheard", About: "The server ignores the second worker_sleep of a worker that it did not wake from the first.",
		Kills: "flow.worst-case-elapsed", Edit: inject.Ignore("worker_sleep", func(m *message) bool { return m.Peer.Count["worker_sleep"] > 1 && m.Peer.Woken == 0 })},
	{Name: "result-needs-next-request", About: "The result of a type 1 job is available only after its worker has requested another job.",
		Kills: "dup.waits-for-async flow.best-case direction.both-roles", Edit: incomplete(func(m *message) bool {
			return m.Job.Type == async && slices.ContainsFunc(m.Peers, func(p *peer) bool { return slices.Contains(p.Done, m.Job) && p.Last() != "job_assign_req" })
		})},
}

// pushed sends the reports of a worker about a job of a type to the application that created the job.
func pushed(report, typ string) inject.Edit {
	return inject.On(report, nil, func(m *message) {
		m.Pass()
		j := m.Job
		switch {
		case j == nil || j.Type != typ || typ == async && j.Reports == 0 || j.Creator.Left:
		case report == "job_complete_announce":
			j.Creator.Send("job_complete_res", append([]string{number(1)}, m.Args...)...)
		default:
			j.Creator.Send("job_status_res", m.Args...)
		}
	})
}

// applications are faults of those that wait, and of those that do not.
var applications = []row{
	{Name: "async-dropped", About: "The server drops a queued type 1 job when its application disconnects.",
		Kills: "async.detached violation.job-goes-on leave.queued", Edit: inject.On(inject.Closed, nil, func(m *message) { dropQueued(m, async) })},
	{Name: "thrown-away-dropped", About: "The server drops a queued type 2 job when its application disconnects.",
		Kills: "throwaway.detached leave.queued", Edit: inject.On(inject.Closed, nil, func(m *message) { dropQueued(m, throw) })},
	{Name: "result-of-orphan-dropped", About: "The server drops the result of a type 1 job if its application has disconnected.",
		Kills: "async.detached-while-running leave.running", Edit: incomplete(func(m *message) bool { return m.Job.Orphan })},
	{Name: "progress-for-creator-only", About: "The server sends the progress of a job only to the application that created it.",
		Kills: "async.any-connection status.time-unknown",
		Edit: inject.Replace("job_status_res", func(m *message) bool { return answer(m) && m.Job != nil && m.Job.Creator != m.Peer },
			"job_status_res", number(0), number(0), number(0))},
	{Name: "result-for-creator-only", About: "The server sends the result of a job only to the application that created it.",
		Kills: "async.detached async.detached-while-running async.any-connection violation.job-goes-on complete.kept leave.running leave.finished",
		Edit:  incomplete(func(m *message) bool { return !slices.Contains(m.Peer.Created, m.Job) })},
	{Name: "name-of-dropped-locked", About: "After an application has left a queued job, the server accepts no more jobs of that name.",
		Kills: "sync.leaves-before", Edit: func(s *inject.Server) {
			locked := map[string]bool{}
			s.On(inject.Ended, func(m *message) {
				if j := waits(m.Peer); j != nil && j.Queued() && len(j.Clients) == 1 {
					locked[j.Queue] = true
				}
			})
			inject.Ignore("job_create_req", func(m *message) bool { return locked[m.Job.Queue] })(s)
		}},
	{Name: "worker-of-dropped-closed", About: "The server closes the connection of a worker that reports on a job for which no application waits any more.",
		Kills: "sync.leaves-meanwhile sync.half-closes", Edit: inject.Hangup("job_status_announce job_complete_announce", inject.OfJob(func(j *job) bool {
			return j.Type == sync && j.Orphan && len(j.Clients) == 0
		}))},
	{Name: "second-wait-fails", About: "The server replies to a second type 0 job on a connection with a failed result.",
		Kills: "sync.second-meanwhile", Edit: inject.Answer("job_create_req", func(m *message) bool { return waitsForOther(m) && m.Args[3] == sync },
			"job_complete_res", number(1), "\xff", "")},
	{Name: "question-while-waiting-fails", About: "The server replies with a failed result if an application that waits for a job asks for a status or result.",
		Kills: "sync.asks-meanwhile", Edit: inject.Answer("job_status_req", func(m *message) bool { return waits(m.Peer) != nil },
			"job_complete_res", number(1), "\xff", "")},
	{Name: "nothing-while-waiting", About: "The server closes the connection of an application that creates a type 1 job while it waits for another job.",
		Kills: "sync.async-meanwhile", Edit: inject.Hangup("job_create_req", func(m *message) bool { return waitsForOther(m) && m.Args[3] == async })},
	{Name: "waits-once", About: "The server sends an application only the result of its first type 0 job.",
		Kills: "transport.persistent dup.failed-anew sync.next", Edit: inject.Drop("job_complete_res", func(m *message) bool {
			all := m.Peer.Created
			return m.Cause == "job_complete_announce" && len(all) > 1 && all[0] != m.Job && all[0].Type == sync && all[0].Ended != ""
		})},
	{Name: "result-to-the-oldest", About: "The server sends each result to the application that has waited longest.",
		Kills: "sync.each-its-own", Edit: inject.Out("job_status_res job_complete_res", func(m *message) bool { return !answer(m) }, func(m *message) {
			for _, p := range m.Peers {
				if p == m.Peer {
					return
				}
				if other := waits(p); other != nil && other != m.Job {
					p.Send(m.Name, m.Args...)
					m.Drop()
					return
				}
			}
		})},
}

// dropQueued drops the jobs of a type that the peer created, that no worker has had, and for which no other waits.
func dropQueued(m *message, typ string) {
	for _, j := range m.Peer.Created {
		if j.Type == typ && j.Creator == m.Peer && j.Queued() && len(queue(m, j.Queue)) == 1 && len(j.Clients) == 0 && j.Assigned == 0 {
			consume(m.Peer, j.Queue)
		}
	}
}
