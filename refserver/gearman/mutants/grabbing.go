package mutants

import "jobwire/refserver/inject"

// grabbing are faults of section "Worker Responses".
var grabbing = []row{
	{Name: "no-job-before-the-first", About: "The server does not reply to GRAB_JOB before the first job was submitted.",
		Kills: "grab.no-job grab.no-job-unique example.walkthrough beyond.grab-all-none",
		Edit:  inject.Drop("NO_JOB", func(m *message) bool { return len(m.Jobs) == 0 })},
	{Name: "no-job-unsaid-to-uniq", About: "The server does not reply to GRAB_JOB_UNIQ if there is no job.",
		Kills: "grab.no-job-unique", Edit: inject.Drop("NO_JOB", inject.CauseIs("GRAB_JOB_UNIQ"))},
	{Name: "no-job-unsaid-to-all", About: "The server does not reply to GRAB_JOB_ALL if there is no job.",
		Kills: "beyond.grab-all-none", Edit: inject.Drop("NO_JOB", inject.CauseIs("GRAB_JOB_ALL"))},
	{Name: "unable-worker-refused", About: "The server rejects GRAB_JOB from a worker that has not registered a function.",
		Kills: "grab.no-ability", Edit: inject.Answer("GRAB_JOB", unregistered, "ERROR", "NO_ABILITY", "announce something first")},
	{Name: "workload-beside-unique-cut-at-nul", About: "The server truncates the workload in JOB_ASSIGN_UNIQ at its first NUL.",
		Kills: "grab.assign-unique", Edit: inject.Rewrite("JOB_ASSIGN_UNIQ", 3, nil, inject.ToNUL)},
	{Name: "unique-not-told", About: "The server sends JOB_ASSIGN_UNIQ without the unique ID.",
		Kills: "grab.assign-unique grab.assign-unique-background beyond.grab-all-ordinary", Fault: "alter JOB_ASSIGN_UNIQ unique-id="},
	{Name: "background-unique-forgotten", About: "The server does not store the unique ID of a background job.",
		Kills: "grab.assign-unique-background", Edit: inject.Rewrite("JOB_ASSIGN_UNIQ", 2, inject.OfJob(background), inject.To(""))},
	{Name: "empty-unique-made-up", About: "The server sends the handle as the unique ID of a job that has none.",
		Kills: "grab.assign-unique-empty", Edit: inject.Out("JOB_ASSIGN_UNIQ", inject.ArgIs(2, ""), func(m *message) { m.Args[2] = m.Args[0] })},
	{Name: "running-job-assigned", About: "The server assigns a job that another worker is running if no job is queued.",
		Kills: "grab.once grab.race grab.woken-together", Edit: assignsInstead(func(p *peer, j *job) bool { return j.Running() && j.Worker != p })},
	{Name: "equal-jobs-confused", About: "The server assigns one of two jobs with the same function and workload twice.",
		Kills: "grab.race", Edit: inject.Out("JOB_ASSIGN", nil, func(m *message) {
			if twin := m.Find(func(j *job) bool {
				return j.Running() && j.Worker != m.Peer && j.Queue == m.Args[1] && j.Data == m.Args[2]
			}); twin != nil {
				m.Args[0] = twin.ID
			}
		})},
	{Name: "one-high-job-at-a-time", About: "The server assigns no further job of high priority while one of that function is running.",
		Kills: "field.fifo-high", Edit: inject.Answer("GRAB_JOB", func(m *message) bool {
			return m.Find(func(j *job) bool { return j.Type == "SUBMIT_JOB_HIGH" && j.Running() && m.Peer.Does(j.Queue) }) != nil
		}, "NO_JOB")},
	{Name: "woken-worker-left-waiting", About: "The server does not reply to GRAB_JOB from a worker that it woke if another worker has taken the job.",
		Kills: "grab.woken-together", Edit: func(s *inject.Server) {
			woken := false
			s.On("GRAB_JOB", func(m *message) { woken = m.Peer.Woken > 0 })
			s.Out("NO_JOB", func(m *message) {
				if woken {
					m.Drop()
				}
			})
		}},
	{Name: "completed-job-assigned-again", About: "The server assigns a worker the job that it has just completed if no job is queued.",
		Kills: "worker.can-do worker.cant-do worker.reset-and-again wake.again worker.all-yours grab.not-again example.walkthrough field.coalesce",
		Edit:  assignsInstead(func(p *peer, j *job) bool { return j.Ended == "WORK_COMPLETE" && j.Worker == p })},
}

// assignsInstead assigns a worker a job in place of NO_JOB.
func assignsInstead(which func(p *peer, j *job) bool) inject.Edit {
	return inject.Out("NO_JOB", nil, func(m *message) {
		if j := m.Find(func(j *job) bool { return m.Peer.Does(j.Queue) && which(m.Peer, j) }); j != nil {
			m.Become("JOB_ASSIGN", j.ID, j.Queue, j.Data)
		}
	})
}
