package model

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// bHandlers maps the name of a command to a function that updates the model.
var bHandlers map[string]func(m *beanstalk, p *bPeer, f codec.Frame)

// init sets the handler of each command. A command without a handler is only counted.
func init() {
	bHandlers = map[string]func(m *beanstalk, p *bPeer, f codec.Frame){
		"put":                  bPut,
		"use":                  bUse,
		"reserve":              bReserve,
		"reserve-with-timeout": bReserve,
		"reserve-job":          bReserveJob,
		"delete":               bDelete,
		"release":              bRelease,
		"bury":                 bBury,
		"touch":                bTouch,
		"watch":                bWatch,
		"ignore":               bIgnore,
		"peek":                 func(m *beanstalk, p *bPeer, f codec.Frame) { m.found(p, "beanstalk.peek.by-id", m.byID(f)) },
		"peek-ready":           bPeek("beanstalk.peek.ready", bReady, func(j, o *bJob) bool { return j.before(o) }),
		"peek-delayed":         bPeek("beanstalk.peek.delayed", bDelayed, func(j, o *bJob) bool { return j.until < o.until }),
		"peek-buried":          bPeek("beanstalk.peek.buried", bBuried, func(j, o *bJob) bool { return j.burial < o.burial }),
		"kick":                 bKick,
		"kick-job":             bKickJob,
		"stats-job":            bStatsJob,
		"stats-tube":           bStatsTube,
		"stats":                bStats,
		"list-tubes":           bListTubes,
		"list-tube-used":       bUsed,
		"list-tubes-watched":   bListWatched,
		"quit":                 bQuit,
		"pause-tube":           bPause,
	}
}

// expectReply adds an expected reply of the named type with the given first arguments.
func (m *beanstalk) expectReply(p *bPeer, rule codec.RuleID, name string, args ...string) {
	m.expect(p.conn, rule, name, typed(name, func(r *codec.Frame) error {
		for i, a := range args {
			if string(r.Arg(i)) != a {
				return wrong("expected %s %s", name, a)
			}
		}
		return nil
	}))
}

// byID returns the job with the ID in a request, or nil. Leading zeros of the ID do not matter.
func (m *beanstalk) byID(f codec.Frame) *bJob {
	j := m.jobs[strconv.FormatUint(number(f.Arg(0)), 10)]
	if j == nil || j.state == bGone {
		return nil
	}
	return j
}

// ownJob returns the job with the ID in a request if the client has reserved it, or nil.
func (m *beanstalk) ownJob(p *bPeer, f codec.Frame) *bJob {
	if j := m.byID(f); j != nil && j.state == bReserved && j.holder == p.conn {
		return j
	}
	return nil
}

// bPut handles put: it adds a job to the used tube and expects INSERTED with an ID that no other job has had, or
// JOB_TOO_BIG if the body is larger than the largest one that the server accepts. If that size is unknown, both are
// right as long as they do not contradict other replies.
func bPut(m *beanstalk, p *bPeer, f codec.Frame) {
	body := f.Arg(3)
	m.count++
	t := m.tube(p.used)
	t.total++
	p.put = true
	j := &bJob{tube: t, body: body, pri: number(f.Arg(0)), ttr: max(1, number(f.Arg(2))), order: m.count, until: never,
		began: cmp.Or(p.began, m.count)}
	m.live = append(m.live, j)
	if delay := number(f.Arg(1)); delay > 0 {
		j.state, j.until = bDelayed, m.now+time.Duration(delay)*time.Second
	} else {
		m.ready(j)
	}
	want, rule := "INSERTED JOB_TOO_BIG", codec.RuleID("beanstalk.put.inserted")
	switch size := len(body); {
	case size == 0 || size < m.maxData:
		want = "INSERTED"
	case size > m.maxData && m.maxData > 0:
		want, rule = "JOB_TOO_BIG", "beanstalk.put.job-too-big"
		fallthrough
	default:
		j.vague = true // only the reply shows whether there is a job
	}
	m.expect(p.conn, rule, strings.ReplaceAll(want, " ", " or "), typed(want, func(r *codec.Frame) error {
		if r.Type.Name == "JOB_TOO_BIG" {
			p.doubt = true
			return m.tooBig(j)
		}
		if o := m.jobs[string(r.Arg(0))]; o != nil && o != j || j.id != nil && !bytes.Equal(j.id, r.Arg(0)) {
			return &Complaint{Rule: "beanstalk.job.id-unique",
				Text: "expected a new job ID, because another job already has this ID"}
		}
		if m.refused > 0 && len(body) >= m.refused {
			return &Complaint{Rule: "beanstalk.put.job-too-big",
				Text: fmt.Sprintf("expected JOB_TOO_BIG, because a body of %d bytes was too big and this one has %d", m.refused,
					len(body))}
		}
		m.accepted = max(m.accepted, len(body))
		j.vague = false
		j.id = bytes.Clone(r.Arg(0))
		m.jobs[string(j.id)] = j
		return nil
	}))
}

