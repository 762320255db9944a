package judge

import (
	"bytes"
	"slices"

	"jobwire/codec"
)

// monkey judges GearMonkey: what a worker sends of the jobs that it took off a queue, a client
// of those that it has got an ID for, and the answers that name what was asked for. Redis
// itself serves others too, so that little else can be held against it.
type monkey struct{ *Judge }

// monkeyConn is what is known of a connection.
type monkeyConn struct {
	asked  []wish
	took   map[string]int  // by job: the last of the worker's steps
	made   map[string]int  // by job: the last of the client's steps
	loaded map[string]bool // hashes of scripts
}

// wish is a command that waits for its reply.
type wish struct{ typ, function, id string }

func newGearMonkey(j *Judge) court { return &monkey{j} }

func (m *monkey) join(c *conn) {
	c.mk = &monkeyConn{took: map[string]int{}, made: map[string]int{}, loaded: map[string]bool{}}
}

func (m *monkey) forget() {}

func (m *monkey) leave(*conn, codec.Side, bool) {}

func (m *monkey) broken(c *conn, _ *codec.Frame, _ codec.RuleID) { c.lose() }

// part is the place of a command in a job's life.
type part struct {
	step   int // of its worker, or of its client
	client bool
	rule   codec.RuleID // of the order
}

// steps are the commands that have their place in a job's life.
var steps = map[string]part{
	"HMSET_IDLE":     {step: 1, client: true, rule: "gearmonkey.create.order"},
	"PUBLISH_CREATE": {step: 2, client: true, rule: "gearmonkey.create.order"},
	"LPUSH_QUEUE":    {step: 3, client: true, rule: "gearmonkey.create.once"},
	"ZADD_SCHEDULED": {step: 3, client: true, rule: "gearmonkey.create.once"},

	"PUBLISH_START":  {step: 1, rule: "gearmonkey.receive.order"},
	"HMSET_BUSY":     {step: 2, rule: "gearmonkey.receive.order"},
	"HMSET_DONE":     {step: 3, rule: "gearmonkey.done.order"},
	"EXPIRE_JOB":     {step: 4, rule: "gearmonkey.done.order"},
	"PUBLISH_FINISH": {step: 5, rule: "gearmonkey.done.order"},
	"LPUSH_LOCK":     {step: 6, rule: "gearmonkey.done.order"},
	"EXPIRE_LOCK":    {step: 7, rule: "gearmonkey.done.order"},
}

// values are the arguments that have one value only.
var values = map[string]struct {
	field, want string
	rule        codec.RuleID
}{
	"EXPIRE_JOB":  {"Seconds", "90000", "gearmonkey.done.expire-job"},
	"LPUSH_LOCK":  {"Value", "OK", "gearmonkey.done.lock"},
	"EXPIRE_LOCK": {"Seconds", "10", "gearmonkey.done.lock-expires"},
}

// field returns an argument by its name.
func field(f *codec.Frame, name string) []byte {
	for i := range f.Spans {
		if f.Spans[i].Field.Name == name && !f.Spans[i].Field.Derived() {
			return f.Value(i)
		}
	}
	return nil
}

func (m *monkey) hear(c *conn, f *codec.Frame) {
	if !c.certain {
		return
	}
	w := wish{f.Type.Name, string(field(f, "Function")), string(field(f, "ID"))}
	if f.From == codec.Server {
		m.answers(c, &w, f)
		return
	}
	switch w.typ {
	case "command", "inline", "SUBSCRIBE_CHANNEL", "UNSUBSCRIBE_CHANNEL":
		if !plain(f) {
			c.lose()
			return
		}
	case "EVALSHA_SCHEDULED":
		if sha := bytes.ToLower(field(f, "SHA1")); len(c.mk.loaded) > 0 && !c.mk.loaded[string(sha)] {
			m.accuse(c, "gearmonkey.loop.script-sha1", "SHA1", "SCRIPT LOAD has answered with another one")
		}
	case "BRPOP_QUEUES":
		if string(field(f, "Timeout")) != "1" && len(c.mk.loaded) > 0 { // a worker's
			m.accuse(c, "gearmonkey.loop.brpop-timeout", "Timeout", "a worker waits one second")
		}
		// What has answered it is heard here before it is heard there.
		if m.Conduct && slices.ContainsFunc(c.mk.asked, func(a wish) bool { return a.typ == "EVALSHA_SCHEDULED" && a.function == w.function }) {
			m.accuse(c, "gearmonkey.loop.brpop-on-nil", "", "it has not been told whether a scheduled job is due")
		}
	}
	m.walks(c, &w, f)
	await(c, &c.mk.asked, w)
}

// plain reports whether a command of no row has one reply, as most have.
func plain(f *codec.Frame) bool {
	for i := range f.Spans {
		if fd := f.Spans[i].Field; !fd.Derived() {
			switch string(bytes.ToUpper(f.Value(i))) {
			case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR", "CLIENT", "HELLO", "RESET", "SYNC", "PSYNC":
				return false
			}
			return f.Type.Name == "command"
		}
	}
	return false
}

// walks judges a step in a job's life.
func (m *monkey) walks(c *conn, w *wish, f *codec.Frame) {
	s, ok := steps[w.typ]
	if !ok {
		return
	}
	of := c.mk.took
	if s.client {
		of = c.mk.made
	}
	key := w.function + ":" + w.id
	last, bound := of[key]
	if !bound { // whoever else does this may have reasons
		return
	}
	if v := values[w.typ]; v.field != "" && string(field(f, v.field)) != v.want {
		m.accuse(c, v.rule, v.field, "%s is due", v.want)
	}
	switch {
	case s.client && s.step < last:
		m.accuse(c, s.rule, "", "the job is further on already")
	case s.client && s.step == last && s.step == 3:
		m.accuse(c, s.rule, "", "the job was queued before")
	case !s.client && s.step < last:
		m.accuse(c, s.rule, "", "the job is further on already")
	}
	of[key] = max(last, s.step)
	if !s.client && s.step == 7 {
		delete(of, key)
	}
}

// bind notes that a connection is responsible for a job.
func bind(of map[string]int, key string) {
	if len(of) >= maxPerConn {
		clear(of)
	}
	of[key] = 0
}

// answers judges a reply.
func (m *monkey) answers(c *conn, w *wish, f *codec.Frame) {
	if w.typ == "EVENT" || w.typ == "SUBSCRIBED" || w.typ == "UNSUBSCRIBED" || len(c.mk.asked) == 0 {
		return
	}
	a := c.mk.asked[0]
	c.mk.asked = c.mk.asked[1:]
	switch w.typ {
	case "ID":
		bind(c.mk.made, a.function+":"+w.id)
	case "SHA1":
		if len(c.mk.loaded) < 64 {
			c.mk.loaded[string(bytes.ToLower(field(f, "SHA1")))] = true
		}
	case "UNLOCKED":
		if a.function != w.function || a.id != w.id {
			m.accuse(c, "gearmonkey.server.brpop", "Function", "the list of %s:%s was asked for", a.function, a.id)
		}
	case "POPPED", "DUE":
		if a.function != w.function {
			rule := codec.RuleID("gearmonkey.server.brpop")
			if w.typ == "DUE" {
				rule = "gearmonkey.server.evalsha-due"
			}
			m.accuse(c, rule, "Function", "the queues of %q were asked for", a.function)
		}
		bind(c.mk.took, w.function+":"+w.id)
	}
}
