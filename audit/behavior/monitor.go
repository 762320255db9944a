package behavior

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// Finding is a rule that a program does not follow.
type Finding struct {
	Rule  *codec.Rule
	Count int // how often
	First Observation
}

// Observation is what a program did against a rule.
type Observation struct {
	Conn   int           // number of the connection; 0: none
	Role   string        // role of the client or worker of the connection, as far as its messages show it
	At     time.Duration // since the beginning
	Detail string
}

// Monitor checks the connections to one server. All times are durations since the beginning, and do not decrease. Its
// methods must not be called concurrently.
type Monitor struct {
	protocol *codec.Protocol
	conns    map[int]*conn
	findings []*Finding
	useless  []*attempts              // of useless connections that have ended, the oldest first
	limits   map[string]time.Duration // time limits of jobs, by job
	// the only worker has lost its connection, and no worker has announced its functions since
	lost    *lost
	seed    maphash.Seed
	ended   int  // connections that have ended
	gone    bool // the server has ended the last connection, or could not be reached
	use     use
	quiet   time.Duration // the time of the last event
	size    int           // bytes of the last message of the server
	stopped bool

	replies
	unnamed     bool // a worker has asked for jobs of the default queue
	wakes, slow int  // reactions to Wake, and the slow ones among them
	identities

	tasks bool // a harness gives tasks to the program
	task  int  // number of the present task
}

// maxKept limits the jobs whose time limits are kept, and the useless connections.
const maxKept = 1 << 16

// maxHashed limits the bytes of a command that are compared with those of the next command.
const maxHashed = 4 << 10

// conn is one connection.
type conn struct {
	id       int
	opened   time.Duration
	role     codec.Role
	requests codec.Conversation[request]
	jobs     []*job // that the worker of the connection has
	awaits   int    // jobs whose ends the server reports to the connection

	announced, asks bool
	queueing
	useful bool // a reply was of use
	works  bool // the peer has sent a request whose reply is of use
	leaves bool
	ended  [2]bool
	asleep bool
	woken  time.Duration // when the server woke the worker, which has not reacted; -1: no such wake
	polls  rate
	refused
	early    int             // refusals to wait in a row
	released map[string]bool // jobs that the worker has given back
	attempts *attempts
}

// queueing is what a connection has said about itself and the default queue.
type queueing struct {
	worker string                   // the ID of the worker
	uses   bool                     // it has named the queue to which it submits, or has submitted
	left   bool                     // it does not get jobs of the default queue
	queues map[string]time.Duration // the time limits of jobs, by queue
}

// refused are the requests of a connection that the server has refused.
type refused struct {
	refusals rate
	last     uint64   // hash of the last such request
	unready  []uint64 // hashes of those that set the queues of the connection, since it last used them
}

// attempts are connections one after the other, each after a useless one.
type attempts struct {
	rate
	last time.Duration // end of the last connection
}

// lost is a worker that has lost its connection.
type lost struct {
	conn int
	at   time.Duration
}

// request is a request whose reply has not come.
type request struct {
	does    codec.Effect
	sum     uint64 // hash of the message
	at      time.Duration
	waits   time.Duration // how long the server may wait before it replies; negative: without limit
	limited time.Duration // time limit of the job that the request submits
	job     string        // the job that the request names, if its reply says whether the server knows the job
	late    overdue       // the worker had this job
	creates bool          // the request submits a job that exists until a worker performs it
	unique  string        // queue and unique ID of the job that the request submits; "": none
	data    uint64        // hash of the data of that job
}

// job is a job that a worker has.
type job struct {
	key           string
	at            time.Duration // of the assignment, or of the last message that restarted the time limit
	limit         time.Duration // 0: unknown
	touched, late bool
	task          int
}

// rate counts events in a second, and in the seconds before it that had too many.
type rate struct {
	since    time.Duration
	n        int
	others   int // useful events, such as a job that the worker gets
	parts    uint
	steadily int // seconds in a row in which the second limit was exceeded
	before   int // events in these seconds
}

// limits are the numbers of events in a second that a program may not exceed: once, and in several seconds in a row.
type limits struct{ once, steadily int }

