package gearmonkey

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// expiries are the keys that expire. In miniredis the time is always the machine's epoch, so it keeps every
// deadline and expires nothing. So the keys need not be scanned as time passes.
type expiries struct {
	heap  heap[*expiry]
	of    map[key]*expiry
	limit int // number of entries at which unused ones are removed
}

// expiry is the time at which a key is checked. It may be too early, because it does not change when the
// deadline of the key changes.
type expiry struct {
	key   key
	place int
}

func (e *expiry) moved(place int) { e.place = place }

func (x *expiries) init() {
	x.of = map[key]*expiry{}
	x.limit = leastLimit
}

// leastLimit is the number of entries below which unused ones are not removed.
const leastLimit = 1024

// expire deletes the keys whose deadlines have passed. Redis keeps a key to the end of its last millisecond.
func (m *Machine) expire(now time.Time) {
	x := &m.expiries
	for e, at := x.heap.first(); e != nil && at < now.UnixMilli(); e, at = x.heap.first() {
		x.drop(e)
		if at, ok := m.deadline(e.key); ok && at < now.UnixMilli() {
			m.redis.DB(e.key.db).Del(e.key.name)
		} else if ok {
			x.add(e.key, at)
		}
	}
	if len(x.of) > x.limit {
		for k, e := range x.of {
			if _, ok := m.deadline(k); !ok {
				x.drop(e)
			}
		}
		x.limit = max(leastLimit, 2*len(x.of))
	}
}

// add makes expire check the key at the time at, in milliseconds since 1970. It keeps an earlier time that is already
// set.
func (x *expiries) add(k key, at int64) {
	e := x.of[k]
	if e == nil {
		e = &expiry{key: k}
		x.of[e.key] = e
	} else if x.heap.items[e.place].at <= at {
		return
	} else {
		x.heap.remove(e.place)
	}
	x.heap.add(at, e)
}

func (x *expiries) drop(e *expiry) {
	x.heap.remove(e.place)
	delete(x.of, e.key)
}

// deadline returns the time at which a key expires, in Unix milliseconds; ok is false if it does not expire.
func (m *Machine) deadline(k key) (at int64, ok bool) {
	ttl := m.redis.DB(k.db).TTL(k.name)
	return m.epoch.Add(ttl).UnixMilli(), ttl != 0
}

// expires records the deadline of a key that a command may have changed.
func (c *call) expires(k key) {
	if at := integer(c.in(k.db, "PEXPIRETIME", k.name)); at > 0 {
		c.m.expiries.add(k, at)
	}
}

// in executes a command of miniredis in another database.
func (c *call) in(db int, words ...string) string {
	if db == c.db() {
		return c.ask(words...)
	}
	c.ask("SELECT", strconv.Itoa(db))
	defer c.ask("SELECT", strconv.Itoa(c.db()))
	return c.ask(words...)
}

// integer returns the value of an integer reply, or 0 for other replies.
func integer(reply string) int64 {
	if reply == "" || reply[0] != ':' {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(reply[1:]), 10, 64)
	return n
}

// unit is the unit of a time.
type unit struct {
	ms       int64
	absolute bool // since 1970, otherwise from now
}

// units are the units of commands.
var units = map[string]unit{
	"expire": {1000, false}, "pexpire": {1, false}, "expireat": {1000, true}, "pexpireat": {1, true},
	"setex": {1000, false}, "psetex": {1, false}, "ttl": {1000, false}, "pttl": {1, false},
}

// lifetimes are the units of options.
var lifetimes = map[string]unit{"ex": {1000, false}, "px": {1, false}, "exat": {1000, true}, "pxat": {1, true}}

// when returns a time in Unix milliseconds, or an error text.
func (u unit) when(text, command string, positive bool) (at int64, wrong string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.HasPrefix(text, "+") {
		return 0, "ERR value is not an integer or out of range"
	}
	wrong = "ERR invalid expire time in '" + command + "' command"
	base := int64(0)
	if !u.absolute {
		base = time.Now().UnixMilli()
	}
	if positive && n <= 0 || n > math.MaxInt64/u.ms || n < math.MinInt64/u.ms || n*u.ms > math.MaxInt64-base {
		return 0, wrong
	}
	// miniredis cannot represent very long times, so they are limited to 200 years.
	return min(max(n*u.ms+base, 0), time.Now().AddDate(200, 0, 0).UnixMilli()), ""
}

