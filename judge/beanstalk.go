package judge

import (
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
)

// beanstalkCourt judges Beanstalk, where a connection's commands are carried out and answered
// in their order: what a reply says holds from then on.
type beanstalkCourt struct {
	*Judge
	seed maphash.Seed
	jobs map[string]*beanstalkJob // by ID
}

// beanstalkJob is what is known of a job.
type beanstalkJob struct {
	put     bool // all of it is known, from the put
	tube    string
	body    uint64
	ttr     int64 // nanoseconds
	at      int64 // of the put
	seen    bool  // body is known, from a worker
	holder  *conn
	deleted int64 // when that was heard, 0 if it was not
}

// beanstalkConn is what is known of a connection.
type beanstalkConn struct {
	asked   []command
	used    string
	chose   bool // a tube to use
	watched map[string]bool
	ignored map[string]bool
	holds   map[string]*hold // by job ID
}

// hold is a reservation. The server made it between since and heard.
type hold struct {
	since, heard int64
	given        bool // the worker has asked to give it back
}

// command is a request that waits for its reply.
type command struct {
	name string // "" if nobody knows what the server makes of it
	arg  string // an ID or a tube
	n    int64  // a timeout or a bound
	put  beanstalkJob
	at   int64
	rule codec.RuleID // of the form that it breaks
}

func newBeanstalk(j *Judge) court {
	return &beanstalkCourt{Judge: j, seed: maphash.MakeSeed(), jobs: map[string]*beanstalkJob{}}
}

func (b *beanstalkCourt) join(c *conn) {
	c.bs = &beanstalkConn{used: "default", watched: map[string]bool{"default": true}, ignored: map[string]bool{}, holds: map[string]*hold{}}
}

func (b *beanstalkCourt) forget() { clear(b.jobs) }

func (b *beanstalkCourt) leave(c *conn, _ codec.Side, _ bool) {
	for id := range c.bs.holds {
		if job := b.jobs[id]; c.over && job != nil && job.holder == c {
			job.holder = nil
		}
	}
}

func (b *beanstalkCourt) broken(c *conn, f *codec.Frame, rule codec.RuleID) {
	if f.From == codec.Server { // requests and replies are not in step
		c.lose()
		return
	}
	a := command{at: b.at, rule: rule}
	if f.Type != nil && rule == protocol.RulePutCRLF {
		a.name = "put"
	}
	await(c, &c.bs.asked, a)
}

func (b *beanstalkCourt) hear(c *conn, f *codec.Frame) {
	if !c.certain {
		return
	}
	if f.From == codec.Peer {
		b.asks(c, f)
		return
	}
	if len(c.bs.asked) == 0 {
		return // the codec has said so
	}
	a := c.bs.asked[0]
	if c.bs.asked = c.bs.asked[1:]; a.name == "quit" {
		b.accuse(c, "beanstalk.quit.closes", "", "the connection was to be closed before this")
		if len(c.bs.asked) == 0 {
			return
		}
		a, c.bs.asked = c.bs.asked[0], c.bs.asked[1:]
	}
	if do := beanstalkDoes[f.Type.Name]; do != nil && a.name != "" {
		do(b, c, &a, f)
	}
	if a.rule != "" { // what else of it the server takes for commands nobody knows
		c.lose()
	}
}

// asks notes a command.
func (b *beanstalkCourt) asks(c *conn, f *codec.Frame) {
	a := command{name: f.Type.Name, at: b.at}
	if len(f.Type.Fields) > 0 {
		a.arg = string(f.Arg(0))
		n, err := strconv.ParseInt(a.arg, 10, 64)
		if a.n = n; err != nil {
			a.n = math.MaxInt64
		}
	}
	switch h := c.bs.holds[a.arg]; {
	case a.name == "put":
		ttr, _ := strconv.ParseInt(string(f.Arg(2)), 10, 64)
		a.put = beanstalkJob{put: true, body: b.sum(f.Arg(4)), ttr: max(1, ttr) * int64(time.Second), at: b.at}
	case h != nil && (a.name == "delete" || a.name == "release" || a.name == "bury"):
		h.given = true
	}
	await(c, &c.bs.asked, a)
}

func (b *beanstalkCourt) sum(v []byte) uint64 { return maphash.Bytes(b.seed, v) }

