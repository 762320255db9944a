// Package danga is the state machine of a job server as the Danga draft has it,
// to be run by [refserver.Server].
//
// The draft leaves much open, and no other server of it is known; README.md lists
// how each hole is read here. Each message type has one handler, found by the
// index of its row in the contract.
package danga

import (
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refserver"
	"jobwire/refserver/internal/list"
)

// How results are kept where Options leaves a zero.
const (
	DefaultKeepTime  = time.Hour
	DefaultKeepCount = 10_000
	DefaultKeepBytes = 64 << 20
)

// Options are the choices that the draft leaves to a server.
type Options struct {
	// Name stands in handles, "J:<name>:<n>", and tells them from those of other
	// servers, and of this one before it was started again. It should be ASCII,
	// other bytes are left out, and is cut at 64 bytes. "" is the time of the start.
	Name string

	// The results of jobs that have a handle are kept for KeepTime, but only the
	// KeepCount newest of them, and only KeepBytes bytes of their data, or one that
	// alone is more. Zeros stand for the defaults; a KeepCount below 0 keeps none.
	KeepTime  time.Duration
	KeepCount int
	KeepBytes int
}

// maxName is the longest Options.Name.
const maxName = 64

// machine is the server's whole state. No message makes it search, but for
// job_assign_req and the packets of sleeping and waking, which look at each of the
// worker's names; the codec bounds these.
type machine struct {
	opts   Options
	prefix string // of every handle

	lastJob   uint64
	tasks     map[string]*task
	keyed     map[key]*job    // unfinished jobs with a duplicate key
	jobs      map[uint64]*job // jobs whose handle was given out
	kept      list.List[job]  // those of them that are finished, oldest first
	keptBytes int
	scratch   []byte // a handle
}

// New returns a machine without jobs.
func New(o Options) refserver.Machine {
	o.Name = strings.Map(func(r rune) rune {
		if r > 0 && r < 0x80 {
			return r
		}
		return -1
	}, o.Name)
	o.Name = o.Name[:min(len(o.Name), maxName)]
	if o.Name == "" {
		o.Name = strconv.FormatInt(time.Now().UnixMilli(), 36)
	}
	if o.KeepTime == 0 {
		o.KeepTime = DefaultKeepTime
	}
	if o.KeepCount == 0 {
		o.KeepCount = DefaultKeepCount
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = DefaultKeepBytes
	}
	return &machine{
		opts:   o,
		prefix: "J:" + o.Name + ":",
		tasks:  map[string]*task{},
		keyed:  map[key]*job{},
		jobs:   map[uint64]*job{},
	}
}

// peer is one connection: an application, a worker or both.
type peer struct {
	conn  *refserver.Conn
	ended bool // it has shut down its direction; it is only here for a result

	waitsFor *job // of type 0
	wait     list.Place[peer]

	able   []ability
	asleep bool
	job    *job // the one it has been assigned
}

func (m *machine) Open(c *refserver.Conn) {
	p := &peer{conn: c}
	p.wait.Item = p
	c.Data = p
}

func (m *machine) Handle(c *refserver.Conn, f *codec.Frame) {
	p := c.Data.(*peer)
	if h := handlers[f.Type.Index]; h != nil {
		h(m, p, f)
	} else {
		violate(p) // a type that only the server sends, in a session that lets it pass
	}
}

// Reject ends the connection: there is no packet for errors.
func (m *machine) Reject(c *refserver.Conn, _ *codec.Frame, _ *codec.Error) {
	violate(c.Data.(*peer))
}

// violate ends the connection of a peer that has broken a rule. What it has and
// what it waits for is dealt with when it has ended.
func violate(p *peer) { p.conn.Close() }

// HalfClosed keeps an application that has shut down its direction until it has
// its result. A worker cannot report any more: it has left.
func (m *machine) HalfClosed(c *refserver.Conn) bool {
	p := c.Data.(*peer)
	p.ended = p.waitsFor != nil && len(p.able) == 0 && p.job == nil
	return p.ended
}

func (m *machine) Close(c *refserver.Conn) {
	p := c.Data.(*peer)
	m.goodbye(p)
	if j := p.waitsFor; j != nil {
		p.waitsFor = nil
		p.wait.Remove()
		if j.unwanted() && j.worker == nil {
			m.end(j)
		}
	}
}

// Next is when the oldest result has been kept for long enough.
func (m *machine) Next() time.Time {
	if m.kept.First() == nil {
		return time.Time{}
	}
	return m.kept.First().forgetAt
}

// atOnce is how many results are forgotten in one turn. The others wait meanwhile.
const atOnce = 1000

func (m *machine) Tick(now time.Time) {
	for range atOnce {
		if m.kept.First() == nil || m.kept.First().forgetAt.After(now) {
			return
		}
		m.forget(m.kept.First())
	}
}

// task is what the server knows of a job name. It is forgotten when there is
// neither a job of that name nor a worker that can do it.
type task struct {
	name     []byte
	queue    list.List[job]     // jobs that wait, oldest first
	jobs     int                // unfinished, whether they wait or not
	workers  int                // how often the name stands in workers' lists
	sleepers list.List[ability] // of workers that are to be woken for a job
}

// task returns that of a name, which need not exist yet.
func (m *machine) task(name []byte) *task {
	t := m.tasks[string(name)]
	if t == nil {
		t = &task{name: append([]byte(nil), name...)}
		m.tasks[string(name)] = t
	}
	return t
}

// release forgets the task if nothing depends on it.
func (m *machine) release(t *task) {
	if t.jobs == 0 && t.workers == 0 {
		delete(m.tasks, string(t.name))
	}
}
