package mutants

import (
	"slices"
	"strings"

	protocol "jobwire/codec/gearmonkey"
)

// counts are faults of the counts of workers.
var counts = []Mutant{
	{Name: "no-count-is-0", About: "GET of what is not there is answered by 0.",
		Kills: cases("uid.rises count.missing request.pipelined request.resp2 inline.served"), Hook: replaced("GET", null, bulk("0"))},
	{Name: "decr-tells-what-was", About: "DECR is answered by the number before it.",
		Kills: cases("count.up-and-down count.per-function count.below-zero cycle.normal"), Hook: retold("DECR", func(_ *bench, _ *peer, _ []string, reply string) string {
			if reply[0] == ':' {
				return integer(whole(reply) + 1)
			}
			return reply
		})},
	{Name: "workers-share-a-count", About: "The second function of a worker is counted as its first.",
		Kills: cases("count.per-function"), Hook: takenByPeer("INCR DECR GET", func(p *peer, w []string) []string {
			if w[0] == "GET" || !strings.HasPrefix(w[1], "count:") {
				return w
			}
			if p.noted["count"] == "" {
				p.noted["count"] = w[1]
			}
			return swapped(w, 1, p.noted["count"])
		})},
	{Name: "workers-counted-as-jobs", About: "Workers and job IDs of a function are counted together.",
		Kills: cases("uid.rises uid.beyond-32-bits uid.greatest uid.no-integer count.not-the-uid cycle.normal request.pipelined"), Hook: takenFor("INCR", key("uid:"), func(w []string) []string { return swapped(w, 1, "count:"+w[1][len("uid:"):]) })},
	{Name: "count-stops-at-0", About: "DECR does not go below 0.",
		Kills: cases("count.below-zero"), Hook: answered("DECR", integer(0), func(b *bench, p *peer, w []string) bool { return absent(b, p, w) })},
	{Name: "lost-worker-uncounted", About: "A worker whose connection ends is taken off the count.",
		Kills: cases("count.lost-worker count.lost-by-reset killed.before-popping"), Hook: func(b *bench) {
			b.on("INCR", func(p *peer, w []string) {
				if strings.HasPrefix(w[1], "count:") {
					p.members = append(p.members, w[1])
				}
				b.pass(p, w...)
			})
			b.on("DECR", func(p *peer, w []string) {
				if i := slices.Index(p.members, w[1]); i >= 0 {
					p.members = slices.Delete(p.members, i, i+1)
				}
				b.pass(p, w...)
			})
			b.leaving = func(p *peer) {
				for _, k := range p.members {
					b.ask(p, "DECR", k)
				}
			}
		}},
	{Name: "set-is-no-counter", About: "A counter that was set begins anew at 1.",
		Kills: cases("uid.beyond-32-bits uid.greatest count.set"), Hook: func(b *bench) {
			set := map[string]bool{}
			b.on("SET", func(p *peer, w []string) {
				set[w[1]] = true
				b.pass(p, w...)
			})
			b.on("INCR", func(p *peer, w []string) {
				if set[w[1]] && strings.Trim(values(b.ask(p, "GET", w[1]))[0], "0123456789") == "" {
					b.ask(p, "DEL", w[1])
				}
				delete(set, w[1])
				b.pass(p, w...)
			})
		}},
	{Name: "get-of-a-list-is-null", About: "GET of what is no string is answered by null.",
		Kills: cases("count.wrong-type"), Hook: replaced("GET", wrong, null)},
}

