package pcap

import (
	"cmp"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// arrange puts the steps of a set into an order in which they can be performed one
// after another with the same outcome.
//
// Connections that speak at once leave to chance in which order the server hears
// them. The order of its answers tells: a request moves down to right before the
// answer that it gets at once, but never below what may have come of it, nor below what the
// same peer says next. One that finds nothing stays, since it has come before what was there to
// be found later. The answer is then awaited before anybody speaks.
func arrange(steps []step) {
	pair(steps)
	talkNext := map[*talk]int{} // where the next message of the peer will stand
	slow := make([]int, len(steps)+1)
	slow[len(steps)] = len(steps) // the first message from i on that may be an effect
	for i := len(steps) - 1; i >= 0; i-- {
		slow[i] = slow[i+1]
		if steps[i].from == codec.Server && steps[i].slow {
			slow[i] = i
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		st := &steps[i]
		if st.key, st.moved = i, i; st.from == codec.Server {
			continue
		}
		if r := st.reply; r > 0 && !slices.Contains(playRows[st.talk.proto].misses, steps[r].typ.Name) {
			st.key = mentions(steps, i, r)
			for j := slow[i]; j < st.key; j = slow[j+1] {
				if steps[j].talk != st.talk {
					st.key = j
				}
			}
		}
		if next, ok := talkNext[st.talk]; ok {
			st.key = min(st.key, next)
		}
		talkNext[st.talk] = st.key
	}
	heard := map[*talk][2]int{} // where the server's last message on a connection stands
	for i := range steps {
		if st := &steps[i]; st.from == codec.Server {
			before := heard[st.talk]
			if k := st.request - 1; k >= 0 && cmp.Or(cmp.Compare(before[0], steps[k].key), cmp.Compare(before[1], k)) <= 0 {
				st.key, st.moved = steps[k].key, k
			}
			heard[st.talk] = [2]int{st.key, st.moved}
		}
	}
	for i := range steps {
		steps[i].place = i
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.moved, b.moved), cmp.Compare(a.place, b.place))
	})
}

// pair finds the answers that come at once. Servers answer in order.
func pair(steps []step) {
	waiting := map[*talk][]int{}
	for i := range steps {
		st := &steps[i]
		notes, queue := playRows[st.talk.proto], waiting[st.talk]
		switch {
		case st.typ == nil:
			st.slow = st.from == codec.Server
		case st.from == codec.Peer:
			if len(notes.answersOf(st.typ)) > 0 {
				waiting[st.talk] = append(queue, i)
			}
		case len(queue) > 0 && slices.Contains(notes.answersOf(steps[queue[0]].typ), st.typ.Name):
			waiting[st.talk] = queue[1:]
			ask := noteName(&steps[queue[0]])
			st.theirs = slices.Contains(notes.theirs, ask)
			if st.slow = slices.Contains(notes.blocks, ask); !st.slow {
				steps[queue[0]].reply, st.request = i, queue[0]+1
			}
		default:
			st.slow = true
		}
	}
}

// mentions returns the first step between a request and its answer that speaks on
// another connection of the job that the answer names, or r.
func mentions(steps []step, i, r int) int {
	for j := i + 1; j < r; j++ {
		if o := &steps[j]; o.typ != nil && o.talk != steps[r].talk && sameJob(&steps[r], o) {
			return j
		}
	}
	return r
}

// ending says what the ends of connections are in a transcript: a peer that hears more
// has only half-closed, and what comes behind the end of a connection is left out. A server's
// end that nothing explains, and behind which nobody speaks, is likely to be the server's own.
func ending(steps []step) []step {
	var said [2]map[*talk]int // the last message by either side
	for i := range said {
		said[i] = map[*talk]int{}
	}
	spoken := 0
	for i := range steps {
		if st := &steps[i]; st.verb <= transcript.Raw {
			said[st.from][st.talk], spoken = i, i
		}
	}
	over := map[*talk]bool{}
	var end [2]map[*talk]bool
	for i := range end {
		end[i] = map[*talk]bool{}
	}
	for i := range steps {
		if st := &steps[i]; st.verb > transcript.Raw {
			end[st.from][st.talk] = true
		}
	}
	kept := steps[:0]
	for i := range steps {
		st := steps[i]
		if st.cut && !end[st.from][st.talk] { // the capture ends within it
			st.odd = oddPart
		}
		if st.verb > transcript.Raw {
			if over[st.talk] {
				continue
			}
			switch {
			case st.from == codec.Server:
				if over[st.talk] = true; st.verb != transcript.Resets {
					st.verb = transcript.Closes
				}
				if last, ok := said[codec.Peer][st.talk]; spoken < i && ok && !explains(&steps[last]) {
					st.odd = "the server ends the connection, and nothing tells why"
				}
			case st.verb == transcript.Resets:
				over[st.talk] = true
			case said[codec.Server][st.talk] < i:
				over[st.talk], st.verb = true, transcript.Closes
			}
		}
		kept = append(kept, st)
	}
	return kept
}

// explains reports whether a peer's last step is a reason for the server to end the
// connection.
func explains(st *step) bool {
	return st.verb != transcript.Send || slices.Contains(playRows[st.talk.proto].last, noteName(st))
}
