package gearman

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"jobwire/codec/gearman"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// lookThrough finds a worker's next job by searching the queues of all its functions.
func lookThrough(m *machine, p *peer) *job {
	for priority := high; priority <= low; priority++ {
		for a := range p.abilities.All {
			if first := a.fn.queue[priority].first; first != 0 {
				return m.jobs.at(first)
			}
		}
	}
	return nil
}

// TestGrabMatchesLinearSearch adds jobs and registrations at random. A worker must get the job that a search of all queues finds,
// and without Wakeups no worker may sleep while there is a job for it.
func TestGrabMatchesLinearSearch(t *testing.T) {
	for seed, wakeups := range []int{0, 0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			m := New(Options{Host: "test", Wakeups: wakeups}).(*machine)
			srv := refserver.New(m, refserver.Options{Protocol: gearman.Protocol})
			dial := func() peerOf { return peerOf{peertest.Dial(t, gearman.Protocol, srv)} }
			client := dial()
			workers := []peerOf{dial(), dial(), dial(), dial()}
			var peers []*peer
			for p := range m.joined.All {
				peers = append(peers, p)
			}
			peers = peers[1:]
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			noops := make([]int, len(workers))
			// answer returns the next message that is not a NOOP.
			answer := func(i int) (name string, args []string) {
				for {
					if name, args = workers[i].Next(); name != "NOOP" {
						return name, args
					}
					noops[i]++
				}
			}
			grabbed := 0
			for range 4000 {
				i := rng.IntN(len(workers))
				w, fn := workers[i], fmt.Sprint("f", rng.IntN(10))
				switch rng.IntN(20) {
				default:
					client.submit([]string{"SUBMIT_JOB_HIGH_BG", "SUBMIT_JOB_BG", "SUBMIT_JOB_LOW_BG"}[rng.IntN(3)], fn, "", "")
				case 5, 6, 7, 8:
					w.Send("CAN_DO", fn)
				case 9:
					w.Send("CANT_DO", fn)
				case 10:
					w.Send("RESET_ABILITIES")
				case 11, 12:
					w.Send("PRE_SLEEP")
				case 13, 14, 15, 16, 17, 18, 19:
					want := "NO_JOB"
					if j := lookThrough(m, peers[i]); j != nil {
						want = string(m.handle(j))
					}
					w.Send("GRAB_JOB")
					name, args := answer(i)
					if name == "JOB_ASSIGN" {
						grabbed++
						name = args[0]
						w.Send("WORK_COMPLETE", name, "")
					}
					if name != want {
						t.Fatalf("grabbed %s, want %s", name, want)
					}
				}
				for k, p := range peers {
					if wakeups == 0 && p.sleeping && lookThrough(m, p) != nil {
						t.Fatalf("worker %d sleeps, but there is a job for it", k)
					}
				}
			}
			totalNoops := 0
			for i := range workers {
				workers[i].Send("ECHO_REQ", "end")
				answer(i)
				totalNoops += noops[i]
			}
			if grabbed < 100 || totalNoops < 100 {
				t.Errorf("only %d jobs grabbed and %d NOOPs sent", grabbed, totalNoops)
			}
			srv.Close()
		})
	}
}

// TestGrabSkipsFunctionsWithoutJobs checks that only queues that have had jobs are searched for a worker, however many functions it
// has registered.
func TestGrabSkipsFunctionsWithoutJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Host: "test"}).(*machine)
		srv := refserver.New(m, refserver.Options{Protocol: gearman.Protocol})
		w := peerOf{peertest.Dial(t, gearman.Protocol, srv)}
		for i := range 1000 {
			w.Send("CAN_DO", fmt.Sprint("f", i))
		}
		w.quiet(t)
		ready := func() int {
			p := m.joined.First()
			return len(p.ready[high]) + len(p.ready[normal]) + len(p.ready[low])
		}
		if n := ready(); n != 0 {
			t.Errorf("no job, and %d functions to look at", n)
		}
		w.submit("SUBMIT_JOB_BG", "f500", "", "")
		w.submit("SUBMIT_JOB_LOW_BG", "f7", "", "")
		if n := ready(); n != 2 {
			t.Errorf("two jobs, and %d functions to look at", n)
		}
		for _, fn := range []string{"f500", "f7"} {
			w.Send("GRAB_JOB")
			w.Want("JOB_ASSIGN", "*", fn, "")
		}
		w.Send("PRE_SLEEP")
		w.quiet(t)
		if n := ready(); n != 0 {
			t.Errorf("all jobs are taken, and there are %d functions to look at", n)
		}
		srv.Close()
	})
}