// beanstalkDoes is by the type of the reply.
var beanstalkDoes = map[string]func(*beanstalkCourt, *conn, *command, *codec.Frame){
	"INSERTED": (*beanstalkCourt).inserted, "BURIED_JOB": (*beanstalkCourt).inserted,
	"USING":    (*beanstalkCourt).using,
	"WATCHING": (*beanstalkCourt).watching, "NOT_IGNORED": (*beanstalkCourt).notIgnored, "list-reply": (*beanstalkCourt).list,
	"RESERVED": (*beanstalkCourt).reserved, "TIMED_OUT": (*beanstalkCourt).timedOut, "DEADLINE_SOON": (*beanstalkCourt).deadline,
	"DELETED": (*beanstalkCourt).deletes, "RELEASED": (*beanstalkCourt).gives, "BURIED": (*beanstalkCourt).gives, "TOUCHED": (*beanstalkCourt).gives,
	"NOT_FOUND": (*beanstalkCourt).notFound, "FOUND": (*beanstalkCourt).found,
	"KICKED": func(b *beanstalkCourt, c *conn, a *command, f *codec.Frame) {
		if n, err := strconv.ParseInt(string(f.Arg(0)), 10, 64); err == nil && n > a.n {
			b.accuse(c, "beanstalk.kick.bound", "Count", "at most %d were to be kicked", a.n)
		}
	},
	"stats-reply": (*beanstalkCourt).stats,
}

func (b *beanstalkCourt) inserted(c *conn, a *command, f *codec.Frame) {
	if a.rule != "" {
		b.accuse(c, "beanstalk.put.expected-crlf", "", "the body was not followed by CR LF")
		return
	}
	id := string(f.Arg(0))
	job := b.job(id)
	switch {
	case job.put:
		b.accuse(c, "beanstalk.job.id-unique", "Job ID", "another job has, or had, this ID")
		return
	case job.seen && job.body != a.put.body:
		b.accuse(c, "beanstalk.body.verbatim", "Job ID", "a worker was given this job with another body")
	}
	holder, deleted := job.holder, job.deleted
	*job = a.put
	job.tube, job.holder, job.deleted = c.bs.used, holder, deleted
}

