// Package danga is the state machine of a job server according to the Danga draft, to be run by
// [refserver.Server].
//
// The draft leaves much open, and no other server for it is known. README.md lists the interpretation of each
// gap. Each message type has one handler, which is found by the index of the type.
package danga

import (
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refserver"
	"jobwire/refserver/internal/list"
)

// Defaults of the limits in Options.
const (
	DefaultKeepTime  = time.Hour
	DefaultKeepCount = 10_000
	DefaultKeepBytes = 64 << 20
)

// Options are the choices that the draft leaves to a server.
type Options struct {
	// Name is part of handles, "J:<name>:<n>", and distinguishes them from handles of other servers, and from
	// those before a restart of this server. It should be ASCII: other bytes are removed. It is truncated to 64
	// bytes. "" means the start time.
	Name string

	// The result of a job that has a handle is kept for KeepTime. Only the KeepCount newest results are kept,
	// and only KeepBytes bytes of their data, or one result that is larger. 0 means the default; a KeepCount
	// below 0 keeps no results.
	KeepTime  time.Duration
	KeepCount int
	KeepBytes int
}

// maxName is the maximum length of Options.Name.
const maxName = 64

// machine is the whole state of the server. Messages cause no searches, except job_assign_req and the packets
// for sleeping and waking, which look at each name of the worker; the codec limits their number.
type machine struct {
	opts   Options
	prefix string // of every handle

	lastJob   uint64
	tasks     map[string]*task
	keyed     map[key]*job    // unfinished jobs with a duplicate key
	jobs      map[uint64]*job // jobs whose handles were given out
	kept      list.List[job]  // the finished jobs that have a handle, oldest first
	keptBytes int
	scratch   []byte // buffer for a handle
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
	ended bool // the peer has half-closed the connection and waits only for a result

	waitsFor *job // of type 0
	wait     list.Element[peer]

	able   []ability
	asleep bool
	job    *job // the job that is assigned to it
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
		closeViolator(p) // a type that only the server sends, in a session that lets it pass
	}
}

// Reject ends the connection: the protocol has no packet for errors.
func (m *machine) Reject(c *refserver.Conn, _ *codec.Frame, _ *codec.Error) {
	closeViolator(c.Data.(*peer))
}

// closeViolator ends the connection of a peer that violated a rule. The server handles its job and its wait when the
// connection has ended.
func closeViolator(p *peer) { p.conn.Close() }

// HalfClosed keeps the connection of an application that has shut down its direction until the application gets
// its result. A worker can no longer report, so its connection ends.
func (m *machine) HalfClosed(c *refserver.Conn) bool {
	p := c.Data.(*peer)
	p.ended = p.waitsFor != nil && len(p.able) == 0 && p.job == nil
	return p.ended
}

// Close removes a peer whose connection has ended. If the peer waited for a job that no other peer wants and no worker
// runs, the job ends.
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

// Next returns the time at which the oldest result is to be deleted.
func (m *machine) Next() time.Time {
	if m.kept.First() == nil {
		return time.Time{}
	}
	return m.kept.First().forgetAt
}

// atOnce is the maximum number of results that one call of Tick deletes. Connections wait during the call.
const atOnce = 1000

func (m *machine) Tick(now time.Time) {
	for range atOnce {
		if m.kept.First() == nil || m.kept.First().forgetAt.After(now) {
			return
		}
		m.forget(m.kept.First())
	}
}

// task is the state of a job name. It is deleted when there is neither a job of that name nor a worker that can
// do it.
type task struct {
	name     []byte
	queue    list.List[job]     // jobs that wait, oldest first
	jobs     int                // unfinished jobs, waiting or assigned
	workers  int                // number of times that the name is in workers' lists
	sleepers list.List[ability] // abilities of sleeping workers that the server wakes for a job
}

// task returns the task of a name, and creates it if necessary.
func (m *machine) task(name []byte) *task {
	t := m.tasks[string(name)]
	if t == nil {
		t = &task{name: append([]byte(nil), name...)}
		m.tasks[string(name)] = t
	}
	return t
}

// releaseIfUnused deletes the task if it is not in use.
func (m *machine) releaseIfUnused(t *task) {
	if t.jobs == 0 && t.workers == 0 {
		delete(m.tasks, string(t.name))
	}
}
