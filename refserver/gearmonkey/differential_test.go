package gearmonkey

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobwire/internal/peers"
)

// TestLikeRedis sends the same random commands to redis-server and to this server, over several connections
// that wait, subscribe and disconnect. Every reply and every pushed message must be the same.
func TestLikeRedis(t *testing.T) {
	commands := 4000
	if testing.Short() {
		commands = 800
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			real := peers.Start(t, "redis-server")
			d := &differential{t: t, rng: rand.New(rand.NewPCG(seed, 11))}
			for i, addr := range []string{serveTCP(t), real.Addr()} {
				d.addr[i] = addr
				d.control[i] = dialTCP(t, addr)
			}
			for i := range workers + subscribers {
				d.pairs = append(d.pairs, &pair{name: fmt.Sprint("c", i)})
				d.dial(i)
			}
			for range commands {
				d.step()
			}
		})
	}
}

const (
	workers     = 4 // connections that send all commands except subscriptions
	subscribers = 2
)

// differential is one run. In arrays of two, the first element is for this server, the second for redis-server.
type differential struct {
	t       *testing.T
	rng     *rand.Rand
	addr    [2]string
	control [2]*client
	pairs   []*pair
	id      int
	log     []string // the last commands
}

// pair is a pair of corresponding connections, one to each server.
type pair struct {
	name    string
	conn    [2]*client
	waiting bool
	resp3   bool
	queues  bool // it is between MULTI and EXEC
}

func (d *differential) dial(i int) {
	p := d.pairs[i]
	*p = pair{name: p.name}
	for s := range p.conn {
		p.conn[s] = dialTCP(d.t, d.addr[s])
	}
	d.ask(i, "CLIENT SETNAME "+p.name)
}

// fatalf ends the run with the last commands.
func (d *differential) fatalf(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf(format+"\n%s", append(args, strings.Join(d.log, "\n"))...)
}

func (d *differential) note(i int, what string) {
	d.log = append(d.log, d.pairs[i].name+": "+what)
	d.log = d.log[max(0, len(d.log)-60):]
}

// send sends commands at once, as arrays or inline.
func (d *differential) send(i int, lines ...string) {
	inline := d.rng.IntN(4) == 0
	var b []byte
	for _, line := range lines {
		d.note(i, line)
		if inline {
			b = append(b, line+"\r\n"...)
			continue
		}
		words := inlineWords(nil, line)
		b = appendHeader(b, '*', int64(len(words)))
		for _, w := range words {
			b = bulk(b, w)
		}
	}
	for _, c := range d.pairs[i].conn {
		c.raw(string(b))
	}
}

// compare reads a reply from both servers.
func (d *differential) compare(i int, to string) string {
	d.t.Helper()
	simulated, real := d.pairs[i].conn[0].next(), d.pairs[i].conn[1].next()
	if codes(simulated) != codes(real) && !about(to, simulated, real) {
		same := 0
		for same < min(len(simulated), len(real)) && simulated[same] == real[same] {
			same++
		}
		d.fatalf("%s: the replies differ at byte %d:\nredis-server: %q\nours:         %q", to, same, real[same:], simulated[same:])
	}
	switch p := d.pairs[i]; {
	case to == "MULTI":
		p.queues = true
	case to == "EXEC" || to == "DISCARD":
		p.queues = false
	}
	return simulated
}

// errorText matches an error; its text is everything after the code.
var errorText = regexp.MustCompile(`(-[A-Z]+) [^$*:+%-]*`)

// codes removes the text of errors.
func codes(reply string) string { return errorText.ReplaceAllString(reply, "$1 ") }

// about reports whether two replies differ by no more than the elapsed time explains.
func about(to, a, b string) bool {
	tolerance := map[string]float64{"TTL": 1, "PTTL": 1000}[strings.Fields(to)[0]]
	x, err := strconv.ParseFloat(a[1:], 64)
	y, err2 := strconv.ParseFloat(b[1:], 64)
	return err == nil && err2 == nil && a[0] == ':' && b[0] == ':' && x > 0 && y > 0 && math.Abs(x-y) <= tolerance
}

func (d *differential) ask(i int, line string) {
	d.t.Helper()
	d.send(i, line)
	d.compare(i, line)
}

// blocked returns the connections that wait at a server.
func (d *differential) blocked(s int) map[string]bool {
	list := d.control[s].ask("CLIENT LIST")
	found := map[string]bool{}
	for line := range strings.SplitSeq(list, "\n") {
		var name, flags string
		for field := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "name":
				name = value
			case "flags":
				flags = value
			}
		}
		if name != "" {
			found[name] = strings.Contains(flags, "b")
		}
	}
	return found
}

// awaitReplyOrWait waits until the reply to a command has arrived or the command waits, and reports whether it waits.
func (d *differential) awaitReplyOrWait(i, s int) (waits bool) {
	p := d.pairs[i]
	for end := time.Now().Add(replyTimeout); time.Now().Before(end); {
		if d.blocked(s)[p.name] {
			return true
		}
		p.conn[s].nc.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := p.conn[s].r.Peek(1); err == nil {
			return false
		}
	}
	d.fatalf("%s is neither answered nor does it wait at server %d", p.name, s)
	return false
}

