package gearman

import (
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
)

// TestTimeout tests that a job fails with WORK_FAIL when the timeout of its worker has passed, that the timeout 0 and
// very large ones never pass, and that CAN_DO removes the timeout.
func TestTimeout(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w := dial(), dial()
		start := time.Now()
		w.Send("CAN_DO_TIMEOUT", "f", "1500")
		w.Send("CAN_DO_TIMEOUT", "g", "0")
		w.Send("CAN_DO_TIMEOUT", "h", "18446744073709551615")
		var handles []string
		for _, fn := range []string{"f", "f", "g", "h"} {
			handles = append(handles, c.submit("SUBMIT_JOB", fn, "", ""))
			w.Send("GRAB_JOB")
			w.Want("JOB_ASSIGN", "*", fn, "")
		}
		w.Send("WORK_COMPLETE", handles[1], "in time")
		c.Want("WORK_COMPLETE", handles[1], "in time")
		c.Want("WORK_FAIL", handles[0])
		if d := time.Since(start); d != 1500*time.Millisecond {
			t.Errorf("failed after %v", d)
		}
		w.Send("WORK_COMPLETE", handles[0], "late")
		w.Want("ERROR", "JOB_NOT_FOUND", "*")
		time.Sleep(24 * time.Hour)
		for _, h := range handles[2:] {
			w.Send("WORK_COMPLETE", h, "no limit")
			c.Want("WORK_COMPLETE", h, "no limit")
		}
		w.Send("CAN_DO", "f") // removes the timeout
		h := c.submit("SUBMIT_JOB", "f", "", "")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", "*", "f", "")
		time.Sleep(time.Hour)
		w.Send("WORK_COMPLETE", h, "")
		c.Want("WORK_COMPLETE", h, "")
	})
	bubble(t, Options{TimeoutUnit: time.Second}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w := dial(), dial()
		start := time.Now()
		w.Send("CAN_DO_TIMEOUT", "f", "3")
		h := c.submit("SUBMIT_JOB", "f", "", "")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", "*", "f", "")
		c.Want("WORK_FAIL", h)
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("failed after %v", d)
		}
	})
}

// TestEpoch tests that SUBMIT_JOB_EPOCH queues a job at its time, or at once if the time is past, wakes sleeping
// workers then, and that such a job can be canceled before.
func TestEpoch(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w := dial(), dial()
		start := time.Now()
		w.Send("CAN_DO", "f")
		at := func(d time.Duration) string { return string(decimal(uint64(start.Add(d).Unix()))) }
		late := c.submit("SUBMIT_JOB_EPOCH", "f", "", at(2*time.Hour), "late")
		soon := c.submit("SUBMIT_JOB_EPOCH", "f", "", at(time.Hour), "soon")
		gone := c.submit("SUBMIT_JOB_EPOCH", "f", "", at(time.Minute), "cancelled")
		c.submit("SUBMIT_JOB_EPOCH", "f", "", "18446744073709551615", "never")
		if got := c.ask("OK", "cancel-job", gone); got != "" {
			t.Errorf("cancel job: %s", got)
		}
		past := c.submit("SUBMIT_JOB_EPOCH", "f", "", at(-time.Hour), "past")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", past, "f", "past")
		w.Send("GRAB_JOB")
		w.Want("NO_JOB")
		for _, job := range []struct {
			handle, load string
			after        time.Duration
		}{{soon, "soon", time.Hour}, {late, "late", 2 * time.Hour}} {
			w.Send("PRE_SLEEP")
			// This exceeds the time that a peer waits for a message.
			time.Sleep(job.after - time.Since(start) - time.Second)
			w.quiet(t)
			w.Want("NOOP")
			if d := time.Since(start); d != job.after {
				t.Errorf("%s: woken after %v", job.load, d)
			}
			w.Send("GRAB_JOB")
			w.Want("JOB_ASSIGN", job.handle, "f", job.load)
			w.Send("WORK_COMPLETE", job.handle, "")
		}
		c.quiet(t)
	})
}

