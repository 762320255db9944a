package mutants

import (
	"time"

	"jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// inGo are faults that no fault script can describe.
var inGo = []mutantSpec{
	{Name: "timeout-in-hours", About: "The server reads the timeout in CAN_DO_TIMEOUT as hours.",
		KilledBy: "timeout.fails timeout.late-result timeout.two-jobs timeout.fails-uniq after.late-packet after.late-status after.known after.another-worker after.every-client after.next-job after.same-unique-id after.background", New: with(gearman.Options{TimeoutUnit: time.Hour})},
	{Name: "timeout-in-nanoseconds", About: "The server reads the timeout in CAN_DO_TIMEOUT as nanoseconds.",
		KilledBy: "timeout.in-time timeout.values timeout.announces",
		New:      with(gearman.Options{TimeoutUnit: time.Nanosecond})},
	{Name: "lost-job-fails", About: "A job fails when its worker disconnects, instead of being assigned again.",
		KilledBy: "retry.client-waits retry.after-data retry.background retry.twice retry.lost-worker-returns field.retry-same-handle " +
			"field.retry-wakes field.retry-two-jobs retry.worker-leaves retry.high-first",
		New: with(gearman.Options{Retries: 1})},
	{Name: "one-retry", About: "A job fails when its second worker disconnects, instead of being assigned again.",
		KilledBy: "retry.twice", New: with(gearman.Options{Retries: 2})},
	{Name: "retried-high-is-normal", About: "The server queues a job of high priority with normal priority when its worker disconnects.",
		KilledBy: "retry.high-first", Edit: inject.On(inject.Closed, nil, func(m *message) {
			for _, j := range m.Peer.Jobs() {
				if j.Type == "SUBMIT_JOB_HIGH" && !j.Creator.Left {
					m.Peer.InjectSilently("WORK_FAIL", j.ID)
					j.Creator.Ask("SUBMIT_JOB", j.Queue, j.Unique, j.Data)
				}
			}
		})},
}
