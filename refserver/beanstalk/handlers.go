package beanstalk

import (
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
)

// handler handles one command.
type handler func(m *Machine, p *peer, f *codec.Frame)

// handlers are indexed by message type.
var handlers = codec.ByType(beanstalk.Protocol, byName)

var byName = map[string]handler{
	"put": put,
	"use": use,

	"reserve":              reserve,
	"reserve-with-timeout": reserveWithTimeout,
	"reserve-job":          ofJob(isFree, reserveJob),
	"delete":               ofJob(isOwnerOrFree, deleteJob),
	"release":              ofJob(isOwner, releaseJob),
	"bury":                 ofJob(isOwner, buryJob),
	"touch":                ofJob(isOwner, touch),
	"watch":                watchTube,
	"ignore":               ignore,

	"peek":         ofJob(whatever, peek),
	"peek-ready":   peekFirst(ready),
	"peek-delayed": peekFirst(delayed),
	"peek-buried":  peekFirst(buried),
	"kick":         kick,
	"kick-job":     ofJob(kickable, kickJob),
	"pause-tube":   pauseTube,
	"quit":         quit,

	"stats":              showStats,
	"stats-job":          ofJob(whatever, showJob),
	"stats-tube":         showTube,
	"list-tubes":         listTubes,
	"list-tube-used":     listTubeUsed,
	"list-tubes-watched": listWatched,
}

// Message types of the replies.
var (
	inserted      = typeNamed("INSERTED")
	draining      = typeNamed("DRAINING")
	using         = typeNamed("USING")
	reservedReply = typeNamed("RESERVED")
	deadlineSoon  = typeNamed("DEADLINE_SOON")
	timedOut      = typeNamed("TIMED_OUT")
	notFound      = typeNamed("NOT_FOUND")
	deleted       = typeNamed("DELETED")
	released      = typeNamed("RELEASED")
	buriedReply   = typeNamed("BURIED")
	touched       = typeNamed("TOUCHED")
	watching      = typeNamed("WATCHING")
	notIgnored    = typeNamed("NOT_IGNORED")
	found         = typeNamed("FOUND")
	kicked        = typeNamed("KICKED")
	kickedJob     = typeNamed("KICKED_JOB")
	paused        = typeNamed("PAUSED")
	listReply     = typeNamed("list-reply")
	statsReply    = typeNamed("stats-reply")
)

var typeNamed = beanstalk.Protocol.MustTypeNamed

// number returns a numeric argument, which the codec has checked.
func number(f *codec.Frame, i int) uint64 {
	n, _ := codec.ParseNumber(f.Arg(i))
	return n
}

// put handles "put" ("Producer Commands"). The arguments are priority, delay, time to run and body.
func put(m *Machine, p *peer, f *codec.Frame) {
	m.produces(p)
	if m.draining.Load() {
		p.conn.Send(draining)
		return
	}
	j := m.newJob(p.tube, f.Arg(3))
	j.priority, j.delay, j.ttr = uint32(number(f, 0)), uint32(number(f, 1)), max(1, uint32(number(f, 2)))
	p.conn.Send(inserted, m.decimal(j.id))
	m.delayOrReady(j)
}

func use(m *Machine, p *peer, f *codec.Frame) {
	m.use(p, m.tube(f.Arg(0)))
	p.conn.Send(using, p.tube.name)
}

func listTubeUsed(_ *Machine, p *peer, _ *codec.Frame) { p.conn.Send(using, p.tube.name) }

func reserve(m *Machine, p *peer, _ *codec.Frame) { m.await(p, never) }

// reserveWithTimeout waits for the given number of seconds. A negative number means no limit.
func reserveWithTimeout(m *Machine, p *peer, f *codec.Frame) {
	n, err := strconv.ParseInt(string(f.Arg(0)), 10, 64)
	if limit := int64(never) / int64(time.Second); err != nil || n < 0 || n > limit {
		m.await(p, never)
	} else {
		m.await(p, n*int64(time.Second))
	}
}

// ofJob returns a handler for a command about one job. The reply is NOT_FOUND if no job has the ID, or if fits
// returns false.
func ofJob(fits func(p *peer, j *job) bool, do func(m *Machine, p *peer, j *job, f *codec.Frame)) handler {
	return func(m *Machine, p *peer, f *codec.Frame) {
		if j := m.jobs.find(number(f, 0)); j != nil && fits(p, j) {
			do(m, p, j, f)
		} else {
			p.conn.Send(notFound)
		}
	}
}

