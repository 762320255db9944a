package danga

import (
	"encoding/binary"

	"jobwire/codec"
	"jobwire/codec/danga"
)

// handler answers one message type.
type handler func(m *machine, p *peer, f *codec.Frame)

// handlers stand at the index of their row.
var handlers = func() []handler {
	h := make([]handler, len(danga.Protocol.Types))
	for name, fn := range byName {
		h[row(name).Index] = fn
	}
	return h
}()

var byName = map[string]handler{
	"worker_connect":        connect,
	"worker_disconnect":     disconnect,
	"worker_sleep":          sleep,
	"job_assign_req":        assign,
	"job_status_announce":   ofItsJob(announce),
	"job_complete_announce": ofItsJob(complete),

	"job_create_req":   create,
	"job_status_req":   unlessWaiting(tellStatus),
	"job_complete_req": unlessWaiting(tellResult),
}

// Rows of what the server sends.
var (
	noop           = row("noop")
	jobCreateRes   = row("job_create_res")
	jobAssignRes   = row("job_assign_res")
	jobStatusRes   = row("job_status_res")
	jobCompleteRes = row("job_complete_res")
)

func row(name string) *codec.Type {
	t := danga.Protocol.TypeNamed(name)
	if t == nil {
		panic("unknown message type " + name)
	}
	return t
}

func bigEndian(n uint32) (b [4]byte) {
	binary.BigEndian.PutUint32(b[:], n)
	return b
}

// Workers.

func connect(m *machine, p *peer, f *codec.Frame) {
	asleep := p.asleep
	m.learn(p, f)
	if asleep {
		p.lieDown()
	}
}

func disconnect(m *machine, p *peer, _ *codec.Frame) { m.goodbye(p) }

// goodbye takes from a worker what it can do, and the job that it has.
func (m *machine) goodbye(p *peer) {
	m.unlearn(p)
	if p.job != nil {
		m.requeue(p.job)
	}
}

// sleep lets a worker that has a job stay awake: it could get no other.
func sleep(_ *machine, p *peer, _ *codec.Frame) {
	if p.job == nil {
		p.lieDown()
	}
}

// assign says no with a noop, also to a worker that has a job: it may have
// exactly one ("Guarantees").
func assign(_ *machine, p *peer, _ *codec.Frame) {
	p.rise()
	if p.job == nil {
		if j := p.pick(); j != nil {
			j.assign(p)
			p.conn.Send(jobAssignRes, j.task.name, j.args)
			return
		}
	}
	p.conn.Send(noop)
}

// ofItsJob makes a handler for what a worker says of its job. Without one, it is
// out of turn.
func ofItsJob(do func(m *machine, j *job, f *codec.Frame)) handler {
	return func(m *machine, p *peer, f *codec.Frame) {
		if p.job == nil {
			violate(p)
			return
		}
		do(m, p.job, f)
	}
}

func announce(_ *machine, j *job, f *codec.Frame) {
	j.announced = true
	j.progress = progress(uint32(f.Uint(0)), uint32(f.Uint(1)), uint32(f.Uint(2)))
	for p := range j.waits.All {
		p.conn.Send(jobStatusRes, j.progress[:4], j.progress[4:8], j.progress[8:])
	}
}

func complete(m *machine, j *job, f *codec.Frame) {
	m.finish(j, byte(f.Uint(0)), f.Arg(1), j.worker.conn.MaxData())
}

// Applications.

// unlessWaiting makes a handler for what an application may not ask while it
// waits for a job of type 0: it could not tell the answer from what is streamed.
func unlessWaiting(do handler) handler {
	return func(m *machine, p *peer, f *codec.Frame) {
		if p.waitsFor != nil {
			violate(p)
			return
		}
		do(m, p, f)
	}
}

// create makes a job, or finds the one that it is a duplicate of. Arguments:
// name, duplicate key, flags, type, args. Workers are woken when the answer is on
// its way, as one of them may be the same connection.
func create(m *machine, p *peer, f *codec.Frame) {
	kind := f.Uint(3)
	if kind >= uint64(len(answers)) || p.waitsFor != nil && kind == danga.SyncWait {
		violate(p)
		return
	}
	t, dupkey := m.task(f.Arg(0)), f.Arg(1)
	var j *job
	if len(dupkey) > 0 {
		j = m.keyed[key{t, string(dupkey)}]
	}
	fresh := j == nil
	if fresh {
		j = m.newJob(t, dupkey, f.Arg(4))
	}
	answers[kind](m, p, j)
	if fresh {
		m.wake(t)
	}
}

// answers to a job_create_req, by the type of the job.
var answers = [...]func(m *machine, p *peer, j *job){
	danga.SyncWait: func(_ *machine, p *peer, j *job) {
		p.waitsFor = j
		j.waits.PushBack(&p.wait)
		p.conn.Send(jobCreateRes)
	},
	danga.Async: func(m *machine, p *peer, j *job) {
		p.conn.Send(jobCreateRes, m.hand(j))
	},
	danga.AsyncThrow: func(_ *machine, p *peer, j *job) {
		j.detached = true
		p.conn.Send(jobCreateRes)
	},
}

// Ratios that no worker has announced, with what is left of the time.
var (
	noRatio = progress(0, 0, danga.UnknownTime)
	noneYet = progress(0, 1, danga.UnknownTime)
	allDone = progress(1, 1, 0)
)

func progress(numerator, denominator, remaining uint32) (b [12]byte) {
	binary.BigEndian.PutUint32(b[:4], numerator)
	binary.BigEndian.PutUint32(b[4:8], denominator)
	binary.BigEndian.PutUint32(b[8:], remaining)
	return b
}

func tellStatus(m *machine, p *peer, f *codec.Frame) {
	b := &noneYet
	switch j := m.find(f.Arg(0)); {
	case j == nil:
		b = &noRatio
	case j.finished:
		b = &allDone
	case j.announced:
		b = &j.progress
	}
	p.conn.Send(jobStatusRes, b[:4], b[4:8], b[8:])
}

// nobodys stands for the job of a handle that names none: incomplete, but with a
// result code that says that it will not be completed.
var nobodys = &job{code: [1]byte{unknown}}

// tellResult answers 0, for incomplete, unless the job is finished.
func tellResult(m *machine, p *peer, f *codec.Frame) {
	j := m.find(f.Arg(0))
	if j == nil {
		j = nobodys
	}
	p.conn.Send(jobCompleteRes, j.took[:], j.code[:], j.data)
}
