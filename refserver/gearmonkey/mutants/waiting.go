package mutants

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// line is another way to serve BRPOP: those who wait do so here, and the machine does not know of
// them.
type line struct {
	*bench
	waiting []*wait
	served  map[*peer]int // how often each was

	turn     func(l *line, of []*wait) *wait // who of those is next
	most     int                             // how many are served for a push; 0 is all
	over     func(l *line, w *wait)          // time is over for one who is not in the line any more
	blind    bool                            // one who waits for a single list does not look into it first
	inTurn   bool                            // nobody is served whom somebody of the same function stands before
	keepGone bool                            // who leaves does not leave the line

	gone []*wait // who is served though nobody is there any more
}

type wait struct {
	peer *peer
	keys []string
}

// lined makes a hook of a line.
func lined(l line) Hook {
	return func(b *bench) {
		l := l
		l.bench, l.served = b, map[*peer]int{}
		b.on("BRPOP", l.pop)
		b.on("LPUSH", l.push)
		b.leaving = func(p *peer) { l.leave(p) }
		b.halved = func(p *peer) bool {
			if l.leave(p) {
				p.conn.Close()
			}
			return false
		}
	}
}

func (l *line) pop(p *peer, w []string) {
	seconds, err := strconv.ParseFloat(w[len(w)-1], 64)
	if len(w) < 3 || err != nil || seconds < 0 {
		l.pass(p, w...)
		return
	}
	q := &wait{p, w[1 : len(w)-1]}
	if !(l.blind && len(q.keys) == 1) && l.serve(q) {
		return
	}
	p.Hold()
	l.waiting = append(l.waiting, q)
	if seconds > 0 {
		l.After(time.Duration(seconds*float64(time.Second)), func() {
			if i := slices.Index(l.waiting, q); i >= 0 {
				l.waiting = slices.Delete(l.waiting, i, i+1)
				l.say(p, nullList)
				p.Resume()
				if l.over != nil {
					l.over(l, q)
				}
			}
		})
	}
}

// serve gives a job to one, if there is any.
func (l *line) serve(q *wait) bool {
	for _, k := range q.keys {
		reply := l.ask(q.peer, "RPOP", k)
		if reply == null {
			continue
		}
		if reply[0] != '-' {
			reply = list(k, values(reply)[0])
			l.served[q.peer]++
		}
		l.say(q.peer, reply)
		return true
	}
	return false
}

func (l *line) push(p *peer, w []string) {
	l.pass(p, w...)
	if i := slices.IndexFunc(l.gone, func(q *wait) bool { return slices.Contains(q.keys, w[1]) }); i >= 0 {
		l.ask(p, "RPOP", w[1])
		l.gone = slices.Delete(l.gone, i, i+1)
	}
	for n := 0; l.most == 0 || n < l.most; n++ {
		var of []*wait
		for _, q := range l.waiting {
			if slices.Contains(q.keys, w[1]) && !(l.inTurn && l.behindAnother(q)) {
				of = append(of, q)
			}
		}
		if len(of) == 0 {
			return
		}
		q := l.turn(l, of)
		if !l.serve(q) {
			return
		}
		l.forget(q.peer)
		q.peer.Resume()
	}
}

// forget takes a peer out of the line, and reports whether it stood in it.
func (l *line) forget(p *peer) bool {
	n := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(q *wait) bool { return q.peer == p })
	return len(l.waiting) < n
}

// leave is forget where a peer goes.
func (l *line) leave(p *peer) bool {
	for _, q := range l.waiting {
		if l.keepGone && q.peer == p {
			l.gone = append(l.gone, q)
		}
	}
	return l.forget(p)
}

// behindAnother reports whether somebody stands before one who waits for a list of the same
// function.
func (l *line) behindAnother(q *wait) bool {
	function := func(q *wait) string { return strings.Split(q.keys[0], ":")[min(1, strings.Count(q.keys[0], ":"))] }
	i := slices.IndexFunc(l.waiting, func(o *wait) bool { return function(o) == function(q) })
	return l.waiting[i] != q
}

// waiters are those who wait for a list at the machine.
func (b *bench) waiters(key string) (all []*peer) {
	for _, p := range b.peers {
		if p.waits && p.words[0] == "BRPOP" && slices.Contains(p.words[1:len(p.words)-1], key) {
			all = append(all, p)
		}
	}
	return all
}

// waiter returns a list that somebody waits for and of which it holds, or "".
func (b *bench) waiter(holds func(key string) bool) string {
	for _, p := range b.peers {
		if p.waits && p.words[0] == "BRPOP" {
			if i := slices.IndexFunc(p.words[1:len(p.words)-1], holds); i >= 0 {
				return p.words[1+i]
			}
		}
	}
	return ""
}

func longest(_ *line, of []*wait) *wait { return of[0] }
func latest(_ *line, of []*wait) *wait  { return of[len(of)-1] }

// favourite prefers those who were served before.
func favourite(l *line, of []*wait) *wait {
	return slices.MaxFunc(of, func(a, b *wait) int { return l.served[a.peer] - l.served[b.peer] })
}
