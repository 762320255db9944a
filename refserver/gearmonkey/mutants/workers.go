package mutants

import (
	"slices"
	"strings"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/refserver/inject"
)

// counts are faults of the counts of workers.
var counts = []row{
	{Name: "no-count-is-0", About: "GET of a key that does not exist replies 0.",
		Kills: "uid.rises count.missing request.pipelined request.resp2 inline.served", Edit: replaced("GET", null, bulk("0"))},
	{Name: "decr-tells-what-was", About: "DECR replies with the value before the decrement.",
		Kills: "count.up-and-down count.per-function count.below-zero cycle.normal", Edit: retold("DECR", func(m *message, reply string) string {
			if reply[0] == ':' {
				return integer(whole(reply) + 1)
			}
			return reply
		})},
	{Name: "workers-share-a-count", About: "The server counts a worker's second function as its first.",
		Kills: "count.per-function", Edit: likeFirst("INCR DECR GET", func(m *message) string {
			if m.Name == "GET" {
				return ""
			}
			return prefixed(m.Args[0], "count:")
		})},
	{Name: "workers-counted-as-jobs", About: "The worker count and the job IDs of a function share one counter.",
		Kills: "uid.rises uid.beyond-32-bits uid.greatest uid.no-integer count.not-the-uid cycle.normal request.pipelined",
		Edit:  inject.Change("INCR", 0, key("uid:"), func(v string) string { return "count:" + v[len("uid:"):] })},
	{Name: "count-stops-at-0", About: "DECR does not go below 0.",
		Kills: "count.below-zero", Edit: inject.Answer("DECR", absent, integer(0))},
	{Name: "lost-worker-uncounted", About: "The server decrements the worker count when a worker disconnects.",
		Kills: "count.lost-worker count.lost-by-reset killed.before-popping", Edit: func(s *inject.Server) {
			inject.On("INCR", key("count:"), listed)(s)
			s.On("DECR", func(m *message) {
				if i := slices.Index(m.Peer.List, m.Args[0]); i >= 0 {
					m.Peer.List = slices.Delete(m.Peer.List, i, i+1)
				}
			})
			s.On(inject.Closed, func(m *message) {
				for _, k := range m.Peer.List {
					ask(m.Peer, "DECR", k)
				}
			})
		}},
	{Name: "set-is-no-counter", About: "INCR of a counter that was set with SET starts at 1.",
		Kills: "uid.beyond-32-bits count.set", Edit: func(s *inject.Server) {
			set := map[string]bool{}
			s.On("SET", func(m *message) { set[m.Args[0]] = true })
			s.On("INCR", func(m *message) {
				if set[m.Args[0]] && strings.Trim(values(ask(m.Peer, "GET", m.Args[0]))[0], "0123456789") == "" {
					ask(m.Peer, "DEL", m.Args[0])
				}
				delete(set, m.Args[0])
			})
		}},
	{Name: "get-of-a-list-is-null", About: "GET of a key that is not a string replies null.",
		Kills: "count.wrong-type", Edit: replaced("GET", wrong, null)},
}

