package gearmonkey

import (
	"slices"
	"strings"
)

// topics are channels or patterns with their subscribers, in the order of subscription.
type topics map[string][]*peer

// subscriptions are the subscriptions of a peer, in the order in which it made them.
type subscriptions []string

func (p *peer) subscribes() bool { return len(p.channels)+len(p.patterns) > 0 }

// subscriptions returns the subscriptions that a command changes: those to channels, or to patterns if its name begins
// with p.
func (c *call) subscriptions() (topics, *subscriptions) {
	if c.command.name[0] == 'p' {
		return c.m.patterns, &c.peer.patterns
	}
	return c.m.channels, &c.peer.channels
}

// confirm appends the reply for one channel of a command. channel is nil if there is no channel.
func (c *call) confirm(channel *string) {
	c.push(3)
	c.bulk(c.command.name)
	if channel == nil {
		c.null()
	} else {
		c.bulk(*channel)
	}
	c.number(int64(len(c.peer.channels) + len(c.peer.patterns)))
}

// subscribe handles SUBSCRIBE and PSUBSCRIBE, and replies once for each channel or pattern.
func subscribe(c *call) {
	all, own := c.subscriptions()
	for _, name := range c.words[1:] {
		if !slices.Contains(*own, name) {
			*own = append(*own, name)
			all[name] = append(all[name], c.peer)
		}
		c.confirm(&name)
	}
}

// unsubscribe handles UNSUBSCRIBE and PUNSUBSCRIBE; without arguments, they end all subscriptions of the connection. It
// replies once for each channel or pattern, and once if there is none.
func unsubscribe(c *call) {
	all, own := c.subscriptions()
	names := c.words[1:]
	if len(names) == 0 {
		names = slices.Clone(*own)
	}
	for _, name := range names {
		all.leave(own, name, c.peer)
		c.confirm(&name)
	}
	if len(names) == 0 {
		c.confirm(nil)
	}
}

// leave ends one subscription of a peer; own is the peer's list. It does nothing if the peer has not subscribed to the
// name.
func (t topics) leave(own *subscriptions, name string, p *peer) {
	i := slices.Index(*own, name)
	if i < 0 {
		return
	}
	*own = slices.Delete(*own, i, i+1)
	t[name] = slices.DeleteFunc(t[name], func(o *peer) bool { return o == p })
	if len(t[name]) == 0 {
		delete(t, name)
	}
}

// leaveAll ends all subscriptions of a peer.
func (m *Machine) leaveAll(p *peer) {
	for len(p.channels) > 0 {
		m.channels.leave(&p.channels, p.channels[0], p)
	}
	for len(p.patterns) > 0 {
		m.patterns.leave(&p.patterns, p.patterns[0], p)
	}
}

// publish sends a message to the subscribers of the channel, then to those of matching patterns, each in the
// order in which they subscribed.
func publish(c *call) {
	channel, text := c.words[1], c.words[2]
	n := 0
	for _, p := range c.m.channels[channel] {
		c.deliver(p, "message", channel, text)
		n++
	}
	for _, pattern := range c.m.patterns.names(func(name string) bool { return match(name, channel) }) {
		for _, p := range c.m.patterns[pattern] {
			c.deliver(p, "pmessage", pattern, channel, text)
			n++
		}
	}
	c.number(int64(n))
}

// deliver sends a message to a subscriber. If the publisher is also a subscriber, its message is part of the
// reply, as in Redis.
func (c *call) deliver(p *peer, words ...string) {
	b := appendHeader(nil, pushed(p.resp3), int64(len(words)))
	for _, w := range words {
		b = bulk(b, w)
	}
	if p == c.peer && !c.script {
		c.out = append(c.out, b...)
	} else {
		p.send(c.m, b)
	}
}

// names returns the sorted names for which want returns true.
func (t topics) names(want func(name string) bool) []string {
	var names []string
	for name := range t {
		if want(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var pubsubCommands = map[string]command{
	"channels": {arity: -2, run: listChannels},
	"numsub":   {arity: -2, run: countSubscribers},
	"numpat":   {arity: 2, run: func(c *call) { c.number(int64(len(c.m.patterns))) }},
}

// listChannels handles PUBSUB CHANNELS: it lists the channels with subscribers, or those of them that match the
// pattern.
func listChannels(c *call) {
	if len(c.words) > 3 {
		c.fail("ERR unknown subcommand or wrong number of arguments for '" + c.words[1] + "'. Try PUBSUB HELP.")
		return
	}
	names := c.m.channels.names(func(name string) bool { return len(c.words) == 2 || match(c.words[2], name) })
	c.header('*', int64(len(names)))
	for _, name := range names {
		c.bulk(name)
	}
}

func countSubscribers(c *call) {
	c.header('*', int64(2*(len(c.words)-2)))
	for _, name := range c.words[2:] {
		c.bulk(name)
		c.number(int64(len(c.m.channels[name])))
	}
}

// match reports whether a channel matches a pattern: ? matches any byte, * any number of bytes, [a-z] and
// [^a-z] one byte of a set, and \ quotes the next byte.
func match(pattern, s string) bool {
	// The positions at which to continue if the last * is to match one byte more.
	star, next := -1, 0
	p, i := 0, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			star, next = p+1, i
			p++
			continue
		}
		if ok, n := matchByte(pattern[p:], s[i]); ok {
			p += n
			i++
			continue
		}
		if star < 0 {
			return false
		}
		next++
		p, i = star, next
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchByte matches a byte with the first element of the pattern, and returns the length of that element.
func matchByte(pattern string, b byte) (ok bool, n int) {
	if pattern == "" {
		return false, 0
	}
	switch pattern[0] {
	case '?':
		return true, 1
	case '[':
		return matchSet(pattern, b)
	case '\\':
		if len(pattern) > 1 {
			return pattern[1] == b, 2
		}
	}
	return pattern[0] == b, 1
}

// matchSet matches a byte with the set at the beginning of a pattern, such as [a-z] or [^abc]. It also returns the
// length of the set in bytes; a set without ] extends to the end of the pattern.
func matchSet(pattern string, b byte) (ok bool, n int) {
	n = 1
	not := n < len(pattern) && pattern[n] == '^'
	if not {
		n++
	}
	for ; n < len(pattern) && pattern[n] != ']'; n++ {
		switch {
		case pattern[n] == '\\' && n+1 < len(pattern):
			n++
			ok = ok || pattern[n] == b
		case n+2 < len(pattern) && pattern[n+1] == '-':
			lo, hi := pattern[n], pattern[n+2]
			ok = ok || min(lo, hi) <= b && b <= max(lo, hi)
			n += 2
		default:
			ok = ok || pattern[n] == b
		}
	}
	return ok != not, min(n+1, len(pattern))
}