// tooBig removes a job whose body is too big.
func (m *beanstalk) tooBig(j *bJob) error {
	size := len(j.body)
	if size <= m.accepted || j.id != nil {
		return &Complaint{Rule: "beanstalk.put.inserted",
			Text: fmt.Sprintf("expected INSERTED, because the server has accepted a body of %d bytes and this one has %d",
				max(size, m.accepted), size)}
	}
	if m.refused == 0 || size < m.refused {
		m.refused = size
	}
	j.tube.total--
	m.live = slices.DeleteFunc(m.live, func(o *bJob) bool { return o == j })
	return nil
}

// bUse handles use: later puts of the connection add jobs to the tube.
func bUse(m *beanstalk, p *bPeer, f codec.Frame) {
	p.used = string(f.Arg(0))
	m.tube(p.used)
	m.expectReply(p, "beanstalk.use.using", "USING", p.used)
}

func bUsed(m *beanstalk, p *bPeer, _ codec.Frame) {
	m.expectReply(p, "beanstalk.list.used", "USING", p.used)
}

// bReserve handles reserve and reserve-with-timeout: it marks the client as waiting until its timeout. It expects no
// particular reply, because several replies are right: answered checks the reply that arrives.
func bReserve(m *beanstalk, p *bPeer, f codec.Frame) {
	p.worker, p.waiting, p.until = true, true, never
	p.margin, _ = m.margin(p)
	if len(f.Type.Fields) > 0 {
		n, err := strconv.ParseInt(string(f.Arg(0)), 10, 64)
		p.unusual = n < 0 || n > math.MaxInt32 || err != nil
		if n >= 0 {
			p.until = m.now + time.Duration(min(n, 1<<31))*time.Second
			if n == 0 {
				p.until = 0
			}
		}
	}
}

// bReserveJob handles reserve-job, which reserves the job with an ID whether it is ready, delayed or buried. A job that
// is already reserved, or does not exist, is NOT_FOUND.
func bReserveJob(m *beanstalk, p *bPeer, f codec.Frame) {
	p.doubt = true // nothing says whether the command makes the client count as a worker
	j := m.byID(f)
	if j == nil || j.state == bReserved && !j.vague {
		m.expectReply(p, "beanstalk.reserve-job.not-found", "NOT_FOUND")
		return
	}
	m.expect(p.conn, "beanstalk.reserve-job.reserved", "RESERVED", typed("RESERVED", func(r *codec.Frame) error {
		if !bytes.Equal(r.Arg(0), j.id) || !bytes.Equal(r.Arg(1), j.body) {
			return wrong("expected job %s with body %.60q, because the client named that job in reserve-job", j.id, j.body)
		}
		m.markReserved(p, j)
		return nil
	}))
}

// bDelete handles delete. A client can delete the jobs that it has reserved, and all jobs that are not reserved;
// another client's reserved job is NOT_FOUND.
func bDelete(m *beanstalk, p *bPeer, f codec.Frame) {
	j := m.byID(f)
	if j == nil || j.state == bReserved && j.holder != p.conn {
		m.expectReply(p, "beanstalk.delete.not-found", "NOT_FOUND")
		return
	}
	m.expectReply(p, codec.RuleID("beanstalk.delete."+j.state.String()), "DELETED")
	m.drop(j)
}

// drop removes a deleted job and counts the deletion for its tube. The ID stays known, so that the server must not use
// it again.
func (m *beanstalk) drop(j *bJob) {
	j.state = bGone
	j.tube.deletes++
	m.live = slices.DeleteFunc(m.live, func(o *bJob) bool { return o == j })
}

// bRelease handles release: a job that the client has reserved gets a new priority and becomes ready, or delayed if the
// delay is not 0.
func bRelease(m *beanstalk, p *bPeer, f codec.Frame) {
	j := m.ownJob(p, f)
	if j == nil {
		m.expectReply(p, "beanstalk.release.not-found", "NOT_FOUND")
		return
	}
	j.pri = number(f.Arg(1))
	j.releases++
	if delay := number(f.Arg(2)); delay > 0 {
		j.state, j.until = bDelayed, m.now+time.Duration(delay)*time.Second
	} else {
		m.ready(j)
	}
	m.expectReply(p, "beanstalk.release.released", "RELEASED")
}

