package model

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// Gearman is the adapter for models of the specification gearman-protocol.txt.
var Gearman = &Adapter{New: newGearman, Excuses: regexp.MustCompile(`^ERR (?i:INTERNAL_ERROR|UNKNOWN_ERROR) `)}

// Quirks of Gearman servers.
const (
	FewWakeups Quirk = "few-wakeups" // the server wakes only some of the sleeping workers that can do a job
	IdleNoops  Quirk = "idle-noops"  // the server sends NOOP to workers although there is no job
	// a worker that has sent PRE_SLEEP twice is woken once more, by the next job
	WokenTwice      Quirk = "woken-twice"
	TimeoutRequeues Quirk = "timeout-requeues" // a job that exceeds its time limit goes back to its queue
	EpochSilent     Quirk = "epoch-silent"     // the server wakes no worker when an EPOCH time comes
	EpochWakesEarly Quirk = "epoch-wakes-early"
	// a job whose scheduled time has not come blocks the other jobs of its function
	EpochHides     Quirk = "epoch-hides"
	CantDoLoses    Quirk = "cant-do-loses-job" // CANT_DO takes away the jobs of the function that the worker runs
	LimitForgotten Quirk = "limit-forgotten"   // maxqueue has no effect before a client or worker names the function
	NameTruncated  Quirk = "name-truncated"    // "create function" drops a character of the name
	LostFails      Quirk = "lost-fails"        // the jobs of a disconnected worker fail
	NoPartials     Quirk = "no-partials"       // WORK_DATA and WORK_WARNING are not forwarded
	// WORK_EXCEPTION causes no WORK_FAIL for clients without the option exceptions
	NoFailUnasked Quirk = "no-fail-unasked"
	NewestFirst   Quirk = "newest-first" // among jobs of high priority, the newest is assigned first
	// if a queue is full, the server drops a queued job and accepts the new one
	FullDrops     Quirk = "full-drops"
	LacksTypes    Quirk = "lacks-types"    // the server may reject any request as unknown
	CancelLingers Quirk = "cancel-lingers" // a canceled job remains until the server would assign it
	// "drop function" also drops a function that has jobs, and the jobs are lost
	DropLoses    Quirk = "drop-loses-jobs"
	AbilitiesAdd Quirk = "abilities-add" // a worker that announces a function twice counts as two workers
	// the server drops a background job when the last client that has joined it disconnects
	JoinedGoes Quirk = "joined-goes"
	// the model does not check the numbers of STATUS_RES against WORK_STATUS
	NoNumbers Quirk = "status-keeps-numbers"
)

// gearman is the model of the specification gearman-protocol.txt, and of the de facto behavior where servers retry
// jobs.
type gearman struct {
	expectations
	peers     map[int]*gPeer
	functions map[string]*gFunction
	jobs      map[string]*gJob // jobs by handle, including ended ones
	count     uint64           // number of jobs so far, to order them
}

type gPeer struct {
	conn       int
	abilities  map[string]time.Duration
	worker     bool
	sleeping   bool
	twice      bool // the worker has sent PRE_SLEEP while it slept, and has not requested a job since then
	exceptions bool
	clientID   string
}

type gFunction struct {
	name   string
	jobs   []*gJob // unfinished jobs, oldest first
	limits *[3]int
	kept   bool
	vague  bool // the effects of maxqueue and "create function" on the function are unknown
}

type gState uint8

const (
	gQueued gState = iota
	gLater         // scheduled, and the time has not come
	gRunning
	gEnded
)

type gJob struct {
	fn                        *gFunction
	handle                    []byte // nil until the reply JOB_CREATED arrives
	unique, reducer, workload []byte
	key                       string // submissions with the same key become one job; "": no key
	order                     uint64
	priority                  int
	reduce, background        bool
	state                     gState
	requeued                  bool // the position of the job in the queue is unknown
	vague                     bool // the state of the job is unknown: queued, running or finished
	abandoned                 bool // no client waits for the job any more, so the server may have dropped it
	holder                    int
	waits                     []int // connections of the clients that wait for the job, one for each submission
	lost                      int
	// clients of the job have disconnected; a server that keeps half-closed connections may still count them
	leavers bool
	gTimer
	gProgress
}

