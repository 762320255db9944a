package pcap

import (
	"slices"
	"strconv"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// someTime is how long a server takes at most to hear what is said, in nanoseconds.
const someTime = 3e5

// pair finds what answers each request, and what else was said meanwhile. Servers answer
// in order. An answer for which a peer waited is nobody's if it waits in the script too. It
// does unless it is open whom the server heard first.
func pair(steps []step) {
	var (
		waiting       = map[*talk][]int{}
		said          = map[*talk]int{}
		latest, other asked // the last request, and that of another connection
		busy          int   // requests that wait for an answer that comes at once
		waited        []int // answers for which a peer waited
		rushed        bool
	)
	for i := range steps {
		st := &steps[i]
		notes, queue := playRows[st.talk.proto], waiting[st.talk]
		if st.from == codec.Peer {
			said[st.talk] = i
		}
		if len(st.args) > 0 {
			st.scope = st.args[0]
		}
		switch {
		case st.typ == nil:
		case st.from == codec.Peer:
			if len(notes.answersOf(st.typ)) == 0 {
				break
			}
			st.blocks = slices.Contains(notes.blocks, noteName(st))
			st.contested = busy > len(queue)
			if latest.talk != nil && latest.talk != st.talk && st.at-steps[latest.at].at < someTime {
				steps[latest.at].contested = true
			}
			if latest.talk != st.talk {
				other = latest
			}
			latest = asked{st.talk, i}
			waiting[st.talk] = append(queue, i)
			if !st.blocks {
				busy++
			}
		case len(queue) > 0 && slices.Contains(notes.answersOf(steps[queue[0]].typ), st.typ.Name):
			ask := &steps[queue[0]]
			waiting[st.talk] = queue[1:]
			if st.theirs = slices.Contains(notes.theirs, noteName(ask)); len(st.args) == 1 {
				st.scope = ask.scope
			}
			st.request = queue[0] + 1
			if ask.blocks {
				rushed = rushed || ask.contested
				if waited = append(waited, i); said[st.talk] > queue[0] {
					st.request = 0
				}
				break
			}
			busy--
			spoke := latest
			if spoke.talk == st.talk {
				spoke = other
			}
			if len(said) > 2 || ask.contested || spoke.talk != nil && spoke.at > queue[0] {
				st.theirs = st.theirs || slices.Contains(notes.counts, noteName(ask))
			}
			ask.reply = i
		}
	}
	for _, i := range waited {
		if st := &steps[i]; !rushed || st.request == 0 {
			st.request = 0
		} else {
			steps[st.request-1].reply = i
		}
	}
	next := map[*talk]int{} // what a peer says while it waits: until then nothing came
	for i := len(steps) - 1; i >= 0 && rushed; i-- {
		if st := &steps[i]; st.from == codec.Peer {
			if st.blocks && st.reply == 0 {
				st.late = len(steps)
				if n, ok := next[st.talk]; ok {
					st.late = n
				}
			}
			next[st.talk] = i
		}
	}
}

// asked is when a connection asked for something.
type asked struct {
	talk *talk
	at   int
}

// jobOf returns the job that a message names, or "".
func jobOf(st *step) string {
	if st.typ == nil {
		return ""
	}
	jobs := playRows[st.talk.proto].jobs
	for i, v := range st.args {
		if fd := st.typ.FieldAt(i); fd.Assigned || slices.Contains(jobs, fd.Name) {
			if !fd.Assigned { // it counts for its function
				return string(st.scope) + " " + string(v)
			}
			return string(v)
		}
	}
	return ""
}

// contentOf stands for the name of a job that has none.
func contentOf(st *step) string {
	var b []byte
	for _, i := range playRows[st.talk.proto].content[st.typ.Name] {
		if i < len(st.args) {
			b = append(append(b, st.args[i]...), 0)
		}
	}
	return string(b)
}

// numberOf returns the number at the end of a job's handle.
func numberOf(job string) uint64 {
	k := len(job)
	for k > 0 && job[k-1] >= '0' && job[k-1] <= '9' {
		k--
	}
	n, _ := strconv.ParseUint(job[k:], 10, 64)
	return n
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
