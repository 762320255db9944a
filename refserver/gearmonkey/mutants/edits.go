package mutants

import (
	"fmt"
	"strconv"
	"strings"
)

// Replies.
const (
	null     = "$-1\r\n"
	nullList = "*-1\r\n"
)

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

// ask executes a command that the peer has not sent, and returns the reply.
func ask(p *peer, w ...string) string { return string(p.Ask(w[0], w[1:]...).Raw) }

// kind returns the type of a key's value: string, list, hash, set, zset, or none if the key does not exist. p is any
// connection that does not wait.
func kind(p *peer, key string) string { return p.Ask("TYPE", key).Arg(0) }
