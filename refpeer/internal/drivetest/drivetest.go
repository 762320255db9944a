// Package drivetest holds drivers against the reference servers.
package drivetest

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"jobwire/codec"
	"jobwire/refserver"
)

// Driver does the tasks that it reads at a server, and writes an answer to each.
type Driver func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error

// Bench is a driver, and the server that it is held against.
type Bench struct {
	Drive    Driver
	Protocol *codec.Protocol
	Machine  func() refserver.Machine
}

// Talk is a task of either side, and how its answer begins. An empty task is nobody's.
type Talk = struct{ Name, Client, Answer, Worker, Done string }

// Serve starts a server that ends with the test, and returns its address.
func (b Bench) Serve(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		refserver.New(b.Machine(), refserver.Options{Protocol: b.Protocol}).Serve(ctx, ln)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return ln.Addr().String()
}

// Driven returns what the driver answers.
func (b Bench) Driven(t *testing.T, addr string, tasks ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := b.Drive(t.Context(), addr, strings.NewReader(strings.Join(tasks, "\n")), &out); err != nil {
		t.Error(err)
	}
	return out.String()
}

// Talks has both sides of each talk driven at once, at a server of its own.
func (b Bench) Talks(t *testing.T, talks []Talk) {
	for _, talk := range talks {
		t.Run(talk.Name, func(t *testing.T) {
			t.Parallel()
			addr := b.Serve(t)
			var both sync.WaitGroup
			for _, side := range []struct{ task, due string }{{talk.Client, talk.Answer}, {talk.Worker, talk.Done}} {
				if side.task == "" {
					continue
				}
				both.Go(func() {
					if got := b.Driven(t, addr, side.task); !strings.HasPrefix(got, side.due) || strings.Count(got, "\n") != 1 {
						t.Errorf("%s: got %q, want %q", side.task, got, side.due)
					}
				})
			}
			both.Wait()
		})
	}
}

// NobodyThere has tasks driven where no server is: each is told so.
func (b Bench) NobodyThere(t *testing.T, tasks ...string) {
	if got := b.Driven(t, "127.0.0.1:1", tasks...); strings.Count(got, "error connection") != len(tasks) {
		t.Errorf("got %q", got)
	}
}
