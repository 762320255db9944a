package gearmonkey

import (
	"fmt"
	"testing"
	"time"

	"jobwire/refserver"
)

// after checks the time since start.
func after(t *testing.T, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); got != want {
		t.Errorf("after %v, want %v", got, want)
	}
}

// TestTimeouts tests that each command that waits for an element replies with nil when its time has passed.
func TestTimeouts(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		for _, tt := range []struct {
			command string
			want    string
			time    time.Duration
		}{
			{"BRPOP a b 1", "*-1", time.Second},
			{"BLPOP a 0.25", "*-1", 250 * time.Millisecond},
			{"BRPOP a 0.0001", "*-1", time.Millisecond},
			{"BRPOPLPUSH a b 2", "*-1", 2 * time.Second},
			{"BLMOVE a b LEFT RIGHT 2", "*-1", 2 * time.Second},
			{"BLMPOP 3 2 a b LEFT", "*-1", 3 * time.Second},
			{"BZPOPMIN a 4", "*-1", 4 * time.Second},
			{"BZPOPMAX a 1e1", "*-1", 10 * time.Second},
			{"BZMPOP 1 1 a MIN", "*-1", time.Second},
			{"XREAD BLOCK 1500 STREAMS a 0", "*-1", 1500 * time.Millisecond},
		} {
			start := time.Now()
			c.want(tt.command, tt.want)
			after(t, start, tt.time)
		}
		c.ask("HELLO 3")
		start := time.Now()
		c.want("BRPOP a 1", "_")
		after(t, start, time.Second)
	})
}

// TestWaitWithoutTimeout checks that a timeout of 0 means no timeout.
func TestWaitWithoutTimeout(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, c := dial(), dial()
		w.send("BRPOP", "q", "0")
		time.Sleep(1000 * time.Hour)
		w.quiet()
		c.want("LPUSH q x", ":1")
		w.gets("*2 $1 q $1 x")
		c.want("EXISTS q", ":0")
	})
}

// TestWaitersInOrder checks that clients are served in the order in which they started to wait, each with one
// element.
func TestWaitersInOrder(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		var ws []*client
		for range 5 {
			w := dial()
			w.send("BRPOP", "other", "q", "10")
			ws = append(ws, w)
		}
		c.want("LPUSH q 1 2 3", ":3")
		for i, w := range ws[:3] {
			w.gets(fmt.Sprintf("*2 $1 q $1 %d", i+1))
		}
		ws[3].quiet()
		ws[0].send("BRPOP", "q", "10") // at the end of the queue again
		c.want("LPUSH q 4", ":1")
		ws[3].gets("*2 $1 q $1 4")
		c.want("LPUSH q 5", ":1")
		ws[4].gets("*2 $1 q $1 5")
		c.want("LPUSH q 6", ":1")
		ws[0].gets("*2 $1 q $1 6")
	})
}

// TestOrderOfKeys checks that the first named key that has elements is used. For a client that already waits,
// it is the key that was filled first.
func TestOrderOfKeys(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, c := dial(), dial()
		const command = "BRPOP queue:f:high queue:f:normal queue:f:low 1"
		c.want("LPUSH queue:f:low 1", ":1")
		c.want("LPUSH queue:f:normal 2 3", ":2")
		c.want("LPUSH queue:f:high 4", ":1")
		w.want(command, "*2 $12 queue:f:high $1 4")
		w.want(command, "*2 $14 queue:f:normal $1 2")
		w.want(command, "*2 $14 queue:f:normal $1 3")
		w.want(command, "*2 $11 queue:f:low $1 1")
		w.send("BRPOP", "queue:f:high", "queue:f:low", "0")
		c.raw("MULTI\r\nLPUSH queue:f:low 1\r\nLPUSH queue:f:high 2\r\nEXEC\r\n")
		w.gets("*2 $11 queue:f:low $1 1")
		for range 4 {
			c.next()
		}
		w.want(command, "*2 $12 queue:f:high $1 2")
	})
}

// TestLeavingWhileWaiting checks that a client that disconnects while it waits removes no element.
func TestLeavingWhileWaiting(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		gone, w, c := dial(), dial(), dial()
		gone.send("BRPOP", "q", "0")
		w.send("BRPOP", "q", "0")
		gone.leave()
		c.want("LPUSH q x", ":1")
		w.gets("*2 $1 q $1 x")
		w.send("BRPOP", "q", "0")
		w.leave()
		c.want("LPUSH q y", ":1")
		c.want("LRANGE q 0 -1", "*1 $1 y")
	})
}

// TestPipelineAfterWait checks that commands after a command that waits are executed when the wait is over.
func TestPipelineAfterWait(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, c := dial(), dial()
		w.raw("BRPOP q 0\r\nLLEN q\r\nBRPOP q 1\r\nPING\r\n")
		c.want("LPUSH q x", ":1")
		w.gets("*2 $1 q $1 x")
		w.gets(":0")
		w.gets("*-1")
		w.gets("+PONG")
	})
}