// scripts are faults of SCRIPT LOAD and of finding what was loaded.
var scripts = []Mutant{
	{Name: "hashes-in-capitals", About: "SCRIPT LOAD answers with capitals.",
		Kills: cases("script.sha script.sha-of-the-document script.capitals request.letter-case"), Hook: retold("SCRIPT", func(_ *bench, _ *peer, _ []string, reply string) string { return strings.ToUpper(reply) })},
	{Name: "loaded-once", About: "A script that is loaded already is refused.",
		Kills: cases("script.loaded-again script.flushed due.one-worker"), Hook: func(b *bench) {
			loaded := map[string]bool{}
			b.on("SCRIPT", func(p *peer, w []string) {
				script := strings.Join(w[1:], " ")
				if loaded[script] {
					b.say(p, "-ERR the script is there\r\n")
					return
				}
				loaded[script] = true
				b.pass(p, w...)
			})
		}},
	{Name: "scripts-tidied", About: "Blanks that follow each other count once in a script.",
		Kills: cases("script.sha-of-the-document"), Hook: takenFor("SCRIPT", count(3), func(w []string) []string {
			return swapped(w, 2, strings.ReplaceAll(w[2], "  ", " "))
		})},
	{Name: "hash-of-the-document-built-in", About: "The hash of the document runs the script, whatever was loaded.",
		Kills: cases("script.sha-must-be-checked"), Hook: takenFor("EVALSHA", word(1, protocol.PrintedSHA1), func(w []string) []string {
			return swapped(w, 1, protocol.ScriptSHA1(protocol.Script))
		})},
	{Name: "one-script-at-a-time", About: "A connection can run the script that it loaded last, and no other that it loaded.",
		Kills: cases("script.differs"), Hook: func(b *bench) {
			b.on("SCRIPT", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				if sha := values(reply); len(sha) == 1 {
					delete(p.noted, sha[0])
					for old := range p.noted {
						p.noted[old] = "gone"
					}
					p.noted[sha[0]] = "loaded"
				}
				b.say(p, reply)
			})
			b.on("EVALSHA", func(p *peer, w []string) {
				if p.noted[w[1]] == "gone" {
					b.say(p, noScript)
					return
				}
				b.pass(p, w...)
			})
		}},
	{Name: "scripts-by-connection", About: "A script can be run by the connection alone that has loaded it.",
		Kills: cases("script.for-all killed.behind-evalsha"), Hook: func(b *bench) {
			b.on("SCRIPT", func(p *peer, w []string) {
				p.noted["script"] = "loaded"
				b.pass(p, w...)
			})
			b.on("EVALSHA", func(p *peer, w []string) {
				if p.noted["script"] == "" {
					b.say(p, noScript)
					return
				}
				b.pass(p, w...)
			})
		}},
	{Name: "unknown-script-is-err", About: "The code of the error about an unknown script is ERR.",
		Kills: cases("script.sha-must-be-checked script.unknown script.short-hash script.flushed"), Hook: retold("EVALSHA", func(_ *bench, _ *peer, _ []string, reply string) string {
			return strings.Replace(reply, "-NOSCRIPT", "-ERR", 1)
		})},
	{Name: "short-hash-is-err", About: "A hash of another length is refused as an argument.",
		Kills: cases("script.short-hash"), Hook: answered("EVALSHA", "-ERR invalid hash\r\n", func(_ *bench, _ *peer, w []string) bool { return len(w) > 1 && len(w[1]) != 40 })},
	{Name: "hash-in-small-letters-only", About: "A hash with capitals is not known.",
		Kills: cases("script.capitals"), Hook: answered("EVALSHA", noScript, func(_ *bench, _ *peer, w []string) bool { return len(w) > 1 && strings.ToLower(w[1]) != w[1] })},
	{Name: "flush-forgets-nothing", About: "SCRIPT FLUSH leaves the scripts loaded.",
		Kills: cases("script.flushed"), Hook: answered("SCRIPT", ok, word(1, "FLUSH"))},
	{Name: "scripts-compiled-later", About: "SCRIPT LOAD does not look at the script.",
		Kills: cases("script.no-lua"), Hook: retold("SCRIPT", func(_ *bench, _ *peer, _ []string, reply string) string {
			if reply[0] == '-' {
				return bulk(strings.Repeat("0", 40))
			}
			return reply
		})},
	{Name: "keys-not-counted", About: "A number of keys that is wrong is taken for what there is.",
		Kills: cases("script.keys-missing"), Hook: answered("EVALSHA", null, func(_ *bench, _ *peer, w []string) bool { return len(w) > 2 && w[2] != "1" })},
	{Name: "script-errors-swallowed", About: "A script that fails has returned nothing.",
		Kills: cases("script.wrong-type"), Hook: retold("EVALSHA", func(_ *bench, _ *peer, _ []string, reply string) string {
			if strings.HasPrefix(reply, "-WRONGTYPE") || strings.Contains(reply, "script") && strings.HasPrefix(reply, "-ERR") {
				return null
			}
			return reply
		})},
}

const noScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n"

