package beanstalk

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/refserver"
)

// after checks the time since start.
func after(t *testing.T, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); got != want {
		t.Errorf("after %v, want %v", got, want)
	}
}

// TestDelay tests that jobs with a delay become ready when it has passed, in the order of priority at the same time,
// also after a release with a delay, and that stats-job shows the rest.
func TestDelay(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		start := time.Now()
		p.put(5, 3, 100, "late")
		p.put(5, 2, 100, "soon")
		p.put(1, 2, 100, "urgent")
		p.want("put 0 4294967295 100 never", "INSERTED 4")
		p.want("peek-ready", "NOT_FOUND")
		p.want("peek-delayed", "FOUND 2 soon")
		time.Sleep(1500 * time.Millisecond)
		if got := p.stats("stats-job 1", "state", "age", "delay", "time-left"); got != "delayed 1 3 1" {
			t.Errorf("stats-job: %s", got)
		}
		w.Send("reserve")
		w.Want("RESERVED", "3", "urgent") // it becomes ready at the same time as 2
		after(t, start, 2*time.Second)
		w.want("reserve", "RESERVED 2 soon")
		w.want("release 3 1 5", "RELEASED")
		w.want("reserve", "RESERVED 1 late")
		after(t, start, 3*time.Second)
		w.want("delete 1", "DELETED")
		w.want("reserve", "RESERVED 3 urgent")
		after(t, start, 7*time.Second)
		w.want("delete 4", "DELETED")
	})
}

// TestDelaysInSeveralTubes checks that a worker that watches two tubes gets the better of two jobs that become
// ready at the same time.
func TestDelaysInSeveralTubes(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		w.ask("watch", "a")
		w.ask("watch", "b")
		w.Send("reserve")
		p.want("use a", "USING a")
		p.put(2, 1, 100, "of a")
		p.want("use b", "USING b")
		p.put(1, 1, 100, "of b")
		w.Want("RESERVED", "2", "of b")
	})
}

// TestTimeToRun tests that a job returns to the ready queue when its time to run has passed since reserve or touch,
// also if no client is connected to it then.
func TestTimeToRun(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w, next := dial(), dial(), dial()
		p.put(7, 0, 10, "x")
		if got := p.stats("stats-job 1", "ttr", "time-left"); got != "10 0" {
			t.Errorf("ttr, time-left of a ready job: %s", got)
		}
		time.Sleep(time.Minute) // the time to run starts at the reserve
		start := time.Now()
		w.want("reserve", "RESERVED 1 x")
		time.Sleep(3500 * time.Millisecond)
		if got := p.stats("stats-job 1", "time-left", "age"); got != "6 63" {
			t.Errorf("time-left, age: %s", got)
		}
		w.want("touch 1", "TOUCHED")
		if got := p.stats("stats-job 1", "time-left"); got != "10" {
			t.Errorf("time-left after a touch: %s", got)
		}
		next.Send("reserve")
		next.Want("RESERVED", "1", "x")
		after(t, start, 13500*time.Millisecond)
		w.want("delete 1", "NOT_FOUND")
		if got := p.stats("stats-job 1", "pri", "reserves", "timeouts", "releases"); got != "7 2 1 0" {
			t.Errorf("pri, reserves, timeouts, releases: %s", got)
		}
		if got := p.stats("stats", "job-timeouts"); got != "1" {
			t.Errorf("job-timeouts: %s", got)
		}
		time.Sleep(11 * time.Second)
		p.want("peek-ready", "FOUND 1 x") // although no peer requested it
	})
}

// TestLeastTimeToRun checks that a time to run of 0 is changed to 1.
func TestLeastTimeToRun(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		p.put(0, 0, 0, "x")
		if got := p.stats("stats-job 1", "ttr"); got != "1" {
			t.Errorf("ttr: %s", got)
		}
		start := time.Now()
		w.want("reserve", "RESERVED 1 x")
		p.want("reserve", "RESERVED 1 x")
		after(t, start, time.Second)
	})
}

