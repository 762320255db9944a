package mutants

import (
	"strconv"
	"strings"

	"jobwire/refserver/inject"
)

// locks are faults of BRPOP on one list, and of waiting.
var locks = []row{
	{Name: "waits-for-the-next-push", About: "BRPOP of a single list ignores elements that it contains already.",
		Kills: "lock.there-already lock.wrong-type expire.lock-emptied expire.queue-emptied killed.behind-lock", Edit: lined(line{turn: longest, blind: true})},
	{Name: "over-at-half-time", About: "A BRPOP times out after half of its timeout.",
		Kills: "lock.times-out lock.fraction pop.times-out", Edit: inject.On("BRPOP", nil, func(m *message) {
			i := len(m.Args) - 1
			if f, err := strconv.ParseFloat(m.Args[i], 64); err == nil && f > 0 {
				m.Args[i] = strconv.FormatFloat(f/2, 'f', -1, 64)
			}
		})},
	{Name: "fractions-cut-off", About: "BRPOP rounds a timeout down to whole seconds, so that it waits without limit below one second.",
		Kills: "lock.fraction lock.late lock.expires pop.times-out-alone request.resp2",
		Edit:  inject.On("BRPOP", nil, func(m *message) { m.Args[len(m.Args)-1] = inject.UpTo(".")(m.Args[len(m.Args)-1]) })},
	{Name: "zero-is-at-once", About: "BRPOP with a timeout of 0 returns at once.",
		Kills: "lock.zero", Edit: inject.On("BRPOP", last("0"), setLast("0.001"))},
	{Name: "served-behind-the-time-out", About: "The first element pushed after a BRPOP has timed out is lost.",
		Kills: "lock.late pop.times-out pop.times-out-alone", Edit: lined(line{turn: longest, over: func(l *line, w *wait) { l.gone = append(l.gone, w) }})},
	{Name: "woken-by-longer-names", About: "A push to a list also serves BRPOP of a list whose name is a prefix of that name.",
		Kills: "lock.other-job", Edit: alsoPushed(func(pushed, k string) bool { return k != pushed && strings.HasPrefix(pushed, k) })},
	{Name: "one-push-wakes-all", About: "A push ends the BRPOP of all connections that wait for the list.",
		Kills: "lock.one-for-one pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.many-at-once", Edit: inject.On("LPUSH", nil, func(m *message) {
			n := len(waiters(m, m.Args[0]))
			m.Pass()
			for range n - 1 {
				ask(m.Peer, words(m)...)
			}
		})},
	{Name: "who-waited-least-first", About: "The server serves the connection that started to wait last first.",
		Kills: "lock.one-for-one pop.first-come-first-served pop.served-goes-behind pop.one-worker pop.many-at-once", Edit: lined(line{turn: latest})},
	{Name: "lists-of-a-function-in-turn", About: "The server serves clients that wait for locks of a function only in the order in which they started to wait.",
		Kills: "lock.two-jobs", Edit: lined(line{turn: longest, inTurn: true})},
	{Name: "waiting-holds-up-its-function", About: "While a client waits for a lock, the server does not reply to commands on counters and hashes of that function.",
		Kills: "lock.others-go-on lock.commands-wait cycle.normal killed.behind-done killed.behind-expire", Edit: inject.Ignore("INCR HMSET", func(m *message) bool {
			parts := strings.Split(m.Args[0], ":")
			return len(parts) > 1 && waiter(m, func(k string) bool { return strings.HasPrefix(k, "lock:"+parts[1]+":") }) != ""
		})},
	{Name: "commands-overtake-a-wait", About: "The server executes commands that follow a waiting BRPOP at once.",
		Kills: "lock.commands-wait", Edit: inject.On("BRPOP", nil, func(m *message) {
			if m.Pass(); m.Peer.Waits {
				m.Peer.Resume()
			}
		})},
	{Name: "served-though-gone", About: "The server gives an element to a connection that closed while it waited.",
		Kills: "lock.client-leaves pop.left-by-close pop.left-by-reset pop.half-closed killed.before-popping", Edit: lined(line{turn: longest, keepGone: true})},
	{Name: "negative-time-out-is-0", About: "BRPOP reads a negative timeout as 0.",
		Kills: "lock.time-out-negative", Edit: inject.On("BRPOP", last("-1"), setLast("0"))},
	{Name: "bad-time-out-is-0", About: "BRPOP reads a timeout that is not a number as 0.",
		Kills: "lock.time-out-no-number", Edit: inject.On("BRPOP", last("soon", ""), setLast("0"))},
	{Name: "time-out-optional", About: "BRPOP without a timeout waits without limit.",
		Kills: "lock.no-time-out", Edit: inject.On("BRPOP", args(1), func(m *message) { m.Args = append(m.Args, "0") })},
	{Name: "waits-for-a-list-to-be", About: "BRPOP of a key of another type waits instead of replying with an error.",
		Kills: "lock.wrong-type", Edit: inject.Ignore("BRPOP", is("string"))},
	{Name: "any-key-wakes", About: "Creating a key of another type ends the BRPOP of that key.",
		Kills: "lock.wrong-type-meanwhile", Edit: inject.On("SET", nil, func(m *message) {
			m.Pass()
			for _, p := range waiters(m, m.Args[0]) {
				p.Send(wrong)
			}
		})},
	{Name: "short-expiry-forgotten", About: "The server ignores expiries of less than one second.",
		Kills: "lock.expires expire.gone", Edit: inject.Answer("EXPIRE", inject.ArgIs(1, "1"), integer(1))},
	{Name: "expired-lock-popped", About: "BRPOP returns a lock that has expired.",
		Kills: "lock.expires", Edit: func(s *inject.Server) {
			expired := map[string]bool{}
			s.On("EXPIRE", func(m *message) { expired[m.Args[0]] = m.Args[1] == "1" })
			s.On("BRPOP", func(m *message) {
				if expired[m.Args[0]] {
					m.Answer(list(m.Args[0], "OK"))
				}
			})
		}},
}
