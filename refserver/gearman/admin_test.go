package gearman

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/internal/version"
	"jobwire/refserver"
)

// TestStatusCommands tests that the administrative commands that show something report the functions, workers, jobs and
// unique IDs of the server, its version and its process.
func TestStatusCommands(t *testing.T) {
	bubble(t, Options{Version: "9.8"}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		a, c, w := dial(), dial(), dial()
		w.Send("CAN_DO", "f")
		w.Send("CAN_DO", "two words\n")
		w.quiet(t)
		for _, typ := range []string{"SUBMIT_JOB", "SUBMIT_JOB_HIGH_BG", "SUBMIT_JOB_LOW_BG", "SUBMIT_JOB_LOW_BG"} {
			c.submit(typ, "f", "", "")
		}
		c.submit("SUBMIT_JOB_BG", "f", "id 5", "")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", "H:test:2", "f", "")
		for _, q := range []struct{ cmd, reply, want string }{
			{"status", "status-reply", `f 5 1 1 two words\x0a 0 0 1`},
			{"prioritystatus", "prioritystatus-reply", `f 0 2 2 1 two words\x0a 0 0 0 1`},
			{"workers", "workers-reply", `3 near -  f two\x20words\x0a`},
			{"show-jobs", "show-jobs-reply", "H:test:1 0 0 1 H:test:2 0 0 0 H:test:3 0 0 1 H:test:4 0 0 1 H:test:5 0 0 1"},
			{"show-unique-jobs", "show-unique-jobs-reply", "id 5"},
			{"version", "version-reply", "OK 9.8"},
			{"getpid", "getpid-reply", strconv.Itoa(os.Getpid())},
			{"verbose", "verbose-reply", "ERROR"},
		} {
			if got := a.ask(q.reply, q.cmd); got != q.want {
				t.Errorf("%s: got %q, want %q", q.cmd, got, q.want)
			}
		}
		w.Send("SET_CLIENT_ID", "a b")
		w.Send("ALL_YOURS")
		w.quiet(t)
		if got := a.ask("workers-reply", "workers"); !strings.HasPrefix(got, `3 near a\x20b `) {
			t.Errorf("workers: %q", got)
		}
	})
}

// TestLineEnds checks that the reply to a line that ends with CR LF ends with CR LF, too, and that pipelined lines are answered in order.
func TestLineEnds(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		a := dial()
		a.Raw([]byte("maxqueue f 3\r\nversion\nshow me\nstatus\r\n"))
		a.Want("OK")
		a.Want("version-reply", "OK "+version.Number)
		a.Want("ERR", "UNKNOWN_COMMAND", "Unknown+server+command")
		a.Want("status-reply", "f", "0", "0", "0")
		a.Raw([]byte("workers all\n"))
		a.Want("ERR", "INVALID_ARGUMENTS", "*")
		a.quiet(t) // packets and lines may be mixed on one connection
	})
}

// TestMaxQueue tests that maxqueue limits the queue of a function for all or for each priority, that 0 and negative
// values remove the limit, and that no value restores the default.
func TestMaxQueue(t *testing.T) {
	bubble(t, Options{MaxQueue: [3]int{0, 4, 0}}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		a, c := dial(), dial()
		full := func(typ string) bool {
			t.Helper()
			c.Send(typ, "f", "", "")
			name, args := c.Next()
			if name == "ERROR" && args[0] != "QUEUE_ERROR" {
				t.Errorf("%s: ERROR %q", typ, args)
			}
			return name == "ERROR"
		}
		set := func(sizes ...string) {
			t.Helper()
			if got := a.ask("OK", "maxqueue", append([]string{"f"}, sizes...)...); got != "" {
				t.Errorf("maxqueue f %v: %s", sizes, got)
			}
		}
		set("1")
		if full("SUBMIT_JOB_BG") {
			t.Error("the first job is refused")
		}
		c.submit("SUBMIT_JOB_BG", "g", "same", "")
		for _, typ := range []string{"SUBMIT_JOB", "SUBMIT_JOB_HIGH_BG", "SUBMIT_JOB_LOW"} {
			if !full(typ) {
				t.Errorf("%s: taken over the limit of 1", typ)
			}
		}
		set("3", "2", "1")
		if !full("SUBMIT_JOB_LOW_BG") || full("SUBMIT_JOB_BG") || !full("SUBMIT_JOB_BG") || full("SUBMIT_JOB_HIGH_BG") || !full("SUBMIT_JOB_HIGH_BG") {
			t.Error("limits of 3, 2 and 1 are not kept to")
		}
		set("0")
		if full("SUBMIT_JOB_BG") {
			t.Error("no limit is one")
		}
		set() // restores the default: 4 for normal priority, no limit for the others
		if !full("SUBMIT_JOB_BG") || full("SUBMIT_JOB_HIGH_BG") {
			t.Error("the default is not kept to")
		}
		set("-5")
		if full("SUBMIT_JOB_BG") {
			t.Error("a negative limit is one")
		}
		for _, bad := range []string{"maxqueue f 1 2\n", "maxqueue\n", "maxqueue f x\n", "maxqueue f 1 2 3 4\n"} {
			a.Raw([]byte(bad))
			a.Want("ERR", "INVALID_ARGUMENTS", "*")
		}
	})
}

