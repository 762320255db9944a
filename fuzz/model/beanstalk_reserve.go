package model

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
)

// before reports whether j certainly has precedence over o when a client reserves a job.
func (j *bJob) before(o *bJob) bool { return j.pri < o.pri || j.pri == o.pri && j.order < o.began }

// best returns the job that the server must reserve for the connection at once, or nil.
func (m *beanstalk) best(p *bPeer) *bJob {
	var best *bJob
	for _, j := range m.live {
		if j.state == bReady && !j.vague && slices.Contains(p.watched, j.tube.name) &&
			(j.tube.paused == 0 || m.must(j.tube.paused)) && (best == nil || j.before(best)) {
			best = j
		}
	}
	return best
}

// margin reports whether a job that the connection has reserved is certainly in the last second of its time-to-run, and
// whether one may be.
func (m *beanstalk) margin(p *bPeer) (sure, maybe bool) {
	for _, j := range m.live {
		if j.state == bReserved && j.holder == p.conn {
			maybe = maybe || m.may(j.until-time.Second)
			sure = sure || m.must(j.until-time.Second) || j.ttr <= 1
		}
	}
	return sure, maybe
}

// Received implements Model. If the client waits in a reserve, the message must be the reply to the reserve. After
// illegal input, it only reports jobs whose bodies are wrong.
func (m *beanstalk) Received(conn int, f *codec.Frame) error {
	p := m.peers[conn]
	var err error
	if p != nil && p.waiting && !m.unchecked[conn] {
		err = m.answered(p, f)
	} else {
		err = m.received(conn, f)
	}
	return m.excused(err)
}

// answered checks the reply to the reserve for which the connection waits.
func (m *beanstalk) answered(p *bPeer, f *codec.Frame) error {
	fail := func(rule codec.RuleID, format string, args ...any) error {
		return &Complaint{Conn: p.conn, Rule: rule, Law: "wrong reply to a reserve", Text: fmt.Sprintf(format, args...) +
			"; got " + show(f)}
	}
	defer m.resume(p)
	p.waiting = false
	best := m.best(p)
	switch f.Type.Name {
	case "TIMED_OUT":
		if p.until == never || !m.may(p.until) {
			return fail("beanstalk.reserve.timeout-expires",
				"expected no TIMED_OUT yet, because the timeout of the reserve has not expired")
		}
		if best != nil && !best.fresh {
			return fail("beanstalk.reserve.reserved", "expected job %s, because it is ready", best.id)
		}
		return nil
	case "DEADLINE_SOON":
		if _, maybe := m.margin(p); !maybe {
			return fail("beanstalk.deadline-soon.not-earlier",
				"expected no DEADLINE_SOON, because no job of this connection is in the last second of its time-to-run")
		}
		return nil
	case "RESERVED":
		return m.reserved(p, f, best)
	case "BAD_FORMAT":
		if p.unusual {
			return nil
		}
	}
	return fail("beanstalk.reserve.reserved", "expected RESERVED, TIMED_OUT or DEADLINE_SOON as the reply to a reserve")
}

// job returns the job with the ID in a reply. If the server has not yet sent INSERTED with this ID, job finds the job
// by its body. It returns nil if there is no such job.
func (m *beanstalk) job(f *codec.Frame) *bJob {
	if j := m.jobs[string(f.Arg(0))]; j != nil {
		return j
	}
	for _, j := range m.live {
		if j.id == nil && bytes.Equal(j.body, f.Arg(1)) {
			j.id = bytes.Clone(f.Arg(0))
			m.jobs[string(j.id)] = j
			return j
		}
	}
	return nil
}

// reserved checks a RESERVED reply: the job must exist with its body, must not be reserved, delayed, buried or deleted,
// and must be in a watched tube that is not paused. best, which may be nil, is the job that precedes all others; the
// reply may name a later job only if best has just become ready.
func (m *beanstalk) reserved(p *bPeer, f *codec.Frame, best *bJob) error {
	j := m.job(f)
	fail := func(rule codec.RuleID, format string, args ...any) *Complaint {
		return &Complaint{Conn: p.conn, Rule: rule, Law: "wrong job reserved", Text: fmt.Sprintf(format, args...) + "; got " +
			show(f)}
	}
	switch {
	case j == nil && m.quirks[Shared]:
		return nil
	case j == nil:
		return fail("beanstalk.job.id-stable", "expected the ID of an existing job, because no job has this ID")
	case !bytes.Equal(f.Arg(1), j.body):
		c := fail("beanstalk.body.verbatim", "expected the body %.60q, because the client sent it with put", j.body)
		c.Law = ChangedData
		return c
	case j.vague:
	case j.state == bReserved && !m.may(j.until):
		return fail("beanstalk.reserve.once", "expected another job or none, because this job is already reserved")
	case j.state == bDelayed && !m.may(j.until):
		return fail("beanstalk.delay.waits", "expected another job or none, because this job is delayed for %v more",
			j.until-m.now)
	case j.state == bBuried:
		return fail("beanstalk.bury.untouched", "expected another job or none, because this job is buried")
	case j.state == bGone:
		return fail("beanstalk.delete.gone", "expected another job or none, because this job is deleted")
	}
	switch {
	case !slices.Contains(p.watched, j.tube.name):
		return fail("beanstalk.reserve.any-watched",
			"expected a job of a watched tube, because the connection does not watch tube %s", j.tube.name)
	case !m.may(j.tube.paused) && !j.tube.resumed:
		return fail("beanstalk.pause.no-new-reservation",
			"expected a job of another tube, because this tube is paused for %v more", j.tube.paused-m.now)
	case best != nil && best != j && best.pri < j.pri && !best.fresh && !j.vague:
		return fail("beanstalk.put.priority-order", "expected job %s, because it has a more urgent priority", best.id)
	case best != nil && best != j && best.before(j) && !best.fresh && !j.vague:
		return fail("beanstalk.reserve.fifo", "expected job %s, because it has the same priority and was queued earlier",
			best.id)
	}
	m.markReserved(p, j)
	return nil
}

// markReserved records that the connection has reserved a job.
func (m *beanstalk) markReserved(p *bPeer, j *bJob) {
	if j.state == bReserved {
		j.timeouts++
	}
	j.state, j.holder, j.until, j.fresh, j.vague = bReserved, p.conn, m.now+time.Duration(j.ttr)*time.Second, false, false
	j.reserves++
}

// resume handles the commands that the client sent while its reserve waited.
func (m *beanstalk) resume(p *bPeer) {
	for len(p.backlog) > 0 && !p.waiting {
		f := p.backlog[0]
		p.backlog = p.backlog[1:]
		m.handle(p, f)
	}
}
