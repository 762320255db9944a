package mutants

import (
	"strings"

	"jobwire/refserver/inject"
)

// responses are faults of section "Client Responses": results, handles and status.
var responses = []row{
	{Name: "result-told-twice", About: "The server sends the first result of a client twice.",
		Kills: "work.complete worker.can-do-two maxqueue.room-again example.out-of-order example.interleaved retry.not-after-complete field.unique-reusable field.several-jobs field.answers-twice",
		Fault: "duplicate from-server WORK_COMPLETE nth=1"},
	{Name: "result-repeated-at-echo", About: "The server sends a client its result again if ECHO_REQ arrives next.",
		Kills: "work.complete retry.not-after-complete field.answers-twice", Edit: inject.Both(
			inject.Out("WORK_COMPLETE", nil, func(m *message) { m.Peer.List = m.Args }),
			inject.On("ECHO_REQ", func(m *message) bool { return m.Peer.List != nil }, func(m *message) { m.Peer.Send("WORK_COMPLETE", m.Peer.List...) }))},
	{Name: "failure-is-success", About: "The server sends WORK_COMPLETE to the client when the worker sends WORK_FAIL.",
		Kills: "work.fail work.all-in-order status.failed field.coalesce-running retry.not-after-fail", Fault: "retype from-peer WORK_FAIL WORK_COMPLETE"},
	{Name: "empty-data-dropped", About: "The server does not forward WORK_DATA without data.",
		Kills: "work.data", Fault: "drop from-peer WORK_DATA when data="},
	{Name: "data-held-back", About: "The server forwards WORK_DATA only when the worker sends its next packet.",
		Kills: "work.data-at-once", Edit: inject.On(reports, nil, func(m *message) {
			if delayed := m.Peer.List; delayed != nil {
				m.Peer.List = nil
				m.Peer.Give("WORK_DATA", delayed...)
			}
			if m.Name == "WORK_DATA" && m.Job != nil {
				m.Peer.List = m.Args
				m.Drop()
			}
		})},
	{Name: "warning-is-data", About: "The server forwards WORK_WARNING as WORK_DATA.",
		Kills: "work.warning work.all-in-order", Fault: "retype from-server WORK_WARNING WORK_DATA"},
	{Name: "warning-cut-at-nul", About: "The server truncates a WORK_WARNING at its first NUL.",
		Kills: "work.warning", Edit: inject.Rewrite("WORK_WARNING", 1, nil, inject.ToNUL)},
	{Name: "full-progress-unsaid", About: "The server does not forward progress of 100%.",
		Kills: "work.status example.interleaved", Edit: inject.Drop("WORK_STATUS", func(m *message) bool { return m.Args[1] == m.Args[2] })},
	{Name: "progress-in-percent", About: "The server converts progress to percent before it forwards it.",
		Kills: "work.status", Fault: "alter from-server WORK_STATUS denominator=100 when denominator=70"},
	{Name: "warning-late", About: "The server forwards the next packet of a worker before its WORK_WARNING.",
		Kills: "work.all-in-order", Fault: "delay from-server WORK_WARNING 60ms"},
	{Name: "exception-is-failure", About: "The server sends WORK_FAIL instead of WORK_EXCEPTION to a client that has set the option \"exceptions\".",
		Kills: "work.exception work.exception-each-as-asked retry.not-after-exception", Fault: "retype from-server WORK_EXCEPTION WORK_FAIL"},
	{Name: "exception-cut-at-nul", About: "The server truncates a WORK_EXCEPTION at its first NUL.",
		Kills: "work.exception", Edit: inject.Rewrite("WORK_EXCEPTION", 1, nil, inject.ToNUL)},
	{Name: "exceptions-for-all", About: "The server sends WORK_EXCEPTION to clients that have not set the option \"exceptions\".",
		Kills: "work.exception-unasked work.exception-each-as-asked", Edit: exceptions(func(*message) bool { return true })},
	{Name: "exceptions-as-the-first-asked", About: "The server applies the option \"exceptions\" of a job's first client to all its clients.",
		Kills: "work.exception-each-as-asked", Edit: exceptions(func(m *message) bool {
			return m.Job != nil && m.Job.Clients[0] != m.Peer && m.Job.Clients[0].Exceptions
		})},
	{Name: "progress-told-to-all", About: "The server sends progress of a job to every client that waits for any job.",
		Kills: "work.only-to-the-client", Edit: inject.On("WORK_STATUS", nil, func(m *message) {
			m.Pass()
			if m.Job == nil || m.Job.Worker != m.Peer {
				return
			}
			for _, j := range m.Jobs {
				for _, w := range j.Clients {
					if j != m.Job && j.Ended == "" && w != m.Job.Creator {
						w.Send("WORK_STATUS", m.Args...)
					}
				}
			}
		})},
	{Name: "progress-untold-is-empty", About: "STATUS_RES has empty numbers for a job without progress.",
		Kills: "number.progress-untold", Edit: inject.Out("STATUS_RES", func(m *message) bool { return m.Args[3] == "0" && m.Args[4] == "0" },
			func(m *message) { m.Args[3], m.Args[4] = "", "" })},
	{Name: "handle-given-twice", About: "The server gives a client's background job the handle of the client's queued job.",
		Kills: "handles.distinct", Edit: inject.Out("JOB_CREATED", inject.CauseIs("SUBMIT_JOB_BG"), func(m *message) {
			if first := m.Find(func(j *job) bool { return j.Queued() && j.Creator == m.Peer && j.Type == "SUBMIT_JOB" }); first != nil {
				m.Args[0] = first.ID
			}
		})},

	// Status.
	{Name: "every-handle-known", About: "STATUS_RES reports a handle that the server cannot have issued as known.",
		Kills: "status.unknown handle.longest", Edit: inject.Rewrite("STATUS_RES", 1, func(m *message) bool { return !strings.HasPrefix(m.Args[0], "H:") }, inject.To("1"))},
	{Name: "completed-job-known", About: "STATUS_RES reports a completed job as known.",
		Kills: "status.finished", Edit: stillKnown("WORK_COMPLETE")},
	{Name: "failed-job-known", About: "STATUS_RES reports a failed job as known.",
		Kills: "status.failed", Edit: stillKnown("WORK_FAIL")},
	{Name: "known-when-running", About: "STATUS_RES reports a queued job as unknown.",
		Kills: "status.queued status.any-connection epoch.waits", Fault: "alter STATUS_RES known=0 when running=0"},
	{Name: "known-is-running", About: "STATUS_RES reports every known job as running.",
		Kills: "status.queued epoch.waits", Fault: "alter STATUS_RES running=1 when known=1"},
	{Name: "running-by-progress", About: "STATUS_RES reports a job as running only after its first progress.",
		Kills: "status.running", Fault: "alter STATUS_RES running=0 when denominator=0"},
	{Name: "status-for-the-submitter", About: "STATUS_RES reports a job as unknown to every connection except its client's.",
		Kills: "status.any-connection status.progress",
		Edit:  inject.Rewrite("STATUS_RES", 1, func(m *message) bool { return m.Job != nil && m.Job.Creator != m.Peer }, inject.To("0"))},
	{Name: "first-progress-stays", About: "STATUS_RES always reports the first progress of a job.",
		Kills: "status.progress", Edit: inject.Both(
			inject.On("WORK_STATUS", inject.OfJob(func(j *job) bool { return j.First == "" }), func(m *message) { m.Job.First = m.Args[1] + " " + m.Args[2] }),
			inject.Out("STATUS_RES", inject.OfJob(func(j *job) bool { return j.First != "" }), func(m *message) {
				m.Args[3], m.Args[4], _ = strings.Cut(m.Job.First, " ")
			}))},
	{Name: "foreground-progress-forgotten", About: "STATUS_RES reports no progress for a foreground job.",
		Kills: "status.progress-foreground", Edit: inject.Rewrite("STATUS_RES", 3, inject.OfJob(func(j *job) bool { return !background(j) }), inject.To("0"))},
}

// stillKnown reports jobs that ended with the type as known.
func stillKnown(end string) inject.Edit {
	return inject.Rewrite("STATUS_RES", 1, inject.OfJob(func(j *job) bool { return j.Ended == end }), inject.To("1"))
}

// exceptions sends a client the exception of a job in place of its failure.
func exceptions(when inject.When) inject.Edit {
	return inject.Out("WORK_FAIL", func(m *message) bool { return m.Cause == "WORK_EXCEPTION" && when(m) },
		func(m *message) { m.Become("WORK_EXCEPTION", m.Args[0], m.Request.Args[1]) })
}
