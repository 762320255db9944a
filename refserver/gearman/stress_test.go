package gearman

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// TestManyAtOnce runs clients, workers that complete jobs, workers that disconnect while running a job, and a client that disconnects.
// Every other client must get the result of each of its jobs once, and the machine must be empty at the end.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Host: "test"}).(*machine)
		srv := refserver.New(m, refserver.Options{Protocol: gearman.Protocol})
		dial := func() peerOf { return peerOf{peertest.New(t, gearman.Protocol, peertest.Connect(t, srv))} }
		const clients, jobs, functions = 8, 60, 3
		var workers, all sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			workers.Go(func() { workUntil(dial, functions, stop) })
		}
		for n := range clients {
			all.Go(func() {
				c := dial()
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				left := map[string]int{}
				for i := range jobs {
					typ := []string{"SUBMIT_JOB", "SUBMIT_JOB_HIGH", "SUBMIT_JOB_LOW", "SUBMIT_JOB_BG"}[rng.IntN(4)]
					unique := ""
					if rng.IntN(3) == 0 {
						unique = fmt.Sprint("shared", rng.IntN(5))
					}
					c.Send(typ, fmt.Sprint("f", rng.IntN(functions)), unique, fmt.Sprint(n, i))
					for {
						name, args := c.Next()
						if name == "JOB_CREATED" {
							if typ != "SUBMIT_JOB_BG" {
								left[args[0]]++
							}
							break
						}
						ended(t, left, name, args)
					}
					if n == 0 && i == jobs/2 {
						c.Leave()
						return
					}
				}
				for len(left) > 0 {
					name, args := c.Next()
					ended(t, left, name, args)
				}
				c.quiet(t)
			})
		}
		all.Wait()
		synctest.Wait() // background jobs have ended, too: all workers are sleeping
		close(stop)
		workers.Wait()
		synctest.Wait()
		left := 0
		for _, n := range []int{
			m.jobs.len, m.waits.len, m.names.len, m.extras.len, m.functions.len, m.blobs.large.len,
			len(m.byNumber.blocks), m.byKey.len, m.byUnique.len, int(m.unique.len), m.order.Len(), len(m.byName), len(m.timers),
		} {
			left += n
		}
		for _, c := range m.blobs.classes {
			left += c.len
		}
		if left != 0 {
			t.Errorf("%d things are left in the machine: %+v", left, m)
		}
		srv.Close()
		if m.joined.Len()+m.peers.len != 0 {
			t.Errorf("%d peers are left, %d of them in the list", m.peers.len, m.joined.Len())
		}
	})
}

// ended records one result of a job that a client waits for.
func ended(t *testing.T, left map[string]int, name string, args []string) {
	if name != "WORK_COMPLETE" || left[args[0]] == 0 {
		t.Errorf("%s %q is not awaited", name, args)
		return
	}
	if left[args[0]]--; left[args[0]] == 0 {
		delete(left, args[0])
	}
}

// workUntil runs jobs until stop is closed. Every few jobs it disconnects while running a job, and connects again.
func workUntil(dial func() peerOf, functions int, stop chan struct{}) {
	for round := 1; ; round++ {
		w := dial()
		for i := range functions {
			w.Send("CAN_DO_TIMEOUT", fmt.Sprint("f", i), "60000")
		}
		for done := 0; done < 10*round; done++ {
			w.Send("GRAB_JOB")
			name, args := w.Next()
			if name == "JOB_ASSIGN" {
				if done == 10*round-1 {
					break // disconnect while running the job
				}
				w.Send("WORK_COMPLETE", args[0], "done")
				continue
			}
			w.Send("PRE_SLEEP")
			if _, ok := w.NextOrStop(stop); !ok {
				w.Leave()
				return
			}
		}
		w.Leave()
	}
}

// FuzzPeer sends arbitrary bytes. Afterwards no foreground or running jobs and no peers may be left.
func FuzzPeer(f *testing.F) {
	var seed []byte
	s := gearman.Protocol.NewSession(codec.Options{WaiveAll: true})
	for _, msgType := range gearman.Protocol.Types {
		if msgType.Req == 0 {
			continue
		}
		m := codec.Message{Type: msgType}
		for i := range msgType.Fields {
			m.Args = append(m.Args, []byte{byte('1' + i)})
		}
		b, err := s.Append(nil, codec.Peer, &m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		if msgType.Name != "shutdown" {
			seed = append(seed, b...)
		}
	}
	f.Add(seed)
	f.Add(append(seed, seed...))
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			m := New(Options{Host: "test", Retries: 1}).(*machine)
			srv := refserver.New(m, refserver.Options{Protocol: gearman.Protocol, Codec: codec.Options{MaxData: 1 << 16}})
			peertest.Feed(t, srv, b)
			if m.joined.Len() != 0 {
				t.Errorf("%d peers are left", m.joined.Len())
			}
			for i := range m.byNumber.all {
				j := m.jobs.at(i)
				if !j.background || j.worker != 0 {
					t.Errorf("job %s is left of a connection that ended", m.handle(j))
				}
			}
		})
	})
}
