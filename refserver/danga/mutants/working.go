package mutants

import (
	"slices"
	"strings"
	"time"

	"jobwire/refserver/inject"
)

// abilities are faults of sections "Packet: worker_connect" and "Packet: worker_disconnect".
var abilities = []row{
	{Name: "idle-worker-gets-others-jobs", About: "The server assigns a job of another name to a worker if no job of its names is queued.",
		Kills: "connect.capabilities", Edit: assignsInstead(func(m *message) bool {
			return m.Peer.Job == nil && len(m.Peer.Done) == 1 && m.Peer.Count["worker_connect"] == 1
		},
			func(p *peer, j *job) bool { return j.Queued() && !p.Does(j.Queue) && j.Creator == p.Done[0].Creator })},
	{Name: "one-name-of-three", About: "The server uses only the first of three names in worker_connect.",
		Kills: "connect.several task.one-worker connect.long-name", Edit: inject.On("worker_connect", func(m *message) bool { return len(m.Args) == 3 }, func(m *message) { m.Args = m.Args[:1] })},
	{Name: "thirty-two-names", About: "The server uses only the first 32 names in worker_connect.",
		Kills: "connect.many", Edit: inject.On("worker_connect", nil, func(m *message) { m.Args = m.Args[:min(32, len(m.Args))] })},
	{Name: "names-in-any-case", About: "The server ignores letter case when it compares names.",
		Kills: "connect.whole-name connect.long-name connect.name-of-one-byte", Edit: inject.On("worker_connect", nil, func(m *message) {
			for i, name := range m.Args {
				m.Args[i] = strings.ToLower(name)
			}
		})},
	{Name: "names-of-64-letters", About: "The server truncates names in job_assign_res at 64 bytes.",
		Kills: "connect.long-name", Edit: inject.Rewrite("job_assign_res", 0, nil, func(v string) string { return v[:min(64, len(v))] })},
	{Name: "unannounced-gets-all", About: "The server assigns any job to a worker that has not sent worker_connect.",
		Kills: "connect.not-yet", Edit: assignsInstead(func(m *message) bool { return m.Peer.Count["worker_connect"] == 0 },
			func(_ *peer, j *job) bool { return j.Queued() })},
	{Name: "empty-list-is-all", About: "The server assigns any job to a worker that has sent an empty list of names.",
		Kills: "connect.empty-list", Edit: assignsInstead(func(m *message) bool {
			return m.Peer.Count["worker_connect"] > 0 && len(m.Peer.Can) == 0 && !m.Peer.Goodbye
		},
			func(_ *peer, j *job) bool { return j.Queued() })},
	{Name: "lists-add-up", About: "A second worker_connect adds names instead of replacing the list.",
		Kills: "connect.replaces", Edit: inject.On("worker_connect", nil, func(m *message) {
			m.Peer.Announced = append(m.Peer.Announced, m.Args...)
			m.Args = m.Peer.Announced
		})},
	{Name: "list-given-twice-works-twice", About: "The server assigns the last job twice to a worker that has sent the same list twice.",
		Kills: "connect.again", Edit: assignsInstead(func(m *message) bool { return m.Peer.Count["worker_connect"] == 2 && len(m.Peer.Done) == 1 },
			func(p *peer, j *job) bool {
				return slices.Contains(p.Done, j) && p.Does(j.Queue) && p.Refused == 1 && j.Type == throw
			})},
	{Name: "list-drops-job", About: "The server drops the job of a worker that sends worker_connect again.",
		Kills: "connect.with-a-job", Edit: inject.On("worker_connect", inject.OfJob(func(*job) bool { return true }), func(m *message) { m.Peer.Give("worker_disconnect") })},

	// Goodbyes.
	{Name: "goodbye-to-sleeper-unheard", About: "The server ignores worker_disconnect of a sleeping worker.",
		Kills: "disconnect.no-jobs", Edit: inject.Ignore("worker_disconnect", func(m *message) bool { return m.Peer.Last() == "worker_sleep" })},
	{Name: "goodbye-forgets-nothing", About: "The server assigns jobs to a worker after worker_disconnect.",
		Kills: "disconnect.asks", Edit: assignsInstead(func(m *message) bool { return m.Peer.Goodbye },
			func(_ *peer, j *job) bool { return j.Queued() })},
	{Name: "goodbye-keeps-job", About: "A worker keeps its job after worker_disconnect.",
		Kills: "retry.goodbye", Edit: inject.Ignore("worker_disconnect", inject.OfJob(func(*job) bool { return true }))},
	{Name: "goodbye-is-for-ever", About: "The server ignores worker_connect after worker_disconnect.",
		Kills: "disconnect.anew", Edit: inject.Ignore("worker_connect", func(m *message) bool { return m.Peer.Count["worker_disconnect"] > 0 })},
	{Name: "goodbye-silences-sleepers", About: "After a worker_disconnect the server wakes no sleeping workers.",
		Kills: "disconnect.another", Edit: func(s *inject.Server) {
			said := false
			s.On("worker_disconnect", func(m *message) { said = said || m.Peer.Count["worker_sleep"] == 0 })
			inject.Drop("noop", asWake(func(*message) bool { return said }))(s)
		}},
}

