package judge

import (
	"slices"

	"jobwire/codec"
)

// ends are the types that end a job.
func ends(t string) bool { return t == "WORK_COMPLETE" || t == "WORK_FAIL" || t == "WORK_EXCEPTION" }

// works judges what a worker says of a job.
func (g *gearmanCourt) works(c *conn, f *codec.Frame) {
	handle, t := string(f.Arg(0)), f.Type.Name
	held, has := c.gm.holds[handle]
	if !has {
		switch {
		case c.gm.raised.has(handle) && t == "WORK_FAIL": // the end of it, once more
		case c.gm.done.has(handle) && ends(t):
			g.accuse(c, "gearman.work.final", "Job handle", "this worker has ended the job already")
		case !c.gm.done.lost:
			g.accuse(c, "gearman.worker.uses-the-handle", "Job handle", "this worker was not assigned the job")
		}
		return
	}
	if !ends(t) {
		if job := g.jobs[handle]; job != nil && job.assigns == 1 && len(job.said) < maxSaid {
			job.said = append(job.said, utterance{t, g.rest(f)})
		} else if job != nil {
			job.mute = true
		}
		return
	}
	if held.times > 1 {
		c.gm.holds[handle] = tenure{times: held.times - 1}
	} else {
		delete(c.gm.holds, handle)
	}
	c.gm.done.add(handle)
	if t == "WORK_EXCEPTION" {
		c.gm.raised.add(handle)
	}
	if job := g.jobs[handle]; job != nil {
		if job.holder == c {
			job.holder = nil
		}
		if job.results++; !held.firm || !c.certain { // it may not be heeded
			job.results++
		}
		job.result, job.data, job.resultAt = t, g.rest(f), g.at
	}
}

// toldRules are the rules of what clients are told.
var toldRules = map[string]codec.RuleID{
	"WORK_COMPLETE": "gearman.work.complete", "WORK_FAIL": "gearman.work.fail", "WORK_EXCEPTION": "gearman.work.exception",
	"WORK_DATA": "gearman.work.data", "WORK_WARNING": "gearman.work.warning", "WORK_STATUS": "gearman.work.status",
}

// detachedRules are those of submissions that have one of their own.
var detachedRules = map[string]codec.RuleID{"SUBMIT_JOB_EPOCH": "gearman.epoch.background", "SUBMIT_JOB_SCHED": "gearman.sched.background"}

// tells judges what a client is told of a job.
func (g *gearmanCourt) tells(c *conn, f *codec.Frame) {
	const field = "Job handle"
	handle, t := string(f.Arg(0)), f.Type.Name
	l := c.gm.told[handle]
	job := g.jobs[handle]
	switch {
	case !c.gm.client:
		g.accuse(c, "gearman.role.responses", "", "the connection is no client's")
	case job != nil && job.void:
		return
	case l == nil && c.gm.finished.has(handle):
		g.accuse(c, toldRules[t], field, "the client was told of the job's end already")
	case l == nil && !c.gm.finished.lost:
		g.accuse(c, "gearman.submit.created-first", field, "the client was not told of such a job")
	case l == nil:
	case l.waits == 0:
		rule := codec.RuleID("gearman.submit.bg-detached")
		if own, ok := detachedRules[l.detached]; ok {
			rule = own
		}
		g.accuse(c, rule, field, "it was submitted in the background")
	case t == "WORK_EXCEPTION" && !c.gm.exceptions:
		g.accuse(c, "gearman.work.exception-unasked", "", "the client has not asked for exceptions")
	}
	if !ends(t) {
		if l != nil && l.waits > 0 {
			g.passes(c, l, f, handle)
		}
		return
	}
	g.compare(c, f, handle)
	if l != nil && l.waits > 0 {
		g.misses(c, l, t, handle)
	}
	if l != nil {
		l.excepted = l.excepted || t == "WORK_EXCEPTION"
	}
	if l != nil && t != "WORK_EXCEPTION" {
		if l.ends++; l.ends >= l.waits {
			delete(c.gm.told, handle)
			c.gm.finished.add(handle)
		}
	}
}

// compare holds what a client is told of the end against what the worker has said.
func (g *gearmanCourt) compare(c *conn, f *codec.Frame, handle string) {
	job, t := g.jobs[handle], f.Type.Name
	if job == nil {
		return
	}
	if t == "WORK_COMPLETE" || t == "WORK_FAIL" && job.results > 0 { // else it may have been cancelled by somebody unheard
		defer func() { job.told = g.at }()
	}
	if g.timed || job.assigns != 1 {
		return
	}
	rule := toldRules[t]
	switch {
	case job.results == 0 && job.holder != nil && job.holder != c:
		g.suspect(c, rule, "", func(p *conn) bool { return p.gm.holds[handle].firm }, []*conn{job.holder}, "connection %d has the job, and has not ended it", job.holder.id)
	case job.results != 1:
	case job.result == t && job.data != g.rest(f):
		g.accuse(c, rule, "", "the worker has given another result")
	case job.result == "WORK_EXCEPTION": // which some are told as a failure
	case job.result != t:
		g.accuse(c, toldRules[job.result], "", "the worker has said %s", job.result)
	}
}

const maxSaid = 1 << 6 // of one job

// passes judges what is passed on to a client before the end: some thing that the worker has said
// behind what was passed on before.
func (g *gearmanCourt) passes(c *conn, l *listener, f *codec.Frame, handle string) {
	job, u := g.jobs[handle], utterance{f.Type.Name, g.rest(f)}
	if job == nil || job.assigns != 1 || job.mute || job.joined || g.timed {
		return
	}
	if k := slices.Index(job.said[l.next:], u); k >= 0 {
		l.next += k + 1
		if u.typ == "WORK_DATA" {
			l.heard[0]++
		} else if u.typ == "WORK_WARNING" {
			l.heard[1]++
		}
		return
	}
	rule := toldRules[u.typ]
	switch {
	case job.results == 1:
		g.accuse(c, rule, "", "the worker has not said this")
	case job.holder != nil && job.holder != c:
		unsaid := func(*conn) bool { return job.assigns == 1 && !job.mute && !slices.Contains(job.said, u) }
		g.suspect(c, rule, "", unsaid, []*conn{job.holder}, "connection %d, which has the job, has not said this", job.holder.id)
	}
}

// misses judges, at the end of a job, whether a client was told all that it was to be told.
func (g *gearmanCourt) misses(c *conn, l *listener, t, handle string) {
	job := g.jobs[handle]
	if job == nil || job.assigns != 1 || job.results != 1 || job.mute || job.joined || g.timed || l.since >= job.assigned {
		return
	}
	if t == "WORK_FAIL" && job.result == "WORK_EXCEPTION" && !l.excepted && c.gm.granted != 0 && c.gm.granted < job.resultAt {
		g.accuse(c, "gearman.work.exception", "", "the client has asked for exceptions, and the worker has sent one")
	}
	if t == "WORK_EXCEPTION" {
		return
	}
	for i, typ := range [...]string{"WORK_DATA", "WORK_WARNING"} {
		said := 0
		for _, u := range job.said {
			if u.typ == typ {
				said++
			}
		}
		if said > l.heard[i] {
			g.accuse(c, toldRules[typ], "", "the worker has sent %d %s, and the client was told of %d", said, typ, l.heard[i])
		}
	}
}
