package judge

import (
	"bytes"
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

// gearMonkeyChecker checks GearMonkey: the commands of workers about jobs that they have taken from a queue, the
// commands of clients about jobs whose IDs they have received, and replies that repeat a name in the request. A Redis
// server also serves other programs, so the checker can check little else.
type gearMonkeyChecker struct{ *Monitor }

// gearMonkeyConn contains what is known about a connection.
type gearMonkeyConn struct {
	*Conn
	m        *gearMonkeyChecker
	pending  []redisCommand
	lastStep map[string]int  // last step of the worker, by job
	made     map[string]int  // last step of the client, by job
	loaded   map[string]bool // hashes of loaded scripts
}

// redisCommand is a command that waits for its reply.
type redisCommand struct {
	typ       *codec.Type
	queue, id string
}

// GearMonkey returns a checker of GearMonkey.
func GearMonkey(m *Monitor) Checker {
	m.Declare(codec.Peer, protocol.Client|protocol.Operator, "create.order create.once")
	m.Declare(codec.Peer, protocol.Worker|protocol.Operator, `receive.order done.order done.expire-job done.lock
		done.lock-expires loop.script-sha1 loop.brpop-timeout loop.brpop-on-nil`)
	m.Declare(codec.Server, 0, "server.brpop server.evalsha-due")
	return &gearMonkeyChecker{m}
}

func (m *gearMonkeyChecker) Open(c *Conn) Conversation {
	return &gearMonkeyConn{Conn: c, m: m, lastStep: map[string]int{}, made: map[string]int{}, loaded: map[string]bool{}}
}

func (m *gearMonkeyChecker) Reset() {}

func (m *gearMonkeyChecker) Size() int { return 0 }

func (c *gearMonkeyConn) Size() int {
	return len(c.pending) + len(c.lastStep) + len(c.made) + len(c.loaded)
}

func (c *gearMonkeyConn) End(codec.Side, bool) {}

func (c *gearMonkeyConn) Invalid(*codec.Frame, codec.RuleID) { c.Stop() }

// step is the place of a command in the sequence of commands about one job.
type step struct {
	n      int // position in the sequence of the worker or of the client
	client bool
	order  codec.RuleID // rule about the order of the commands

	value codec.RuleID // ID of the rule that requires the last argument to be want; "" if no rule does
	want  string
}

// steps maps the commands about jobs to their places.
var steps = map[string]step{
	"HMSET_IDLE":     {n: 1, client: true, order: "gearmonkey.create.order"},
	"PUBLISH_CREATE": {n: 2, client: true, order: "gearmonkey.create.order"},
	"LPUSH_QUEUE":    {n: 3, client: true, order: "gearmonkey.create.once"},
	"ZADD_SCHEDULED": {n: 3, client: true, order: "gearmonkey.create.once"},

	"PUBLISH_START":  {n: 1, order: "gearmonkey.receive.order"},
	"HMSET_BUSY":     {n: 2, order: "gearmonkey.receive.order"},
	"HMSET_DONE":     {n: 3, order: "gearmonkey.done.order"},
	"EXPIRE_JOB":     {n: 4, order: "gearmonkey.done.order", value: "gearmonkey.done.expire-job", want: "90000"},
	"PUBLISH_FINISH": {n: 5, order: "gearmonkey.done.order"},
	"LPUSH_LOCK":     {n: 6, order: "gearmonkey.done.order", value: "gearmonkey.done.lock", want: "OK"},
	"EXPIRE_LOCK":    {n: 7, order: "gearmonkey.done.order", value: "gearmonkey.done.lock-expires", want: "10"},
}

// hash returns the argument that is the hash of a script, or nil.
func hash(f *codec.Frame) []byte {
	for i := range f.Spans {
		if fd := f.Spans[i].Field; fd.Rule == protocol.RuleSHA1 && !fd.Derived() {
			return bytes.ToLower(f.Value(i))
		}
	}
	return nil
}

// Message implements Conversation: it checks the commands of clients and workers and stores them until their replies
// arrive. After a command that has more than one reply, or none, it is unknown to which command a reply belongs, so it
// stops checking the connection.
func (c *gearMonkeyConn) Message(f *codec.Frame) {
	if !c.Complete() {
		return
	}
	cmd := redisCommand{f.Type, c.m.Name(f.Get(codec.Queue)), c.m.Name(f.Get(codec.JobID))}
	if f.From == codec.Server {
		c.replies(&cmd, f)
		return
	}
	switch sha := hash(f); {
	case !oneReply(f):
		c.Stop()
		return
	case f.Type.Does != codec.Ask:
	case sha != nil:
		if len(c.loaded) > 0 {
			c.Check("gearmonkey.loop.script-sha1", c.loaded[string(sha)], "SHA1",
				"expected the SHA1 that the server sent in reply to SCRIPT LOAD, got another SHA1")
		}
	default:
		if len(c.loaded) > 0 { // only workers load scripts
			c.Check("gearmonkey.loop.brpop-timeout", string(f.Get(codec.Timeout)) == "1", "Timeout",
				"expected a timeout of one second")
		}
		// A reply is captured before the worker receives it.
		if c.m.PeerChecks {
			asks := func(a redisCommand) bool { return a.typ.Has(codec.Clock) && a.queue == cmd.queue }
			c.Check("gearmonkey.loop.brpop-on-nil", !slices.ContainsFunc(c.pending, asks), "",
				"the worker sent BRPOP before it received the reply to EVALSHA, so it did not know whether a scheduled job is "+
					"eligible")
		}
	}
	c.checkCommand(&cmd, f)
	c.pending = append(c.pending, cmd)
}

// oneReply reports whether a command has exactly one reply.
func oneReply(f *codec.Frame) bool {
	if !f.Type.AnyCommand {
		return !slices.ContainsFunc(f.Type.Answers, func(t *codec.Type) bool { return t.Push })
	}
	switch string(bytes.ToUpper(f.Arg(0))) {
	case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR", "CLIENT",
		"HELLO", "RESET", "SYNC", "PSYNC":
		return false
	}
	return len(f.Type.Repeat) > 0 // an inline command may have several replies
}

// checkCommand checks a command about a job.
func (c *gearMonkeyConn) checkCommand(cmd *redisCommand, f *codec.Frame) {
	s, ok := steps[cmd.typ.Name]
	if !ok {
		return
	}
	lastSteps := c.lastStep
	if s.client {
		lastSteps = c.made
	}
	key := cmd.queue + ":" + cmd.id
	last, known := lastSteps[key]
	if !known { // another program may use this job with other commands
		return
	}
	if s.value != "" {
		i := len(f.Spans) - 1
		c.Check(s.value, string(f.Value(i)) == s.want, f.Spans[i].Field.Name, "expected %s", s.want)
	}
	if c.Check(s.order, s.n >= last, "", "expected this command before later commands about the same job, got it after "+
		"them") && s.client && s.n == 3 {
		c.Check(s.order, last < 3, "", "the client queued a job that it has already queued")
	}
	lastSteps[key] = max(last, s.n)
	if !s.client && s.n == 7 {
		delete(lastSteps, key)
	}
}

// addResponsibility records that the peer is responsible for a job.
func addResponsibility(of map[string]int, key string) {
	if len(of) >= maxNames {
		clear(of)
	}
	of[key] = 0
}

// replies checks the reply to the first pending command.
func (c *gearMonkeyConn) replies(cmd *redisCommand, f *codec.Frame) {
	t := cmd.typ
	if t.Push || len(c.pending) == 0 {
		return
	}
	a := c.pending[0]
	c.pending = after(c.pending, 1)
	switch sha := hash(f); {
	case t.Does == codec.Assign:
		rule := codec.RuleID("gearmonkey.server.brpop")
		if !t.Has(codec.PriorityOf) { // the value is a scheduled job
			rule = "gearmonkey.server.evalsha-due"
		}
		c.Check(rule, a.queue == cmd.queue, "Function", "expected a queue of the function %q, which the request names",
			a.queue)
		addResponsibility(c.lastStep, cmd.queue+":"+cmd.id)
	case t.Does == codec.Complete:
		c.Check("gearmonkey.server.brpop", a.queue == cmd.queue && a.id == cmd.id, "Function",
			"expected the lock list of function %q and job ID %q, which the request names", a.queue, a.id)
	case sha != nil:
		if len(c.loaded) < 64 {
			c.loaded[string(sha)] = true
		}
	case t.Has(codec.JobID):
		addResponsibility(c.made, a.queue+":"+cmd.id)
	}
}
