package gearman

import (
	"bytes"
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// Priorities, first served first ("Client Requests").
const (
	high = iota
	normal
	low
)

// job is one job from its submission to its end. It is in exactly one state:
// scheduled (no link, a timer), queued (in fn.queue), running (in worker.work).
type job struct {
	number     uint64
	fn         *function
	handle     []byte // this and the next four share one allocation
	unique     []byte
	reducer    []byte // of a reduce job
	workload   []byte
	reduce     bool
	background bool // it is worth running though nobody waits
	priority   uint8
	lost       int // workers that it was lost with

	key   *key       // under which equal submissions join it
	same  link[job]  // in machine.named
	row   link[job]  // in machine.all
	named link[job]  // in machine.unique
	spot  link[job]  // in a queue or in a worker's work
	waits list[wait] // clients that hear of it
	first wait       // usually the only one

	worker           *peer
	numerator, denom uint64
	due              time.Time // scheduled: when it is to be queued; running: when it fails
	timer            int       // its place among the timers
}

// wait is one submission's wish to hear of a job. A client that submits the
// same job twice hears of it twice.
type wait struct {
	job    *job
	peer   *peer
	ofJob  link[wait]
	ofPeer link[wait]
}

// key is what makes two submissions one job.
type key struct {
	fn       *function
	text     string // the unique ID, or the workload
	workload bool
}

// submission is what the types of submissions differ in.
type submission struct {
	priority   uint8
	background bool
	reduce     bool
	when       func(f *codec.Frame, now time.Time) (time.Time, bool) // nil is now
}

// submit answers the SUBMIT_* types. Arguments: function, unique ID, reducer and
// an unused one in reduce jobs, the time where there is one, workload.
func (sub submission) submit(m *machine, p *peer, f *codec.Frame) {
	name, unique, workload := f.Arg(0), f.Arg(1), f.Arg(len(f.Type.Fields)-1)
	var reducer []byte
	if sub.reduce {
		reducer = f.Arg(2)
	}
	size := len(name) + len(unique) + len(reducer) + len(workload)
	if size+gearman.MaxHandle+len("\x00\x00\x00\x00") > p.conn.MaxData() {
		refuse(p, "ARGUMENT_TOO_LARGE", "the job would not fit the packet that assigns it")
		return
	}
	var due time.Time
	if sub.when != nil {
		var ok bool
		if due, ok = sub.when(f, time.Now()); !ok {
			refuse(p, "NO_SUCH_TIME", "no coming day matches the schedule")
			return
		}
	}

	fn := m.function(name)
	j := m.equal(fn, unique, workload)
	fresh := j == nil
	if fresh {
		if limit := m.limit(fn, sub.priority); limit > 0 && fn.total >= limit {
			refuse(p, "QUEUE_ERROR", "the function's queue is full")
			m.release(fn)
			return
		}
		j = m.newJob(fn, unique, reducer, workload)
		j.priority, j.reduce, j.due = sub.priority, sub.reduce, due
	}
	j.background = j.background || sub.background
	if !sub.background {
		j.wait(p)
	}
	p.conn.Send(jobCreated, j.handle)
	switch {
	case !fresh:
	case !j.due.After(time.Now()):
		m.enqueue(j)
	default:
		m.timers.add(j)
	}
}

// equal returns the job that a submission joins, or nil: a job of the function
// with that unique ID; for "-", one with that workload; for none, no job.
func (m *machine) equal(fn *function, unique, workload []byte) *job {
	switch {
	case len(unique) == 0:
		return nil
	case string(unique) == "-":
		return m.keyed[key{fn, string(workload), true}]
	}
	return m.keyed[key{fn, string(unique), false}]
}

// newJob gives a job its handle and enters it in the indexes.
func (m *machine) newJob(fn *function, unique, reducer, workload []byte) *job {
	m.lastJob++
	j := &job{number: m.lastJob, fn: fn}
	j.spot.item, j.same.item, j.row.item, j.named.item = j, j, j, j
	m.scratch = strconv.AppendUint(append(m.scratch[:0], m.prefix...), j.number, 10)
	block := make([]byte, 0, len(m.scratch)+len(unique)+len(reducer)+len(workload))
	part := func(b []byte) []byte {
		at := len(block)
		block = append(block, b...)
		return block[at:len(block):len(block)]
	}
	j.handle, j.unique, j.reducer, j.workload = part(m.scratch), part(unique), part(reducer), part(workload)

	m.jobs[j.number] = j
	m.all.pushBack(&j.row)
	fn.total++
	if len(unique) == 0 {
		return j
	}
	j.key = &key{fn, string(unique), false}
	same := m.named[j.key.text]
	if same == nil {
		same = &list[job]{}
		m.named[j.key.text] = same
	}
	same.pushBack(&j.same)
	m.unique.pushBack(&j.named)
	if string(unique) == "-" {
		j.key = &key{fn, string(workload), true}
	}
	m.keyed[*j.key] = j
	return j
}

// limit returns the most jobs that a function may have for one of the priority
// to be added; 0 or less is no limit.
func (m *machine) limit(fn *function, priority uint8) int {
	if fn.limits != nil {
		return fn.limits[priority]
	}
	return m.opts.MaxQueue[priority]
}

// wait makes the peer one of those who hear of the job.
func (j *job) wait(p *peer) {
	w := &j.first
	if w.job != nil {
		w = &wait{}
	}
	w.job, w.peer = j, p
	w.ofJob.item, w.ofPeer.item = w, w
	j.waits.pushBack(&w.ofJob)
	p.waits.pushBack(&w.ofPeer)
}

// leave ends a wait because its client is gone. A job that nobody needs any
// more is dropped, unless it is running already.
func (m *machine) leave(w *wait) {
	w.ofJob.remove()
	w.ofPeer.remove()
	if j := w.job; j.unwanted() && j.worker == nil {
		m.end(j)
	}
}

// unwanted reports whether the result is of interest to nobody.
func (j *job) unwanted() bool { return !j.background && j.waits.len == 0 }

// enqueue puts the job at the end of its queue and wakes those who can do it.
func (m *machine) enqueue(j *job) {
	j.due = time.Time{}
	j.fn.queue[j.priority].pushBack(&j.spot)
	m.wake(j.fn, j.priority)
}

// requeue takes the job from a worker that was lost. It goes to the front of
// its queue under the same handle, unless it was lost too often.
func (m *machine) requeue(j *job) {
	m.timers.remove(j)
	j.spot.remove()
	j.worker = nil
	j.fn.running--
	j.lost++
	j.numerator, j.denom = 0, 0
	switch {
	case j.unwanted():
		m.end(j)
	case m.opts.Retries > 0 && j.lost >= m.opts.Retries:
		m.fail(j)
	default:
		j.due = time.Time{}
		j.fn.queue[j.priority].pushFront(&j.spot)
		m.wake(j.fn, j.priority)
	}
}

// fail ends the job and tells those who wait for it.
func (m *machine) fail(j *job) {
	for w := range j.waits.all {
		w.peer.conn.Send(workFail, j.handle)
	}
	m.end(j)
}

// end forgets the job, whatever its state.
func (m *machine) end(j *job) {
	m.timers.remove(j)
	j.spot.remove()
	if j.worker != nil {
		j.worker = nil
		j.fn.running--
	}
	for w := range j.waits.all {
		w.ofJob.remove()
		w.ofPeer.remove()
		if w.peer.ended && w.peer.waits.len == 0 {
			w.peer.conn.Close()
		}
	}
	delete(m.jobs, j.number)
	j.row.remove()
	j.named.remove()
	if j.key != nil {
		delete(m.keyed, *j.key)
		same := j.same.in
		j.same.remove()
		if same.len == 0 {
			delete(m.named, string(j.unique))
		}
	}
	j.fn.total--
	m.release(j.fn)
}

// find returns the job with that handle, or nil.
func (m *machine) find(handle []byte) *job {
	digits, ok := bytes.CutPrefix(handle, []byte(m.prefix))
	if !ok || len(digits) == 0 || digits[0] == '0' {
		return nil
	}
	n, bad := codec.ParseNumber(digits)
	if bad >= 0 {
		return nil
	}
	return m.jobs[n]
}