// gTimer is the time at which the scheduled time of a job comes or its time limit is exceeded.
type gTimer struct {
	timer  time.Duration // the earliest time; 0: never
	latest time.Duration
	soon   bool // the clock is near timer, so the state of the job is unknown until latest + Slack
}

// gProgress is the progress that the worker of a job has reported.
type gProgress struct {
	numer, denom    []byte
	statusUncertain bool // it is unknown whether the server accepted the last WORK_STATUS
}

func newGearman(p *codec.Protocol, quirks map[Quirk]bool) Model {
	b := newExpectations(p, quirks)
	if b.listsOthers() {
		b.uncheckedRules = "gearman.admin." // administrative commands list the functions of all clients
	}
	return &gearman{expectations: b, peers: map[int]*gPeer{}, functions: map[string]*gFunction{}, jobs: map[string]*gJob{}}
}

func (m *gearman) Opened(conn int) {
	m.opened(conn)
	m.peers[conn] = &gPeer{conn: conn, abilities: map[string]time.Duration{}}
}

// Sent implements Model: it passes a request to its handler in gHandlers, and expects ERROR for a type that has no
// handler. Every request may be refused with the quirk lacks-types; requests that the specification does not contain
// may always be refused.
func (m *gearman) Sent(conn int, f *codec.Frame) {
	m.step++
	p := m.peers[conn]
	if p == nil || m.unchecked[conn] {
		m.tainted = m.tainted || p != nil
		return
	}
	h := gHandlers[f.Type.Name]
	if h == nil {
		m.expect(conn, "gearman.error.told", "ERROR", typed("ERROR", nil))
		return
	}
	if f.Type.Req == 2 {
		p.worker = true
	}
	if f.Type.Code == 0 && bytes.IndexByte(f.Raw, 0) >= 0 { // the command contains a NUL, which no name in a packet can contain
		m.taint()
		gText("OK ERR error-line")(m, p, *f)
		return
	}
	if m.quirks[LacksTypes] {
		m.mayRefuse(conn)
	}
	h(m, p, f.Clone())
	if strings.HasPrefix(f.Type.Section, "beyond the specification") && !m.quirks[LacksTypes] {
		m.mayRefuse(conn) // a server need not implement messages that the specification does not contain
	}
}

// mayRefuse allows an error instead of the reply to the request that was sent last. After the error, the effect of the
// request is unknown. If replies to other requests are missing, it may be about one of those.
func (m *gearman) mayRefuse(conn int) {
	step := m.step
	m.allow(conn, "ERROR", typed("ERROR ERR error-line", func(*codec.Frame) error {
		m.taint()
		refused := func(d *expectation) bool { return d.conn == conn && d.step == step }
		others := slices.ContainsFunc(m.expected, func(d *expectation) bool { return d.conn == conn && !refused(d) })
		if m.expected = slices.DeleteFunc(m.expected, refused); others {
			m.Garbled(conn)
		}
		return nil
	}))
}

// dropReplies makes the expected messages of a connection optional, because the server sent an error instead of the
// reply.
func (m *gearman) dropReplies(conn int) {
	for _, d := range m.expected {
		if d.conn == conn {
			d.must = false
		}
	}
}

func (m *gearman) Blocked(int) bool { return false }

// Closed implements Model: it updates the jobs of the client or worker as disconnected describes.
func (m *gearman) Closed(conn int) {
	m.step++
	p := m.peers[conn]
	if p == nil {
		return
	}
	m.opened(conn)
	m.unchecked[conn] = true
	delete(m.peers, conn)
	m.disconnected(p)
}

// disconnected updates the jobs of a client or worker that has disconnected.
func (m *gearman) disconnected(p *gPeer) {
	for _, fn := range m.functions {
		for _, j := range slices.Clone(fn.jobs) {
			before := len(j.waits)
			j.waits = slices.DeleteFunc(j.waits, func(c int) bool { return c == p.conn })
			j.leavers = j.leavers || before > len(j.waits)
			if before > 0 && len(j.waits) == 0 && (!j.background || m.quirks[JoinedGoes]) {
				j.abandoned = true
			}
			if j.state == gRunning && j.holder == p.conn {
				m.requeue(j)
			}
		}
	}
}

