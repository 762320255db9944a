package replay

import (
	"cmp"
	"slices"

	"jobwire/codec"
)

// act is a part of a transcript that is not divided: a message of a peer with its reply, or a message that a
// server sends without a request.
type act struct {
	at, end int // index of its first step, and of the step before which the server has processed it
	reply   int // index of the reply, or -1
	key     int // sort key for acts whose order is not determined otherwise
	after   *act
	before  *act // the previous act of the same peer
	done    bool
	kind    kind
	number  uint64 // number of the job that the step creates or receives
	class   string // jobs of one class are assigned in the order of their numbers
}

// kind is the effect of an act on a job.
type kind uint8

const (
	creates  kind = iota + 1
	receives      // a worker receives a job
	misses        // a worker asks for a job, and there is none
)

// arrange orders the steps of a transcript so that performing them one after another has the same result as in
// the capture.
//
// If connections send at the same time, the server may process the messages in any order. The following
// conditions determine the order. The server has processed a request before it sends the reply. A job is
// created before another connection names it, and jobs are created in the order of their numbers. Where these
// conditions permit several orders, a request is placed at its reply, or earlier if it may have had an effect
// earlier. A request that found no job is placed before the creation of a job that it could have found. The
// next connection sends after the reply.
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
	seen  int             // number of acts in all that have been considered
	under []*act          // acts that have been considered and are not done
	made  map[string]*act // the act that creates each job
	jobs  int             // number of jobs that are created and not assigned
	left  int             // number of acts that receive a job and are not done
	out   []step
}

// acts creates the acts from the steps.
func (a *arranger) acts() {
	last := map[*session]*act{}
	var slow []int // steps of servers that are not immediate replies
	for i := range a.steps {
		if st := &a.steps[i]; st.from == codec.Server && (st.request == 0 || a.steps[st.request-1].blocks) {
			slow = append(slow, i)
		}
	}
	for i := range a.steps {
		st := &a.steps[i]
		c := &act{at: i, end: i, reply: -1, key: 2 * i}
		switch {
		case st.from == codec.Peer:
			c.before, last[st.session] = last[st.session], c
			a.request(c, slow)
		case st.request > 0:
			continue
		case st.typ != nil && st.typ.Does == codec.Assign:
			c.kind = receives
			a.left++
		}
		a.all = append(a.all, c)
	}
	for _, c := range a.all {
		a.follow(c)
	}
}

// request sets the kind, the end and the sort key of the act of a peer. slow are the steps of servers that are not
// immediate replies.
func (a *arranger) request(c *act, slow []int) {
	st := &a.steps[c.at]
	if st.late > 0 {
		c.key, c.end = 2*st.late-1, st.late
	}
	if st.reply == 0 {
		return
	}
	answer := &a.steps[st.reply]
	c.reply, c.end, c.key = st.reply, st.reply, 2*st.reply
	switch {
	case st.does.Does == codec.Submit && (answer.typ.Has(codec.JobID) || st.typ.Has(codec.JobID)):
		c.kind = creates
		job := cmp.Or(jobOf(answer), jobOf(st), contentOf(st))
		c.number = numberOf(job)
		if a.made[job] == nil {
			a.made[job] = c
		}
		c.class = queueOf(st)
	case answer.typ.Does == codec.Assign:
		c.kind = receives
		a.left++
	case st.does.Does == codec.Ask && (answer.typ.Does == codec.NoJob || answer.typ.Does == codec.Wake) && !st.blocks:
		c.kind, c.key = misses, 2*c.at
	}
	if c.kind == misses || st.blocks { // the request has no other effect
		return
	}
	k, _ := slices.BinarySearch(slow, c.at)
	for ; k < len(slow) && slow[k] < c.reply; k++ {
		if a.steps[slow[k]].session != st.session {
			c.key = 2*slow[k] - 1
			return
		}
	}
}

// follow sets the act that must precede an act: the creation of the job that it names.
func (a *arranger) follow(c *act) {
	for _, i := range []int{c.at, c.reply} {
		if i < 0 {
			continue
		}
		job := jobOf(&a.steps[i])
		if job == "" && c.kind == receives && a.steps[i].from == codec.Server {
			job = contentOf(&a.steps[i])
		}
		if made := a.made[job]; made != nil && a.steps[made.at].session != a.steps[c.at].session && made.at < c.end {
			c.after = made
		}
	}
	if c.kind == receives && c.after != nil {
		if !a.steps[c.after.at].session.proto.OrderedIDs {
			c.after.number = uint64(c.end) // the job that is assigned first was created first
		}
		c.class, c.number = c.after.class, c.after.number
	}
}

// queueOf returns the class of a job, by function and priority. Jobs of different classes do not wait for each
// other.
func queueOf(st *step) string {
	if len(st.args) == 0 || st.typ.End != "" {
		return st.typ.Name
	}
	return st.typ.Name + " " + string(st.args[0])
}

// next returns the act to perform next.
func (a *arranger) next() *act {
	a.under = slices.DeleteFunc(a.under, func(c *act) bool { return c.done })
	horizon := len(a.steps) // the first step that has to come after an act that is not done
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
	if len(ready) == 0 { // the conditions contradict each other, so the capture is inconsistent
		return a.under[0]
	}
	best := slices.MinFunc(ready, func(x, y *act) int { return x.key - y.key })
	if a.left > 0 && a.jobs > 0 && best.kind == misses { // there is a job: assign it before a request finds none
		best = a.toward(receives, best, ready)
	} else if a.jobs == 0 && best.kind == creates { // there is no job: requests that find none come first
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

// toward returns the act that must be performed first so that an act of the kind can be performed.
// If no act has these properties, it returns the argument.
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

// first returns the first act that must be performed before c, or c itself.
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

// maxChain limits the number of acts that first follows.
const maxChain = 1000

// perform appends the steps of an act. Messages that the server sent on the connection before the reply precede
// the act.
func (a *arranger) perform(c *act) {
	c.done = true
	switch c.kind {
	case creates:
		a.jobs++
	case receives:
		a.jobs--
		a.left--
	}
	a.out = append(a.out, a.steps[c.at])
	if c.reply < 0 {
		return
	}
	before := func(o *act) bool {
		return !o.done && o.at < c.reply && o.reply < 0 && a.steps[o.at].from == codec.Server &&
			a.steps[o.at].session == a.steps[c.at].session
	}
	for _, o := range a.under {
		if before(o) {
			a.perform(o)
		}
	}
	for _, o := range a.all[a.seen:] {
		if o.at > c.reply {
			break
		}
		if before(o) {
			a.perform(o)
		}
	}
	a.out = append(a.out, a.steps[c.reply])
}
