package beanstalk

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/refserver"
)

func TestEveryCommandHasAHandler(t *testing.T) {
	for _, msgType := range beanstalk.Protocol.Types {
		if has := handlers[msgType.Index] != nil; has != (msgType.Req != 0) {
			t.Errorf("%s: sent to the server: %v, has a handler: %v", msgType.Name, msgType.Req != 0, has)
		}
	}
}

// TestJobStates checks the states of a job ("Job Lifecycle").
func TestJobStates(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		if id := p.put(100, 0, 60, "work\r\n\x00"); id != "1" {
			t.Errorf("the first job is %s", id)
		}
		p.want("delete 2", "NOT_FOUND")
		w.want("reserve", "RESERVED 1 work\r\n\x00")
		p.want("delete 1", "NOT_FOUND") // reserved by another peer
		p.want("release 1 0 0", "NOT_FOUND")
		p.want("bury 1 0", "NOT_FOUND")
		p.want("touch 1", "NOT_FOUND")
		p.want("kick-job 1", "NOT_FOUND")
		p.want("reserve-job 1", "NOT_FOUND")
		p.want("peek 1", "FOUND 1 work\r\n\x00")
		p.want("peek-ready", "NOT_FOUND")
		w.want("release 1 7 0", "RELEASED")
		w.want("release 1 7 0", "NOT_FOUND")
		p.want("peek-ready", "FOUND 1 work\r\n\x00")
		w.want("reserve-with-timeout 0", "RESERVED 1 work\r\n\x00")
		w.want("touch 1", "TOUCHED")
		w.want("bury 1 9", "BURIED")
		w.want("touch 1", "NOT_FOUND")
		w.want("reserve-with-timeout 0", "TIMED_OUT")
		p.want("peek-buried", "FOUND 1 work\r\n\x00")
		p.want("kick 10", "KICKED 1")
		p.want("kick 10", "KICKED 0")
		w.want("reserve", "RESERVED 1 work\r\n\x00")
		if got := p.stats("stats-job 1", "id", "tube", "state", "pri", "age", "delay", "ttr", "time-left", "file", "reserves", "timeouts", "releases", "buries", "kicks"); got != "1 default reserved 9 0 0 60 60 0 3 0 1 1 1" {
			t.Errorf("stats-job: %s", got)
		}
		w.want("delete 1", "DELETED")
		p.want("peek 1", "NOT_FOUND")
		p.want("stats-job 1", "NOT_FOUND")
		if id := p.put(0, 0, 1, ""); id != "2" {
			t.Errorf("the second job is %s", id)
		}
		w.want("reserve", "RESERVED 2 ")
	})
}

// TestStates checks the reply to each command for jobs in each state.
func TestStates(t *testing.T) {
	commands := []string{"delete", "release", "bury", "touch", "kick-job", "reserve-job", "peek"}
	replies := map[state][]string{
		ready:    {"DELETED", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "RESERVED", "FOUND"},
		delayed:  {"DELETED", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "KICKED_JOB", "RESERVED", "FOUND"},
		buried:   {"DELETED", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "KICKED_JOB", "RESERVED", "FOUND"},
		reserved: {"DELETED", "RELEASED", "BURIED", "TOUCHED", "NOT_FOUND", "NOT_FOUND", "FOUND"},
	}
	rest := map[string][]string{"release": {"0", "0"}, "bury": {"0"}}
	for s, want := range replies {
		bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
			p := dial()
			for i, cmd := range commands {
				tube := fmt.Sprint("t", i)
				p.want("use "+tube, "USING "+tube)
				p.ask("watch", tube)
				delay := 0
				if s == delayed {
					delay = 1000
				}
				id := p.put(0, delay, 1000, "x")
				if s == reserved || s == buried {
					p.want("reserve", "RESERVED "+id+" x")
				}
				if s == buried {
					p.want("bury "+id+" 0", "BURIED")
				}
				if got := p.stats("stats-job "+id, "state"); got != stateNames[s] {
					t.Fatalf("a job is %s, want %s", got, stateNames[s])
				}
				got, _, _ := strings.Cut(p.ask(cmd, append([]string{id}, rest[cmd]...)...), " ")
				if got != want[i] {
					t.Errorf("%s of a job that is %s: %s, want %s", cmd, stateNames[s], got, want[i])
				}
				p.ask("delete", id)
			}
		})
	}
}

