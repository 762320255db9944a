package gearman_test

import (
	"testing"

	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/drivetest"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
)

var bench = drivetest.Suite{
	Document: gearman.Document,
	Machine:  func() refserver.Machine { return server.New(server.Options{}) },
}

// TestTasks: the driver performs the tasks of docs/drivers.md and returns the answers described there.
func TestTasks(t *testing.T) {
	t.Parallel()
	bench.Exchanges(t, []drivetest.Exchange{
		{"result", "submit f ab\\", "error usage", "", ""},
		{"reversed", `submit f "a\0b"`, `ok "b\0a"`, "work f reverse 1", "ok 1"},
		{"nil", `submit f "" nil`, `ok ""`, "work f echo 1", "ok 1"},
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
		{"at a time of the calendar", `submit f x schedule=59,23,31,12,6`, `ok H:`, "", ""},
		{"time-out", `submit f x timeout=1`, `error timed-out`, "", ""},
		{"status of none", `status H:none:1`, `ok 0 0 0 0`, "", ""},
		{"echo", `echo "a\0"`, `ok "a\0"`, "", ""},
		{"nothing to do", ``, ``, "work f echo 0", "ok 0"},
		{"no way to work", ``, ``, "work f juggle 1", "error usage"},
		{"no such option", `submit f x colour=red`, `error usage`, "", ""},
		{"no such task", `juggle`, `error usage`, "", ""},
	})
}

// TestUnreachable: each task reports that the client or worker cannot connect.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	bench.WithoutServer(t, "submit f x", "work f echo 1")
}
