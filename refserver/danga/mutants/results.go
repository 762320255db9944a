package mutants

import (
	"strings"

	"jobwire/refserver/inject"
)

// assigning are faults of sections "Packet: job_assign_req" and "Packet: job_assign_res", and of the
// jobs of "Task summary".
var assigning = []row{
	{Name: "args-end-at-blank", About: "The server truncates args at the first space.",
		Kills: "assign.name-and-args task.crons create.args", Edit: inject.Rewrite("job_assign_res", 1, nil, inject.UpTo(" "))},
	{Name: "second-no-told-twice", About: "The server sends the second noop reply of a worker twice.",
		Kills: "transport.in-a-segment magic.changes-in-a-byte assign.no-job",
		Edit:  inject.After("job_assign_req", func(m *message) bool { return m.Peer.Refused == 2 && m.Peer.Count["worker_sleep"] == 0 }, "noop")},
	{Name: "running-job-handed-out", About: "The server assigns a running type 0 job to a second worker.",
		Kills: "assign.locked", Edit: assignsInstead(func(m *message) bool { return m.Peer.Job == nil },
			func(p *peer, j *job) bool { return j.Worker != nil && j.Type == sync && p.Does(j.Queue) })},
	{Name: "no-means-later", About: "The server sends a new type 1 job to a worker that got a noop reply, without another request.",
		Kills: "assign.not-pushed", Edit: inject.On("job_create_req", nil, func(m *message) {
			m.Pass()
			for _, w := range m.Peers {
				if rejected(w, m.Job) && m.Job.Type == async {
					w.Send("job_assign_res", m.Job.Queue, m.Job.Data)
				}
			}
		})},
	{Name: "second-end-of-work-untold", About: "The server does not reply with a noop to a worker that has done two jobs.",
		Kills: "dup.empty-key dup.finished-anew order.worker application.only-answers assign.next job.order-of-many",
		Edit:  inject.Drop("noop", func(m *message) bool { return m.Cause == "job_assign_req" && len(m.Peer.Done) == 2 })},
	{Name: "storable-header-stripped", About: "The server removes the header of args that were serialized with Perl's Storable.",
		Kills: "task.mail task.keys", Edit: inject.Rewrite("job_assign_res", 1, nil, func(v string) string { return strings.TrimPrefix(v, "\x04\x0b") })},
	{Name: "name-ends-at-slash", About: "The server truncates a job name at a slash.",
		Kills: "task.crons connect.name-of-one-byte", Edit: inject.Rewrite("job_assign_res", 0, nil, inject.UpTo("/"))},
}

