package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/internal/peers"
	"jobwire/internal/target"
)

// connection is a connection to a real server, with a session for each side. Every decoded message must be
// encoded to the same bytes.
type connection struct {
	t            *testing.T
	nc           net.Conn
	read, mirror codec.Session
	buf          []byte
	frame        codec.Frame
}

func connect(t *testing.T, redis target.Target) *connection {
	t.Helper()
	nc, err := target.Dial(t.Context(), redis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	return &connection{t: t, nc: nc, read: Protocol.NewSession(codec.Options{}), mirror: Protocol.NewSession(codec.Options{})}
}

// ask sends a command.
func (c *connection) ask(words ...string) {
	c.t.Helper()
	m := message("command", words...)
	raw, err := c.read.Append(nil, codec.Peer, m)
	if err == nil {
		_, err = c.mirror.Append(nil, codec.Peer, m)
	}
	if err == nil {
		_, err = c.nc.Write(raw)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message from the server.
func (c *connection) next() (name string, args []string) {
	c.t.Helper()
	for {
		n, err := c.read.Decode(codec.Server, c.buf, &c.frame)
		if err == codec.ErrShort {
			chunk := make([]byte, max(4096, n-len(c.buf)))
			k, err := c.nc.Read(chunk)
			if err != nil {
				c.t.Fatalf("%q: %v", c.buf, err)
			}
			c.buf = append(c.buf, chunk[:k]...)
			continue
		}
		if err != nil {
			c.t.Fatalf("%q: %v", c.buf, err)
		}
		var m codec.Message
		c.frame.Message(&m)
		if again, err := c.mirror.Append(nil, codec.Server, &m); err != nil || !bytes.Equal(again, c.buf[:n]) {
			c.t.Fatalf("%q is read as %s %q and written as %q, %v", c.buf[:n], m.Type.Name, m.Args, again, err)
		}
		for _, a := range m.Args {
			args = append(args, string(a))
		}
		c.buf = c.buf[n:]
		return m.Type.Name, args
	}
}

// TestEveryKindOfValue tests that each kind of value that a real Redis server sends is decoded as its message type, in
// RESP2 and RESP3.
func TestEveryKindOfValue(t *testing.T) {
	redis := peers.Start(t, "redis-server", "--enable-debug-command", "yes")
	tests := []struct{ kind, resp2, resp3 string }{
		{"string", "bulk Hello World", "bulk Hello World"},
		{"integer", "integer 12345", "integer 12345"},
		{"double", "bulk 3.141", "double 3.141"},
		{"null", "nil", "null"},
		{"array", "aggregate *3 :0 :1 :2", "aggregate *3 :0 :1 :2"},
		{"set", "aggregate *3 :0 :1 :2", "aggregate ~3 :0 :1 :2"},
		{"map", "aggregate *6 :0 :0 :1 :1 :2 :0", "aggregate %3 :0 #f :1 #t :2 #f"},
		{"attrib", "bulk Some real reply following the attribute", "aggregate |1 $14 key-popularity *2 $7 key:123 :90 $39 Some real reply following the attribute"},
		{"push", "error ERR RESP2 is not supported by this command", "push >2 $16 server-cpu-usage :42"},
		{"verbatim", "bulk This is a verbatim\nstring", "verbatim txt This is a verbatim\nstring"},
		{"true", "integer 1", "boolean t"},
		{"false", "integer 0", "boolean f"},
		{"bignum", "bulk 1234567999999999999999999999999999999", "big-number 1234567999999999999999999999999999999"},
	}
	for version := 2; version <= 3; version++ {
		c := connect(t, redis)
		c.ask("HELLO", strconv.Itoa(version))
		c.next()
		for _, tt := range tests {
			want := tt.resp2
			if version == 3 {
				want = tt.resp3
			}
			c.ask("DEBUG", "PROTOCOL", tt.kind)
			name, args := c.next()
			if got := strings.Join(append([]string{name}, args...), " "); got != want {
				t.Errorf("RESP%d, %s: %q, want %q", version, tt.kind, got, want)
			}
			if name == "push" {
				// Redis sends the reply to the command after the push.
				if name, args := c.next(); name != "bulk" || len(args) != 1 {
					t.Errorf("RESP%d, %s: followed by %s %q", version, tt.kind, name, args)
				}
			}
		}
	}
}

// TestPublishedMessages tests subscriptions of all kinds with a real server.
func TestPublishedMessages(t *testing.T) {
	redis := peers.Start(t, "redis-server")
	for version := 2; version <= 3; version++ {
		c, other := connect(t, redis), connect(t, redis)
		expect := func(c *connection, name string, words ...string) {
			t.Helper()
			if version == 3 && name != "integer" && name != "simple" && name != "list" {
				word := map[string]string{"subscribed": "subscribe", "psubscribed": "psubscribe", "ssubscribed": "ssubscribe",
					"unsubscribed": "unsubscribe", "punsubscribed": "punsubscribe", "sunsubscribed": "sunsubscribe"}[name]
				if word == "" {
					word = name
				}
				tokens := []string{fmt.Sprintf(">%d", len(words)+1), fmt.Sprintf("$%d", len(word)), word}
				for i, w := range words {
					if i == len(words)-1 && word != name {
						tokens = append(tokens, ":"+w)
					} else {
						tokens = append(tokens, fmt.Sprintf("$%d", len(w)), w)
					}
				}
				name, words = "push", tokens
			}
			if got, args := c.next(); got != name || !slices.Equal(args, words) {
				t.Fatalf("RESP%d: %s %q, want %s %q", version, got, args, name, words)
			}
		}
		c.ask("HELLO", strconv.Itoa(version))
		c.next()
		c.ask("SUBSCRIBE", "a", "b")
		expect(c, "subscribed", "a", "1")
		expect(c, "subscribed", "b", "2")
		c.ask("PSUBSCRIBE", "a*")
		expect(c, "psubscribed", "a*", "3")
		c.ask("SSUBSCRIBE", "s")
		expect(c, "ssubscribed", "s", "1")
		other.ask("PUBLISH", "a", "x\r\n\x00")
		expect(other, "integer", "2")
		expect(c, "message", "a", "x\r\n\x00")
		expect(c, "pmessage", "a*", "a", "x\r\n\x00")
		other.ask("SPUBLISH", "s", "y")
		expect(other, "integer", "1")
		expect(c, "smessage", "s", "y")
		c.ask("UNSUBSCRIBE", "a")
		expect(c, "unsubscribed", "a", "2")
		c.ask("UNSUBSCRIBE")
		expect(c, "unsubscribed", "b", "1")
		c.ask("PING")
		if version == 2 {
			expect(c, "list", "pong", "")
		} else {
			expect(c, "simple", "PONG")
		}
		c.ask("PUNSUBSCRIBE")
		expect(c, "punsubscribed", "a*", "0")
		c.ask("SUNSUBSCRIBE")
		expect(c, "sunsubscribed", "s", "0")
		c.ask("PING")
		expect(c, "simple", "PONG")
	}
}

// tree is a value that a script returns, in Lua and as the expected tokens.
type tree struct {
	lua    string
	tokens []string
}

// grow returns a random value.
func grow(r *rand.Rand, depth, version int) tree {
	kinds := 3
	if version == 3 {
		kinds = 7
	}
	if depth > 0 {
		kinds += version - 1
	}
	word := make([]byte, r.IntN(12))
	for i := range word {
		word[i] = "ab\r\n\x00$*:1 "[r.IntN(10)]
	}
	var quoted strings.Builder
	for _, b := range word {
		fmt.Fprintf(&quoted, "\\%03d", b)
	}
	switch k := r.IntN(kinds); {
	case k == 0:
		n := r.Int64N(1<<53) - 1<<52
		return tree{fmt.Sprintf("%d", n), []string{fmt.Sprintf(":%d", n)}}
	case k == 1:
		return tree{"'" + quoted.String() + "'", []string{fmt.Sprintf("$%d", len(word)), string(word)}}
	case k == 2:
		return tree{"{ok='a b'}", []string{"+a b"}}
	case version == 3 && k == 3:
		return tree{"true", []string{"#t"}}
	case version == 3 && k == 4:
		n := float64(r.IntN(4000)) / 8
		return tree{fmt.Sprintf("{double=%v}", n), []string{fmt.Sprintf(",%v", n)}}
	case version == 3 && k == 5:
		return tree{"{big_number='-" + strings.Repeat("7", 40) + "'}", []string{"(-" + strings.Repeat("7", 40)}}
	case version == 3 && k == 6:
		return tree{"{verbatim_string={format='txt',string='" + quoted.String() + "'}}", []string{fmt.Sprintf("=%d", 4+len(word)), "txt:" + string(word)}}
	case k == kinds-1 && version == 3:
		value := grow(r, depth-1, version)
		return tree{"{map={['a b']=" + value.lua + "}}", append([]string{"%1", "$3", "a b"}, value.tokens...)}
	}
	var all tree
	n := r.IntN(4)
	all.tokens = []string{fmt.Sprintf("*%d", n)}
	var items []string
	for range n {
		item := grow(r, depth-1, version)
		items = append(items, item.lua)
		all.tokens = append(all.tokens, item.tokens...)
	}
	all.lua = "{" + strings.Join(items, ",") + "}"
	return all
}

// flatten converts a message to tokens, so that it can be compared with a tree.
func flatten(name string, args []string) []string {
	bulk := func(sign, s string) []string { return []string{fmt.Sprintf("%s%d", sign, len(s)), s} }
	var all []string
	switch name {
	case "aggregate":
		return args
	case "simple":
		return []string{"+" + args[0]}
	case "integer":
		return []string{":" + args[0]}
	case "boolean":
		return []string{"#" + args[0]}
	case "double":
		return []string{"," + args[0]}
	case "big-number":
		return []string{"(" + args[0]}
	case "bulk":
		return bulk("$", args[0])
	case "verbatim":
		return bulk("=", args[0]+":"+args[1])
	case "list":
		all = []string{fmt.Sprintf("*%d", len(args))}
	case "map":
		all = []string{fmt.Sprintf("%%%d", len(args)/2)}
	}
	for _, a := range args {
		all = append(all, bulk("$", a)...)
	}
	return all
}

// TestRandomValues checks the replies to scripts that return known values.
func TestRandomValues(t *testing.T) {
	redis := peers.Start(t, "redis-server")
	r := rand.New(rand.NewPCG(1, 2))
	for version := 2; version <= 3; version++ {
		c := connect(t, redis)
		c.ask("HELLO", strconv.Itoa(version))
		c.next()
		for range 300 {
			want := grow(r, 4, version)
			c.ask("EVAL", fmt.Sprintf("redis.setresp(%d); return %s", version, want.lua), "0")
			if name, args := c.next(); !slices.Equal(flatten(name, args), want.tokens) {
				t.Fatalf("RESP%d: %s is read as %s %q, want the tokens %q", version, want.lua, name, args, want.tokens)
			}
		}
	}
}

// TestRedisRejectsWhatTheCodecRejects tests that a real Redis server replies with an error and closes the connection
// after a request that the codec rejects as fatal, and ignores the other requests that the codec rejects. rules.txt
// lists the cases that Redis does not check.
func TestRedisRejectsWhatTheCodecRejects(t *testing.T) {
	redis := peers.Start(t, "redis-server")
	unseen := []codec.RuleID{RuleLineEnd, RuleBulkEnd, RuleCap}
	for _, tt := range rejects {
		if tt.from == codec.Server || slices.Contains(unseen, tt.rule) || tt.name == "NUL" {
			continue
		}
		raw := tt.raw
		switch {
		case tt.rule == RuleInlineLength:
			raw += "a" // it takes one byte more
		case !tt.fatal:
			raw += ping
		}
		c := connect(t, redis)
		if _, err := io.WriteString(c.nc, raw); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c.nc)
		line, err := in.ReadString('\n')
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if !tt.fatal {
			if line != "+PONG\r\n" {
				t.Errorf("%s: answered by %q, want nothing", tt.name, line)
			}
			continue
		}
		_, err = in.ReadByte()
		var reset *net.OpError
		if !strings.HasPrefix(line, "-ERR Protocol error") || err != io.EOF && !errors.As(err, &reset) {
			t.Errorf("%s: answered by %q and %v, want an error and the end", tt.name, line, err)
		}
	}
}
