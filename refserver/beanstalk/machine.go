// Package beanstalk is the state machine of the Beanstalk reference server, to be run by [refserver.Server].
//
// It implements the whole specification. Where the specification is silent it follows common practice;
// README.md lists these interpretations. Each command has one handler, which is found by the index of its
// message type.
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

// Options are the choices that the specification leaves to a server. The maximum job size is
// [codec.Options].MaxData.
type Options struct {
	Version  string // in the statistics; "": "jobwire"
	Draining bool   // reject new jobs from the start
}

// Machine is the whole state of the server, a [refserver.Machine]. The cost of a command does not depend on the
// number of jobs, tubes or connections, except for the logarithmic cost of a heap. The cost of a reserve is
// proportional to the length of the connection's watch list.
type Machine struct {
	opts     Options
	start    time.Time
	id       string
	host     string
	draining atomic.Bool

	jobs        store
	lastTube    uint64
	tubes       map[string]*tube
	defaultTube *tube // the tube named default
	timers      heap[timer]
	supplied    []*tube // tubes that may have jobs for peers that wait
	scratch     []byte

	tally
	usage
	burials, arrivals int64 // the last numbers given to buried jobs and waiting peers
}

// usage counts commands, connections and what they do, for the reply to stats.
type usage struct {
	counts             []int // number of commands by message type
	peers, connections int   // current number; number of all connections so far
	producers, workers int
	waiting            int
	timeouts           int
}

// timer is an object with timer events. After an event was canceled, the timer may fire before its
// next event, because updating the timer for each cancellation would cost more.
type timer interface {
	item
	timerPos() int // its place in Machine.timers
	nextEvent() int64
	handleEvents(m *Machine, now int64)
}

// timerIndex is the common part of all timers.
type timerIndex struct{ place int }

func (t *timerIndex) moved(place int) { t.place = place }
func (t *timerIndex) timerPos() int   { return t.place }

// New returns a machine without jobs.
func New(o Options) *Machine {
	o.Version = cmp.Or(o.Version, "jobwire")
	var id [8]byte
	rand.Read(id[:])
	m := &Machine{
		opts:  o,
		start: time.Now(),
		id:    hex.EncodeToString(id[:]),
		jobs:  store{pages: map[uint64]*page{}},
		tubes: map[string]*tube{},
		usage: usage{counts: make([]int, len(beanstalk.Protocol.Types))},
	}
	m.host, _ = os.Hostname()
	m.draining.Store(o.Draining)
	m.defaultTube = m.tube([]byte("default"))
	return m
}

// Drain makes the server reject new jobs from now on ("drain mode"). It may be called from any goroutine.
func (m *Machine) Drain() { m.draining.Store(true) }

// now returns the time since the start of the machine, in nanoseconds.
func (m *Machine) now() int64 { return int64(time.Since(m.start)) }

// decimal formats a number. The result is valid until the next call.
func (m *Machine) decimal(n uint64) []byte {
	m.scratch = strconv.AppendUint(m.scratch[:0], n, 10)
	return m.scratch
}

func (m *Machine) Open(c *refserver.Conn) {
	p := &peer{conn: c}
	c.Data = p
	m.use(p, m.defaultTube)
	m.watch(p, m.defaultTube)
	m.peers++
	m.connections++
}

func (m *Machine) Handle(c *refserver.Conn, f *codec.Frame) {
	p := c.Data.(*peer)
	m.counts[f.Type.Index]++
	handlers[f.Type.Index](m, p, f)
	m.serveWaiting()
}

// Reject replies to a message that violates a rule. A put whose body is rejected is counted like any put.
func (m *Machine) Reject(c *refserver.Conn, f *codec.Frame, e *codec.Error) {
	r := beanstalk.Protocol.Framing.Lines.Reject(f, e)
	if f.Type != nil && !beanstalk.Protocol.IsGeneralError(r.Replies[0]) {
		m.counts[f.Type.Index]++
		m.produces(c.Data.(*peer))
	}
	c.Send(r.Replies[0])
}

// HalfClosed ends a wait: a peer that has shut down its direction must not wait ("Worker Commands", reserve).
// Its earlier commands are still executed; then the server closes the connection.
func (m *Machine) HalfClosed(c *refserver.Conn) bool {
	p := c.Data.(*peer)
	p.ended = true
	if p.waiting {
		m.stopWaiting(p)
		c.Send(timedOut)
	}
	return false
}

// Close makes the jobs ready that the peer had reserved.
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
	m.releaseIfUnused(p.tube)
	m.stopTimer(p)
	m.peers--
	if p.producer {
		m.producers--
	}
	if p.worker {
		m.workers--
	}
	m.serveWaiting()
}

// setTimer makes a timer expire at the time or earlier.
func (m *Machine) setTimer(t timer, at int64) {
	place := t.timerPos()
	if at == never || place > 0 && m.timers.at(place).key <= at {
		return
	}
	if place > 0 {
		m.timers.remove(place)
	}
	m.timers.add(at, 0, t)
}

// stopTimer removes a timer.
func (m *Machine) stopTimer(t timer) {
	if place := t.timerPos(); place > 0 {
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

// Tick handles the timers that have expired, such as delays and times to run, and then serves the clients that wait for
// a job.
func (m *Machine) Tick(time.Time) {
	now := m.now()
	for e := m.timers.first(); e != nil && e.key <= now; e = m.timers.first() {
		t := e.item
		m.timers.remove(1)
		t.handleEvents(m, now)
		m.setTimer(t, t.nextEvent())
	}
	m.serveWaiting()
}