// requeue returns the job of a disconnected worker to its queue, without progress, and wakes the sleeping workers that
// can do it. With the quirk lost-fails, the job fails instead.
func (m *gearman) requeue(j *gJob) {
	j.lost++
	j.timer = 0
	if m.quirks[LostFails] {
		m.fail(j)
		return
	}
	j.state, j.requeued, j.numer, j.denom = gQueued, true, nil, nil
	m.wake(j, required)
}

// fail ends a job as failed and expects WORK_FAIL on the connections of its clients.
func (m *gearman) fail(j *gJob) {
	for _, c := range j.waits {
		d := m.expect(c, "gearman.work.fail", "WORK_FAIL "+string(j.handle), m.sameHandle(j, "WORK_FAIL"))
		d.must = d.must && !j.uncertain()
	}
	m.end(j)
}

// mayFail allows WORK_FAIL to a client, because the time limit of the job may have been exceeded.
func (m *gearman) mayFail(j *gJob, client int) {
	same := m.sameHandle(j, "WORK_FAIL")
	m.allow(client, "WORK_FAIL "+string(j.handle), func(f *codec.Frame) error {
		err := same(f)
		if i := slices.Index(j.waits, client); err == nil && i >= 0 {
			j.waits = slices.Delete(j.waits, i, i+1)
		}
		return err
	})
}

// sameHandle returns a take function for messages of a type that name the job.
func (m *gearman) sameHandle(j *gJob, t string) func(*codec.Frame) error {
	return typed(t, func(f *codec.Frame) error {
		if !bytes.Equal(f.Arg(0), j.handle) {
			return notMine
		}
		return nil
	})
}

// uncertain reports whether the state of the job is unknown.
func (j *gJob) uncertain() bool { return j.vague || j.soon || j.abandoned }

// end removes a finished job from its function. Its handle stays known.
func (m *gearman) end(j *gJob) {
	j.state = gEnded
	if i := slices.Index(j.fn.jobs, j); i >= 0 {
		j.fn.jobs = slices.Delete(j.fn.jobs, i, i+1)
	}
}

// function returns the function with a name. It creates the function if the model does not know it yet.
func (m *gearman) function(name []byte) *gFunction {
	fn := m.functions[string(name)]
	if fn == nil {
		fn = &gFunction{name: string(name)}
		m.functions[fn.name] = fn
	}
	return fn
}

// wake expects a NOOP for each sleeping worker that can do the job. If must is false, the NOOPs are optional. After the
// first NOOP has arrived, missing ones break only the rule that the server wakes every worker.
func (m *gearman) wake(j *gJob, must bool) {
	var all []*expectation
	for _, p := range m.peers {
		if _, can := p.abilities[j.fn.name]; can && p.sleeping {
			d := m.noop(p, must && !j.uncertain())
			if m.quirks[FewWakeups] {
				d.must = false
			}
			all = append(all, d)
		}
	}
	if len(all) < 2 {
		return
	}
	for _, d := range all {
		take := d.take
		d.take = func(f *codec.Frame) error {
			err := take(f)
			for _, o := range all {
				if err == nil {
					o.rule = "gearman.worker.wake-each"
				}
			}
			return err
		}
	}
}

// noop expects a NOOP that wakes a sleeping worker. One NOOP is enough for several jobs, so a NOOP that is already
// expected stays expected, and becomes required if must is true.
func (m *gearman) noop(p *gPeer, must bool) *expectation {
	for _, d := range m.expected {
		if d.conn == p.conn && d.want == "NOOP" {
			if must && !d.must && !m.tainted {
				d.must, d.timed = true, m.timer
			}
			return d
		}
	}
	d := m.expect(p.conn, "gearman.worker.wake", "NOOP", typed("NOOP", func(*codec.Frame) error {
		p.sleeping = false
		return nil
	}))
	d.must = d.must && must
	return d
}

// Received implements Model. A NOOP that meets no expectation may still be right: see unexpectedNoop. After illegal
// input, it reports only changed workloads and wrong echo replies.
func (m *gearman) Received(conn int, f *codec.Frame) error {
	err := m.received(conn, f)
	if c, _ := err.(*Complaint); c != nil && f.Type.Name == "NOOP" && m.peers[conn] != nil {
		return m.unexpectedNoop(m.peers[conn], c)
	}
	return m.excused(err)
}

