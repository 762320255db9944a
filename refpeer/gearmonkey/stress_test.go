package gearmonkey

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestManyAtOnce runs waiting and other clients together with workers of one and of two functions. Every job must be
// performed once and end as its input requires, no client may wait in vain, and all counts must be 0 at the end.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := serve(t)
		const clients, workers, each = 6, 4, 50
		priorities := []string{"low", "normal", "high", "scheduled"}

		ctx, stop := context.WithCancel(t.Context())
		var working, creating sync.WaitGroup
		var mu sync.Mutex
		worked := map[string]int{}
		for i := range workers {
			w := worker(t, addr, [][]string{{"f"}, {"g"}, {"f", "g"}, {"g", "f"}}[i]...)
			working.Go(func() {
				if err := w.Work(ctx, func(ctx context.Context, t *Task) ([]byte, error) {
					mu.Lock()
					worked[string(t.Function)+string(t.ID)]++
					mu.Unlock()
					n, err := strconv.ParseUint(string(t.Input), 10, 64)
					switch {
					case err != nil:
						return nil, err
					case n%5 == 0:
						return nil, errors.New("odd")
					case n%7 == 0:
						panic("odd")
					}
					return t.Input, w.Update(ctx, n, 2*n)
				}); err != nil {
					t.Errorf("worker %d: %v", i, err)
				}
			})
		}
		ids := make([]map[string]int, clients) // per client: the input of each job
		for i := range clients {
			ids[i] = map[string]int{}
			c := NewClient(connect(t, addr).Conn, nil)
			creating.Go(func() {
				for n := i; n < each*clients; n += clients {
					fn := []string{"f", "g"}[n/clients%2]
					id, err := c.Run(ctx, fn, []byte(strconv.Itoa(n)), RunOptions{
						Priority: priorities[n%len(priorities)], Blocking: n%10 == i, RollCall: n%10 == i})
					if err == nil && n%10 == i {
						var j Job
						if j, err = c.Get(ctx, fn, id); err == nil && j.Status() != "success" && j.Status() != "error" {
							err = fmt.Errorf("the job ended as %v", j)
						}
					}
					if errors.Is(err, ErrNothingRegistered) {
						continue // the workers have not registered yet
					}
					if err != nil {
						t.Errorf("client %d, job %d: %v", i, n, err)
						return
					}
					ids[i][fn+strconv.FormatUint(id, 10)] = n
				}
			})
		}
		creating.Wait()
		time.Sleep(time.Minute) // until the workers have performed all jobs
		op := connect(t, addr)
		all := map[string]int{}
		for _, own := range ids {
			for job, n := range own {
				if _, twice := all[job]; twice {
					t.Errorf("%s was given to two clients", job)
				}
				all[job] = n
			}
		}
		for job, n := range all {
			key := "job:" + job[:1] + ":" + job[1:]
			want := fmt.Sprint("success ", n)
			switch {
			case n%5 == 0:
				want = "error odd"
			case n%7 == 0:
				want = "error panic: odd"
			}
			if got := op.do("HMGET", key, "status", "output"); got != want {
				t.Errorf("%s: expected %s, got %s", job, want, got)
			}
		}
		stop()
		working.Wait()
		for job, n := range worked {
			if _, ok := all[job]; n != 1 || !ok {
				t.Errorf("%s was worked on %d times; created: %v", job, n, ok)
			}
		}
		if len(worked) != len(all) || len(all) < clients*each/2 {
			t.Errorf("%d jobs were created, %d worked on", len(all), len(worked))
		}
		if got := op.do("MGET", "count:f", "count:g"); got != "0 0" {
			t.Errorf("the counts are %s", got)
		}
		if got := op.do("KEYS", "queue:*"); strings.TrimSpace(got) != "" {
			t.Errorf("queues are left: %s", got)
		}
	})
}
