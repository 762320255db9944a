package audit

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/audit/behavior"
	"jobwire/codec"
	"jobwire/judge"
)

// Options are the settings of an audit. Only Protocol is required.
type Options struct {
	Protocol *codec.Protocol
	Codec    codec.Options // limits of a message, and rules that are not enforced
	Server   bool          // check the messages of the server, too
	Levels   Levels        // the levels whose violations fail; nil: DefaultLevels

	// Found is called for each violation when it is found. It must not keep the finding. It must return quickly, because
	// all traffic waits for it.
	Found func(*Finding)

	// Message, if it is not nil, is called for each message of both sides, before it is forwarded. actor is the client or
	// worker of the connection, such as "Worker 2", as far as its messages show the role. If bad is not nil, the message
	// is illegal, and f has the fields that could be decoded. Message must not keep f, and must return quickly.
	Message func(actor string, f *codec.Frame, bad *codec.Error)
}

// Limits of what an auditor keeps.
const (
	maxKept        = 3       // complete findings per rule and side; further ones are only counted
	before         = 6       // preceding messages of the connection in a finding
	maxPastMessage = 4 << 10 // maximum size in bytes of a preceding message
)

// Finding is a message that violates a rule.
type Finding struct {
	Err    *codec.Error // the rule, the offset and the field
	Level  codec.Level
	By     codec.Side
	Conn   int
	Role   string        // role of the client or worker, as far as its messages show it
	At     time.Duration // since the beginning
	Frame  codec.Frame   // Raw is the message, or the part of it that has arrived
	Before []codec.Frame // preceding messages of the connection, without very long ones
}

// BrokenRule is a rule that one side has violated.
type BrokenRule struct {
	Rule  *codec.Rule
	By    codec.Side
	Count int
	First []Finding // the first findings, at most maxKept
}

// Auditor checks the connections to one server. Its methods may be called from any goroutine.
type Auditor struct {
	opts  Options
	begun time.Time

	mu         sync.Mutex
	checks     *judge.Monitor
	behavior   *behavior.Monitor
	conns      int // connections so far
	messages   [2]int
	roles      codec.Role // roles of clients and workers
	broken     []*BrokenRule
	origins    origins
	unfollowed []*Unfollowed
	outage     *Outage
	now        *conn         // the connection of the current message
	keep       bool          // remember all connections, and the jobs of the tasks of a driver
	all        []*conn       // if keep is set
	jobs       taskJobs      // if keep is set
	at         time.Duration // when the current message arrived, since the beginning
	frame      codec.Frame
	large      bool // a large message was read
}

// conn is one connection.
type conn struct {
	id       int
	streams  [2]codec.Stream
	blame    codec.Blame
	lost     [2]*Unfollowed // what counts the bytes of a side that is not followed; nil: it is followed
	beyond   bool           // what the checks store about the connection has exceeded a limit
	form     [2]*Unfollowed // what counts the messages of which only the form was checked
	left     bool           // the peer has sent its last request
	ended    [2]bool
	cut      [2]bool         // an incomplete message was reported
	lastSent [2]atomic.Int64 // when a side last sent, in nanoseconds since the beginning; -1 while its bytes are forwarded
	role     codec.Role
	recent   [before]pastMessage
	next     int // index of the oldest element of recent

	requests codec.Conversation[request] // used only if the messages of the server are checked

	// Bytes of the server from the first message on that arrived before the end of the request that it may answer: a
	// server may refuse a large request before it has received all of it. They are checked after the request.
	early []byte
}

// maxEarly is the largest number of bytes of the server that wait for the end of a request.
const maxEarly = 1 << 20

// request is a request without a reply so far.
type request struct {
	at     time.Duration // since the beginning
	blocks bool          // the reply may depend on a job, or on other clients or workers
	name   string
}

// pastMessage is a copy of a recent message. Its memory is reused.
type pastMessage struct {
	frame codec.Frame
	at    time.Duration // since the beginning
	known bool
}

// Recent is a recent message.
type Recent struct {
	At    time.Duration // since the beginning
	Actor string        // the client or worker
	Frame codec.Frame
}

// maxRecent is how many recent messages are reported with a failure.
const maxRecent = 12

// recent returns the last messages of all connections, without very long ones.
func (a *Auditor) recent() []Recent {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Recent
	for _, c := range a.all {
		for i := range c.recent {
			if r := &c.recent[i]; r.known {
				all = append(all, Recent{r.at, a.actor(c), r.frame.Clone()})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y Recent) int { return cmp.Compare(x.At, y.At) })
	return all[max(0, len(all)-maxRecent):]
}

// sent returns how many messages clients and workers have sent.
func (a *Auditor) sent() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.messages[codec.Peer]
}

