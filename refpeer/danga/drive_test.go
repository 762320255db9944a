package danga_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	protocol "jobwire/codec/danga"
	"jobwire/refpeer/danga"
	"jobwire/refserver"
	server "jobwire/refserver/danga"
)

// serving starts a server and returns its address.
func serving(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		refserver.New(server.New(server.Options{}), refserver.Options{Protocol: protocol.Protocol}).Serve(ctx, ln)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return ln.Addr().String()
}

// driven returns what a driver answers.
func driven(t *testing.T, addr string, tasks ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := danga.Drive(t.Context(), addr, strings.NewReader(strings.Join(tasks, "\n")), &out); err != nil {
		t.Error(err)
	}
	return out.String()
}

// TestTasks: what docs/drivers.md asks for is done, and answered as it says.
func TestTasks(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, application, answer, worker, done string }{
		{"reversed", `create f "a\0b"`, `ok "b\0a"`, "work f reverse 1", "ok 1"},
		{"empty", `create f ""`, `ok ""`, "work f echo 1", "ok 1"},
		{"emptied", `create f x key=k`, `ok ""`, "work f empty 1", "ok 1"},
		{"failed", `create f x`, `error failed 1 ""`, "work f fail 1", "ok 1"},
		{"status", `create f x`, `ok x status 1/2`, "work f status 1", "ok 1"},
		{"batch", `batch f a b c`, `ok a b c`, "work e,f echo 3", "ok 3"},
		{"batch of failures", `batch f a b`, `error failed 1 ""`, "work f fail 1", "ok 1"},
		{"handle", `create f x handle`, `ok J:`, "", ""},
		{"away", `create f x away`, "ok\n", "work f echo 1", "ok 1"},
		{"status of none", `status J:none:1`, `ok 0 0 4294967295`, "", ""},
		{"result of none", `result J:none:1`, `ok 0 255 ""`, "", ""},
		{"nothing to do", ``, ``, "work f echo 0", "ok 0"},
		{"no way to work", ``, ``, "work f juggle 1", "error usage"},
		{"no such option", `create f x colour=red`, `error usage`, "", ""},
		{"no such task", `juggle`, `error usage`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := serving(t)
			var both sync.WaitGroup
			for _, side := range []struct{ task, due string }{{tt.application, tt.answer}, {tt.worker, tt.done}} {
				if side.task == "" {
					continue
				}
				both.Go(func() {
					if got := driven(t, addr, side.task); !strings.HasPrefix(got, side.due) || strings.Count(got, "\n") != 1 {
						t.Errorf("%s: got %q, want %q", side.task, got, side.due)
					}
				})
			}
			both.Wait()
		})
	}
}

// TestResultLater: whoever has a handle gets the result on another connection.
func TestResultLater(t *testing.T) {
	t.Parallel()
	addr := serving(t)
	handle := strings.TrimPrefix(strings.TrimSpace(driven(t, addr, "create f x handle")), "ok ")
	if got := driven(t, addr, "result "+handle, "work f echo 1", "result "+handle, "status "+handle); got != "ok 0 0 \"\"\nok 1\nok 1 0 x\nok 1 1 0\n" {
		t.Errorf("got %q", got)
	}
}

// TestNobodyThere: what cannot be reached is told.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	if got := driven(t, "127.0.0.1:1", "create f x", "work f echo 1"); strings.Count(got, "error connection") != 2 {
		t.Errorf("got %q", got)
	}
}
