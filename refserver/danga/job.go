package danga

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/refserver/internal/list"
)

// job is one job from its creation until it is deleted. It is in exactly one state: waiting (in task.queue),
// assigned (worker is set), or finished (in machine.kept).
type job struct {
	number  uint64 // in the order of creation; part of its handle
	task    *task
	dupkey  []byte // this and args share one allocation
	args    []byte
	created time.Time

	handleSent bool            // the server has sent the handle to a client: the job has type 1
	detached   bool            // the job runs even if no application waits for it: the job has type 2
	waits      list.List[peer] // applications that wait: type 0

	element   list.Element[job] // in task.queue or in machine.kept
	worker    *peer
	announced bool     // progress was reported
	progress  [12]byte // three numbers, encoded as in the packet

	// Of a finished job:
	finished bool
	duration [4]byte // seconds
	code     [1]byte
	data     []byte
	forgetAt time.Time
}

// key is the part of a job that duplicates share: two jobs with the same key are duplicates.
type key struct {
	task *task
	text string
}

// newJob creates a waiting job. It does not wake workers.
func (m *machine) newJob(t *task, dupkey, args []byte) *job {
	m.lastJob++
	block := append(append(make([]byte, 0, len(dupkey)+len(args)), dupkey...), args...)
	j := &job{number: m.lastJob, task: t, dupkey: block[:len(dupkey)], args: block[len(dupkey):], created: time.Now()}
	j.element.Item = j
	t.jobs++
	t.queue.PushBack(&j.element)
	if len(dupkey) > 0 {
		m.keyed[key{t, string(dupkey)}] = j
	}
	return j
}

// unwanted reports whether no application needs the job.
func (j *job) unwanted() bool { return !j.handleSent && !j.detached && j.waits.Len() == 0 }

// assign gives the job to a worker that has none.
func (j *job) assign(p *peer) {
	j.element.Remove()
	j.worker, p.job = p, j
}

// requeue takes the job from a worker that was lost. It goes to the front of its queue, unless no application
// needs it any more.
func (m *machine) requeue(j *job) {
	j.worker.job, j.worker, j.announced = nil, nil, false
	if j.unwanted() {
		m.end(j)
		return
	}
	j.task.queue.PushFront(&j.element)
	m.wake(j.task)
}

// Result codes that this server defines.
const (
	tooLarge = 255 // the result does not fit into a packet to the application
	unknown  = 255 // no such job
)

// finish ends a job with a result, which is sent to the applications that wait, and kept for those that have
// the handle. limit is the maximum number of data bytes in a packet.
func (m *machine) finish(j *job, code byte, data []byte, limit int) {
	if len(j.duration)+len(j.code)+len(data) > limit {
		data = nil
		if code == 0 {
			code = tooLarge
		}
	}
	now := time.Now()
	seconds := min(max(int64(now.Sub(j.created)/time.Second), 1), math.MaxUint32)
	j.duration, j.code = bigEndian(uint32(seconds)), [1]byte{code}
	for p := range j.waits.All {
		p.wait.Remove()
		p.waitsFor = nil
		p.conn.Send(jobCompleteRes, j.duration[:], j.code[:], data)
		if p.ended {
			p.conn.Close()
		}
	}
	m.end(j)
	if j.handleSent {
		m.keep(j, data, now.Add(m.opts.KeepTime))
	}
}

// end removes the job from all data structures except machine.jobs.
func (m *machine) end(j *job) {
	j.element.Remove()
	if j.worker != nil {
		j.worker.job, j.worker = nil, nil
	}
	if len(j.dupkey) > 0 {
		delete(m.keyed, key{j.task, string(j.dupkey)})
	}
	j.task.jobs--
	m.releaseIfUnused(j.task)
}

// keep stores a result, and deletes the oldest results if the limits are exceeded.
func (m *machine) keep(j *job, data []byte, until time.Time) {
	j.finished, j.forgetAt = true, until
	j.task, j.dupkey, j.args = nil, nil, nil
	j.data = bytes.Clone(data)
	m.kept.PushBack(&j.element)
	m.keptBytes += len(data)
	for m.kept.Len() > max(m.opts.KeepCount, 0) || m.keptBytes > m.opts.KeepBytes && m.kept.Len() > 1 {
		m.forget(m.kept.First())
	}
}

// forget deletes a result: its handle then names no job.
func (m *machine) forget(j *job) {
	j.element.Remove()
	m.keptBytes -= len(j.data)
	delete(m.jobs, j.number)
}

// handleBytes returns the job's handle, which is valid until the next call.
func (m *machine) handleBytes(j *job) []byte {
	if !j.handleSent {
		j.handleSent = true
		m.jobs[j.number] = j
	}
	m.scratch = strconv.AppendUint(append(m.scratch[:0], m.prefix...), j.number, 10)
	return m.scratch
}

// find returns the job with the handle, or nil.
func (m *machine) find(handle []byte) *job {
	digits, ok := bytes.CutPrefix(handle, []byte(m.prefix))
	n, isNumber := codec.ParseNumber(digits)
	if !ok || !isNumber || digits[0] == '0' { // the server writes numbers without leading zeros
		return nil
	}
	return m.jobs[n]
}