// asWake is a condition on noops: one wakes a worker for a new job, or for a job that was submitted when a
// sleeping worker sent worker_sleep again. m.Job of when is that job.
func asWake(when inject.When) inject.When {
	return func(m *message) bool {
		about := *m
		switch {
		case m.Cause == "worker_sleep" && m.Peer.Count["worker_sleep"] > 1:
			about.Job = m.Find(func(j *job) bool { return j.Queued() && m.Peer.Does(j.Queue) })
		case m.Cause != "job_create_req":
			about.Job = nil
		}
		return about.Job != nil && when(&about)
	}
}

// sleeping are faults of section "Packet: worker_sleep".
var sleeping = []row{
	{Name: "asked-once-not-woken", About: "The server does not wake a worker that has sent one job_assign_req before it slept.",
		Kills: "sleep.wakes", Edit: inject.Drop("noop", asWake(func(m *message) bool { return m.Peer.Count["job_assign_req"] == 1 }))},
	{Name: "sync-does-not-wake", About: "The server does not wake a worker for a type 0 job if the worker has never sent job_assign_req.",
		Kills: "sleep.wakes-at-once", Edit: inject.Drop("noop", asWake(func(m *message) bool { return m.Peer.Count["job_assign_req"] == 0 && m.Job.Type == sync }))},
	{Name: "first-name-wakes", About: "The server wakes a worker only for the first of its names.",
		Kills: "sleep.wakes-for-any-name", Edit: inject.Drop("noop", asWake(func(m *message) bool { return m.Peer.Can[0] != m.Job.Queue }))},
	{Name: "woken-once-in-its-life", About: "The server wakes each worker only once.",
		Kills: "sleep.wakes-again", Edit: inject.Drop("noop", asWake(func(m *message) bool { return m.Peer.Woken > 1 }))},
	{Name: "sleeps-with-its-first-list", About: "The server wakes a worker for the names of its first worker_connect, not of its latest.",
		Kills: "sleep.wakes-for-the-new-list", Edit: inject.Drop("noop", asWake(func(m *message) bool { return m.Peer.Count["worker_connect"] > 1 }))},
	{Name: "job-kept-for-the-first-woken", About: "Of two workers that the server has woken, it assigns the job only to the first.",
		Kills: "sleep.each", Edit: func(s *inject.Server) {
			var first *peer
			s.Out("noop", func(m *message) {
				if m.Cause == "job_create_req" && (first == nil || m.Peer.ID() < first.ID()) {
					first = m.Peer
				}
			})
			inject.Answer("job_assign_req", func(m *message) bool {
				return first != nil && m.Peer != first && m.Peer.Woken > 0 && first.Idle
			}, "noop")(s)
		}},
	{Name: "old-job-does-not-wake", About: "The server wakes no worker that goes to sleep while a job is queued.",
		Kills: "sleep.late", Edit: inject.Drop("noop", inject.CauseIs("worker_sleep"))},
	{Name: "sleeper-gets-others-jobs", About: "The server assigns a job of another name to a worker that sends job_assign_req while asleep.",
		Kills: "sleep.not-for-others", Edit: assignsInstead(func(m *message) bool {
			return m.Peer.Count["worker_sleep"] > 0 && m.Peer.Woken == 0 && m.Peer.Job == nil
		},
			func(p *peer, j *job) bool { return j.Queued() && !p.Does(j.Queue) })},
	{Name: "newest-for-the-woken", About: "The server assigns the newest instead of the oldest job to a worker that it has woken.",
		Kills: "sleep.once", Edit: newest(func(p *peer, queued int) bool { return p.Woken == 1 && len(p.Done) == 0 && queued > 0 })},
	{Name: "waking-worker-told", About: "The server sends a noop for a new job to a worker that is not asleep.",
		Kills: "connect.replaces sleep.not-awake", Edit: inject.On("job_create_req", nil, func(m *message) {
			m.Pass()
			for _, w := range m.Peers {
				if rejected(w, m.Job) && w.Job == nil && m.Job.Type == throw {
					w.Send("noop")
				}
			}
		})},
	{Name: "busy-worker-told", About: "The server sends a noop for another new job to a worker that is working on a job.",
		Kills: "sleep.not-at-work", Edit: inject.On("job_create_req", nil, func(m *message) {
			m.Pass()
			for _, w := range m.Peers {
				if w.Does(m.Job.Queue) && w.Woken > 0 && w.Job != nil {
					w.Send("noop")
				}
			}
		})},
	{Name: "asking-does-not-end-sleep", About: "The server still treats a worker as asleep after job_assign_req.",
		Kills: "sleep.by-itself", Edit: inject.On("job_assign_req", nil, func(m *message) {
			m.Pass()
			if p := m.Peer; p.Count["worker_sleep"] > 0 && p.Woken == 0 && p.Job == nil {
				p.Give("worker_sleep")
			}
		})},
	{Name: "job-follows-noop", About: "The server sends the job to a worker that does not send job_assign_req soon after it was woken.",
		Kills: "sleep.once sleep.no-push", Edit: inject.Out("noop", inject.CauseIs("job_create_req"), func(m *message) {
			m.Peer.Later(55*time.Millisecond, func() {
				if m.Peer.Idle && m.Job.Queued() {
					m.Peer.Send("job_assign_res", m.Job.Queue, m.Job.Data)
				}
			})
		})},
	{Name: "job-leaves-with-the-woken", About: "The server drops a job when a worker that was woken for it disconnects.",
		Kills: "sleep.leaves", Edit: inject.On(inject.Closed, nil, func(m *message) {
			if p := m.Peer; p.Idle && p.Job == nil && len(p.Can) > 0 && len(queue(m, p.Can[0])) == 1 {
				consume(p, p.Can[0])
			}
		})},
	{Name: "sleep-fails-job", About: "The job of a worker fails if the worker sends worker_sleep.",
		Kills: "sleep.with-a-job",
		Edit:  inject.On("worker_sleep", inject.OfJob(func(*job) bool { return true }), func(m *message) { m.Peer.Give("job_complete_announce", "\xff", "") })},
}

