package gearmonkey

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/internal/transport"
	"jobwire/refserver"
)

// TestMessages checks that a command of the specification is decoded as the message type of the specification.
func TestMessages(t *testing.T) {
	var seen []string
	trace := func(_ *refserver.Conn, from codec.Side, f *codec.Frame, raw []byte, err *codec.Error) {
		if err != nil {
			t.Errorf("%q from the %v: %v", raw, from, err)
		} else if from == codec.Server {
			seen = append(seen, f.Type.Name)
		}
	}
	bubble(t, refserver.Options{Trace: trace}, func(t *testing.T, m *Machine, dial func() *client) {
		c, s := dial(), dial()
		s.ask("SUBSCRIBE channel:f")
		for _, tt := range []struct{ command, table string }{
			{"INCR uid:f", "ID"},
			{"HMSET job:f:1 status idle input x", "simple"},
			{"GET count:f", "nil"},
			{"PUBLISH channel:f create:1", "EVENT integer"},
			{"PUBLISH channel:f other", "message integer"},
			{"LPUSH queue:f:high 1", "integer"},
			{"BRPOP queue:f:high queue:f:normal queue:f:low 1", "POPPED"},
			{"BRPOP queue:f:high queue:f:normal queue:f:low 1", "nil-array"},
			{"HGETALL job:f:1", "JOB"},
			{"SCRIPT LOAD return", "SHA1"},
			{"EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 7", "error"},
			{"LPUSH lock:f:1 OK", "integer"},
			{"BRPOP lock:f:1 1", "UNLOCKED"},
			{"LPUSH queue:f:high x", "integer"},
			{"BRPOP queue:f:high queue:f:normal queue:f:low 1", "list"}, // no ID
			{"HELLO 3", "aggregate"},
			{"HGETALL job:f:1", "map"},
			{"GET nothing", "null"},
		} {
			seen = nil
			c.ask(tt.command)
			if strings.HasPrefix(tt.command, "PUBLISH") {
				s.next()
			}
			if got := strings.Join(seen, " "); got != tt.table {
				t.Errorf("%s: got %s, want %s", tt.command, got, tt.table)
			}
		}
	})
}

// TestFaults checks that faults can be injected into this machine.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]refserver.Verdict{"POPPED": {Drop: true}, "BRPOP_QUEUES": {Extra: 1}, "simple": {Drop: true}} {
		intercept := func(_ *refserver.Conn, _ codec.Side, f *codec.Frame) (v refserver.Verdict) {
			if f.Type != nil && f.Type.Name == name {
				v = fault
			}
			return v
		}
		bubble(t, refserver.Options{Intercept: intercept}, func(t *testing.T, m *Machine, dial func() *client) {
			w, c := dial(), dial()
			w.send("BRPOP", "queue:f:high", "queue:f:normal", "queue:f:low", "1")
			c.want("LPUSH queue:f:high 1", ":1")
			c.want("EXISTS queue:f:high", ":0")
		})
	}
}

// TestHalfClosed checks that the commands of a peer that has shut down its direction are executed, but that the
// peer does not wait.
func TestHalfClosed(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c, w := dial(), dial()
		w.raw("PING\r\nBRPOP q 0\r\nPING\r\n")
		w.gets("+PONG")
		transport.CloseWrite(w.nc)
		w.ended()
		c.want("LPUSH q x", ":1")
		c.want("LLEN q", ":1")
	})
}

// TestQuit tests that QUIT in a transaction ends the connection, and that the queued commands are not executed.
func TestQuit(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		c.raw("MULTI\r\nSET k v\r\nQUIT\r\nEXEC\r\n")
		c.gets("+OK")
		c.gets("+QUEUED")
		c.gets("+OK")
		c.ended()
		dial().want("GET k", "$-1")
	})
}

// TestShutdown checks that SHUTDOWN ends every connection, including those that wait, and the server.
func TestShutdown(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, c := dial(), dial()
		w.send("BRPOP", "q", "0")
		c.want("SHUTDOWN SOON", "-ERR syntax error")
		c.send("SHUTDOWN", "NOSAVE")
		c.ended()
		w.ended()
		dial().ended()
	})
}

// TestNoGoroutines checks that a machine has no goroutines of its own: a bubble panics if goroutines remain.
func TestNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { New(Options{}) })
}