// scripts are faults of SCRIPT LOAD and of finding what was loaded.
var scripts = []row{
	{Name: "hashes-in-capitals", About: "SCRIPT LOAD replies with the hash in capital letters.",
		Kills: "script.sha script.sha-of-the-document script.capitals request.letter-case",
		Edit:  retold("SCRIPT", func(m *message, reply string) string { return strings.ToUpper(reply) })},
	{Name: "loaded-once", About: "SCRIPT LOAD rejects a script that is loaded already.",
		Kills: "script.loaded-again script.flushed", Edit: func(s *inject.Server) {
			loaded := map[string]bool{}
			s.On("SCRIPT", func(m *message) {
				script := strings.Join(m.Args, " ")
				if loaded[script] {
					m.Answer("-ERR the script is there\r\n")
				}
				loaded[script] = true
			})
		}},
	{Name: "scripts-tidied", About: "SCRIPT LOAD combines consecutive spaces before it computes the hash.",
		Kills: "script.sha-of-the-document", Edit: inject.Change("SCRIPT", 1, args(2), func(v string) string { return strings.ReplaceAll(v, "  ", " ") })},
	{Name: "hash-of-the-document-built-in", About: "EVALSHA with the hash from the specification runs the script even if it was not loaded.",
		Kills: "script.sha-must-be-checked", Edit: inject.Change("EVALSHA", 0, inject.ArgIs(0, protocol.PrintedSHA1), inject.To(protocol.ScriptSHA1(protocol.Script)))},
	{Name: "one-script-at-a-time", About: "A connection can run only the script that it loaded last.",
		Kills: "script.differs", Edit: inject.Both(
			retold("SCRIPT", func(m *message, reply string) string {
				if sha := values(reply); len(sha) == 1 {
					for old := range m.Peer.Notes {
						m.Peer.Notes[old] = "gone"
					}
					m.Peer.Notes[sha[0]] = "loaded"
				}
				return reply
			}),
			inject.Answer("EVALSHA", func(m *message) bool { return m.Peer.Notes[m.Args[0]] == "gone" }, noScript))},
	{Name: "scripts-by-connection", About: "Only the connection that loaded a script can run it.",
		Kills: "script.for-all killed.behind-evalsha", Edit: inject.Answer("EVALSHA", func(m *message) bool { return m.Peer.Count["SCRIPT"] == 0 }, noScript)},
	{Name: "unknown-script-is-err", About: "EVALSHA of an unknown script replies with the error code ERR instead of NOSCRIPT.",
		Kills: "script.sha-must-be-checked script.unknown script.short-hash script.flushed", Edit: retold("EVALSHA", func(m *message, reply string) string {
			return strings.Replace(reply, "-NOSCRIPT", "-ERR", 1)
		})},
	{Name: "short-hash-is-err", About: "EVALSHA rejects a hash of the wrong length as an invalid argument.",
		Kills: "script.short-hash", Edit: inject.Answer("EVALSHA", func(m *message) bool { return len(m.Args) > 0 && len(m.Args[0]) != 40 }, "-ERR invalid hash\r\n")},
	{Name: "hash-in-small-letters-only", About: "EVALSHA does not recognize a hash in capital letters.",
		Kills: "script.capitals", Edit: inject.Answer("EVALSHA", func(m *message) bool { return len(m.Args) > 0 && strings.ToLower(m.Args[0]) != m.Args[0] }, noScript)},
	{Name: "flush-forgets-nothing", About: "SCRIPT FLUSH does not remove scripts.",
		Kills: "script.flushed", Edit: inject.Answer("SCRIPT", inject.ArgIs(0, "FLUSH"), ok)},
	{Name: "scripts-compiled-later", About: "SCRIPT LOAD accepts scripts with syntax errors.",
		Kills: "script.no-lua", Edit: retold("SCRIPT", func(m *message, reply string) string {
			if reply[0] == '-' {
				return bulk(strings.Repeat("0", 40))
			}
			return reply
		})},
	{Name: "keys-not-counted", About: "EVALSHA accepts a wrong number of keys.",
		Kills: "script.keys-missing", Edit: inject.Answer("EVALSHA", func(m *message) bool { return len(m.Args) > 1 && m.Args[1] != "1" }, null)},
	{Name: "script-errors-swallowed", About: "EVALSHA replies null if the script fails.",
		Kills: "script.wrong-type", Edit: retold("EVALSHA", func(m *message, reply string) string {
			if strings.HasPrefix(reply, "-WRONGTYPE") || strings.Contains(reply, "script") && strings.HasPrefix(reply, "-ERR") {
				return null
			}
			return reply
		})},
}

const noScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n"