// scheduled are faults of the script that takes scheduled jobs.
var scheduled = []Mutant{
	{Name: "no-queue-no-script", About: "The script fails where the queue never was.",
		Kills: cases("script.for-all script.capitals due.empty due.own-queue"), Hook: func(b *bench) {
			was := map[string]bool{}
			b.on("ZADD", func(p *peer, w []string) {
				was[w[1]] = true
				b.pass(p, w...)
			})
			b.on("EVALSHA", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				if reply == null && !was[w[3]] {
					reply = "-ERR no such key\r\n"
				}
				b.say(p, reply)
			})
		}},
	{Name: "scheduled-job-stays", About: "A scheduled job that is taken stays in its queue.",
		Kills: cases("due.taken due.earliest-first due.tie due.only-those due.one-worker due.pipelined expire.queue-emptied killed.behind-evalsha"), Hook: func(b *bench) {
			b.on("EVALSHA", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				if v := values(reply); len(v) == 2 {
					b.ask(p, "ZADD", v[0], "1000", v[1])
				}
				b.say(p, reply)
			})
		}},
	{Name: "due-a-day-early", About: "A scheduled job is due a day before its time.",
		Kills: cases("due.not-yet due.to-the-second due.fraction"), Hook: taking("ZRANGEBYSCORE", func(now string) string { return decimal(whole(now) + 86400) })},
	{Name: "due-when-time-is-over", About: "A scheduled job is due in the second behind its own.",
		Kills: cases("due.to-the-second expire.queue-emptied"), Hook: taking("ZRANGEBYSCORE", func(now string) string { return "(" + now })},
	{Name: "times-are-whole", About: "The fraction of a time is cut off.",
		Kills: cases("due.fraction request.resp2"), Hook: takenFor("ZADD", count(4), func(w []string) []string {
			head, _, _ := strings.Cut(w[2], ".")
			return swapped(w, 2, head)
		})},
	{Name: "zero-is-not-scheduled", About: "A time of 0 is taken for none, and is never due.",
		Kills: cases("due.at-zero"), Hook: takenFor("ZADD", word(2, "0"), func(w []string) []string { return swapped(w, 2, "-1") })},
	{Name: "negative-times-due", About: "A time before 1970 is due.",
		Kills: cases("due.negative"), Hook: takenFor("ZADD", word(2, "-1"), func(w []string) []string { return swapped(w, 2, "0") })},
	{Name: "latest-first", About: "Of the jobs that are due the one with the latest time comes first.",
		Kills: cases("due.earliest-first due.tie due.pipelined"), Hook: taking("ZREVRANGEBYSCORE", func(now string) string { return now })},
	{Name: "ties-by-number", About: "Jobs of one time come in the order of their IDs as numbers.",
		Kills: cases("due.tie"), Hook: func(b *bench) {
			b.on("EVALSHA", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				v := values(reply)
				if len(v) == 2 && strings.HasPrefix(v[0], "queue:") {
					others := values(b.ask(p, "ZRANGEBYSCORE", v[0], "1000", "1000"))
					slices.SortFunc(others, func(a, b string) int { return whole(a) - whole(b) })
					if len(others) > 0 && whole(others[0]) < whole(v[1]) {
						b.ask(p, "ZREM", v[0], others[0])
						b.ask(p, "ZADD", v[0], "1000", v[1])
						reply = list(v[0], others[0])
					}
				}
				b.say(p, reply)
			})
		}},
	{Name: "first-added-hides-others", About: "As long as the job that was scheduled first is not due, none is.",
		Kills: cases("due.only-those"), Hook: func(b *bench) {
			first := map[string]string{}
			b.on("ZADD", func(p *peer, w []string) {
				if first[w[1]] == "" && len(w) > 2 {
					first[w[1]] = w[2]
				}
				b.pass(p, w...)
			})
			b.on("EVALSHA", func(p *peer, w []string) {
				if len(w) == 5 && whole(first[w[3]]) > whole(w[4]) {
					b.say(p, null)
					return
				}
				b.pass(p, w...)
			})
		}},
	{Name: "scheduled-for-each-worker", About: "Each connection is given a scheduled job once.",
		Kills: cases("due.one-worker killed.behind-evalsha"), Hook: func(b *bench) {
			last := map[string]*peer{}
			given := map[string]string{}
			b.on("EVALSHA", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				k := ""
				if len(w) == 5 {
					k = w[3]
				}
				switch {
				case len(values(reply)) == 2:
					last[k], given[k] = p, reply
				case reply == null && last[k] != nil && last[k] != p:
					reply = given[k]
					last[k] = nil
				}
				b.say(p, reply)
			})
		}},
	{Name: "script-takes-high-jobs", About: "The script takes jobs from the queue of high priority, too.",
		Kills: cases("due.own-queue"), Hook: retold("EVALSHA", func(b *bench, p *peer, w []string, reply string) string {
			if reply == null {
				high := strings.Replace(w[3], ":scheduled", ":high", 1)
				if v := values(b.ask(p, "RPOP", high)); len(v) == 1 && high != w[3] {
					return list(w[3], v[0])
				}
			}
			return reply
		})},
	{Name: "due-jobs-queued", About: "A job that is due when it is scheduled goes into the normal queue at once.",
		Kills: cases("due.not-popped"), Hook: then("ZADD", word(2, "1000"), func(w []string) []string {
			return []string{"LPUSH", strings.Replace(w[1], ":scheduled", ":normal", 1), w[3]}
		})},
}

