package gearmonkey

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestManyAtOnce runs waiting and other clients together with workers of one and of two functions. Every job must be
// performed once, no client may wait in vain, and all counts must be 0 at the end.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := serve(t)
		const clients, each = 6, 50
		priorities := []string{"low", "normal", "high", "scheduled"}

		ctx, stop := context.WithCancel(t.Context())
		var working, creating sync.WaitGroup
		functions := []string{"f", "g", "f,g", "g,f"}
		worked := make([]strings.Builder, len(functions))
		for i, list := range functions {
			working.Go(func() {
				if err := Drive(ctx, addr, strings.NewReader("work "+list+" echo 100000\n"), &worked[i]); !errors.Is(err, context.Canceled) {
					t.Errorf("worker %d: %v", i, err)
				}
			})
		}
		all := make([]map[string]int, clients) // per client: the input of each job
		for i := range clients {
			all[i] = map[string]int{}
			creating.Go(func() {
				tasks, in := io.Pipe()
				replies, out := io.Pipe()
				creating.Go(func() {
					if err := Drive(ctx, addr, tasks, out); err != nil {
						t.Errorf("client %d: %v", i, err)
					}
					out.Close()
				})
				answers := bufio.NewScanner(replies)
				for k := range each {
					fn, waits := []string{"f", "g"}[k%2], k%10 == i
					task := fmt.Sprintf("run %s %d priority=%s", fn, i+k*clients, priorities[k%len(priorities)])
					if waits {
						task += " blocking=0 rollcall"
					}
					io.WriteString(in, task+"\n")
					answers.Scan()
					id, ok := strings.CutPrefix(answers.Text(), "ok ")
					switch {
					case ok:
						all[i][fn+id] = i + k*clients
					case !strings.HasPrefix(answers.Text(), "error nothing-registered"): // the workers may not have registered yet
						t.Errorf("client %d, job %d: %s", i, k, answers.Text())
					}
					if got := redis(t, addr, "HGET", "job:"+fn+":"+id, "status"); ok && waits && got != "success" {
						t.Errorf("client %d has waited for job %d, whose status is %s", i, k, got)
					}
				}
				in.Close()
			})
		}
		creating.Wait()
		time.Sleep(time.Minute) // until the workers have performed all jobs
		seen := map[string]bool{}
		for _, own := range all {
			for job, n := range own {
				if seen[job] {
					t.Errorf("%s was given to two clients", job)
				}
				seen[job] = true
				want := fmt.Sprint("success ", n)
				if got := redis(t, addr, "HMGET", "job:"+job[:1]+":"+job[1:], "status", "output"); got != want {
					t.Errorf("%s: expected %s, got %s", job, want, got)
				}
			}
		}
		stop()
		working.Wait()
		sum := 0
		for i := range worked {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(worked[i].String(), "ok "), "\n"))
			if sum += n; err != nil {
				t.Errorf("worker %d: %s", i, &worked[i])
			}
		}
		if sum != len(seen) || len(seen) < clients*each/2 {
			t.Errorf("%d jobs were created, %d worked on", len(seen), sum)
		}
		if got := redis(t, addr, "MGET", "count:f", "count:g"); got != "0 0" {
			t.Errorf("the counts are %s", got)
		}
		if got := redis(t, addr, "KEYS", "queue:*"); strings.TrimSpace(got) != "" {
			t.Errorf("queues are left: %s", got)
		}
	})
}
