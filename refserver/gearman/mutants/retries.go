package mutants

import (
	"slices"

	"jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// retries are faults in the example of the specification, and in jobs whose worker disconnects.
var retries = []row{
	{Name: "empty-unique-is-the-workload", About: "The server combines jobs without a unique ID if their workloads are equal.",
		Kills: "handles.distinct grab.assign-unique-empty grab.race example.empty-unique beyond.prioritystatus",
		Edit:  inject.Change("SUBMIT_JOB", 1, inject.ArgIs(1, ""), inject.To("-"))},
	{Name: "results-in-order-of-submission", About: "The server sends a client's results only in the order of its submissions.",
		Kills: "example.out-of-order example.interleaved field.coalesce-by-workload field.several-jobs", Edit: inject.Drop("WORK_COMPLETE", func(m *message) bool {
			earlier := m.Find(func(j *job) bool { return j.Creator == m.Peer && j.Ended == "" && !background(j) })
			return earlier != nil && earlier.ID != m.Args[0]
		})},
	{Name: "one-job-a-client", About: "The server accepts no further job from a client that has received progress until that job has ended.",
		Kills: "example.full-duplex", Edit: inject.Both(
			inject.Out("WORK_STATUS", nil, func(m *message) { m.Peer.Job = m.Job }),
			inject.Answer(submissions, func(m *message) bool { return m.Peer.Job != nil && m.Peer.Job.Ended == "" }, "ERROR", "BUSY", "one job at a time"))},

	{Name: "lost-job-fails", About: "A job fails when its worker disconnects.",
		Kills: "retry.worker-closes retry.worker-breaks-off retry.client-waits retry.after-data retry.background retry.twice retry.lost-worker-returns field.retry-same-handle field.retry-wakes field.retry-two-jobs",
		Slow:  settle,
		New:   with(gearman.Options{Retries: 1})},
	{Name: "one-retry", About: "A job fails when its second worker disconnects.",
		Kills: "retry.twice", Slow: settle, New: with(gearman.Options{Retries: 2})},
	{Name: "reset-not-noticed", About: "The server does not notice that a worker's connection was reset.",
		Kills: "retry.worker-breaks-off", Edit: inject.Wrap(newResetBlind)},
	{Name: "lost-job-forgotten-while-others-sleep", About: "The server drops the job of a worker that disconnects if another worker is asleep.",
		Kills: "retry.worker-closes retry.worker-breaks-off retry.client-waits field.retry-wakes", Slow: settle, Edit: dropsLost(func(m *message, j *job) bool {
			return slices.ContainsFunc(m.Peers, func(p *peer) bool { return p != m.Peer && p.Asleep && p.Does(j.Queue) })
		})},
	{Name: "client-told-of-lost-worker", About: "The server sends WORK_FAIL to the client when a worker disconnects, but queues the job again.",
		Kills: "retry.client-waits retry.after-data retry.twice retry.lost-worker-returns", Slow: settle, Edit: inject.On(inject.Closed, nil, func(m *message) {
			for _, j := range m.Peer.Jobs() {
				for _, w := range j.Clients {
					w.Send("WORK_WARNING", j.ID, "the worker was lost")
				}
			}
		})},
	{Name: "job-with-data-forgotten", About: "The server drops the job of a worker that disconnects after WORK_DATA.",
		Kills: "retry.after-data", Slow: settle, Edit: inject.Both(
			dropsLost(func(m *message, j *job) bool { return j.Reports > 0 }),
			inject.On("WORK_DATA", inject.OfJob(func(*job) bool { return true }), func(m *message) { m.Job.Reports++ }))},
	{Name: "background-job-forgotten", About: "The server drops the background job of a worker that disconnects.",
		Kills: "retry.background field.retry-same-handle", Slow: settle, Edit: dropsLost(func(m *message, j *job) bool { return background(j) })},
	{Name: "retry-under-another-handle", About: "The server assigns a background job with a different handle after its worker disconnected.",
		Kills: "retry.background field.retry-same-handle", Slow: settle,
		Edit: inject.Rewrite(assignments, 0, inject.OfJob(func(j *job) bool { return j.Assigned > 1 && background(j) }), func(v string) string { return v + "-again" })},
	{Name: "job-bound-to-the-woken", About: "The server drops a job when a worker that was woken for it disconnects.",
		Kills: "retry.before-grab", Slow: settle, Edit: cancels(func(m *message, j *job) bool { return m.Peer.Woken > 0 && m.Peer.Does(j.Queue) })},
	{Name: "retry-for-those-who-were-there", About: "The server assigns the job of a disconnected worker only to workers that were connected at that time.",
		Kills: "retry.after-data retry.background retry.twice retry.lost-worker-returns field.retry-same-handle field.retry-two-jobs", Slow: settle,
		Edit: func(s *inject.Server) {
			lost := false
			s.On("CAN_DO", func(m *message) { m.Peer.Mark = m.Peer.Mark || lost })
			s.On(inject.Closed, func(m *message) { lost = lost || len(m.Peer.Jobs()) > 0 })
			inject.Answer("GRAB_JOB", func(m *message) bool { return m.Peer.Mark }, "NO_JOB")(s)
		}},
	{Name: "result-lost-with-worker", About: "The server queues a completed job again when its worker disconnects.",
		Kills: "retry.not-after-complete", Edit: assignedAgain("WORK_COMPLETE")},
	{Name: "failed-job-retried", About: "The server queues a job again after WORK_FAIL.",
		Kills: "retry.not-after-fail", Edit: assignedAgain("WORK_FAIL")},
	{Name: "excepted-job-retried", About: "The server queues a job again after WORK_EXCEPTION.",
		Kills: "retry.not-after-exception", Edit: assignedAgain("WORK_EXCEPTION")},
	{Name: "retry-does-not-wake", About: "The server wakes no worker for the job of a worker that disconnected.",
		Kills: "field.retry-wakes", Edit: inject.Drop("NOOP", inject.CauseIs(inject.Leave))},
	{Name: "second-job-forgotten", About: "The server queues only the first of several jobs again when their worker disconnects.",
		Kills: "field.retry-two-jobs", Slow: settle, Edit: dropsLost(func(m *message, j *job) bool { return m.Peer.Jobs()[0] != j })},
}

// dropsLost drops some of the jobs of a worker that disconnects, without a message to any client.
func dropsLost(which func(m *message, j *job) bool) inject.Edit {
	return inject.On(inject.Closed, nil, func(m *message) {
		lost := slices.DeleteFunc(m.Peer.Jobs(), func(j *job) bool { return !which(m, j) })
		for _, j := range lost {
			m.Peer.GiveSilently("WORK_FAIL", j.ID)
		}
	})
}

// assignedAgain assigns jobs that ended with the type to workers that did not end them.
func assignedAgain(end string) inject.Edit {
	return assignsInstead(func(p *peer, j *job) bool { return j.Ended == end && j.Worker != p })
}