// TestReserveTimeout tests that reserve-with-timeout replies TIMED_OUT when the time has passed, waits without a limit
// for negative and very large values, and that later commands wait for it.
func TestReserveTimeout(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		start := time.Now()
		w.want("reserve-with-timeout 0", "TIMED_OUT")
		after(t, start, 0)
		w.want("reserve-with-timeout 5", "TIMED_OUT")
		after(t, start, 5*time.Second)
		for i, noLimit := range []string{"-1", "-9223372036854775807", "9223372036854775807"} {
			start = time.Now()
			w.Send("reserve-with-timeout", noLimit)
			time.Sleep(1000 * time.Hour)
			id := p.put(0, 0, 100, "x")
			w.Want("RESERVED", id, "x")
			after(t, start, 1000*time.Hour)
			w.want("delete "+id, "DELETED")
			if got := p.stats("stats", "cmd-reserve-with-timeout", "cmd-reserve", "current-waiting"); got != fmt.Sprint(i+3, " 0 0") {
				t.Errorf("reserves, waiting: %s", got)
			}
		}
		// The commands after it are executed then, too.
		w.Raw(append(w.Encode("reserve-with-timeout", "2"), w.Encode("list-tube-used")...))
		start = time.Now()
		w.Want("TIMED_OUT")
		after(t, start, 2*time.Second)
		w.Want("USING", "default")
	})
}

// TestDeadlineSoon tests that a worker that waits gets DEADLINE_SOON in the last second of the time to run of its jobs,
// and that ready jobs are reserved nevertheless.
func TestDeadlineSoon(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		p.put(0, 0, 5, "x")
		p.put(0, 0, 3, "y")
		w.want("reserve", "RESERVED 1 x")
		w.want("reserve", "RESERVED 2 y")
		start := time.Now()
		w.want("reserve", "DEADLINE_SOON") // the safety margin begins
		after(t, start, 2*time.Second)
		w.want("reserve-with-timeout 9", "DEADLINE_SOON") // the job is already in its margin
		after(t, start, 2*time.Second)
		// A reserve of a ready job does not wait.
		p.put(0, 0, 100, "z")
		w.want("reserve", "RESERVED 3 z")
		w.want("touch 2", "TOUCHED")
		w.want("reserve-with-timeout 1", "TIMED_OUT")
		after(t, start, 3*time.Second)
		w.want("reserve", "DEADLINE_SOON") // for job 1
		after(t, start, 4*time.Second)
		w.want("delete 1", "DELETED")
		w.want("reserve", "DEADLINE_SOON") // for job 2, 2 s after its touch
		after(t, start, 4*time.Second)
		time.Sleep(time.Second)
		synctest.Wait() // until everything at this time is done
		p.want("peek-ready", "FOUND 2 y")
		w.want("reserve", "RESERVED 2 y")
		w.want("bury 2 0", "BURIED")
		w.want("reserve-with-timeout 15", "TIMED_OUT")
		after(t, start, 20*time.Second)
		w.want("delete 3", "DELETED")
		w.Send("reserve")
		time.Sleep(time.Hour)
		w.Leave()
	})
}

