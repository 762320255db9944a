package mutants

import (
	"slices"
	"strings"
)

// jobs are faults of EXPIRE and of what ends it.
var jobs = []Mutant{
	{Name: "a-day-at-most", About: "Nothing is kept for more than a day.",
		Kills: cases("expire.25-hours expire.kept expire.replaced killed.behind-expire"), Hook: takenFor("EXPIRE", word(2, "90000"), func(w []string) []string { return swapped(w, 2, "86400") })},
	{Name: "absent-expires", About: "EXPIRE of what is not there is answered by 1.",
		Kills: cases("cycle.normal expire.absent"), Hook: replaced("EXPIRE", integer(0), integer(1))},
	{Name: "ttl-in-milliseconds", About: "TTL tells milliseconds.",
		Kills: cases("cycle.scheduled expire.25-hours expire.kept expire.replaced expire.lock-pushed killed.behind-expire"), Hook: takenFor("TTL", always, func(w []string) []string { return swapped(w, 0, "PTTL") })},
	{Name: "absent-lives-for-ever", About: "TTL of what is not there is -1.",
		Kills: cases("expire.absent expire.gone expire.lock-emptied"), Hook: replaced("TTL", integer(-2), integer(-1))},
	{Name: "gone-too-early", About: "What is to be kept for a second is gone after a third of it.",
		Kills: cases("expire.gone"), Hook: takenFor("EXPIRE", word(2, "1"), func(w []string) []string { return []string{"PEXPIRE", w[1], "333"} })},
	{Name: "hmset-ends-expiry", About: "A hash that is changed does not expire any more.",
		Kills: cases("expire.kept"), Hook: first("HMSET", always, persisted)},
	{Name: "first-expiry-counts", About: "EXPIRE does not change an expiry.",
		Kills: cases("expire.replaced"), Hook: takenFor("EXPIRE", count(3), func(w []string) []string { return append(slices.Clone(w), "NX") })},
	{Name: "expiry-of-the-deleted", About: "A key that is made anew expires when the deleted one would have.",
		Kills: cases("expire.made-anew"), Hook: inherited("DEL", "HMSET")},
	{Name: "set-keeps-expiry", About: "SET leaves the expiry as it was.",
		Kills: cases("expire.count-set"), Hook: takenFor("SET", always, func(w []string) []string { return append(slices.Clone(w), "KEEPTTL") })},
	{Name: "lpush-ends-expiry", About: "A list that is pushed to does not expire any more.",
		Kills: cases("expire.lock-pushed"), Hook: first("LPUSH", always, persisted)},
	{Name: "expiry-of-the-emptied", About: "A list that is pushed anew expires when the emptied one would have.",
		Kills: cases("expire.lock-emptied"), Hook: inherited("BRPOP", "LPUSH")},
	{Name: "empty-lists-exist", About: "A list whose last element was taken is still there.",
		Kills: cases("expire.queue-emptied"), Hook: func(b *bench) {
			was := map[string]bool{}
			b.on("LPUSH", func(p *peer, w []string) {
				was[w[1]] = true
				b.pass(p, w...)
			})
			b.on("EXISTS", func(p *peer, w []string) {
				if was[w[1]] {
					b.say(p, integer(1))
					return
				}
				b.pass(p, w...)
			})
		}},
	{Name: "bad-expiry-is-0", About: "EXPIRE with a word for a number deletes the key.",
		Kills: cases("expire.no-number"), Hook: takenFor("EXPIRE", word(2, "soon"), func(w []string) []string { return swapped(w, 2, "0") })},
}

func persisted(w []string) []string { return []string{"PERSIST", w[1]} }

// inherited has a key that one command removes keep its expiry for when the other makes it anew.
func inherited(removes, makes string) Hook {
	return func(b *bench) {
		left := map[string]int{}
		b.on(removes, func(p *peer, w []string) {
			if seconds := whole(b.ask(p, "TTL", w[1])); seconds > 0 {
				left[w[1]] = seconds
			}
			b.pass(p, w...)
		})
		b.on(makes, func(p *peer, w []string) {
			seconds := 0
			if absent(b, p, w) {
				seconds = left[w[1]]
			}
			b.pass(p, w...)
			if seconds > 0 {
				b.ask(p, "EXPIRE", w[1], decimal(seconds))
			}
		})
	}
}

