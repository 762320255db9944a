package gearmonkey

import (
	"container/list"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// blockingCommand describes a blocking command. Here no command blocks: it is tried, and if there is nothing for it, a
// wait is recorded.
type blockingCommand struct {
	try     string // the equivalent command that does not block
	each    bool   // try takes one key, and the key is put before its reply
	counted bool   // the number of keys is before the keys
	// index of the timeout; negative: from the end; 0: after BLOCK, in milliseconds
	timeout      int
	keys         func(words []string) []string // returns the keys in the words without the timeout
	kind         string                        // type of the keys that can serve it
	dollarIsLast bool                          // the argument $ means the last existing entry
	// the command does not remove the element that it returns, so other waiting commands get it too
	shared bool
	none   string // the reply if it must not wait
}

var blockingCommands = map[string]*blockingCommand{
	"blpop":      {try: "LPOP", each: true, timeout: -1, keys: exceptLast(0), kind: "list", none: "*-1\r\n"},
	"brpop":      {try: "RPOP", each: true, timeout: -1, keys: exceptLast(0), kind: "list", none: "*-1\r\n"},
	"brpoplpush": {try: "RPOPLPUSH", timeout: -1, keys: exceptLast(1), kind: "list", none: "$-1\r\n"},
	"blmove":     {try: "LMOVE", timeout: -1, keys: exceptLast(3), kind: "list", none: "$-1\r\n"},
	"blmpop":     {try: "LMPOP", counted: true, timeout: 1, keys: counted, kind: "list", none: "*-1\r\n"},
	"bzpopmin":   {try: "ZPOPMIN", each: true, timeout: -1, keys: exceptLast(0), kind: "zset", none: "*-1\r\n"},
	"bzpopmax":   {try: "ZPOPMAX", each: true, timeout: -1, keys: exceptLast(0), kind: "zset", none: "*-1\r\n"},
	"bzmpop":     {try: "ZMPOP", counted: true, timeout: 1, keys: counted, kind: "zset", none: "*-1\r\n"},
	"xread":      {try: "XREAD", keys: streams, kind: "stream", shared: true, dollarIsLast: true, none: "*-1\r\n"},
	"xreadgroup": {try: "XREADGROUP", keys: streams, kind: "stream", shared: true, none: "*-1\r\n"},
}

// exceptLast returns a function that returns all arguments but the last n.
func exceptLast(n int) func(words []string) []string {
	return func(words []string) []string { return words[1 : len(words)-n] }
}

// counted returns as many arguments as the first argument says.
func counted(words []string) []string {
	n, _ := strconv.Atoi(words[1])
	return words[2:min(len(words), 2+max(0, n))]
}

// streams returns the first half of the words after STREAMS.
func streams(words []string) []string {
	rest := words[min(len(words), option(words, "STREAMS")+1):]
	return rest[:len(rest)/2]
}

// option returns the index of an option, or the number of words.
func option(words []string, name string) int {
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, name) })
	if i < 0 {
		return len(words)
	}
	return i
}

// wait is a command that waits.
type wait struct {
	*blockingCommand
	peer  *peer
	words []string // without the timeout
	keys  []key
	queue []*list.Element // elements that represent this wait in the queues of its keys
	place int             // index in the timeouts; 0 if it has no timeout
}

func (w *wait) moved(place int) { w.place = place }

// block handles all blocking commands, such as BRPOP. It replies at once if the command succeeds, has no BLOCK option,
// or is part of a script or transaction; otherwise the connection waits until an element arrives or the timeout ends.
func block(c *call) {
	b := blockingCommands[c.command.name]
	until, plain, text := b.deadline(c.words)
	if text != "" {
		c.fail(text)
		return
	}
	w := &wait{blockingCommand: b, peer: c.peer, words: plain}
	if len(plain) == len(c.words) { // without BLOCK
		c.again()
		return
	}
	if w.dollarIsLast {
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
	c.m.startWaiting(w, until)
}

// deadline parses the timeout. It returns the deadline in Unix milliseconds (0: none) and the words without the
// timeout, or an error text. If the command has no timeout, plain has all words.
func (b *blockingCommand) deadline(words []string) (until int64, plain []string, wrong string) {
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

// milliseconds parses a timeout: whole milliseconds if whole is set, otherwise seconds with an optional
// fraction.
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
	case n < 0 || n >= math.MaxInt64: // Redis has this error for both
		return 0, "ERR timeout is negative"
	case n > math.MaxInt64/2:
		return 0, "ERR timeout is out of range"
	}
	return int64(n), ""
}

// since replaces every $ by the last ID of its stream, so that the command waits for later entries.
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

func (w *wait) keysOf() []string { return w.blockingCommand.keys(w.words) }

// attempt executes the non-blocking form of the command for some of its keys. It returns the reply, or "" if
// there is nothing.
func (w *wait) attempt(c *call, keys ...string) string {
	switch {
	case w.counted:
		words := append([]string{w.try, strconv.Itoa(len(keys))}, keys...)
		return notNull(c.ask(append(words, w.words[2+len(w.keysOf()):]...)...))
	case !w.each:
		return notNull(c.ask(append([]string{w.try}, w.words[1:]...)...))
	}
	for _, k := range keys {
		switch reply := notNull(c.ask(w.try, k)); {
		case reply == "":
		case reply[0] == '-':
			return reply
		case reply[0] == '*': // a member and its score
			_, rest, _ := strings.Cut(reply, "\r\n")
			return string(bulk(appendHeader(nil, '*', 3), k)) + rest
		default:
			return string(bulk(appendHeader(nil, '*', 2), k)) + reply
		}
	}
	return ""
}

// notNull returns a reply, or "" if the reply says that there is nothing.
func notNull(reply string) string {
	switch reply {
	case "$-1\r\n", "*-1\r\n", "_\r\n", "*0\r\n":
		return ""
	}
	return reply
}

// startWaiting makes a peer wait.
func (m *Machine) startWaiting(w *wait, until int64) {
	p := w.peer
	if p.wait != nil {
		return // only a fault can send a second blocking command before the reply to the first
	}
	p.wait = w
	p.conn.Pause()
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

// forget ends a wait without a reply.
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

// wakeWaiting records the words of a command that are keys for which peers wait. serve checks later whether there
// is something for them.
func (m *Machine) wakeWaiting(words []string, db int, far bool) {
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

// serve serves the peers that wait, in the order in which they started to wait, key by key.
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
			if !m.tryWaiting(w, k) && !w.shared {
				break
			}
		}
	}
	m.supplied = nil
}

// tryWaiting tries the command of a peer that waits. It reports whether the next peer may be served from the key.
func (m *Machine) tryWaiting(w *wait, k key) bool {
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
	m.wakeWaiting(w.words[1:], p.db, false) // the destination key may now serve other waits
	return true
}
