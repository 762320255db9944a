package gearmonkey

import (
	"container/list"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// blocker is one command that waits. Here none does: it is tried, and what it
// waits for is noted.
type blocker struct {
	try     string                        // the command that does the same at once
	each    bool                          // try takes one key, and its reply is put behind the key
	counted bool                          // the keys stand behind their number
	timeout int                           // where the timeout stands; from the end if negative; 0: behind BLOCK, in milliseconds
	keys    func(words []string) []string // in the words without the timeout
	kind    string                        // of the keys that can serve it
	fresh   bool                          // $ stands for what is there already
	shared  bool                          // what it gets stays where it is, for others to get too
	none    string                        // what it gets where it must not wait
}

var blockers = map[string]*blocker{
	"blpop":      {try: "LPOP", each: true, timeout: -1, keys: allBut(0), kind: "list", none: "*-1\r\n"},
	"brpop":      {try: "RPOP", each: true, timeout: -1, keys: allBut(0), kind: "list", none: "*-1\r\n"},
	"brpoplpush": {try: "RPOPLPUSH", timeout: -1, keys: allBut(1), kind: "list", none: "$-1\r\n"},
	"blmove":     {try: "LMOVE", timeout: -1, keys: allBut(3), kind: "list", none: "$-1\r\n"},
	"blmpop":     {try: "LMPOP", counted: true, timeout: 1, keys: counted, kind: "list", none: "*-1\r\n"},
	"bzpopmin":   {try: "ZPOPMIN", each: true, timeout: -1, keys: allBut(0), kind: "zset", none: "*-1\r\n"},
	"bzpopmax":   {try: "ZPOPMAX", each: true, timeout: -1, keys: allBut(0), kind: "zset", none: "*-1\r\n"},
	"bzmpop":     {try: "ZMPOP", counted: true, timeout: 1, keys: counted, kind: "zset", none: "*-1\r\n"},
	"xread":      {try: "XREAD", keys: streams, kind: "stream", shared: true, fresh: true, none: "*-1\r\n"},
	"xreadgroup": {try: "XREADGROUP", keys: streams, kind: "stream", shared: true, none: "*-1\r\n"},
}

// allBut returns all arguments but so many at the end.
func allBut(n int) func(words []string) []string {
	return func(words []string) []string { return words[1 : len(words)-n] }
}

// counted returns so many arguments as the first one says.
func counted(words []string) []string {
	n, _ := strconv.Atoi(words[1])
	return words[2:min(len(words), 2+max(0, n))]
}

// streams returns the first half of what follows STREAMS.
func streams(words []string) []string {
	rest := words[min(len(words), option(words, "STREAMS")+1):]
	return rest[:len(rest)/2]
}

// option returns the place of an option, or the end of the words.
func option(words []string, name string) int {
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, name) })
	if i < 0 {
		return len(words)
	}
	return i
}

// wait is a command that waits.
type wait struct {
	*blocker
	peer  *peer
	words []string // without the timeout
	keys  []key
	queue []*list.Element // its places in the keys' queues
	place int             // among the timeouts; 0 if it waits for ever
}

func (w *wait) moved(place int) { w.place = place }

func block(c *call) {
	b := blockers[c.row.name]
	until, plain, text := b.deadline(c.words)
	if text != "" {
		c.fail(text)
		return
	}
	w := &wait{blocker: b, peer: c.peer, words: plain}
	if len(plain) == len(c.words) { // without BLOCK
		c.again()
		return
	}
	if w.fresh {
		w.since(c)
	}
	if reply := w.attempt(c, b.keys(plain)...); reply != "" {
		c.out = append(c.out, reply...)
		return
	}
	if c.script || c.exec {
		c.out = append(c.out, null(b.none, c.resp3())...)
		return
	}
	c.silent = true
	c.m.park(w, until)
}

// deadline reads the timeout and returns when it is over, in Unix milliseconds
// (0 is never), and the words without it; or what is wrong. Without a timeout
// the words are as long as before.
func (b *blocker) deadline(words []string) (until int64, plain []string, wrong string) {
	from, at := b.timeout, b.timeout
	switch {
	case at < 0:
		at += len(words)
		from = at
	case at == 0:
		options := words[:option(words, "STREAMS")]
		if from = option(options, "BLOCK"); from+1 >= len(options) {
			return 0, words, ""
		}
		at = from + 1
	}
	ms, wrong := milliseconds(words[at], at > from)
	switch now := time.Now(); {
	case wrong != "":
		return 0, nil, wrong
	case ms > 0:
		until = now.Add(time.Millisecond-1).UnixMilli() + ms
	}
	return until, append(slices.Clone(words[:from]), words[at+1:]...), ""
}

