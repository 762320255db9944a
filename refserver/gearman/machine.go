// Package gearman is the state machine of the Gearman reference server, for [refserver.Server].
//
// It implements the whole specification. Where the specification leaves a choice it follows common practice; README.md
// lists these interpretations. Each message type has one handler, at the index of the type.
package gearman

import (
	"bytes"
	"cmp"
	"os"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/internal/version"
	"jobwire/refserver"
	"jobwire/refserver/internal/list"
)

// Options are the choices that the specification leaves to a server.
type Options struct {
	Host    string // part of job handles, "H:<host>:<n>", truncated if too long; "": the name of the computer
	Version string // what the reply to the command version has after "OK "; "": the version of jobwire

	// TimeoutUnit is the unit of CAN_DO_TIMEOUT, which the specification does not define. 0: a millisecond, as in
	// gearmand.
	TimeoutUnit time.Duration

	// Retries is the number of lost workers after which a job fails. With 1, a job fails when its first worker
	// disconnects. 0: unlimited.
	Retries int

	// Wakeups is the maximum number of sleeping workers that are woken for a job. 0: all of them, as the specification
	// says.
	Wakeups int

	// MaxQueue is the maximum number of jobs of a function when a job is submitted with high, normal or low priority. It
	// applies to functions for which the command maxqueue has set no limits. 0: unlimited.
	MaxQueue [3]int
}

// maxHost is the maximum length of the host in bytes: the longest handle must also have room for the job number.
const maxHost = gearman.MaxHandle - len("H::") - len("18446744073709551615")

// machine is the whole state of the server. No message requires a search: lists take constant time, heaps logarithmic
// time. The cost of a message grows only with the objects that it affects: workers that get ready for a job, clients
// that wait for a job, lines of a list (for the command workers also connections), and the registrations and jobs of a
// peer that disconnects or resets its abilities.
type machine struct {
	*store
	opts   Options
	byName map[string]*function
	recent *function           // the function that was looked up last, or nil
	order  list.List[function] // in the order in which they were first mentioned
	joined list.List[peer]     // in the order in which they connected
	timers heap[*extra]
}

// New returns a machine without jobs.
func New(o Options) refserver.Machine {
	if o.Host == "" {
		o.Host, _ = os.Hostname()
	}
	o.Host = strings.ToValidUTF8(strings.ReplaceAll(o.Host, "\x00", ""), "")
	o.Host = o.Host[:min(len(o.Host), maxHost)]
	if o.Host == "" {
		o.Host = "localhost"
	}
	if o.Version == "" {
		o.Version = version.Number
	}
	if o.TimeoutUnit == 0 {
		o.TimeoutUnit = time.Millisecond
	}
	return &machine{store: newStore("H:" + o.Host + ":"), opts: o, byName: map[string]*function{}}
}

// peer is one connection. It may be a client, a worker and an administrator at the same time.
type peer struct {
	id     id
	conn   *refserver.Conn
	member list.Element[peer]
	ended  bool // the peer has half-closed the connection and only waits for results

	waits      chain // the jobs whose waiter it is
	further    chain // further jobs whose end the client waits for
	exceptions bool  // the client has requested the option "exceptions"

	worker    bool // the peer has sent a request that only workers send
	clientID  []byte
	abilityOf map[*function]*ability
	abilities list.List[ability]   // in the order of their registration
	lastOrder uint64               // of its abilities
	ready     [3]heap[*readyEntry] // by priority: entries for queues that may have jobs
	sleeping  bool
	work      chain // jobs assigned to it, in the order of their assignment
}

// function is a function that has jobs, workers or limits, or was created by a command. It is removed when none of
// these is true.
type function struct {
	id        id
	name      []byte
	member    list.Element[function]
	queue     [3]chain // queued jobs by priority, in the order in which they will be assigned
	total     int      // number of jobs in any state
	running   int
	abilities list.List[ability]
	idle      [3]list.List[readyEntry] // by priority: idle entries of workers for the queue
	// by priority: ready entries whose workers were not woken because of Options.Wakeups
	passed [3]list.List[readyEntry]
	limits *[3]int // set by the command maxqueue
	kept   bool    // created by the command "create function"
}

func (m *machine) Open(c *refserver.Conn) {
	p := &peer{conn: c}
	p.member.Item = p
	c.Data = p
	m.joined.PushBack(&p.member)
	i, at := m.peers.add()
	p.id, *at = i, p
}

// Handle checks a message from a client or worker and calls its handler. It replies with ERROR to a message with
// invalid values and to one that is not a request. A request that only workers send marks the connection as a worker.
func (m *machine) Handle(c *refserver.Conn, f *codec.Frame) {
	p := c.Data.(*peer)
	if code, text := validate(f); code != "" {
		p.complain(f, code, text)
		return
	}
	if f.Type.Req == gearman.Worker {
		p.worker = true
	}
	if h := handlers[f.Type.Index]; h != nil {
		h(m, p, f)
	} else {
		refuse(p, "INVALID_COMMAND", f.Type.Name+" is not a request")
	}
}