// TestEveryCommandThatAddsElementsServesWaits checks that waits are served by every command that adds elements to the key.
func TestEveryCommandThatAddsElementsServesWaits(t *testing.T) {
	for _, tt := range []struct{ wait, supply, got string }{
		{"BRPOP q 0", "RPUSH q a b", "*2 $1 q $1 b"},
		{"BLPOP q 0", "RPUSH q a b", "*2 $1 q $1 a"},
		{"BRPOP q 0", "RENAME full q", "*2 $1 q $1 2"},
		{"BRPOP q 0", "COPY full q", "*2 $1 q $1 2"},
		{"BRPOP q 0", "LMOVE full q LEFT LEFT", "*2 $1 q $1 1"},
		{"BRPOP q 0", "RPOPLPUSH full q", "*2 $1 q $1 2"},
		{"BRPOP far 0", "SWAPDB 0 1", "*2 $3 far $1 x"},
		{"BRPOPLPUSH q r 0", "LPUSH q a", "$1 a"},
		{"BLMOVE q r LEFT RIGHT 0", "LPUSH q a", "$1 a"},
		{"BLMPOP 0 2 p q LEFT COUNT 2", "RPUSH q a b c", "*2 $1 q *2 $1 a $1 b"},
		{"BZPOPMIN z 0", "ZADD z 2 b 1 a", "*3 $1 z $1 a $1 1"},
		{"BZPOPMAX z 0", "ZINCRBY z 2 b", "*3 $1 z $1 b $1 2"},
		{"BZMPOP 0 1 z MAX", "ZADD z 2 b 1 a", "*2 $1 z *1 *2 $1 b $1 2"},
		{"XREAD BLOCK 0 STREAMS s $", "XADD s 5-1 k v", "*1 *2 $1 s *1 *2 $3 5-1 *2 $1 k $1 v"},
	} {
		t.Run(tt.supply, func(t *testing.T) {
			bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
				w, c := dial(), dial()
				c.ask("RPUSH full 1 2")
				c.ask("XADD s 1-1 k old")
				c.ask("SELECT 1")
				c.ask("RPUSH far x")
				c.ask("SELECT 0")
				w.send(inlineWords(nil, tt.wait)...)
				c.want("PING", "+PONG")
				w.quiet()
				c.ask(tt.supply)
				w.gets(tt.got)
			})
		})
	}
}

// TestChainOfWaits checks that one push can serve a chain of waits.
func TestChainOfWaits(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		a, b, c, d := dial(), dial(), dial(), dial()
		d.send("BRPOP", "c", "0")
		b.send("BRPOPLPUSH", "b", "c", "0")
		a.send("BRPOPLPUSH", "a", "b", "0")
		c.want("LPUSH a x", ":1")
		a.gets("$1 x")
		b.gets("$1 x")
		d.gets("*2 $1 c $1 x")
		c.want("KEYS *", "*0")
	})
}

// TestWaitForAnotherType checks that a key of another type does not serve or end a wait.
func TestWaitForAnotherType(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, z, c := dial(), dial(), dial()
		w.send("BRPOP", "k", "0")
		z.send("BZPOPMIN", "k", "0")
		c.want("SET k v", "+OK")
		c.want("DEL k", ":1")
		w.quiet()
		c.want("ZADD k 1 m", ":1")
		z.gets("*3 $1 k $1 m $1 1")
		c.want("LPUSH k x", ":1")
		w.gets("*2 $1 k $1 x")
	})
}

// TestWaitAndTransaction checks that scripts and transactions do not wait, and that waits are served only after
// they end.
func TestWaitAndTransaction(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, c := dial(), dial()
		w.send("BRPOP", "q", "0")
		c.raw("MULTI\r\nLPUSH q 1\r\nLPUSH q 2\r\nRPOP q\r\nEXEC\r\n")
		for _, want := range []string{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3 :1 :2 $1 1"} {
			c.gets(want)
		}
		w.gets("*2 $1 q $1 2")
		w.send("BRPOP", "q", "0")
		c.send("EVAL", "redis.call('LPUSH', KEYS[1], 'a'); redis.call('DEL', KEYS[1]); redis.call('LPUSH', KEYS[1], 'b')", "1", "q")
		c.gets("$-1")
		w.gets("*2 $1 q $1 b")
	})
}

// TestManyWaiters checks many waits, which time out one after another.
func TestManyWaiters(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		start := time.Now()
		var ws []*client
		for i := range 50 {
			w := dial()
			w.send("BRPOP", "q", fmt.Sprint(50-i))
			ws = append(ws, w)
		}
		for i := len(ws) - 1; i >= 0; i-- {
			ws[i].gets("*-1")
			after(t, start, time.Duration(50-i)*time.Second)
		}
	})
}

// TestUnblock checks that CLIENT UNBLOCK ends a wait.
func TestUnblock(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, c := dial(), dial()
		w.want("CLIENT ID", ":1")
		c.want("CLIENT UNBLOCK 1", ":0")
		w.send("BRPOP", "q", "0")
		c.want("CLIENT UNBLOCK 1", ":1")
		w.gets("*-1")
		w.send("BRPOP", "q", "0")
		c.want("CLIENT UNBLOCK 1 ERROR", ":1")
		w.gets("-UNBLOCKED client unblocked via CLIENT UNBLOCK")
	})
}

// TestPushesWhileWaiting checks that a RESP3 client gets published messages while it waits; its later commands
// are executed after the wait.
func TestPushesWhileWaiting(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		w, c := dial(), dial()
		w.ask("HELLO 3")
		w.want("SUBSCRIBE ch", ">3 $9 subscribe $2 ch :1")
		w.raw("BRPOP q 0\r\nGET k\r\n")
		c.want("PUBLISH ch a", ":1")
		w.gets(">3 $7 message $2 ch $1 a")
		w.quiet()
		c.want("LPUSH q x", ":1")
		w.gets("*2 $1 q $1 x")
		w.gets("_")
	})
}