// creating are faults of sections "Packet: job_create_req" and "Packet: job_create_res".
var creating = []row{
	{Name: "lonely-waiter-told", About: "The server sends a job_status_res without progress to a waiting application while no worker is connected.",
		Kills: "create.sync", Edit: ifAlone(sync, "job_status_res", number(0), number(1), number(0))},
	{Name: "lonely-async-told", About: "The server sends an incomplete job_complete_res to the application of a type 1 job while no worker is connected.",
		Kills: "create.async", Edit: ifAlone(async, "job_complete_res", number(0), "\x00", "")},
	{Name: "lonely-thrown-away-told", About: "The server sends job_create_res twice for a type 2 job while no worker is connected.",
		Kills: "create.thrown-away", Edit: ifAlone(throw, "job_create_res")},
	{Name: "handles-per-connection", About: "The server gives the first job of every application the same handle.",
		Kills: "create.handles-distinct", Edit: otherHandle(func(m *message, o *job) bool {
			return o != m.Job && o.Creator != m.Peer && len(m.Peer.Created) == 1
		})},
	{Name: "handle-used-again", About: "The server reuses the handle of a finished job.",
		Kills: "dup.finished-anew create.handles-distinct task.one-worker", Edit: otherHandle(func(m *message, o *job) bool { return o.Ended != "" && o.ID != m.Args[0] })},
	{Name: "unknown-job-type-thrown-away", About: "The server replies to a job of an unknown type as to a type 2 job.",
		Kills: "create.type-unknown", Edit: inject.Answer(inject.Illegal, inject.Broken("danga.create.type-known", "job_create_req"), "job_create_res")},
	{Name: "job-with-flags-unanswered", About: "The server does not reply to a type 2 job with an odd flags value.",
		Kills: "create.flags create.flags-do-nothing", Edit: inject.Ignore("job_create_req", func(m *message) bool { return m.Args[2][0]&1 != 0 })},
	{Name: "flag-forces-job", About: "The server runs a duplicate if the second bit of its flags is set.",
		Kills: "create.flags-do-nothing", Edit: inject.Change("job_create_req", 1, inject.ArgIs(2, "\x02"), inject.To(""))},
	{Name: "no-args-is-a-nul", About: "The server assigns a job without args with a NUL as args.",
		Kills: "create.args-none task.keys task.one-worker create.args", Edit: inject.Rewrite("job_assign_res", 1, func(m *message) bool { return m.Args[1] == "" }, inject.To("\x00"))},
	{Name: "args-trimmed", About: "The server removes NUL bytes from the end of args.",
		Kills: "retry.all-the-args length.data-like-packets create.args-binary create.args",
		Edit:  inject.Rewrite("job_assign_res", 1, nil, func(v string) string { return strings.TrimRight(v, "\x00") })},
	{Name: "args-of-16-bits", About: "The server truncates args at 65535 bytes.",
		Kills: "create.args-large create.args-length", Edit: inject.Rewrite("job_assign_res", 1, nil, func(v string) string { return v[:min(65535, len(v))] })},
	{Name: "jobs-leave-with-workers", About: "The server drops a queued type 0 job when a worker disconnects that could not do it.",
		Kills: "job.waits retry.idle-worker-leaves", Edit: inject.On(inject.Closed, func(m *message) bool { return m.Peer.Count["job_assign_req"] > 0 && len(m.Peer.Done) == 0 }, func(m *message) {
			for _, j := range m.Jobs {
				if j.Queued() && j.Type == sync && !m.Announced(j.Queue) {
					consume(m.Peer, j.Queue)
				}
			}
		})},
	{Name: "newest-of-four", About: "The server assigns the newest of four jobs first.",
		Kills: "job.order job.order-of-many job.order-of-many-workers", Edit: newest(func(_ *peer, queued int) bool { return queued == 3 })},
	{Name: "newest-of-three", About: "The server assigns the newest of three jobs first.",
		Kills: "dup.whole-key job.order job.order-of-workers job.order-of-many job.order-of-many-workers", Edit: newest(func(_ *peer, queued int) bool { return queued == 2 })},
}