// TestClientReply tests that CLIENT REPLY OFF, SKIP and ON suppress and restore the replies like in Redis.
func TestClientReply(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		c.raw("CLIENT REPLY OFF\r\nSET k v\r\nCLIENT REPLY ON\r\nCLIENT REPLY SKIP\r\nGET k\r\nPING\r\nCLIENT REPLY X\r\n")
		c.gets("+OK")
		c.gets("+PONG")
		c.gets("-ERR syntax error")
		c.want("GET k", "$1 v")
	})
}

// TestPanics checks that a panic in miniredis neither ends the server nor leaves its lock locked.
func TestPanics(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		for _, script := range []string{"return function() end", "return coroutine.create(function() end)", "return {function() end}"} {
			c.send("EVAL", script, "0")
			if got := c.next(); !strings.HasPrefix(got, "-ERR ") {
				t.Fatalf("%s: got %s", script, got)
			}
			c.want("SET k v", "+OK")
		}
		for _, command := range []string{"SETRANGE k 99999999999 x", "SRANDMEMBER k -99999999999", "LPOS k", "XREAD BLOCK 0 STREAMS"} {
			if got := c.ask(command); got[0] != '-' {
				t.Errorf("%s: got %s", command, got)
			}
		}
		c.want("GET k", "$1 v")
	})
}

// TestLongReply checks that a reply that exceeds the maximum message size is replaced by an error.
func TestLongReply(t *testing.T) {
	bubble(t, refserver.Options{Codec: codec.Options{MaxData: 100}}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		c.want("APPEND k "+strings.Repeat("x", 60), ":60")
		c.want("APPEND k "+strings.Repeat("x", 60), ":120")
		if got := c.ask("GET k"); !strings.HasPrefix(got, "-ERR the reply is not a valid message: ") {
			t.Errorf("GET: %s", got)
		}
		c.want("STRLEN k", ":120")
	})
}

// TestPipeline checks that all pipelined commands are executed and answered in order.
func TestPipeline(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		var b strings.Builder
		const n = 10_000
		for i := range n {
			fmt.Fprintf(&b, "LPUSH q %d\r\n", i)
		}
		c.raw(b.String())
		for i := range n {
			c.gets(fmt.Sprint(":", i+1))
		}
		c.want("LINDEX q -1", "$1 0")
	})
}

// TestBadInput checks the replies to malformed requests, which no client library sends.
func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		send, want string // want is followed by the end of the connection, unless more is expected
		open       bool
	}{
		{"*0\r\n*-1\r\n*-2\r\n\r\n \t\r\n\nPING\r\n", "+PONG", true},
		{"ping\n", "+PONG", true},
		{"*1\r\n$4\r\npInG\r\n", "+PONG", true},
		{"PING 'a\\'b'\r\n", "$3 a'b", true},
		{"PING \"\\x41\\n\\\"\\xzz\"\r\n", "$6 A\n\"xzz", true},
		{"PING a\"b c\"\r\n", "$4 ab c", true},
		{"*1\r\n$0\r\n\r\n", "-ERR unknown command '', with args beginning with: ", true},
		{"*1\r\n:1\r\n", "-ERR Protocol error: expected '$'", false},
		{"*3\r\n$4\r\nPING\r\n*1\r\n", "-ERR Protocol error: expected '$'", false},
		{"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length", false},
		{"*1\r\n$04\r\nPING\r\n", "-ERR Protocol error: invalid bulk length", false},
		{"*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length", false},
		{"*1\r\n$600000000\r\n", "-ERR Protocol error: invalid bulk length", false},
		{"*01\r\n$4\r\nPING\r\n", "-ERR Protocol error: invalid multibulk length", false},
		{"*x\r\n", "-ERR Protocol error: invalid multibulk length", false},
		{"*1\n$4\nPING\r\n", "-ERR Protocol error: invalid multibulk length", false},
		{"*99999999999\r\n", "-ERR Protocol error: invalid multibulk length", false},
		{"PING \"a\r\n", "-ERR Protocol error: unbalanced quotes in request", false},
		{"PING \"a\"b\r\n", "-ERR Protocol error: unbalanced quotes in request", false},
		{strings.Repeat("x", 70_000), "-ERR Protocol error: too big inline request", false},
		{"PING\r\n*1\r\nPING\r\n", "+PONG|-ERR Protocol error: expected '$'", false},
	} {
		t.Run(fmt.Sprintf("%.30q", tt.send), func(t *testing.T) {
			bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
				c := dial()
				go c.nc.Write([]byte(tt.send))
				for want := range strings.SplitSeq(tt.want, "|") {
					c.gets(want)
				}
				if tt.open {
					c.want("PING", "+PONG")
				} else {
					c.ended()
				}
			})
		})
	}
}
