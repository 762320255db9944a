package judge

import (
	"math"

	"jobwire/codec"
)

// body judges a body that the server sends.
func (b *beanstalkCourt) body(c *conn, job *beanstalkJob, a *command, f *codec.Frame) {
	sum := b.sum(f.Arg(2))
	switch {
	case (job.put || job.seen) && job.body != sum:
		b.accuse(c, "beanstalk.body.verbatim", "Body", "it is not that of the job")
	case job.deleted != 0 && job.deleted < a.at:
		b.accuse(c, "beanstalk.delete.gone", "Job ID", "the job was deleted before this was asked")
	}
	job.body, job.seen = sum, true
}

// left tells for how long a reservation surely lasts, behind now.
func (b *beanstalkCourt) left(job *beanstalkJob, h *hold) int64 {
	if job == nil || !job.put {
		return math.MinInt64
	}
	return h.since + job.ttr - b.at
}

// held reports that a party has a job, and has not asked to give it back.
func held(id string) func(*conn) bool {
	return func(p *conn) bool { h := p.bs.holds[id]; return h != nil && !h.given }
}

func (b *beanstalkCourt) reserved(c *conn, a *command, f *codec.Frame) {
	id := string(f.Arg(0))
	job := b.job(id)
	b.body(c, job, a, f)
	switch {
	case a.name == "reserve-job" && id != a.arg:
		b.accuse(c, "beanstalk.reserve-job.reserved", "Job ID", "job %s was asked for", a.arg)
	case a.name == "reserve-job" || !job.put || c.bs.watched[job.tube]:
	case c.bs.ignored[job.tube]:
		b.accuse(c, "beanstalk.ignore.no-more-jobs", "Job ID", "it is in tube %q, which is ignored", job.tube)
	default:
		b.accuse(c, "beanstalk.tube.separate", "Job ID", "it is in tube %q, which is not watched", job.tube)
	}
	if old := job.holder; old != nil {
		h := old.bs.holds[id]
		switch {
		case h == nil || b.left(job, h) <= 0:
		case old == c && !h.given:
			b.accuse(c, "beanstalk.job.exclusive", "Job ID", "this worker has reserved it already")
		case old != c && !c.over:
			b.suspect(c, "beanstalk.job.exclusive", "Job ID", held(id), []*conn{old, c}, "connection %d has reserved it", old.id)
		}
		if old != c && c.over {
			return // captured late: it has gone before the other one got it
		}
	}
	if len(c.bs.holds) >= maxPerConn {
		c.lose()
		return
	}
	job.holder = c
	c.bs.holds[id] = &hold{since: max(a.at, job.at), heard: b.at}
}
