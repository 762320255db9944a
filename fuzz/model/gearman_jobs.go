package model

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
)

// gHandlers say what follows from a request, by its type's name. The frame is theirs.
var gHandlers map[string]func(m *gearman, p *gPeer, f codec.Frame)

func init() {
	gHandlers = map[string]func(m *gearman, p *gPeer, f codec.Frame){
		"ECHO_REQ":   gEcho,
		"OPTION_REQ": gOption,

		"SUBMIT_JOB":                   gSubmit{priority: 1}.sent,
		"SUBMIT_JOB_HIGH":              gSubmit{priority: 0}.sent,
		"SUBMIT_JOB_LOW":               gSubmit{priority: 2}.sent,
		"SUBMIT_JOB_BG":                gSubmit{priority: 1, background: true}.sent,
		"SUBMIT_JOB_HIGH_BG":           gSubmit{priority: 0, background: true}.sent,
		"SUBMIT_JOB_LOW_BG":            gSubmit{priority: 2, background: true}.sent,
		"SUBMIT_JOB_EPOCH":             gSubmit{priority: 1, background: true, epoch: true}.sent,
		"SUBMIT_JOB_SCHED":             gSubmit{priority: 1, background: true, sched: true}.sent,
		"SUBMIT_REDUCE_JOB":            gSubmit{priority: 1, reduce: true}.sent,
		"SUBMIT_REDUCE_JOB_BACKGROUND": gSubmit{priority: 1, reduce: true, background: true}.sent,
		"GET_STATUS":                   gStatus,
		"GET_STATUS_UNIQUE":            gStatusUnique,

		"CAN_DO":          gCanDo,
		"CAN_DO_TIMEOUT":  gCanDo,
		"CANT_DO":         gCantDo,
		"RESET_ABILITIES": gReset,
		"PRE_SLEEP":       gPreSleep,
		"SET_CLIENT_ID":   func(m *gearman, p *gPeer, f codec.Frame) { p.clientID = string(f.Arg(0)) },
		"ALL_YOURS":       func(*gearman, *gPeer, codec.Frame) {},
		"GRAB_JOB":        gGrab("JOB_ASSIGN", "JOB_ASSIGN"),
		"GRAB_JOB_UNIQ":   gGrab("JOB_ASSIGN_UNIQ", "JOB_ASSIGN_UNIQ"),
		"GRAB_JOB_ALL":    gGrab("JOB_ASSIGN_UNIQ", "JOB_ASSIGN_ALL"),
		"WORK_DATA":       gWork(false),
		"WORK_WARNING":    gWork(false),
		"WORK_STATUS":     gWork(false),
		"WORK_COMPLETE":   gWork(true),
		"WORK_FAIL":       gWork(true),
		"WORK_EXCEPTION":  gWork(true),

		"workers":          gWorkers,
		"status":           gAdminStatus,
		"prioritystatus":   gPriorities,
		"show-jobs":        gShowJobs,
		"show-unique-jobs": gShowUnique,
		"maxqueue":         gMaxQueue,
		"shutdown":         gShutdown,
		"version":          gText("version-reply OK ERR"),
		"getpid":           gText("getpid-reply ERR"),
		"verbose":          gText("verbose-reply ERR"),
		"cancel-job":       gCancel,
		"create-function":  gCreate,
		"drop-function":    gDrop,
	}
}

func gText(replies string) func(*gearman, *gPeer, codec.Frame) {
	return func(m *gearman, p *gPeer, _ codec.Frame) {
		m.owe(p.conn, "gearman.admin.reply-form", replies, typed(replies, nil))
	}
}

func gEcho(m *gearman, p *gPeer, f codec.Frame) {
	m.owe(p.conn, "gearman.echo.same-data", "ECHO_RES with the same data", typed("ECHO_RES", func(r *codec.Frame) error {
		if !bytes.Equal(r.Arg(0), f.Arg(0)) {
			return wrong("%.60q is not what was sent, %.60q", r.Arg(0), f.Arg(0))
		}
		return nil
	})).must = true
}

