package pcap

import (
	"cmp"
	"slices"

	"jobwire/codec"
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
	for len(a.out) < len(steps) {
		a.perform(a.next())
	}
	return a.out
}

// arranger orders the acts of one set.
type arranger struct {
	steps []step
	all   []*act          // in the order of the capture
	seen  int             // of all, those that are done or under way
	under []*act          // those under way
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
	a.under = slices.DeleteFunc(a.under, func(c *act) bool { return c.done })
	horizon := len(a.steps) // what came behind it had to wait for something that is not done
	for _, c := range a.under {
		horizon = min(horizon, c.end)
	}
	for ; a.seen < len(a.all) && a.all[a.seen].at <= horizon; a.seen++ {
		if c := a.all[a.seen]; !c.done {
			a.under = append(a.under, c)
			horizon = min(horizon, c.end)
		}
	}
	ready := slices.Clone(a.under)
	ready = slices.DeleteFunc(ready, func(c *act) bool {
		return c.before != nil && !c.before.done || c.after != nil && !c.after.done
	})
	if len(ready) == 0 { // what was captured contradicts itself
		return a.under[0]
	}
	best := slices.MinFunc(ready, func(x, y *act) int { return x.key - y.key })
	if a.left > 0 && a.jobs > 0 && best.kind == misses { // there is a job: somebody gets it before
		best = a.toward(gets, best, ready)
	} else if a.jobs == 0 && best.kind == makes { // there is none, for whom does not find one
		best = a.toward(misses, best, ready)
	}
	for _, c := range a.under {
		if c.kind == best.kind && c.class != "" && c.class == best.class && c.number < best.number {
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
	for _, c := range a.under {
		if c.kind != k || best != nil && best.key <= c.key {
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
	said := func(o *act) bool {
		return !o.done && o.at < c.reply && o.reply < 0 && a.steps[o.at].from == codec.Server && a.steps[o.at].talk == a.steps[c.at].talk
	}
	for _, o := range a.under {
		if said(o) {
			a.perform(o)
		}
	}
	for _, o := range a.all[a.seen:] {
		if o.at > c.reply {
			break
		}
		if said(o) {
			a.perform(o)
		}
	}
	a.out = append(a.out, a.steps[c.reply])
}
