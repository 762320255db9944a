package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
)

// Beanstalk is the adapter for models of the specification beanstalk-protocol.txt.
var Beanstalk = &Adapter{New: newBeanstalk}

// Quirks of Beanstalk servers.
const (
	TTRStays      Quirk = "ttr-stays"      // a job may stay reserved after its time-to-run has expired
	KickTruncates Quirk = "kick-truncates" // the server uses only 32 bits of the bound in a kick command
)

// beanstalk is the model of the specification beanstalk-protocol.txt. It does not predict which waiting client gets a
// job. Received checks the reply that arrives, and CheckMissing checks which waiting clients must already have received
// a reply.
type beanstalk struct {
	expectations
	peers  map[int]*bPeer
	jobs   map[string]*bJob // by ID, including deleted jobs
	live   []*bJob          // in the order in which they were put
	tubes  map[string]*bTube
	count  int
	buried int // number of burials so far, to order the buried jobs

	accepted, refused int // the largest body that the server has accepted, and the smallest that was too big; 0: none
}

type bPeer struct {
	conn    int
	used    string
	watched []string
	waiting bool
	until   time.Duration // time at which its reserve times out; never: no timeout; 0: at once
	// when the peer sent the reserve, one of its reserved jobs may have been in the last second of its time-to-run
	margin  bool
	backlog []codec.Frame
	began   int // number of puts before the unfinished message of the peer, plus one; 0: it has none
	put     bool
	worker  bool
	doubt   bool // the peer may count as producer and worker: the server may have rejected its command, for example
	unusual bool // its reserve has a timeout that the server may reject
	unclear bool // servers differ in where its next message begins, so its later messages are unknown
}

type bTube struct {
	name    string
	paused  time.Duration // time at which the pause ends; 0: not paused
	pauses  int
	deletes int
	total   int
	lost    bool // the server may have deleted the tube, with its counts, and created it again
	resumed bool // the server may have done so since the last pause-tube, so that the tube is not paused
}

type bState uint8

const (
	bReady bState = iota
	bDelayed
	bReserved
	bBuried
	bGone
)

func (s bState) String() string {
	return [...]string{"ready", "delayed", "reserved", "buried", "deleted"}[s]
}

type bJob struct {
	id       []byte // nil until the reply INSERTED arrives
	tube     *bTube
	body     []byte
	pri, ttr uint64
	state    bState
	until    time.Duration // time at which the delay or the reservation ends
	holder   int
	// Positions of the job among all puts, counted from 1, by the beginning and by the end of its put. A server may order
	// jobs by either.
	began, order int
	burial       int
	// the job became ready after the last call of CheckMissing that found nothing missing
	fresh                                       bool
	vague                                       bool // the state of the job is unknown
	wasUncertain                                bool // the state of the job was unknown at some time
	reserves, timeouts, releases, buries, kicks int
}

const never time.Duration = math.MaxInt64 / 2

func newBeanstalk(p *codec.Protocol, quirks map[Quirk]bool) Model {
	m := &beanstalk{expectations: newExpectations(p, quirks), peers: map[int]*bPeer{}, jobs: map[string]*bJob{},
		tubes: map[string]*bTube{}}
	m.tube("default")
	return m
}

// tube returns the tube with a name. It creates the tube if the model does not know it yet.
func (m *beanstalk) tube(name string) *bTube {
	t := m.tubes[name]
	if t == nil {
		t = &bTube{name: name}
		m.tubes[name] = t
	}
	return t
}

// Opened implements Model: a new connection uses and watches the tube default.
func (m *beanstalk) Opened(conn int) {
	m.opened(conn)
	m.peers[conn] = &bPeer{conn: conn, used: "default", watched: []string{"default"}}
}

// Begins implements Model.
func (m *beanstalk) Begins(conn int) {
	if p := m.peers[conn]; p != nil {
		p.began = m.count + 1
	}
}