// step sends one or a few commands, or ends a connection.
func (d *differential) step() {
	i := d.rng.IntN(workers)
	for n := 0; d.pairs[i].waiting; n++ {
		if i = (i + 1) % workers; n == workers {
			d.ask(workers, "PING") // all workers wait; a subscriber could not serve them
			i = d.hangUp(0)
		}
	}
	switch r := d.rng.IntN(100); {
	case r == 0:
		d.hangUp(d.rng.IntN(workers))
	case r < 8:
		d.wait(i)
	case d.pairs[i].queues && r < 24:
		d.ask(i, "EXEC")
	case r < 14:
		d.subscription(workers + d.rng.IntN(subscribers))
	case r < 20:
		lines := []string{d.command(i), d.command(i), d.command(i)}
		d.send(i, lines...)
		for _, line := range lines {
			d.compare(i, line)
		}
	case r < 22 && !d.pairs[i].resp3:
		d.send(i, "HELLO 3")
		for _, c := range d.pairs[i].conn {
			c.next() // the reply contains the connection's number
		}
		d.pairs[i].resp3 = true
	default:
		d.ask(i, d.command(i))
	}
	d.served()
}

// wait sends a command that may block.
func (d *differential) wait(i int) {
	timeout := []string{"0", "0", "1000", "0.02", "-1", "x"}[d.rng.IntN(6)]
	line := [](func() string){
		func() string { return "BRPOP queue:f:high queue:f:normal queue:f:low " + timeout },
		func() string { return "BRPOP " + d.list() + " " + d.list() + " " + timeout },
		func() string { return "BLPOP " + d.list() + " " + timeout },
		func() string { return "BRPOPLPUSH " + d.list() + " lock:" + d.job() + " " + timeout },
		func() string { return "BLMOVE " + d.list() + " lock:" + d.job() + " LEFT RIGHT " + timeout },
		func() string { return "BZPOPMIN " + d.zset() + " " + timeout },
		func() string { return "BZPOPMAX " + d.zset() + " " + timeout },
		func() string { return "BRPOP " + d.list() }, // too few words, or an invalid timeout
		func() string { return "BLMPOP " + timeout + " 2 " + d.list() + " " + d.list() + " RIGHT" },
	}[d.rng.IntN(9)]()
	d.send(i, line)
	if timeout == "0.02" {
		d.compare(i, line)
		return
	}
	simulated, real := d.awaitReplyOrWait(i, 0), d.awaitReplyOrWait(i, 1)
	if simulated != real {
		d.fatalf("%s: it waits: %v, at redis-server %v", line, simulated, real)
	}
	if d.pairs[i].waiting = simulated; !simulated {
		d.compare(i, line)
	}
}

// served compares which connections no longer wait, and their replies.
func (d *differential) served() {
	d.t.Helper()
	var waiting bool
	for _, p := range d.pairs {
		waiting = waiting || p.waiting
	}
	if waiting {
		simulated, real := d.blocked(0), d.blocked(1)
		for i, p := range d.pairs[:workers] {
			if simulated[p.name] != real[p.name] {
				d.fatalf("%s waits: %v, at redis-server %v", p.name, simulated[p.name], real[p.name])
			}
			if p.waiting && !simulated[p.name] {
				p.waiting = false
				d.note(i, "(served)")
				d.compare(i, "what was waited for")
			}
		}
	}
}

// subscription subscribes or unsubscribes, or reads published messages.
func (d *differential) subscription(i int) {
	line := []string{
		"SUBSCRIBE channel:f", "SUBSCRIBE channel:g", "UNSUBSCRIBE channel:f", "UNSUBSCRIBE channel:g",
		"PSUBSCRIBE channel:*", "PUNSUBSCRIBE channel:*", "PUNSUBSCRIBE",
	}[d.rng.IntN(7)]
	d.send(i, line, "PING end")
	for {
		if got := d.compare(i, "what was published, and "+line); strings.HasSuffix(got, "$3 end") {
			break
		}
	}
}

// hangUp closes a connection and opens it again.
func (d *differential) hangUp(i int) int {
	p := d.pairs[i]
	d.note(i, "(hangs up)")
	for s, c := range p.conn {
		c.nc.Close()
		for end := time.Now().Add(replyTimeout); ; {
			if _, there := d.blocked(s)[p.name]; !there {
				break
			}
			if time.Now().After(end) {
				d.fatalf("%s is still there at server %d", p.name, s)
			}
		}
	}
	d.dial(i)
	return i
}

func (d *differential) pick(of ...string) string { return of[d.rng.IntN(len(of))] }
func (d *differential) fn() string               { return d.pick("f", "f", "f", "g", "a:b") }
func (d *differential) list() string {
	return "queue:" + d.fn() + ":" + d.pick("high", "normal", "low")
}
func (d *differential) zset() string { return "queue:" + d.fn() + ":scheduled" }

