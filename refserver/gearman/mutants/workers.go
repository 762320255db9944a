package mutants

import (
	"time"

	"jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// workers are faults of section "Worker Requests".
var workers = []row{
	{Name: "others-jobs-when-idle", About: "The server assigns a worker a job for a function that it has not registered if no other job is queued.",
		Kills: "worker.can-do wake.only-able", Edit: inject.On("GRAB_JOB", nil, func(m *message) {
			var other *job
			if p := m.Peer; len(p.Can) > 0 && len(p.Announced) == 1 {
				other = m.Find(func(j *job) bool { return j.Queued() && !m.Announced(j.Queue) })
			}
			if other != nil {
				m.Peer.Ask("CAN_DO", other.Queue)
				m.Pass()
				m.Peer.Ask("CANT_DO", other.Queue)
			}
		})},
	{Name: "one-function-once-busy", About: "After its first result, the server assigns a worker only jobs of that function.",
		Kills: "worker.can-do-two", Edit: inject.On("WORK_COMPLETE", nil, func(m *message) {
			m.Pass()
			for _, fn := range m.Peer.Announced {
				if m.Job != nil && m.Job.Worker == m.Peer && fn != m.Job.Queue {
					m.Peer.Give("CANT_DO", fn)
				}
			}
		})},
	{Name: "abilities-counted", About: "A function that was registered twice needs two CANT_DO packets.",
		Kills: "worker.can-do-again", Edit: func(s *inject.Server) {
			type ability struct {
				p  *peer
				fn string
			}
			counts := map[ability]int{}
			s.On("CAN_DO", func(m *message) { counts[ability{m.Peer, m.Args[0]}]++ })
			inject.Ignore("CANT_DO", func(m *message) bool {
				a := ability{m.Peer, m.Args[0]}
				counts[a]--
				return counts[a] > 0
			})(s)
		}},
	{Name: "cant-do-resets", About: "The server removes all functions of a worker on CANT_DO.",
		Kills: "worker.cant-do", Fault: "retype CANT_DO RESET_ABILITIES"},
	{Name: "cant-do-passed-over", About: "The server ignores CANT_DO.",
		Kills: "worker.can-do-again worker.cant-do worker.of-one-connection timeout.announces wake.not-after-cant-do admin.status-workers", Fault: "drop CANT_DO"},
	{Name: "unannounced-cant-do-closes", About: "The server closes the connection on CANT_DO for a function that was not registered.",
		Kills: "worker.cant-do-unannounced", Edit: inject.Hangup("CANT_DO", func(m *message) bool { return !m.Peer.Does(m.Args[0]) })},
	{Name: "cant-do-fails-the-job", About: "The server fails the running job of a worker that sends CANT_DO for its function.",
		Kills: "worker.cant-do-while-running", Edit: inject.On("CANT_DO", nil, func(m *message) {
			for _, j := range m.Peer.Jobs() {
				if j.Queue == m.Args[0] {
					m.Peer.Give("WORK_FAIL", j.ID)
				}
			}
		})},
	{Name: "reset-passed-over", About: "The server ignores RESET_ABILITIES.",
		Kills: "worker.reset worker.reset-and-again", Fault: "drop RESET_ABILITIES"},
	{Name: "reset-for-good", About: "The server ignores CAN_DO after RESET_ABILITIES.",
		Kills: "worker.reset-and-again", Edit: inject.Ignore("CAN_DO", func(m *message) bool { return m.Peer.Count["RESET_ABILITIES"] > 0 })},
	{Name: "cant-do-for-all", About: "The server applies CANT_DO of one worker to all workers.",
		Kills: "worker.of-one-connection admin.status-workers", Edit: inject.On("CANT_DO", nil, func(m *message) {
			m.Drop()
			for _, p := range m.Peers {
				p.Give("CANT_DO", m.Args[0])
			}
		})},

	// Timeouts.
	{Name: "timeout-in-hours", About: "The server reads the timeout in CAN_DO_TIMEOUT as hours.",
		Kills: "timeout.fails timeout.late-result", New: with(gearman.Options{TimeoutUnit: time.Hour})},
	{Name: "timeout-in-nanoseconds", About: "The server reads the timeout in CAN_DO_TIMEOUT as nanoseconds.",
		Kills: "timeout.in-time timeout.announces", New: with(gearman.Options{TimeoutUnit: time.Nanosecond})},
	{Name: "late-result-told", About: "The server sends a result to the client that arrives after the job's timeout.",
		Kills: "timeout.late-result", Edit: inject.On("WORK_COMPLETE", inject.OfJob(func(j *job) bool { return j.Ended == "timeout" }), resultToCreator)},
	{Name: "timed-ability-kept", About: "CANT_DO does not remove a function that was registered with CAN_DO_TIMEOUT.",
		Kills: "timeout.announces", Edit: inject.Ignore("CANT_DO", func(m *message) bool { return m.Peer.Count["CAN_DO_TIMEOUT"] > 0 })},
	{Name: "can-do-timeout-passed-over", About: "The server ignores CAN_DO_TIMEOUT.",
		Kills: "timeout.fails timeout.late-result timeout.in-time timeout.announces", Fault: "drop CAN_DO_TIMEOUT"},

	// Sleeping and waking.
	{Name: "background-does-not-wake", About: "The server wakes no worker for a background job.",
		Kills: "wake.background wake.again", Edit: inject.Drop("NOOP", func(m *message) bool { return submission(m.Cause) && detached(m.Cause) })},
	{Name: "foreground-does-not-wake", About: "The server wakes no worker for a foreground job.",
		Kills: "wake.sleeper wake.second-function wake.not-after-grab submit.created-first example.walkthrough retry.before-grab", Fault: ordered,
		Edit: inject.Drop("NOOP", inject.CauseIs("SUBMIT_JOB"))},
	{Name: "second-sleeper-told-no-job", About: "The server wakes one sleeping worker and sends NO_JOB to the next.",
		Kills: "wake.two-sleepers grab.woken-together", Edit: func(s *inject.Server) {
			woken := 0 // the message for which a worker was woken last
			s.Out("NOOP", func(m *message) {
				if woken == m.Heard {
					m.Become("NO_JOB")
				}
				woken = m.Heard
			})
		}},
	{Name: "first-function-wakes", About: "The server wakes a worker only for jobs of the first function that it registered.",
		Kills: "wake.second-function", Edit: inject.Drop("NOOP", func(m *message) bool { return submission(m.Cause) && m.Peer.Announced[0] != m.Request.Args[0] })},
	{Name: "woken-once", About: "The server wakes each worker only once.",
		Kills: "wake.again", Fault: "drop NOOP nth=2"},
	{Name: "newcomer-woken", About: "The server sends NOOP to a worker that has registered a function, but has not sent PRE_SLEEP.",
		Kills: "wake.not-awake", Edit: wakes(func(p *peer) bool { return p.Count["GRAB_JOB"]+p.Count["GRAB_JOB_UNIQ"]+p.Count["GRAB_JOB_ALL"] == 0 })},
	{Name: "asleep-until-no-job", About: "The server still treats a worker as asleep after it has sent GRAB_JOB and got a job.",
		Kills: "wake.not-after-grab", Edit: wakes(func(p *peer) bool { return p.Count["PRE_SLEEP"] > 0 && !p.Asleep })},

	// The rest.
	{Name: "client-id-forgotten", About: "The server ignores SET_CLIENT_ID.",
		Kills: "worker.client-id worker.client-id-anew admin.workers", Fault: "drop SET_CLIENT_ID"},
	{Name: "first-client-id-stays", About: "The server ignores SET_CLIENT_ID if the worker has an ID already.",
		Kills: "worker.client-id-anew", Fault: "drop SET_CLIENT_ID nth=2"},
	{Name: "all-yours-wakes", About: "The server replies to ALL_YOURS with NOOP.",
		Kills: "worker.all-yours", Fault: "answer ALL_YOURS NOOP"},
	{Name: "warning-of-no-job-passed-over", About: "The server does not reply to WORK_WARNING with an unknown handle.",
		Kills: "worker.unknown-handle", Edit: inject.Ignore("WORK_WARNING", func(m *message) bool { return m.Job == nil })},
}

// ordered makes the server notice what a worker sent before a client submitted a job.
const ordered = "delay SUBMIT_JOB 30ms"

// wakes sends NOOP for a submission to workers that the machine does not wake.
func wakes(which func(p *peer) bool) inject.Edit {
	return inject.On(submissions, nil, func(m *message) {
		var extra []*peer
		for _, p := range m.Peers {
			if p.Does(m.Args[0]) && which(p) && !(p.Asleep && p.Woken == 0) {
				extra = append(extra, p)
			}
		}
		m.Pass()
		for _, p := range extra {
			p.Send("NOOP")
		}
	})
}
