package model

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
)

// zeroLimit represents the time limit 0. The specification does not say whether jobs with this limit fail at once or
// have no limit.
const zeroLimit time.Duration = -1

// gCanDo handles CAN_DO and CAN_DO_TIMEOUT. A worker that sleeps may be woken by a job that is already in the queue of
// the new function.
func gCanDo(m *gearman, p *gPeer, f codec.Frame) {
	m.function(f.Arg(0))
	n, _ := strconv.ParseUint(string(f.Arg(1)), 10, 64)
	limit := time.Duration(min(n, 1<<40)) * time.Millisecond
	if len(f.Arg(1)) > 0 && n == 0 {
		limit = zeroLimit
	}
	p.abilities[string(f.Arg(0))] = limit
	if p.sleeping {
		for _, j := range m.function(f.Arg(0)).jobs {
			if j.state == gQueued || j.uncertain() {
				m.noop(p, optional)
			}
		}
	}
}

// gCantDo handles CANT_DO. With the quirk cant-do-loses-job, the server may take away the jobs of the function that the
// worker runs.
func gCantDo(m *gearman, p *gPeer, f codec.Frame) {
	_, could := p.abilities[string(f.Arg(0))]
	delete(p.abilities, string(f.Arg(0)))
	if m.quirks[CantDoLoses] && could {
		m.markUncertain(p, string(f.Arg(0)))
	}
}

// markUncertain records that the state of the jobs of a function that the worker has is unknown.
func (m *gearman) markUncertain(p *gPeer, fn string) {
	for _, j := range m.function([]byte(fn)).jobs {
		if j.state == gRunning && j.holder == p.conn {
			j.vague = true
			m.wake(j, optional)
		}
	}
}

// gReset handles RESET_ABILITIES, which removes all functions of the worker.
func gReset(m *gearman, p *gPeer, _ codec.Frame) {
	for fn := range p.abilities {
		if m.quirks[CantDoLoses] {
			m.markUncertain(p, fn)
		}
	}
	clear(p.abilities)
}

// gPreSleep handles PRE_SLEEP: the server must send a NOOP when a job for the worker arrives, or at once if one is
// already queued.
func gPreSleep(m *gearman, p *gPeer, _ codec.Frame) {
	p.twice, p.sleeping = p.sleeping, true
	must, may := m.candidates(p)
	if len(must)+len(may) > 0 {
		m.noop(p, len(must) > 0).rule = "gearman.worker.wake-late"
	}
}

// candidates returns the jobs that the server may assign to a worker. For each function, sure contains the oldest job
// of the highest priority, and the jobs of that priority that were returned to the queue. vague contains the jobs whose
// state is unknown.
func (m *gearman) candidates(p *gPeer) (sure, vague []*gJob) {
	for name := range p.abilities {
		fn := m.functions[name]
		best := 3
		for _, j := range fn.jobs {
			if j.state == gQueued && !j.uncertain() {
				best = min(best, j.priority)
			}
		}
		first := true
		for _, j := range fn.jobs {
			switch {
			case m.quirks[EpochHides] && slices.ContainsFunc(fn.jobs, func(o *gJob) bool { return o.state == gLater }):
				if j.state == gQueued || j.uncertain() {
					vague = append(vague, j)
				}
			case j.uncertain() && j.priority <= best:
				vague = append(vague, j)
			case j.state != gQueued || j.priority != best || j.uncertain():
			case j.requeued:
				sure = append(sure, j)
			case first || m.quirks[NewestFirst] && j.priority == 0:
				sure = append(sure, j)
				first = false
			}
		}
	}
	return sure, vague
}

// gGrab returns the handler of a GRAB_JOB* request: it expects one of the jobs that candidates returns, or NO_JOB if
// there may be none. plain and reduce are the types of the assignment for a job without a reducer and with one.
func gGrab(plain, reduce string) func(*gearman, *gPeer, codec.Frame) {
	return func(m *gearman, p *gPeer, _ codec.Frame) {
		p.sleeping, p.twice = false, false
		sure, vague := m.candidates(p)
		reply := &choice{left: 1}
		if len(sure) == 0 {
			m.expect(p.conn, "gearman.grab.no-job", "NO_JOB", typed("NO_JOB", nil)).choice = reply
		}
		if len(sure)+len(vague) == 0 {
			return
		}
		// If a time limit is very short, the client may receive WORK_FAIL before the worker receives the job.
		for _, j := range slices.Concat(sure, vague) {
			if timeout := p.abilities[j.fn.name]; timeout != 0 && timeout <= Slack {
				for _, c := range j.waits {
					m.mayFail(j, c)
				}
			}
		}
		d := m.expect(p.conn, "gearman.grab.assign", "a job",
			typed("JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL", func(r *codec.Frame) error {
				j := m.jobs[string(r.Arg(0))]
				if j == nil && m.tainted {
					return nil
				}
				if err := j.checkQueued(); err != nil {
					return err
				}
				want := plain
				if j.reduce && (len(j.reducer) > 0 || r.Type.Name == reduce) { // a server may treat an empty reducer as no reducer
					want = reduce
				}
				if r.Type.Name != want {
					return wrong("expected %s as the reply to this grab request", want)
				}
				if err := j.delivered(r); err != nil && !(m.tainted && j.key != "") { // illegal bytes may contain an earlier submission with the same key
					return err
				}
				timeout, able := p.abilities[j.fn.name]
				if !able {
					return &Complaint{Rule: "gearman.worker.can-do",
						Text: "expected a job of a function that the worker announced with CAN_DO"}
				}
				if !slices.Contains(sure, j) && !slices.Contains(vague, j) {
					rule := codec.RuleID("gearman.queue.fifo")
					if slices.ContainsFunc(j.fn.jobs, func(o *gJob) bool { return o.state == gQueued && o.priority < j.priority }) {
						rule = "gearman.queue.high-first"
					}
					return &Complaint{Rule: rule, Text: "expected another job of the function, because that job has a higher priority or was queued earlier"}
				}
				m.assign(j, p.conn, timeout)
				return nil
			}))
		d.choice = reply
	}
}

