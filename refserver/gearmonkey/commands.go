package gearmonkey

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// command describes a command as Redis 7 does, and its implementation if miniredis does not execute it.
type command struct {
	name  string // in lower case
	arity int    // number of words; if negative, the minimum number
	flags flags
	run   func(c *call) // nil: miniredis executes it
}

type flags uint8

const (
	noScript   flags = 1 << iota // scripts may not call it
	subscribed                   // RESP2 connections that subscribe may send it
	atOnce                       // not queued by MULTI
	anyone                       // connections that have not logged in may send it
	// the command may add elements to keys of other databases, or to keys that its arguments do not name
	far
	clock // miniredis needs the current time
)

// plain are the commands that miniredis executes without changes, by arity.
var plain = map[int]string{
	-1: "flushdb flushall",
	1:  "dbsize randomkey",
	-2: "bitcount del exists geopos lpop mget pfadd pfcount pfmerge rpop scan sdiff sinter spop sunion touch unlink",
	2:  "decr echo expiretime get getdel hlen incr keys llen persist pexpiretime scard smembers strlen type zcard",
	-3: "bitpos hmget hscan lpos mset msetnx rpush rpushx sadd sdiffstore sintercard sinterstore smismember " +
		"srem sscan sunionstore zmscore zrem zscan",
	3: "append decrby getbit getset hexists hget hstrlen incrby incrbyfloat lindex rpoplpush setnx sismember zrank " +
		"zrevrank zscore",
	-4: "bitop geodist lmpop zinterstore zmpop zrangebylex zrevrangebylex zunionstore",
	4:  "getrange lrange lrem lset ltrim smove zcount zincrby zlexcount zremrangebylex zremrangebyrank zremrangebyscore",
	-5: "geoadd georadiusbymember georadiusbymember_ro",
	5:  "linsert lmove",
	-6: "georadius georadius_ro",
	-7: "geosearch",
}

// commands are all commands by name.
var commands = map[string]*command{}

// init fills the table of commands. It is not the initial value of commands, because the functions of some commands use
// that table.
func init() {
	table := []command{
		{"ping", -1, subscribed, ping},
		{"hello", -1, noScript | anyone, hello},
		{"auth", -2, noScript | anyone, auth},
		{"select", 2, 0, selectDB},
		{"reset", 1, noScript | subscribed | atOnce | anyone, reset},
		{"quit", -1, noScript | subscribed | atOnce | anyone, quit},
		{"client", -2, noScript, subcommands(clientCommands)},
		{"command", -1, 0, describe},
		{"info", -1, 0, info},
		{"time", 1, 0, sendTime},
		{"shutdown", -1, noScript, shutdown},

		{"multi", 1, noScript | atOnce, multi},
		{"exec", 1, noScript | atOnce, exec},
		{"discard", 1, noScript | atOnce, discard},
		{"watch", -2, noScript | atOnce, watch},
		{"unwatch", 1, noScript, nil},

		{"script", -2, noScript, subcommands(scriptCommands)},
		{"eval", -3, noScript, eval},
		{"eval_ro", -3, noScript, eval},
		{"evalsha", -3, noScript, evalSHA},
		{"evalsha_ro", -3, noScript, evalSHA},

		{"subscribe", -2, noScript | subscribed, subscribe},
		{"unsubscribe", -1, noScript | subscribed, unsubscribe},
		{"psubscribe", -2, noScript | subscribed, subscribe},
		{"punsubscribe", -1, noScript | subscribed, unsubscribe},
		{"publish", 3, 0, publish},
		{"pubsub", -2, 0, subcommands(pubsubCommands)},

		{"blpop", -3, noScript, block},
		{"brpop", -3, noScript, block},
		{"brpoplpush", 4, noScript, block},
		{"blmove", 6, noScript, block},
		{"blmpop", -5, 0, block},
		{"bzpopmin", -3, noScript, block},
		{"bzpopmax", -3, noScript, block},
		{"bzmpop", -5, 0, block},
		{"xread", -4, 0, block},
		{"xreadgroup", -7, 0, block},

		{"expire", -3, 0, expireKey},
		{"pexpire", -3, 0, expireKey},
		{"expireat", -3, 0, expireKey},
		{"pexpireat", -3, 0, expireKey},
		{"ttl", 2, 0, timeLeft},
		{"pttl", 2, 0, timeLeft},
		{"set", -3, 0, set},
		{"setex", 4, 0, setExpiring},
		{"psetex", 4, 0, setExpiring},
		{"getex", -2, 0, getExpiring},
		{"rename", 3, 0, copyDeadline},
		{"renamenx", 3, 0, copyDeadline},
		{"copy", -3, far, copyDeadline},
		{"move", 3, far, copyDeadline},
		{"swapdb", 3, far, swapDB},

		{"lpush", -3, 0, prepend},
		{"lpushx", -3, 0, prepend},

		{"hset", -4, 0, setFields},
		{"hmset", -4, 0, setFields},
		{"hsetnx", 4, 0, setFields},
		{"hincrby", 4, 0, setFields},
		{"hincrbyfloat", 4, 0, setFields},
		{"hdel", -3, 0, deleteFields},
		{"hgetall", 2, 0, listFields},
		{"hkeys", 2, 0, listFields},
		{"hvals", 2, 0, listFields},

		{"setrange", 4, 0, atMost(2, 512<<20, "string exceeds maximum allowed size (proto-max-bulk-len)")},
		{"setbit", 4, 0, atMost(2, 4<<30, "bit offset is not an integer or out of range")},
		{"srandmember", -2, 0, atLeast(2, -maxRandom)},
		{"hrandfield", -2, 0, atLeast(2, -maxRandom)},
		{"zrandmember", -2, 0, atLeast(2, -maxRandom)},

		{"zadd", -4, 0, addMembers},
		{"zrange", -4, 0, paired(withScores)},
		{"zrevrange", -4, 0, paired(withScores)},
		{"zrangebyscore", -4, 0, paired(withScores)},
		{"zrevrangebyscore", -4, 0, paired(withScores)},
		{"zunion", -3, 0, paired(withScores)},
		{"zinter", -3, 0, paired(withScores)},
		{"zpopmin", -2, 0, paired(hasCount)},
		{"zpopmax", -2, 0, paired(hasCount)},

		{"xadd", -5, clock, nil},
		{"xlen", 2, 0, nil},
		{"xrange", -4, 0, nil},
		{"xrevrange", -4, 0, nil},
		{"xdel", -3, 0, nil},
		{"xtrim", -4, 0, nil},
		{"xgroup", -2, clock, nil},
		{"xinfo", -2, clock, nil},
		{"xack", -4, 0, nil},
		{"xpending", -3, clock, nil},
		{"xclaim", -6, clock, nil},
		{"xautoclaim", -6, clock, nil},
	}
	for arity, names := range plain {
		for name := range strings.FieldsSeq(names) {
			table = append(table, command{name: name, arity: arity})
		}
	}
	for i := range table {
		commands[table[i].name] = &table[i]
	}
}

