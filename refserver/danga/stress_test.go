package danga

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// TestManyAtOnce runs applications, workers, workers that are lost while they have jobs, and applications that
// disconnect. Every application that stays must get the result of each of its jobs once, and only results may
// be left in the machine.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Name: "test"}).(*machine)
		srv := refserver.New(m, refserver.Options{Protocol: danga.Protocol})
		dial := func() peerOf { return peerOf{peertest.New(t, danga.Protocol, peertest.Connect(t, srv)), t} }
		const applications, jobs, names = 8, 60, 3
		var workers, all sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			workers.Go(func() { workUntil(dial, names, stop) })
		}
		for n := range applications {
			all.Go(func() {
				a := dial()
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				args := map[string]string{} // by handle
				for i := range jobs {
					typ := []string{syncWait, async, throwAway}[rng.IntN(3)]
					name, dupkey, arg := fmt.Sprint("f", rng.IntN(names)), "", fmt.Sprint(n, " ", i)
					if rng.IntN(3) == 0 {
						dupkey = fmt.Sprint("shared", rng.IntN(5))
						arg = name + dupkey
					}
					handle := a.create(name, dupkey, typ, arg)
					switch {
					case typ == async:
						args[handle] = arg
					case typ == throwAway:
					case n == 0 && i > jobs/2:
						a.Leave() // while it waits for a job
						return
					default:
						want := []string{"*", "\x00", "done " + arg}
						if got := a.Want("job_complete_res", want...); got[0] == num(0) {
							t.Error("a result in no time")
						}
					}
				}
				for handle, arg := range args {
					got := []string{num(0)}
					for ; got[0] == num(0); time.Sleep(time.Millisecond) {
						a.Send("job_complete_req", handle)
						got = a.Want("job_complete_res", "*", "\x00", "*")
					}
					if got[2] != "done "+arg {
						t.Errorf("the result of %q is %q", arg, got[2])
					}
				}
				a.quiet()
			})
		}
		all.Wait()
		synctest.Wait() // jobs without a reply are done, too: only sleeping workers are left
		close(stop)
		workers.Wait()
		srv.Close()
		m.check(t)
		if len(m.tasks)+len(m.keyed) != 0 || len(m.jobs) != m.kept.Len() {
			t.Errorf("left in the machine: %d names, %d keys, %d jobs that are not finished", len(m.tasks), len(m.keyed), len(m.jobs)-m.kept.Len())
		}
	})
}

// workUntil runs jobs. After every few jobs it disconnects with a job and connects again.
func workUntil(dial func() peerOf, names int, stop chan struct{}) {
	for round := 1; ; round++ {
		w := dial()
		var able []string
		for i := range names {
			able = append(able, fmt.Sprint("f", i))
		}
		w.Send("worker_connect", able...)
		for done := 0; done < 10*round; done++ {
			w.Send("job_assign_req")
			name, args := w.Next()
			if name == "job_assign_res" {
				if done == 10*round-1 {
					break // it disconnects with the job
				}
				w.Send("job_complete_announce", "\x00", "done "+args[1])
				continue
			}
			w.Send("worker_sleep")
			if _, ok := w.NextOrStop(stop); !ok {
				w.Leave()
				return
			}
		}
		w.Leave()
	}
}

// FuzzPeer checks that, whatever one peer sends, the server serves other peers, and that after the
// disconnection of this peer the server keeps only its jobs for which no application has to wait.
func FuzzPeer(f *testing.F) {
	var seed []byte
	s := danga.Protocol.NewSession(codec.Options{WaiveAll: true})
	for _, msgType := range danga.Protocol.Types {
		if msgType.Req == 0 {
			continue
		}
		m := codec.Message{Type: msgType}
		for i, fd := range msgType.Fields {
			arg := []byte{byte('a' + i)}
			if fd.Width > 0 {
				arg = make([]byte, fd.Width)
			}
			m.Args = append(m.Args, arg)
		}
		b, err := s.Append(nil, codec.Peer, &m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		seed = append(seed, b...)
	}
	f.Add(seed)
	f.Add(append(seed, seed...))
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			m := New(Options{Name: "test"}).(*machine)
			srv := refserver.New(m, refserver.Options{Protocol: danga.Protocol, Codec: codec.Options{MaxData: 1 << 16}})
			peertest.Feed(t, srv, b)
			m.check(t)
		})
	})
}
