package mutants

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobwire/refserver/inject"
)

// Replies.
const (
	ok       = "+OK\r\n"
	null     = "$-1\r\n"
	nullList = "*-1\r\n"
	wrong    = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
)

func integer(n int) string { return fmt.Sprintf(":%d\r\n", n) }
func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func list(items ...string) string {
	all := fmt.Sprintf("*%d\r\n", len(items))
	for _, s := range items {
		all += bulk(s)
	}
	return all
}

// values returns the bulk strings of a list, or a single one.
func values(reply string) (all []string) {
	for strings.HasPrefix(reply, "*") || strings.HasPrefix(reply, "$") {
		head, rest, _ := strings.Cut(reply, "\r\n")
		n, _ := strconv.Atoi(head[1:])
		if reply = rest; head[0] == '$' && n >= 0 {
			all, reply = append(all, rest[:n]), rest[n+2:]
		}
	}
	return all
}

// cut splits a request into words. An inline one is split at its spaces.
func cut(raw string) []string {
	if strings.HasPrefix(raw, "*") {
		return values(raw)
	}
	return strings.Fields(raw)
}

// words returns the command and its arguments.
func words(m *message) []string { return append([]string{m.Name}, m.Args...) }

// ask gives the machine a command that the peer has not sent, and returns the reply.
func ask(p *peer, w ...string) string { return string(p.Ask(w[0], w[1:]...).Raw) }

// kind returns the type of a key's value.
func kind(m *message, key string) string {
	return strings.TrimSpace(strings.TrimPrefix(ask(m.Peer, "TYPE", key), "+"))
}

// Conditions on commands.

func key(prefix string) inject.When {
	return func(m *message) bool { return strings.HasPrefix(m.Arg(0), prefix) }
}

func absent(m *message) bool { return ask(m.Peer, "EXISTS", m.Args[0]) == integer(0) }

func is(k string) inject.When {
	return func(m *message) bool { return len(m.Args) > 0 && kind(m, m.Args[0]) == k }
}

func args(n int) inject.When { return func(m *message) bool { return len(m.Args) == n } }

func last(values ...string) inject.When {
	return func(m *message) bool { return inject.ArgIs(len(m.Args)-1, values...)(m) }
}

// Changes of commands.

func rename(name string) func(*message) { return func(m *message) { m.Name = name } }

func setLast(v string) func(*message) { return func(m *message) { m.Args[len(m.Args)-1] = v } }

func deleted(m *message) []string { return []string{"DEL", m.Args[0]} }

// before gives the machine another command before these.
func before(commands string, when inject.When, what func(m *message) []string) inject.Edit {
	return inject.On(commands, when, func(m *message) { ask(m.Peer, what(m)...) })
}

// after gives the machine another command after these.
func after(commands string, when inject.When, what func(m *message) []string) inject.Edit {
	return inject.On(commands, when, func(m *message) {
		m.Pass()
		ask(m.Peer, what(m)...)
	})
}

// retold changes the replies to commands that do not wait.
func retold(commands string, change func(m *message, reply string) string) inject.Edit {
	return inject.On(commands, nil, func(m *message) {
		m.Drop()
		if reply := change(m, ask(m.Peer, words(m)...)); reply != "" {
			m.Peer.Send(reply)
		}
	})
}

// replaced changes a reply to another.
func replaced(commands, from, to string) inject.Edit {
	return retold(commands, func(_ *message, reply string) string {
		if reply == from {
			return to
		}
		return reply
	})
}

// overwrites makes commands replace values of other types, which they should reject.
func overwrites(commands string, kinds ...string) inject.Edit {
	return before(commands, func(m *message) bool { return slices.Contains(kinds, kind(m, m.Args[0])) }, deleted)
}

// likeFirst changes the key of commands to the first that the peer has used in the class of the key. "" is no class.
func likeFirst(commands string, class func(m *message) string) inject.Edit {
	return inject.On(commands, func(m *message) bool { return class(m) != "" }, func(m *message) {
		first := m.Peer.Notes
		if first[class(m)] == "" {
			first[class(m)] = m.Args[0]
		}
		m.Args[0] = first[class(m)]
	})
}

// prefixed returns the prefix if v has it, or "".
func prefixed(v, prefix string) string {
	if strings.HasPrefix(v, prefix) {
		return prefix
	}
	return ""
}

// end returns the part of a key after its last colon.
func end(key string) string { return key[strings.LastIndex(key, ":")+1:] }

// whole returns the value of an integer, or of a reply with one.
func whole(s string) int { return inject.Number(strings.TrimPrefix(s, ":")) }
