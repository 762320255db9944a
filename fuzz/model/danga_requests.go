package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"jobwire/codec"
)

// dHandlers maps packet types to functions that update the model.
var dHandlers map[string]func(m *danga, p *dPeer, f codec.Frame)

// init sets the handler of each packet type that peers send. A type without a handler has no effect on the model.
func init() {
	dHandlers = map[string]func(m *danga, p *dPeer, f codec.Frame){
		"worker_connect":        dConnect,
		"worker_disconnect":     dDisconnect,
		"worker_sleep":          dSleep,
		"job_create_req":        dCreate,
		"job_assign_req":        dAssign,
		"job_status_announce":   dStatus,
		"job_status_req":        dStatusReq,
		"job_complete_announce": dComplete,
		"job_complete_req":      dCompleteReq,
	}
}

// dConnect handles worker_connect: its job names replace the names that the worker announced before. If the worker
// sleeps and a job is waiting under one of the new names, the server may wake the worker.
func dConnect(m *danga, p *dPeer, f codec.Frame) {
	p.names = nil
	var msg codec.Message
	f.Message(&msg)
	for _, a := range msg.Args {
		p.names = append(p.names, string(a))
	}
	if sure, vague := m.candidates(p); p.sleeping && len(sure)+len(vague) > 0 {
		m.noop(p, optional) // optional, because according to the draft, no job has arrived since the request
	}
}

// dDisconnect handles worker_disconnect: the worker announces no job names any more, and its job goes back to its
// queue. The connection stays open.
func dDisconnect(m *danga, p *dPeer, _ codec.Frame) {
	p.names, p.sleeping = nil, false
	if p.job != nil {
		m.requeue(p)
	}
}

// dSleep handles worker_sleep: the server must send a noop when a job for the worker arrives, or at once if one is
// already waiting. A worker that has a job does not sleep.
func dSleep(m *danga, p *dPeer, _ codec.Frame) {
	if p.job != nil {
		return
	}
	p.sleeping = true
	if sure, vague := m.candidates(p); len(sure)+len(vague) > 0 {
		m.noop(p, len(sure) > 0)
	}
}

// dCreate handles job_create_req. A job with the name and the nonempty duplicate key of an unfinished job joins that
// job. A job is of type 0 (the client waits for the result), 1 (the client gets a handle and asks for the result), or
// another type (nothing returns to the client).
func dCreate(m *danga, p *dPeer, f codec.Frame) {
	typ := f.Arg(3)[0]
	if typ == 0 && p.waits != nil {
		m.violates(p, "the client created a second job of type 0 (synchronous) while its first job was running")
		return
	}
	j := &dJob{name: string(f.Arg(0)), key: string(f.Arg(1)), args: f.Arg(4), worker: -1,
		progress: [3]uint32{0, 1, math.MaxUint32}, created: m.now}
	fresh := true
	for _, o := range m.jobs {
		if j.key != "" && o.key == j.key && o.name == j.name {
			if o.vague {
				m.taint() // it is unknown whether the server adds the client to this job
			}
			j, fresh = o, false
			break
		}
	}
	if fresh {
		m.jobs = append(m.jobs, j)
	}
	switch typ {
	case 0:
		j.waits, p.waits = append(j.waits, p.conn), j
	case 1:
		j.asked, j.wanted = true, true
	default:
		j.wanted = true
	}
	m.expect(p.conn, "danga.create.answered", "job_create_res", typed("job_create_res", func(r *codec.Frame) error {
		h := r.Arg(0)
		switch {
		case typ != 1 && len(h) > 0:
			return &Complaint{Rule: "danga.create.no-handle",
				Text: "expected an empty handle, because the job is not of type 1 (asynchronous)"}
		case typ != 1:
			return nil
		case len(h) == 0:
			return &Complaint{Rule: "danga.async.handle", Text: "expected a handle, because the job is of type 1 (asynchronous)"}
		case j.handle != nil && !bytes.Equal(h, j.handle):
			return &Complaint{Rule: "danga.dup.same-handle", Text: "expected the handle " + string(j.handle) +
				", because a job with the same duplicate key has it"}
		case j.handle == nil && m.results[string(h)] != nil:
			return &Complaint{Rule: "danga.async.handles-distinct",
				Text: "expected a new handle, because another job already has this handle"}
		}
		j.handle = bytes.Clone(h)
		m.results[string(h)] = j
		return nil
	}))
	if fresh {
		m.wake(j, required)
	}
}

// dAssign handles job_assign_req: it expects job_assign_res with one of the jobs at the head of the queue of an
// announced name, or noop if there may be no job or the worker already has one.
func dAssign(m *danga, p *dPeer, _ codec.Frame) {
	p.sleeping = false
	sure, vague := m.candidates(p)
	if p.job != nil {
		sure, vague = nil, nil
	}
	reply := &choice{left: 1}
	if len(sure) == 0 {
		m.expect(p.conn, "danga.assign.no-job", "noop (no job)", typed("noop", nil)).choice = reply
	}
	if len(sure)+len(vague) == 0 {
		return
	}
	m.expect(p.conn, "danga.assign.answered", "job_assign_res", typed("job_assign_res", func(r *codec.Frame) error {
		var fit []*dJob
		for _, j := range slices.Concat(sure, vague) {
			if j.name == string(r.Arg(0)) && bytes.Equal(j.args, r.Arg(1)) {
				fit = append(fit, j)
			}
		}
		if len(fit) == 0 {
			for _, j := range m.jobs {
				if j.name == string(r.Arg(0)) && bytes.Equal(j.args, r.Arg(1)) {
					return &Complaint{Rule: "danga.job.order",
						Text: "expected another job, because this job was queued later or a worker already has it"}
				}
			}
			return &Complaint{Rule: "danga.assign.name-and-args",
				Text: "expected an existing job, because no job has this name and these arguments"}
		}
		if len(fit) > 1 {
			m.taint() // the reply does not say to which job it belongs
		}
		j := fit[0]
		j.worker, p.job = p.conn, j
		return nil
	})).choice = reply
}

