package gearmonkey

import (
	"strings"
	"testing"
)

// whole is the conversation of the task all.
var whole = lines(
	"Client -> Server: GET_COUNT reverse", "Server -> Client: bulk 1",
	"Client -> Server: INCR_UID reverse", "Server -> Client: ID 7",
	`Client -> Server: HMSET_IDLE reverse 7 "some input"`, "Server -> Client: simple OK",
	"Client -> Server: PUBLISH_CREATE reverse 7", "Server -> Client: integer 0",
	"Client -> Server: LPUSH_QUEUE reverse normal 7", "Server -> Client: integer 1",
	"Client -> Server: BRPOP_LOCK reverse 7 5", "Server -> Client: UNLOCKED reverse 7 OK")

const all = `run reverse "some input" rollcall blocking=5`

// TestUnusualReplies: replies that no case of the conformance suite contains are errors.
func TestUnusualReplies(t *testing.T) {
	for reply, want := range map[string]string{
		"GET_COUNT: bulk \"\"": "error nothing-registered",
		"GET_COUNT: bulk 1.5":  "error nothing-registered",
		"GET_COUNT: integer 1": "error nothing-registered",
		"INCR_UID: simple OK":  "error no-id",
		"INCR_UID: bulk 7":     "error no-id",
		"INCR_UID: integer -7": "error no-id",
		"BRPOP_LOCK: nil":      "error timed-out 7",
	} {
		step, reply, _ := strings.Cut(reply, ": ")
		t.Run(step+" "+reply, func(t *testing.T) {
			script, _, _ := strings.Cut(whole, step)
			line, _, _ := strings.Cut(whole[len(script):], "\n")
			answering(t, lines(script+line, "Server -> Client: "+reply), all, want)
		})
	}
}

// TestRunEndsAtTheFirstError: an error of the server or an unexpected reply ends the task at that step. The connection can
// still be used.
func TestRunEndsAtTheFirstError(t *testing.T) {
	whole := strings.Split(whole, "\n")
	steps := []string{"GET_COUNT", "INCR_UID", "HMSET_IDLE", "PUBLISH_CREATE", "LPUSH_QUEUE", "BRPOP_LOCK"}
	for i, step := range steps {
		for reply, want := range map[string]string{`error WRONGTYPE "no"`: `error redis "WRONGTYPE no"`, "list a b c": `error redis "list`} {
			if reply[0] == 'l' && i < 2 {
				continue // for these steps, the reply is a failed roll call and a missing ID
			}
			t.Run(step+" "+reply, func(t *testing.T) {
				script := lines(append(append([]string{}, whole[:2*i+1]...), "Server -> Client: "+reply,
					"Client -> Server: HGETALL_JOB reverse 9", "Server -> Client: JOB status idle")...)
				answering(t, script, all, want, "get reverse 9", "ok idle")
			})
		}
	}
}