// add counts an event. It returns how often and in how many seconds the events before it exceeded the limits, or 0.
func (r *rate) add(at time.Duration, most limits) (n, seconds int) {
	if at-r.since >= second || r.n == 0 {
		next := rate{since: at}
		if even := bits.OnesCount(r.parts) >= minParts && at-r.since < 2*second; even && r.n > most.once {
			n, seconds = r.n, 1
		} else if even && r.n > most.steadily {
			next.steadily, next.before = r.steadily+1, r.before+r.n
		}
		if *r = next; r.steadily == steadily {
			n, seconds = r.before, steadily
			r.steadily, r.before = 0, 0
		}
	}
	r.n++
	r.parts |= 1 << ((at - r.since) * parts / second)
	return n, seconds
}

// useful counts an event of another kind. A program that has more than one of them in a second is busy: the count
// begins again.
func (r *rate) useful() {
	if r.others++; r.others > 1 {
		*r = rate{}
	}
}

// during returns a text for a number of seconds.
func during(seconds int) string {
	if seconds == 1 {
		return "a second"
	}
	return fmt.Sprintf("%d seconds", seconds)
}

// New returns a monitor of a server of the protocol.
func New(protocol *codec.Protocol) *Monitor {
	return &Monitor{
		protocol:   protocol,
		seed:       maphash.MakeSeed(),
		conns:      map[int]*conn{},
		limits:     map[string]time.Duration{},
		replies:    replies{unknown: map[string]int{}, merged: map[string]submitted{}},
		identities: identities{workers: map[string]*conn{}},
	}
}

// Task states that a harness gives the program a task, which begins now. The program may keep one job of each task:
// the task may ask for it. distinct is true if the task does not submit equal jobs.
func (m *Monitor) Task(distinct bool) {
	m.tasks = true
	m.task++
	if m.lostSubmits = nil; distinct {
		m.lostSubmits = map[uint64]bool{}
	}
}

// Stop states that the audit ends: connections that end afterwards do not show what the program does.
func (m *Monitor) Stop() { m.stopped = true }

// report records that a program does not follow a rule.
func (m *Monitor) report(ruleName string, c *conn, at time.Duration, format string, args ...any) {
	o := Observation{At: at, Detail: fmt.Sprintf(format, args...)}
	if c != nil {
		name, others, _ := strings.Cut(m.protocol.RoleNames(c.role), "/")
		if o.Conn, o.Role = c.id, name; name == "" || others != "" {
			o.Role = m.protocol.Roles[0]
		}
	}
	r := rule(ruleName)
	k := slices.IndexFunc(m.findings, func(f *Finding) bool { return f.Rule == r })
	if k < 0 {
		k = len(m.findings)
		m.findings = append(m.findings, &Finding{Rule: r, First: o})
	}
	m.findings[k].Count++
}

// Open records a new connection.
func (m *Monitor) Open(id int, at time.Duration) {
	c := &conn{id: id, opened: at, woken: -1, attempts: m.attempt(nil, at)}
	m.conns[id], m.gone, m.quiet = c, false, at
}

// Unreachable records a connection that could not be forwarded, because the server is gone.
func (m *Monitor) Unreachable(at time.Duration) {
	if m.stopped {
		return
	}
	m.gone, m.quiet = true, at
	m.failed(m.attempt(nil, at), at)
}

// attempt continues the attempts of a useless connection that has ended within the last second, or begins new ones.
func (m *Monitor) attempt(c *conn, at time.Duration) *attempts {
	for len(m.useless) > 0 && at-m.useless[0].last > second {
		m.useless = m.useless[1:]
	}
	if len(m.useless) == 0 {
		return new(attempts)
	}
	a := m.useless[0]
	m.useless = m.useless[1:]
	if n, seconds := a.add(at, reconnects); n > 0 {
		m.report("reconnects", c, at, "the program connected %d times in %s, after useless connections", n,
			during(seconds))
	}
	return a
}

// failed records the end of a useless connection.
func (m *Monitor) failed(a *attempts, at time.Duration) {
	if a.last = at; len(m.useless) < maxKept {
		m.useless = append(m.useless, a)
	}
}

// Gap states that messages of a connection are unknown from now on.
func (m *Monitor) Gap(id int) {
	if c := m.conns[id]; c != nil {
		c.requests.Forget()
		c.jobs, c.woken, c.useful = nil, -1, true
	}
}

