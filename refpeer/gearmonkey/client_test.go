package gearmonkey

import (
	"errors"
	"strings"
	"testing"
)

// whole is the conversation of a call with the options all.
var whole = lines(
	"Client -> Server: GET_COUNT reverse", "Server -> Client: bulk 1",
	"Client -> Server: INCR_UID reverse", "Server -> Client: ID 7",
	`Client -> Server: HMSET_IDLE reverse 7 "some input"`, "Server -> Client: simple OK",
	"Client -> Server: PUBLISH_CREATE reverse 7", "Server -> Client: integer 0",
	"Client -> Server: LPUSH_QUEUE reverse normal 7", "Server -> Client: integer 1",
	"Client -> Server: BRPOP_LOCK reverse 7 5", "Server -> Client: UNLOCKED reverse 7 OK")

var all = RunOptions{RollCall: true, Blocking: true, Timeout: 5}

// TestUnusualReplies: replies that no case of the conformance suite contains are errors.
func TestUnusualReplies(t *testing.T) {
	for reply, want := range map[string]error{
		"GET_COUNT: bulk \"\"": ErrNothingRegistered,
		"GET_COUNT: bulk 1.5":  ErrNothingRegistered,
		"GET_COUNT: integer 1": ErrNothingRegistered,
		"INCR_UID: simple OK":  ErrNoID,
		"INCR_UID: bulk 7":     ErrNoID,
		"INCR_UID: integer -7": ErrNoID,
		"BRPOP_LOCK: nil":      ErrTimedOut,
	} {
		step, reply, _ := strings.Cut(reply, ": ")
		t.Run(step+" "+reply, func(t *testing.T) {
			script, _, _ := strings.Cut(whole, step)
			line, _, _ := strings.Cut(whole[len(script):], "\n")
			asking(t, lines(script+line, "Server -> Client: "+reply), func(t *testing.T, c *Client) {
				if _, err := c.Run(t.Context(), "reverse", []byte("some input"), all); !errors.Is(err, want) {
					t.Errorf("expected %v, got %v", want, err)
				}
			})
		})
	}
}

// TestRunEndsAtTheFirstError: an error of the server or an unexpected reply ends Run at that step. The connection can still
// be used.
func TestRunEndsAtTheFirstError(t *testing.T) {
	whole := strings.Split(whole, "\n")
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
					id, err := c.Run(t.Context(), "reverse", []byte("some input"), all)
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
