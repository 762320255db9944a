package mutants

import (
	"slices"
	"strings"
)

// queues are faults of LPUSH, ZADD and of what shows the queues.
var queues = []Mutant{
	{Name: "lpush-counts-what-it-pushes", About: "LPUSH is answered by the number of elements that it adds.",
		Kills: cases("queue.pushed pop.oldest-first pop.urgent-first expire.lock-pushed positions.negative"), Hook: retold("LPUSH", func(_ *bench, _ *peer, w []string, reply string) string {
			if reply[0] == ':' {
				return integer(len(w) - 2)
			}
			return reply
		})},
	{Name: "lpush-at-the-wrong-end", About: "LPUSH puts at the end from which BRPOP takes.",
		Kills: cases("queue.pushed pop.oldest-first pop.urgent-first pop.many-at-once positions.negative"), Hook: takenFor("LPUSH", always, func(w []string) []string { return swapped(w, 0, "RPUSH") })},
	{Name: "low-is-normal", About: "A job of low priority goes into the normal queue.",
		Kills: cases("queue.priorities due.not-popped pop.urgent-first pop.each-priority pop.first-come-first-served positions.negative"), Hook: takenFor("LPUSH", always, func(w []string) []string {
			return swapped(w, 1, strings.Replace(w[1], ":low", ":normal", 1))
		})},
	{Name: "functions-share-queues", About: "A client's jobs of one priority share a queue, whatever their functions.",
		Kills: cases("queue.functions pop.two-functions"), Hook: takenByPeer("LPUSH", func(p *peer, w []string) []string {
			end := w[1][strings.LastIndex(w[1], ":")+1:]
			if !strings.HasPrefix(w[1], "queue:") {
				return w
			}
			if p.noted[end] == "" {
				p.noted[end] = w[1]
			}
			return swapped(w, 1, p.noted[end])
		})},
	{Name: "lpush-overwrites", About: "LPUSH makes a list of whatever there is.",
		Kills: cases("queue.wrong-type"), Hook: overwrites("LPUSH", "string")},
	{Name: "zadd-counts-changes", About: "ZADD counts a member whose score it changes.",
		Kills: cases("scheduled.moved due.rescheduled"), Hook: replaced("ZADD", integer(0), integer(1))},
	{Name: "first-score-stays", About: "ZADD leaves the score of a member that is there as it is.",
		Kills: cases("scheduled.moved due.rescheduled"), Hook: takenFor("ZADD", count(4), func(w []string) []string { return slices.Insert(slices.Clone(w), 2, "NX") })},
	{Name: "zrange-by-member", About: "ZRANGE lists members in their own order.",
		Kills: cases("scheduled.added scheduled.numeric scheduled.moved"), Hook: retold("ZRANGE", func(_ *bench, _ *peer, _ []string, reply string) string {
			v := values(reply)
			slices.Sort(v)
			return list(v...)
		})},
	{Name: "scores-compared-as-text", About: "ZRANGE compares scores digit by digit.",
		Kills: cases("scheduled.numeric"), Hook: retold("ZRANGE", func(b *bench, p *peer, w []string, reply string) string {
			v := values(b.ask(p, "ZRANGE", w[1], "0", "-1", "WITHSCORES"))
			if len(v) != 2*len(values(reply)) {
				return reply
			}
			pairs := slices.Collect(slices.Chunk(v, 2))
			slices.SortStableFunc(pairs, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
			var all []string
			for _, m := range pairs {
				all = append(all, m[0])
			}
			return list(all...)
		})},
	{Name: "bad-score-is-0", About: "A score that is no number counts as 0.",
		Kills: cases("scheduled.no-number"), Hook: takenFor("ZADD", word(2, "tomorrow"), func(w []string) []string { return swapped(w, 2, "0") })},
	{Name: "zadd-overwrites", About: "ZADD makes a sorted set of whatever there is.",
		Kills: cases("scheduled.wrong-type"), Hook: overwrites("ZADD", "list")},
	{Name: "positions-from-the-front", About: "Negative positions in a list are taken for the first.",
		Kills: cases("positions.negative"), Hook: takenFor("LRANGE", word(2, "-1"), func(w []string) []string { return swapped(w, 2, "0") })},
	{Name: "zrange-without-its-last", About: "ZRANGE leaves out the member at the last position.",
		Kills: cases("positions.negative"), Hook: takenFor("ZRANGE", func(_ *bench, _ *peer, w []string) bool { return w[3] != "0" && w[3] != "-1" || w[2] == "-1" },
			func(w []string) []string { return swapped(w, 3, decimal(whole(w[3])-1)) })},
}