func gOption(m *gearman, p *gPeer, f codec.Frame) {
	if string(f.Arg(0)) != "exceptions" {
		m.owe(p.conn, "gearman.option.unknown", "ERROR", typed("ERROR", nil))
		return
	}
	p.exceptions = true
	m.owe(p.conn, "gearman.option.exceptions", "OPTION_RES exceptions", typed("OPTION_RES", func(r *codec.Frame) error {
		if string(r.Arg(0)) != "exceptions" {
			return wrong("another option was asked for")
		}
		return nil
	}))
}

// gSubmit is what the submissions differ in.
type gSubmit struct {
	priority                         int
	background, reduce, epoch, sched bool
}

func (s gSubmit) sent(m *gearman, p *gPeer, f codec.Frame) {
	fn := m.function(f.Arg(0))
	j := &gJob{fn: fn, unique: f.Arg(1), workload: f.Arg(len(f.Type.Fields) - 1), priority: s.priority, background: s.background, reduce: s.reduce}
	if s.reduce {
		j.reducer = f.Arg(2)
	}
	switch {
	case string(j.unique) == "-":
		j.key = "-" + string(j.workload)
	case len(j.unique) > 0:
		j.key = "=" + string(j.unique)
	}
	if s.epoch {
		n, _ := strconv.ParseInt(string(f.Arg(2)), 10, 64)
		if at := time.Until(time.Unix(n, 0)); n > m.start.Unix()+1<<31 {
			j.state = gLater // never
		} else if at > 0 {
			j.state, j.due = gLater, m.now+at
		}
	}
	if s.sched {
		j.vague, j.state = true, gLater
	}
	var old, doubtful *gJob
	for _, o := range fn.jobs {
		if j.key == "" || o.key != j.key {
			continue
		}
		if o.vague || s.sched || j.key == "-" { // whether an empty workload is a key is open
			doubtful = o
		} else {
			old = o
		}
	}
	if old != nil {
		m.join(p, old, s)
		return
	}
	m.count++
	j.order = m.count
	// A limit counts the jobs that wait; whether those that run are in the queue too is open.
	waiting, total := 0, 0
	for _, o := range fn.jobs {
		if o.vague {
			fn.vague = true
		}
		if total++; o.state != gRunning {
			waiting++
		}
	}
	limit := 0
	if fn.limits != nil {
		limit = fn.limits[s.priority]
	}
	full := limit > 0 && (total >= limit || fn.vague)
	sure := full && waiting >= limit && !fn.vague && doubtful == nil
	if full && m.quirks[FullDrops] {
		m.taint() // which job makes room is up to the server
		m.dropReplies(p.conn)
		return
	}
	late := full || s.sched || doubtful != nil // whether there is a job is known by the reply
	reply := &choice{left: 1}
	if full || s.sched {
		d := m.owe(p.conn, "gearman.admin.maxqueue", "ERROR, for the queue is full", typed("ERROR", nil))
		d.must, d.choice = d.must && sure, reply
		if sure {
			return
		}
	}
	d := m.owe(p.conn, "gearman.submit.created", "JOB_CREATED", typed("JOB_CREATED", func(r *codec.Frame) error {
		h := string(r.Arg(0))
		if doubtful != nil && h == string(doubtful.handle) {
			m.joined(p, doubtful, s)
			return nil
		}
		if o, known := m.jobs[h]; known {
			return &Complaint{Rule: "gearman.submit.handles-distinct", Text: fmt.Sprintf("the handle is that of another job, of function %q and unique ID %q", o.fn.name, o.unique)}
		}
		j.handle = []byte(h)
		m.jobs[h] = j
		if late {
			m.accept(p, j)
		}
		return nil
	}))
	d.choice = reply
	if late {
		m.wake(j, false)
	} else {
		m.accept(p, j)
	}
}

