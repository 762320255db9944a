package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"jobwire/internal/peers"
)

// shown formats messages of RESP2 without nesting as redis-cli does.
func shown(name string, args []string) string {
	quote := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			switch k := strings.IndexByte("\n\r\t\a\b\\\"", c); {
			case k >= 0:
				b.WriteString(`\` + `nrtab\"`[k:k+1])
			case c >= ' ' && c <= '~':
				b.WriteByte(c)
			default:
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
		return `"` + b.String() + `"`
	}
	items := func(lines []string) string {
		if len(lines) == 0 {
			return "(empty array)"
		}
		width := len(strconv.Itoa(len(lines)))
		for i := range lines {
			lines[i] = fmt.Sprintf("%*d) %s", width, i+1, lines[i])
		}
		return strings.Join(lines, "\n")
	}
	var lines []string
	switch name {
	case "simple":
		return args[0]
	case "error":
		return "(error) " + strings.Join(args, " ")
	case "integer":
		return "(integer) " + args[0]
	case "bulk":
		return quote(args[0])
	case "nil", "nil-array":
		return "(nil)"
	case "list":
		for _, a := range args {
			lines = append(lines, quote(a))
		}
	case "aggregate":
		for i := 1; i < len(args); i++ {
			switch {
			case args[i] == "$-1":
				lines = append(lines, "(nil)")
			case args[i][0] == ':':
				lines = append(lines, "(integer) "+args[i][1:])
			case args[i][0] == '+':
				lines = append(lines, args[i][1:])
			default:
				i++
				lines = append(lines, quote(args[i]))
			}
		}
	}
	return items(lines)
}

// TestRandomCommands compares the replies of a real server that the session decodes with the output of
// redis-cli.
func TestRandomCommands(t *testing.T) {
	redis := peers.Start(t, "redis-server")
	cli := peers.Need(t, "redis-cli")
	r := rand.New(rand.NewPCG(3, 4))
	values := []string{"", "a", "7", "-3", "x y", "\r\n", "\x00\xff", "\"quoted\\", "9223372036854775807", strings.Repeat("long ", 50)}
	forms := []string{"SET k v", "GET k", "INCR k", "DECR k", "HMSET h v v", "HGET h v", "HGETALL h", "HMGET h v v v", "LPUSH l v", "LPUSH k v", "RPOP l",
		"LRANGE l 0 -1", "LLEN l", "BRPOP l k 0.01", "ZADD z 5 v", "ZRANGE z 0 -1", "ZRANGE z 0 -1 WITHSCORES", "ZADD z nan v", "EXPIRE l 100", "TTL l", "TTL h", "TYPE k",
		"EXISTS k l h v", "DEL l", "PUBLISH v v", "NOSUCH v v", "GET", "PING v", "PING", "SMISMEMBER s 1 2 3", "HINCRBY h 7 -7", "OBJECT HELP", "CONFIG GET proto-max-bulk-len", "EVALSHA v 0"}
	var commands [][]string
	var script strings.Builder
	for range 400 {
		words := strings.Fields(forms[r.IntN(len(forms))])
		for i, w := range words {
			if w == "v" {
				words[i] = values[r.IntN(len(values))]
			}
			script.WriteByte('"')
			for _, c := range []byte(words[i]) {
				fmt.Fprintf(&script, `\x%02x`, c)
			}
			script.WriteString("\" ")
		}
		script.WriteByte('\n')
		commands = append(commands, words)
	}
	_, port, err := net.SplitHostPort(redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(cli, "-2", "--no-raw", "-p", port)
	cmd.Stdin = strings.NewReader(script.String())
	theirs, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, redis)
	c.ask("FLUSHALL")
	c.next()
	for _, words := range commands {
		c.ask(words...)
		name, args := c.next()
		want := shown(name, args)
		rest, ok := bytes.CutPrefix(theirs, []byte(want+"\n"))
		if !ok {
			t.Fatalf("%q: we read %s %q\nredis-cli shows %.200q", words, name, args, theirs)
		}
		// After an error that ends with spaces, redis-cli writes an empty line.
		theirs = bytes.TrimPrefix(rest, []byte("\n"))
	}
	if len(theirs) > 0 {
		t.Errorf("redis-cli shows more: %q", theirs)
	}
}
