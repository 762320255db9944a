// Package gearman is the Gearman reference server's state machine, to be run by
// [refserver.Server].
//
// It does all that the document says. Where the document is silent it follows
// common practice; README.md lists every such reading. Each message type has one
// handler, found by the index of its row in the contract.
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

// Options are the choices that the document leaves to a server.
type Options struct {
	Host    string // in handles, "H:<host>:<n>"; "" is the machine's name
	Version string // what the version command answers behind OK; "" is the version of jobwire

	// TimeoutUnit is what CAN_DO_TIMEOUT counts. The document does not say;
	// 0 is a millisecond, as in gearmand.
	TimeoutUnit time.Duration

	// Retries is the number of workers lost over a job with which it fails: at 1
	// it fails with the first and is never handed out again. 0 is no limit.
	Retries int

	// Wakeups is how many sleeping workers are woken for a job. 0 is all of
	// them, as the document has it.
	Wakeups int

	// MaxQueue limits the jobs of a function that maxqueue sets no limits for,
	// by the priority of the one to be added: high, normal, low. 0 is no limit.
	MaxQueue [3]int
}

// maxHost leaves room for a number in the longest handle.
const maxHost = gearman.MaxHandle - len("H::") - len("18446744073709551615")

// machine is the server's whole state. No message makes it search: lists are
// entered and left in constant time, heaps in logarithmic. What a message costs
// grows only with those it concerns: workers that are told of a job, clients that
// wait for one, rows of a list (and connections, for workers), and what a peer
// that leaves, or gives up its abilities, leaves behind.
type machine struct {
	*store
	opts   Options
	byName map[string]*function
	recent *function           // the one last looked for, or nil
	order  list.List[function] // as they were first mentioned
	joined list.List[peer]     // as they connected
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

// peer is one connection: a client, a worker, an administrator or all of them.
type peer struct {
	id     id
	conn   *refserver.Conn
	member list.Place[peer]
	ended  bool // it has shut down its direction; it is only here for results

	waits      chain // jobs whose waiter it is
	further    chain // its waits for others
	exceptions bool  // it has asked for WORK_EXCEPTION

	worker    bool // it has sent what only workers send
	clientID  []byte
	able      map[*function]*ability
	abilities list.List[ability] // in the order in which they were registered
	lastOrder uint64             // of an ability
	ready     [3]heap[*lead]     // by priority: where it may find jobs
	sleeping  bool
	work      chain // jobs assigned to it, in the order in which it grabbed them
}

// function is what the server knows of a function. It is forgotten when nothing
// depends on it any more.
type function struct {
	id        id
	name      []byte
	member    list.Place[function]
	queue     [3]chain // of jobs, by priority, oldest first
	total     int      // jobs, whatever their state
	running   int
	abilities list.List[ability]
	idle      [3]list.List[lead] // by priority: of workers that it is not ready for
	passed    [3]list.List[lead] // of workers that it is ready for, but that sleep on
	limits    *[3]int            // set by maxqueue
	kept      bool               // made by "create function"
}

func (m *machine) Open(c *refserver.Conn) {
	p := &peer{conn: c}
	p.member.Item = p
	c.Data = p
	m.joined.PushBack(&p.member)
	i, at := m.peers.add()
	p.id, *at = i, p
}

func (m *machine) Handle(c *refserver.Conn, f *codec.Frame) {
	p := c.Data.(*peer)
	if code, text := unfit(f); code != "" {
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

// maxName is the longest function name, unique ID, client ID or other name in
// bytes. The document sets no limit, but names are held and listed many times.
const maxName = 64 << 10

// unfit says why a legal message is refused all the same, or nothing.
func unfit(f *codec.Frame) (code, text string) {
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

// Reject answers what breaks the contract. The connection goes on, unless the
// server closes it.
func (m *machine) Reject(c *refserver.Conn, f *codec.Frame, e *codec.Error) {
	p := c.Data.(*peer)
	code := errorCodes[e.Rule]
	switch {
	case e.Rule == gearman.RuleAdminCommand:
		p.err(code, "Unknown server command")
	case e.Rule == gearman.RuleAdminLine:
		// The line never ended, so it gets no reply: the connection ends.
	case len(f.Raw) > 0 && f.Raw[0] != 0:
		p.err(cmp.Or(code, "INVALID_ARGUMENTS"), e.Error())
	default:
		refuse(p, cmp.Or(code, "INVALID_PACKET"), e.Error())
	}
}

// errorCodes are what ERROR and ERR begin with for rules of their own.
var errorCodes = map[codec.RuleID]string{
	gearman.RuleMagic:          "INVALID_MAGIC",
	gearman.RuleMagicDirection: "INVALID_MAGIC",
	gearman.RuleTypeKnown:      "INVALID_COMMAND",
	gearman.RuleTypeDirection:  "INVALID_COMMAND",
	gearman.RuleSizeCap:        "ARGUMENT_TOO_LARGE",
	gearman.RuleHandleLength:   "ARGUMENT_TOO_LARGE",
	gearman.RuleAdminCommand:   "UNKNOWN_COMMAND",
}

// complain answers a message with ERR, if it is a line, or ERROR.
func (p *peer) complain(f *codec.Frame, code, text string) {
	if f.Type.Code == 0 {
		p.err(code, text)
	} else {
		refuse(p, code, text)
	}
}

// refuse sends an ERROR.
func refuse(p *peer, code, text string) {
	p.conn.Send(errorPacket, []byte(code), []byte(text))
}

// HalfClosed keeps a client that has shut down its direction until it has its
// results. A worker cannot report any more: it has left.
func (m *machine) HalfClosed(c *refserver.Conn) bool {
	p := c.Data.(*peer)
	p.ended = p.waiting() && p.abilities.Len() == 0 && p.work.len == 0
	return p.ended
}

func (m *machine) Close(c *refserver.Conn) {
	p := c.Data.(*peer)
	p.member.Remove()
	m.reset(p)
	m.leave(p)
	// The newest job first, so that the oldest ends up in front of all.
	for p.work.last != 0 {
		m.requeue(m.jobs.at(p.work.last))
	}
	m.peers.remove(p.id)
}

// functionNamed returns the function of that name, which need not exist yet.
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

// release forgets the function if nothing depends on it.
func (m *machine) release(fn *function) {
	if fn.total == 0 && fn.abilities.Len() == 0 && fn.limits == nil && !fn.kept {
		delete(m.byName, string(fn.name))
		m.recent = nil
		fn.member.Remove()
		m.functions.remove(fn.id)
	}
}
