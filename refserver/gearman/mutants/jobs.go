package mutants

import (
	"slices"
	"time"

	"jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// jobs are faults in which the server has other options, loses jobs with connections, or fails jobs after a time.
var jobs = []mutantSpec{
	{Name: "timeout-in-hours", About: "The server reads the timeout in CAN_DO_TIMEOUT as hours.",
		KilledBy: "timeout.fails timeout.late-result timeout.two-jobs timeout.fails-uniq", New: with(gearman.Options{TimeoutUnit: time.Hour})},
	{Name: "timeout-in-nanoseconds", About: "The server reads the timeout in CAN_DO_TIMEOUT as nanoseconds.",
		KilledBy: "timeout.in-time timeout.values timeout.announces", New: with(gearman.Options{TimeoutUnit: time.Nanosecond})},
	{Name: "leaving-client-ends-the-server", About: "The server crashes when a client with a queued job disconnects.",
		KilledBy: "submit.client-leaves-while-queued field.coalesce-one-leaves wake.abandoned-job field.coalesce-abandoned",
		Edit: inject.Both(inject.Wrap(noHalfClose), inject.Crash(inject.Closed, func(m *message) bool {
			return m.Find(func(j *job) bool { return j.Queued() && !background(j) && j.Creator == m.Peer }) != nil
		}))},
	{Name: "background-leaves-with-joined-client", About: "The server drops a queued background job when a client that joined it disconnects.",
		KilledBy: "field.coalesce-background-leaves[type=SUBMIT_JOB_HIGH_BG,how=closes] field.coalesce-background-leaves[type=SUBMIT_JOB_HIGH_BG,how=resets]",
		Edit: inject.Both(inject.Wrap(noHalfClose), cancels(func(m *message, j *job) bool {
			return j.Type == "SUBMIT_JOB_HIGH_BG" && slices.Contains(j.Clients, m.Peer)
		}))},
	{Name: "job-leaves-with-first-client", About: "A job fails when its first client disconnects, although other clients wait for it.",
		KilledBy: "field.coalesce-one-leaves",
		Edit:     inject.Both(inject.Wrap(noHalfClose), cancels(func(m *message, j *job) bool { return j.Creator == m.Peer && len(j.Clients) > 1 }))},
	{Name: "job-without-worker-fails", About: "A job fails after a short time if no worker has registered its function, instead of waiting for a worker.",
		KilledBy: "field.no-worker-yet field.coalesce-one-leaves field.coalesce-background-leaves retry.low-last", Edit: failsWithoutWorker},
	{Name: "lost-job-fails", About: "A job fails when its worker disconnects, instead of being assigned again.",
		KilledBy: "retry.client-waits retry.after-data retry.background retry.twice retry.lost-worker-returns field.retry-same-handle field.retry-wakes field.retry-two-jobs retry.worker-leaves retry.high-first",
		New:      with(gearman.Options{Retries: 1})},
	{Name: "one-retry", About: "A job fails when its second worker disconnects, instead of being assigned again.",
		KilledBy: "retry.twice", New: with(gearman.Options{Retries: 2})},
	{Name: "reset-not-noticed", About: "The server does not notice that a worker's connection was reset.",
		KilledBy: "retry.worker-leaves retry.client-waits[how=resets]", Edit: inject.Wrap(newLateResetConn)},
	{Name: "retried-high-is-normal", About: "The server queues a job of high priority with normal priority when its worker disconnects.",
		KilledBy: "retry.high-first", Edit: inject.On(inject.Closed, nil, func(m *message) {
			for _, j := range m.Peer.Jobs() {
				if j.Type == "SUBMIT_JOB_HIGH" && !j.Creator.Left {
					m.Peer.InjectSilently("WORK_FAIL", j.ID)
					j.Creator.Ask("SUBMIT_JOB", j.Queue, j.Unique, j.Data)
				}
			}
		})},
	{Name: "canceled-with-its-worker", About: "The server closes the connection of a worker whose job is canceled.",
		KilledBy: "beyond.cancel-job-running", Edit: inject.On("cancel-job", inject.OfJob((*job).Running), func(m *message) {
			m.Pass()
			m.Job.Worker.Close()
		})},
}

// cancels cancels queued jobs when a peer disconnects.
func cancels(which func(m *message, j *job) bool) inject.Edit {
	return inject.On(inject.Closed, nil, func(m *message) {
		for _, j := range m.FindAll(func(j *job) bool { return j.Queued() && which(m, j) }) {
			m.Peer.Inject("cancel-job", j.ID)
		}
	})
}

// failsWithoutWorker fails a job that has no worker for a while. Ticks in which the server itself was late do
// not count: a busy machine delays workers too.
func failsWithoutWorker(s *inject.Server) {
	const tick, ticks = 5 * time.Millisecond, 8
	stopped := false
	var check func(j *job, left int, deadline time.Time)
	wait := func(j *job, left int) {
		deadline := time.Now().Add(tick)
		s.After(tick, func() { check(j, left, deadline) })
	}
	check = func(j *job, left int, deadline time.Time) {
		if left--; time.Since(deadline) > tick {
			left = ticks
		}
		switch {
		case stopped || !j.Queued() || s.Announced(j.Queue):
		case left > 0:
			wait(j, left)
		default:
			j.Creator.Inject("cancel-job", j.ID)
		}
	}
	s.On("SUBMIT_JOB", func(m *message) {
		if m.Pass(); len(m.Jobs) > 0 {
			wait(m.Jobs[len(m.Jobs)-1], ticks)
		}
	})
	s.On("shutdown", func(*message) { stopped = true })
	inject.Drop("OK", inject.CauseIs(inject.Time))(s)
}