// unexpectedNoop handles a NOOP that meets no expectation. It returns the complaint unless the server may have woken
// the worker for another reason.
func (m *gearman) unexpectedNoop(p *gPeer, c *Complaint) error {
	c.Rule = "gearman.worker.wake-only-able"
	if m.quirks[WokenTwice] && p.twice && !p.sleeping {
		p.twice = false
		return nil
	}
	if !p.sleeping {
		c.Rule = "gearman.worker.awake-undisturbed"
	}
	may := p.sleeping && m.mayWake(p)
	p.sleeping = false
	if may || m.tainted || m.quirks[IdleNoops] {
		return nil
	}
	return c
}

// mayWake reports whether the server may wake the worker now, because the scheduled time or the time limit of a job is
// near.
func (m *gearman) mayWake(p *gPeer) bool {
	for name := range p.abilities {
		if fn := m.functions[name]; fn != nil && slices.ContainsFunc(fn.jobs, func(j *gJob) bool { return j.uncertain() && (j.timer > 0 || j.state == gLater) }) {
			return true
		}
	}
	return false
}

// Gone implements Model: the jobs of the worker go back to their queues. A close by the server is a complaint,
// because no Gearman request asks for it.
func (m *gearman) Gone(conn int) error {
	p := m.peers[conn]
	delete(m.peers, conn)
	err := m.gone(conn)
	if p != nil {
		m.disconnected(p)
	}
	return err
}

func (m *gearman) CheckMissing() error { return m.checkMissing() }

// Elapsed implements Model: a scheduled job is queued when its time comes, and a running job fails when it exceeds the
// worker's time limit. From Slack before the time until Slack after it, the state of the job is uncertain, and NOOP and
// WORK_FAIL are optional.
func (m *gearman) Elapsed(d time.Duration) {
	m.step++
	m.now += d
	m.timer = true
	defer func() { m.timer = false }()
	for _, fn := range m.functions {
		for _, j := range slices.Clone(fn.jobs) {
			if j.timer == 0 || m.now < j.timer-Slack {
				continue
			}
			sure := m.now >= j.latest+Slack
			if sure {
				j.soon = false
			}
			switch {
			case j.state == gLater && sure:
				j.timer, j.state, j.requeued = 0, gQueued, true
				m.wake(j, !m.quirks[EpochSilent])
			case j.state == gRunning && m.quirks[TimeoutRequeues]:
				j.vague = true
			case j.state == gRunning && sure:
				m.fail(j)
			default:
				if !j.uncertain() {
					m.wake(j, optional)
				}
				j.soon = true
				for _, c := range j.waits {
					m.mayFail(j, c)
				}
			}
		}
	}
}

// State implements Model: it counts the jobs by state and by priority, uncertain and background jobs, the most clients
// of one job, sleeping workers, and the most functions of one worker.
func (m *gearman) State(conn int) uint64 {
	h := uint64(0xcbf29ce484222325)
	of := m.peers[conn]
	var byState [4]int
	var prio [3]int
	vague, waits, bg := 0, 0, 0
	for _, fn := range m.functions {
		able := of == nil
		if of != nil {
			_, able = of.abilities[fn.name]
		}
		for _, j := range fn.jobs {
			if !able && !(j.state == gRunning && j.holder == conn) && !slices.Contains(j.waits, conn) {
				continue
			}
			byState[j.state]++
			if j.state == gQueued {
				prio[j.priority]++
			}
			if j.uncertain() {
				vague++
			}
			if j.background {
				bg++
			}
			waits = max(waits, len(j.waits))
		}
	}
	sleeping, able := 0, 0
	for _, p := range m.peers {
		if of != nil && of != p {
			continue
		}
		if p.sleeping {
			sleeping++
		}
		able = max(able, len(p.abilities))
	}
	for _, n := range []int{byState[0], byState[1], byState[2], prio[0], prio[1], prio[2], vague, waits, bg, sleeping,
		able} {
		h = mixHash(h, class(n))
	}
	return h
}

func gNumber(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
