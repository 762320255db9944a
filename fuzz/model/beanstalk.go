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

func init() { makers["beanstalk"] = newBeanstalk }

// Quirks of Beanstalk servers.
const (
	TTRStays      Quirk = "ttr-stays"      // a job whose time to run is over may stay reserved
	KickTruncates Quirk = "kick-truncates" // of the bound of a kick only 32 bits are read
)

// beanstalk is the model of beanstalk-protocol.txt. Who waits is not told beforehand
// what he gets: Received judges what came, and Settled who should have been served.
type beanstalk struct {
	board
	peers  map[int]*bPeer
	jobs   map[string]*bJob // by ID, also those that are gone
	live   []*bJob          // in the order of their puts
	tubes  map[string]*bTube
	count  int
	buried int            // how often a job was buried, for the order
	sent   map[string]int // commands, by name
	total  int            // connections
	before int            // connections that others had; less than 0 is unknown
	late   int            // jobs that timed out
}

type bPeer struct {
	conn    int
	used    string
	watched []string
	waiting bool
	until   time.Duration // when it stops; never is for ever
	margin  bool          // it asked in the last second of a job that it held
	backlog []codec.Frame
	put     bool
	worker  bool
}

type bTube struct {
	name    string
	paused  time.Duration // until when
	pauses  int
	deletes int
	total   int
	lost    bool // it may have been gone meanwhile, and its counts with it
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
	id                                          []byte // nil until INSERTED
	tube                                        *bTube
	body                                        []byte
	pri, ttr                                    uint64
	state                                       bState
	until                                       time.Duration // of a delay or a reservation
	holder                                      int
	order                                       int
	burial                                      int
	fresh                                       bool // has become ready since all was settled
	vague                                       bool // which of its states it has is not certain
	blurred                                     bool // it was so once
	reserves, timeouts, releases, buries, kicks int
}

const never time.Duration = math.MaxInt64 / 2

func newBeanstalk(p *codec.Protocol, quirks map[Quirk]bool) Model {
	m := &beanstalk{board: newBoard(p, quirks), peers: map[int]*bPeer{}, jobs: map[string]*bJob{}, tubes: map[string]*bTube{}, sent: map[string]int{}, before: -1}
	m.tube("default")
	return m
}

func (m *beanstalk) tube(name string) *bTube {
	t := m.tubes[name]
	if t == nil {
		t = &bTube{name: name}
		m.tubes[name] = t
	}
	return t
}

func (m *beanstalk) Opened(conn int) {
	m.opened(conn)
	m.peers[conn] = &bPeer{conn: conn, used: "default", watched: []string{"default"}}
	m.total++
}

func (m *beanstalk) Garbled(conn int) {
	m.deaf[conn] = true
	m.taint()
}

func (m *beanstalk) taint() {
	m.tainted = true
	for _, d := range m.dues {
		d.must = false
	}
}

func (m *beanstalk) Tainted() bool { return m.tainted }

func (m *beanstalk) Blocked(conn int) bool {
	p := m.peers[conn]
	_, leaving := m.leaving[conn]
	return leaving || p != nil && p.waiting
}

func (m *beanstalk) Closed(conn int) {
	m.step++
	p := m.peers[conn]
	m.opened(conn)
	m.deaf[conn] = true
	delete(m.peers, conn)
	if p != nil {
		m.left(p)
	}
}

func (m *beanstalk) left(p *bPeer) {
	if m.hazy() {
		m.taint()
	}
	for _, j := range m.live {
		if j.state == bReserved && j.holder == p.conn {
			m.ready(j)
		}
	}
	m.sweep()
}

func (m *beanstalk) Gone(conn int) error {
	p := m.peers[conn]
	delete(m.peers, conn)
	err := m.gone(conn)
	if p != nil {
		m.left(p)
	}
	return err
}

func (m *beanstalk) ready(j *bJob) { j.state, j.fresh, j.until = bReady, true, never }

// may and must tell whether what is due at a time may have happened, or must have.
func (m *beanstalk) may(at time.Duration) bool  { return m.now >= at-Slack }
func (m *beanstalk) must(at time.Duration) bool { return m.now >= at+Slack }