// bBury handles bury: a job that the client has reserved gets a new priority and becomes buried. The burial number
// orders buried jobs for kick and peek-buried.
func bBury(m *beanstalk, p *bPeer, f codec.Frame) {
	j := m.ownJob(p, f)
	if j == nil {
		m.expectReply(p, "beanstalk.bury.not-found", "NOT_FOUND")
		return
	}
	m.buried++
	j.pri, j.state, j.burial, j.until = number(f.Arg(1)), bBuried, m.buried, never
	j.buries++
	m.expectReply(p, "beanstalk.bury.buried", "BURIED")
}

// bTouch handles touch: the time-to-run of a job that the client has reserved starts again.
func bTouch(m *beanstalk, p *bPeer, f codec.Frame) {
	j := m.ownJob(p, f)
	if j == nil {
		m.expectReply(p, "beanstalk.touch.not-found", "NOT_FOUND")
		return
	}
	j.until = m.now + time.Duration(j.ttr)*time.Second
	m.expectReply(p, "beanstalk.touch.touched", "TOUCHED")
}

// bWatch handles watch: it adds a tube to the watch list of the connection, and expects WATCHING with the length of the
// list.
func bWatch(m *beanstalk, p *bPeer, f codec.Frame) {
	if name := string(f.Arg(0)); !slices.Contains(p.watched, name) {
		p.watched = append(p.watched, name)
		m.tube(name)
	}
	m.expectReply(p, "beanstalk.watch.watching", "WATCHING", strconv.Itoa(len(p.watched)))
}

// bIgnore handles ignore: it removes a tube from the watch list, and expects WATCHING with the length of the list. The
// last tube cannot be removed; if the tube is not in a list of one tube, both replies are right.
func bIgnore(m *beanstalk, p *bPeer, f codec.Frame) {
	i := slices.Index(p.watched, string(f.Arg(0)))
	switch {
	case i >= 0 && len(p.watched) == 1:
		m.expectReply(p, "beanstalk.ignore.last", "NOT_IGNORED")
	case i < 0 && len(p.watched) == 1:
		m.expect(p.conn, "beanstalk.ignore.not-watched", "WATCHING 1", typed("WATCHING NOT_IGNORED", nil))
	default:
		if i >= 0 {
			p.watched = slices.Delete(slices.Clone(p.watched), i, i+1)
		}
		m.expectReply(p, "beanstalk.ignore.watching", "WATCHING", strconv.Itoa(len(p.watched)))
	}
}

// found expects a reply to a peek command with one of the jobs. It ignores nil. If there are no jobs, it expects
// NOT_FOUND.
func (m *beanstalk) found(p *bPeer, rule codec.RuleID, all ...*bJob) {
	all = slices.DeleteFunc(all, func(j *bJob) bool { return j == nil })
	if len(all) == 0 {
		m.expectReply(p, "beanstalk.peek.not-found", "NOT_FOUND")
		return
	}
	m.expect(p.conn, rule, "FOUND", typed("FOUND", func(r *codec.Frame) error {
		for _, j := range all {
			if bytes.Equal(r.Arg(0), j.id) {
				if !bytes.Equal(r.Arg(1), j.body) {
					return &Complaint{Rule: "beanstalk.body.verbatim", Law: ChangedData,
						Text: "expected the body that the client sent with put"}
				}
				return nil
			}
		}
		return wrong("expected job %s", all[0].id)
	}))
}

// in returns the jobs of a tube that are in a state. sure is false if other jobs may also be in that state.
func (m *beanstalk) in(tube string, s bState) (all []*bJob, sure bool) {
	sure = true
	for _, j := range m.live {
		if j.tube.name != tube {
			continue
		}
		sure = sure && !j.vague
		if j.state == s {
			all = append(all, j)
		}
	}
	return all, sure
}

// bPeek returns the handler of a command that shows the first job in a state. before defines the order of the jobs;
// several jobs may be equal.
func bPeek(rule codec.RuleID, s bState, before func(j, o *bJob) bool) func(m *beanstalk, p *bPeer, f codec.Frame) {
	return func(m *beanstalk, p *bPeer, _ codec.Frame) {
		all, sure := m.in(p.used, s)
		if !sure {
			m.expect(p.conn, rule, "FOUND", typed("FOUND NOT_FOUND", nil))
			return
		}
		var first []*bJob
		for _, j := range all {
			if !slices.ContainsFunc(all, func(o *bJob) bool { return before(o, j) }) {
				first = append(first, j)
			}
		}
		m.found(p, rule, first...)
	}
}

