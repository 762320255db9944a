// Package drivetest tests drivers with the reference servers.
package drivetest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"jobwire/refpeer/internal/peer"
	"jobwire/refserver"
)

// Driver performs the tasks that it reads with the server at addr, and writes an answer to each.
type Driver = func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error

// Suite contains a correct program and the reference server that it is tested with.
type Suite struct {
	Document func() *peer.Program
	Machine  func() refserver.Machine
}

// edited returns a driver that performs tasks with an edited program.
func (s Suite) edited(edit func(*peer.Program)) Driver {
	return func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		p := s.Document()
		edit(p)
		return p.Drive(ctx, addr, tasks, answers)
	}
}

// Exchange contains a task for a client and one for a worker, each with the beginning of its answer. An empty task is
// not performed.
type Exchange = struct{ Name, Client, Answer, Worker, Done string }

// Serve starts a server in memory that ends with the test, and returns its address.
func (s Suite) Serve(t *testing.T) string {
	t.Helper()
	server, err := s.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	return server.Addr()
}

// Answers returns the answers to tasks.
func (s Suite) Answers(t *testing.T, addr string, tasks ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Document().Drive(t.Context(), addr, strings.NewReader(strings.Join(tasks, "\n")), &out); err != nil {
		t.Error(err)
	}
	return out.String()
}

// Exchanges tests that the tasks of each element have the expected answers. Client and worker run concurrently, with a
// separate server for each element, in virtual time.
func (s Suite) Exchanges(t *testing.T, exchanges []Exchange) {
	for _, e := range exchanges {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				addr := s.Serve(t)
				var both sync.WaitGroup
				for _, side := range []struct{ task, expected string }{{e.Client, e.Answer}, {e.Worker, e.Done}} {
					if side.task == "" {
						continue
					}
					both.Go(func() {
						if got := s.Answers(t, addr, side.task); !strings.HasPrefix(got, side.expected) || strings.Count(got, "\n") != 1 {
							t.Errorf("%s: expected %q, got %q", side.task, side.expected, got)
						}
					})
				}
				both.Wait()
			})
		})
	}
}

// WithoutServer tests that the answer to each task is a connection error if there is no server.
func (s Suite) WithoutServer(t *testing.T, tasks ...string) {
	if got := s.Answers(t, "memory:absent", tasks...); strings.Count(got, "error connection") != len(tasks) {
		t.Errorf("expected %d connection errors, got %q", len(tasks), got)
	}
}