// taking is the script with another range.
func taking(command string, until func(now string) string) Hook {
	loaded := protocol.ScriptSHA1(protocol.Script)
	return func(b *bench) {
		b.on("EVALSHA", func(p *peer, w []string) {
			if len(w) != 5 || w[2] != "1" || w[1] != loaded || b.ask(p, "SCRIPT", "EXISTS", w[1]) != "*1\r\n:1\r\n" || !is("zset")(b, p, w[2:]) {
				b.pass(p, w...)
				return
			}
			from, to := "0", until(w[4])
			if command == "ZREVRANGEBYSCORE" {
				from, to = to, from
			}
			v := values(b.ask(p, command, w[3], from, to, "LIMIT", "0", "1"))
			if len(v) == 0 {
				b.say(p, null)
				return
			}
			b.ask(p, "ZREM", w[3], v[0])
			b.say(p, list(w[3], v[0]))
		})
	}
}

// popping are faults of BRPOP on the queues of a function.
var popping = []Mutant{
	{Name: "last-in-first-out", About: "BRPOP takes what was pushed last.",
		Kills: cases("pop.oldest-first pop.urgent-first pop.many-at-once"), Hook: takenFor("BRPOP", always, func(w []string) []string { return swapped(w, 0, "BLPOP") })},
	{Name: "last-key-first", About: "BRPOP looks into the lists that it names from the last to the first.",
		Kills: cases("pop.urgent-first"), Hook: takenFor("BRPOP", always, func(w []string) []string {
			w = slices.Clone(w)
			slices.Reverse(w[1 : len(w)-1])
			return w
		})},
	{Name: "waits-for-its-first-key", About: "BRPOP waits for the list that it names first, and no other.",
		Kills: cases("due.not-popped pop.each-priority pop.woken pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.two-functions pop.left-by-reset"), Hook: func(b *bench) {
			b.on("BRPOP", func(p *peer, w []string) {
				if len(w) > 3 {
					for _, k := range w[1 : len(w)-1] {
						if is("list")(b, p, []string{"", k}) {
							b.pass(p, w...)
							return
						}
					}
					w = []string{w[0], w[1], w[len(w)-1]}
				}
				b.pass(p, w...)
			})
		}},
	{Name: "woken-by-its-first-key", About: "Who waited is told that the element comes from the list that it named first.",
		Kills: cases("due.not-popped pop.each-priority pop.woken pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.two-functions pop.left-by-reset"), Hook: func(b *bench) {
			b.on("BRPOP", func(p *peer, w []string) {
				delete(p.noted, "waited")
				b.pass(p, w...)
				if p.waits {
					p.noted["waited"] = "yes"
				}
			})
			b.replied = func(p *peer, reply string) string {
				if v := values(reply); len(v) == 2 && p.words[0] == "BRPOP" && p.noted["waited"] != "" {
					return list(p.words[1], v[1])
				}
				return reply
			}
		}},
	{Name: "woken-by-any-function", About: "A job of one function wakes who waits for another's of its priority.",
		Kills: cases("pop.other-function"), Hook: func(b *bench) {
			b.on("LPUSH", func(p *peer, w []string) {
				b.pass(p, w...)
				end := w[1][strings.LastIndex(w[1], ":")+1:]
				if k := b.waiter(func(k string) bool {
					return k != w[1] && strings.HasPrefix(k, "queue:") && strings.HasSuffix(k, ":"+end)
				}); k != "" {
					b.ask(p, swapped(w, 1, k)...)
				}
			})
		}},
	{Name: "woken-element-stays", About: "What goes to who waited for it is left in the list, too.",
		Kills: cases("lock.waits lock.one-for-one pop.each-priority pop.woken pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.many-at-once cycle.normal"), Hook: func(b *bench) {
			b.on("LPUSH", func(p *peer, w []string) {
				waited := len(b.waiters(w[1])) > 0
				b.pass(p, w...)
				if waited {
					b.ask(p, w...)
				}
			})
		}},
	{Name: "served-stays-first", About: "Who was served keeps its place before those who wait.",
		Kills: cases("pop.served-goes-behind"), Hook: lined(line{turn: favourite})},
	{Name: "one-served-for-a-push", About: "A push of several elements serves one of those who wait.",
		Kills: cases("pop.many-at-once"), Hook: lined(line{turn: longest, most: 1})},
	{Name: "half-close-unnoticed", About: "A worker that ended its direction while it waits goes on waiting.",
		Kills: cases("lock.client-leaves pop.left-by-close pop.half-closed killed.before-popping"), Hook: func(b *bench) { b.halved = func(p *peer) bool { return p.waits } }},
	{Name: "time-out-ends-all-waits", About: "When the time of one is over, all who wait for the list are told so.",
		Kills: cases("pop.times-out-alone"), Hook: func(b *bench) {
			b.replied = func(p *peer, reply string) string {
				if reply == nullList && p.words[0] == "BRPOP" {
					for _, o := range b.waiters(p.words[1]) {
						b.After(0, func() {
							if o.waits {
								b.say(o, nullList)
							}
						})
					}
				}
				return reply
			}
		}},
}