// TestFullQueueTakesEqualSubmissions checks that a full queue accepts a submission that is merged with an existing job.
func TestFullQueueTakesEqualSubmissions(t *testing.T) {
	bubble(t, Options{MaxQueue: [3]int{1, 1, 1}}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		h := c.submit("SUBMIT_JOB_BG", "f", "id", "")
		if c.submit("SUBMIT_JOB", "f", "id", "") != h {
			t.Error("another handle")
		}
	})
}

// TestCancelJob tests that "cancel job" removes a queued job and sends WORK_FAIL to its client, and refuses a running
// or unknown job.
func TestCancelJob(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		a, c, w := dial(), dial(), dial()
		h := c.submit("SUBMIT_JOB", "f", "", "queued")
		runs := c.submit("SUBMIT_JOB_HIGH", "f", "", "running")
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", runs, "f", "running")
		if got := a.ask("OK", "cancel-job", h); got != "" {
			t.Errorf("cancel job: %s", got)
		}
		c.Want("WORK_FAIL", h)
		w.Send("GRAB_JOB")
		w.Want("NO_JOB")
		for _, q := range []struct{ handle, code string }{{h, "UNKNOWN_JOB"}, {runs, "JOB_IS_RUNNING"}} {
			a.Send("cancel-job", q.handle)
			a.Want("ERR", q.code, "*")
		}
		w.Send("WORK_COMPLETE", runs, "")
		c.Want("WORK_COMPLETE", runs, "")
	})
}

// TestCreateAndDropFunction tests that "create function" makes a function appear in status, and that "drop function"
// removes only one that is known and not in use.
func TestCreateAndDropFunction(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		a, w := dial(), dial()
		if got := a.ask("OK", "create-function", "made"); got != "" {
			t.Error(got)
		}
		w.Send("CAN_DO", "used")
		w.quiet(t)
		if got := a.ask("status-reply", "status"); got != "made 0 0 0 used 0 0 1" {
			t.Errorf("status %q", got)
		}
		a.Send("drop-function", "used")
		a.Want("ERR", "FUNCTION_IN_USE", "*")
		a.Send("drop-function", "unheard-of")
		a.Want("ERR", "UNKNOWN_FUNCTION", "*")
		if got := a.ask("OK", "drop-function", "made"); got != "" {
			t.Error(got)
		}
		w.Send("CANT_DO", "used")
		w.quiet(t)
		if got := a.ask("status-reply", "status"); got != "" {
			t.Errorf("status %q, want nothing", got)
		}
	})
}

// TestShutdown tests that "shutdown graceful" makes the server refuse new connections and serve the others, and that
// shutdown ends all connections.
func TestShutdown(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		a, c := dial(), dial()
		a.Send("shutdown", "slowly")
		a.Want("ERR", "INVALID_ARGUMENTS", "*")
		a.Send("shutdown", "graceful")
		a.Want("OK")
		dial().Ended() // the server accepts no new connections
		h := c.submit("SUBMIT_JOB", "f", "", "")
		a.Send("CAN_DO", "f")
		a.Send("GRAB_JOB")
		a.Want("JOB_ASSIGN", h, "f", "")
		a.Send("WORK_COMPLETE", h, "")
		c.Want("WORK_COMPLETE", h, "")
		a.Send("shutdown")
		a.Want("OK")
		a.Ended()
		c.Ended()
	})
}

// TestUniqueIDsThatLookLikeSomethingElse checks that unique IDs that look like the end of the list or an error are escaped.
func TestUniqueIDsThatLookLikeSomethingElse(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		for _, id := range []string{"ERR it is not", ".", "..", "ERROR", "x ERR", "\n\r", "last"} {
			c.submit("SUBMIT_JOB_BG", "f", id, "")
		}
		c.submit("SUBMIT_JOB_BG", "f", "", "")
		want := `\x45RR it is not \x2e .. \x45RROR x ERR \x0a\x0d last`
		if got := c.ask("show-unique-jobs-reply", "show-unique-jobs"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestCommandsWithNUL checks that a command with NUL in a function name is rejected: no packet can have such a name.
func TestCommandsWithNUL(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		a := dial()
		for _, bad := range []string{"create function a\x00b\n", "maxqueue a\x00b 1\n", "drop function a\x00b\n"} {
			a.Raw([]byte(bad))
			a.Want("ERR", "INVALID_ARGUMENTS", "*")
		}
		if got := a.ask("status-reply", "status"); got != "" {
			t.Errorf("status %q, want nothing", got)
		}
	})
}

// TestListsAreBounded checks that a list is rejected only if it is longer than a packet may be.
func TestListsAreBounded(t *testing.T) {
	bubble(t, Options{}, refserver.Options{Codec: codec.Options{MaxData: 1000}}, func(t *testing.T, dial func() peerOf) {
		a := dial()
		a.Send("SET_CLIENT_ID", strings.Repeat("i", 100))
		for n := range 100 {
			name := strings.Repeat("n", 10) + strconv.Itoa(n)
			a.Send("CAN_DO", name)
			a.submit("SUBMIT_JOB_BG", name, name, "")
			if n != 10 && n != 99 {
				continue
			}
			for _, cmd := range []string{"workers", "status", "prioritystatus", "show-jobs", "show-unique-jobs"} {
				a.Send(cmd)
				reply, args := a.Next()
				if n == 10 && reply != cmd+"-reply" || n == 99 && (reply != "ERR" || args[0] != "LIST_TOO_LONG") {
					t.Errorf("%s with %d names: %s %.40q", cmd, n+1, reply, args)
				}
			}
		}
	})
}
