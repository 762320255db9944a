package gearmonkey

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// created is a conversation in which a job is created. push is the part in which it is added to a queue.
func created(push string) string {
	return lines(
		"Client -> Server: INCR_UID reverse",
		"Server -> Client: ID 7",
		`Client -> Server: HMSET_IDLE reverse 7 "some input"`,
		"Server -> Client: simple OK",
		"Client -> Server: PUBLISH_CREATE reverse 7",
		"Server -> Client: integer 0",
		"Client -> Server: "+push,
		"Server -> Client: integer 1")
}

const (
	pushed       = "LPUSH_QUEUE reverse normal 7"
	countRequest = "Client -> Server: GET_COUNT reverse\nServer -> Client: "
	waited       = "Client -> Server: BRPOP_LOCK reverse 7 5\nServer -> Client: "
)

func TestRun(t *testing.T) {
	for name, tt := range map[string]struct {
		options RunOptions
		script  string
		id      uint64
		err     error
	}{
		"normal by default":     {RunOptions{}, created(pushed), 7, nil},
		"normal":                {RunOptions{Priority: "normal"}, created(pushed), 7, nil},
		"low":                   {RunOptions{Priority: "low"}, created("LPUSH_QUEUE reverse low 7"), 7, nil},
		"high":                  {RunOptions{Priority: "high"}, created("LPUSH_QUEUE reverse high 7"), 7, nil},
		"scheduled":             {RunOptions{Priority: "scheduled", Scheduled: 1700000000}, created("ZADD_SCHEDULED reverse 1700000000 7"), 7, nil},
		"due at once":           {RunOptions{Priority: "scheduled"}, created("ZADD_SCHEDULED reverse 0 7"), 7, nil},
		"roll call":             {RunOptions{RollCall: true}, countRequest + "bulk 1\n" + created(pushed), 7, nil},
		"roll call of many":     {RunOptions{RollCall: true}, countRequest + "bulk 12\n" + created(pushed), 7, nil},
		"nobody registered":     {RunOptions{RollCall: true}, countRequest + "bulk 0\n", 0, ErrNothingRegistered},
		"never registered":      {RunOptions{RollCall: true}, countRequest + "nil\n", 0, ErrNothingRegistered},
		"negative count":        {RunOptions{RollCall: true}, countRequest + "bulk -2\n", 0, ErrNothingRegistered},
		"count of text":         {RunOptions{RollCall: true}, countRequest + "bulk many\n", 0, ErrNothingRegistered},
		"count of nothing":      {RunOptions{RollCall: true}, countRequest + `bulk ""` + "\n", 0, ErrNothingRegistered},
		"count with a fraction": {RunOptions{RollCall: true}, countRequest + "bulk 1.5\n", 0, ErrNothingRegistered},
		"blocking":              {RunOptions{Blocking: true, Timeout: 5}, created(pushed) + waited + "UNLOCKED reverse 7 OK after 2s\n", 7, nil},
		"blocking for ever": {RunOptions{Blocking: true},
			created(pushed) + strings.Replace(waited, "7 5", "7 0", 1) + "UNLOCKED reverse 7 OK after 2000s\n", 7, nil},
		"time-out": {RunOptions{Blocking: true, Timeout: 5}, created(pushed) + waited + "nil-array after 5s\n", 7, ErrTimedOut},
		"all at once": {RunOptions{RollCall: true, Blocking: true, Timeout: 5, Priority: "high"},
			countRequest + "bulk 1\n" + created("LPUSH_QUEUE reverse high 7") + waited + "UNLOCKED reverse 7 OK\n", 7, nil},

		"no ID":         {RunOptions{}, "Client -> Server: INCR_UID reverse\nServer -> Client: nil\n", 0, ErrNoID},
		"text for ID":   {RunOptions{}, "Client -> Server: INCR_UID reverse\nServer -> Client: simple OK\n", 0, ErrNoID},
		"bulk for ID":   {RunOptions{}, "Client -> Server: INCR_UID reverse\nServer -> Client: bulk 7\n", 0, ErrNoID},
		"ID below zero": {RunOptions{}, "Client -> Server: INCR_UID reverse\nServer -> Client: integer -7\n", 0, ErrNoID},
	} {
		t.Run(name, func(t *testing.T) {
			against(t, tt.script, func(t *testing.T, conn *Conn) {
				id, err := NewClient(conn, nil).Run(t.Context(), "reverse", []byte("some input"), tt.options)
				if id != tt.id || !errors.Is(err, tt.err) {
					t.Errorf("Run: %d, %v; want %d, %v", id, err, tt.id, tt.err)
				}
			})
		})
	}
}