// ifAlone sends an application a message after the reply to its only job of a type, if no other peer
// ever connected.
func ifAlone(typ string, name string, values ...string) inject.Edit {
	return inject.On("job_create_req", nil, func(m *message) {
		m.Pass()
		if m.Job.Type != typ || m.Job.Dups > 0 || m.Opened > 1 {
			return
		}
		m.Peer.Later(40*time.Millisecond, func() {
			if m.Opened == 1 && len(m.Peer.Created) == 1 && m.Peer.Last() == "job_create_req" {
				m.Peer.Send(name, values...)
			}
		})
	})
}

// newest assigns the args of the newest queued job, if is holds of the worker and the number of queued jobs of the name.
func newest(is func(p *peer, queued int) bool) inject.Edit {
	return inject.Out("job_assign_res", func(m *message) bool { return m.Peer.Job != nil }, func(m *message) {
		if all := queue(m, m.Peer.Job.Queue); is(m.Peer, len(all)) {
			m.Args[1] = all[len(all)-1].Data
		}
	})
}

// rejected reports whether the worker has asked for a job of the name once, and has got none.
func rejected(p *peer, j *job) bool {
	return p.Does(j.Queue) && p.Count["worker_sleep"] == 0 && p.Refused == 1 && len(p.Done) == 0
}

// otherHandle sends the handle of another job, if there is one for which is holds.
func otherHandle(is func(m *message, o *job) bool) inject.Edit {
	return inject.Out("job_create_res", func(m *message) bool { return len(m.Args) > 0 && m.Job.Dups == 0 }, func(m *message) {
		if other := m.Find(func(o *job) bool { return o.ID != "" && is(m, o) }); other != nil {
			m.Args[0] = other.ID
		}
	})
}