// checkQueued returns a *Complaint if the job, which may be nil, is certainly not in a queue.
func (j *gJob) checkQueued() error {
	switch {
	case j == nil || j.state == gEnded:
		return wrong("expected a queued job, got one that does not exist or has ended")
	case j.state == gRunning && !j.uncertain():
		return &Complaint{Rule: "gearman.grab.once",
			Text: "expected another job or none, because another worker has this job"}
	case j.state == gLater && !j.uncertain():
		return &Complaint{Rule: "gearman.epoch.waits",
			Text: "expected another job or none, because the scheduled time of this job is in the future"}
	}
	return nil
}

// assign gives a job to the worker on a connection. timeout is the time limit of the worker for the function.
func (m *gearman) assign(j *gJob, conn int, timeout time.Duration) {
	j.state, j.holder, j.timer = gRunning, conn, 0
	if j.uncertain() && j.background {
		j.vague = false // the server has just assigned the job, so it exists
	}
	j.abandoned = j.abandoned && !j.background
	j.soon = false
	switch {
	case timeout == zeroLimit:
		j.timer, j.latest = max(m.now, 1), math.MaxInt64-Slack
	case timeout > 0:
		// The specification does not state the unit of the time limit.
		j.timer, j.latest = m.now+timeout, m.now+timeout*time.Duration(time.Second/time.Millisecond)
	}
}

// delivered returns a *Complaint if the data of an assignment differs from the submission.
func (j *gJob) delivered(r *codec.Frame) error {
	var m codec.Message
	r.Message(&m)
	if string(m.Args[1]) != j.fn.name || !bytes.Equal(m.Args[len(m.Args)-1], j.workload) {
		return &Complaint{Rule: "gearman.submit.opaque-workload", Law: ChangedData,
			Text: fmt.Sprintf("expected function %q and workload %.60q, because the client submitted them", j.fn.name,
				j.workload)}
	}
	if len(m.Args) > 3 && !bytes.Equal(m.Args[2], j.unique) {
		return &Complaint{Rule: "gearman.grab.assign-unique",
			Text: fmt.Sprintf("expected unique ID %q, because the client submitted it", j.unique)}
	}
	if len(m.Args) > 4 && !bytes.Equal(m.Args[3], j.reducer) {
		return &Complaint{Rule: "gearman.reduce.carried",
			Text: fmt.Sprintf("expected reducer %q, because the client submitted it", j.reducer)}
	}
	return nil
}

// gWork returns the handler of a worker's report about a job. ends says whether the report ends the job.
func gWork(ends bool) func(*gearman, *gPeer, codec.Frame) {
	return func(m *gearman, p *gPeer, f codec.Frame) {
		j := m.jobs[string(f.Arg(0))]
		assigned := j != nil && j.state == gRunning && j.holder == p.conn
		if !assigned && (j == nil || !j.uncertain()) {
			rule := codec.RuleID("gearman.work.unknown-handle")
			if j != nil && j.state != gEnded {
				rule = "gearman.work.not-holder"
			}
			m.expect(p.conn, rule, "ERROR", typed("ERROR", nil))
			return
		}
		if j.uncertain() {
			m.allow(p.conn, "ERROR", typed("ERROR", func(*codec.Frame) error {
				if j.abandoned && assigned {
					m.end(j) // the server has dropped the job
				}
				return nil
			}))
		}
		seen := map[int]bool{}
		for _, c := range j.waits {
			if m.peers[c] == nil {
				continue // the client has disconnected
			}
			m.forward(j, c, f, ends, !j.uncertain() && !seen[c])
			seen[c] = true
		}
		if f.Type.Name == "WORK_STATUS" {
			j.numer, j.denom, j.statusUncertain = f.Arg(1), f.Arg(2), !assigned
		}
		if ends && assigned && !j.vague && !j.soon {
			m.end(j)
		}
	}
}

// forward expects the server to send a worker's report to a client. ends says whether the report ends the job.
func (m *gearman) forward(j *gJob, conn int, f codec.Frame, ends, must bool) {
	name := f.Type.Name
	rule := codec.RuleID("gearman." + map[string]string{"WORK_DATA": "work.data", "WORK_WARNING": "work.warning", "WORK_STATUS": "work.status",
		"WORK_COMPLETE": "work.complete", "WORK_FAIL": "work.fail", "WORK_EXCEPTION": "work.exception"}[name])
	if m.quirks[NoPartials] && (name == "WORK_DATA" || name == "WORK_WARNING") {
		must = false
	}
	if name == "WORK_EXCEPTION" && !m.peers[conn].exceptions {
		name, rule = "WORK_FAIL", "gearman.work.exception-unasked"
		must = must && !m.quirks[NoFailUnasked]
	}
	d := m.expect(conn, rule, name+" "+string(j.handle), typed(name, func(r *codec.Frame) error {
		if !bytes.Equal(r.Arg(0), j.handle) {
			return notMine
		}
		for i := 1; i < len(r.Type.Fields); i++ {
			if !bytes.Equal(r.Arg(i), f.Arg(i)) {
				return wrong("expected %.60q, because the worker sent it", f.Arg(i))
			}
		}
		if ends && j.state != gEnded {
			m.end(j) // the model did not know whether the worker still had the job
		}
		return nil
	}))
	d.must = d.must && must
}
