package gearmonkey

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec"
)

// client is a separate connection to a server, with which tests inspect and change its data.
type client struct {
	*Conn
	t testing.TB
}

func connect(t testing.TB, addr string) client {
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
	w := NewWorker(connect(t, addr).Conn, nil)
	for _, fn := range functions {
		w.Accept(fn)
	}
	return w
}

// TestWorkerIsKilled checks the data on the reference server after a worker was killed after each of its steps.
func TestWorkerIsKilled(t *testing.T) {
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
		synctest.Test(t, func(t *testing.T) {
			addr := serve(t)
			op := connect(t, addr)
			if _, err := NewClient(connect(t, addr).Conn, nil).Run(t.Context(), "f", []byte("x"), RunOptions{Priority: tt.priority}); err != nil {
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
				t.Errorf("%s: Work returns no error", tt.step)
			}
			queued := op.do("LLEN", "queue:f:normal")
			if tt.priority == "scheduled" {
				queued = op.do("ZCARD", "queue:f:scheduled")
			}
			got := []string{queued, op.do("HGET", "job:f:1", "status"), op.do("GET", "count:f"),
				op.do("TTL", "job:f:1"), op.do("LLEN", "lock:f:1"), op.do("TTL", "lock:f:1")}
			want := []string{tt.queued, tt.status, tt.count, tt.jobTTL, tt.lock, tt.lockTTL}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: queued, status, count, TTL, lock, TTL: %v; want %v", tt.step, tt.priority, got, want)
			}
			if tt.queued == "0" {
				return
			}
			next := worker(t, addr, "f")
			next.Limit, next.Idle = 1, true
			if err := next.Work(t.Context(), echo); err != nil || op.do("HGET", "job:f:1", "status") != "success" {
				t.Errorf("%s: the next worker: %v", tt.step, err)
			}
		})
	}
}

// TestClientIsKilled checks the keys on the reference server after a client was killed after each of its steps.
func TestClientIsKilled(t *testing.T) {
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
		synctest.Test(t, func(t *testing.T) {
			addr := serve(t)
			op := connect(t, addr)
			op.do("SET", "count:f", "1")
			c := NewClient(connect(t, addr).Conn, nil)
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
		})
	}
}
