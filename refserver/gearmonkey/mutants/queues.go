package mutants

import (
	"slices"
	"strings"

	"jobwire/refserver/inject"
)

// queues are faults of LPUSH, ZADD and of what shows the queues.
var queues = []row{
	{Name: "lpush-counts-what-it-pushes", About: "LPUSH replies with the number of pushed elements instead of the length of the list.",
		Kills: "queue.pushed expire.lock-pushed positions.negative", Edit: retold("LPUSH", func(m *message, reply string) string {
			if reply[0] == ':' {
				return integer(len(m.Args) - 1)
			}
			return reply
		})},
	{Name: "lpush-at-the-wrong-end", About: "LPUSH adds elements at the end from which BRPOP takes them.",
		Kills: "queue.pushed pop.oldest-first pop.urgent-first pop.many-at-once positions.negative", Edit: inject.On("LPUSH", nil, rename("RPUSH"))},
	{Name: "low-is-normal", About: "The server puts jobs of low priority into the normal queue.",
		Kills: "queue.priorities due.not-popped pop.urgent-first pop.each-priority pop.first-come-first-served positions.negative",
		Edit:  inject.Change("LPUSH", 0, nil, func(v string) string { return strings.Replace(v, ":low", ":normal", 1) })},
	{Name: "functions-share-queues", About: "A client's jobs of one priority share a queue, even if their functions differ.",
		Kills: "queue.functions pop.two-functions", Edit: likeFirst("LPUSH", func(m *message) string {
			if !key("queue:")(m) {
				return ""
			}
			return end(m.Args[0])
		})},
	{Name: "lpush-overwrites", About: "LPUSH replaces a key of another type by a list.",
		Kills: "queue.wrong-type", Edit: overwrites("LPUSH", "string")},
	{Name: "zadd-counts-changes", About: "ZADD counts members whose score changes.",
		Kills: "scheduled.moved due.rescheduled", Edit: replaced("ZADD", integer(0), integer(1))},
	{Name: "first-score-stays", About: "ZADD does not change the score of an existing member.",
		Kills: "scheduled.moved due.rescheduled", Edit: inject.On("ZADD", args(3), func(m *message) { m.Args = slices.Insert(m.Args, 1, "NX") })},
	{Name: "zrange-by-member", About: "ZRANGE sorts by member instead of score.",
		Kills: "scheduled.added scheduled.numeric scheduled.moved", Edit: retold("ZRANGE", func(m *message, reply string) string {
			v := values(reply)
			slices.Sort(v)
			return list(v...)
		})},
	{Name: "scores-compared-as-text", About: "ZRANGE compares scores as text.",
		Kills: "scheduled.numeric", Edit: retold("ZRANGE", func(m *message, reply string) string {
			v := values(ask(m.Peer, "ZRANGE", m.Args[0], "0", "-1", "WITHSCORES"))
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
	{Name: "bad-score-is-0", About: "ZADD reads a score that is not a number as 0.",
		Kills: "scheduled.no-number", Edit: inject.Change("ZADD", 1, inject.ArgIs(1, "tomorrow"), inject.To("0"))},
	{Name: "zadd-overwrites", About: "ZADD replaces a key of another type by a sorted set.",
		Kills: "scheduled.wrong-type", Edit: overwrites("ZADD", "list")},
	{Name: "positions-from-the-front", About: "LRANGE reads negative positions as 0.",
		Kills: "positions.negative", Edit: inject.Change("LRANGE", 1, inject.ArgIs(1, "-1"), inject.To("0"))},
	{Name: "zrange-without-its-last", About: "ZRANGE omits the member at the last position.",
		Kills: "positions.negative", Edit: inject.Change("ZRANGE", 2, func(m *message) bool { return m.Args[2] != "0" && m.Args[2] != "-1" || m.Args[1] == "-1" },
			func(v string) string { return inject.Decimal(whole(v) - 1) })},
}