// accept takes a job in.
func (m *gearman) accept(p *gPeer, j *gJob) {
	if !j.background {
		j.waits = append(j.waits, p.conn)
	}
	j.fn.jobs = append(j.fn.jobs, j)
	if j.state == gQueued {
		m.wake(j, true)
	} else if m.quirks[EpochWakesEarly] || j.vague {
		m.wake(j, false)
	}
}

// join is a submission that the job of its unique ID takes in.
func (m *gearman) join(p *gPeer, old *gJob, s gSubmit) {
	m.joined(p, old, s)
	m.owe(p.conn, "gearman.submit.coalesce", "JOB_CREATED "+string(old.handle), typed("JOB_CREATED", func(r *codec.Frame) error {
		if !bytes.Equal(r.Arg(0), old.handle) {
			return wrong("the job of that unique ID, which has not ended, is %s", old.handle)
		}
		return nil
	}))
	if old.state == gQueued {
		m.wake(old, false)
	}
}

func (m *gearman) joined(p *gPeer, old *gJob, s gSubmit) {
	if s.background {
		old.background = true
	} else {
		old.waits = append(old.waits, p.conn)
	}
}

// progress judges the four values of a status behind the handle or unique ID.
func (j *gJob) progress(m *gearman, r *codec.Frame) error {
	want := []string{"1", "0"}
	if j.state == gRunning {
		want[1] = "1"
	}
	for i, w := range want {
		if got := string(r.Arg(1 + i)); got != w {
			return wrong("%s is %s, and should be %s: the job is %s", r.Type.Fields[1+i].Name, got, w, j.state)
		}
	}
	if j.lost > 0 && j.numer == nil || m.quirks[NoNumbers] {
		return nil // whether the lost worker's progress stands is open
	}
	for i, w := range [][]byte{j.numer, j.denom} {
		n, _ := strconv.ParseUint(string(r.Arg(3+i)), 10, 64)
		if due, err := strconv.ParseUint("0"+string(w), 10, 64); err == nil && n != due {
			return &Complaint{Rule: "gearman.status.progress", Text: fmt.Sprintf("%s should be %d, as last told", r.Type.Fields[3+i].Name, due)}
		}
	}
	return nil
}

func (s gState) String() string { return [...]string{"queued", "scheduled", "running", "ended"}[s] }

func unknownStatus(r *codec.Frame) error {
	if string(r.Arg(1)) != "0" || string(r.Arg(2)) != "0" {
		return wrong("there is no such job")
	}
	return nil
}

func gStatus(m *gearman, p *gPeer, f codec.Frame) {
	j := m.jobs[string(f.Arg(0))]
	rule := codec.RuleID("gearman.status.queued")
	switch {
	case j == nil:
		rule = "gearman.status.unknown"
	case j.state == gEnded:
		rule = "gearman.status.finished"
	case j.state == gRunning:
		rule = "gearman.status.running"
	}
	m.owe(p.conn, rule, "STATUS_RES", typed("STATUS_RES", func(r *codec.Frame) error {
		switch {
		case !bytes.Equal(r.Arg(0), f.Arg(0)):
			return wrong("the question was about %s", f.Arg(0))
		case j == nil && m.quirks[Shared], j != nil && j.vague:
			return nil
		case j == nil || j.state == gEnded:
			return unknownStatus(r)
		}
		return j.progress(m, r)
	}))
}

func gStatusUnique(m *gearman, p *gPeer, f codec.Frame) {
	unique := f.Arg(0)
	m.owe(p.conn, "gearman.status.unique", "STATUS_RES_UNIQUE", typed("STATUS_RES_UNIQUE", func(r *codec.Frame) error {
		if !bytes.Equal(r.Arg(0), unique) {
			return wrong("the question was about %q", unique)
		}
		if len(unique) == 0 || string(unique) == "-" || m.quirks[Shared] {
			return nil
		}
		var err error
		found := false
		for _, fn := range m.functions {
			for _, j := range fn.jobs {
				if !bytes.Equal(j.unique, unique) {
					continue
				}
				found = true
				if j.vague {
					return nil
				}
				if err = j.progress(m, r); err == nil && !j.leavers && string(r.Arg(5)) != string(gNumber(len(j.waits))) {
					err = wrong("%d submissions wait for it", len(j.waits))
				}
				if err == nil {
					return nil
				}
			}
		}
		if !found {
			return unknownStatus(r)
		}
		return err
	}))
}