// Message records a message. An illegal message is a request or a reply, but what it does to jobs is unknown.
func (m *Monitor) Message(id int, f *codec.Frame, illegal bool, at time.Duration) {
	c := m.conns[id]
	m.quiet = at
	switch {
	case c == nil:
	case f.From == codec.Peer && (illegal || f.Type == nil):
		c.jobs, c.works = nil, true
		c.requests.Add(f.Type)
	case f.From == codec.Peer:
		if roles := f.Type.Roles(codec.Peer); c.role == 0 || roles&^c.role == 0 {
			c.role = roles
		}
		m.request(c, f, at)
	case illegal || f.Type == nil:
		c.useful = true
		c.requests.Reply(f.Type)
	default:
		m.reply(c, f, at)
	}
	if f.From == codec.Server {
		m.size = len(f.Raw)
	}
}

// setup reports whether a request only prepares later ones.
func setup(does codec.Effect) bool {
	switch does {
	case codec.NoEffect, codec.Ask, codec.Sleep, codec.Register, codec.Unregister, codec.Use, codec.Configure, codec.Leave:
		return true
	}
	return false
}

// request records a message of a client or worker.
func (m *Monitor) request(c *conn, f *codec.Frame, at time.Duration) {
	e := m.protocol.Event(f)
	does := e.Does.Does
	var asked *request
	if r := c.requests.Add(f.Type); r != nil {
		asked = &r.Value
		r.Value = request{does: does, sum: m.hash(f.Raw), at: at}
		if f.Type.Blocks != codec.Never && f.Blocks() {
			if r.Value.waits = -1; f.Type.Has(codec.Timeout) {
				r.Value.waits = f.Duration(codec.Timeout)
			}
		}
		if f.Type.Has(codec.TimeLimit) {
			r.Value.limited = max(f.Duration(codec.TimeLimit), time.Second)
		}
	}
	m.asksFor(c, asked, f, &e, at)
	m.submitsAgain(c, asked, f, &e, at)
	m.identify(c, f, &e, at)
	if does == codec.Submit && f.Attached() {
		c.awaits++
	}
	c.works = c.works || !setup(does)
	switch does {
	case codec.Ask:
		c.asks, c.asleep = true, false
		m.unnamed = m.unnamed || !c.announced && m.lost == nil
		m.reacts(c, at)
		m.announces(c, at)
	case codec.Sleep:
		c.asleep = true
	case codec.Register:
		c.announced, m.lost = true, nil
		if f.Type.Has(codec.TimeLimit) {
			if c.queues == nil {
				c.queues = map[string]time.Duration{}
			}
			c.queues[string(e.Queue)] = f.Duration(codec.TimeLimit)
		}
	case codec.Leave:
		c.leaves = true
		m.left(c, at)
	default:
		m.about(c, asked, &e, at)
	}
}

// hash returns a hash of the beginning of a message and its length.
func (m *Monitor) hash(raw []byte) uint64 {
	return maphash.Bytes(m.seed, raw[:min(len(raw), maxHashed)]) + uint64(len(raw))
}

// reply records a message of the server.
func (m *Monitor) reply(c *conn, f *codec.Frame, at time.Duration) {
	e := m.protocol.Event(f)
	r, answers := c.requests.Reply(f.Type)
	asked := answers && r.Value.does == codec.Ask
	if answers {
		m.learns(c, &r.Value, f, &e, at)
	}
	switch does := e.Does.Does; {
	case does == codec.Assign:
		m.loses(c, m.key(&e), at)
		c.polls.useful()
		c.useful, c.early = true, 0
		m.exists(&e)
		m.assign(c, &e, at)
	case does == codec.Wake && !asked:
		if c.polls = (rate{}); c.asleep && len(c.jobs) == 0 {
			c.asleep, c.woken = false, at
		}
	case does == codec.NoJob || does == codec.Wake:
		m.noJob(c, &r.Value, at)
	case does == codec.Refuse:
		m.refuse(c, &r.Value, at)
	case answers:
		if c.useful = c.useful || !setup(r.Value.does); c.last == r.Value.sum {
			c.refusals = rate{}
		}
		if does == codec.Accept && r.Value.limited > 0 && len(m.limits) < maxKept {
			m.limits[m.key(&e)] = r.Value.limited
		}
	default: // about an earlier request, such as the end of a job
		if c.useful = true; does == codec.Complete || does == codec.Fail || does == codec.Exception {
			c.awaits = max(0, c.awaits-1)
		}
	}
}