func whatever(*peer, *job) bool          { return true }
func isOwner(p *peer, j *job) bool       { return j.owner == p }
func isFree(_ *peer, j *job) bool        { return j.owner == nil }
func isOwnerOrFree(p *peer, j *job) bool { return isOwner(p, j) || isFree(p, j) }
func kickable(_ *peer, j *job) bool      { return j.state == buried || j.state == delayed }

func reserveJob(m *Machine, p *peer, j *job, _ *codec.Frame) {
	m.markWorker(p)
	m.reserve(p, j)
}

func deleteJob(m *Machine, p *peer, j *job, _ *codec.Frame) {
	j.tube.deletes++
	m.end(j)
	p.conn.Send(deleted)
}

func releaseJob(m *Machine, p *peer, j *job, f *codec.Frame) {
	m.leave(j)
	j.priority, j.delay = uint32(number(f, 1)), uint32(number(f, 2))
	j.releases++
	m.delayOrReady(j)
	p.conn.Send(released)
}

func buryJob(m *Machine, p *peer, j *job, f *codec.Frame) {
	m.leave(j)
	j.priority = uint32(number(f, 1))
	m.bury(j)
	p.conn.Send(buriedReply)
}

// touch restarts the job's time to run.
func touch(m *Machine, p *peer, j *job, _ *codec.Frame) {
	p.reserved.remove(int(j.place))
	p.reserved.add(m.now()+seconds(j.ttr), j.id, j)
	p.conn.Send(touched)
}

func watchTube(m *Machine, p *peer, f *codec.Frame) {
	m.watch(p, m.tube(f.Arg(0)))
	p.conn.Send(watching, m.decimal(uint64(len(p.watches))))
}

// ignore removes a tube from the watch list, unless it is the last one.
func ignore(m *Machine, p *peer, f *codec.Frame) {
	if t := m.tubes[string(f.Arg(0))]; t != nil {
		if i := p.watching(t); i >= 0 && len(p.watches) == 1 {
			p.conn.Send(notIgnored)
			return
		} else if i >= 0 {
			m.unwatch(p, i)
		}
	}
	p.conn.Send(watching, m.decimal(uint64(len(p.watches))))
}

func peek(m *Machine, p *peer, j *job, _ *codec.Frame) {
	p.conn.Send(found, m.decimal(j.id), j.body)
}

// peekFirst returns a handler that shows the first job with the state in the tube that the peer uses.
func peekFirst(s state) handler {
	return func(m *Machine, p *peer, f *codec.Frame) {
		if e := p.tube.jobs[s].first(); e != nil {
			peek(m, p, e.item, f)
		} else {
			p.conn.Send(notFound)
		}
	}
}

// kick makes buried jobs in the tube that the peer uses ready. If there are none, it makes delayed jobs ready.
func kick(m *Machine, p *peer, f *codec.Frame) {
	from := &p.tube.jobs[buried]
	if from.len == 0 {
		from = &p.tube.jobs[delayed]
	}
	n := min(number(f, 0), uint64(from.len))
	for range n {
		m.kick(from.first().item)
	}
	p.conn.Send(kicked, m.decimal(n))
}

func (m *Machine) kick(j *job) {
	m.leave(j)
	j.kicks++
	m.queue(j)
}

func kickJob(m *Machine, p *peer, j *job, _ *codec.Frame) {
	m.kick(j)
	p.conn.Send(kickedJob)
}

// pauseTube prevents that jobs of a tube are reserved, for the given number of seconds. 0 ends a pause.
func pauseTube(m *Machine, p *peer, f *codec.Frame) {
	t := m.tubes[string(f.Arg(0))]
	if t == nil {
		p.conn.Send(notFound)
		return
	}
	t.pauses++
	t.pause = uint32(number(f, 1))
	t.resumes = m.now() + seconds(t.pause)
	if t.pause == 0 {
		m.markSupplied(t)
	}
	m.setTimer(t, t.nextEvent())
	p.conn.Send(paused)
}

func quit(_ *Machine, p *peer, _ *codec.Frame) { p.conn.Close() }
