package mutants

import (
	"slices"
	"strings"

	"jobwire/refserver/inject"
)

// jobs are faults of EXPIRE and of what ends it.
var jobs = []row{
	{Name: "a-day-at-most", About: "EXPIRE limits every expiry to one day.",
		Kills: "expire.25-hours expire.kept expire.replaced killed.behind-expire", Edit: inject.Change("EXPIRE", 1, inject.ArgIs(1, "90000"), inject.To("86400"))},
	{Name: "absent-expires", About: "EXPIRE of a key that does not exist replies 1.",
		Kills: "cycle.normal expire.absent", Edit: replaced("EXPIRE", integer(0), integer(1))},
	{Name: "ttl-in-milliseconds", About: "TTL replies in milliseconds.",
		Kills: "cycle.scheduled expire.25-hours expire.kept expire.replaced expire.lock-pushed killed.behind-expire", Edit: inject.On("TTL", nil, rename("PTTL"))},
	{Name: "absent-lives-for-ever", About: "TTL of a key that does not exist replies -1.",
		Kills: "expire.absent expire.gone expire.lock-emptied", Edit: replaced("TTL", integer(-2), integer(-1))},
	{Name: "gone-too-early", About: "A key with an expiry of one second expires after a third of a second.",
		Kills: "expire.gone", Edit: inject.On("EXPIRE", inject.ArgIs(1, "1"), func(m *message) { m.Become("PEXPIRE", m.Args[0], "333") })},
	{Name: "hmset-ends-expiry", About: "HMSET removes the expiry of a hash.",
		Kills: "expire.kept", Edit: before("HMSET", nil, persisted)},
	{Name: "first-expiry-counts", About: "EXPIRE does not change an existing expiry.",
		Kills: "expire.replaced", Edit: inject.On("EXPIRE", args(2), func(m *message) { m.Args = append(m.Args, "NX") })},
	{Name: "expiry-of-the-deleted", About: "A new key inherits the expiry of the deleted key with the same name.",
		Kills: "expire.made-anew", Edit: inherited("DEL", "HMSET")},
	{Name: "set-keeps-expiry", About: "SET does not remove the expiry of a key.",
		Kills: "expire.count-set", Edit: inject.On("SET", nil, func(m *message) { m.Args = append(m.Args, "KEEPTTL") })},
	{Name: "lpush-ends-expiry", About: "LPUSH removes the expiry of a list.",
		Kills: "expire.lock-pushed", Edit: before("LPUSH", nil, persisted)},
	{Name: "expiry-of-the-emptied", About: "A new list inherits the expiry of the emptied list with the same name.",
		Kills: "expire.lock-emptied", Edit: inherited("BRPOP", "LPUSH")},
	{Name: "empty-lists-exist", About: "A list still exists after its last element was removed.",
		Kills: "expire.queue-emptied", Edit: inject.Both(
			remembers("LPUSH"),
			inject.Answer("EXISTS", remembered(0), integer(1)))},
	{Name: "bad-expiry-is-0", About: "EXPIRE deletes the key if the time is not a number.",
		Kills: "expire.no-number", Edit: inject.Change("EXPIRE", 1, inject.ArgIs(1, "soon"), inject.To("0"))},
}

func persisted(m *message) []string { return []string{"PERSIST", m.Args[0]} }

// inherited restores the expiry of a key that one command removes when the other creates the key again.
func inherited(removes, creates string) inject.Edit {
	return func(s *inject.Server) {
		left := map[string]int{}
		s.On(removes, func(m *message) {
			if seconds := whole(ask(m.Peer, "TTL", m.Args[0])); seconds > 0 {
				left[m.Args[0]] = seconds
			}
		})
		after(creates, func(m *message) bool { return absent(m) && left[m.Args[0]] > 0 }, func(m *message) []string {
			return []string{"EXPIRE", m.Args[0], inject.Decimal(left[m.Args[0]])}
		})(s)
	}
}

