package beanstalk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/refserver"
)

// TestEveryCommandHasAHandler tests that the reference server has a handler for each command, and for no reply.
func TestEveryCommandHasAHandler(t *testing.T) {
	for _, msgType := range beanstalk.Protocol.Types {
		if has := handlers[msgType.Index] != nil; has != (msgType.Req != 0) {
			t.Errorf("%s: sent to the server: %v, has a handler: %v", msgType.Name, msgType.Req != 0, has)
		}
	}
}

// TestWaitersInOrder checks that workers that wait are served in the order in which they started to wait, for
// each source of a job.
func TestWaitersInOrder(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p := dial()
		var waiters []peerOf
		for i := range 4 {
			w := dial()
			w.ask("watch", "other")
			if i == 1 {
				w.ask("ignore", "default")
			}
			w.Send("reserve")
			waiters = append(waiters, w)
		}
		if got := p.stats("stats", "current-waiting", "current-workers"); got != "4 4" {
			t.Errorf("waiting, workers: %s, want 4 4", got)
		}
		if got := p.stats("stats-tube default", "current-waiting"); got != "3" {
			t.Errorf("waiting for the default tube: %s, want 3", got)
		}
		for i, n := range []int{0, 2, 3} { // the second does not watch this tube
			id := p.put(0, 0, 100, fmt.Sprint(i))
			waiters[n].Want("RESERVED", id, fmt.Sprint(i))
		}
		p.want("use other", "USING other")
		id := p.put(0, 0, 100, "x")
		waiters[1].Want("RESERVED", id, "x")
		waiters[1].want("delete "+id, "DELETED")
	})
}

// TestKickServesTheBestFirst checks that jobs that become ready together are assigned by priority.
func TestKickServesTheBestFirst(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		p.put(9, 1000, 100, "first")
		p.put(1, 2000, 100, "urgent")
		p.put(1, 3000, 100, "late")
		p.want("peek-delayed", "FOUND 1 first")
		w.Send("reserve")
		p.want("kick 2", "KICKED 2")
		w.Want("RESERVED", "2", "urgent")
		p.want("peek-delayed", "FOUND 3 late")
		p.want("kick-job 3", "KICKED_JOB")
		p.want("kick-job 3", "NOT_FOUND")
		w.want("bury 2 0", "BURIED")
		w.want("reserve", "RESERVED 3 late")
		w.want("bury 3 5", "BURIED")
		w.want("reserve", "RESERVED 1 first")
		w.want("release 1 0 1000", "RELEASED")
		p.want("peek-buried", "FOUND 2 urgent")
		p.want("kick 1", "KICKED 1") // only buried jobs, as long as there are any
		p.want("kick 9", "KICKED 1")
		p.want("kick 9", "KICKED 1")
	})
}

// TestPipelineAfterReserve checks that commands after a reserve that waits are executed after it, in order,
// and that a connection that closes meanwhile no longer waits.
func TestPipelineAfterReserve(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w, lost := dial(), dial(), dial()
		lost.Raw(append(lost.Encode("reserve"), lost.Encode("use", "nothing")...))
		lost.Raw(lost.Encode("use", "later"))
		lost.Leave()
		if got := p.stats("stats", "current-waiting", "current-tubes", "current-connections"); got != "0 1 2" {
			t.Errorf("waiting, tubes, connections: %s, want 0 1 2", got)
		}

		var b []byte
		for _, cmd := range [][]string{{"reserve"}, {"use", "mine"}, {"put", "0", "0", "100", "my own"}, {"watch", "mine"}, {"reserve"}, {"reserve"}, {"list-tube-used"}} {
			b = append(b, w.Encode(cmd[0], cmd[1:]...)...)
		}
		w.Raw(b[:len(b)-5])
		w.Raw(b[len(b)-5:])
		p.want("list-tubes", "list-reply default")
		p.put(0, 0, 100, "one")
		w.Want("RESERVED", "1", "one")
		w.Want("USING", "mine")
		w.Want("INSERTED", "2")
		w.Want("WATCHING", "2")
		w.Want("RESERVED", "2", "my own")
		if got := p.stats("stats", "current-waiting"); got != "1" {
			t.Errorf("waiting: %s, want 1", got)
		}
		p.put(0, 0, 100, "three")
		w.Want("RESERVED", "3", "three")
		w.Want("USING", "mine")
		w.quiet()
	})
}