// TestRunEndsAtTheFirstError: an error of the server or an unexpected reply ends Run at that step. The connection can still
// be used.
func TestRunEndsAtTheFirstError(t *testing.T) {
	whole := strings.Split(countRequest+"bulk 1\n"+created(pushed)+waited+"UNLOCKED reverse 7 OK\n", "\n")
	steps := []string{"GET_COUNT", "INCR_UID", "HMSET_IDLE", "PUBLISH_CREATE", "LPUSH_QUEUE", "BRPOP_LOCK"}
	for i, step := range steps {
		for reply, want := range map[string]string{"error WRONGTYPE no": "WRONGTYPE no", "list a b c": ""} {
			if want == "" && i < 2 {
				continue // for these steps, the reply is a failed roll call and a missing ID
			}
			t.Run(step+" "+reply, func(t *testing.T) {
				script := lines(append(append([]string{}, whole[:2*i+1]...), "Server -> Client: "+strings.Replace(reply, "WRONGTYPE no", `WRONGTYPE "no"`, 1),
					"Client -> Server: HGETALL_JOB reverse 9", "Server -> Client: JOB status idle")...)
				asking(t, script, func(t *testing.T, c *Client) {
					id, err := c.Run(t.Context(), "reverse", []byte("some input"), RunOptions{RollCall: true, Blocking: true, Timeout: 5})
					var at *StepError
					var refused *RedisError
					if !errors.As(err, &at) || at.Step != step || !errors.As(err, &refused) || want != "" && refused.Text != want {
						t.Errorf("Run: %v; want an error of %s", err, step)
					}
					if (id != 0) != (i >= 2) {
						t.Errorf("the ID is %d", id)
					}
					if j, err := c.Get(t.Context(), "reverse", 9); err != nil || j.Status() != "idle" {
						t.Errorf("the next call: %v, %v", j, err)
					}
				})
			})
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, o := range []RunOptions{
		{Priority: "urgent"},
		{Priority: "NORMAL"},
		{Scheduled: 5},
		{Priority: "high", Scheduled: 5},
		{Priority: "scheduled", Scheduled: -1},
		{Timeout: 5},
		{Blocking: true, Timeout: -1},
	} {
		asking(t, created(pushed), func(t *testing.T, c *Client) {
			if id, err := c.Run(t.Context(), "reverse", nil, o); id != 0 || !errors.Is(err, ErrUsage) {
				t.Errorf("%+v: %d, %v", o, id, err)
			}
			// The rejected call sent nothing: the server next receives the commands of another call.
			if id, err := c.Run(t.Context(), "reverse", []byte("some input"), RunOptions{}); id != 7 || err != nil {
				t.Errorf("after %+v: %d, %v", o, id, err)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	against(t, created(pushed)+strings.Replace(waited, "Server -> Client: ", "", 1)+"Client -> Server: closes\n", func(t *testing.T, conn *Conn) {
		c := NewClient(conn, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		id, err := c.Run(ctx, "reverse", []byte("some input"), RunOptions{Blocking: true, Timeout: 5})
		if id != 7 || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("Run: %d, %v after %v", id, err, time.Since(start))
		}
		// The reply may still arrive, so the connection cannot be used for another request.
		if _, err := c.Get(t.Context(), "reverse", 7); err == nil || conn.Err() == nil {
			t.Error("the connection is still used")
		}
	})
}

func TestRunDoesNotBeginTooLate(t *testing.T) {
	asking(t, created(pushed), func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if id, err := c.Run(ctx, "reverse", nil, RunOptions{}); id != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %d, %v", id, err)
		}
		if _, err := c.Run(t.Context(), "reverse", []byte("some input"), RunOptions{}); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

func TestGet(t *testing.T) {
	for reply, want := range map[string]Job{
		"JOB status idle input abc": {[]Field{{"status", "idle"}, {"input", "abc"}}},
		`JOB status success input "" output "a\0b" status:dividend 1`: {[]Field{
			{"status", "success"}, {"input", ""}, {"output", "a\x00b"}, {"status:dividend", "1"}}},
		"raw \"*0\\r\\n\"": {},
	} {
		against(t, lines("Client -> Server: HGETALL_JOB reverse 7", "Server -> Client: "+reply), func(t *testing.T, conn *Conn) {
			j, err := NewClient(conn, nil).Get(t.Context(), "reverse", 7)
			if err != nil || !reflect.DeepEqual(j, want) {
				t.Errorf("Get: %+v, %v; want %+v", j, err, want)
			}
			if len(want.Fields) > 0 && (j.Status() != want.Fields[0].Value || j.Get("nothing") != "") {
				t.Errorf("the status is %q", j.Status())
			}
		})
	}
}

// TestCallsReturnNothingFromEarlierCalls: a call returns nothing from an earlier call.
func TestCallsReturnNothingFromEarlierCalls(t *testing.T) {
	script := created(pushed) + lines(
		"Client -> Server: HGETALL_JOB reverse 7", "Server -> Client: JOB status idle",
		"Client -> Server: INCR_UID reverse", "Server -> Client: nil",
		"Client -> Server: HGETALL_JOB reverse 7", "Server -> Client: error WRONGTYPE")
	asking(t, script, func(t *testing.T, c *Client) {
		if id, err := c.Run(t.Context(), "reverse", []byte("some input"), RunOptions{}); id != 7 || err != nil {
			t.Errorf("Run: %d, %v", id, err)
		}
		if j, err := c.Get(t.Context(), "reverse", 7); len(j.Fields) != 1 || err != nil {
			t.Errorf("Get: %v, %v", j, err)
		}
		if id, err := c.Run(t.Context(), "reverse", nil, RunOptions{}); id != 0 || err == nil {
			t.Errorf("Run: %d, %v", id, err)
		}
		if j, err := c.Get(t.Context(), "reverse", 7); len(j.Fields) != 0 || err == nil {
			t.Errorf("Get: %v, %v", j, err)
		}
	})
}
