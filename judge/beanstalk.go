package judge

import (
	"math"
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
)

// beanstalkChecker checks Beanstalk. The server executes the commands of a connection in order and replies in the same
// order, so a command has taken effect when its reply is captured.
type beanstalkChecker struct {
	*Monitor
	jobs     map[string]*beanstalkJob // by job ID
	putSeen  bool                     // at least one job was put
	reserved bool                     // at least one job was reserved
	tube     string                   // tube of the first job
	several  bool                     // jobs were put into several tubes
}

// beanstalkJob contains what is known about a job.
type beanstalkJob struct {
	put     bool // the put command was captured, so all fields are known
	tube    string
	body    uint64
	ttr     time.Duration
	at      int64 // time of the put
	seen    bool  // body is known from a reply of the server
	holder  *beanstalkConn
	deleted int64 // time at which the deletion was captured; 0: not deleted
}

// beanstalkConn contains what is known about a connection.
type beanstalkConn struct {
	*Conn
	b            *beanstalkChecker
	pending      []command
	tube         string
	otherTube    string // the tube that the connection may use instead, or ""
	sentUse      bool   // the client has sent use
	watched      map[string]bool
	ignored      map[string]bool         // tubes without new jobs since the server replied to ignore
	reservations map[string]*reservation // by job ID
	deleted      recent                  // IDs of the jobs that the connection has deleted
}

// reservation is a reservation of a job. The server made it between the times since and seen.
type reservation struct {
	since, seen int64
	given       bool // the client has sent a command that ends the reservation
}

// command is a request that waits for its reply.
type command struct {
	typ  *codec.Type // message type; nil if it is unknown how the server interprets the request
	arg  string      // a job ID or a tube
	n    int64       // a timeout in seconds or the bound of a kick
	put  beanstalkJob
	at   int64
	rule codec.RuleID // rule of the message format that the request violates, or ""
}

// Beanstalk returns a checker of Beanstalk.
func Beanstalk(m *Monitor) Checker {
	m.Declare(codec.Peer, 0, "client.own-jobs")
	m.Declare(codec.Server, 0, `put.expected-crlf job.id-unique body.verbatim job.exclusive tube.separate delete.gone
		delete.others-job delete.not-found use.using list.used tube.default-used watch.watching watch.twice ignore.watching
		ignore.no-more-jobs ignore.last ignore.not-watched list.watched reserve.timeout-expires reserve.blocks
		reserve.timeout-negative deadline-soon.own-jobs deadline-soon.not-earlier delete.reserved release.released
		release.not-found bury.buried bury.not-found touch.touched touch.not-found reserve-job.reserved peek.by-id
		peek.used-tube kick.bound stats-job.id stats-job.tube stats-job.state stats-tube.name quit.closes`)
	return &beanstalkChecker{Monitor: m, jobs: map[string]*beanstalkJob{}}
}

func (b *beanstalkChecker) Open(c *Conn) Conversation {
	return &beanstalkConn{Conn: c, b: b, tube: protocol.Protocol.DefaultQueue,
		watched: map[string]bool{protocol.Protocol.DefaultQueue: true},
		ignored: map[string]bool{}, reservations: map[string]*reservation{}}
}

func (b *beanstalkChecker) Reset() {
	*b = beanstalkChecker{Monitor: b.Monitor, jobs: map[string]*beanstalkJob{}}
}

func (b *beanstalkChecker) Size() int { return 2 * len(b.jobs) }

func (c *beanstalkConn) Size() int {
	return 2*len(c.pending) + len(c.watched) + len(c.ignored) + len(c.reservations) + len(c.deleted.names)
}

// End implements Conversation: it checks that the server closes the connection after quit, and ends the reservations of
// a client that has disconnected.
func (c *beanstalkConn) End(from codec.Side, _ bool) {
	if from == codec.Server && len(c.pending) > 0 && c.pending[0].does() == codec.Leave {
		c.Pass("beanstalk.quit.closes")
	}
	for id := range c.reservations {
		if job := c.b.jobs[id]; c.PeerClosed() && job != nil && job.holder == c {
			job.holder = nil
		}
	}
}

// does returns the effect of the command, or NoEffect if its type is unknown.
func (a *command) does() codec.Effect {
	if a.typ == nil {
		return codec.NoEffect
	}
	return a.typ.Does
}

// endsReservation reports whether the command ends the reservation of its job.
func (a *command) endsReservation() bool {
	does := a.does()
	return does == codec.Delete || does == codec.Release || does == codec.Bury
}

// Invalid implements Conversation. An illegal command stays in the list of pending commands, because the server replies
// to it with an error.
func (c *beanstalkConn) Invalid(f *codec.Frame, rule codec.RuleID) {
	if f.From == codec.Server { // from here on, it is unknown to which requests replies belong
		c.Stop()
		return
	}
	a := command{at: c.b.at, rule: rule}
	if rule == protocol.RulePutCRLF {
		a.typ = f.Type
	}
	c.pending = append(c.pending, a)
}