// TestLongPipelineAfterReserve checks that a pipeline may be longer than the read buffer.
func TestLongPipelineAfterReserve(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		const puts = 20
		b := w.Encode("reserve")
		for range puts {
			b = append(b, w.Encode("put", "1", "0", "100", strings.Repeat("x", 10_000))...)
		}
		w.Raw(b)
		if got := p.stats("stats", "total-jobs", "current-waiting"); got != "0 1" {
			t.Errorf("jobs, waiting: %s, want 0 1", got)
		}
		p.put(0, 0, 100, "go")
		w.Want("RESERVED", "1", "go")
		for i := range puts {
			w.Want("INSERTED", fmt.Sprint(i+2))
		}
	})
}

// TestDraining tests that a draining server refuses each put with DRAINING, and still executes other commands.
func TestDraining(t *testing.T) {
	for _, from := range []bool{true, false} {
		bubble(t, Options{Draining: from}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
			p := dial()
			if !from {
				p.put(0, 0, 100, "before")
				m.Drain()
			}
			p.want("put 0 0 100 x", "DRAINING")
			if got := p.stats("stats", "draining", "cmd-put"); !strings.HasPrefix(got, "true ") {
				t.Errorf("draining, puts: %s", got)
			}
			if !from {
				p.want("reserve", "RESERVED 1 before")
				p.want("release 1 0 0", "RELEASED")
			}
		})
	}
}

// TestRefusedPut checks that the body of a rejected put is not executed as a command.
func TestRefusedPut(t *testing.T) {
	bubble(t, Options{}, refserver.Options{Codec: codec.Options{MaxData: 10}}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p := dial()
		p.put(0, 0, 100, "ten bytes.")
		p.Raw([]byte("put 0 0 100 11\r\ndelete 1\r\n\x00\r\n"))
		p.Want("JOB_TOO_BIG")
		p.Raw([]byte("put 0 0 100 1000000\r\n"))
		p.Want("JOB_TOO_BIG")
		for range 1000 {
			p.Raw([]byte(strings.Repeat("delete 1\r\n", 100)))
		}
		p.Raw([]byte("\r\n"))
		p.Raw([]byte("put 0 0 100 2\r\nxdelete 1\r\n"))
		p.Want("EXPECTED_CRLF")
		p.Raw([]byte("put -1 0 100 10\r\ndelete 1\r\n\r\n"))
		p.Want("BAD_FORMAT")
		p.Raw([]byte("nonsense\r\n"))
		p.Want("UNKNOWN_COMMAND")
		p.want("peek 1", "FOUND 1 ten bytes.")
		if got := p.stats("stats", "max-job-size", "cmd-delete", "cmd-put", "total-jobs"); got != "10 0 4 1" {
			t.Errorf("max-job-size, deletes, puts, jobs: %s", got)
		}
	})
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p := dial()
		if got := p.stats("stats", "max-job-size"); got != "65535" {
			t.Errorf("max-job-size: %s", got)
		}
	})
}

// TestReserveTwice checks that a fault that duplicates a reserve does not confuse the machine.
func TestReserveTwice(t *testing.T) {
	twice := func(_ *refserver.Conn, from codec.Side, f *codec.Frame) (v refserver.Verdict) {
		if from == codec.Peer && f.Type.Name == "reserve" {
			v.Extra = 1
		}
		return v
	}
	bubble(t, Options{}, refserver.Options{Intercept: twice}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		w.Send("reserve")
		p.put(0, 0, 100, "x")
		w.Want("RESERVED", "1", "x")
		time.Sleep(time.Second)
		w.quiet()
	})
}