func gCanDo(m *gearman, p *gPeer, f codec.Frame) {
	m.function(f.Arg(0))
	n, _ := strconv.ParseUint(string(f.Arg(1)), 10, 64)
	p.abilities[string(f.Arg(0))] = time.Duration(min(n, 1<<40)) * time.Millisecond
	if p.sleeping {
		for _, j := range m.function(f.Arg(0)).jobs {
			if j.state == gQueued || j.vague {
				m.noop(p, false)
			}
		}
	}
}

func gCantDo(m *gearman, p *gPeer, f codec.Frame) {
	_, could := p.abilities[string(f.Arg(0))]
	delete(p.abilities, string(f.Arg(0)))
	if m.quirks[CantDoLoses] && could {
		m.loosen(p, string(f.Arg(0)))
	}
}

// loosen leaves open what becomes of the jobs of a function that the worker holds.
func (m *gearman) loosen(p *gPeer, fn string) {
	for _, j := range m.function([]byte(fn)).jobs {
		if j.state == gRunning && j.holder == p.conn {
			j.vague = true
			m.wake(j, false)
		}
	}
}

func gReset(m *gearman, p *gPeer, _ codec.Frame) {
	for fn := range p.abilities {
		if m.quirks[CantDoLoses] {
			m.loosen(p, fn)
		}
	}
	clear(p.abilities)
}

func gPreSleep(m *gearman, p *gPeer, _ codec.Frame) {
	p.sleeping = true
	must, may := m.candidates(p)
	if len(must)+len(may) > 0 {
		m.noop(p, len(must) > 0).rule = "gearman.worker.wake-late"
	}
}

