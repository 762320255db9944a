// Package goworker is a Beanstalk worker that uses github.com/beanstalkd/go-beanstalk. Its tests show how package jobtest
// tests such a program in virtual time: jobs that take minutes, and pauses before a new connection, take no time.
package goworker

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

const (
	retryTime = time.Minute      // how long a worker waits before it connects again
	touchTime = 20 * time.Second // how often a worker extends the time to run of its job
)

// Worker performs the jobs of the tube "default".
type Worker struct {
	Dial   func(context.Context) (net.Conn, error) // connects to the server
	Handle func(body []byte) error                 // performs a job; jobs for which it returns an error are buried
}

// Run performs jobs until ctx ends. If the connection fails, it connects again after a minute.
func (w *Worker) Run(ctx context.Context) error {
	for {
		w.session(ctx)
		select {
		case <-time.After(retryTime):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// session performs jobs until the connection fails or ctx ends.
func (w *Worker) session(ctx context.Context) error {
	nc, err := w.Dial(ctx)
	if err != nil {
		return err
	}
	conn := beanstalk.NewConn(nc)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for {
		id, body, err := conn.Reserve(time.Hour)
		if errors.Is(err, beanstalk.ErrTimeout) {
			continue
		}
		if err == nil {
			err = w.perform(conn, id, body)
		}
		if err != nil {
			return err
		}
	}
}

// perform performs a job, and deletes or buries it.
func (w *Worker) perform(conn *beanstalk.Conn, id uint64, body []byte) error {
	done := make(chan struct{})
	var touching sync.WaitGroup
	touching.Go(func() {
		for {
			select {
			case <-time.After(touchTime):
				conn.Touch(id)
			case <-done:
				return
			}
		}
	})
	err := w.Handle(body)
	close(done)
	touching.Wait()
	if err != nil {
		return conn.Bury(id, 0)
	}
	return conn.Delete(id)
}