// lost are servers that react to workers that disconnect: each for
// one step of a job.
var lost = []row{
	{Name: "popped-job-queued-again", About: "The server queues a job again when its worker disconnects.",
		Kills: "killed.behind-brpop killed.behind-start killed.behind-busy", Edit: func(s *inject.Server) {
			s.Out("*", func(m *message) {
				if v := values(m.Text()); len(v) == 2 && m.Peer.Asked() == "BRPOP" && strings.HasPrefix(v[0], "queue:") && !isPush(m.Frame.Raw) {
					m.Peer.List = v
				}
			})
			s.On("HMSET", func(m *message) {
				if slices.Contains(m.Args, "output") {
					m.Peer.List = nil
				}
			})
			s.On(inject.Closed, func(m *message) {
				if job := m.Peer.List; job != nil {
					ask(m.Peer, "RPUSH", job[0], job[1])
				}
			})
		}},
	{Name: "taken-job-scheduled-again", About: "The server schedules a job again when its worker disconnects.",
		Kills: "killed.behind-evalsha", Edit: func(s *inject.Server) {
			retold("EVALSHA", func(m *message, reply string) string {
				m.Peer.List = values(reply)
				return reply
			})(s)
			s.On("HMSET", func(m *message) { m.Peer.List = nil })
			s.On(inject.Closed, func(m *message) {
				if job := m.Peer.List; len(job) == 2 && m.Peer.Asked() == "EVALSHA" && strings.HasPrefix(job[0], "queue:") {
					ask(m.Peer, "ZADD", job[0], "1000", job[1])
				}
			})
		}},
	{Name: "start-makes-busy", About: "A published start event sets the status of the job.",
		Kills: "killed.behind-start", Edit: published("start", func(p *peer, key string) { ask(p, "HSET", key, "status", "busy") })},
	{Name: "busy-job-expires", About: "The hash of a busy job expires when its worker disconnects.",
		Kills: "killed.behind-busy", Edit: leavingBehind("HMSET", "busy", func(p *peer, key string) { ask(p, "EXPIRE", key, "10") })},
	{Name: "progress-undone", About: "The server removes the progress of a job when its worker disconnects.",
		Kills: "killed.behind-input", Edit: leavingBehind("HMSET", "status:dividend", func(p *peer, key string) { ask(p, "HDEL", key, "status:dividend") })},
	{Name: "output-expires-by-itself", About: "A hash with the field output expires without EXPIRE.",
		Kills: "killed.behind-done", Edit: after("HMSET", func(m *message) bool { return slices.Contains(m.Args, "output") },
			func(m *message) []string { return []string{"EXPIRE", m.Args[0], "90000"} })},
	{Name: "expiry-undone", About: "The server removes the last expiry that a worker has set when the worker disconnects.",
		Kills: "killed.behind-expire", Edit: leavingBehind("EXPIRE", "90000", func(p *peer, key string) { ask(p, "PERSIST", key) })},
	{Name: "finish-wakes", About: "A published finish event ends the BRPOP of clients that wait for the job.",
		Kills: "cycle.normal cycle.pipelined killed.behind-finish",
		Edit:  published("finish", func(p *peer, key string) { ask(p, "LPUSH", "lock:"+strings.TrimPrefix(key, "job:"), "OK") })},
	{Name: "lock-undone", About: "The server removes the last lock that a worker has pushed when the worker disconnects.",
		Kills: "killed.behind-lock", Edit: leavingBehind("LPUSH", "OK", func(p *peer, key string) { ask(p, "DEL", key) })},
}

// published calls do with the job of an event.
func published(event string, do func(p *peer, key string)) inject.Edit {
	return inject.On("PUBLISH", nil, func(m *message) {
		m.Pass()
		if id, ok := strings.CutPrefix(m.Args[len(m.Args)-1], event+":"); ok {
			do(m.Peer, "job:"+strings.TrimPrefix(m.Args[0], "channel:")+":"+id)
		}
	})
}

// leavingBehind calls do with the key of the last command of a peer that disconnects, if it was that
// command, with the word.
func leavingBehind(command, word string, do func(p *peer, key string)) inject.Edit {
	return inject.On(inject.Closed, func(m *message) bool {
		return m.Peer.Asked() == command && slices.Contains(m.Peer.Request.Args, word)
	}, func(m *message) { do(m.Peer, m.Peer.Request.Args[0]) })
}