// candidates are the jobs that a worker may be given: of each function those of the
// highest priority, the oldest, and those whose state or place is not certain.
func (m *gearman) candidates(p *gPeer) (sure, vague []*gJob) {
	for name := range p.abilities {
		fn := m.functions[name]
		best := 3
		for _, j := range fn.jobs {
			if j.state == gQueued && !j.vague {
				best = min(best, j.priority)
			}
		}
		first := true
		for _, j := range fn.jobs {
			switch {
			case m.quirks[EpochHides] && slices.ContainsFunc(fn.jobs, func(o *gJob) bool { return o.state == gLater }):
				if j.state == gQueued || j.vague {
					vague = append(vague, j)
				}
			case j.vague && j.priority <= best:
				vague = append(vague, j)
			case j.state != gQueued || j.priority != best || j.vague:
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

func gGrab(plain, reduce string) func(*gearman, *gPeer, codec.Frame) {
	return func(m *gearman, p *gPeer, _ codec.Frame) {
		p.sleeping = false
		sure, vague := m.candidates(p)
		reply := &choice{left: 1}
		if len(sure) == 0 {
			m.owe(p.conn, "gearman.grab.no-job", "NO_JOB", typed("NO_JOB", nil)).choice = reply
		}
		if len(sure)+len(vague) == 0 {
			return
		}
		d := m.owe(p.conn, "gearman.grab.assign", "a job", typed("JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL", func(r *codec.Frame) error {
			j := m.jobs[string(r.Arg(0))]
			want := plain
			switch {
			case j == nil && m.tainted:
				return nil
			case j == nil || j.state == gEnded:
				return wrong("no such job waits")
			case j.state == gRunning && !j.vague:
				return &Complaint{Rule: "gearman.grab.once", Text: "another worker has the job"}
			case j.state == gLater && !j.vague:
				return &Complaint{Rule: "gearman.epoch.waits", Text: "its time has not come"}
			case j.reduce && len(j.reducer) == 0 && r.Type.Name == reduce: // an empty one may be none
				want = reduce
			case j.reduce && len(j.reducer) > 0:
				want = reduce
			}
			if r.Type.Name != want {
				return wrong("it should be a %s", want)
			}
			if err := j.delivered(r); err != nil && !(m.tainted && j.key != "") { // it may be one that nobody saw begin
				return err
			}
			timeout, able := p.abilities[j.fn.name]
			if !able {
				return &Complaint{Rule: "gearman.worker.can-do", Text: "the worker cannot do that function"}
			}
			if !slices.Contains(sure, j) && !slices.Contains(vague, j) {
				rule := codec.RuleID("gearman.queue.fifo")
				for _, o := range j.fn.jobs {
					if o.state == gQueued && o.priority < j.priority {
						rule = "gearman.queue.high-first"
					}
				}
				return &Complaint{Rule: rule, Text: "another job of the function goes before it"}
			}
			j.state, j.holder, j.due = gRunning, p.conn, 0
			if j.vague && j.background {
				j.vague = false // it exists, and here it is
			}
			if timeout > 0 {
				j.due = m.now + timeout
			}
			return nil
		}))
		d.choice = reply
	}
}

// delivered compares what a worker is given with what was submitted.
func (j *gJob) delivered(r *codec.Frame) error {
	var m codec.Message
	r.Message(&m)
	if string(m.Args[1]) != j.fn.name || !bytes.Equal(m.Args[len(m.Args)-1], j.workload) {
		return &Complaint{Rule: "gearman.submit.opaque-workload", Text: fmt.Sprintf("submitted were function %q and workload %.60q", j.fn.name, j.workload)}
	}
	if len(m.Args) > 3 && !bytes.Equal(m.Args[2], j.unique) {
		return &Complaint{Rule: "gearman.grab.assign-unique", Text: fmt.Sprintf("the unique ID was %q", j.unique)}
	}
	if len(m.Args) > 4 && !bytes.Equal(m.Args[3], j.reducer) {
		return &Complaint{Rule: "gearman.reduce.carried", Text: fmt.Sprintf("the reducer was %q", j.reducer)}
	}
	return nil
}

// gWork is what a worker says of a job.
func gWork(ends bool) func(*gearman, *gPeer, codec.Frame) {
	return func(m *gearman, p *gPeer, f codec.Frame) {
		j := m.jobs[string(f.Arg(0))]
		held := j != nil && j.state == gRunning && j.holder == p.conn
		if !held && (j == nil || !j.vague) {
			rule := codec.RuleID("gearman.work.unknown-handle")
			if j != nil && j.state != gEnded {
				rule = "gearman.work.not-holder"
			}
			m.owe(p.conn, rule, "ERROR", typed("ERROR", nil))
			return
		}
		if j.vague {
			m.allow(p.conn, "ERROR", typed("ERROR", nil))
		}
		seen := map[int]bool{}
		for _, c := range j.waits {
			m.forward(j, c, f, !j.vague && !seen[c])
			seen[c] = true
		}
		if f.Type.Name == "WORK_STATUS" {
			j.numer, j.denom = f.Arg(1), f.Arg(2)
		}
		if ends && !j.vague {
			m.end(j)
		}
	}
}

// forward has a client told what a worker said.
func (m *gearman) forward(j *gJob, conn int, f codec.Frame, must bool) {
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
	d := m.owe(conn, rule, name+" "+string(j.handle), typed(name, func(r *codec.Frame) error {
		if !bytes.Equal(r.Arg(0), j.handle) {
			return notMine
		}
		for i := 1; i < len(r.Type.Fields); i++ {
			if !bytes.Equal(r.Arg(i), f.Arg(i)) {
				return wrong("the worker said %.60q", f.Arg(i))
			}
		}
		return nil
	}))
	d.must = d.must && must
}