// numbers returns the three 32-bit numbers of a job_status_* packet.
func numbers(f *codec.Frame) (n [3]uint32) {
	for i := range n {
		n[i] = binary.BigEndian.Uint32(f.Arg(i))
	}
	return n
}

// dStatus handles job_status_announce: it stores the progress of the worker's job and expects job_status_res on the
// connections of the clients that wait for the job. A worker without a job violates the protocol.
func dStatus(m *danga, p *dPeer, f codec.Frame) {
	if p.job == nil {
		m.violates(p, "the worker reported progress without having a job")
		return
	}
	p.job.progress = numbers(&f)
	for _, c := range p.job.waits {
		m.progress(c, "danga.sync.status-streamed", p.job.progress).must = !p.job.vague && !m.tainted
	}
}

// progress expects a job_status_res with the given numbers.
func (m *danga) progress(conn int, rule codec.RuleID, want [3]uint32) *expectation {
	return m.expect(conn, rule, "job_status_res", typed("job_status_res", func(r *codec.Frame) error {
		if got := numbers(r); got != want {
			return wrong("expected %d", want)
		}
		return nil
	}))
}

// dStatusReq handles job_status_req: it expects the latest progress of the job with a handle, or fixed numbers if the
// job has finished or the handle is unknown. A client that waits for a job of type 0 must not send this request.
func dStatusReq(m *danga, p *dPeer, f codec.Frame) {
	if p.waits != nil {
		m.violates(p, "the client sent a request while its job of type 0 (synchronous) was running")
		return
	}
	j := m.results[string(f.Arg(0))]
	switch {
	case j == nil && m.quirks[Shared]: // the handle may belong to another client's job
		m.expect(p.conn, "danga.status.unknown-handle", "job_status_res", typed("job_status_res", nil))
	case j == nil:
		m.progress(p.conn, "danga.status.unknown-handle", [3]uint32{0, 0, math.MaxUint32})
	case j.done:
		m.progress(p.conn, "danga.status.finished", [3]uint32{1, 1, 0})
	default:
		m.progress(p.conn, "danga.status.latest", j.progress)
	}
}

// dComplete handles job_complete_announce: it ends the worker's job, stores the result for later requests, and expects
// job_complete_res on the connections of the clients that wait for the job.
func dComplete(m *danga, p *dPeer, f codec.Frame) {
	j := p.job
	if j == nil {
		m.violates(p, "the worker reported a result without having a job")
		return
	}
	p.job = nil
	j.done, j.code, j.data = true, f.Arg(0)[0], f.Arg(1)
	for _, c := range j.waits {
		if q := m.peers[c]; q != nil {
			q.waits = nil
		}
		m.completed(c, "danga.sync.result-streamed", j)
	}
	m.jobs = slices.DeleteFunc(m.jobs, func(o *dJob) bool { return o == j })
}

// completed expects the result of a job on the connection.
func (m *danga) completed(conn int, rule codec.RuleID, j *dJob) {
	took := uint32((m.now - j.created) / time.Second)
	m.expect(conn, rule, "job_complete_res", typed("job_complete_res", func(r *codec.Frame) error {
		switch status := binary.BigEndian.Uint32(r.Arg(0)); {
		case status == 0 || status > took+2:
			return &Complaint{Rule: "danga.complete.elapsed", Text: fmt.Sprintf("expected an elapsed time of 1 to %d s", took+2)}
		case r.Arg(1)[0] != j.code || !bytes.Equal(r.Arg(2), j.data):
			return wrong("expected %d %.60q, because the worker sent that result", j.code, j.data)
		}
		return nil
	}))
}

// dCompleteReq handles job_complete_req: it expects the result of the job with a handle, or an empty result with code 0
// if the job has not finished, 255 if the handle is unknown.
func dCompleteReq(m *danga, p *dPeer, f codec.Frame) {
	if p.waits != nil {
		m.violates(p, "the client sent a request while its job of type 0 (synchronous) was running")
		return
	}
	j := m.results[string(f.Arg(0))]
	if j != nil && j.done {
		m.completed(p.conn, "danga.complete.answered", j)
		return
	}
	rule, code := codec.RuleID("danga.complete.incomplete"), byte(0)
	if j == nil {
		rule, code = "danga.complete.unknown-handle", 255
	}
	if j == nil && m.quirks[Shared] { // the handle may belong to another client's job
		m.expect(p.conn, rule, "job_complete_res", typed("job_complete_res", nil))
		return
	}
	m.expect(p.conn, rule, "job_complete_res", typed("job_complete_res", func(r *codec.Frame) error {
		if binary.BigEndian.Uint32(r.Arg(0)) != 0 || r.Arg(1)[0] != code || len(r.Arg(2)) > 0 {
			return wrong("expected 0 %d and no data", code)
		}
		return nil
	}))
}
