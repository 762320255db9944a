package mutants

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"jobwire/refserver/mutant"
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

// values are the bulk strings of a list, or the one that stands alone.
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

// when is a condition of a fault.
type when func(b *bench, p *peer, w []string) bool

func always(*bench, *peer, []string) bool { return true }

// key holds for commands on keys that begin so.
func key(prefix string) when {
	return func(_ *bench, _ *peer, w []string) bool { return len(w) > 1 && strings.HasPrefix(w[1], prefix) }
}

// absent holds where the key is not there.
func absent(b *bench, p *peer, w []string) bool { return b.ask(p, "EXISTS", w[1]) == ":0\r\n" }

// is holds where the key holds a value of that kind.
func is(kind string) when {
	return func(b *bench, p *peer, w []string) bool {
		return len(w) > 1 && b.ask(p, "TYPE", w[1]) == "+"+kind+"\r\n"
	}
}

// count holds for commands of so many words.
func count(n int) when {
	return func(_ *bench, _ *peer, w []string) bool { return len(w) == n }
}

// word holds where the i-th word, from the end if i is negative, is one of these.
func word(i int, is ...string) when {
	return func(_ *bench, _ *peer, w []string) bool {
		k := i
		if k < 0 {
			k += len(w)
		}
		return k >= 0 && k < len(w) && slices.Contains(is, w[k])
	}
}

// answered gives these commands, for which it holds, a reply and does nothing.
func answered(commands, reply string, if_ when) Hook {
	return func(b *bench) {
		b.on(commands, func(p *peer, w []string) {
			if if_(b, p, w) {
				b.say(p, reply)
				return
			}
			b.pass(p, w...)
		})
	}
}

// silent gives these commands no reply, and does nothing.
func silent(commands string, if_ when) Hook {
	return func(b *bench) {
		b.on(commands, func(p *peer, w []string) {
			if !if_(b, p, w) {
				b.pass(p, w...)
			}
		})
	}
}

// takenFor changes the words of commands.
func takenFor(commands string, if_ when, change func(w []string) []string) Hook {
	return func(b *bench) {
		b.on(commands, func(p *peer, w []string) {
			if if_(b, p, w) {
				w = change(w)
			}
			b.pass(p, w...)
		})
	}
}

// first has other commands done before these.
func first(commands string, if_ when, before func(w []string) []string) Hook {
	return func(b *bench) {
		b.on(commands, func(p *peer, w []string) {
			if if_(b, p, w) {
				b.ask(p, before(w)...)
			}
			b.pass(p, w...)
		})
	}
}

// then has another command done behind these.
func then(commands string, if_ when, behind func(w []string) []string) Hook {
	return func(b *bench) {
		b.on(commands, func(p *peer, w []string) {
			due := if_(b, p, w)
			b.pass(p, w...)
			if due {
				b.ask(p, behind(w)...)
			}
		})
	}
}

// retold changes the replies to commands that do not wait.
func retold(commands string, change func(b *bench, p *peer, w []string, reply string) string) Hook {
	return func(b *bench) {
		b.on(commands, func(p *peer, w []string) {
			if reply := change(b, p, w, b.ask(p, w...)); reply != "" {
				b.say(p, reply)
			}
		})
	}
}

// replaced is retold by reply alone.
func replaced(commands, from, to string) Hook {
	return retold(commands, func(_ *bench, _ *peer, _ []string, reply string) string {
		if reply == from {
			return to
		}
		return reply
	})
}

// overwrites has these commands do away with values of other kinds, which they should refuse.
func overwrites(commands string, kinds ...string) Hook {
	return first(commands, func(b *bench, p *peer, w []string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return is(kind)(b, p, w) })
	}, deleted)
}

func deleted(w []string) []string { return []string{"DEL", w[1]} }

// own names what belongs to one peer.
func own(p *peer, key string) string { return fmt.Sprintf("%s\x00%d", key, p.ID()) }

// wrapped reads what keep leaves of what arrives.
func wrapped(keep func(p []byte) []byte) Hook {
	return func(b *bench) {
		b.wrap = func(c net.Conn) net.Conn { return mutant.Filtered(c, keep) }
	}
}

func whole(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(s, ":")))
	return n
}

func decimal(n int) string { return strconv.Itoa(n) }

// swapped returns the words with another in the i-th place.
func swapped(w []string, i int, s string) []string {
	w = slices.Clone(w)
	w[i] = s
	return w
}
