package mutants

import (
	"strconv"
	"time"

	"jobwire/refserver/inject"
)

// requests are faults of section "Client Requests".
var requests = []row{
	{Name: "result-of-keyed-job-lost", About: "The server does not send the result of a job with a unique ID if only one client waits for it.",
		Kills: "submit.normal submit.workload-binary grab.assign-unique retry.client-waits field.unique-reusable",
		Edit:  inject.Drop("WORK_COMPLETE", inject.OfJob(func(j *job) bool { return j.Type == "SUBMIT_JOB" && j.Unique != "" && len(j.Clients) == 1 }))},
	{Name: "high-result-lost", About: "The server does not send the result of a job of high priority to its client.",
		Kills: "submit.high", Edit: resultLost("SUBMIT_JOB_HIGH")},
	{Name: "low-result-lost", About: "The server does not send the result of a job of low priority to its client.",
		Kills: "submit.low", Edit: resultLost("SUBMIT_JOB_LOW")},
	{Name: "background-progress-told", About: "The server sends the progress of a background job to its client.",
		Kills: "submit.background status.progress", Edit: sentToSubmitter("SUBMIT_JOB_BG", "WORK_STATUS")},
	{Name: "background-result-told", About: "The server sends the result of a background job to its client.",
		Kills: "submit.background status.finished wake.again field.coalesce-background", Edit: sentToSubmitter("SUBMIT_JOB_BG", "WORK_COMPLETE")},
	{Name: "background-failure-told", About: "The server sends the failure of a background job to its client.",
		Kills: "submit.background-failure", Edit: sentToSubmitter("SUBMIT_JOB_BG", "WORK_FAIL")},
	{Name: "high-background-not-detached", About: "The server processes SUBMIT_JOB_HIGH_BG as SUBMIT_JOB_HIGH.",
		Kills: "submit.high-background", Fault: "retype SUBMIT_JOB_HIGH_BG SUBMIT_JOB_HIGH"},
	{Name: "low-background-not-detached", About: "The server processes SUBMIT_JOB_LOW_BG as SUBMIT_JOB_LOW.",
		Kills: "submit.low-background", Fault: "retype SUBMIT_JOB_LOW_BG SUBMIT_JOB_LOW"},
	{Name: "background-job-leaves-with-client", About: "The server drops a queued background job when its client disconnects.",
		Kills: "submit.background-client-leaves retry.background", Slow: settle,
		Edit: cancels(func(m *message, j *job) bool { return j.Type == "SUBMIT_JOB_BG" && j.Creator == m.Peer })},
	{Name: "created-late", About: "The server sends JOB_CREATED after the result if a worker is quick.",
		Kills: "submit.created-first", Fault: "delay JOB_CREATED 60ms"},
	{Name: "empty-workload-passed-over", About: "The server does not reply to a submission with an empty workload.",
		Kills: "submit.workload-empty", Fault: "drop SUBMIT_JOB when workload="},
	{Name: "workload-cut-at-nul", About: "The server truncates the workload in JOB_ASSIGN at its first NUL.",
		Kills: "submit.workload-binary grab.assign", Edit: inject.Rewrite("JOB_ASSIGN", 2, nil, inject.ToNUL)},
	{Name: "workload-cut-at-64-kibibytes", About: "The server truncates the workload in JOB_ASSIGN at 64 KiB.",
		Kills: "submit.workload-large submit.workload-16-mebibytes", Edit: inject.Rewrite("JOB_ASSIGN", 2, nil, inject.AtMost(64<<10))},
	{Name: "large-result-not-passed-on", About: "The server does not send results of more than 8 MiB to the client.",
		Kills: "submit.workload-16-mebibytes", Edit: inject.Drop("WORK_COMPLETE", func(m *message) bool { return len(m.Args[1]) > 8<<20 })},
	{Name: "long-function-ends-the-server", About: "The server crashes on a function name of more than 512 bytes.",
		Kills: "submit.function-of-600-bytes", Edit: overflows(0)},
	{Name: "long-unique-ends-the-server", About: "The server crashes on a unique ID of more than 512 bytes.",
		Kills: "submit.unique-of-600-bytes", Edit: overflows(1)},
	{Name: "empty-function-passed-over", About: "The server does not reply to a submission with an empty function name.",
		Kills: "submit.function-empty args.missing-all", Fault: "drop SUBMIT_JOB when function="},
	{Name: "leaving-client-ends-the-server", About: "The server crashes when a client with a queued job disconnects.",
		Kills: "submit.client-leaves-while-queued field.coalesce-one-leaves", Slow: settle,
		Edit: inject.Both(inject.Wrap(noHalfClose), inject.Crash(inject.Closed, func(m *message) bool {
			return m.Find(func(j *job) bool { return j.Queued() && !background(j) && j.Creator == m.Peer }) != nil
		}))},
	{Name: "worker-pays-for-the-client", About: "The server closes the connection of a worker that reports on a job whose client has disconnected.",
		Kills: "submit.client-leaves-while-running", Slow: settle, Edit: inject.Hangup("WORK_DATA WORK_COMPLETE", func(m *message) bool {
			return m.Job != nil && !background(m.Job) && m.Job.Worker == m.Peer && len(m.Job.Clients) == 0
		})},

	// Priorities.
	{Name: "high-background-is-normal", About: "The server queues jobs from SUBMIT_JOB_HIGH_BG with normal priority.",
		Kills: "queue.background queue.foreground-and-background", Fault: "retype SUBMIT_JOB_HIGH_BG SUBMIT_JOB_BG"},
	{Name: "high-is-normal", About: "The server queues jobs from SUBMIT_JOB_HIGH with normal priority.",
		Kills: "queue.high-first queue.three-priorities maxqueue.high maxqueue.normal beyond.prioritystatus", Fault: "retype SUBMIT_JOB_HIGH SUBMIT_JOB"},
	{Name: "low-background-is-normal", About: "The server queues jobs from SUBMIT_JOB_LOW_BG with normal priority.",
		Kills: "queue.background", Fault: "retype SUBMIT_JOB_LOW_BG SUBMIT_JOB_BG"},
	{Name: "low-is-normal", About: "The server queues jobs from SUBMIT_JOB_LOW with normal priority.",
		Kills: "queue.low-last queue.three-priorities maxqueue.low", Fault: "retype SUBMIT_JOB_LOW SUBMIT_JOB"},
	{Name: "background-waits-for-foreground", About: "The server assigns background jobs of high priority after foreground jobs of lower priority.",
		Kills: "queue.foreground-and-background", Edit: inject.Retype("SUBMIT_JOB_HIGH_BG", func(m *message) bool {
			return m.Find(func(j *job) bool { return j.Queued() && j.Queue == m.Args[0] && !background(j) }) != nil
		}, "SUBMIT_JOB_LOW_BG")},

	// Times.
	{Name: "epoch-not-kept", About: "The server runs a SUBMIT_JOB_EPOCH job at once instead of at its time.",
		Kills: "epoch.waits", Fault: "retype SUBMIT_JOB_EPOCH SUBMIT_JOB_BG"},
	{Name: "epoch-never-comes", About: "The server never runs a SUBMIT_JOB_EPOCH job.",
		Kills: "epoch.comes epoch.wakes epoch.past epoch.background", Fault: "alter SUBMIT_JOB_EPOCH epoch-time=99999999999"},
	{Name: "epoch-does-not-wake", About: "The server wakes no worker when the time of a SUBMIT_JOB_EPOCH job has come.",
		Kills: "epoch.wakes", Edit: inject.Drop("NOOP", inject.CauseIs(inject.Time))},
	{Name: "epoch-past-refused", About: "The server rejects a SUBMIT_JOB_EPOCH job whose time has passed.",
		Kills: "epoch.past epoch.background", Edit: inject.Answer("SUBMIT_JOB_EPOCH", past, "ERROR", "TOO_LATE", "that time has passed")},
	{Name: "epoch-not-detached", About: "The server sends the result of a SUBMIT_JOB_EPOCH job whose time has passed to its client.",
		Kills: "epoch.background", Edit: inject.Retype("SUBMIT_JOB_EPOCH", past, "SUBMIT_JOB")},
	{Name: "schedule-not-kept", About: "The server runs a SUBMIT_JOB_SCHED job at once instead of at its time.",
		Kills: "number.schedule-out-of-range sched.waits", Fault: "retype SUBMIT_JOB_SCHED SUBMIT_JOB_BG"},
	{Name: "schedule-not-answered", About: "The server does not reply to SUBMIT_JOB_SCHED.",
		Kills: "number.schedule-out-of-range sched.waits sched.background sched.never", Fault: "drop SUBMIT_JOB_SCHED"},
	{Name: "impossible-day-not-answered", About: "The server does not reply to SUBMIT_JOB_SCHED with a date that does not exist.",
		Kills: "sched.never", Fault: "drop ERROR when error-code=NO_SUCH_TIME"},

	// Options.
	{Name: "option-unknown", About: "The server rejects the option \"exceptions\" as unknown.",
		Kills: "option.exceptions option.exceptions-worker option.twice work.exception work.exception-each-as-asked retry.not-after-exception",
		Fault: "answer OPTION_REQ ERROR UNKNOWN_OPTION exceptions when option=exceptions"},
	{Name: "option-not-twice", About: "The server rejects an option that is already set.",
		Kills: "option.twice", Fault: "answer OPTION_REQ ERROR OPTION_SET again nth=2"},
	{Name: "any-option-is-one", About: "The server confirms unknown options.",
		Kills: "error.form option.unknown option.empty field.connection-survives", Fault: "retype ERROR OPTION_RES when error-code=UNKNOWN_OPTION"},
	{Name: "empty-option-passed-over", About: "The server does not reply to OPTION_REQ with an empty name.",
		Kills: "option.empty", Fault: "drop OPTION_REQ when option="},
}