// TestOrder checks that jobs are reserved by priority, then in the order of their puts, regardless of what
// happens to them in between.
func TestOrder(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p := dial()
		for i, priority := range []string{"5", "4294967295", "0", "5", "1", "5"} {
			if reply := p.ask("put", priority, "0", "100", "x"); reply != fmt.Sprint("INSERTED ", i+1) {
				t.Fatalf("job %d: %s", i+1, reply)
			}
		}
		p.want("reserve-job 1", "RESERVED 1 x")
		p.want("release 1 5 0", "RELEASED")
		p.want("reserve-job 4", "RESERVED 4 x")
		p.want("bury 4 5", "BURIED")
		p.want("kick 1", "KICKED 1")
		for _, id := range []string{"3", "5", "1", "4", "6", "2"} {
			p.want("peek-ready", "FOUND "+id+" x")
			p.want("reserve", "RESERVED "+id+" x")
		}
	})
}

// TestWatchList checks that a reserve gets the best job of all tubes on the watch list, and of no other tube.
func TestWatchList(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		for i, tube := range []string{"a", "b", "c", "a"} {
			p.want("use "+tube, "USING "+tube)
			p.put(10-i, 0, 100, tube)
		}
		p.want("list-tube-used", "USING a")
		w.want("watch a", "WATCHING 2")
		w.want("watch a", "WATCHING 2")
		w.want("watch b", "WATCHING 3")
		w.want("ignore nobody", "WATCHING 3")
		w.want("ignore c", "WATCHING 3")
		w.want("list-tubes-watched", "list-reply default a b")
		w.want("reserve", "RESERVED 4 a")
		w.want("reserve", "RESERVED 2 b")
		w.want("ignore a", "WATCHING 2")
		w.want("reserve-with-timeout 0", "TIMED_OUT")
		w.want("ignore default", "WATCHING 1")
		w.want("ignore b", "NOT_IGNORED")
		w.want("ignore a", "WATCHING 1")
		w.want("watch a", "WATCHING 2")
		w.want("reserve", "RESERVED 1 a")
	})
}

// TestTubesComeAndGo checks that a tube exists as long as something refers to it.
func TestTubesComeAndGo(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		a, b := dial(), dial()
		tubes := func(want string) {
			t.Helper()
			a.want("list-tubes", strings.TrimSpace("list-reply default "+want))
		}
		b.want("use t", "USING t")
		tubes("t")
		b.want("use u", "USING u")
		tubes("u")
		b.want("watch w", "WATCHING 2")
		b.want("ignore w", "WATCHING 1")
		tubes("u")
		for _, delay := range []int{0, 100} {
			id := b.put(0, delay, 100, "x")
			b.want("use default", "USING default")
			tubes("u")
			b.want("delete "+id, "DELETED")
			tubes("")
			a.want("stats-tube u", "NOT_FOUND")
			b.want("use u", "USING u")
		}
		id := b.put(0, 0, 100, "x")
		b.want("reserve-job "+id, "RESERVED "+id+" x")
		b.want("use default", "USING default")
		tubes("u") // for the reserved job
		b.want("bury "+id+" 0", "BURIED")
		tubes("u")
		b.want("delete "+id, "DELETED")
		tubes("")
		b.want("watch v", "WATCHING 2")
		b.want("use w", "USING w")
		tubes("v w")
		b.Leave()
		tubes("")
		// The tube named default remains even if nothing refers to it.
		a.want("use x", "USING x")
		a.want("watch x", "WATCHING 2")
		a.want("ignore default", "WATCHING 1")
		tubes("x")
		a.want("pause-tube y", "BAD_FORMAT")
		a.want("pause-tube y 1", "NOT_FOUND")
	})
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

// TestLostWorker checks that the reserved jobs of a closed connection become ready.
func TestLostWorker(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, lost, next := dial(), dial(), dial()
		for i := range 3 {
			p.put(i, 0, 100, fmt.Sprint(i))
			lost.want("reserve", fmt.Sprintf("RESERVED %d %d", i+1, i))
		}
		lost.want("bury 2 0", "BURIED")
		next.Send("reserve")
		lost.Leave()
		next.Want("RESERVED", "1", "0")
		next.want("reserve", "RESERVED 3 2")
		if got := p.stats("stats-job 1", "reserves", "timeouts", "releases"); got != "2 0 0" {
			t.Errorf("reserves, timeouts, releases: %s", got)
		}
		next.Send("quit")
		if err := next.Ended(); err != io.EOF {
			t.Errorf("quit: the connection ends with %v", err)
		}
		synctest.Wait()
		if got := p.stats("stats", "current-jobs-ready", "current-jobs-buried", "current-connections", "total-connections"); got != "2 1 1 3" {
			t.Errorf("ready, buried, connections: %s", got)
		}
	})
}

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