// bKick handles kick: up to the given number of buried jobs of the used tube become ready or, if no job is buried, of
// delayed jobs. It expects KICKED with the number of jobs. If the order is not certain, the states of the jobs become
// unknown.
func bKick(m *beanstalk, p *bPeer, f codec.Frame) {
	n64 := number(f.Arg(0))
	if m.quirks[KickTruncates] {
		n64 &= 1<<32 - 1
	}
	bound := int(min(n64, 1<<31))
	all, sure := m.in(p.used, bBuried)
	compare := func(j, o *bJob) int { return j.burial - o.burial }
	if len(all) == 0 {
		all, _ = m.in(p.used, bDelayed)
		compare = func(j, o *bJob) int { return int(j.until - o.until) }
	}
	if !sure {
		for _, j := range m.live {
			if j.tube.name == p.used && j.state != bReserved {
				j.vague, j.wasUncertain = true, true
			}
		}
		m.expectReply(p, "beanstalk.kick.kicked-count", "KICKED")
		return
	}
	slices.SortFunc(all, compare)
	n := min(bound, len(all))
	if n64 > math.MaxInt32 { // the specification does not say how large a bound may be
		for _, j := range all[:n] {
			j.vague, j.wasUncertain = true, true
		}
		m.expect(p.conn, "beanstalk.kick.kicked-count", "KICKED", typed("KICKED BAD_FORMAT", func(r *codec.Frame) error {
			if r.Type.Name == "KICKED" && string(r.Arg(0)) != strconv.Itoa(n) {
				return wrong("expected KICKED %d", n)
			}
			return nil
		}))
		return
	}
	m.expectReply(p, "beanstalk.kick.kicked-count", "KICKED", strconv.Itoa(n))
	if n < len(all) && n > 0 && compare(all[n-1], all[n]) == 0 {
		// The specification does not say which job is kicked first if several delays end at the same time.
		for _, j := range all {
			if j.until == all[n].until {
				j.vague, j.wasUncertain = true, true
			}
		}
	}
	for _, j := range all[:n] {
		if !j.vague {
			j.kicks++
			m.ready(j)
		}
	}
}

// bKickJob handles kick-job. The type of its reply KICKED, which has no count, is KICKED_JOB.
func bKickJob(m *beanstalk, p *bPeer, f codec.Frame) {
	j := m.byID(f)
	switch {
	case j != nil && j.vague: // the model does not know its state, so both replies are right
		m.expect(p.conn, "beanstalk.kick-job.kicked", "KICKED", typed("KICKED_JOB NOT_FOUND", nil))
	case j == nil || j.state != bBuried && j.state != bDelayed:
		m.expectReply(p, "beanstalk.kick-job.not-found", "NOT_FOUND")
	default:
		j.kicks++
		m.ready(j)
		m.expectReply(p, "beanstalk.kick-job.kicked", "KICKED_JOB")
	}
}

// bQuit handles quit: the server must close the connection without a reply and release the reserved jobs.
func bQuit(m *beanstalk, p *bPeer, _ codec.Frame) {
	m.ending[p.conn] = true
	m.leaving[p.conn] = closeReason{"beanstalk.quit.closes", "the client sent quit"}
	delete(m.peers, p.conn)
	m.disconnected(p)
}

// bPause handles pause-tube: no job of the tube is reserved for the given number of seconds; 0 ends the pause. It
// expects PAUSED, NOT_FOUND if the tube does not exist, or either if it is not certain that the tube exists.
func bPause(m *beanstalk, p *bPeer, f codec.Frame) {
	name := string(f.Arg(0))
	sure, maybe := m.exists(name)
	if !maybe {
		m.expectReply(p, "beanstalk.pause.not-found", "NOT_FOUND")
		return
	}
	pause := func() {
		t := m.tube(name)
		t.pauses++
		t.paused, t.resumed = m.now+time.Duration(number(f.Arg(1)))*time.Second, false
		if number(f.Arg(1)) == 0 {
			t.paused = 0
			for _, j := range m.live {
				j.fresh = j.fresh || j.tube == t && j.state == bReady
			}
		}
	}
	if sure {
		pause()
		m.expectReply(p, "beanstalk.pause.paused", "PAUSED")
		return
	}
	m.expect(p.conn, "beanstalk.pause.paused", "PAUSED", typed("PAUSED NOT_FOUND", func(r *codec.Frame) error {
		if r.Type.Name == "PAUSED" {
			pause()
		}
		return nil
	}))
}
