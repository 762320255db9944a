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
		for conn := range 3 {
			m.Opened(conn)
		}
		sent := func(conn int, name string, args ...string) {
			m.Sent(conn, frame(t, codecbeanstalk.Protocol, codec.Peer, name, args...))
		}
		received := func(conn int, name string, args ...string) error {
			return m.Received(conn, frame(t, codecbeanstalk.Protocol, codec.Server, name, args...))
		}
		if tt.begins {
			m.Begins(0)
		}
		for _, conn := range []int{1, 0} {
			sent(conn, "put", "0", "0", "60", fmt.Sprint("from ", conn))
			if err := received(conn, "INSERTED", fmt.Sprint(10+conn)); err != nil {
				t.Fatal(err)
			}
		}
		sent(2, "reserve")
		err := received(2, "RESERVED", fmt.Sprint(10+tt.first), fmt.Sprint("from ", tt.first))
		if (err == nil) != tt.legal {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
