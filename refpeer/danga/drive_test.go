package danga_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/drivetest"
	"jobwire/refserver"
	server "jobwire/refserver/danga"
)

var bench = drivetest.Suite{
	Document: danga.Document,
	Machine:  func() refserver.Machine { return server.New(server.Options{}) },
}

// TestTasks: the driver performs the tasks of docs/drivers.md and returns the answers described there.
func TestTasks(t *testing.T) {
	t.Parallel()
	bench.Exchanges(t, []drivetest.Exchange{
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
	})
}

// TestResultLater: an application requests the result of a job over a connection other than the one that created the job.
func TestResultLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		addr := bench.Serve(t)
		handle := strings.TrimPrefix(strings.TrimSpace(bench.Answers(t, addr, "create f x handle")), "ok ")
		got := bench.Answers(t, addr, "result "+handle, "work f echo 1", "result "+handle, "status "+handle)
		if got != "ok 0 0 \"\"\nok 1\nok 1 0 x\nok 1 1 0\n" {
			t.Errorf("got %q", got)
		}
	})
}

// TestUnreachable: each task reports that the application or worker cannot connect.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	bench.WithoutServer(t, "create f x", "work f echo 1")
}