// milliseconds reads a timeout, which is in seconds and may be a fraction unless
// it is whole milliseconds.
func milliseconds(text string, whole bool) (ms int64, wrong string) {
	var n float64
	if whole {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, "ERR timeout is not an integer or out of range"
		}
		n = float64(i)
	} else {
		s, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(s, 0) || math.IsNaN(s) {
			return 0, "ERR timeout is not a float or out of range"
		}
		n = math.Ceil(s * 1000)
	}
	switch {
	case n < 0 || n >= math.MaxInt64: // Redis says so of both
		return 0, "ERR timeout is negative"
	case n > math.MaxInt64/2:
		return 0, "ERR timeout is out of range"
	}
	return int64(n), ""
}

// since puts the last ID of a stream in place of every $: what comes from now on
// is waited for.
func (w *wait) since(c *call) {
	n := len(w.keysOf())
	ids := w.words[len(w.words)-n:]
	for i, id := range ids {
		if id != "$" {
			continue
		}
		ids[i] = "0-0"
		reply := c.ask("XREVRANGE", w.keysOf()[i], "+", "-", "COUNT", "1") // *1 *2 $n, the ID, and so on
		if lines := strings.Split(reply, "\r\n"); len(lines) > 3 {
			ids[i] = lines[3]
		}
	}
}

func (w *wait) keysOf() []string { return w.blocker.keys(w.words) }

// attempt executes the command as if it did not wait, with some of its keys, and
// returns the reply, or "" if there is nothing for it.
func (w *wait) attempt(c *call, keys ...string) string {
	switch {
	case w.counted:
		words := append([]string{w.try, strconv.Itoa(len(keys))}, keys...)
		return something(c.ask(append(words, w.words[2+len(w.keysOf()):]...)...))
	case !w.each:
		return something(c.ask(append([]string{w.try}, w.words[1:]...)...))
	}
	for _, k := range keys {
		switch reply := something(c.ask(w.try, k)); {
		case reply == "":
		case reply[0] == '-':
			return reply
		case reply[0] == '*': // a member and its score
			_, rest, _ := strings.Cut(reply, "\r\n")
			return string(bulk(head(nil, '*', 3), k)) + rest
		default:
			return string(bulk(head(nil, '*', 2), k)) + reply
		}
	}
	return ""
}

// something returns a reply, or "" if it says that there is nothing.
func something(reply string) string {
	switch reply {
	case "$-1\r\n", "*-1\r\n", "_\r\n", "*0\r\n":
		return ""
	}
	return reply
}

// park makes a peer wait.
func (m *Machine) park(w *wait, until int64) {
	p := w.peer
	if p.wait != nil {
		return // only a fault can bring a second one before the first is answered
	}
	p.wait = w
	p.conn.Hold()
	for _, name := range w.keysOf() {
		k := key{p.db, name}
		if slices.Contains(w.keys, k) {
			continue
		}
		q := m.waiting[k]
		if q == nil {
			q = list.New()
			m.waiting[k] = q
		}
		w.keys = append(w.keys, k)
		w.queue = append(w.queue, q.PushBack(w))
	}
	if until > 0 {
		m.timeouts.add(until, w)
	}
}

// forget ends a wait without an answer.
func (m *Machine) forget(w *wait) {
	for i, k := range w.keys {
		q := m.waiting[k]
		q.Remove(w.queue[i])
		if q.Len() == 0 {
			delete(m.waiting, k)
		}
	}
	if w.place > 0 {
		m.timeouts.remove(w.place)
	}
	w.peer.wait = nil
	w.peer.conn.Resume()
}

// supplies notes the words of a command that name keys somebody waits for. That
// there is something is found out later.
func (m *Machine) supplies(words []string, db int, far bool) {
	if len(m.waiting) == 0 {
		return
	}
	if far {
		for k := range m.waiting {
			m.supplied = append(m.supplied, k)
		}
		return
	}
	for _, w := range words {
		if k := (key{db, w}); m.waiting[k] != nil && !slices.Contains(m.supplied, k) {
			m.supplied = append(m.supplied, k)
		}
	}
}

// serve gives those who wait what there is for them, the first first, one key
// after the other.
func (m *Machine) serve() {
	for len(m.supplied) > 0 {
		k := m.supplied[0]
		m.supplied = m.supplied[1:]
		q := m.waiting[k]
		if q == nil {
			continue
		}
		for e := q.Front(); e != nil; {
			w := e.Value.(*wait)
			e = e.Next()
			if !m.give(w, k) && !w.shared {
				break
			}
		}
	}
	m.supplied = nil
}

// give tries a command that waits. It reports whether another may be served
// from that key.
func (m *Machine) give(w *wait, k key) bool {
	p := w.peer
	c := &call{m: m, peer: p, state: p.state, words: w.words}
	switch kind := strings.Trim(c.ask("TYPE", k.name), "+\r\n"); kind {
	case "none":
		return false
	case w.kind:
	default:
		return true
	}
	reply := w.attempt(c, k.name)
	if reply == "" {
		return false
	}
	m.forget(w)
	p.answer(m, []byte(reply))
	m.supplies(w.words[1:], p.db, false) // where it has moved to
	return true
}