// lost are servers that do something about workers that die, or are undone by them: each for
// one step of a job.
var lost = []Mutant{
	{Name: "popped-job-queued-again", About: "The job of a worker that leaves without having finished it is queued again.",
		Kills: cases("killed.behind-brpop killed.behind-start killed.behind-busy"), Hook: func(b *bench) {
			b.replied = func(p *peer, reply string) string {
				if v := values(reply); len(v) == 2 && p.words[0] == "BRPOP" && strings.HasPrefix(v[0], "queue:") && !isPush(reply) {
					p.members = v
				}
				return reply
			}
			b.on("HMSET", func(p *peer, w []string) {
				if slices.Contains(w, "output") {
					p.members = nil
				}
				b.pass(p, w...)
			})
			b.leaving = func(p *peer) {
				if p.members != nil {
					b.ask(p, "RPUSH", p.members[0], p.members[1])
				}
			}
		}},
	{Name: "taken-job-scheduled-again", About: "The scheduled job of a worker that leaves is scheduled again.",
		Kills: cases("killed.behind-evalsha"), Hook: func(b *bench) {
			b.on("EVALSHA", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				p.members = values(reply)
				b.say(p, reply)
			})
			b.on("HMSET", func(p *peer, w []string) {
				p.members = nil
				b.pass(p, w...)
			})
			b.leaving = func(p *peer) {
				if len(p.members) == 2 && p.words[0] == "EVALSHA" && strings.HasPrefix(p.members[0], "queue:") {
					b.ask(p, "ZADD", p.members[0], "1000", p.members[1])
				}
			}
		}},
	{Name: "start-makes-busy", About: "A start event sets the job's status.",
		Kills: cases("killed.behind-start"), Hook: published("start", func(b *bench, p *peer, key string) { b.ask(p, "HSET", key, "status", "busy") })},
	{Name: "busy-job-expires", About: "A job that is busy expires with its worker.",
		Kills: cases("killed.behind-busy"), Hook: leavingBehind("HMSET", "busy", func(b *bench, p *peer, key string) { b.ask(p, "EXPIRE", key, "10") })},
	{Name: "progress-undone", About: "The progress of a worker that leaves is taken back.",
		Kills: cases("killed.behind-input"), Hook: leavingBehind("HMSET", "status:dividend", func(b *bench, p *peer, key string) { b.ask(p, "HDEL", key, "status:dividend") })},
	{Name: "output-expires-by-itself", About: "A job that has an output expires without being told.",
		Kills: cases("expire.25-hours killed.behind-done"), Hook: then("HMSET", func(_ *bench, _ *peer, w []string) bool { return slices.Contains(w, "output") },
			func(w []string) []string { return []string{"EXPIRE", w[1], "90000"} })},
	{Name: "expiry-undone", About: "The expiry that a worker has set last is taken back when it leaves.",
		Kills: cases("killed.behind-expire"), Hook: leavingBehind("EXPIRE", "90000", func(b *bench, p *peer, key string) { b.ask(p, "PERSIST", key) })},
	{Name: "finish-wakes", About: "A finish event wakes who waits for the job.",
		Kills: cases("cycle.normal cycle.pipelined killed.behind-finish"), Hook: published("finish", func(b *bench, p *peer, key string) {
			b.ask(p, "LPUSH", "lock:"+strings.TrimPrefix(key, "job:"), "OK")
		})},
	{Name: "lock-undone", About: "The lock that a worker has pushed last is taken back when it leaves.",
		Kills: cases("killed.behind-lock"), Hook: leavingBehind("LPUSH", "OK", func(b *bench, p *peer, key string) { b.ask(p, "DEL", key) })},
}

// published has something done with the job of an event.
func published(event string, do func(b *bench, p *peer, key string)) Hook {
	return func(b *bench) {
		b.on("PUBLISH", func(p *peer, w []string) {
			b.pass(p, w...)
			if id, ok := strings.CutPrefix(w[len(w)-1], event+":"); ok {
				do(b, p, "job:"+strings.TrimPrefix(w[1], "channel:")+":"+id)
			}
		})
	}
}

// leavingBehind has something done when a peer leaves whose last change was such a command, with a
// word in it. It is told the key.
func leavingBehind(command, word string, do func(b *bench, p *peer, key string)) Hook {
	return func(b *bench) {
		b.leaving = func(p *peer) {
			if p.words != nil && p.words[0] == command && slices.Contains(p.words, word) {
				do(b, p, p.words[1])
			}
		}
	}
}
