package gearmonkey

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"jobwire/codec/gearmonkey"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// TestEveryJobOnce checks that each job of several clients goes to exactly one of many workers.
func TestEveryJobOnce(t *testing.T) {
	const clients, workers, jobs = 4, 16, 500 // jobs per client
	synctest.Test(t, func(t *testing.T) {
		srv := refserver.New(New(Options{}), refserver.Options{Protocol: gearmonkey.Protocol})
		dial := func() *client { return newClient(t, peertest.Connect(t, srv)) }
		var mu sync.Mutex
		got := map[string]int{}
		var working, sending sync.WaitGroup
		for range workers {
			w := dial()
			working.Go(func() {
				for {
					w.send("BRPOP", "queue:f:high", "queue:f:normal", "0")
					popped := strings.Fields(w.next())
					if popped[4] == "end" {
						return
					}
					mu.Lock()
					got[popped[4]]++
					mu.Unlock()
				}
			})
		}
		for i := range clients {
			c := dial()
			sending.Go(func() {
				for j := range jobs {
					c.send("LPUSH", []string{"queue:f:high", "queue:f:normal"}[j%2], fmt.Sprint(i*jobs+j))
					c.next()
				}
			})
		}
		sending.Wait()
		c := dial()
		for range workers {
			c.ask("LPUSH queue:f:normal end")
		}
		working.Wait()
		if len(got) != clients*jobs {
			t.Errorf("%d jobs came to workers, %d were sent", len(got), clients*jobs)
		}
		for id, n := range got {
			if n != 1 {
				t.Errorf("job %s came to %d workers", id, n)
			}
		}
		c.want("EXISTS queue:f:high queue:f:normal", ":0")
		srv.Close()
	})
}