// resultLost drops the results of jobs that were submitted with the type.
func resultLost(typ string) inject.Edit {
	return inject.Drop("WORK_COMPLETE", inject.OfJob(func(j *job) bool { return j.Type == typ }))
}

// sentToSubmitter sends the reports of a worker on jobs of a type to the clients that submitted them.
func sentToSubmitter(typ, report string) inject.Edit {
	return inject.On(report, func(m *message) bool {
		return m.Job != nil && m.Job.Type == typ && m.Job.Worker == m.Peer && m.Job.Ended == ""
	}, func(m *message) { m.Job.Creator.Send(report, m.Args...) })
}

// overflows crashes the server if an argument of a submission is long.
func overflows(field int) inject.Edit {
	return inject.Crash(submissions, func(m *message) bool { return len(m.Args[field]) > 512 })
}

// past is a condition: the time of a SUBMIT_JOB_EPOCH has passed.
func past(m *message) bool {
	n, err := strconv.ParseInt(m.Args[2], 10, 64)
	return err == nil && n < time.Now().Unix()
}

// cancels cancels queued jobs when a peer disconnects.
func cancels(which func(m *message, j *job) bool) inject.Edit {
	return inject.On(inject.Closed, nil, func(m *message) {
		for _, j := range m.FindAll(func(j *job) bool { return j.Queued() && which(m, j) }) {
			m.Peer.Give("cancel-job", j.ID)
		}
	})
}