// progressing are faults of the packets of status.
var progressing = []row{
	{Name: "same-progress-untold", About: "The server does not forward progress that has not changed.",
		Kills: "dup.both-wait dup.waits-from-the-middle status.streamed dup.all-wait", Edit: func(s *inject.Server) {
			was := map[*job]string{}
			s.Out("job_status_res", func(m *message) {
				if answer(m) {
					return
				}
				if was[m.Job] == m.Text() {
					m.Drop()
				}
				was[m.Job] = m.Text()
			})
		}},
	{Name: "last-second-untold", About: "The server does not forward progress with a time remaining of one second.",
		Kills: "sync.each-its-own status.at-once status.any-ratio status.numbers", Edit: inject.Drop("job_status_res", func(m *message) bool {
			return m.Cause == "job_status_announce" && m.Job.Progress[8:] == number(1)
		})},
	{Name: "numbers-of-24-bits", About: "The server clears the highest byte of a numerator.",
		Kills: "status.big-endian status.any-ratio status.numbers status.numbers-asked", Edit: inject.Rewrite("job_status_res", 0, nil, func(v string) string { return "\x00" + v[1:] })},
	{Name: "remaining-of-15-bits", About: "The server truncates the time remaining to 15 bits, unless it is unknown.",
		Kills: "status.big-endian status.any-ratio status.numbers", Edit: inject.Rewrite("job_status_res", 2, func(m *message) bool { return m.Args[2] != unknown },
			func(v string) string { return number(numberOf(v) & 0x7fff) })},
	{Name: "ratio-at-most-one", About: "The server replaces a numerator that exceeds its denominator by the denominator.",
		Kills: "status.any-ratio status.numbers status.numbers-asked", Edit: inject.Out("job_status_res", func(m *message) bool { return m.Args[0] > m.Args[1] }, func(m *message) { m.Args[0] = m.Args[1] })},
	{Name: "unknown-time-is-none", About: "The server forwards an unknown time remaining as 0.",
		Kills: "status.time-unknown status.numbers", Edit: inject.Rewrite("job_status_res", 2, func(m *message) bool { return m.Job != nil && m.Job.Reports > 0 && m.Args[2] == unknown },
			inject.To(number(0)))},
	{Name: "second-question-is-progress", About: "The second job_status_res for a queued job shows progress.",
		Kills: "order.application status.none-yet", Edit: func(s *inject.Server) {
			asked := map[*job]int{}
			s.Out("job_status_res", func(m *message) {
				if j := m.Job; j != nil && j.Assigned == 0 {
					m.Args[0] = number(uint32(asked[j]))
					asked[j]++
				}
			})
		}},
	{Name: "assignment-is-progress", About: "job_status_res shows progress for an assigned job without progress.",
		Kills: "status.none-announced",
		Edit:  inject.Rewrite("job_status_res", 0, func(m *message) bool { return answer(m) && m.Job != nil && m.Job.Worker != nil && m.Job.Reports == 0 }, inject.To(number(1)))},
	{Name: "first-progress-stays", About: "job_status_res always shows the first progress of a job.",
		Kills: "status.latest", Edit: inject.Out("job_status_res", func(m *message) bool { return inProgress(m) && m.Job.Reports > 1 },
			func(m *message) { m.Args = progress(m.Job.First) })},
	{Name: "progress-of-the-latest", About: "job_status_res shows the latest progress of any job.",
		Kills: "status.each-its-own", Edit: func(s *inject.Server) {
			var latest *job
			inject.On("job_status_announce", reported, func(m *message) { latest = m.Job })(s)
			inject.Out("job_status_res", inProgress, func(m *message) { m.Args = progress(latest.Progress) })(s)
		}},
	{Name: "finished-is-not-begun", About: "job_status_res shows no progress for a finished job.",
		Kills: "status.finished", Edit: inject.Rewrite("job_status_res", 0, func(m *message) bool { return m.Job != nil && m.Job.Ended != "" }, inject.To(number(0)))},
	{Name: "unknown-status-unanswered", About: "The server does not reply to job_status_req with an unknown handle.",
		Kills: "status.unknown-handle", Edit: inject.Drop("job_status_res", func(m *message) bool { return answer(m) && m.Job == nil })},
	{Name: "progress-without-a-job", About: "The server forwards progress from a worker without a job to the applications of the first job of its name.",
		Kills: "status.no-job", Edit: inject.On("job_status_announce", nil, func(m *message) {
			if other := ofName(m); m.Job == nil && m.Peer.Count["job_assign_req"] == 0 && other != nil {
				m.Drop()
				toWaiting(other, "job_status_res", m.Args...)
			}
		})},
	{Name: "progress-behind-result", About: "The server forwards progress that arrives after the result.",
		Kills: "status.after-result", Edit: inject.On("job_status_announce", func(m *message) bool { return m.Job == nil && len(m.Peer.Done) > 0 }, func(m *message) {
			m.Drop()
			toWaiting(m.Peer.Done[0], "job_status_res", m.Args...)
		})},
}

