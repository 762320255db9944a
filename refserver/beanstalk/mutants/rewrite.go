package mutants

import (
	"bytes"
	"net"
	"regexp"
	"strconv"

	"jobwire/codec"
	"jobwire/refserver/mutant"
)

// refused does something with illegal commands whose text matches the pattern.
func refused(pattern string, do func(b *bench, c *conn, text string)) Hook {
	re := regexp.MustCompile(pattern)
	return func(b *bench) {
		b.rejected = func(c *conn, f *frame, _ *codec.Error) bool {
			text := string(f.Raw)
			if !re.MatchString(text) {
				return false
			}
			do(b, c, text)
			return true
		}
	}
}

// readAs takes an illegal command that matches the pattern for another, with $1 and so on
// for what the pattern's groups stand for.
func readAs(pattern, as string) Hook {
	re := regexp.MustCompile(pattern)
	return refused(pattern, func(b *bench, c *conn, text string) { b.feed(c, re.ReplaceAllString(text, as)) })
}

// refusedAs answers illegal commands that match the pattern.
func refusedAs(pattern, reply string) Hook {
	return refused(pattern, func(b *bench, c *conn, _ string) { b.say(c, reply) })
}

// passedOver gives illegal commands that match the pattern no answer.
func passedOver(pattern string) Hook { return refused(pattern, func(*bench, *conn, string) {}) }

// closes ends the connection behind illegal commands that match the pattern.
func closes(pattern string) Hook {
	return refused(pattern, func(_ *bench, c *conn, _ string) { c.Close() })
}

// refuses answers legal commands of these types, for which it holds, with another reply.
func refuses(types, reply string, when func(a []string) bool) Hook {
	return func(b *bench) {
		b.on(types, func(c *conn, f *frame) {
			if when(args(f)) {
				b.say(c, reply)
				return
			}
			b.pass(c, f)
		})
	}
}

// takenFor changes the arguments of legal commands of one type.
func takenFor(typ string, change func(a []string) []string) Hook {
	return func(b *bench) {
		b.on(typ, func(c *conn, f *frame) { b.pass(c, compose(typ, change(args(f))...)) })
	}
}

// silent gives legal commands of these types, for which it holds, no reply.
func silent(types string, when func(b *bench, c *conn, a []string) bool) Hook {
	return func(b *bench) {
		b.on(types, func(c *conn, f *frame) {
			if !when(b, c, args(f)) {
				b.pass(c, f)
			}
		})
	}
}

// figure changes one figure in statistics that a command asks for.
func figure(command, key string, change func(b *bench, c *conn, all map[string]string) string) Hook {
	return func(b *bench) {
		b.out("stats-reply", func(c *conn, f *frame) verdict {
			if b.peers[c].request.Type.Name != command {
				return verdict{}
			}
			a, all := args(f), map[string]string{}
			for i := 0; i+1 < len(a); i += 2 {
				all[a[i]] = a[i+1]
			}
			for i := 0; i+1 < len(a); i += 2 {
				if a[i] == key {
					a[i+1] = change(b, c, all)
				}
			}
			return replace("stats-reply", a...)
		})
	}
}

// wrapped reads what keep leaves of what arrives.
func wrapped(keep func(p []byte) []byte) Hook {
	return func(b *bench) {
		b.wrap = func(c net.Conn) net.Conn { return mutant.Filtered(c, keep) }
	}
}

// above reports whether a decimal number is as great as limit, or greater.
func above(number string, limit uint64) bool {
	n, err := strconv.ParseUint(number, 10, 64)
	return err != nil || n >= limit
}

func decimal(n int) string { return strconv.Itoa(n) }

func whole(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// inBody reports whether b is a put whose body has not all come.
func inBody(b []byte) bool {
	return bytes.HasPrefix(b, []byte("put ")) && bytes.Contains(b, []byte("\r\n"))
}

// denied answers legal commands about a job that exists, or has, if it holds.
func denied(types, reply string, when func(b *bench, c *conn, j *job) bool) Hook {
	return func(b *bench) {
		b.on(types, func(c *conn, f *frame) {
			if j := b.jobs[arg(f, 0)]; j != nil && when(b, c, j) {
				b.say(c, reply)
				return
			}
			b.pass(c, f)
		})
	}
}

// atMost caps a figure.
func atMost(command, key string, limit int) Hook {
	return figure(command, key, func(_ *bench, _ *conn, all map[string]string) string {
		return decimal(min(whole(all[key]), limit))
	})
}

// always tells the same figure.
func always(command, key, value string) Hook {
	return figure(command, key, func(*bench, *conn, map[string]string) string { return value })
}

// without leaves a figure out.
func without(command, key string) Hook {
	return func(b *bench) {
		b.out("stats-reply", func(c *conn, f *frame) verdict {
			if b.peers[c].request.Type.Name != command {
				return verdict{}
			}
			var kept []string
			for a := args(f); len(a) > 1; a = a[2:] {
				if a[0] != key {
					kept = append(kept, a[0], a[1])
				}
			}
			return replace("stats-reply", kept...)
		})
	}
}
