package gearmonkey

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/internal/peers"
)

// client is a separate connection to a real server, with which tests inspect and change its data.
type client struct {
	*Conn
	t testing.TB
}

func redis(t testing.TB, addr string) client {
	t.Helper()
	c, err := Dial(t.Context(), addr, codec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{c, t}
}

var typeCommand = reply("command")

// do sends a command and returns the words of its reply. For a null reply it returns the name of the message type.
func (c client) do(words ...string) string {
	c.t.Helper()
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	m, err := c.Do(context.Background(), typeCommand, args...)
	if err != nil {
		c.t.Fatalf("%v: %v", words, err)
	}
	if m.Type == typeNil || m.Type == typeNilArray {
		return m.Type.Name
	}
	var out []string
	for _, a := range m.Args {
		out = append(out, string(a))
	}
	return strings.Join(out, " ")
}

// worker returns a worker with its own connection.
func worker(t testing.TB, addr string, functions ...string) *Worker {
	w := NewWorker(redis(t, addr).Conn, nil)
	for _, fn := range functions {
		w.Accept(fn)
	}
	return w
}

// TestWorkerIsKilled checks the data on the server after a worker was killed after each of its steps.
func TestWorkerIsKilled(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	op := redis(t, addr)
	for _, tt := range []struct {
		step, priority        string
		queued, status, count string
		jobTTL, lock, lockTTL string // seconds; -1: no expiry, -2: no such key
	}{
		{"SCRIPT_LOAD", "normal", "1", "idle", "nil", "-1", "0", "-2"},
		{"INCR_COUNT", "normal", "1", "idle", "1", "-1", "0", "-2"},
		{"EVALSHA_SCHEDULED", "normal", "1", "idle", "1", "-1", "0", "-2"},
		// From here on, the job is lost: no worker performs it, and its keys do not expire.
		{"EVALSHA_SCHEDULED", "scheduled", "0", "idle", "1", "-1", "0", "-2"},
		{"BRPOP_QUEUES", "normal", "0", "idle", "1", "-1", "0", "-2"},
		{"PUBLISH_START", "normal", "0", "idle", "1", "-1", "0", "-2"},
		{"HMSET_BUSY", "normal", "0", "busy", "1", "-1", "0", "-2"},
		{"HGET_INPUT", "normal", "0", "busy", "1", "-1", "0", "-2"},
		{"work", "normal", "0", "busy", "1", "-1", "0", "-2"},
		// The job has ended, but a waiting client is not notified, and the hash does not expire.
		{"HMSET_DONE", "normal", "0", "success", "1", "-1", "0", "-2"},
		{"EXPIRE_JOB", "normal", "0", "success", "1", "90000", "0", "-2"},
		{"PUBLISH_FINISH", "normal", "0", "success", "1", "90000", "0", "-2"},
		// A waiting client is notified. If none waits, the lock does not expire.
		{"LPUSH_LOCK", "normal", "0", "success", "1", "90000", "1", "-1"},
		// Only the count stays wrong.
		{"EXPIRE_LOCK", "normal", "0", "success", "1", "90000", "1", "10"},
		{"DECR_COUNT", "normal", "0", "success", "0", "90000", "1", "10"},
	} {
		t.Run(tt.step+" "+tt.priority, func(t *testing.T) {
			op.do("FLUSHALL")
			if _, err := NewClient(redis(t, addr).Conn, nil).Run(t.Context(), "f", []byte("x"), RunOptions{Priority: tt.priority}); err != nil {
				t.Fatal(err)
			}
			w := worker(t, addr, "f")
			w.Limit = 1
			w.After = func(step string) {
				if step == tt.step {
					w.performer.conn.Abort()
				}
			}
			if err := w.Work(t.Context(), echo); err == nil && tt.step != "DECR_COUNT" {
				t.Error("Work returns no error")
			}
			queued := op.do("LLEN", "queue:f:normal")
			if tt.priority == "scheduled" {
				queued = op.do("ZCARD", "queue:f:scheduled")
			}
			got := []string{queued, op.do("HGET", "job:f:1", "status"), op.do("GET", "count:f"),
				op.do("TTL", "job:f:1"), op.do("LLEN", "lock:f:1"), op.do("TTL", "lock:f:1")}
			want := []string{tt.queued, tt.status, tt.count, tt.jobTTL, tt.lock, tt.lockTTL}
			if !slices.Equal(got, want) {
				t.Errorf("queued, status, count, TTL, lock, TTL: %v; want %v", got, want)
			}
			if tt.queued == "0" {
				return
			}
			next := worker(t, addr, "f")
			next.Limit = 1
			if err := next.Work(t.Context(), echo); err != nil || op.do("HGET", "job:f:1", "status") != "success" {
				t.Errorf("the next worker: %v", err)
			}
		})
	}
}

// TestClientIsKilled checks the keys on the server after a client was killed after each of its steps.
func TestClientIsKilled(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	op := redis(t, addr)
	for _, tt := range []struct {
		step string
		keys string
	}{
		{"GET_COUNT", ""},
		{"INCR_UID", "uid:f"},
		{"HMSET_IDLE", "job:f:1 uid:f"}, // does not expire
		{"PUBLISH_CREATE", "job:f:1 uid:f"},
		{"LPUSH_QUEUE", "job:f:1 queue:f:normal uid:f"}, // a worker can perform the job
	} {
		op.do("FLUSHALL")
		op.do("SET", "count:f", "1")
		c := NewClient(redis(t, addr).Conn, nil)
		c.After = func(step string) {
			if step == tt.step {
				c.performer.conn.Abort()
			}
		}
		_, err := c.Run(t.Context(), "f", []byte("x"), RunOptions{RollCall: true})
		if (err == nil) != (tt.step == "LPUSH_QUEUE") {
			t.Errorf("%s: %v", tt.step, err)
		}
		op.do("DEL", "count:f")
		keys := strings.Fields(op.do("KEYS", "*"))
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != tt.keys {
			t.Errorf("%s: there is %s; want %s", tt.step, got, tt.keys)
		}
	}
}

func TestScriptFlush(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	op := redis(t, addr)
	c := NewClient(redis(t, addr).Conn, nil)
	w := worker(t, addr, "f")
	w.Limit = 3
	loads := 0
	w.After = func(step string) {
		switch step {
		case "SCRIPT_LOAD":
			loads++
		case "EXPIRE_LOCK":
			op.do("SCRIPT", "FLUSH")
		}
	}
	for range 3 {
		if _, err := c.Run(t.Context(), "f", nil, RunOptions{Priority: "scheduled"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Work(t.Context(), echo); err != nil || loads != 3 {
		t.Errorf("Work: %v, %d loads", err, loads)
	}
}

// TestOrderOfJobs: a worker with several functions performs scheduled jobs first, then those of priority high, normal and
// low, each in the order of their creation.
func TestOrderOfJobs(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	c := NewClient(redis(t, addr).Conn, nil)
	run := func(input string, o RunOptions) {
		if _, err := c.Run(t.Context(), "f", []byte(input), o); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Unix()
	run("h1", RunOptions{Priority: "low"})
	run("f1", RunOptions{})
	run("c1", RunOptions{Priority: "high"})
	run("b", RunOptions{Priority: "scheduled", Scheduled: now - 5})
	run("a", RunOptions{Priority: "scheduled", Scheduled: now - 10})
	run("never", RunOptions{Priority: "scheduled", Scheduled: now + 3600})
	run("f2", RunOptions{Priority: "normal"})
	run("c2", RunOptions{Priority: "high"})
	run("h2", RunOptions{Priority: "low"})
	w := worker(t, addr, "f")
	w.Idle = true
	var order []string
	err := w.Work(t.Context(), func(_ context.Context, t *Task) ([]byte, error) {
		order = append(order, string(t.Input))
		return nil, nil
	})
	if got := strings.Join(order, " "); err != nil || got != "a b c1 c2 f1 f2 h1 h2" {
		t.Errorf("%s, %v", got, err)
	}
}

// monitored matches a line of MONITOR: the address of the client, and the command.
var monitored = regexp.MustCompile(`^\+\S+ \[0 ([^\]]*)\] (.*)\r\n$`)

// TestMonitor compares the commands that the server reports with those of the specification.
func TestMonitor(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(nc, "MONITOR\r\n")
	in := bufio.NewReader(nc)
	if ok, err := in.ReadString('\n'); ok != "+OK\r\n" {
		t.Fatal(ok, err)
	}

	w := worker(t, addr, "f")
	w.Limit = 1
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := NewClient(redis(t, addr).Conn, nil)
	if _, err := c.Run(t.Context(), "f", []byte("x y"), RunOptions{RollCall: true, Priority: "scheduled", Scheduled: 5}); err != nil {
		t.Fatal(err)
	}
	if found, err := w.Round(t.Context(), func(ctx context.Context, t *Task) ([]byte, error) { return []byte("z"), w.Update(ctx, 1, 2) }); !found || err != nil {
		t.Fatal(found, err)
	}
	if _, err := c.Run(t.Context(), "f", nil, RunOptions{}); err != nil {
		t.Fatal(err)
	}
	fail := func(context.Context, *Task) ([]byte, error) { return nil, errors.New("no") }
	if found, err := w.Round(t.Context(), fail); !found || err != nil {
		t.Fatal(found, err)
	}
	if _, err := c.Get(t.Context(), "f", 2); err != nil {
		t.Fatal(err)
	}
	if err := w.Exit(t.Context()); err != nil {
		t.Fatal(err)
	}

	sha, now := string(w.task.SHA1), string(w.task.Date)
	eval := fmt.Sprintf(`"EVALSHA" "%s" "1" "queue:f:scheduled" "%s"`, sha, now)
	for _, want := range []string{
		`"SCRIPT" "LOAD" ` + strconv.Quote(string(w.task.Script)),
		`"INCR" "count:f"`,
		`"GET" "count:f"`,
		`"INCR" "uid:f"`,
		`"HMSET" "job:f:1" "status" "idle" "input" "x y"`,
		`"PUBLISH" "channel:f" "create:1"`,
		`"ZADD" "queue:f:scheduled" "5" "1"`,
		eval,
		`"PUBLISH" "channel:f" "start:1"`,
		`"HMSET" "job:f:1" "status" "busy"`,
		`"HGET" "job:f:1" "input"`,
		`"HMSET" "job:f:1" "status:dividend" "1" "status:divisor" "2"`,
		`"HMSET" "job:f:1" "status" "success" "output" "z"`,
		`"EXPIRE" "job:f:1" "90000"`,
		`"PUBLISH" "channel:f" "finish:1"`,
		`"LPUSH" "lock:f:1" "OK"`,
		`"EXPIRE" "lock:f:1" "10"`,
		`"INCR" "uid:f"`,
		`"HMSET" "job:f:2" "status" "idle" "input" ""`,
		`"PUBLISH" "channel:f" "create:2"`,
		`"LPUSH" "queue:f:normal" "2"`,
		eval,
		`"BRPOP" "queue:f:high" "queue:f:normal" "queue:f:low" "1"`,
		`"PUBLISH" "channel:f" "start:2"`,
		`"HMSET" "job:f:2" "status" "busy"`,
		`"HGET" "job:f:2" "input"`,
		`"HMSET" "job:f:2" "status" "error" "output" "no"`,
		`"EXPIRE" "job:f:2" "90000"`,
		`"PUBLISH" "channel:f" "finish:2"`,
		`"LPUSH" "lock:f:2" "OK"`,
		`"EXPIRE" "lock:f:2" "10"`,
		`"HGETALL" "job:f:2"`,
		`"DECR" "count:f"`,
	} {
		line, from := "", "lua"
		for from == "lua" {
			raw, err := in.ReadString('\n')
			m := monitored.FindStringSubmatch(raw)
			if err != nil || m == nil {
				t.Fatalf("%q, %v; want %s", raw, err, want)
			}
			from, line = m[1], m[2]
		}
		if want == eval { // a second may have passed between the rounds, so the time in the command may differ
			line, want = line[:len(eval)-4], eval[:len(eval)-4]
		}
		if line != want {
			t.Fatalf("%s; want %s", line, want)
		}
	}
}
