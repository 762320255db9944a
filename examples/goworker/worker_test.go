package goworker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"jobwire/jobtest"
)

// connect returns a connection of the library to the server.
func connect(t *testing.T, srv *jobtest.Server) *beanstalk.Conn {
	t.Helper()
	nc, err := srv.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn := beanstalk.NewConn(nc)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// start starts a worker, which ends before the server. It returns the bodies of the jobs that it performs.
func start(t *testing.T, srv *jobtest.Server, takes time.Duration) <-chan string {
	jobs := make(chan string, 10)
	w := Worker{Dial: srv.Dial, Handle: func(body []byte) error {
		<-time.After(takes)
		jobs <- string(body)
		return nil
	}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return jobs
}

// TestTimeToRun tests what the library reports when a worker has not deleted its job in its time to run of a minute.
func TestTimeToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{})
		slow, other := connect(t, srv), connect(t, srv)
		id, err := slow.Put([]byte("photo.jpg"), 0, 0, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := slow.Reserve(0); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		again, _, err := other.Reserve(time.Hour)
		if err != nil || again != id || time.Since(began) != time.Minute {
			t.Errorf("job %d, %v after %v; expected job %d after 1 min", again, err, time.Since(began), id)
		}
		if err := slow.Delete(id); !errors.Is(err, beanstalk.ErrNotFound) {
			t.Errorf("the first worker deletes the job: %v", err)
		}
	})
}

// TestLongJob tests that no other worker gets a job that takes longer than its time to run.
func TestLongJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{})
		jobs := start(t, srv, 10*time.Minute)
		if _, err := connect(t, srv).Put([]byte("photo.jpg"), 0, 0, time.Minute); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the worker has the job
		if id, _, err := connect(t, srv).Reserve(time.Hour); !errors.Is(err, beanstalk.ErrTimeout) {
			t.Errorf("another worker got job %d, %v", id, err)
		}
		if body := <-jobs; body != "photo.jpg" {
			t.Errorf("performed %q", body)
		}
	})
}

// TestConnectsAgain tests that the worker performs a job although the server closes the connection in place of sending
// the job.
func TestConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{Faults: []string{"close RESERVED when job.assigned == 1"}})
		jobs := start(t, srv, 0)
		began := time.Now()
		if _, err := connect(t, srv).Put([]byte("photo.jpg"), 0, time.Hour/2, time.Minute); err != nil {
			t.Fatal(err)
		}
		if <-jobs; time.Since(began) != time.Hour/2+retryTime {
			t.Errorf("performed after %v, expected half an hour of delay and a minute until the worker connects again", time.Since(began))
		}
		if n := strings.Count(srv.Transcript(), "reserve-with-timeout"); n != 2 {
			t.Errorf("%d requests for a job, expected 2:\n%s", n, srv.Transcript())
		}
	})
}
