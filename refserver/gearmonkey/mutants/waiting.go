package mutants

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/refserver/inject"
)

// waits are faults of BRPOP that no fault script can describe.
var waits = []mutantSpec{
	{Name: "waits-for-the-next-push", About: "BRPOP of a single list ignores elements that it contains already.",
		KilledBy: "lock.there-already lock.wrong-type expire.lock-emptied expire.queue-emptied killed.after-lock bytes.lock gone.finished " +
			"type.popped",
		Edit: lined(line{turn: longest, skipsSingleKey: true})},
	{Name: "first-after-a-time-out-lost", About: "The first element pushed after a BRPOP has timed out is lost.",
		KilledBy: "lock.late pop.times-out pop.times-out-alone",
		Edit:     lined(line{turn: longest, over: func(l *line, w *wait) { l.gone = append(l.gone, w) }})},
	{Name: "who-waited-least-first", About: "The server serves the connection first that started to wait last.",
		KilledBy: "lock.one-for-one pop.first-come-first-served pop.served-goes-last pop.one-worker pop.many-at-once gone.from-the-middle " +
			"many.waiting-clients many.waiting-workers",
		Edit: lined(line{turn: latest})},
	{Name: "lists-of-a-function-in-turn",
		About:    "The server serves clients that wait for locks of a function only in the order in which they started to wait.",
		KilledBy: "lock.two-jobs", Edit: lined(line{turn: longest, inTurn: true})},
	{Name: "served-though-gone", About: "The server gives an element to a connection that closed while it waited.",
		KilledBy: "lock.client-leaves pop.left-by-close pop.left-by-reset pop.half-closed killed.before-popping gone.waiting-worker " +
			"gone.waiting-client gone.from-the-middle",
		Edit: lined(line{turn: longest, keepGone: true})},
	{Name: "served-stays-first", About: "A connection that was served remains first among those that wait.",
		KilledBy: "pop.served-goes-last", Edit: lined(line{turn: mostServed})},
	{Name: "one-served-for-a-push", About: "A push of several elements serves only one waiting connection.",
		KilledBy: "pop.many-at-once", Edit: lined(line{turn: longest, most: 1})},
	{Name: "eight-wait-in-order", About: "If more than eight connections wait for a list, the server serves the last first.",
		KilledBy: "many.waiting-workers[n=9] many.waiting-clients[n=9]",
		Edit: lined(line{turn: func(l *line, of []*wait) *wait {
			if len(of) > 8 {
				return latest(l, of)
			}
			return longest(l, of)
		}})},
	{Name: "last-takes-the-place-of-the-gone", About: "When a connection that waits disconnects, the last that waits takes its place.",
		KilledBy: "gone.from-the-middle", Edit: lined(line{turn: longest, swaps: true})},
}

// line serves BRPOP instead of the machine, which therefore does not know which peers wait.
type line struct {
	*inject.Server
	waiting []*wait
	served  map[*peer]int // how often each peer was served

	turn           func(l *line, of []*wait) *wait // chooses the peer that is served next
	most           int                             // maximum number of peers that are served for a push; 0: all
	over           func(l *line, w *wait)          // called on the timeout of a wait that has left the line
	skipsSingleKey bool                            // a peer that waits for a single list does not get its elements
	inTurn         bool                            // a peer is not served before another that waits for the same function
	keepGone       bool                            // a peer that disconnects stays in the line
	swaps          bool                            // the last peer in the line takes the place of a peer that disconnects

	gone []*wait // peers that have disconnected and are still served
}

type wait struct {
	peer *peer
	keys []string
}

// lined returns an edit that serves BRPOP with a line.
func lined(l line) inject.Edit {
	return func(s *inject.Server) {
		l := l
		l.Server, l.served = s, map[*peer]int{}
		s.On("BRPOP", l.pop)
		s.On("LPUSH", l.push)
		s.On(inject.Closed, func(m *message) { l.leave(m.Peer) })
		s.On(inject.HalfClosed, func(m *message) {
			if l.leave(m.Peer) {
				m.Peer.Close()
			}
		})
	}
}