// roleName returns the role of a client or worker, as far as its messages show it.
func (a *Auditor) roleName(c *conn) string {
	if name, more, _ := strings.Cut(a.opts.Protocol.RoleNames(c.role), "/"); name != "" && more == "" {
		return name
	}
	return a.opts.Protocol.Roles[0]
}

// actor returns the name of a client or worker.
func (a *Auditor) actor(c *conn) string { return fmt.Sprintf("%s %d", a.roleName(c), c.id) }

// New returns an auditor.
func New(o Options) *Auditor {
	a := &Auditor{opts: o, begun: time.Now(), checks: judge.New(o.Protocol),
		behavior: behavior.New(o.Protocol), origins: origins{}}
	a.checks.Counts = true
	if a.opts.Codec.MaxData == 0 {
		a.opts.Codec.MaxData = codec.DefaultMaxData // larger than most servers accept
	}
	a.opts.Codec = o.Protocol.Limits(a.opts.Codec)
	a.checks.PeerChecks = true
	a.checks.Snapshot = func() any {
		f := a.finding(a.now, a.frame.From)
		return &f
	}
	return a
}

// open records a new connection and returns it.
func (a *Auditor) open() *conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns++
	c := &conn{id: a.conns, streams: codec.Streams(a.opts.Protocol.NewSession(a.opts.Codec))}
	a.checks.Open(c.id)
	c.beyond = a.checks.Exceeded()
	a.behavior.Open(c.id, time.Since(a.begun))
	if a.keep {
		a.all = append(a.all, c)
	}
	return c
}

// observe checks bytes of one side. It must be called before they are forwarded, so that the auditor has seen
// everything that the receiver may know.
func (a *Auditor) observe(c *conn, from codec.Side, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Since(a.begun)
	c.lastSent[from].Store(-1)
	if from == codec.Server && len(c.early) > 0 && c.lost[from] == nil {
		if c.early = append(c.early, b...); len(c.early) > maxEarly {
			a.losesEarly(c)
		}
		return
	}
	complete := a.feed(c, from, b)
	if from == codec.Peer && complete && len(c.early) > 0 {
		early := c.early
		c.early = nil
		a.feed(c, codec.Server, early)
	}
	if a.frame.Reset(from); a.large {
		a.large = false
		debug.FreeOSMemory() // so that the buffers of two large messages do not exist at once
	}
}

// largeMessage is the size in bytes of a message whose memory is freed at once.
const largeMessage = 16 << 20

// losesEarly stops to follow the server, because the request that its messages may answer does not end.
func (a *Auditor) losesEarly(c *conn) {
	if n := len(c.early); n > 0 && c.lost[codec.Server] == nil {
		c.early = nil
		a.loses(c, codec.Server, earlyReply, n)
	}
}

// feed checks bytes of one side, and reports whether a message was complete.
func (a *Auditor) feed(c *conn, from codec.Side, b []byte) (complete bool) {
	if c.lost[from] != nil {
		c.lost[from].Bytes += len(b)
		return false
	}
	if from == codec.Peer {
		a.renew(c)
	}
	lost, last := "", 0
	for p := range c.streams[from].Feed(b, &a.frame) {
		switch p.Found {
		case codec.Skipped:
			continue
		case codec.Illegal:
			if from == codec.Server && len(c.streams[codec.Peer].Rest()) > 0 && !a.binary(p.Raw) {
				c.early = slices.Clone(p.Raw)
				break
			}
			a.frame.Raw, a.frame.From = p.Raw, from
			if a.message(c, from, p.Err); p.Err.Fatal {
				lost = endUnknown
			}
		default:
			a.message(c, from, nil)
		}
		complete = true
		a.large = a.large || len(p.Raw) >= largeMessage
		if last = len(p.Raw); lost != "" || from == codec.Server && len(c.early) > 0 {
			break
		}
	}
	switch rest := c.streams[from].Rest(); {
	case lost != "":
		a.loses(c, from, lost, last+len(rest))
	case from == codec.Server && len(c.early) > 0:
		c.early = append(c.early, rest...)
		c.streams[from].Resume()
	}
	return complete
}

// forwarded records that the bytes of the last call of observe were forwarded, so that the side can send more.
func (a *Auditor) forwarded(c *conn, from codec.Side) {
	c.lastSent[from].Store(time.Since(a.begun).Nanoseconds())
}

