// Package beanstalk is the Beanstalk reference server's state machine, to be run
// by [refserver.Server].
//
// It does all that the document says. Where the document is silent it follows
// common practice; README.md lists every such reading. Each command has one
// handler, found by the index of its row in the contract.
package beanstalk

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/refserver"
)

// Options are the choices that the document leaves to a server. The largest job
// is [codec.Options].MaxData.
type Options struct {
	Version  string // in stats; "" is "jobwire"
	Draining bool   // refuse new jobs from the start
}

// Machine is the server's whole state, a [refserver.Machine]. No command costs
// more for there being many jobs, tubes or connections, but for the logarithm
// of a heap; a reserve is as dear as its own connection's watch list is long.
type Machine struct {
	opts     Options
	start    time.Time
	id       string
	host     string
	draining atomic.Bool

	jobs     store
	lastTube uint64
	tubes    map[string]*tube
	standard *tube // the one named default
	timers   heap[timer]
	supplied []*tube // tubes that may have something for those who wait
	scratch  []byte

	tally
	counts             []int // commands by the index of their row
	peers, connections int   // now; ever
	producers, workers int
	waiting            int
	timeouts           int
	burials, arrivals  int64 // what buried jobs and waiting peers are numbered by
}

// timer is what something may be due to. Its alarm may ring too early, when what
// was due has been called off: to move it each time would cost more.
type timer interface {
	item
	timing() int // its place among the timers
	alarm() int64
	ring(m *Machine, now int64)
}

// timed is the part that all timers share.
type timed struct{ place int }

func (t *timed) moved(place int) { t.place = place }
func (t *timed) timing() int     { return t.place }

// New returns a machine without jobs.
func New(o Options) *Machine {
	o.Version = cmp.Or(o.Version, "jobwire")
	var id [8]byte
	rand.Read(id[:])
	m := &Machine{
		opts:   o,
		start:  time.Now(),
		id:     hex.EncodeToString(id[:]),
		jobs:   store{pages: map[uint64]*page{}},
		tubes:  map[string]*tube{},
		counts: make([]int, len(beanstalk.Protocol.Types)),
	}
	m.host, _ = os.Hostname()
	m.draining.Store(o.Draining)
	m.standard = m.tube([]byte("default"))
	return m
}

// Drain makes the server refuse new jobs from now on ("drain mode"). It may be
// called from any goroutine.
func (m *Machine) Drain() { m.draining.Store(true) }

// now is the time on the machine's clock, which began with it.
func (m *Machine) now() int64 { return int64(time.Since(m.start)) }

// decimal writes a number into memory that the next call uses again.
func (m *Machine) decimal(n uint64) []byte {
	m.scratch = strconv.AppendUint(m.scratch[:0], n, 10)
	return m.scratch
}

func (m *Machine) Open(c *refserver.Conn) {
	p := &peer{conn: c}
	c.Data = p
	m.use(p, m.standard)
	m.watch(p, m.standard)
	m.peers++
	m.connections++
}

func (m *Machine) Handle(c *refserver.Conn, f *codec.Frame) {
	p := c.Data.(*peer)
	m.counts[f.Type.Index]++
	handlers[f.Type.Index](m, p, f)
	m.settle()
}

// Reject answers what breaks the contract ("Protocol"; "Producer Commands" for
// what a put is refused with). A put that is refused is still one.
func (m *Machine) Reject(c *refserver.Conn, f *codec.Frame, e *codec.Error) {
	reply := refusals[e.Rule]
	if reply == nil {
		reply = badFormat
	} else if f.Type != nil {
		m.counts[f.Type.Index]++
		m.produces(c.Data.(*peer))
	}
	c.Send(reply)
}

// HalfClosed answers a wait: a peer that has ended its direction is not made to
// wait ("Worker Commands", reserve). What it sent before is still done; then
// nothing more is due to it.
func (m *Machine) HalfClosed(c *refserver.Conn) bool {
	p := c.Data.(*peer)
	p.ended = true
	if p.waiting {
		m.stopWaiting(p)
		c.Send(timedOut)
	}
	return false
}

// Close gives back what the peer had reserved.
func (m *Machine) Close(c *refserver.Conn) {
	p := c.Data.(*peer)
	if p.waiting {
		m.stopWaiting(p)
	}
	for e := p.reserved.first(); e != nil; e = p.reserved.first() {
		j := e.item
		m.leave(j)
		m.queue(j)
	}
	for len(p.watches) > 0 {
		m.unwatch(p, len(p.watches)-1)
	}
	p.tube.using--
	m.release(p.tube)
	m.sleep(p)
	m.peers--
	if p.producer {
		m.producers--
	}
	if p.worker {
		m.workers--
	}
	m.settle()
}

// wake sees to it that a timer rings at that time or before.
func (m *Machine) wake(t timer, at int64) {
	place := t.timing()
	if at == never || place > 0 && m.timers.at(place).key <= at {
		return
	}
	if place > 0 {
		m.timers.remove(place)
	}
	m.timers.add(at, 0, t)
}

// sleep takes a timer away.
func (m *Machine) sleep(t timer) {
	if place := t.timing(); place > 0 {
		m.timers.remove(place)
	}
}

func (m *Machine) Next() time.Time {
	e := m.timers.first()
	if e == nil {
		return time.Time{}
	}
	return m.start.Add(time.Duration(e.key))
}

func (m *Machine) Tick(time.Time) {
	now := m.now()
	for e := m.timers.first(); e != nil && e.key <= now; e = m.timers.first() {
		t := e.item
		m.timers.remove(1)
		t.ring(m, now)
		m.wake(t, t.alarm())
	}
	m.settle()
}