// noJob records that the server has no job for the worker.
func (m *Monitor) noJob(c *conn, r *request, at time.Duration) {
	if early := r.waits < 0 || at-r.at < r.waits/2; r.waits != 0 && early && len(c.jobs) > 0 {
		if c.early++; c.early == maxEarly+1 {
			m.report("deadline", c, at, "the server refused %d times in a row to wait, because the time limit of a job ends, "+
				"and the worker asked again, without a message about its jobs", c.early)
		}
		return
	}
	m.loses(c, "", at)
	if n, seconds := c.polls.add(at, polls); n > 0 {
		m.report("polling", c, at, "the worker asked for a job %d times in %s, and got none", n, during(seconds))
	}
}

// refuse records that the server has refused a request.
func (m *Monitor) refuse(c *conn, r *request, at time.Duration) {
	if r.sum != c.last {
		c.last, c.refusals = r.sum, rate{}
	}
	most := refusals
	if r.does == codec.Query { // a program may wait until what it asks for exists
		most.steadily = most.once
	}
	if n, seconds := c.refusals.add(at, most); n > 0 && r.sum != 0 {
		m.report("refused", c, at, "the server refused the same command (%s) %d times in %s", r.does, n, during(seconds))
	}
}

// reacts records that a worker asks for a job, perhaps because the server has woken it.
func (m *Monitor) reacts(c *conn, at time.Duration) {
	if c.woken < 0 {
		return
	}
	took := at - c.woken
	c.woken = -1
	if m.wakes++; took <= slowWake {
		return
	}
	if m.slow++; m.slow >= minSlow && 2*m.slow > m.wakes {
		m.report("wake", c, at, "the worker asked for a job %v after the server had woken it; it was slow %d of %d times",
			took.Round(time.Millisecond), m.slow, m.wakes)
	}
}

// ignores reports a worker that was woken and has not reacted within a time.
func (m *Monitor) ignores(c *conn, at, within time.Duration) {
	if c.woken >= 0 && at-c.woken >= within && !m.tasks {
		m.report("wake", c, at, "the server woke the worker, which did not ask for a job in %v",
			(at - c.woken).Round(time.Millisecond))
		c.woken = -1
	}
}

// announces reports a worker that has lost its connection, and asks for jobs on another one without its functions.
func (m *Monitor) announces(c *conn, at time.Duration) {
	if l := m.lost; l != nil && !m.tasks && c.opened >= l.at && at-c.opened >= slowAnnounce && !c.announced {
		m.report("announces", c, at, "the worker of connection %d lost its connection; this connection asks for jobs, but "+
			"has not announced a function for %v", l.conn, (at - c.opened).Round(time.Millisecond))
		m.lost = nil
	}
}

// End records that a side has ended its direction. itself is false if the audit ended the connection.
func (m *Monitor) End(id int, from codec.Side, itself bool, at time.Duration) {
	c := m.conns[id]
	if c == nil || m.stopped {
		return
	}
	m.quiet = at
	first := !c.ended[codec.Peer] && !c.ended[codec.Server]
	if c.ended[from] = true; !first {
		return
	}
	within := ignoreWake
	if from == codec.Peer && itself {
		within = leaveWake
	}
	m.ignores(c, at, within)
	if from == codec.Peer && itself && !c.leaves {
		m.left(c, at)
	}
	if from == codec.Server && !c.leaves && c.announced && c.asks && !m.unnamed && m.onlyWorker(c) {
		m.lost = &lost{conn: c.id, at: at}
	}
	for i := range c.requests.Len() {
		if r := c.requests.At(i).Value; r.creates && m.lostSubmits != nil {
			m.lostSubmits[r.sum] = true
		}
	}
	own := from == codec.Peer || c.leaves
	m.gone = !own && len(c.jobs) == 0
	m.ended++
	useful := c.useful || own && c.works
	if useful {
		c.attempts.useful()
	}
	if !useful || c.attempts.n > 0 {
		m.failed(c.attempts, at)
	}
	delete(m.conns, id)
	if m.workers[c.worker] == c {
		delete(m.workers, c.worker)
	}
}

// onlyWorker reports whether no other open connection has announced a function.
func (m *Monitor) onlyWorker(c *conn) bool {
	for _, o := range m.conns {
		if o != c && o.announced {
			return false
		}
	}
	return true
}

// Findings returns the findings so far.
func (m *Monitor) Findings(at time.Duration) []Finding {
	var all []Finding
	for _, id := range slices.Sorted(maps.Keys(m.conns)) {
		c := m.conns[id]
		if !m.stopped {
			m.ignores(c, at, ignoreWake)
		}
		m.expired(c, at)
	}
	for _, f := range m.findings {
		all = append(all, *f)
	}
	return all
}
