package gearman_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	protocol "jobwire/codec/gearman"
	"jobwire/refpeer/gearman"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
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
	if err := gearman.Drive(t.Context(), addr, strings.NewReader(strings.Join(tasks, "\n")), &out); err != nil {
		t.Error(err)
	}
	return out.String()
}

// TestTasks: what docs/drivers.md asks for is done, and answered as it says.
func TestTasks(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, client, answer, worker, done string }{
		{"result", "submit f ab\\", "error usage", "", ""},
		{"reversed", `submit f "a\0b"`, `ok "b\0a"`, "work f reverse 1", "ok 1"},
		{"empty", `submit f ""`, `ok ""`, "work f echo 1", "ok 1"},
		{"emptied", `submit f x`, `ok ""`, "work f empty 1", "ok 1"},
		{"failed", `submit f x`, `error failed`, "work f fail 1", "ok 1"},
		{"exception", `submit f x exceptions`, `error exception x`, "work f exception 1", "ok 1"},
		{"exception unasked", `submit f x`, `error failed`, "work f exception 1", "ok 1"},
		{"data", `submit f x`, `ok x data x`, "work f data 1", "ok 1"},
		{"warning", `submit f x priority=high`, `ok x warning x`, "work f warning 1 id=me", "ok 1"},
		{"status", `submit f x priority=low unique=u`, `ok x status 1/2`, "work f status 1 timeout=60000", "ok 1"},
		{"batch", `batch f a b c`, `ok a b c`, "work e,f echo 3", "ok 3"},
		{"background", `submit f x background`, `ok H:`, "", ""},
		{"scheduled", `submit f x at=1`, `ok H:`, "", ""},
		{"time-out", `submit f x timeout=1`, `error timed-out`, "", ""},
		{"status of none", `status H:none:1`, `ok 0 0 0 0`, "", ""},
		{"echo", `echo "a\0"`, `ok "a\0"`, "", ""},
		{"nothing to do", ``, ``, "work f echo 0", "ok 0"},
		{"no way to work", ``, ``, "work f juggle 1", "error usage"},
		{"no such option", `submit f x colour=red`, `error usage`, "", ""},
		{"no such task", `juggle`, `error usage`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := serving(t)
			var both sync.WaitGroup
			for _, side := range []struct{ task, due string }{{tt.client, tt.answer}, {tt.worker, tt.done}} {
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

// TestNobodyThere: what cannot be reached is told.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	if got := driven(t, "127.0.0.1:1", "submit f x", "work f echo 1"); strings.Count(got, "error connection") != 2 {
		t.Errorf("got %q", got)
	}
}
