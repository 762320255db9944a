package model

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// gHandlers maps types of requests to functions that update the model. The functions may keep the frame.
var gHandlers map[string]func(m *gearman, p *gPeer, f codec.Frame)

// init sets the handler of each request, by packet type or administrative command. The server must reject a request
// that has no handler with ERROR.
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
		"version":          gVersion,
		"getpid":           gText("getpid-reply ERR error-line"),
		"verbose":          gText("verbose-reply ERR error-line"),
		"cancel-job":       gCancel,
		"create-function":  gCreate,
		"drop-function":    gDrop,
	}
}

// gText returns the handler of an administrative command whose effects and reply values the model does not check.
// replies contains the types of the replies that the server may send, separated by spaces.
func gText(replies string) func(*gearman, *gPeer, codec.Frame) {
	return func(m *gearman, p *gPeer, _ codec.Frame) {
		m.expect(p.conn, "gearman.admin.reply-form", strings.ReplaceAll(replies, " ", " or "), typed(replies, nil))
	}
}

func gVersion(m *gearman, p *gPeer, _ codec.Frame) {
	m.expect(p.conn, "gearman.admin.version", "version-reply", typed("version-reply", nil))
}

// gEcho handles ECHO_REQ: the server must return the same data in ECHO_RES, even after illegal bytes from other peers.
func gEcho(m *gearman, p *gPeer, f codec.Frame) {
	d := m.expect(p.conn, "gearman.echo.same-data", "ECHO_RES with the same data",
		typed("ECHO_RES", func(r *codec.Frame) error {
			if !bytes.Equal(r.Arg(0), f.Arg(0)) {
				return wrong("expected the same data as in ECHO_REQ, %.60q", f.Arg(0))
			}
			return nil
		}))
	d.must, d.certain = true, true
}

// gOption handles OPTION_REQ. The only option is "exceptions", which makes the server forward WORK_EXCEPTION to the
// client; other names must be rejected with ERROR.
func gOption(m *gearman, p *gPeer, f codec.Frame) {
	const exceptions = "exceptions"
	switch name := string(f.Arg(0)); {
	case name == exceptions:
	case strings.EqualFold(name, exceptions): // the specification does not say whether letter case matters
		m.allow(p.conn, "OPTION_RES or ERROR", typed("OPTION_RES ERROR", nil))
		m.taint()
		return
	default:
		m.expect(p.conn, "gearman.option.unknown", "ERROR", typed("ERROR", nil))
		return
	}
	p.exceptions = true
	m.expect(p.conn, "gearman.option.exceptions", "OPTION_RES exceptions", typed("OPTION_RES", func(r *codec.Frame) error {
		if string(r.Arg(0)) != exceptions {
			return wrong("expected the option that the client requested, which is exceptions")
		}
		return nil
	}))
}

// gSubmit contains the properties in which the types of submissions differ.
type gSubmit struct {
	priority                         int
	background, reduce, epoch, sched bool
}

// job returns the job that a submission describes.
func (s gSubmit) job(m *gearman, f *codec.Frame) *gJob {
	j := &gJob{fn: m.function(f.Arg(0)), unique: f.Arg(1), workload: f.Arg(f.Type.NumArgs() - 1), priority: s.priority,
		background: s.background, reduce: s.reduce}
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
		if at := time.Unix(n, 0).Sub(m.serverTime()); n > m.start.Unix()+1<<31 {
			j.state = gLater // the time is too far in the future to come during a test
		} else if at > 0 {
			j.state, j.timer, j.latest = gLater, m.now+at, m.now+at
		}
	}
	if s.sched {
		j.vague, j.state = true, gLater
	}
	return j
}

// full reports whether the limit of the function for the priority may exclude another job, and whether it must. From
// the first job in an unknown state on, the number of jobs is unknown, which full records in vague.
func (fn *gFunction) full(priority int) (may, must bool) {
	// The limit counts queued jobs. The specification does not say whether it also counts running jobs.
	waiting, total := 0, 0
	for _, o := range fn.jobs {
		if o.uncertain() {
			fn.vague = true
		}
		if total++; o.state != gRunning {
			waiting++
		}
	}
	limit := 0
	if fn.limits != nil {
		limit = fn.limits[priority]
	}
	may = limit > 0 && (total >= limit || fn.vague)
	return may, may && waiting >= limit && !fn.vague
}

// sent handles a SUBMIT_* request. A submission with the unique ID of an unfinished job of the function joins that job;
// otherwise it creates a job, or is rejected with ERROR if the queue is full. Where both may happen, the handle in
// JOB_CREATED shows which job the client has.
func (s gSubmit) sent(m *gearman, p *gPeer, f codec.Frame) {
	j := s.job(m, &f)
	fn := j.fn
	var old, doubtful *gJob
	for _, o := range fn.jobs {
		if j.key == "" || o.key != j.key {
			continue
		}
		if o.uncertain() || s.sched || j.key == "-" { // the specification does not say whether an empty workload is a key
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
	full, sure := fn.full(s.priority)
	sure = sure && doubtful == nil
	if full && m.quirks[FullDrops] {
		m.taint() // it is unknown which job the server drops
		m.dropReplies(p.conn)
		return
	}
	late := full || s.sched || doubtful != nil // only the reply shows whether the server creates a new job
	reply := &choice{left: 1}
	if full || s.sched {
		d := m.expect(p.conn, "gearman.admin.maxqueue", "ERROR (queue full)", typed("ERROR", nil))
		d.must, d.choice = d.must && sure, reply
		if sure {
			return
		}
	}
	d := m.expect(p.conn, "gearman.submit.created", "JOB_CREATED", typed("JOB_CREATED", func(r *codec.Frame) error {
		h := string(r.Arg(0))
		if doubtful != nil && h == string(doubtful.handle) {
			m.joined(p, doubtful, s)
			return nil
		}
		if o, known := m.jobs[h]; known {
			return &Complaint{Rule: "gearman.submit.handles-distinct",
				Text: fmt.Sprintf("expected a new handle, because another job (function %q, unique ID %q) already has this handle",
					o.fn.name, o.unique)}
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
		m.wake(j, optional)
	} else {
		m.accept(p, j)
	}
}

// accept adds a new job to its queue.
func (m *gearman) accept(p *gPeer, j *gJob) {
	if !j.background {
		j.waits = append(j.waits, p.conn)
	}
	j.fn.jobs = append(j.fn.jobs, j)
	if j.state == gQueued {
		m.wake(j, required)
	} else if m.quirks[EpochWakesEarly] || j.uncertain() {
		m.wake(j, optional)
	}
}

// join handles a submission with the unique ID of an unfinished job: the server must add the client to that job.
func (m *gearman) join(p *gPeer, old *gJob, s gSubmit) {
	m.joined(p, old, s)
	m.expect(p.conn, "gearman.submit.coalesce", "JOB_CREATED "+string(old.handle),
		typed("JOB_CREATED", func(r *codec.Frame) error {
			if !bytes.Equal(r.Arg(0), old.handle) {
				return wrong("expected handle %s, because that job has the same unique ID and is not finished", old.handle)
			}
			return nil
		}))
	if old.state == gQueued {
		m.wake(old, optional)
	}
}

// joined adds a client to a job that already exists. A background submission adds no waiting client, but makes the job
// continue when all clients have disconnected. The server has not dropped a job that a client has joined.
func (m *gearman) joined(p *gPeer, old *gJob, s gSubmit) {
	old.abandoned = false
	if s.background {
		old.background = true
	} else {
		old.waits = append(old.waits, p.conn)
	}
}
