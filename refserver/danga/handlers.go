package danga

import (
	"encoding/binary"

	"jobwire/codec"
	"jobwire/codec/danga"
)

// handler handles one message type.
type handler func(m *machine, p *peer, f *codec.Frame)

// handlers are indexed by message type.
var handlers = codec.ByType(danga.Protocol, byName)

var byName = map[string]handler{
	"worker_connect":        connect,
	"worker_disconnect":     disconnect,
	"worker_sleep":          sleep,
	"job_assign_req":        assign,
	"job_status_announce":   ofItsJob(announce),
	"job_complete_announce": ofItsJob(complete),

	"job_create_req":   create,
	"job_status_req":   unlessWaiting(sendStatus),
	"job_complete_req": unlessWaiting(sendResult),
}

// Message types that the server sends.
var (
	noop           = typeNamed("noop")
	jobCreateRes   = typeNamed("job_create_res")
	jobAssignRes   = typeNamed("job_assign_res")
	jobStatusRes   = typeNamed("job_status_res")
	jobCompleteRes = typeNamed("job_complete_res")
)

var typeNamed = danga.Protocol.MustTypeNamed

func bigEndian(n uint32) (b [4]byte) {
	binary.BigEndian.PutUint32(b[:], n)
	return b
}

// Workers.

func connect(m *machine, p *peer, f *codec.Frame) {
	asleep := p.asleep
	m.setAbilities(p, f)
	if asleep {
		p.sleep()
	}
}

func disconnect(m *machine, p *peer, _ *codec.Frame) { m.goodbye(p) }

// goodbye removes a worker's abilities and returns its job to the queue.
func (m *machine) goodbye(p *peer) {
	m.removeAbilities(p)
	if p.job != nil {
		m.requeue(p.job)
	}
}

// sleep does nothing if the worker has a job: it could not get another one.
func sleep(_ *machine, p *peer, _ *codec.Frame) {
	if p.job == nil {
		p.sleep()
	}
}

// assign replies with a noop if there is no job, and also to a worker that has a job: it may have exactly one
// ("Guarantees").
func assign(_ *machine, p *peer, _ *codec.Frame) {
	p.endSleep()
	if p.job == nil {
		if j := p.pick(); j != nil {
			j.assign(p)
			p.conn.Send(jobAssignRes, j.task.name, j.args)
			return
		}
	}
	p.conn.Send(noop)
}

// ofItsJob returns a handler for messages of a worker about its job. A worker that sends one without having a
// job violates the protocol.
func ofItsJob(do func(m *machine, j *job, f *codec.Frame)) handler {
	return func(m *machine, p *peer, f *codec.Frame) {
		if p.job == nil {
			closeViolator(p)
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

// unlessWaiting returns a handler for requests that an application must not send while it waits for a job of
// type 0: it could not distinguish the reply from the packets about that job.
func unlessWaiting(do handler) handler {
	return func(m *machine, p *peer, f *codec.Frame) {
		if p.waitsFor != nil {
			closeViolator(p)
			return
		}
		do(m, p, f)
	}
}

// create creates a job, or finds the job that it duplicates. The arguments are name, duplicate key, flags, type
// and args. Workers are woken after the reply is sent, because one of them may use the same connection.
func create(m *machine, p *peer, f *codec.Frame) {
	kind := f.Uint(3)
	if kind >= uint64(len(answers)) || p.waitsFor != nil && kind == danga.SyncWait {
		closeViolator(p)
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

// answers send the reply to a job_create_req, by job type.
var answers = [...]func(m *machine, p *peer, j *job){
	danga.SyncWait: func(_ *machine, p *peer, j *job) {
		p.waitsFor = j
		j.waits.PushBack(&p.wait)
		p.conn.Send(jobCreateRes)
	},
	danga.Async: func(m *machine, p *peer, j *job) {
		p.conn.Send(jobCreateRes, m.handleBytes(j))
	},
	danga.AsyncThrow: func(_ *machine, p *peer, j *job) {
		j.detached = true
		p.conn.Send(jobCreateRes)
	},
}

// Progress that no worker has reported: done, total, remaining time.
var (
	progressOfNoJob    = progress(0, 0, danga.UnknownTime) // no job has the handle
	progressUnknown    = progress(0, 1, danga.UnknownTime)
	progressOfFinished = progress(1, 1, 0)
)

func progress(done, total, remaining uint32) (b [12]byte) {
	binary.BigEndian.PutUint32(b[:4], done)
	binary.BigEndian.PutUint32(b[4:8], total)
	binary.BigEndian.PutUint32(b[8:], remaining)
	return b
}

// sendStatus replies to job_status_req with the progress of the job that its handle names.
func sendStatus(m *machine, p *peer, f *codec.Frame) {
	b := &progressUnknown
	switch j := m.find(f.Arg(0)); {
	case j == nil:
		b = &progressOfNoJob
	case j.finished:
		b = &progressOfFinished
	case j.announced:
		b = &j.progress
	}
	p.conn.Send(jobStatusRes, b[:4], b[4:8], b[8:]) // done, total, remaining time
}

// unknownJob is used for a handle that names no job. It is incomplete, and its result code says that it will not
// be completed.
var unknownJob = &job{code: [1]byte{unknown}}

// sendResult sends the result of a job. The time is 0, for incomplete, unless the job is finished.
func sendResult(m *machine, p *peer, f *codec.Frame) {
	j := m.find(f.Arg(0))
	if j == nil {
		j = unknownJob
	}
	p.conn.Send(jobCompleteRes, j.duration[:], j.code[:], j.data)
}