// finishing are faults of the packets of completion.
var finishing = []row{
	{Name: "a-second-at-most", About: "The server reports an elapsed time of one second for every job.",
		Kills: "complete.elapsed-long", Edit: inject.Rewrite("job_complete_res", 0, nil, func(v string) string { return number(min(1, numberOf(v))) })},
	{Name: "no-time-is-zero", About: "The server sends an elapsed time of 0 to a waiting application if the job took less than a second.",
		Kills: "complete.elapsed",
		Edit:  inject.Rewrite("job_complete_res", 0, func(m *message) bool { return m.Cause == "job_complete_announce" && m.Args[0] == number(1) }, inject.To(number(0)))},
	{Name: "elapsed-little-endian", About: "The server sends the elapsed time in little-endian order.",
		Kills: "complete.elapsed-long complete.elapsed",
		Edit:  inject.Rewrite("job_complete_res", 0, nil, func(v string) string { return string([]byte{v[3], v[2], v[1], v[0]}) })},
	{Name: "result-trimmed", About: "The server removes NUL bytes from the end of a result.",
		Kills: "length.data-like-packets complete.result-binary complete.result-streamed complete.result-asked",
		Edit:  inject.Rewrite("job_complete_res", 2, nil, func(v string) string { return strings.TrimRight(v, "\x00") })},
	{Name: "empty-result-is-a-nul", About: "The reply to job_complete_req has a NUL as data if the result is empty.",
		Kills: "complete.result-empty complete.code-asked complete.result-asked", Edit: inject.Rewrite("job_complete_res", 2, func(m *message) bool {
			return answer(m) && m.Job != nil && m.Job.Ended != "" && m.Args[2] == "" && m.Job.Code == 0
		}, inject.To("\x00"))},
	{Name: "result-of-16-bits", About: "The server truncates results at 65535 bytes.",
		Kills: "complete.result-large complete.result-length", Edit: inject.Rewrite("job_complete_res", 2, nil, func(v string) string { return v[:min(65535, len(v))] })},
	{Name: "code-1-is-success", About: "The server sends result code 1 as 0.",
		Kills: "retry.not-after-error complete.code-streamed complete.code-asked complete.each-its-own complete.result-streamed",
		Edit:  inject.Rewrite("job_complete_res", 1, func(m *message) bool { return m.Args[1] == "\x01" }, inject.To("\x00"))},
	{Name: "codes-of-seven-bits", About: "The server clears the highest bit of result codes.",
		Kills: "complete.code-streamed complete.code-asked complete.result-streamed",
		Edit:  inject.Rewrite("job_complete_res", 1, inject.OfJob(func(*job) bool { return true }), func(v string) string { return string([]byte{v[0] & 0x7f}) })},
	{Name: "code-255-means-running", About: "The server reports a job that ended with code 255 as incomplete.",
		Kills: "complete.code-asked", Edit: incomplete(func(m *message) bool { return m.Job.Code == 255 })},
	{Name: "result-told-again", About: "The server sends the result of a worker's last job again when the worker disconnects.",
		Kills: "retry.not-after-result complete.once",
		Edit: inject.On(inject.Closed, func(m *message) bool { return len(m.Peer.Done) > 0 && m.Peer.Last() == "job_complete_announce" }, func(m *message) {
			j := m.Peer.Done[len(m.Peer.Done)-1]
			toWaiting(j, "job_complete_res", number(1), string([]byte{j.Code}), j.Result)
		})},
	{Name: "result-told-once", About: "The server returns a result only to the first job_complete_req.",
		Kills: "complete.kept complete.each-its-own", Edit: func(s *inject.Server) {
			told := map[*job]bool{}
			incomplete(func(m *message) bool {
				was := told[m.Job]
				told[m.Job] = true
				return was
			})(s)
		}},
	{Name: "result-of-the-latest", About: "The server replies to job_complete_req with the latest result of any job.",
		Kills: "dup.finished-anew complete.each-its-own", Edit: func(s *inject.Server) {
			var latest *job
			inject.On("job_complete_announce", reported, func(m *message) { latest = m.Job })(s)
			s.Out("job_complete_res", func(m *message) {
				if answer(m) && m.Job != nil && m.Job.Ended != "" {
					m.Args[2] = latest.Result
				}
			})
		}},
	{Name: "waiting-unanswered", About: "The server does not reply to job_complete_req for a job that no worker has had.",
		Kills: "order.application sync.async-meanwhile complete.waiting order.many",
		Edit:  inject.Drop("job_complete_res", func(m *message) bool { return answer(m) && m.Job != nil && m.Job.Assigned == 0 })},
	{Name: "all-done-is-complete", About: "The server reports a job with progress of 100% as complete.",
		Kills: "complete.running", Edit: inject.Rewrite("job_complete_res", 0, inject.OfJob(func(j *job) bool {
			return j.Ended == "" && j.Progress != "" && j.Progress[:4] == j.Progress[4:8]
		}), inject.To(number(1)))},
	{Name: "unknown-is-complete", About: "The server reports an unknown job as complete.",
		Kills: "complete.unknown-handle", Edit: inject.Rewrite("job_complete_res", 0, func(m *message) bool { return answer(m) && m.Job == nil }, inject.To(number(1)))},
	{Name: "result-without-a-job", About: "The server applies the result of a worker without a job to the first queued job of its name.",
		Kills: "complete.no-job", Edit: resultOfAny((*job).Queued)},
	{Name: "result-of-anothers-job", About: "The server applies the result of a worker without a job to another worker's job.",
		Kills: "complete.by-another", Edit: resultOfAny((*job).Running)},
	{Name: "second-result-counts", About: "A second result replaces the first one.",
		Kills: "complete.twice", Edit: func(s *inject.Server) {
			second := map[*job]string{}
			s.On("job_complete_announce", func(m *message) {
				if m.Job == nil && len(m.Peer.Done) > 0 {
					second[m.Peer.Done[0]] = m.Args[1]
				}
			})
			s.Out("job_complete_res", func(m *message) {
				if data, ok := second[m.Job]; ok && answer(m) {
					m.Args[2] = data
				}
			})
		}},
}

// resultOfAny applies the result of a worker without a job to a job of its name.
func resultOfAny(which func(j *job) bool) inject.Edit {
	return inject.On("job_complete_announce", nil, func(m *message) {
		if other := ofName(m); m.Job == nil && m.Peer.Count["job_assign_req"] == 0 && other != nil && which(other) {
			m.Drop()
			toWaiting(other, "job_complete_res", number(1), m.Args[0], m.Args[1])
		}
	})
}

// reported is a condition on what a worker sends: it has a job.
func reported(m *message) bool { return m.Job != nil }

// inProgress is a condition on replies: they are about a job with progress that has not ended.
func inProgress(m *message) bool {
	return answer(m) && m.Job != nil && m.Job.Reports > 0 && m.Job.Ended == ""
}
