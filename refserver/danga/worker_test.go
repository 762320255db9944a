package danga

import (
	"testing"
)

// TestWorkerGetsTheOldestItCanDo tests that a worker gets the oldest job with one of the names of its last
// worker_connect, and none after worker_disconnect.
func TestWorkerGetsTheOldestItCanDo(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, w := dial(), dial()
		for _, name := range []string{"b", "a", "c", "b", "a"} {
			a.create(name, "", throwAway, name)
		}
		w.getsNone() // it has not announced any name
		w.connect()
		w.getsNone()
		w.connect("a", "b", "a")
		for _, name := range []string{"b", "a", "b"} {
			w.gets(name, name)
			w.finishes("\x00", "")
		}
		w.connect("c") // in place of the others
		w.gets("c", "c")
		w.connect("a") // the worker keeps its job
		w.getsNone()
		w.finishes("\x00", "")
		w.gets("a", "a")
		w.finishes("\x00", "")
		w.Send("worker_disconnect")
		a.create("a", "", throwAway, "")
		w.getsNone()
		w.connect("a")
		w.gets("a", "")
		w.finishes("\x00", "")
	})
}

// TestOneJobPerWorker tests that a worker gets no second job before it has finished the first.
func TestOneJobPerWorker(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, w, other := dial(), dial(), dial()
		a.create("f", "", throwAway, "one")
		a.create("f", "", throwAway, "two")
		w.connect("f")
		other.connect("f")
		w.gets("f", "one")
		w.getsNone()
		other.gets("f", "two")
		other.getsNone()
		w.finishes("\x00", "")
		w.getsNone()
		a.create("f", "", throwAway, "three")
		other.getsNone() // it still has a job
		w.gets("f", "three")
	})
}

// TestSleepingWorkersAreWoken tests that each sleeping worker that can run a new job gets one noop, and that other,
// awake and disconnected workers get none.
func TestSleepingWorkersAreWoken(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, one, two, other, awake := dial(), dial(), dial(), dial(), dial()
		for _, w := range []peerOf{one, two, awake} {
			w.connect("f", "g", "f")
		}
		other.connect("h")
		for _, w := range []peerOf{one, two, other} {
			w.getsNone()
			w.Send("worker_sleep")
			w.Send("worker_sleep")
		}
		a.create("f", "", throwAway, "1")
		one.Want("noop")
		two.Want("noop")
		a.create("g", "", throwAway, "2") // they are already awake
		for _, w := range []peerOf{one, two, other, awake} {
			w.quiet()
		}
		one.gets("f", "1")
		two.gets("g", "2")
		one.finishes("\x00", "")
		a.create("f", "", throwAway, "3")
		one.Send("worker_sleep") // too late: a job already exists
		one.Want("noop")
		one.gets("f", "3")
		one.Send("worker_sleep") // while it has a job
		a.create("f", "", throwAway, "4")
		one.quiet()
		one.finishes("\x00", "")
		one.gets("f", "4")

		// A sleeping worker that requests a job is awake.
		two.finishes("\x00", "")
		two.Send("worker_sleep")
		two.getsNone()
		a.create("g", "", throwAway, "5")
		two.quiet()
		two.gets("g", "5")

		// A sleeping worker that announces new names stays asleep, or is woken if there is a job.
		a.create("i", "", throwAway, "6")
		other.connect("j")
		other.quiet()
		other.Send("worker_connect", "j", "i")
		other.Want("noop")
		other.gets("i", "6")
		other.finishes("\x00", "")
		other.Send("worker_sleep")
		other.Send("worker_disconnect")
		a.create("i", "", throwAway, "7")
		other.quiet()

		// A worker is not woken after worker_disconnect, or for a duplicate.
		two.finishes("\x00", "")
		one.finishes("\x00", "")
		one.Send("worker_sleep")
		one.Send("worker_disconnect")
		a.create("f", "key", throwAway, "8")
		one.quiet()
		two.gets("f", "8")
		one.connect("f")
		one.Send("worker_sleep")
		a.create("f", "key", throwAway, "8 again")
		one.quiet()
	})
}

// TestLostWorkersJobIsTriedAgain tests that a job whose worker disconnects is given to another worker before later
// jobs, and that sleeping workers are woken for it.
func TestLostWorkersJobIsTriedAgain(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, b, lost, w, sleeper := dial(), dial(), dial(), dial(), dial()
		a.create("f", "key", syncWait, "args")
		h := b.create("f", "", async, "second")
		lost.connect("f")
		sleeper.connect("f")
		lost.gets("f", "args")
		lost.Send("job_status_announce", num(1), num(2), num(3))
		a.Want("job_status_res", num(1), num(2), num(3))
		w.connect("f")
		w.gets("f", "second")
		w.Send("job_status_announce", num(1), num(2), num(3))
		sleeper.Send("worker_sleep")

		lost.Leave()
		sleeper.Want("noop")
		sleeper.gets("f", "args")
		b.create("f", "", throwAway, "third")
		w.Send("worker_disconnect") // worker_disconnect while it has a job
		b.Send("job_status_req", h)
		b.Want("job_status_res", num(0), num(1), num(1<<32-1))
		w.connect("f")
		w.gets("f", "second") // before later jobs
		w.finishes("\x00", "done")
		b.Send("job_complete_req", h)
		b.Want("job_complete_res", num(1), "\x00", "done")
		sleeper.finishes("\x00", "done too")
		a.Want("job_complete_res", num(1), "\x00", "done too")
		w.gets("f", "third")
		w.finishes("\x00", "")
	})
}
