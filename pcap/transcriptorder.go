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
// same peer says next. The answer is then awaited before anybody speaks.
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
		if r := st.reply; r > 0 {
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
	answer := &steps[r]
	for k, v := range answer.args {
		if fd := answer.typ.FieldAt(k); fd == nil || !fd.Assigned {
			continue
		}
		for j := i + 1; j < r; j++ {
			o := &steps[j]
			for n, w := range o.args {
				if o.talk != answer.talk && string(w) == string(v) && o.typ.FieldAt(n).Assigned {
					return j
				}
			}
		}
	}
	return r
}

// ending says what the ends of connections are in a transcript: a peer that hears more
// has only half-closed, and what comes behind the end of a connection is left out. A server's
// end that nothing on the connection explains is the server's own.
func ending(steps []step) []step {
	heard := map[*talk]int{} // the last message of the server
	for i := range steps {
		if st := &steps[i]; st.from == codec.Server && (st.verb <= transcript.Raw) {
			heard[st.talk] = i
		}
	}
	type state struct {
		over bool
		last *step // of the peer
	}
	states := map[*talk]*state{}
	kept := steps[:0]
	for i := range steps {
		st := steps[i]
		s := states[st.talk]
		if s == nil {
			s = &state{}
			states[st.talk] = s
		}
		if st.verb > transcript.Raw {
			if s.over {
				continue
			}
			switch {
			case st.from == codec.Server:
				if s.over = true; st.verb != transcript.Resets {
					st.verb = transcript.Closes
				}
				if !explains(s.last) {
					st.odd = "the server ends the connection, and nothing on it tells why"
				}
			case st.verb == transcript.Resets:
				s.over = true
			case heard[st.talk] < i:
				s.over, st.verb = true, transcript.Closes
			}
		}
		kept = append(kept, st)
		if st.from == codec.Peer {
			last := st
			s.last = &last
		}
	}
	return kept
}

// explains reports whether a peer's last step is a reason for the server to end the
// connection.
func explains(st *step) bool {
	return st != nil && (st.verb != transcript.Send || slices.Contains(playRows[st.talk.proto].last, noteName(st)))
}
