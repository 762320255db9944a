package beanstalk

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// TestManyAtOnce runs producers, workers, workers that are lost while they have jobs, and jobs whose time to
// run passes. Every job must end once, and nothing may be left in the machine.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{})
		srv := refserver.New(m, refserver.Options{Protocol: beanstalk.Protocol})
		dial := func() peerOf { return peerOf{peertest.New(t, beanstalk.Protocol, peertest.Connect(t, srv)), t} }
		const producers, jobs, tubes = 6, 80, 3
		var all, workers sync.WaitGroup
		var mu sync.Mutex
		ended := map[string]int{}
		stop := make(chan struct{})
		for n := range 5 {
			workers.Go(func() {
				workUntil(dial, rand.New(rand.NewPCG(uint64(n), 2)), tubes, stop, func(id string) {
					mu.Lock()
					defer mu.Unlock()
					ended[id]++
				})
			})
		}
		for n := range producers {
			all.Go(func() {
				p := dial()
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				for i := range jobs {
					p.ask("use", fmt.Sprint("t", rng.IntN(tubes)))
					p.put(rng.IntN(5), rng.IntN(3), 1+rng.IntN(3), fmt.Sprint(n, " ", i))
				}
				p.Leave()
			})
		}
		all.Wait()
		p := dial()
		waitUntil(t, func() bool {
			for i := range tubes {
				p.ask("use", fmt.Sprint("t", i))
				p.ask("kick", "100") // kick the buried jobs
			}
			mu.Lock()
			defer mu.Unlock()
			return len(ended) == producers*jobs
		})
		close(stop)
		workers.Wait()
		for id, n := range ended {
			if n != 1 {
				t.Errorf("job %s was deleted %d times", id, n)
			}
		}
		p.want("use default", "USING default")
		synctest.Wait()
		if got := p.stats("stats", "current-jobs-ready", "current-jobs-reserved", "current-jobs-delayed", "current-jobs-buried", "current-tubes", "total-jobs"); got != fmt.Sprint("0 0 0 0 1 ", producers*jobs) {
			t.Errorf("left: %s", got)
		}
		if m.jobs.len != 0 || len(m.jobs.pages) > 1 {
			t.Errorf("%d jobs, %d pages are left in the machine", m.jobs.len, len(m.jobs.pages))
		}
		srv.Close()
		m.check(t)
	})
}

// workUntil processes jobs with all commands. After every few jobs it disconnects and connects again.
func workUntil(dial func() peerOf, rng *rand.Rand, tubes int, stop chan struct{}, ended func(id string)) {
	for {
		w := dial()
		for i := range tubes {
			w.ask("watch", fmt.Sprint("t", i))
		}
		for range 10 + rng.IntN(10) {
			select {
			case <-stop:
				w.Leave()
				return
			default:
			}
			w.Send("reserve-with-timeout", "1")
			name, args := w.Next()
			if name != "RESERVED" {
				continue
			}
			switch rng.IntN(6) {
			case 0:
				w.ask("release", args[0], "3", fmt.Sprint(rng.IntN(2)))
			case 1:
				w.ask("bury", args[0], "2")
			case 2:
				w.ask("touch", args[0])
			case 3: // the worker does nothing: the time to run of the job passes, or the connection of the worker closes
			default:
				if w.ask("delete", args[0]) == "DELETED" {
					ended(args[0])
				}
			}
		}
		w.Leave()
	}
}

// FuzzPeer checks that after any data from a peer, only jobs that are not reserved are left.
func FuzzPeer(f *testing.F) {
	var seed []byte
	s := beanstalk.Protocol.NewSession(codec.Options{WaiveAll: true})
	for _, msgType := range beanstalk.Protocol.Types {
		if msgType.Req == 0 {
			continue
		}
		m := codec.Message{Type: msgType}
		for i := range msgType.Fields {
			if !msgType.Fields[i].Derived() {
				m.Args = append(m.Args, []byte{byte('1' + i)})
			}
		}
		b, err := s.Append(nil, codec.Peer, &m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		if msgType.Name != "quit" {
			seed = append(seed, b...)
		}
	}
	f.Add(seed)
	f.Add(append(seed, seed...))
	f.Add([]byte("put 0 0 1 1\r\nx\r\nreserve\r\nreserve\r\nreserve\r\nput 0 0 1 1\r\nx\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			m := New(Options{})
			srv := refserver.New(m, refserver.Options{Protocol: beanstalk.Protocol})
			peertest.Feed(t, srv, b)
			m.check(t)
			if m.peers+m.waiting+m.in[reserved] != 0 {
				t.Errorf("left behind: %d peers, %d waits, %d reserved jobs", m.peers, m.waiting, m.in[reserved])
			}
		})
	})
}