// scheduled are faults of the script that takes scheduled jobs.
var scheduled = []row{
	{Name: "no-queue-no-script", About: "EVALSHA fails if the scheduled queue never existed.",
		Kills: "script.for-all script.capitals due.empty due.own-queue", Edit: inject.Both(
			remembers("ZADD"),
			retold("EVALSHA", func(m *message, reply string) string {
				if reply == null && !remembered(2)(m) {
					return "-ERR no such key\r\n"
				}
				return reply
			}))},
	{Name: "scheduled-job-stays", About: "The script does not remove the job that it returns from the scheduled queue.",
		Kills: "due.taken due.earliest-first due.tie due.only-those due.one-worker due.pipelined expire.queue-emptied killed.behind-evalsha",
		Edit: retold("EVALSHA", func(m *message, reply string) string {
			if v := values(reply); len(v) == 2 {
				ask(m.Peer, "ZADD", v[0], "1000", v[1])
			}
			return reply
		})},
	{Name: "due-a-day-early", About: "The script returns jobs one day before their scheduled time.",
		Kills: "due.not-yet due.to-the-second due.fraction", Edit: taking("ZRANGEBYSCORE", func(now string) string { return inject.Decimal(whole(now) + 86400) })},
	{Name: "due-when-time-is-over", About: "The script returns jobs one second after their scheduled time.",
		Kills: "due.to-the-second expire.queue-emptied", Edit: taking("ZRANGEBYSCORE", func(now string) string { return "(" + now })},
	{Name: "times-are-whole", About: "The server truncates scheduled times to whole seconds.",
		Kills: "due.fraction request.resp2", Edit: inject.Change("ZADD", 1, args(3), inject.UpTo("."))},
	{Name: "zero-is-not-scheduled", About: "The script never returns a job with the scheduled time 0.",
		Kills: "due.at-zero", Edit: inject.Change("ZADD", 1, inject.ArgIs(1, "0"), inject.To("-1"))},
	{Name: "negative-times-due", About: "The script returns jobs with a scheduled time before 1970.",
		Kills: "due.negative", Edit: inject.Change("ZADD", 1, inject.ArgIs(1, "-1"), inject.To("0"))},
	{Name: "latest-first", About: "The script returns the job with the latest scheduled time first.",
		Kills: "due.earliest-first due.tie due.pipelined", Edit: taking("ZREVRANGEBYSCORE", func(now string) string { return now })},
	{Name: "ties-by-number", About: "The script returns jobs with equal scheduled times in numeric order of their IDs.",
		Kills: "due.tie", Edit: retold("EVALSHA", func(m *message, reply string) string {
			v := values(reply)
			if len(v) != 2 || !strings.HasPrefix(v[0], "queue:") {
				return reply
			}
			others := values(ask(m.Peer, "ZRANGEBYSCORE", v[0], "1000", "1000"))
			slices.SortFunc(others, func(a, b string) int { return whole(a) - whole(b) })
			if len(others) == 0 || whole(others[0]) >= whole(v[1]) {
				return reply
			}
			ask(m.Peer, "ZREM", v[0], others[0])
			ask(m.Peer, "ZADD", v[0], "1000", v[1])
			return list(v[0], others[0])
		})},
	{Name: "first-added-hides-others", About: "The script returns no job before the scheduled time of the job that was added first.",
		Kills: "due.only-those", Edit: func(s *inject.Server) {
			first := map[string]string{}
			s.On("ZADD", func(m *message) {
				if first[m.Args[0]] == "" {
					first[m.Args[0]] = m.Arg(1)
				}
			})
			inject.Answer("EVALSHA", func(m *message) bool {
				return len(m.Args) == 4 && whole(first[m.Args[2]]) > whole(m.Args[3])
			}, null)(s)
		}},
	{Name: "scheduled-for-each-worker", About: "The script returns a scheduled job once on each connection.",
		Kills: "due.one-worker killed.behind-evalsha", Edit: func(s *inject.Server) {
			last := map[string]*peer{}
			given := map[string]string{}
			retold("EVALSHA", func(m *message, reply string) string {
				k := ""
				if len(m.Args) == 4 {
					k = m.Args[2]
				}
				switch {
				case len(values(reply)) == 2:
					last[k], given[k] = m.Peer, reply
				case reply == null && last[k] != nil && last[k] != m.Peer:
					last[k] = nil
					return given[k]
				}
				return reply
			})(s)
		}},
	{Name: "script-takes-high-jobs", About: "The script also takes jobs from the queue of high priority.",
		Kills: "due.own-queue", Edit: retold("EVALSHA", func(m *message, reply string) string {
			if reply == null {
				high := strings.Replace(m.Args[2], ":scheduled", ":high", 1)
				if v := values(ask(m.Peer, "RPOP", high)); len(v) == 1 && high != m.Args[2] {
					return list(m.Args[2], v[0])
				}
			}
			return reply
		})},
	{Name: "due-jobs-queued", About: "A job whose scheduled time has passed goes into the normal queue when it is added.",
		Kills: "due.not-popped", Edit: after("ZADD", inject.ArgIs(1, "1000"), func(m *message) []string {
			return []string{"LPUSH", strings.Replace(m.Args[0], ":scheduled", ":normal", 1), m.Args[2]}
		})},
}