// job returns what is known of a job. Where there are too many all are forgotten.
func (b *beanstalkCourt) job(id string) *beanstalkJob {
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

func (b *beanstalkCourt) using(c *conn, a *command, f *codec.Frame) {
	tube := string(f.Arg(0))
	switch {
	case a.name == "use" && tube != a.arg:
		b.accuse(c, "beanstalk.use.using", "Tube", "%q was to be used", a.arg)
	case a.name == "list-tube-used" && tube != c.bs.used && c.bs.chose:
		b.accuse(c, "beanstalk.list.used", "Tube", "the connection uses %q", c.bs.used)
	case a.name == "list-tube-used" && tube != c.bs.used:
		b.accuse(c, "beanstalk.tube.default-used", "Tube", "the connection has not chosen a tube")
	}
	c.bs.used, c.bs.chose = tube, c.bs.chose || a.name == "use"
}

func (b *beanstalkCourt) watching(c *conn, a *command, f *codec.Frame) {
	w := c.bs.watched
	was, rule := w[a.arg], codec.RuleID("beanstalk.watch.watching")
	switch {
	case a.name == "watch":
		if w[a.arg] = true; was {
			rule = "beanstalk.watch.twice"
		}
		delete(c.bs.ignored, a.arg)
	case was && len(w) == 1:
		b.accuse(c, "beanstalk.ignore.last", "", "it is the only tube that is watched")
		return
	default:
		if rule = "beanstalk.ignore.watching"; !was {
			rule = "beanstalk.ignore.not-watched"
		}
		delete(w, a.arg)
		c.bs.ignored[a.arg] = true
	}
	if len(w)+len(c.bs.ignored) > maxPerConn {
		c.lose()
	}
	if string(f.Arg(0)) != strconv.Itoa(len(w)) {
		b.accuse(c, rule, "Count", "%d tubes are watched", len(w))
	}
}

func (b *beanstalkCourt) notIgnored(c *conn, a *command, _ *codec.Frame) {
	switch {
	case !c.bs.watched[a.arg]:
		b.accuse(c, "beanstalk.ignore.not-watched", "", "the tube is not watched")
	case len(c.bs.watched) > 1:
		b.accuse(c, "beanstalk.ignore.watching", "", "%d tubes are watched", len(c.bs.watched))
	}
}

func (b *beanstalkCourt) list(c *conn, a *command, f *codec.Frame) {
	if a.name != "list-tubes-watched" {
		return
	}
	n := 0
	for i := range f.Spans {
		if f.Spans[i].Field.Name == "Tube" {
			if n++; !c.bs.watched[string(f.Value(i))] {
				b.accuse(c, "beanstalk.list.watched", "Tube", "%q is not watched", f.Value(i))
				return
			}
		}
	}
	if n != len(c.bs.watched) {
		b.accuse(c, "beanstalk.list.watched", "", "%d tubes are watched", len(c.bs.watched))
	}
}

func (b *beanstalkCourt) timedOut(c *conn, a *command, _ *codec.Frame) {
	switch {
	case c.over:
	case a.name == "reserve":
		b.accuse(c, "beanstalk.reserve.blocks", "", "the reserve has no timeout")
	case a.n < 0:
		b.accuse(c, "beanstalk.reserve.timeout-negative", "", "a negative timeout is none")
	case b.at-a.at < min(a.n, 1<<32)*int64(time.Second):
		b.accuse(c, "beanstalk.reserve.timeout-expires", "", "only %v have passed of %d seconds", time.Duration(b.at-a.at), a.n)
	}
}

func (b *beanstalkCourt) deadline(c *conn, _ *command, _ *codec.Frame) {
	least := int64(math.MaxInt64)
	for id, h := range c.bs.holds {
		least = min(least, b.left(b.jobs[id], h))
	}
	switch {
	case len(c.bs.holds) == 0:
		b.accuse(c, "beanstalk.deadline-soon.own-jobs", "", "the connection has reserved nothing")
	case least > int64(time.Second):
		b.accuse(c, "beanstalk.deadline-soon.not-earlier", "", "every job of the connection has another %v", time.Duration(least))
	}
}

func (b *beanstalkCourt) deletes(c *conn, a *command, _ *codec.Frame) {
	job := b.job(a.arg)
	if old := job.holder; old != nil && old != c {
		if h := old.bs.holds[a.arg]; h != nil && h.heard < a.at && b.left(job, h) > 0 {
			b.suspect(c, "beanstalk.delete.others-job", "", held(a.arg), []*conn{old}, "connection %d has reserved job %s", old.id, a.arg)
		}
	}
	if job.deleted != 0 && job.deleted < a.at {
		b.accuse(c, "beanstalk.delete.not-found", "", "job %s was deleted before", a.arg)
	}
	job.deleted = b.at
	delete(c.bs.holds, a.arg)
	if job.holder == c {
		job.holder = nil
	}
}

// given are the rules of commands that need a reservation: where there is none, and where
// there is.
var given = map[string][2]codec.RuleID{
	"delete":  {"", "beanstalk.delete.reserved"},
	"release": {"beanstalk.release.not-found", "beanstalk.release.released"},
	"bury":    {"beanstalk.bury.not-found", "beanstalk.bury.buried"},
	"touch":   {"beanstalk.touch.not-found", "beanstalk.touch.touched"},
}

func (b *beanstalkCourt) gives(c *conn, a *command, f *codec.Frame) {
	h := c.bs.holds[a.arg]
	if h == nil {
		b.accuse(c, given[a.name][0], "", "the connection has not reserved job %s", a.arg)
		return
	}
	if a.name == "touch" {
		h.since, h.heard = max(h.since, a.at), b.at
		return
	}
	delete(c.bs.holds, a.arg)
	if job := b.jobs[a.arg]; job != nil && job.holder == c {
		job.holder = nil
	}
}

func (b *beanstalkCourt) notFound(c *conn, a *command, _ *codec.Frame) {
	if h := c.bs.holds[a.arg]; h != nil && given[a.name][1] != "" {
		if b.left(b.jobs[a.arg], h) > 0 {
			b.accuse(c, given[a.name][1], "", "the connection has reserved job %s", a.arg)
		}
		delete(c.bs.holds, a.arg)
	}
}

func (b *beanstalkCourt) found(c *conn, a *command, f *codec.Frame) {
	job := b.job(string(f.Arg(0)))
	b.body(c, job, a, f)
	switch {
	case a.name == "peek" && string(f.Arg(0)) != a.arg:
		b.accuse(c, "beanstalk.peek.by-id", "Job ID", "job %s was asked for", a.arg)
	case a.name != "peek" && job.put && job.tube != c.bs.used:
		b.accuse(c, "beanstalk.peek.used-tube", "Job ID", "it is in tube %q, and %q is used", job.tube, c.bs.used)
	}
}

// stats judges what is asked for by name.
func (b *beanstalkCourt) stats(c *conn, a *command, f *codec.Frame) {
	job := b.jobs[a.arg]
	for i := 1; i < len(f.Spans); i++ {
		if f.Spans[i].Field.Name != "Value" {
			continue
		}
		key, value := string(f.Value(i-1)), string(f.Value(i))
		switch {
		case a.name == "stats-job" && key == "id" && value != a.arg:
			b.accuse(c, "beanstalk.stats-job.id", "Value", "job %s was asked for", a.arg)
		case a.name == "stats-job" && key == "tube" && job != nil && job.put && unquoted(value) != job.tube:
			b.accuse(c, "beanstalk.stats-job.tube", "Value", "it was put into %q", job.tube)
		case a.name == "stats-job" && key == "state" && !slices.Contains([]string{"ready", "delayed", "reserved", "buried"}, unquoted(value)):
			b.accuse(c, "beanstalk.stats-job.state", "Value", "there is no such state")
		case a.name == "stats-tube" && key == "name" && unquoted(value) != a.arg:
			b.accuse(c, "beanstalk.stats-tube.name", "Value", "tube %q was asked for", a.arg)
		}
	}
}

// unquoted takes the quotes off a YAML scalar.
func unquoted(v string) string {
	if n := len(v); n > 1 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
		return v[1 : n-1]
	}
	return v
}
