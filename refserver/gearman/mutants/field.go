package mutants

import (
	"time"

	"jobwire/refserver/inject"
)

// field are faults in what the specifications leave open and servers agree on.
var field = []row{
	{Name: "error-closes", About: "The server closes the connection after OPTION_REQ with an unknown option.",
		Kills: "field.connection-survives", Edit: inject.Out("ERROR", inject.ArgIs(0, "UNKNOWN_OPTION"), func(m *message) { m.Hangup = true })},
	{Name: "worker-not-heard-after-error", About: "The server ignores a worker with a running job after it has sent that worker an ERROR.",
		Kills: "field.worker-survives",
		Edit:  inject.Out("ERROR", func(m *message) bool { return m.Args[0] == "JOB_NOT_FOUND" && len(m.Peer.Jobs()) > 0 }, func(m *message) { m.Peer.Ignored = true })},
	{Name: "first-created-overtaken", About: "The server sends the reply to the next request before the first JOB_CREATED of a connection.",
		Kills: "field.order-of-submissions submit.created-first", Fault: "delay JOB_CREATED 60ms nth=1"},
	{Name: "newcomer-first", About: "The server assigns a client's job before older jobs of other clients.",
		Kills: "field.fifo", Edit: inject.Retype("SUBMIT_JOB", func(m *message) bool {
			return m.Args[1] == "" && m.Find(func(j *job) bool { return j.Queued() && j.Queue == m.Args[0] && j.Creator != m.Peer }) != nil
		}, "SUBMIT_JOB_HIGH")},
	// Unique IDs.
	{Name: "progress-for-the-first-client", About: "The server sends progress only to the first of several clients that wait for a job.",
		Kills: "field.coalesce beyond.status-unique-running",
		Edit:  inject.Drop("WORK_STATUS", func(m *message) bool { return m.Job != nil && len(m.Job.Clients) > 0 && m.Job.Clients[0] != m.Peer })},
	{Name: "joined-too-late", About: "The server sends nothing to a client whose submission joins a running job.",
		Kills: "field.coalesce-running", Edit: inject.Both(
			inject.On("SUBMIT_JOB", same((*job).Running), func(m *message) { m.Peer.Mark = true }),
			inject.Drop("WORK_FAIL WORK_COMPLETE", func(m *message) bool { return m.Peer.Mark }))},
	{Name: "background-stays-so", About: "The server sends nothing to a client whose submission joins a background job.",
		Kills: "field.coalesce-background", Edit: resultLost("SUBMIT_JOB_BG")},
	{Name: "job-leaves-with-first-client", About: "A job fails when its first client disconnects, although other clients wait for it.",
		Kills: "field.coalesce-one-leaves", Slow: settle,
		Edit: inject.Both(inject.Wrap(noHalfClose), cancels(func(m *message, j *job) bool { return j.Creator == m.Peer && len(j.Clients) > 1 }))},
	{Name: "dash-is-an-id", About: "The server treats the unique ID \"-\" like any other unique ID.",
		Kills: "field.coalesce-by-workload", Edit: inject.Change(submissions, 1, inject.ArgIs(1, "-"), inject.To("dash"))},
	{Name: "unique-for-all-functions", About: "The server combines jobs with the same unique ID, even if their functions differ.",
		Kills: "field.unique-per-function", Edit: inject.On(submissions, nil, func(m *message) {
			if same := m.Find(func(j *job) bool { return j.Ended == "" && j.Unique == m.Args[1] && j.Unique != "" && j.Unique != "-" }); same != nil {
				m.Args[0] = same.Queue
			}
		})},
	{Name: "unique-for-ever", About: "The server combines a submission with a finished job that had the same unique ID.",
		Kills: "field.unique-reusable", Edit: inject.On("SUBMIT_JOB", same(func(j *job) bool { return j.Ended != "" }), func(m *message) {
			m.Answer("JOB_CREATED", m.Find(func(j *job) bool { return j.Ended != "" && like(j, m) }).ID)
		})},

	// Waiting and waking.
	{Name: "job-without-worker-fails", About: "A job soon fails if no worker has registered its function.",
		Kills: "field.no-worker-yet", Edit: failsWithoutWorker},
	{Name: "sleep-without-a-look", About: "The server sends no NOOP after PRE_SLEEP if a job is queued already.",
		Kills: "field.wake-late", Fault: ordered, Edit: inject.Drop("NOOP", inject.CauseIs("PRE_SLEEP"))},

	// Jobs and their workers.
	{Name: "oldest-job-first", About: "The server accepts results from a worker only in the order in which it got the jobs.",
		Kills: "field.several-jobs", Edit: inject.Answer(results, func(m *message) bool {
			all := m.Peer.Jobs()
			return len(all) > 0 && m.Job != nil && all[0] != m.Job
		}, "ERROR", "NOT_YET", "another job comes first")},
	{Name: "second-result-told", About: "The server rejects a second result for a job, but sends it to the client.",
		Kills: "field.answers-twice", Edit: inject.On("WORK_COMPLETE", inject.OfJob(func(j *job) bool { return j.Ended == "WORK_COMPLETE" }), resultToCreator)},
	{Name: "any-worker-may-answer", About: "The server accepts a result from a worker that does not have the job.",
		Kills: "field.answers-for-another", Edit: inject.On("WORK_COMPLETE", inject.OfJob((*job).Running), func(m *message) {
			m.Drop()
			m.Job.Worker.Give("WORK_COMPLETE", m.Args...)
		})},
	{Name: "result-without-grab-taken", About: "The server accepts a result for a job that no worker has.",
		Kills: "field.answers-unassigned", Edit: inject.On("WORK_COMPLETE", inject.OfJob((*job).Queued), func(m *message) {
			m.Drop()
			resultToCreator(m)
		})},
}

// like reports whether a job has the function and the unique ID of a submission.
func like(j *job, m *message) bool {
	return j.Queue == m.Args[0] && j.Unique == m.Args[1] && j.Unique != ""
}

// same is a condition on submissions: a job like that exists.
func same(is func(*job) bool) inject.When {
	return func(m *message) bool { return m.Find(func(j *job) bool { return is(j) && like(j, m) }) != nil }
}

// resultToCreator sends a result to the client that submitted the job.
func resultToCreator(m *message) { m.Job.Creator.Send("WORK_COMPLETE", m.Args...) }

// failsWithoutWorker fails a job that has no worker for a while. Only time counts in
// which the server itself was not late: a busy machine delays workers too.
func failsWithoutWorker(s *inject.Server) {
	const tick, ticks = 5 * time.Millisecond, 8
	stopped := false
	var check func(j *job, left int, due time.Time)
	wait := func(j *job, left int) {
		due := time.Now().Add(tick)
		s.After(tick, func() { check(j, left, due) })
	}
	check = func(j *job, left int, due time.Time) {
		if left--; time.Since(due) > tick {
			left = ticks
		}
		switch {
		case stopped || !j.Queued() || s.Announced(j.Queue):
		case left > 0:
			wait(j, left)
		default:
			j.Creator.Give("cancel-job", j.ID)
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