// hazy reports whether something may have happened by the clock, or not yet.
func (m *beanstalk) hazy() bool {
	unsure := func(at time.Duration) bool { return m.may(at) && !m.must(at) }
	for _, j := range m.live {
		if (j.state == bDelayed || j.state == bReserved) && (unsure(j.until) || j.state == bReserved && j.ttr > 1 && unsure(j.until-time.Second)) {
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

func (m *beanstalk) Elapsed(d time.Duration) {
	m.step++
	m.now += d
	for _, j := range m.live {
		if j.state != bDelayed && j.state != bReserved || !m.must(j.until) {
			continue
		}
		if j.state == bReserved {
			j.timeouts++
			m.late++
			if m.quirks[TTRStays] {
				m.taint()
			}
		}
		m.ready(j)
	}
}

// sweep forgets tubes that nothing refers to, but for what may be asked about them.
func (m *beanstalk) sweep() {
	for _, t := range m.tubes {
		if sure, maybe := m.exists(t.name); !maybe {
			if t.name != "default" {
				delete(m.tubes, t.name)
			}
		} else if !sure {
			t.lost = true
		}
	}
}

// exists reports whether a tube is there surely, and whether it may be.
func (m *beanstalk) exists(name string) (sure, maybe bool) {
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
			maybe = true // one that holds only reserved jobs is empty, by the letter
			sure = sure || j.state != bReserved
		}
	}
	return sure, maybe || m.quirks[Shared]
}

// before reports whether a job is reserved before another.
func (j *bJob) before(o *bJob) bool { return j.pri < o.pri || j.pri == o.pri && j.order < o.order }

// best is the job that a reserve of the connection gets if it need not wait; nil is none.
func (m *beanstalk) best(p *bPeer) *bJob {
	var best *bJob
	for _, j := range m.live {
		if j.state == bReady && !j.vague && slices.Contains(p.watched, j.tube.name) && (j.tube.paused == 0 || m.must(j.tube.paused)) && (best == nil || j.before(best)) {
			best = j
		}
	}
	return best
}

// margin reports whether a job that the connection holds is, or may be, in its last second.
func (m *beanstalk) margin(p *bPeer) (sure, maybe bool) {
	for _, j := range m.live {
		if j.state == bReserved && j.holder == p.conn {
			maybe = maybe || m.may(j.until-time.Second)
			sure = sure || m.must(j.until-time.Second) || j.ttr <= 1
		}
	}
	return sure, maybe
}

func (m *beanstalk) Received(conn int, f *codec.Frame) error {
	p := m.peers[conn]
	var err error
	if p != nil && p.waiting && !m.deaf[conn] {
		err = m.answered(p, f)
	} else {
		err = m.received(conn, f)
	}
	if c, _ := err.(*Complaint); c != nil && m.tainted && c.Rule != "beanstalk.body.verbatim" {
		return nil
	}
	return err
}

// answered judges what ends a wait.
func (m *beanstalk) answered(p *bPeer, f *codec.Frame) error {
	fail := func(rule codec.RuleID, format string, args ...any) error {
		return &Complaint{Conn: p.conn, Rule: rule, Law: "wrong answer to a reserve", Text: show(f) + ": " + fmt.Sprintf(format, args...)}
	}
	defer m.resume(p)
	p.waiting = false
	best := m.best(p)
	switch f.Type.Name {
	case "TIMED_OUT":
		if p.until == never || !m.may(p.until) {
			return fail("beanstalk.reserve.timeout-expires", "its time is not over")
		}
		if best != nil && !best.fresh {
			return fail("beanstalk.reserve.reserved", "job %s is ready", best.id)
		}
		return nil
	case "DEADLINE_SOON":
		if _, maybe := m.margin(p); !maybe {
			return fail("beanstalk.deadline-soon.not-earlier", "no job of this connection is in its last second")
		}
		return nil
	case "RESERVED":
		return m.reserved(p, f, best)
	}
	return fail("beanstalk.reserve.reserved", "no answer to a reserve")
}

// job finds the job of a reply by its ID; one whose INSERTED is still under way is known by its body.
func (m *beanstalk) job(f *codec.Frame) *bJob {
	if j := m.jobs[string(f.Arg(0))]; j != nil {
		return j
	}
	for _, j := range m.live {
		if j.id == nil && bytes.Equal(j.body, f.Arg(2)) {
			j.id = bytes.Clone(f.Arg(0))
			m.jobs[string(j.id)] = j
			return j
		}
	}
	return nil
}

func (m *beanstalk) reserved(p *bPeer, f *codec.Frame, best *bJob) error {
	j := m.job(f)
	fail := func(rule codec.RuleID, format string, args ...any) error {
		return &Complaint{Conn: p.conn, Rule: rule, Law: "wrong job reserved", Text: show(f) + ": " + fmt.Sprintf(format, args...)}
	}
	switch {
	case j == nil && m.quirks[Shared]:
		return nil
	case j == nil:
		return fail("beanstalk.job.id-stable", "there is no such job")
	case !bytes.Equal(f.Arg(2), j.body):
		return fail("beanstalk.body.verbatim", "the body was %.60q", j.body)
	case j.vague:
	case j.state == bReserved && !m.may(j.until):
		return fail("beanstalk.reserve.once", "it is reserved already")
	case j.state == bDelayed && !m.may(j.until):
		return fail("beanstalk.delay.waits", "it is delayed for %v still", j.until-m.now)
	case j.state == bBuried:
		return fail("beanstalk.bury.untouched", "it is buried")
	case j.state == bGone:
		return fail("beanstalk.delete.gone", "it has been deleted")
	}
	switch {
	case !slices.Contains(p.watched, j.tube.name):
		return fail("beanstalk.reserve.any-watched", "its tube %s is not watched", j.tube.name)
	case !m.may(j.tube.paused):
		return fail("beanstalk.pause.no-new-reservation", "its tube is paused for %v still", j.tube.paused-m.now)
	case best != nil && best != j && best.pri < j.pri && !best.fresh && !j.vague:
		return fail("beanstalk.put.priority-order", "job %s is more urgent", best.id)
	case best != nil && best != j && best.before(j) && !best.fresh && !j.vague:
		return fail("beanstalk.reserve.fifo", "job %s came before it", best.id)
	}
	m.hold(p, j)
	return nil
}

// hold makes a job reserved.
func (m *beanstalk) hold(p *bPeer, j *bJob) {
	if j.state == bReserved {
		j.timeouts++
		m.late++
	}
	j.state, j.holder, j.until, j.fresh, j.vague = bReserved, p.conn, m.now+time.Duration(j.ttr)*time.Second, false, false
	j.reserves++
}

// resume does what was sent behind a reserve.
func (m *beanstalk) resume(p *bPeer) {
	for len(p.backlog) > 0 && !p.waiting {
		f := p.backlog[0]
		p.backlog = p.backlog[1:]
		m.handle(p, f)
	}
}

func (m *beanstalk) Settled() error {
	if err := m.settled(); err != nil {
		return err
	}
	if m.tainted {
		return nil
	}
	for _, p := range m.peers {
		if !p.waiting || m.deaf[p.conn] {
			continue
		}
		missing := func(rule codec.RuleID, what string) error {
			return &Complaint{Conn: p.conn, Rule: rule, Law: missing, Text: what}
		}
		sure, _ := m.margin(p)
		if j := m.best(p); j != nil {
			return missing("beanstalk.reserve.reserved", fmt.Sprintf("job %s is ready, and a reserve waits", j.id))
		} else if sure && (p.margin || !m.quirks[TTRStays]) {
			return missing("beanstalk.deadline-soon.while-waiting", "DEADLINE_SOON is due: a job that it holds is in its last second")
		} else if p.until != never && (m.must(p.until) || p.until == 0) {
			return missing("beanstalk.reserve.timeout-expires", "TIMED_OUT is due")
		}
	}
	for _, j := range m.live {
		j.fresh = false
	}
	return nil
}

func (m *beanstalk) Sent(conn int, f *codec.Frame) {
	m.step++
	p := m.peers[conn]
	if p == nil || m.deaf[conn] {
		m.tainted = m.tainted || p != nil
		return
	}
	if m.hazy() {
		m.taint()
	}
	if p.waiting {
		p.backlog = append(p.backlog, f.Clone())
		return
	}
	m.handle(p, f.Clone())
}

func (m *beanstalk) handle(p *bPeer, f codec.Frame) {
	m.sent[f.Type.Name]++
	if h := bHandlers[f.Type.Name]; h != nil {
		h(m, p, f)
	}
	m.sweep()
}

func (m *beanstalk) State() uint64 {
	h := uint64(0xcbf29ce484222325)
	var by [5]int
	for _, j := range m.live {
		by[j.state]++
	}
	waiting, paused := 0, 0
	for _, p := range m.peers {
		if p.waiting {
			waiting++
		}
	}
	for _, t := range m.tubes {
		if t.paused > 0 && !m.must(t.paused) {
			paused++
		}
	}
	for _, n := range []int{by[0], by[1], by[2], by[3], waiting, paused, len(m.tubes) - 1} {
		h = fold(h, class(n))
	}
	return h
}

func number(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b), 10, 64)
	return n
}
