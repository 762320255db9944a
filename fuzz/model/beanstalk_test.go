package model

import (
	"fmt"
	"testing"
	"time"

	"jobwire/codec"
	codecbeanstalk "jobwire/codec/beanstalk"
)

// TestOrderOfOverlappingPuts tests that a server may order two jobs by the beginnings or by the ends of their puts, if
// one put ends while the other one is not complete, and that it must order them by both otherwise.
func TestOrderOfOverlappingPuts(t *testing.T) {
	for _, tt := range []struct {
		begins bool // the put of client 0 begins before the put of client 1
		first  int  // the job that a worker gets
		legal  bool
	}{{true, 0, true}, {true, 1, true}, {false, 1, true}, {false, 0, false}} {
		m := New(codecbeanstalk.Protocol, time.Now())
		var sessions []codec.Session // of the connections
		for conn := range 3 {
			m.Opened(conn)
			sessions = append(sessions, codecbeanstalk.Protocol.NewSession(codec.Options{}))
		}
		decoded := func(conn int, from codec.Side, raw string) *codec.Frame {
			var f codec.Frame
			if _, err := sessions[conn].Decode(from, []byte(raw), &f); err != nil {
				t.Fatal(err)
			}
			return &f
		}
		if tt.begins {
			m.Begins(0)
		}
		for _, conn := range []int{1, 0} {
			m.Sent(conn, decoded(conn, codec.Peer, fmt.Sprintf("put 0 0 60 1\r\n%d\r\n", conn)))
			if err := m.Received(conn, decoded(conn, codec.Server, fmt.Sprintf("INSERTED %d\r\n", 10+conn))); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.CheckMissing(); err != nil {
			t.Fatal(err)
		}
		m.Sent(2, decoded(2, codec.Peer, "reserve\r\n"))
		err := m.Received(2, decoded(2, codec.Server, fmt.Sprintf("RESERVED %d 1\r\n%d\r\n", 10+tt.first, tt.first)))
		if (err == nil) != tt.legal {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