// Illegal implements Model. A command that blocks may be performed without a reply, and the server may read a command
// that follows a reserve only later.
func (m *beanstalk) Illegal(conn int, f *codec.Frame, e *codec.Error) bool {
	m.step++
	p := m.peers[conn]
	if p == nil || m.unchecked[conn] || p.waiting || e.Fatal {
		m.Garbled(conn)
		return false
	}
	r := m.p.Framing.Lines.Reject(f, e)
	if r.Performs && (f.Type == nil || f.Type.Blocks != codec.Never) {
		m.Garbled(conn)
		return false
	}
	p.doubt = true
	m.rejected(conn, f, e, r)
	p.unclear = r.Unclear
	return !r.Unclear
}

// Blocked implements Model: the client waits in a reserve, or the server must close the connection.
func (m *beanstalk) Blocked(conn int) bool {
	p := m.peers[conn]
	_, leaving := m.leaving[conn]
	return leaving || p != nil && p.waiting
}

// Closed implements Model: the jobs that the client has reserved become ready again.
func (m *beanstalk) Closed(conn int) {
	m.step++
	p := m.peers[conn]
	m.opened(conn)
	m.unchecked[conn] = true
	delete(m.peers, conn)
	if p != nil {
		m.disconnected(p)
	}
}

// disconnected makes the reserved jobs of a disconnected client ready, and removes the tubes that no other client or
// job uses. If the time of a scheduled event is near, the server may have acted before or after the disconnect, so the
// state becomes unknown.
func (m *beanstalk) disconnected(p *bPeer) {
	if m.uncertain() {
		m.taint()
	}
	for _, j := range m.live {
		if j.state == bReserved && j.holder == p.conn {
			m.ready(j)
		}
	}
	m.forgetTubes()
}

// Gone implements Model: it releases the reserved jobs of the client. A close by the server is a complaint, except
// after quit.
func (m *beanstalk) Gone(conn int) error {
	p := m.peers[conn]
	delete(m.peers, conn)
	err := m.gone(conn)
	if p != nil {
		m.disconnected(p)
	}
	return err
}

// ready puts a job into its ready queue.
func (m *beanstalk) ready(j *bJob) { j.state, j.fresh, j.until = bReady, true, never }

// may reports whether an event that is scheduled for a time may have happened. must reports whether it must have
// happened.
func (m *beanstalk) may(at time.Duration) bool  { return m.now >= at-Slack }
func (m *beanstalk) must(at time.Duration) bool { return m.now >= at+Slack }

// uncertain reports whether it is unknown for some scheduled event whether it has happened, because its time is less
// than Slack away.
func (m *beanstalk) uncertain() bool {
	unsure := func(at time.Duration) bool { return m.may(at) && !m.must(at) }
	for _, j := range m.live {
		if (j.state == bDelayed || j.state == bReserved) &&
			(unsure(j.until) || j.state == bReserved && j.ttr > 1 && unsure(j.until-time.Second)) {
			return true
		}
	}
	for _, t := range m.tubes {
		if unsure(t.paused) && t.paused > 0 {
			return true
		}
	}
	for _, p := range m.peers {
		if p.waiting && p.until > 0 && unsure(p.until) {
			return true
		}
		if _, maybe := m.margin(p); maybe && p.waiting && m.quirks[TTRStays] {
			return true
		}
	}
	return false
}

// Elapsed implements Model: it makes jobs ready whose delay or time-to-run ended at least Slack ago, and counts the
// expired times-to-run. With the quirk ttr-stays, a job may stay reserved, so the state becomes unknown.
func (m *beanstalk) Elapsed(d time.Duration) {
	m.step++
	m.now += d
	m.timer = true
	defer func() { m.timer = false }()
	for _, j := range m.live {
		if j.state != bDelayed && j.state != bReserved || !m.must(j.until) {
			continue
		}
		if j.state == bReserved {
			j.timeouts++
			if m.quirks[TTRStays] {
				m.taint()
			}
		}
		m.ready(j)
	}
}

// forgetTubes removes the tubes to which no client or job refers, except the default tube. It marks tubes that the
// server may have deleted as lost.
func (m *beanstalk) forgetTubes() {
	for _, t := range m.tubes {
		if sure, maybe := m.exists(t.name); !maybe {
			if t.name != "default" {
				delete(m.tubes, t.name)
			}
		} else if !sure {
			t.lost, t.resumed = true, true
		}
	}
}

// exists reports whether a tube certainly exists, and whether it may exist.
func (m *beanstalk) exists(name string) (sure, maybe bool) {
	sure, maybe = m.needs(name)
	return sure, maybe || m.listsOthers()
}

