package model

import (
	"math"
	"slices"
	"time"

	"jobwire/codec"
)

// Danga is the adapter for models of the specification danga-gearman-draft.txt.
var Danga = &Adapter{New: newDanga}

// danga is the model of the specification danga-gearman-draft.txt, with the interpretations that the rules of the
// protocol state.
type danga struct {
	expectations
	peers   map[int]*dPeer
	jobs    []*dJob // unfinished jobs, oldest first
	results map[string]*dJob
}

type dPeer struct {
	conn     int
	names    []string
	sleeping bool
	job      *dJob // the job that was assigned to the worker, or nil
	waits    *dJob // the job of type 0 for whose result the client waits, or nil
}

type dJob struct {
	name, key string
	args      []byte
	handle    []byte // handle of a job of type 1; nil until the server has sent it
	asked     bool   // a client has received a handle of the job, or will receive one
	wanted    bool   // the job must run even if no client waits for it
	waits     []int
	worker    int // connection of the worker that has the job; -1: none
	requeued  bool
	vague     bool // the server may have dropped the job
	done      bool
	progress  [3]uint32
	code      byte
	data      []byte
	created   time.Duration
}

func newDanga(p *codec.Protocol, quirks map[Quirk]bool) Model {
	return &danga{expectations: newExpectations(p, quirks), peers: map[int]*dPeer{}, results: map[string]*dJob{}}
}

func (m *danga) Opened(conn int) {
	m.opened(conn)
	m.peers[conn] = &dPeer{conn: conn}
}

// Blocked implements Model: the client waits for the result of a job of type 0, or the server must close the
// connection.
func (m *danga) Blocked(conn int) bool {
	p := m.peers[conn]
	_, leaving := m.leaving[conn]
	return leaving || p != nil && p.waits != nil
}

// Closed implements Model: the job of a worker goes back to its queue.
func (m *danga) Closed(conn int) {
	m.step++
	p := m.peers[conn]
	m.opened(conn)
	m.unchecked[conn] = true
	delete(m.peers, conn)
	delete(m.leaving, conn)
	if p != nil {
		m.disconnected(p)
	}
}

// Gone implements Model: a close by the server is a complaint, except after a violation of the protocol by the peer.
func (m *danga) Gone(conn int) error {
	p := m.peers[conn]
	delete(m.peers, conn)
	err := m.gone(conn)
	if m.tainted {
		err = nil
	}
	if p != nil {
		m.disconnected(p)
	}
	return err
}

// disconnected updates the jobs of a peer that has disconnected. The job of a worker goes back to its queue. The server
// may drop a job that only this client waited for.
func (m *danga) disconnected(p *dPeer) {
	if j := p.waits; j != nil {
		j.waits = slices.DeleteFunc(j.waits, func(c int) bool { return c == p.conn })
		if len(j.waits) == 0 && !j.wanted {
			j.vague = true
		}
	}
	if p.job != nil {
		m.requeue(p)
	}
}

// requeue returns the job of a worker to its queue, without progress, and wakes the sleeping workers that can do it.
func (m *danga) requeue(p *dPeer) {
	j := p.job
	p.job = nil
	j.worker, j.requeued, j.progress = -1, true, [3]uint32{0, 1, math.MaxUint32}
	m.wake(j, required)
}

// violates records that the server must close the connection because the peer has violated the protocol.
func (m *danga) violates(p *dPeer, why string) {
	for _, d := range m.expected {
		if d.conn == p.conn {
			d.must = false // the server may have sent this message before it noticed the violation
		}
	}
	m.ending[p.conn] = true
	m.leaving[p.conn] = closeReason{"danga.violation.closes", why}
	delete(m.peers, p.conn)
	m.disconnected(p)
}

func (m *danga) CheckMissing() error { return m.checkMissing() }

func (m *danga) Elapsed(d time.Duration) { m.now += d }

// Received implements Model. After a violation of the protocol by a peer, the server must close the connection without
// an error packet, so each message that the model does not expect breaks that rule.
func (m *danga) Received(conn int, f *codec.Frame) error {
	if _, leaving := m.leaving[conn]; leaving && !m.tainted {
		if m.received(conn, f) == nil {
			return nil
		}
		return &Complaint{Conn: conn, Rule: "danga.violation.no-error-packet", Law: "unexpected message",
			Text: "expected the server to close the connection without a message, because the client or worker violated the protocol; got " + show(f)}
	}
	return m.excused(m.received(conn, f))
}

// Sent implements Model: it passes a request to its handler in dHandlers.
func (m *danga) Sent(conn int, f *codec.Frame) {
	m.step++
	p := m.peers[conn]
	if p == nil || m.unchecked[conn] {
		m.tainted = m.tainted || p != nil
		return
	}
	if h := dHandlers[f.Type.Name]; h != nil {
		h(m, p, f.Clone())
	}
}

// noop expects a noop that wakes a sleeping worker. If must is false, the noop is optional.
func (m *danga) noop(p *dPeer, must bool) {
	for _, d := range m.expected {
		if d.conn == p.conn && d.want == "noop" {
			d.must = d.must || must && !m.tainted
			return
		}
	}
	d := m.expect(p.conn, "danga.sleep.wakes", "noop", typed("noop", func(*codec.Frame) error {
		p.sleeping = false
		return nil
	}))
	d.must = d.must && must
}

// wake expects a noop for each sleeping worker that has announced the job's name. If must is false, the noops are
// optional.
func (m *danga) wake(j *dJob, must bool) {
	for _, p := range m.peers {
		if p.sleeping && slices.Contains(p.names, j.name) {
			m.noop(p, must && !j.vague)
		}
	}
}

// candidates returns the jobs that the server may assign to a worker. vague contains those that the server may have
// dropped.
func (m *danga) candidates(p *dPeer) (sure, vague []*dJob) {
	first := true
	for _, j := range m.jobs {
		switch {
		case j.worker >= 0 && !j.vague || j.worker >= 0 || !slices.Contains(p.names, j.name):
		case j.vague:
			vague = append(vague, j)
		case j.requeued:
			sure = append(sure, j)
		case first:
			sure = append(sure, j)
			first = false
		}
	}
	return sure, vague
}

// State implements Model: it counts queued jobs, running jobs, sleeping workers, waiting clients, handles, and
// connections that the server must close. The state of a connection is that of all.
func (m *danga) State(int) uint64 {
	h := uint64(0xcbf29ce484222325)
	queued, running, sleeping, waiting := 0, 0, 0, 0
	for _, j := range m.jobs {
		if j.worker < 0 {
			queued++
		} else {
			running++
		}
	}
	for _, p := range m.peers {
		if p.sleeping {
			sleeping++
		}
		if p.waits != nil {
			waiting++
		}
	}
	for _, n := range []int{queued, running, sleeping, waiting, len(m.results), len(m.leaving)} {
		h = mixHash(h, class(n))
	}
	return h
}