// Message implements Conversation: it stores each command of the client, and checks each reply against the oldest
// command that has no reply yet. After quit there must be no reply. After the reply to an illegal command, it stops
// checking the connection.
func (c *beanstalkConn) Message(f *codec.Frame) {
	if !c.Complete() {
		return
	}
	if f.From == codec.Peer {
		c.command(f)
		return
	}
	if len(c.pending) == 0 {
		return // the codec reports a reply without a request
	}
	a := c.pending[0]
	if c.pending = after(c.pending, 1); a.does() == codec.Leave {
		c.Check("beanstalk.quit.closes", false, "",
			"expected the server to close the connection after quit without a reply, got a reply")
		if len(c.pending) == 0 {
			return
		}
		a, c.pending = c.pending[0], after(c.pending, 1)
	}
	if a.typ != nil {
		c.replies(&a, f)
	}
	if a.rule != "" { // it is unknown whether the server interprets some bytes of the request as commands
		c.Stop()
	}
}

// command records a command of the client and checks it.
func (c *beanstalkConn) command(f *codec.Frame) {
	b := c.b
	a := command{typ: f.Type, at: b.at}
	switch t := f.Type; {
	case t.Does == codec.Submit:
		a.put = beanstalkJob{put: true, body: b.Hash(f.Get(codec.Payload)),
			ttr: max(time.Second, f.Duration(codec.TimeLimit)), at: b.at}
	case t.Has(codec.JobID):
		a.arg = b.id(f)
		c.ownJob(t, a.arg)
		if r := c.reservations[a.arg]; r != nil && a.endsReservation() {
			r.given = true
		}
	case t.Does == codec.Leave: // the server releases the reserved jobs of the connection
		for _, r := range c.reservations {
			r.given = true
		}
	case t.Has(codec.Queue):
		a.arg = b.Name(f.Get(codec.Queue))
	case len(t.Fields) > 0:
		n, err := strconv.ParseInt(string(f.Arg(0)), 10, 64)
		if a.n = n; err != nil {
			a.n = math.MaxInt64
		}
	}
	c.pending = append(c.pending, a)
}

// replies checks the reply to a command.
func (c *beanstalkConn) replies(a *command, f *codec.Frame) {
	t := f.Type
	switch does := a.typ.Does; {
	case t.Name == "NOT_FOUND":
		c.notFound(a)
	case t.Name == "NOT_IGNORED":
		switch n := len(c.watched); {
		case !c.watched[a.arg]:
			c.Check("beanstalk.ignore.not-watched", false, "",
				"expected the reply WATCHING, because the connection does not watch the tube that the request names")
		case n > 1:
			c.Check("beanstalk.ignore.watching", false, "",
				"expected the reply WATCHING, because the connection watches %d tubes", n)
		default:
			c.Pass("beanstalk.ignore.last")
		}
	case t.Does == codec.Refuse:
		if a.rule != "" {
			c.Pass("beanstalk.put.expected-crlf")
		}
		// the command has failed, so the reservation has not ended
		if r := c.reservations[a.arg]; r != nil && a.endsReservation() {
			r.given = c.gives(a.arg)
		}
	case does == codec.Submit:
		c.inserted(a, f)
	case does == codec.Register || does == codec.Unregister:
		c.watching(a, f)
	case does == codec.Ask:
		c.reply(a, f)
	case does == codec.Delete:
		c.deletes(a)
	case does == codec.Release || does == codec.Bury || does == codec.Touch:
		c.releases(a)
	case does == codec.Kick && len(t.Fields) > 0:
		n, err := strconv.ParseInt(string(f.Arg(0)), 10, 64)
		c.Check("beanstalk.kick.bound", err != nil || n <= a.n, "Count", "expected at most %d kicked jobs, got more", a.n)
	case t.Has(codec.JobID):
		c.found(a, f)
	case t.Has(codec.Queue) && len(t.Repeat) == 0:
		c.using(a, f)
	case a.typ.Name == "list-tubes-watched" && t.Has(codec.Queue):
		c.list(f) // beanstalk.list.watched
	case len(t.Repeat) > 0:
		c.stats(a, f)
	}
}

// inserted checks the reply INSERTED to a put, and records the job: its ID must be new, and a body that a worker has
// already received for this ID must be the body of the put.
func (c *beanstalkConn) inserted(a *command, f *codec.Frame) {
	if !c.Check("beanstalk.put.expected-crlf", a.rule == "", "",
		"expected the reply EXPECTED_CRLF, because the client did not send CR LF after the body of the put") {
		return
	}
	b := c.b
	job := b.job(b.id(f))
	if (b.putSeen || job.put) && !c.Check("beanstalk.job.id-unique", !job.put, "Job ID",
		"expected a new job ID in the reply to put, got the ID of another job") {
		return
	}
	b.putSeen = true
	if job.seen {
		c.Check("beanstalk.body.verbatim", job.body == a.put.body, "Job ID",
			"expected the server to return the body that the client put, but a worker received another body for this job")
	}
	holder, deleted := job.holder, job.deleted
	*job = a.put
	job.tube, job.holder, job.deleted = c.tube, holder, deleted
	if c.otherTube != "" { // only the body is known
		job.put, job.seen = false, true
	}
	if b.tube == "" {
		b.tube = job.tube
	}
	b.several = b.several || job.tube != b.tube
}

