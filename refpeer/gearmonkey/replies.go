package gearmonkey

import (
	"fmt"
	"strings"

	"jobwire/codec"
	"jobwire/refpeer/internal/peer"
)

var (
	// ErrNothingRegistered is the failure of a roll call: the count of the function's workers does not exist, is not an
	// integer, or is 0 or less. No job was created.
	ErrNothingRegistered = peer.Failure{Words: []string{"nothing-registered", "no worker is registered for the function"}}

	errNoID = peer.Failure{Words: []string{"no-id", "the server did not return a job ID"}} // no job was created
)

// TimedOut returns the failure of a client whose job was created but did not end before the client's timeout.
func TimedOut(id string) peer.Failure { return peer.Failure{Words: []string{"timed-out", id}} }

// refusal returns the failure for a Redis error, or for a reply that is not valid for its command.
func refusal(m *codec.Message) peer.Failure {
	if m.Type.Does == codec.Refuse {
		return peer.Failure{Code: string(m.Args[0]), Words: []string{"redis", strings.Join(peer.Texts(m), " ")}}
	}
	return peer.Failure{Words: []string{"redis", fmt.Sprintf("%s %.200q", m.Type.Name, m.Args)}}
}

// check returns a handler of replies that calls do and rejects the reply if it returns false.
func check(do func(t peer.Task, m *codec.Message) bool) func(peer.Task, *codec.Message) error {
	return func(t peer.Task, m *codec.Message) error {
		if do(t, m) {
			return nil
		}
		return refusal(m)
	}
}

var (
	saysOK = check(func(_ peer.Task, m *codec.Message) bool {
		return m.Type.Name == "simple" && string(m.Args[0]) == "OK"
	})
	counts   = check(func(_ peer.Task, m *codec.Message) bool { return m.Type.Name == "integer" })
	takeSHA1 = check(func(t peer.Task, m *codec.Message) bool {
		if m.Type.Name == "SHA1" {
			t["SHA1"] = string(m.Args[0])
		}
		return m.Type.Name == "SHA1"
	})
	takeJob = check(func(t peer.Task, m *codec.Message) bool {
		if m.Type.Name != "JOB" && (m.Type.Name != "list" || len(m.Args) > 0) {
			return false
		}
		t["job.status"], t["job.output"], t["FIELDS"] = "", "", ""
		for i := 0; i+1 < len(m.Args); i += 2 {
			t["job."+string(m.Args[i])] = string(m.Args[i+1])
			t["FIELDS"] += string(m.Args[i]) + "\x00"
		}
		return true
	})
	// takeInput stores the input of a job. There is none if the hash has expired or never existed.
	takeInput = check(func(t peer.Task, m *codec.Message) bool {
		switch m.Type.Name {
		case "bulk":
			t["PAYLOAD"] = string(m.Args[0])
			return true
		case "nil":
			t["LOST"] = "lost"
			return true
		}
		return false
	})
)

// registered checks the reply to the roll call. It rejects a count below 0: the text of the specification requires an
// error for 0, its listing for all counts that are not 1 or more.
func registered(_ peer.Task, m *codec.Message) error {
	if m.Type.Does == codec.Refuse {
		return refusal(m)
	}
	if m.Type.Name == "bulk" {
		if n, ok := codec.ParseNumber(m.Args[0]); ok && n > 0 {
			return nil
		}
	}
	return ErrNothingRegistered
}

// takeNewID checks the reply to the request for a new job ID and stores the ID in the task.
func takeNewID(t peer.Task, m *codec.Message) error {
	switch {
	case m.Type.Does == codec.Refuse:
		return refusal(m)
	case m.Type.Name != "ID":
		return errNoID
	}
	t["JOB_ID"] = string(m.Args[0])
	return nil
}

// unlocked checks the reply to BRPOP on the lock list of a job, which ends the wait for the job. A null reply means
// that the wait timed out.
func unlocked(t peer.Task, m *codec.Message) error {
	switch m.Type.Name {
	case "UNLOCKED":
		return nil
	case "nil-array", "nil":
		return TimedOut(t["JOB_ID"])
	}
	return refusal(m)
}

// taken stores the ID of a job. The reply must name a queue of the function that the worker requested.
func taken(msgType string) func(peer.Task, *codec.Message) error {
	return check(func(t peer.Task, m *codec.Message) bool {
		if m.Type.Name == msgType && string(m.Args[0]) == t["QUEUE"] {
			t["JOB_ID"] = string(m.Args[len(m.Args)-1])
			return true
		}
		return m.Type.Name == "nil" || m.Type.Name == "nil-array"
	})
}

// updated makes a job fail whose progress the server does not store.
func updated(t peer.Task, m *codec.Message) error {
	if err := saysOK(t, m); err != nil {
		t["FAILED"] = err.Error()
	}
	return nil
}