// expireKey handles EXPIRE and similar commands.
func expireKey(c *call) {
	at, wrong := units[c.command.name].when(c.words[2], c.command.name, false)
	if wrong != "" {
		c.fail(wrong)
		return
	}
	k := key{c.db(), c.words[1]}
	past := at <= time.Now().UnixMilli()
	if len(c.words) == 4 && strings.EqualFold(c.words[3], "LT") && integer(c.ask("PEXPIRETIME", k.name)) == at {
		c.number(0) // the deadline is not less
		return
	}
	words := append([]string{"PEXPIREAT", k.name, strconv.FormatInt(max(at, c.m.epoch.UnixMilli()+1), 10)}, c.words[3:]...)
	reply := c.ask(words...)
	c.out = append(c.out, reply...)
	switch {
	case integer(reply) == 0:
	case past:
		c.ask("DEL", k.name)
	default:
		c.m.expiries.add(k, at)
	}
}

// timeLeft handles TTL and PTTL.
func timeLeft(c *call) {
	at := integer(c.ask("PEXPIRETIME", c.words[1]))
	if at > 0 {
		ms := units[c.command.name].ms
		at = (max(0, at-time.Now().UnixMilli()) + ms/2) / ms
	}
	c.number(at)
}

// set handles SET.
func set(c *call) {
	words, wrong := lasting(c.words, 3, "set", "KEEPTTL")
	c.store(words, wrong)
}

// getExpiring handles GETEX.
func getExpiring(c *call) {
	words, wrong := lasting(c.words, 2, "getex", "PERSIST")
	c.store(words, wrong)
}

// setExpiring handles SETEX and PSETEX.
func setExpiring(c *call) {
	at, wrong := units[c.command.name].when(c.words[2], c.command.name, true)
	c.store([]string{"SET", c.words[1], c.words[3], "PXAT", strconv.FormatInt(at, 10)}, wrong)
}

// store executes a command that sets a deadline for its first key.
func (c *call) store(words []string, wrong string) {
	if wrong != "" {
		c.fail(wrong)
		return
	}
	c.toMiniredis(words...)
	if len(words) > 2 {
		c.expires(key{c.db(), words[1]})
	}
}

// lasting returns the words of a command with its time to live converted to PXAT. The time to live is among the
// options, which begin at the word with index from. other is the option that excludes it.
func lasting(words []string, from int, command, other string) (changed []string, wrong string) {
	changed = words[:from:from]
	timed, excluded := false, false
	for i := from; i < len(words); i++ {
		excluded = excluded || strings.EqualFold(words[i], other)
		u, ok := lifetimes[strings.ToLower(words[i])]
		if !ok {
			changed = append(changed, words[i])
			continue
		}
		if timed || i+1 == len(words) {
			return nil, "ERR syntax error"
		}
		at, bad := u.when(words[i+1], command, true)
		if wrong == "" {
			wrong = bad
		}
		timed = true
		changed = append(changed, "PXAT", strconv.FormatInt(at, 10))
		i++
	}
	if timed && excluded {
		return nil, "ERR syntax error"
	}
	return changed, wrong
}

// copyDeadline handles commands that copy or move a key with its deadline.
func copyDeadline(c *call) {
	from, to := key{c.db(), c.words[1]}, key{c.db(), c.words[2]}
	if c.command.name == "move" {
		to = key{integerWord(c.words[2], c.db()), c.words[1]}
	} else if at := option(c.words, "DB"); c.command.name == "copy" && at+1 < len(c.words) {
		to.db = integerWord(c.words[at+1], c.db())
	}
	if to.db < 0 || to.db >= databases {
		c.fail("ERR DB index is out of range")
		return
	}
	at := len(c.out)
	c.again()
	if done := string(c.out[at:]); done == "+OK\r\n" || done == ":1\r\n" {
		c.expires(to)
		c.m.fields.carry(from, to)
	}
}

func integerWord(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

// swapDB handles SWAPDB, which exchanges the contents of two databases. Each key of one of them may now exist in the
// other one, so the expiry of all these keys is checked there too.
func swapDB(c *call) {
	a, b := integerWord(c.words[1], 0), integerWord(c.words[2], 0)
	if max(a, b) >= databases {
		c.fail("ERR DB index is out of range")
		return
	}
	at := len(c.out)
	c.again()
	if c.out[at] == '-' || a == b {
		return
	}
	swap := map[int]int{a: b, b: a}
	x := &c.m.expiries
	for k := range x.of {
		if to, ok := swap[k.db]; ok {
			c.expires(key{to, k.name})
		}
	}
	c.m.fields.forgetAll()
}