// needs reports whether a connection or job of this model certainly refers to the tube, and whether one may refer to
// it.
func (m *beanstalk) needs(name string) (sure, maybe bool) {
	if name == "default" {
		return true, true
	}
	for _, p := range m.peers {
		if p.used == name || slices.Contains(p.watched, name) {
			return true, true
		}
	}
	for _, j := range m.live {
		if j.tube.name == name {
			maybe = true // according to the specification, a tube that contains only reserved jobs is empty and may be deleted
			sure = sure || j.state != bReserved
		}
	}
	return sure, maybe
}

// CheckMissing implements Model. In addition to the expected messages, it requires a reply to each waiting reserve for
// which a job is ready, DEADLINE_SOON applies, or the timeout has expired.
func (m *beanstalk) CheckMissing() error {
	if err := m.checkMissing(); err != nil {
		return err
	}
	if m.tainted {
		return nil
	}
	for _, p := range m.peers {
		if !p.waiting || m.unchecked[p.conn] {
			continue
		}
		missing := func(rule codec.RuleID, what string) error {
			return &Complaint{Conn: p.conn, Rule: rule, Law: missing, Text: what}
		}
		sure, _ := m.margin(p)
		if j := m.best(p); j != nil {
			return missing("beanstalk.reserve.reserved",
				fmt.Sprintf("expected RESERVED for job %s, got no message: the job is ready, and the connection waits in reserve",
					j.id))
		} else if sure && (p.margin || !m.quirks[TTRStays]) {
			return missing("beanstalk.deadline-soon.while-waiting",
				"expected DEADLINE_SOON, got no message: a job that the connection has reserved is in the last second of its time-to-run")
		} else if p.until != never && (m.must(p.until) || p.until == 0) {
			return missing("beanstalk.reserve.timeout-expires",
				"expected TIMED_OUT, got no message: the timeout of the reserve has expired")
		}
	}
	for _, j := range m.live {
		j.fresh = false
	}
	return nil
}

// Sent implements Model. The server executes a command only after it has replied to the reserve before it, so commands
// that follow a waiting reserve are stored in the backlog of the connection.
func (m *beanstalk) Sent(conn int, f *codec.Frame) {
	m.step++
	p := m.peers[conn]
	if p == nil || p.unclear || m.unchecked[conn] {
		m.tainted = m.tainted || p != nil
		return
	}
	if m.uncertain() {
		m.taint()
	}
	if p.waiting {
		p.backlog = append(p.backlog, f.Clone())
		return
	}
	m.handle(p, f.Clone())
}

// handle updates the model, and removes tubes that are not used any more.
func (m *beanstalk) handle(p *bPeer, f codec.Frame) {
	if h := bHandlers[f.Type.Name]; h != nil {
		h(m, p, f)
	}
	p.began = 0
	m.forgetTubes()
}

// State implements Model: it counts the ready, delayed, reserved and buried jobs, the clients that wait in a reserve,
// the paused tubes, and the tubes in use other than the default tube.
func (m *beanstalk) State(conn int) uint64 {
	h := uint64(0xcbf29ce484222325)
	of := m.peers[conn]
	concerns := func(tube string) bool {
		return of == nil || of.used == tube || slices.Contains(of.watched, tube)
	}
	var byState [5]int
	for _, j := range m.live {
		if concerns(j.tube.name) || j.state == bReserved && j.holder == conn {
			byState[j.state]++
		}
	}
	waiting, paused, tubes := 0, 0, 0
	for _, p := range m.peers {
		if p.waiting && (of == nil || of == p) {
			waiting++
		}
	}
	for _, t := range m.tubes {
		if !concerns(t.name) {
			continue
		}
		if t.paused > 0 && !m.must(t.paused) {
			paused++
		}
		if _, maybe := m.needs(t.name); maybe && t.name != "default" {
			tubes++
		}
	}
	for _, n := range []int{byState[0], byState[1], byState[2], byState[3], waiting, paused, tubes} {
		h = mixHash(h, class(n))
	}
	return h
}

// number parses an unsigned decimal number. It returns the maximum if the number is too large, and 0 if it is not a
// number.
func number(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b), 10, 64)
	return n
}
