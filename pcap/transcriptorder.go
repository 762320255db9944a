package pcap

import (
	"cmp"
	"slices"
	"strconv"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// act is a step of a script in the making: what a peer sends, together with what answers
// it, or what a server says unasked.
type act struct {
	at, end int // indices of its first step, and of the one by which the server has surely done it
	reply   int // of the step that answers it; -1 if it has none
	key     int // its place among acts that nothing else orders
	after   *act
	before  *act // of the same peer
	done    bool
	kind    kind
	number  uint64 // of the job that it makes, or gets
	class   string // of jobs that are given out in the order of their numbers
}

// kind is what an act does with a job.
type kind uint8

const (
	makes  kind = iota + 1
	gets        // as a worker
	misses      // wants one, and there is none
)

// arrange puts the steps of a set into an order in which they can be performed one
// after another with the same outcome.
//
// Connections that speak at once leave to chance in which order the server hears them. It has
// heard a request between its coming and its answer; within that, jobs tell: they are made
// before anybody else speaks of them, and in the order of their numbers. What else is left
// open stands where its answer came, unless something may have come of it earlier, or it
// found nothing: then it had come before what could have been found. Answers are awaited before
// anybody else speaks.
func arrange(steps []step) []step {
	pair(steps)
	a := arranger{steps: steps, made: map[string]*act{}}
	a.acts()
	for n := 0; n < len(a.all); {
		next := a.next()
		a.perform(next)
		for n < len(a.all) && a.all[n].done {
			n++
		}
		a.first = n
	}
	return a.out
}

// arranger orders the acts of one set.
type arranger struct {
	steps []step
	all   []*act          // in the order of the capture
	first int             // all before it are done
	made  map[string]*act // by their jobs
	jobs  int             // made, and given to nobody
	left  int             // acts that get one
	out   []step
}

// acts makes acts of steps.
func (a *arranger) acts() {
	last := map[*talk]*act{}
	var slow []int // what servers said unasked, or when they could
	for i := range a.steps {
		if st := &a.steps[i]; st.from == codec.Server && (st.request == 0 || a.steps[st.request-1].blocks) {
			slow = append(slow, i)
		}
	}
	for i := range a.steps {
		st := &a.steps[i]
		notes := playRows[st.talk.proto]
		if st.from == codec.Server {
			if st.request == 0 {
				c := &act{at: i, end: i, reply: -1, key: 2 * i}
				if st.typ != nil && slices.Contains(notes.assigns, st.typ.Name) {
					c.kind = gets
					a.left++
				}
				a.all = append(a.all, c)
			}
			continue
		}
		c := &act{at: i, end: i, reply: -1, key: 2 * i, before: last[st.talk]}
		last[st.talk] = c
		a.all = append(a.all, c)
		if st.late > 0 {
			c.key, c.end = 2*st.late-1, st.late
		}
		if st.reply == 0 {
			continue
		}
		answer := &a.steps[st.reply]
		c.reply, c.end, c.key = st.reply, st.reply, 2*st.reply
		switch {
		case slices.Contains(notes.creates, answer.typ.Name), slices.Contains(notes.creates, st.typ.Name):
			c.kind = makes
			job := cmp.Or(jobOf(answer), jobOf(st), contentOf(st))
			c.number = numberOf(job)
			if a.made[job] == nil {
				a.made[job] = c
			}
			c.class = queueOf(st)
		case slices.Contains(notes.assigns, answer.typ.Name):
			c.kind = gets
			a.left++
		case slices.Contains(notes.polls, noteName(st)) && !st.blocks:
			c.kind, c.key = misses, 2*i
		}
		if c.kind == misses || st.blocks { // nothing comes of it but the answer
			continue
		}
		k, _ := slices.BinarySearch(slow, i)
		for ; k < len(slow) && slow[k] < c.reply; k++ {
			if a.steps[slow[k]].talk != st.talk {
				c.key = 2*slow[k] - 1
				break
			}
		}
	}
	for _, c := range a.all {
		for _, i := range []int{c.at, c.reply} {
			if i < 0 {
				continue
			}
			job := jobOf(&a.steps[i])
			if job == "" && c.kind == gets && a.steps[i].from == codec.Server {
				job = contentOf(&a.steps[i])
			}
			if made := a.made[job]; made != nil && a.steps[made.at].talk != a.steps[c.at].talk && made.at < c.end {
				c.after = made
			}
		}
		if c.kind == gets && c.after != nil {
			if made := &a.steps[c.after.at]; !playRows[made.talk.proto].ordinal {
				c.after.number = uint64(c.end) // what is given out first was made first
			}
			c.class, c.number = c.after.class, c.after.number
		}
	}
}

// queueOf tells jobs apart that wait for each other: by function and priority.
func queueOf(st *step) string {
	if len(st.args) == 0 || st.typ.End != "" {
		return st.typ.Name
	}
	return st.typ.Name + " " + string(st.args[0])
}

// next chooses what is performed next.
func (a *arranger) next() *act {
	var ready []*act
	horizon := len(a.steps) // what came behind it had to wait for something that is not done
	for _, c := range a.all[a.first:] {
		if c.at > horizon {
			break
		}
		if !c.done {
			ready = append(ready, c)
			horizon = min(horizon, c.end)
		}
	}
	ready = slices.DeleteFunc(ready, func(c *act) bool {
		return c.before != nil && !c.before.done || c.after != nil && !c.after.done
	})
	if len(ready) == 0 { // what was captured contradicts itself
		return a.all[a.first]
	}
	best := slices.MinFunc(ready, func(x, y *act) int { return x.key - y.key })
	if a.left > 0 && a.jobs > 0 && best.kind == misses { // there is a job: somebody gets it before
		best = a.toward(gets, best, ready)
	} else if a.jobs == 0 && best.kind == makes { // there is none, for whom does not find one
		best = a.toward(misses, best, ready)
	}
	for _, c := range a.all[a.first:] {
		if c.at > best.end {
			break
		}
		if !c.done && c.kind == best.kind && c.class != "" && c.class == best.class && c.number < best.number {
			if first := c.first(); slices.Contains(ready, first) {
				return first
			}
		}
	}
	return best
}

// toward returns what is to be done so that an act of a kind can be done instead of another,
// or the other if there is none.
func (a *arranger) toward(k kind, instead *act, ready []*act) *act {
	var best, start *act
	for _, c := range a.all[a.first:] {
		if c.at > instead.end {
			break
		}
		if c.done || c.kind != k || best != nil && best.key <= c.key {
			continue
		}
		if first := c.first(); slices.Contains(ready, first) {
			best, start = c, first
		}
	}
	if best == nil {
		return instead
	}
	return start
}

// first returns what has to be done before an act, or the act.
func (c *act) first() *act {
	for range maxChain {
		switch {
		case c.before != nil && !c.before.done:
			c = c.before
		case c.after != nil && !c.after.done:
			c = c.after
		default:
			return c
		}
	}
	return c
}

// maxChain bounds how far it is looked for what has to be done first.
const maxChain = 1000

// perform appends an act, and its answer unless something else is due on the
// connection before.
func (a *arranger) perform(c *act) {
	c.done = true
	switch c.kind {
	case makes:
		a.jobs++
	case gets:
		a.jobs--
		a.left--
	}
	a.out = append(a.out, a.steps[c.at])
	if c.reply < 0 {
		return
	}
	for _, o := range a.all[a.first:] {
		if o.at > c.reply {
			break
		}
		if !o.done && o.reply < 0 && a.steps[o.at].from == codec.Server && a.steps[o.at].talk == a.steps[c.at].talk {
			a.perform(o)
		}
	}
	a.out = append(a.out, a.steps[c.reply])
}

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