// message checks the message in a.frame.
func (a *Auditor) message(c *conn, from codec.Side, bad *codec.Error) {
	a.messages[from]++
	if t := a.frame.Type; t != nil {
		if c.shows(t, from); from == codec.Peer && t.Req&(t.Req-1) == 0 {
			a.roles |= t.Req
		}
		if a.keep && bad == nil {
			a.jobs.message(from, t, string(a.frame.Get(codec.JobID)))
		}
	}
	a.now = c
	if a.opts.Message != nil {
		a.opts.Message(a.actor(c), &a.frame, bad)
	}
	unsure, illegal := a.checks.Unsure(c.id)
	reason := repliesUnknown
	if illegal || !c.blame.Paired() {
		unsure, reason = unsure || !c.blame.Paired(), afterIllegal
	}
	own := bad == nil || a.origins.first(&a.frame, bad)
	if c.blame.Proved(a.opts.Protocol, &a.frame, bad) && bad != nil && own {
		a.report(a.finding(c, from), bad)
	}
	found := a.checks.Message(c.id, &a.frame, a.at.Nanoseconds(), bad)
	switch c.beyond = c.beyond || a.checks.Exceeded(); {
	case c.lost[from] != nil:
	case c.beyond:
		a.formOnly(c, from, beyondMemory)
	case unsure && c.lost == [2]*Unfollowed{} && !a.keep: // a fault profile may be what sends illegal messages to a driver
		a.formOnly(c, from, reason)
	}
	for i := range found {
		v := &found[i]
		f, earlier := v.Snapshot.(*Finding)
		if !earlier {
			here := a.finding(c, from)
			f = &here
		}
		a.report(*f, v.Err())
	}
	if c.lost == [2]*Unfollowed{} {
		a.behavior.Message(c.id, &a.frame, bad != nil, a.at)
	}
	if a.opts.Server && c.lost[codec.Server] == nil {
		c.pair(a.opts.Protocol, &a.frame, a.at, bad != nil)
	}
	c.remember(&a.frame, a.at)
}

// pair records a request, or the reply to one. An illegal message of unknown type may be the reply to any request.
func (c *conn) pair(p *codec.Protocol, f *codec.Frame, at time.Duration, illegal bool) {
	if f.From == codec.Server {
		if _, ok := c.requests.Reply(f.Type); !ok && illegal {
			c.requests.Forget()
		}
	} else if c.left = c.left || f.Type != nil && f.Type.Does == codec.Leave; c.left {
		return // the server closes the connection
	} else if r := c.requests.Add(f.Type); r != nil {
		r.Value = request{at: at, blocks: true}
		if f.Type == nil {
			return
		}
		does := p.Behavior(f)
		r.Value.name, r.Value.blocks = f.Type.Name, f.Blocks() || does != f.Type && does.Blocks != codec.Never
		if f.Type.AnyCommand {
			r.Value.name = string(f.Arg(0))
		}
	}
}

// unanswered reports the first request to which the server should have replied by now.
func (a *Auditor) unanswered(c *conn) {
	for i := range c.requests.Len() {
		r := c.requests.At(i)
		switch waited := a.at - r.Value.at; {
		case r.Value.blocks && r.Type.Ordered:
			return // the replies to all later requests wait, too
		case r.Value.blocks: // the reply may come later
		case waited >= slowReply:
			a.frame = codec.Frame{From: codec.Server} // no message shows the violation
			a.report(a.finding(c, codec.Server), &codec.Error{Rule: a.opts.Protocol.Answered,
				Detail: fmt.Sprintf("the server has not replied to %s for %v", r.Value.name, waited.Round(100*time.Millisecond))})
			return
		}
	}
}

// shows narrows the possible roles of the client or worker by a message on its connection.
func (c *conn) shows(t *codec.Type, from codec.Side) {
	set := t.Roles(from)
	if c.role&(c.role-1) == 0 && c.role != 0 {
		return
	}
	if c.role == 0 || c.role&set != 0 && set&^c.role == 0 {
		c.role = set
	}
}

// remember copies a message for later findings.
func (c *conn) remember(f *codec.Frame, at time.Duration) {
	r := &c.recent[c.next]
	c.next = (c.next + 1) % before
	if r.known = f.Type != nil && len(f.Raw) <= maxPastMessage; !r.known {
		return
	}
	r.at = at
	raw, spans := append(r.frame.Raw[:0], f.Raw...), append(r.frame.Spans[:0], f.Spans...)
	r.frame = *f
	r.frame.Raw, r.frame.Spans = raw, spans
}

// finding returns a finding for the message in a.frame, without its violation.
func (a *Auditor) finding(c *conn, from codec.Side) Finding {
	f := Finding{By: from, Conn: c.id, At: a.at, Frame: a.frame.Clone(), Role: a.roleName(c)}
	for i := range c.recent {
		if r := &c.recent[(c.next+i)%before]; r.known {
			f.Before = append(f.Before, r.frame.Clone())
		}
	}
	return f
}