// job returns the name of one of the last jobs, or of one that does not exist yet.
func (d *differential) job() string {
	return fmt.Sprintf("%s:%d", d.fn(), max(1, d.id+2-d.rng.IntN(8)))
}

// key returns a key of any type, so that the type is sometimes wrong.
func (d *differential) key() string {
	return d.pick(d.list(), d.zset(), "job:"+d.job(), "count:"+d.fn(), "lock:"+d.job(), "none")
}

func (d *differential) number(n int) string { return strconv.Itoa(d.rng.IntN(n)) }

// command generates a command that does not block, for a connection.
func (d *differential) command(i int) string {
	switch d.rng.IntN(44) {
	case 0:
		return "GET count:" + d.fn()
	case 1:
		return "INCR uid:" + d.fn()
	case 2, 3:
		d.id++
		return fmt.Sprintf("HMSET job:%s:%d status idle input %s", d.fn(), d.id, d.number(1000))
	case 4:
		return "PUBLISH channel:" + d.fn() + " create:" + d.number(100)
	case 5, 6:
		return "ZADD " + d.zset() + " " + d.number(100) + " " + d.number(50)
	case 7, 8, 9:
		return "LPUSH " + d.list() + " " + d.number(1000)
	case 10, 11:
		return "HGETALL job:" + d.job()
	case 12:
		return `SCRIPT LOAD "` + script + `"`
	case 13, 14, 15:
		return "EVALSHA " + scriptSHA1 + " 1 " + d.zset() + " " + d.number(100)
	case 16:
		return "HGET job:" + d.job() + " input"
	case 17:
		return "PUBLISH channel:" + d.fn() + " start:" + d.number(100)
	case 18:
		return "HMSET job:" + d.job() + " status busy"
	case 19:
		return "HMSET job:" + d.job() + " status:dividend " + d.number(9) + " status:divisor 9"
	case 20:
		return "HMSET job:" + d.job() + " status success output \"" + strings.Repeat("x ", d.rng.IntN(20)) + "\""
	case 21:
		return "EXPIRE " + d.key() + " " + d.pick("90000", "10", "0", "-1", "1000000", "x")
	case 22:
		return "LPUSH lock:" + d.job() + " OK"
	case 23:
		return "EXPIRE lock:" + d.job() + " 10 " + d.pick("NX", "XX", "GT", "LT")
	case 24:
		return "DECR count:" + d.fn()
	case 25:
		return "HMGET job:" + d.job() + " status none output"
	case 26:
		if d.pairs[i].queues {
			return "PERSIST " + d.key() // times may differ a little
		}
		return d.pick("TTL ", "PTTL ") + d.key()
	case 27:
		return "LRANGE " + d.list() + " " + d.number(4) + d.pick(" -1", " -2", " 3")
	case 28:
		return "ZRANGE " + d.zset() + " 0 -1 " + d.pick("", "WITHSCORES", "REV")
	case 29:
		return d.pick("LLEN ", "EXISTS ", "TYPE ", "ZCARD ", "HLEN ", "STRLEN ") + d.key()
	case 30:
		return d.pick("DEL ", "UNLINK ") + d.key() + " " + d.key()
	case 31:
		return "SET " + d.key() + " " + d.number(10) + " " + d.pick("", "EX 1000", "NX", "XX", "KEEPTTL", "EX 0", "GET")
	case 32:
		if d.rng.IntN(4) == 0 {
			return "RPOPLPUSH " + d.list() + " lock:" + d.job() // never to the same list: see README.md
		}
		return d.pick("RENAME ", "COPY ", "RENAMENX ") + d.key() + " " + d.key()
	case 33:
		return d.pick("RPUSH ", "LPUSHX ") + d.list() + " a b"
	case 34:
		return d.pick("RPOP ", "LPOP ") + d.list() + d.pick("", "", " 2", " x", " 0")
	case 35:
		return d.pick("MULTI", "MULTI", "EXEC", "EXEC", "DISCARD")
	case 36:
		return d.pick("HKEYS ", "HVALS ", "HLEN ") + "job:" + d.job()
	case 37:
		return d.pick("GET", "FOO bar", "HMSET a b", "LPUSH k", "EVALSHA abc 0", "PUBSUB NUMSUB channel:f channel:g", "SELECT 16", "PING",
			"ECHO hi", "SCRIPT EXISTS "+scriptSHA1)
	case 38:
		return `EVAL "return redis.call('LPUSH', KEYS[1], ARGV[1])" 1 ` + d.key() + " " + d.number(10)
	case 39:
		return `EVAL "redis.call('LPUSH', KEYS[1], 1, 2); return redis.call('PUBLISH', 'channel:f', 'x')" 1 ` + d.list()
	case 40:
		return "HDEL job:" + d.job() + " " + d.pick("status", "input", "none")
	case 41:
		return d.pick("SCRIPT FLUSH", "SELECT 1", "SELECT 0", "SELECT 0", "SELECT 0", "SELECT 0")
	case 42:
		return "ZRANGEBYSCORE " + d.zset() + " 0 " + d.number(100) + " LIMIT 0 2"
	}
	return "ZREM " + d.zset() + " " + d.number(50)
}