// maxRandom limits the number of elements that are drawn with repetition, which is otherwise unlimited.
const maxRandom = 1 << 20

// call is the execution of one command.
type call struct {
	m       *Machine
	peer    *peer // the connection that sent it
	state   any   // state that miniredis keeps for the connection or script
	command *command
	words   []string
	script  bool // called by a script
	exec    bool // the command was queued in a transaction
	silent  bool // no reply is sent now: the command waits, or has no reply
	out     []byte
}

// run executes a call and appends its reply to out.
func (c *call) run() {
	if text := c.find(); text != "" {
		c.fail(text)
		return
	}
	m := c.m
	if c.command.flags&clock != 0 && !c.script {
		m.redis.SetTime(time.Now())
		defer m.redis.SetTime(m.epoch)
	}
	if c.command.run != nil {
		c.command.run(c)
	} else {
		c.again()
	}
	m.wakeWaiting(c.words[1:], c.db(), c.command.flags&far != 0)
}

// find sets c.command, or returns the error that prevents the execution.
func (c *call) find() string {
	c.command = commands[strings.ToLower(c.words[0])]
	switch {
	case c.command == nil && c.script:
		return "ERR unknown command"
	case c.command == nil:
		return unknown(c.words)
	case c.script && c.command.flags&noScript != 0:
		return "ERR This Redis command is not allowed from script"
	case !c.script && c.fits(c.command.arity) && c.command.flags&anyone == 0 && c.m.mustLogIn(c.peer):
		return noAuth
	case c.fits(c.command.arity):
		return ""
	case c.script:
		return "ERR Wrong number of args calling Redis command from script"
	}
	return wrongNumber(c.command.name)
}

// fits reports whether the number of words matches an arity.
func (c *call) fits(arity int) bool {
	return len(c.words) == arity || arity < 0 && len(c.words) >= -arity
}

// again passes the command unchanged to miniredis.
func (c *call) again() { c.toMiniredis(c.words...) }

func (c *call) resp3() bool { return !c.script && c.peer.resp3 }

func (c *call) db() int {
	if c.script {
		return c.m.scriptDB
	}
	return c.peer.db
}

// fail appends an error reply, whose text begins with an error code such as ERR. It replaces line ends by spaces,
// because the reply is one line.
func (c *call) fail(text string) {
	text = strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, text)
	c.out = append(append(append(c.out, '-'), text...), "\r\n"...)
}

