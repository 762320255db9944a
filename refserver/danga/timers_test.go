package danga

import (
	"testing"
	"time"
)

// TestElapsedTime tests that job_complete_res has the seconds from the creation of the job to its result, at least 1
// and at most 2^32-1.
func TestElapsedTime(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, w := dial(), dial()
		w.connect("f")
		for _, tt := range []struct {
			waits, runs time.Duration
			want        uint32
		}{
			{0, 0, 1}, {999 * time.Millisecond, 0, 1}, {0, 1999 * time.Millisecond, 1},
			{time.Second, time.Second, 2}, {time.Hour, 30 * time.Second, 3630},
			{200 * 365 * 24 * time.Hour, 0, 1<<32 - 1},
		} {
			h := a.create("f", "", async, "")
			time.Sleep(tt.waits)
			w.gets("f", "")
			time.Sleep(tt.runs)
			w.finishes("\x00", "")
			a.Send("job_complete_req", h)
			a.Want("job_complete_res", num(tt.want), "\x00", "")
		}
	})
}

// run creates and completes jobs, and returns their handles.
func run(a, w peerOf, results ...string) (handles []string) {
	for _, r := range results {
		handles = append(handles, a.create("f", "", async, ""))
		w.gets("f", "")
		w.finishes("\x00", r)
	}
	return handles
}

// kept checks which results are still kept.
func kept(t *testing.T, a peerOf, handles []string, want ...string) {
	t.Helper()
	for i, h := range handles {
		a.Send("job_complete_req", h)
		if want[i] == "gone" {
			a.Want("job_complete_res", num(0), "\xff", "")
		} else {
			a.Want("job_complete_res", num(1), "\x00", want[i])
		}
	}
}

// TestResultsAreKeptForATime tests that the result of a job can be requested for the time KeepTime, and is then
// removed.
func TestResultsAreKeptForATime(t *testing.T) {
	for _, o := range []Options{{}, {KeepTime: time.Minute}} {
		bubble(t, o, func(t *testing.T, m *machine, dial func() peerOf) {
			limit := m.opts.KeepTime
			a, w := dial(), dial()
			w.connect("f")
			first := run(a, w, "one")
			time.Sleep(limit / 2)
			second := run(a, w, "two")
			time.Sleep(limit/2 - time.Second)
			kept(t, a, first, "one")
			time.Sleep(2 * time.Second)
			kept(t, a, first, "gone")
			kept(t, a, second, "two")
			time.Sleep(limit)
			kept(t, a, second, "gone")
			if m.kept.Len() != 0 || !m.Next().IsZero() {
				t.Errorf("%d results are left, the next thing is due at %v", m.kept.Len(), m.Next())
			}
		})
	}
}

// TestNumberOfKeptResultsIsLimited tests that only the newest KeepCount results can be requested, and none if KeepCount
// is negative.
func TestNumberOfKeptResultsIsLimited(t *testing.T) {
	bubble(t, Options{KeepCount: 2}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, w := dial(), dial()
		w.connect("f")
		handles := run(a, w, "one", "two", "three")
		waiting := a.create("f", "", async, "") // unfinished jobs do not count
		kept(t, a, handles, "gone", "two", "three")
		w.gets("f", "")
		w.finishes("\x00", "four")
		kept(t, a, append(handles, waiting), "gone", "gone", "three", "four")
	})
	bubble(t, Options{KeepCount: -1}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, w := dial(), dial()
		w.connect("f")
		kept(t, a, run(a, w, "one"), "gone")
	})
}

// TestResultsAreLimitedByKeepBytes checks that the oldest results are dropped when all of them need more than KeepBytes
// bytes.
func TestResultsAreLimitedByKeepBytes(t *testing.T) {
	bubble(t, Options{KeepBytes: 10}, func(t *testing.T, m *machine, dial func() peerOf) {
		a, w := dial(), dial()
		w.connect("f")
		handles := run(a, w, "four", "six666")
		kept(t, a, handles, "four", "six666")
		handles = append(handles, run(a, w, "", "1")...)
		kept(t, a, handles, "gone", "six666", "", "1")
		handles = append(handles, run(a, w, "more than ten")...) // at least one result is kept
		kept(t, a, handles, "gone", "gone", "gone", "gone", "more than ten")
		if m.keptBytes != len("more than ten") {
			t.Errorf("%d bytes counted", m.keptBytes)
		}
	})
}

// TestManyResultsRunOutAtOnce checks that any number of results that expire at the same time are deleted then.
func TestManyResultsRunOutAtOnce(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *machine, dial func() peerOf) {
		a, w := dial(), dial()
		w.connect("f")
		const many = 2*atOnce + 10
		run(a, w, make([]string, many)...)
		if m.kept.Len() != many {
			t.Fatalf("%d results are kept", m.kept.Len())
		}
		a.quiet() // the test has read the machine before the server continues
		time.Sleep(DefaultKeepTime + time.Second)
		a.quiet()
		if len(m.jobs)+m.kept.Len() != 0 {
			t.Errorf("%d jobs are left, %d results", len(m.jobs), m.kept.Len())
		}
	})
}