// TestSchedule tests that the fields of SUBMIT_JOB_SCHED determine the next minute in UTC that matches all of them, and
// that a date which never exists has none.
func TestSchedule(t *testing.T) {
	day := func(y int, m time.Month, d, h, min int) time.Time { return time.Date(y, m, d, h, min, 0, 0, time.UTC) }
	for _, s := range []struct {
		name                        string
		now                         time.Time
		minute, hour, day, month, w string
		want                        time.Time
	}{
		{"later today, a Wednesday", day(2025, 1, 1, 8, 0), "30", "9", "1", "1", "2", day(2025, 1, 1, 9, 30)},
		{"the minute that has begun", day(2025, 1, 1, 9, 30).Add(59 * time.Second), "30", "9", "1", "1", "2", day(2025, 1, 1, 9, 30)},
		{"a minute ago", day(2025, 1, 1, 9, 31), "30", "9", "1", "1", "2", day(2031, 1, 1, 9, 30)},
		{"Monday is 0", day(2025, 1, 1, 0, 0), "0", "0", "3", "2", "0", day(2025, 2, 3, 0, 0)},
		{"Sunday is 6", day(2025, 1, 1, 0, 0), "0", "0", "2", "2", "6", day(2025, 2, 2, 0, 0)},
		{"leap day on a Sunday", day(2025, 1, 1, 0, 0), "0", "0", "29", "2", "6", day(2032, 2, 29, 0, 0)},
		{"another zone asks", day(2025, 1, 1, 8, 0).In(time.FixedZone("", 7*3600)), "0", "9", "1", "1", "2", day(2025, 1, 1, 9, 0)},
		{"30th of February", day(2025, 1, 1, 0, 0), "0", "0", "30", "2", "6", time.Time{}},
	} {
		f := schedFrame(t, s.minute, s.hour, s.day, s.month, s.w)
		got, ok := schedule(f, s.now)
		if ok != !s.want.IsZero() || !got.Equal(s.want) {
			t.Errorf("%s: %v %v, want %v", s.name, got, ok, s.want)
		}
	}
}

func schedFrame(t *testing.T, when ...string) *codec.Frame {
	m := codec.Message{Type: typeNamed("SUBMIT_JOB_SCHED"), Args: [][]byte{[]byte("f"), nil}}
	for _, w := range when {
		m.Args = append(m.Args, []byte(w))
	}
	m.Args = append(m.Args, nil)
	s := gearman.Protocol.NewSession(codec.Options{})
	b, err := s.Append(nil, codec.Peer, &m)
	if err != nil {
		t.Fatal(err)
	}
	var f codec.Frame
	if _, err := s.Decode(codec.Peer, b, &f); err != nil {
		t.Fatal(err)
	}
	return &f
}

// TestScheduledJobRuns tests that SUBMIT_JOB_SCHED queues a job at the minute of its fields and wakes a sleeping
// worker, and that the reply to an impossible date is an ERROR.
func TestScheduledJobRuns(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w := dial(), dial()
		c.Send("SUBMIT_JOB_SCHED", "f", "", "0", "0", "31", "4", "0", "")
		c.Want("ERROR", "NO_SUCH_TIME", "*")
		// A synctest bubble starts at midnight UTC on Saturday, January 1, 2000.
		h := c.submit("SUBMIT_JOB_SCHED", "f", "", "5", "0", "1", "1", "5", "load")
		w.Send("CAN_DO", "f")
		w.Send("PRE_SLEEP")
		time.Sleep(5*time.Minute - time.Second)
		w.quiet(t)
		w.Want("NOOP")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", h, "f", "load")
	})
}

// TestManyTimersAtOnce checks that all jobs scheduled for one time are queued then, even if they exceed atOnce.
func TestManyTimersAtOnce(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		const many = 2*atOnce + 10
		at := string(decimal(uint64(time.Now().Unix() + 60)))
		for range many {
			c.submit("SUBMIT_JOB_EPOCH", "f", "", at, "")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := c.ask("prioritystatus-reply", "prioritystatus"), "f 0 "+string(decimal(many))+" 0 0"; got != want {
			t.Errorf("prioritystatus %q, want %q", got, want)
		}
	})
}
