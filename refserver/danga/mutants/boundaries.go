package mutants

import (
	"slices"
	"strings"

	protocol "jobwire/codec/danga"
	"jobwire/refserver/inject"
)

// boundaries are faults that show with few values only.
var boundaries = []row{
	{Name: "longest-key-cut", About: "The server does not compare the last byte of a key of 4096 bytes.",
		Kills: "dup.key-longer-by-one[n=4095]", Edit: inject.Change("job_create_req", 1, nil, inject.AtMost(4095))},
	{Name: "longest-key-unused", About: "The server runs a duplicate if its key has 4096 bytes.",
		Kills: "dup.key-length[n=4096]", Edit: unkeyed(func(m *message) bool { return len(m.Args[1]) == 4096 })},
	{Name: "tab-key-unused", About: "The server runs a duplicate if its key is a tab.",
		Kills: "dup.key-of-one-byte[c=x09]", Edit: unkeyed(func(m *message) bool { return m.Args[1] == "\t" })},
	{Name: "waiting-duplicate-of-thrown-away-runs", About: "The server runs a type 0 duplicate of a queued type 2 job.",
		Kills: "dup.types[first=2,second=0]", Edit: unkeyed(func(m *message) bool { return m.Job.Queued() && m.Job.Type == throw && m.Args[3] == sync })},
	{Name: "async-duplicate-of-running-runs", About: "The server runs a type 1 duplicate of a running type 0 job.",
		Kills: "dup.types-while-running[first=0,second=1]", Edit: unkeyed(func(m *message) bool { return m.Job.Worker != nil && m.Job.Type == sync && m.Args[3] == async })},
	{Name: "duplicate-63-runs", About: "The server does not detect the 63rd duplicate of a job.",
		Kills: "dup.many[jobs=64]", Edit: unkeyed(func(m *message) bool { return m.Job.Dups == 63 })},
	{Name: "fifteen-waiters", About: "The server sends the result of a job to at most 15 waiting applications.",
		Kills: "dup.all-wait[applications=16]", Edit: inject.Drop("job_complete_res", func(m *message) bool {
			return m.Cause == "job_complete_announce" && slices.Index(m.Job.Clients, m.Peer) == 15
		})},
	{Name: "jobs-leave-with-sleepers", About: "The server drops a queued type 0 job when a sleeping worker disconnects that could not do it.",
		Kills: "retry.idle-worker-leaves[how=closes,state=asleep] retry.idle-worker-leaves[how=resets,state=asleep] retry.idle-worker-leaves[how=half-closes,state=asleep]",
		Edit: inject.On(inject.Closed, func(m *message) bool { return m.Peer.Last() == "worker_sleep" }, func(m *message) {
			for _, j := range m.Jobs {
				if j.Queued() && j.Type == sync && !m.Announced(j.Queue) {
					consume(m.Peer, j.Queue)
				}
			}
		})},
	{Name: "letters-of-eight-bits-fail", About: "The server replies with a failed result to a job_create_req with a byte that is not ASCII.",
		Kills: "text.ascii-name text.ascii-key", Edit: inject.Answer(inject.Illegal, inject.Broken(protocol.RuleASCII, "job_create_req"), "job_complete_res", number(1), "\xff", "")},
	{Name: "byte-ff-fails", About: "The server replies with a failed result to a job_create_req with a byte 0xFF in its key.",
		Kills: "text.ascii-key[byte=ff]", Edit: inject.Answer(inject.Illegal, func(m *message) bool {
			return m.Err.Rule == protocol.RuleASCII && strings.Contains(m.Text(), "k\xff")
		}, "job_complete_res", number(1), "\xff", "")},
	{Name: "name-delete-unheard", About: "The server ignores a worker_connect with the name 0x7F.",
		Kills: "connect.name-of-one-byte[c=x7f]", Edit: inject.Ignore("worker_connect", inject.ArgIs(0, "\x7f"))},
	{Name: "longest-name-unheard", About: "The server ignores a worker_connect with a name of 4096 bytes.",
		Kills: "connect.long-name[n=4096]", Edit: inject.Ignore("worker_connect", func(m *message) bool {
			return slices.ContainsFunc(m.Args, func(name string) bool { return len(name) == 4096 })
		})},
	{Name: "newest-of-33", About: "The server assigns the newest of 33 jobs first.",
		Kills: "job.order-of-many[jobs=33]", Edit: newest(func(_ *peer, queued int) bool { return queued == 32 })},
	{Name: "fifteen-workers", About: "The server assigns no job of a name while 15 workers have jobs of that name.",
		Kills: "job.order-of-many-workers[workers=16]", Edit: inject.Answer("job_assign_req", func(m *message) bool {
			return m.Peer.Job == nil && len(m.Peer.Can) == 1 && len(m.FindAll(func(j *job) bool { return j.Running() && j.Queue == m.Peer.Can[0] })) == 15
		}, "noop")},
	{Name: "type-f0-answered", About: "The server replies to the unknown packet type 0xF0 with a noop.",
		Kills: "type.unused[high=f,low=0]", Edit: inject.Answer(inject.Illegal, func(m *message) bool { return unknownType(m) && m.Frame.Raw[4] == 0xf0 }, "noop")},
	{Name: "flag-128-unanswered", About: "The server does not reply to a type 1 job with the flags 128.",
		Kills: "create.flags[flags=128,type=1]", Edit: inject.Ignore("job_create_req", func(m *message) bool { return m.Args[2] == "\x80" && m.Args[3] == async })},
	{Name: "type-128-thrown-away", About: "The server replies to a job of the unknown type 128 as to a type 2 job.",
		Kills: "create.type-unknown[type=128]", Edit: inject.Answer(inject.Illegal, func(m *message) bool {
			return inject.Broken("danga.create.type-known", "job_create_req")(m) && strings.Contains(m.Text(), "\x80test")
		}, "job_create_res")},
	{Name: "args-of-4096-grow", About: "The server adds a NUL to args of 4096 bytes.",
		Kills: "create.args-length[n=4096]", Edit: inject.Rewrite("job_assign_res", 1, func(m *message) bool { return len(m.Args[1]) == 4096 }, func(v string) string { return v + "\x00" })},
	{Name: "result-of-4096-cut", About: "The server cuts results of 4096 bytes by one.",
		Kills: "complete.result-length[n=4096]", Edit: inject.Rewrite("job_complete_res", 2, func(m *message) bool { return len(m.Args[2]) == 4096 }, inject.AtMost(4095))},
	{Name: "code-127-is-success", About: "The server sends result code 127 as 0.",
		Kills: "complete.code-streamed[code=127] complete.code-asked[code=127]",
		Edit:  inject.Rewrite("job_complete_res", 1, func(m *message) bool { return m.Args[1] == "\x7f" }, inject.To("\x00"))},
	{Name: "magic-of-http-closes", About: "The server closes a connection whose magic is that of an HTTP request.",
		Kills: "magic.values[magic=http]", Edit: inject.Hangup("worker_connect", func(m *message) bool { return strings.HasPrefix(m.Text(), "GET ") })},
	{Name: "report-64-untold", About: "The server does not forward the 64th progress of a job.",
		Kills: "status.many[reports=64]", Edit: inject.Drop("job_status_res", func(m *message) bool { return !answer(m) && m.Job.Reports == 64 })},
	{Name: "numbers-signed", About: "job_status_res shows a numerator of 2147483648 as 0.",
		Kills: "status.numbers[n=2147483648] status.numbers-asked[n=2147483648,others=0] status.numbers-asked[n=2147483648,others=1] status.numbers-asked[n=2147483648,others=4294967295]",
		Edit:  inject.Rewrite("job_status_res", 0, func(m *message) bool { return m.Args[0] == number(1<<31) }, inject.To(number(0)))},
	{Name: "handle-of-4096-complete", About: "The server reports the job with an unknown handle of 4096 bytes as complete.",
		Kills: "complete.unknown-handle[handle=longest]", Edit: inject.Rewrite("job_complete_res", 0, func(m *message) bool {
			return answer(m) && m.Job == nil && len(m.Peer.Request.Args[0]) == 4096
		}, inject.To(number(1)))},
}
