package model

import (
	"testing"
	"time"

	"jobwire/codec"
	codecdanga "jobwire/codec/danga"
)

// TestMessageBeforeViolation tests that the model allows, after a violation, messages that the server may have sent
// before the violation, and no others.
func TestMessageBeforeViolation(t *testing.T) {
	for _, first := range []string{"worker_connect", "job_complete_announce"} {
		m := New(codecdanga.Protocol, time.Now())
		m.Opened(0)
		sent := func(name string, args ...string) { m.Sent(0, frame(t, codecdanga.Protocol, codec.Peer, name, args...)) }
		sent("worker_sleep")
		sent("job_create_req", "a", "", "\x00", "\x01", "")
		if err := m.Received(0, frame(t, codecdanga.Protocol, codec.Server, "job_create_res", "h")); err != nil {
			t.Fatal(err)
		}
		if first == "worker_connect" {
			sent(first, "a") // the server may wake the worker
		}
		sent("job_complete_announce", "\x00", "")
		err := m.Received(0, frame(t, codecdanga.Protocol, codec.Server, "noop"))
		if may := first == "worker_connect"; (err == nil) != may {
			t.Errorf("a noop after %s: %v", first, err)
		}
	}
}

// TestHandleOfOtherClient tests that a handle that the model does not know may belong to a job of another client, if
// other clients use the server.
func TestHandleOfOtherClient(t *testing.T) {
	for _, q := range []Quirk{Watched, Shared} {
		for request, reply := range map[string][]string{
			"job_status_req":   {"job_status_res", "\x00\x00\x00\x01", "\x00\x00\x00\x05", "\x00\x00\x00\x07"},
			"job_complete_req": {"job_complete_res", "\x00\x00\x00\x00", "\x00", ""},
		} {
			m := New(codecdanga.Protocol, time.Now(), q)
			m.Opened(0)
			m.Sent(0, frame(t, codecdanga.Protocol, codec.Peer, request, "H:other:1"))
			err := m.Received(0, frame(t, codecdanga.Protocol, codec.Server, reply[0], reply[1:]...))
			if shared := q == Shared; (err == nil) != shared {
				t.Errorf("%s, server is %s: %v", request, q, err)
			}
		}
	}
}