// maxName is the maximum length of a function name, unique ID, client ID or other name in bytes. The specification has
// no limit, but names are stored, and listed many times.
const maxName = 64 << 10

// validate returns the reason why a legal message is rejected, or "".
func validate(f *codec.Frame) (code, text string) {
	if f.Type.Code == 0 && bytes.IndexByte(f.Raw, 0) >= 0 {
		return "INVALID_ARGUMENTS", "a command must not contain NUL: no packet can contain a name with it"
	}
	if len(f.Raw) <= maxName {
		return "", ""
	}
	for i := range f.Spans {
		if fd := f.Spans[i].Field; fd.Kind == codec.Text && len(f.Value(i)) > maxName {
			return "ARGUMENT_TOO_LARGE", fd.Name + " is longer than " + strconv.Itoa(maxName) + " bytes"
		}
	}
	return "", ""
}

// Reject replies to a message that violates a rule. It does not close the connection.
func (m *machine) Reject(c *refserver.Conn, f *codec.Frame, e *codec.Error) {
	p := c.Data.(*peer)
	code := errorCodes[e.Rule]
	switch {
	case e.Rule == gearman.RuleAdminCommand:
		p.err(code, "Unknown server command")
	case e.Rule == gearman.RuleAdminLine:
		// There is no reply to a line that never ended: the server closes the connection.
	case len(f.Raw) > 0 && f.Raw[0] != 0:
		p.err(cmp.Or(code, "INVALID_ARGUMENTS"), e.Error())
	default:
		refuse(p, cmp.Or(code, "INVALID_PACKET"), e.Error())
	}
}

// errorCodes are the codes of ERROR and ERR for rules that have their own code.
var errorCodes = map[codec.RuleID]string{
	gearman.RuleMagic:          "INVALID_MAGIC",
	gearman.RuleMagicDirection: "INVALID_MAGIC",
	gearman.RuleTypeKnown:      "INVALID_COMMAND",
	gearman.RuleTypeDirection:  "INVALID_COMMAND",
	gearman.RuleSizeCap:        "ARGUMENT_TOO_LARGE",
	gearman.RuleHandleLength:   "ARGUMENT_TOO_LARGE",
	gearman.RuleAdminCommand:   "UNKNOWN_COMMAND",
}

// complain replies with ERR to a command and with ERROR to a packet.
func (p *peer) complain(f *codec.Frame, code, text string) {
	if f.Type.Code == 0 {
		p.err(code, text)
	} else {
		refuse(p, code, text)
	}
}

// refuse sends an ERROR packet.
func refuse(p *peer, code, text string) {
	p.conn.Send(errorPacket, []byte(code), []byte(text))
}

// HalfClosed keeps a half-closed client until it has its results. A half-closed worker has left, because it cannot send
// results.
func (m *machine) HalfClosed(c *refserver.Conn) bool {
	p := c.Data.(*peer)
	p.ended = p.waiting() && p.abilities.Len() == 0 && p.work.len == 0
	return p.ended
}

// Close removes a peer whose connection has ended: its abilities, its waits for jobs, and the jobs that it ran, which
// go back to the front of their queues.
func (m *machine) Close(c *refserver.Conn) {
	p := c.Data.(*peer)
	p.member.Remove()
	m.reset(p)
	m.leave(p)
	// Requeue the last assigned job first: then the first one ends up at the front of the queue.
	for p.work.last != 0 {
		m.requeue(m.jobs.at(p.work.last))
	}
	m.peers.remove(p.id)
}

// functionNamed returns the function with the name, and creates it if necessary.
func (m *machine) functionNamed(name []byte) *function {
	if m.recent != nil && bytes.Equal(m.recent.name, name) {
		return m.recent
	}
	if fn := m.byName[string(name)]; fn != nil {
		m.recent = fn
		return fn
	}
	fn := &function{name: bytes.Clone(name)}
	fn.member.Item = fn
	m.byName[string(name)] = fn
	m.order.PushBack(&fn.member)
	i, at := m.functions.add()
	fn.id, *at = i, fn
	return fn
}

// releaseIfUnused removes the function if it has no jobs, workers or limits, and was not created by a command.
func (m *machine) releaseIfUnused(fn *function) {
	if fn.total == 0 && fn.abilities.Len() == 0 && fn.limits == nil && !fn.kept {
		delete(m.byName, string(fn.name))
		m.recent = nil
		fn.member.Remove()
		m.functions.remove(fn.id)
	}
}