// id returns the job ID in a message, without leading zeros.
func (b *beanstalkChecker) id(f *codec.Frame) string {
	id := f.Get(codec.JobID)
	for len(id) > 1 && id[0] == '0' {
		id = id[1:]
	}
	return b.Name(id)
}

// job returns what is known about a job. If too many jobs are stored, it first removes all of them.
func (b *beanstalkChecker) job(id string) *beanstalkJob {
	job := b.jobs[id]
	if job == nil {
		if len(b.jobs) >= maxJobs {
			clear(b.jobs)
		}
		job = &beanstalkJob{}
		b.jobs[id] = job
	}
	return job
}

// using checks a reply that names the used tube. After a violation, the connection uses the expected tube or the one
// that the server named.
func (c *beanstalkConn) using(a *command, f *codec.Frame) {
	tube, use := c.b.Name(f.Get(codec.Queue)), a.typ.Does == codec.Use
	if use {
		c.tube, c.otherTube, c.sentUse = a.arg, "", true
	}
	ok := tube == c.tube || tube == c.otherTube
	switch {
	case use:
		c.Check("beanstalk.use.using", ok, "Tube", "expected the tube that the request names, %q", a.arg)
	case c.sentUse:
		c.Check("beanstalk.list.used", ok, "Tube", "expected the tube %q, which the connection uses", c.tube)
	default:
		c.Check("beanstalk.tube.default-used", ok, "Tube",
			"expected the tube \"default\", because the client has sent no use command")
	}
	if !ok {
		c.otherTube = tube
	}
}

// watching checks the reply WATCHING to watch or ignore, and updates the tubes that the connection watches.
func (c *beanstalkConn) watching(a *command, f *codec.Frame) {
	tube := a.arg
	watched := c.watched[tube]
	var rule codec.RuleID
	switch {
	case a.typ.Does == codec.Register:
		rule = "beanstalk.watch.watching"
		if watched {
			rule = "beanstalk.watch.twice"
		}
		c.watched[tube] = true
		delete(c.ignored, tube)
	case watched && len(c.watched) == 1: // the last tube cannot be ignored
		c.Check("beanstalk.ignore.last", false, "",
			"expected the reply NOT_IGNORED, because the connection watches no other tube")
		return
	default:
		rule = "beanstalk.ignore.watching"
		if !watched {
			rule = "beanstalk.ignore.not-watched"
		}
		delete(c.watched, tube)
		c.ignored[tube] = true
	}
	n := len(c.watched)
	c.Check(rule, string(f.Arg(0)) == strconv.Itoa(n), "Count", "expected the number of watched tubes, %d", n)
}

// list checks the reply to list-tubes-watched: it must contain exactly the tubes that the connection watches.
func (c *beanstalkConn) list(f *codec.Frame) {
	const rule = "beanstalk.list.watched"
	n := 0
	for i := range f.Spans {
		if f.Spans[i].Field.Means == codec.Queue {
			if n++; !c.watched[c.b.Name(f.Value(i))] {
				c.Check(rule, false, "Tube", "the list contains the tube %q, which the connection does not watch", f.Value(i))
				return
			}
		}
	}
	c.Check(rule, n == len(c.watched), "", "expected a list of the %d tubes that the connection watches, got a list of "+
		"another length", len(c.watched))
}

// stats checks the statistics in a reply.
func (c *beanstalkConn) stats(a *command, f *codec.Frame) {
	job, aboutJob := c.b.jobs[a.arg], a.typ.Has(codec.JobID)
	for i := 0; len(f.Type.Repeat) > 1 && f.Arg(i) != nil; i += 2 {
		key, value := string(f.Arg(i)), string(f.Arg(i+1))
		switch {
		case aboutJob && key == "id":
			c.Check("beanstalk.stats-job.id", value == a.arg, "Value", "expected job %s, which the request names", a.arg)
		case aboutJob && key == "tube" && job != nil && job.put:
			c.Check("beanstalk.stats-job.tube", value == job.tube, "Value", "expected the tube %q, into which the job was put",
				job.tube)
		case aboutJob && key == "state":
			c.Check("beanstalk.stats-job.state", slices.Contains([]string{"ready", "delayed", "reserved", "buried"}, value),
				"Value", "expected ready, delayed, reserved or buried")
		case a.typ.Has(codec.Queue) && key == "name":
			c.Check("beanstalk.stats-tube.name", value == a.arg, "Value", "expected the tube %q, which the request names", a.arg)
		}
	}
}