// pop handles BRPOP in place of the machine: it serves the peer at once or adds it to the line until an element arrives
// or the timeout ends. The machine replies to a BRPOP with invalid arguments.
func (l *line) pop(m *message) {
	p, n := m.Peer, len(m.Args)-1
	seconds, err := strconv.ParseFloat(m.Args[n], 64)
	if n < 1 || err != nil || !(seconds >= 0) {
		return
	}
	m.Drop()
	q := &wait{p, m.Args[:n]}
	if !(l.skipsSingleKey && n == 1) && l.serve(q) {
		return
	}
	p.Pause()
	l.waiting = append(l.waiting, q)
	if seconds > 0 {
		l.After(time.Duration(seconds*float64(time.Second)), func() {
			if i := slices.Index(l.waiting, q); i >= 0 {
				l.waiting = slices.Delete(l.waiting, i, i+1)
				p.Send(nullList)
				p.Resume()
				if l.over != nil {
					l.over(l, q)
				}
			}
		})
	}
}

// serve sends a peer an element of the first of its lists that is not empty, or an error, and reports whether it has
// sent a reply.
func (l *line) serve(q *wait) bool {
	for _, k := range q.keys {
		reply := ask(q.peer, "RPOP", k)
		if reply == null {
			continue
		}
		if isError := reply[0] == '-'; !isError { // an error, such as WRONGTYPE, is sent as it is
			reply = list(k, values(reply)[0])
			l.served[q.peer]++
		}
		q.peer.Send(reply)
		return true
	}
	return false
}

// push handles LPUSH: after the machine has added the elements, it serves the peers in the line that wait for the list,
// at most l.most of them. If a wait in l.gone is for the list, one element is lost.
func (l *line) push(m *message) {
	m.Pass()
	if i := slices.IndexFunc(l.gone, func(q *wait) bool { return slices.Contains(q.keys, m.Args[0]) }); i >= 0 {
		ask(m.Peer, "RPOP", m.Args[0])
		l.gone = slices.Delete(l.gone, i, i+1)
	}
	for n := 0; l.most == 0 || n < l.most; n++ {
		var candidates []*wait
		for _, q := range l.waiting {
			if slices.Contains(q.keys, m.Args[0]) && !(l.inTurn && l.hasEarlierWaiter(q)) {
				candidates = append(candidates, q)
			}
		}
		if len(candidates) == 0 {
			return
		}
		q := l.turn(l, candidates)
		if !l.serve(q) {
			return
		}
		l.forget(q.peer)
		q.peer.Resume()
	}
}

// forget removes a peer from the line, and reports whether the peer was in it.
func (l *line) forget(p *peer) bool {
	n := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(q *wait) bool { return q.peer == p })
	return len(l.waiting) < n
}

// leave removes a peer that disconnects from the line.
func (l *line) leave(p *peer) bool {
	for _, q := range l.waiting {
		if l.keepGone && q.peer == p {
			l.gone = append(l.gone, q)
		}
	}
	if i := slices.IndexFunc(l.waiting, func(q *wait) bool { return q.peer == p }); l.swaps && i >= 0 {
		n := len(l.waiting) - 1
		l.waiting[i] = l.waiting[n]
		l.waiting = l.waiting[:n]
		return true
	}
	return l.forget(p)
}

// hasEarlierWaiter reports whether another peer has waited longer for a list of the same function.
func (l *line) hasEarlierWaiter(q *wait) bool {
	function := func(q *wait) string { return strings.Split(q.keys[0], ":")[min(1, strings.Count(q.keys[0], ":"))] }
	i := slices.IndexFunc(l.waiting, func(o *wait) bool { return function(o) == function(q) })
	return l.waiting[i] != q
}

// waitsFor returns the lists for which a BRPOP of the peer waits.
func waitsFor(p *peer) []string {
	if !p.Waits || p.Asked() != "BRPOP" {
		return nil
	}
	return keys(p.Request)
}

// keys returns the lists of a BRPOP.
func keys(m *message) []string { return m.Args[:max(0, len(m.Args)-1)] }

func longest(_ *line, of []*wait) *wait { return of[0] }
func latest(_ *line, of []*wait) *wait  { return of[len(of)-1] }

// mostServed prefers the peers that were served most often.
func mostServed(l *line, of []*wait) *wait {
	return slices.MaxFunc(of, func(a, b *wait) int { return l.served[a.peer] - l.served[b.peer] })
}