// taking is the script with another range.
func taking(command string, until func(now string) string) inject.Edit {
	loaded := protocol.ScriptSHA1(protocol.Script)
	return inject.On("EVALSHA", func(m *message) bool {
		return len(m.Args) == 4 && m.Args[1] == "1" && m.Args[0] == loaded &&
			ask(m.Peer, "SCRIPT", "EXISTS", loaded) == "*1\r\n:1\r\n" && kind(m, m.Args[2]) == "zset"
	}, func(m *message) {
		queue, from, to := m.Args[2], "0", until(m.Args[3])
		if command == "ZREVRANGEBYSCORE" {
			from, to = to, from
		}
		v := values(ask(m.Peer, command, queue, from, to, "LIMIT", "0", "1"))
		if len(v) == 0 {
			m.Answer(null)
			return
		}
		ask(m.Peer, "ZREM", queue, v[0])
		m.Answer(list(queue, v[0]))
	})
}

// popping are faults of BRPOP on the queues of a function.
var popping = []row{
	{Name: "last-in-first-out", About: "BRPOP takes the element that was pushed last.",
		Kills: "pop.oldest-first pop.urgent-first pop.many-at-once", Edit: inject.On("BRPOP", nil, rename("BLPOP"))},
	{Name: "last-key-first", About: "BRPOP checks its lists from the last to the first.",
		Kills: "pop.urgent-first", Edit: inject.On("BRPOP", nil, func(m *message) { slices.Reverse(m.Args[:len(m.Args)-1]) })},
	{Name: "waits-for-its-first-key", About: "BRPOP waits only for the first of its lists.",
		Kills: "due.not-popped pop.each-priority pop.woken pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.two-functions pop.left-by-reset",
		Edit: inject.On("BRPOP", func(m *message) bool {
			return len(m.Args) > 2 && !slices.ContainsFunc(m.Args[:len(m.Args)-1], func(k string) bool { return kind(m, k) == "list" })
		}, func(m *message) { m.Args = []string{m.Args[0], m.Args[len(m.Args)-1]} })},
	{Name: "woken-by-its-first-key", About: "BRPOP reports the first of its lists as the source of an element it waited for.",
		Kills: "due.not-popped pop.each-priority pop.woken pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.two-functions pop.left-by-reset",
		Edit: func(s *inject.Server) {
			s.On("BRPOP", func(m *message) {
				m.Peer.Mark = false
				m.Pass()
				m.Peer.Mark = m.Peer.Waits
			})
			s.Out("*", func(m *message) {
				if v := values(m.Text()); len(v) == 2 && m.Peer.Asked() == "BRPOP" && m.Peer.Mark {
					m.Raw = []byte(list(m.Peer.Request.Args[0], v[1]))
				}
			})
		}},
	{Name: "woken-by-any-function", About: "A job of one function ends a BRPOP for another function of the same priority.",
		Kills: "pop.other-function", Edit: alsoPushed(func(pushed, k string) bool {
			return k != pushed && strings.HasPrefix(k, "queue:") && strings.HasSuffix(k, ":"+end(pushed))
		})},
	{Name: "woken-element-stays", About: "An element for a waiting BRPOP also remains in the list.",
		Kills: "lock.waits lock.one-for-one pop.each-priority pop.woken pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.many-at-once cycle.normal",
		Edit: inject.On("LPUSH", func(m *message) bool { return len(waiters(m, m.Args[0])) > 0 }, func(m *message) {
			m.Pass()
			ask(m.Peer, words(m)...)
		})},
	{Name: "served-stays-first", About: "A connection that was served remains first among those that wait.",
		Kills: "pop.served-goes-behind", Edit: lined(line{turn: mostServed})},
	{Name: "one-served-for-a-push", About: "A push of several elements serves only one waiting connection.",
		Kills: "pop.many-at-once", Edit: lined(line{turn: longest, most: 1})},
	{Name: "half-close-unnoticed", About: "A BRPOP continues after the worker has half-closed the connection.",
		Kills: "lock.client-leaves pop.left-by-close pop.half-closed killed.before-popping",
		Edit:  inject.Ignore(inject.HalfClosed, func(m *message) bool { return m.Peer.Waits })},
	{Name: "time-out-ends-all-waits", About: "When one BRPOP times out, all connections that wait for the list time out.",
		Kills: "pop.times-out-alone", Edit: inject.Out("*", func(m *message) bool { return m.Text() == nullList && m.Peer.Asked() == "BRPOP" }, func(m *message) {
			for _, p := range waiters(m, m.Peer.Request.Args[0]) {
				p.Later(0, func() {
					if p.Waits {
						p.Send(nullList)
					}
				})
			}
		})},
}
