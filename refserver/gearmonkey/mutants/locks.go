package mutants

import (
	"slices"
	"strconv"
	"strings"
)

// locks are faults of BRPOP on one list, and of waiting.
var locks = []Mutant{
	{Name: "waits-for-the-next-push", About: "BRPOP of one list takes no element that is there already.",
		Kills: cases("lock.there-already lock.wrong-type expire.lock-emptied expire.queue-emptied killed.behind-lock"), Hook: lined(line{turn: longest, blind: true})},
	{Name: "over-at-half-time", About: "A wait is over when half its time is.",
		Kills: cases("lock.times-out lock.fraction pop.times-out"), Hook: takenFor("BRPOP", always, func(w []string) []string {
			if f, err := strconv.ParseFloat(w[len(w)-1], 64); err == nil && f > 0 {
				return swapped(w, len(w)-1, strconv.FormatFloat(f/2, 'f', -1, 64))
			}
			return w
		})},
	{Name: "fractions-cut-off", About: "A time-out is rounded down to whole seconds, 0 being for ever.",
		Kills: cases("lock.fraction lock.late lock.expires pop.times-out-alone request.resp2"), Hook: takenFor("BRPOP", always, func(w []string) []string {
			head, _, _ := strings.Cut(w[len(w)-1], ".")
			return swapped(w, len(w)-1, head)
		})},
	{Name: "zero-is-at-once", About: "With a time-out of 0 BRPOP does not wait.",
		Kills: cases("lock.zero"), Hook: takenFor("BRPOP", word(-1, "0"), func(w []string) []string { return swapped(w, len(w)-1, "0.001") })},
	{Name: "served-behind-the-time-out", About: "The first element behind a time-out goes to who had waited, and is lost.",
		Kills: cases("lock.late pop.times-out pop.times-out-alone"), Hook: lined(line{turn: longest, over: func(l *line, w *wait) { l.gone = append(l.gone, w) }})},
	{Name: "woken-by-longer-names", About: "A push to a list wakes those who wait for one whose name its name begins with.",
		Kills: cases("lock.other-job"), Hook: func(b *bench) {
			b.on("LPUSH", func(p *peer, w []string) {
				b.pass(p, w...)
				if k := b.waiter(func(k string) bool { return k != w[1] && strings.HasPrefix(w[1], k) }); k != "" {
					b.ask(p, swapped(w, 1, k)...)
				}
			})
		}},
	{Name: "one-push-wakes-all", About: "A push wakes all who wait for the list.",
		Kills: cases("lock.one-for-one pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.many-at-once"), Hook: func(b *bench) {
			b.on("LPUSH", func(p *peer, w []string) {
				n := len(b.waiters(w[1]))
				b.pass(p, w...)
				for range n - 1 {
					b.ask(p, w...)
				}
			})
		}},
	{Name: "who-waited-least-first", About: "Of those who wait for a list the last is served first.",
		Kills: cases("lock.one-for-one pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.many-at-once"), Hook: lined(line{turn: latest})},
	{Name: "lists-of-a-function-in-turn", About: "Those who wait for the locks of a function are served in their order only.",
		Kills: cases("lock.two-jobs"), Hook: lined(line{turn: longest, inTurn: true})},
	{Name: "waiting-holds-up-its-function", About: "While somebody waits for a lock, nobody else's commands on counters and data of that function are answered.",
		Kills: cases("lock.others-go-on lock.commands-wait cycle.normal killed.behind-done killed.behind-expire"), Hook: silent("INCR HMSET", func(b *bench, p *peer, w []string) bool {
			parts := strings.Split(w[1], ":")
			return len(parts) > 1 && b.waiter(func(k string) bool { return strings.HasPrefix(k, "lock:"+parts[1]+":") }) != ""
		})},
	{Name: "commands-overtake-a-wait", About: "What is sent behind a command that waits is done at once.",
		Kills: cases("lock.commands-wait"), Hook: func(b *bench) {
			b.on("BRPOP", func(p *peer, w []string) {
				b.pass(p, w...)
				if p.waits {
					p.Resume()
				}
			})
		}},
	{Name: "served-though-gone", About: "An element goes to one who left while it waited, and is lost.",
		Kills: cases("lock.client-leaves pop.left-by-close pop.left-by-reset pop.half-closed killed.before-popping"), Hook: lined(line{turn: longest, keepGone: true})},
	{Name: "negative-time-out-is-0", About: "A negative time-out is taken for one of 0.",
		Kills: cases("lock.time-out-negative"), Hook: takenFor("BRPOP", word(-1, "-1"), func(w []string) []string { return swapped(w, len(w)-1, "0") })},
	{Name: "bad-time-out-is-0", About: "A time-out that is no number is taken for one of 0.",
		Kills: cases("lock.time-out-no-number"), Hook: takenFor("BRPOP", word(-1, "soon", ""), func(w []string) []string { return swapped(w, len(w)-1, "0") })},
	{Name: "time-out-optional", About: "BRPOP of a list alone waits for ever.",
		Kills: cases("lock.no-time-out"), Hook: takenFor("BRPOP", count(2), func(w []string) []string { return append(slices.Clone(w), "0") })},
	{Name: "waits-for-a-list-to-be", About: "BRPOP of another kind of value waits.",
		Kills: cases("lock.wrong-type"), Hook: silent("BRPOP", is("string"))},
	{Name: "any-key-wakes", About: "A key of another type ends the wait for a list.",
		Kills: cases("lock.wrong-type-meanwhile"), Hook: func(b *bench) {
			b.on("SET", func(p *peer, w []string) {
				b.pass(p, w...)
				for _, q := range b.waiters(w[1]) {
					b.say(q, wrong)
				}
			})
		}},
	{Name: "short-expiry-forgotten", About: "A key that is to expire within a second does not.",
		Kills: cases("lock.expires expire.gone"), Hook: answered("EXPIRE", integer(1), word(2, "1"))},
	{Name: "expired-lock-popped", About: "A lock that has expired can still be popped.",
		Kills: cases("lock.expires"), Hook: func(b *bench) {
			expired := map[string]bool{}
			b.on("EXPIRE", func(p *peer, w []string) {
				expired[w[1]] = w[2] == "1"
				b.pass(p, w...)
			})
			b.on("BRPOP", func(p *peer, w []string) {
				if expired[w[1]] {
					b.say(p, list(w[1], "OK"))
					return
				}
				b.pass(p, w...)
			})
		}},
}
