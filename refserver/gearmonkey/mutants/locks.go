package mutants

import (
	"jobwire/refserver/inject"
)

// locks are faults of BRPOP on one list, and of waits.
var locks = []mutantSpec{
	{Name: "waits-for-the-next-push", About: "BRPOP of a single list ignores elements that it contains already.",
		KilledBy: "lock.there-already lock.wrong-type expire.lock-emptied expire.queue-emptied killed.after-lock bytes.lock gone.finished type.popped", Edit: lined(line{turn: longest, skipsSingleKey: true})},
	{Name: "first-after-a-time-out-lost", About: "The first element pushed after a BRPOP has timed out is lost.",
		KilledBy: "lock.late pop.times-out pop.times-out-alone", Edit: lined(line{turn: longest, over: func(l *line, w *wait) { l.gone = append(l.gone, w) }})},
	{Name: "who-waited-least-first", About: "The server serves the connection first that started to wait last.",
		KilledBy: "lock.one-for-one pop.first-come-first-served pop.served-goes-last pop.one-worker pop.many-at-once gone.from-the-middle", Edit: lined(line{turn: latest})},
	{Name: "lists-of-a-function-in-turn", About: "The server serves clients that wait for locks of a function only in the order in which they started to wait.",
		KilledBy: "lock.two-jobs", Edit: lined(line{turn: longest, inTurn: true})},
	{Name: "commands-overtake-a-wait", About: "The server executes commands that follow a waiting BRPOP at once instead of after the wait.",
		KilledBy: "lock.commands-wait", Edit: inject.On("BRPOP", nil, func(m *message) {
			if m.Pass(); m.Peer.Waits {
				m.Peer.Resume()
			}
		})},
	{Name: "served-though-gone", About: "The server gives an element to a connection that closed while it waited.",
		KilledBy: "lock.client-leaves pop.left-by-close pop.left-by-reset pop.half-closed killed.before-popping gone.waiting-worker gone.waiting-client gone.from-the-middle", Edit: lined(line{turn: longest, keepGone: true})},
}
