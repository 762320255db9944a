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

// TestPauseOfForgottenTube tests that a server that other clients use may forget the pause of a tube together with the
// tube, after the only client of the tube has left, and only then.
func TestPauseOfForgottenTube(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		p := codecbeanstalk.Protocol
		m := New(p, time.Now(), Shared)
		var sessions [2]codec.Session
		exchange := func(conn int, request, reply string) (err error) {
			if sessions[conn] == nil {
				m.Opened(conn)
				sessions[conn] = p.NewSession(codec.Options{})
			}
			for from, raw := range []string{request, reply} {
				var f codec.Frame
				side := [...]codec.Side{codec.Peer, codec.Server}[from]
				if _, err := sessions[conn].Decode(side, []byte(raw), &f); err != nil {
					t.Fatal(err)
				}
				if side == codec.Peer {
					m.Sent(conn, &f)
				} else if err == nil {
					err = m.Received(conn, &f)
				}
			}
			return err
		}
		all := []error{exchange(0, "watch a\r\n", "WATCHING 2\r\n"), exchange(0, "pause-tube a 10\r\n", "PAUSED\r\n")}
		if leaves {
			m.Closed(0)
		}
		all = append(all, exchange(1, "watch a\r\n", "WATCHING 2\r\n"), exchange(1, "use a\r\n", "USING a\r\n"),
			exchange(1, "put 0 0 60 1\r\nx\r\n", "INSERTED 7\r\n"))
		for _, err := range all {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := exchange(1, "reserve\r\n", "RESERVED 7 1\r\nx\r\n"); (err == nil) != leaves {
			t.Errorf("the client leaves: %v; %v", leaves, err)
		}
	}
}