// report adds a violation to the violations of its rule, keeps the first maxKept of each rule and side, and calls
// Options.Found. It ignores waived rules, and rules that the server violates unless Options.Server is set.
func (a *Auditor) report(f Finding, e *codec.Error) {
	if f.By == codec.Server && !a.opts.Server || slices.Contains(a.opts.Codec.Waive, e.Rule) {
		return
	}
	rule := a.opts.Protocol.Rule(e.Rule)
	if rule == nil {
		rule = &codec.Rule{ID: e.Rule, Level: codec.Must}
	}
	f.Err, f.Level = e, rule.Level
	k := slices.IndexFunc(a.broken, func(b *BrokenRule) bool { return b.Rule.ID == e.Rule && b.By == f.By })
	if k < 0 {
		k = len(a.broken)
		a.broken = append(a.broken, &BrokenRule{Rule: rule, By: f.By})
	}
	b := a.broken[k]
	if b.Count++; b.Count <= maxKept {
		b.First = append(b.First, f)
	}
	if a.opts.Found != nil {
		a.opts.Found(&f)
	}
}

// longPause is how long a side may pause in the middle of a message. After a longer pause, the message counts as
// incomplete when the connection ends, whichever side ends it.
const longPause = time.Second

// slowReply is how long the server may take for a reply. After a longer time, the request counts as unanswered when the
// connection ends.
const slowReply = 5 * time.Second

// ends records that a side has closed its direction, or reset the connection. itself is true if the
// side ended the connection, and false if the proxy did. It is a violation if a side ends the
// connection in the middle of a message before the other side has ended it, or if a side has not
// completed a message for a long time.
func (a *Auditor) ends(c *conn, from codec.Side, reset, itself bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Since(a.begun)
	a.losesEarly(c)
	for side := range codec.Server + 1 {
		s, quiet := &c.streams[side], c.lastSent[side].Load()
		idle := a.at - time.Duration(quiet)
		switch {
		case c.lost[side] != nil || c.cut[side] || c.ended[side] || len(s.Rest()) == 0:
			continue
		case quiet >= 0 && idle >= longPause:
		case side == from && itself && !c.ended[side.Other()]:
			idle = 0
		default:
			continue
		}
		c.cut[side] = true
		a.frame = codec.Frame{From: side, Raw: s.Rest()}
		a.report(a.finding(c, side), a.opts.Protocol.CutShort(len(s.Rest()), s.Need(), idle))
	}
	if c.lost == [2]*Unfollowed{} && !c.ended[codec.Peer] && !c.ended[codec.Server] && c.blame.Paired() {
		a.unanswered(c)
	}
	c.ended[from] = true
	a.behavior.End(c.id, from, itself, a.at)
	for _, v := range a.checks.End(c.id, from, reset, a.at.Nanoseconds()) { // about earlier messages
		if f, earlier := v.Snapshot.(*Finding); earlier {
			a.report(*f, v.Err())
		}
	}
}

// Report returns the findings so far.
func (a *Auditor) Report() *Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &Report{Protocol: a.opts.Protocol, Server: a.opts.Server, Took: time.Since(a.begun), Connections: a.conns,
		Messages: a.messages, Rules: a.checks.Rules(), Levels: a.opts.Levels, roles: a.roles,
		Behavior: a.behavior.Findings(time.Since(a.begun))}
	for _, b := range a.broken {
		c := *b
		r.BrokenRules = append(r.BrokenRules, c)
	}
	slices.SortStableFunc(r.BrokenRules, func(x, y BrokenRule) int { return cmp.Compare(x.By, y.By) })
	if a.outage != nil {
		o := *a.outage
		r.Outage = &o
	}
	for _, u := range a.unfollowed {
		r.Unfollowed = append(r.Unfollowed, *u)
	}
	return r
}

// origins contains the side that was the first to send an illegal value. A server that forwards the values of clients
// and workers unchanged, and a client that repeats the ID of a job, do not violate the rule again.
type origins map[illegalValue]codec.Side

// illegalValue is a value that violates a rule.
type illegalValue struct {
	rule  codec.RuleID
	field string
	hash  uint64
}

// maxOrigins is the largest number of illegal values that are remembered. Further ones are reported for both sides.
const maxOrigins = 1 << 16

var valueSeed = maphash.MakeSeed()

// first reports whether the other side has not sent the illegal value of a message before. If an argument is missing or
// there are too many, the value is the list of arguments.
func (o origins) first(f *codec.Frame, e *codec.Error) bool {
	n := len(f.Spans)
	if e.Fatal || f.Head == 0 || n < f.Head {
		return true
	}
	value := f.Raw[f.Spans[f.Head-1].Next:]
	if last := &f.Spans[n-1]; n > f.Head && last.Field.Name == e.Field && last.Off <= e.Offset && e.Offset <= last.End {
		value = f.Raw[last.Off:last.End]
	}
	v := illegalValue{e.Rule, e.Field, maphash.Bytes(valueSeed, value)}
	side, known := o[v]
	if !known && len(o) < maxOrigins {
		o[v] = f.From
	}
	return !known || side == f.From
}