func (c *call) ok()           { c.out = append(c.out, "+OK\r\n"...) }
func (c *call) bulk(s string) { c.out = bulk(c.out, s) }
func (c *call) null()         { c.out = append(c.out, null("$-1\r\n", c.resp3())...) }

func (c *call) number(n int64) { c.header(':', n) }

// header appends a line with a type and a number.
func (c *call) header(typ byte, n int64) { c.out = appendHeader(c.out, typ, n) }

// push appends the header of a pushed message.
func (c *call) push(n int64) { c.header(pushed(c.resp3()), n) }

func appendHeader(b []byte, typ byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, typ), n, 10), "\r\n"...)
}

func bulk[S []byte | string](b []byte, s S) []byte {
	return append(append(appendHeader(b, '$', int64(len(s))), s...), "\r\n"...)
}

// null returns the RESP3 null, or resp2 for RESP2.
func null(resp2 string, resp3 bool) []byte {
	if resp3 {
		return []byte("_\r\n")
	}
	return []byte(resp2)
}

func pushed(resp3 bool) byte {
	if resp3 {
		return '>'
	}
	return '*'
}

func wrongNumber(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// unknown returns the error for an unknown command, which quotes its arguments.
func unknown(words []string) string {
	const most = 128 // maximum bytes of the name, and of the arguments
	var args strings.Builder
	for _, w := range words[1:] {
		if args.Len() >= most {
			break
		}
		args.WriteString("'" + w[:min(len(w), most-args.Len())] + "' ")
	}
	return "ERR unknown command '" + words[0][:min(len(words[0]), most)] + "', with args beginning with: " + args.String()
}

// subcommands returns a command that selects a subcommand by the second word.
func subcommands(table map[string]command) func(c *call) {
	return func(c *call) {
		row, ok := table[strings.ToLower(c.words[1])]
		switch name := c.command.name; {
		case !ok:
			c.fail("ERR unknown subcommand '" + c.words[1] + "'. Try " + strings.ToUpper(name) + " HELP.")
		case !c.fits(row.arity):
			c.fail(wrongNumber(name + "|" + strings.ToLower(c.words[1])))
		case row.run == nil:
			c.again()
		default:
			row.run(c)
		}
	}
}

// atMost rejects a number that is too large before memory is allocated for it.
func atMost(word int, limit int64, text string) func(c *call) {
	return func(c *call) {
		if n, err := strconv.ParseInt(c.words[word], 10, 64); err == nil && n >= limit {
			c.fail("ERR " + text)
			return
		}
		c.again()
	}
}

// addMembers handles ZADD. miniredis accepts scores that are NaN.
func addMembers(c *call) {
	i := 2
	for i < len(c.words) && slices.Contains([]string{"nx", "xx", "gt", "lt", "ch", "incr"}, strings.ToLower(c.words[i])) {
		i++
	}
	for ; i < len(c.words); i += 2 {
		if f, err := strconv.ParseFloat(c.words[i], 64); err == nil && math.IsNaN(f) {
			c.fail("ERR value is not a valid float")
			return
		}
	}
	c.again()
}

// atLeast rejects a number that is too small.
func atLeast(word int, limit int64) func(c *call) {
	return func(c *call) {
		if len(c.words) > word {
			if n, err := strconv.ParseInt(c.words[word], 10, 64); err == nil && n < limit {
				c.fail("ERR value is out of range")
				return
			}
		}
		c.again()
	}
}

// paired executes a command whose elements have scores. In RESP3 each element and its score are an array, which
// miniredis does not support.
func paired(scored func(words []string) bool) func(c *call) {
	return func(c *call) {
		reply := c.ask(c.words...)
		lines := strings.SplitAfter(reply, "\r\n")
		if n, err := strconv.Atoi(strings.TrimSpace(lines[0][1:])); reply[0] == '*' && err == nil && c.resp3() &&
			scored(c.words) {
			reply = arrayOfPairs(reply[len(lines[0]):], n/2)
		}
		c.out = append(c.out, reply...)
	}
}

// arrayOfPairs converts the n elements and scores of a RESP2 reply, without the header of its array, to a RESP3 array of
// n arrays of two. An element is a bulk string, and a score is one line.
func arrayOfPairs(flat string, n int) string {
	b := appendHeader(nil, '*', int64(n))
	for range n {
		length, lineLen := numberLine(flat)
		end := lineLen + length + len("\r\n")
		end += strings.IndexByte(flat[end:], '\n') + 1
		b = append(appendHeader(b, '*', 2), flat[:end]...)
		flat = flat[end:]
	}
	return string(b)
}

func withScores(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "WITHSCORES") })
}

func hasCount(words []string) bool { return len(words) > 2 }