// TestPause tests that no job of a paused tube is reserved until the pause has passed, and that a later pause-tube
// replaces the pause.
func TestPause(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		p.put(0, 0, 100, "x")
		start := time.Now()
		p.want("pause-tube default 10", "PAUSED")
		w.want("reserve-with-timeout 0", "TIMED_OUT")
		p.want("peek-ready", "FOUND 1 x")
		w.Send("reserve")
		p.put(0, 1, 100, "y")
		time.Sleep(2500 * time.Millisecond)
		if got := p.stats("stats-tube default", "pause", "pause-time-left", "cmd-pause-tube", "current-jobs-ready", "current-waiting"); got != "10 7 1 2 1" {
			t.Errorf("stats-tube: %s", got)
		}
		w.Want("RESERVED", "1", "x")
		after(t, start, 10*time.Second)
		if got := p.stats("stats-tube default", "pause", "pause-time-left"); got != "0 0" {
			t.Errorf("pause, left: %s", got)
		}
		// A second pause replaces the first.
		start = time.Now()
		p.want("pause-tube default 100", "PAUSED")
		p.want("pause-tube default 5", "PAUSED")
		w.want("reserve", "RESERVED 2 y")
		after(t, start, 5*time.Second)
		w.want("release 2 0 0", "RELEASED")
		start = time.Now()
		p.want("pause-tube default 5", "PAUSED")
		p.want("pause-tube default 100", "PAUSED")
		w.want("reserve-with-timeout 15", "TIMED_OUT")
		w.Send("reserve")
		p.want("pause-tube default 0", "PAUSED")
		w.Want("RESERVED", "2", "y")
		after(t, start, 15*time.Second)
	})
}

// TestPauseOfOneTube checks that a pause affects only one tube.
func TestPauseOfOneTube(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		w.ask("watch", "other")
		p.put(0, 0, 100, "held")
		p.want("use other", "USING other")
		p.put(9, 0, 100, "free")
		p.want("pause-tube default 10", "PAUSED")
		w.want("reserve", "RESERVED 2 free")
		w.Send("reserve")
		id := p.put(9, 0, 100, "free too")
		w.Want("RESERVED", id, "free too")
		w.want("reserve-job 1", "RESERVED 1 held") // reserve-job ignores the pause
		w.want("release 1 0 0", "RELEASED")
		p.want("use default", "USING default")
		p.want("pause-tube nobody 1", "NOT_FOUND")
	})
}

// TestStatsOfServer checks the times in the statistics, and the values about the process.
func TestStatsOfServer(t *testing.T) {
	bubble(t, Options{Version: "4.2"}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p := dial()
		time.Sleep(90500 * time.Millisecond)
		p.put(1023, 0, 10, "x")
		p.put(1024, 0, 10, "x")
		if got := p.stats("stats", "uptime", "version", "current-jobs-urgent", "current-jobs-ready", "current-producers", "current-workers", "draining"); got != "90 4.2 1 2 1 0 false" {
			t.Errorf("stats: %s", got)
		}
		a, b := p.stats("stats", "id"), p.stats("stats", "id")
		if a != b || a == New(Options{}).id {
			t.Errorf("ids %s and %s", a, b)
		}
		host, _ := os.Hostname()
		if got := p.stats("stats", "pid", "hostname"); got != fmt.Sprintf("%d %s", os.Getpid(), host) {
			t.Errorf("pid, hostname: %s", got)
		}
		if got := p.stats("stats", "rusage-utime"); !regexp.MustCompile(`^[0-9]+\.[0-9]{6}$`).MatchString(got) {
			t.Errorf("rusage-utime: %s", got)
		}
	})
}

// TestHalfClosed checks that a peer that has shut down its direction does not wait, and that all of its earlier
// commands are executed.
func TestHalfClosed(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p, w := dial(), dial()
		w.ask("watch", "other")
		w.Raw(append(w.Encode("reserve"), w.Encode("reserve")...))
		w.Raw(append(w.Encode("reserve-with-timeout", "1000"), w.Encode("put", "0", "0", "100", "last")...))
		id := p.put(0, 0, 100, "x")
		w.Want("RESERVED", id, "x")
		w.CloseWrite()
		w.Want("TIMED_OUT")
		w.Want("TIMED_OUT")
		w.Want("INSERTED", "2")
		if err := w.Ended(); err != io.EOF {
			t.Errorf("the connection ends with %v", err)
		}
		p.want("reserve", "RESERVED 1 x") // it was made ready again
		p.want("reserve", "RESERVED 2 last")
	})
}
