package gearmonkey

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/internal/peers"
)

// drive performs tasks with a server and returns the answers.
func drive(t testing.TB, addr string, tasks ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := Drive(t.Context(), addr, strings.NewReader(lines(tasks...)), &out); err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(answers) != len(tasks) {
		t.Fatalf("%d answers to %d tasks: %q", len(answers), len(tasks), answers)
	}
	return answers
}

// TestDriveAgainstRedis tests that the reference client and worker perform each task on a real Redis server, and that
// invalid tasks are errors that change nothing.
func TestDriveAgainstRedis(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	for i, tt := range []struct{ task, want string }{
		{"get reverse 1", `ok "" ""`},
		{"run reverse abc rollcall", "error nothing-registered ..."},
		{"run reverse abc", "ok 1"},
		{"get reverse 1", `ok idle "" input abc`},
		{"work reverse reverse 1", "ok 1"},
		{"get reverse 1", "ok success cba input abc"},
		{`run reverse "a b\0" priority=low`, "ok 2"},
		{"run reverse second priority=high", "ok 3"},
		{"run reverse third priority=scheduled at=5", "ok 4"},
		{"run reverse later priority=scheduled at=9999999999", "ok 5"},
		{"work reverse echo 1", "ok 1"}, // the scheduled job is first
		{"get reverse 4", "ok success third input third"},
		{"get reverse 3", `ok idle "" input second`},
		{"work reverse fail 1", "ok 1"},
		{"get reverse 3", "ok error second input second"},
		{"work reverse empty 1", "ok 1"},
		{"get reverse 2", `ok success "" input "a b\0"`},
		{"work reverse echo 0", "ok 0"},
		{"run reverse abc blocking=1", "error timed-out 6"},
		{"work reverse progress 0", "ok 1"},
		{"get reverse 6", "ok success abc input abc status:dividend 1 status:divisor 2"},
		{"run a x", "ok 1"},
		{"run b y", "ok 1"},
		{"work a,b echo 2", "ok 2"},
		{"get b 1", "ok success y input y"},
		{`run c "x"*100`, "ok 1"},
		{"work c empty 0", "ok 1"},

		{"", "error usage ..."},
		{"walk reverse", "error usage ..."},
		{"run reverse", "error usage ..."},
		{"run reverse abc priority=urgent", "error usage ..."},
		{"run reverse abc at=5", "error usage ..."},
		{"run reverse abc at=soon", "error usage ..."},
		{"run reverse abc blocking", "error usage ..."},
		{"run reverse abc blocking=-1", "error usage ..."},
		{"run reverse abc rollcall=1", "error usage ..."},
		{"run reverse abc quickly", "error usage ..."},
		{`run reverse "abc`, "error usage ..."},
		{"get reverse one", "error usage ..."},
		{"get reverse 1 2", "error usage ..."},
		{"work reverse echo", "error usage ..."},
		{"work reverse dance 1", "error usage ..."},
		{"work reverse echo -1", "error usage ..."},
		{"work reverse echo 1 2", "error usage ..."},
		{"run reverse abc", "ok 7"}, // the invalid tasks created no job
	} {
		got := drive(t, addr, tt.task)[0]
		if prefix, open := strings.CutSuffix(tt.want, " ..."); got != tt.want && (!open || !strings.HasPrefix(got, prefix+" ")) {
			t.Fatalf("task %d, %s: %s; want %s", i, tt.task, got, tt.want)
		}
	}
}

// TestDriveReportsRedisErrors tests that an error reply of Redis is the answer to the task, and that the count of
// workers is correct afterwards.
func TestDriveReportsRedisErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := serve(t)
		redis(t, addr, "SET", "uid:f", "text")
		redis(t, addr, "SET", "queue:g:normal", "no list")
		redis(t, addr, "SET", "count:h", "no number")
		for task, want := range map[string]string{
			"run f x":       `error redis "ERR value is not an integer or out of range"`,
			"run g x":       `error redis "WRONGTYPE Operation against a key holding the wrong kind of value"`,
			"work g echo 1": `error redis "WRONGTYPE Operation against a key holding the wrong kind of value"`,
			"work h echo 1": `error redis "ERR value is not an integer or out of range"`,
		} {
			if got := drive(t, addr, task)[0]; got != want {
				t.Errorf("%s: %s; want %s", task, got, want)
			}
		}
		if n := redis(t, addr, "GET", "count:g"); n != "0" {
			t.Errorf("the count of g is %s", n)
		}
	})
}

// TestDriverReconnects: a connection error fails one task; the next task connects again. The driver closes its last
// connection when it ends.
func TestDriverReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, addr := listen(t)
		go func() {
			for _, says := range []string{"", "nonsense\r\n", ":1\r\n+OK\r\n:0\r\n:1\r\n$-1\r\n"} {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				in := bufio.NewReader(c)
				in.ReadString('\n')
				io.WriteString(c, says)
				if says != "" {
					io.Copy(io.Discard, in)
				}
				c.Close()
			}
			ln.Close()
		}()
		got := drive(t, addr, "run f x", "run f x", "run f x", "run f x")
		for i, want := range []string{"error connection ", "error protocol ", "ok 1", "error no-id "} {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("answer %d is %s, want %s", i, got[i], want)
			}
		}
		synctest.Wait()
		if got := drive(t, addr, "run f x"); !strings.HasPrefix(got[0], "error connection ") {
			t.Error(got)
		}
	})
}

// TestDriveEndsWithItsContext: the end of the context ends the driver. A worker exits cleanly, and a client's call is
// aborted, also if the server has stopped replying.
func TestDriveEndsWithItsContext(t *testing.T) {
	answering := func(t *testing.T) string { return serve(t) }
	silent := func(t *testing.T) string {
		ln, addr := listen(t)
		go func() {
			if c, err := ln.Accept(); err == nil {
				io.Copy(io.Discard, c)
				c.Close()
			}
		}()
		return addr
	}
	for _, tt := range []struct {
		task  string
		start func(t *testing.T) string
		count string // of workers, at the end; "": unknown
	}{{"work f echo 1", answering, "0"}, {"run f x blocking=0", answering, "nil"}, {"work f echo 1", silent, ""}} {
		synctest.Test(t, func(t *testing.T) {
			addr := tt.start(t)
			ctx, cancel := context.WithCancel(t.Context())
			tasks, in := io.Pipe()
			defer in.Close()
			ended := make(chan error, 1)
			go func() { ended <- Drive(ctx, addr, tasks, io.Discard) }()
			io.WriteString(in, tt.task+"\n")
			synctest.Wait() // the task waits for the server
			start := time.Now()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(start) > grace {
				t.Errorf("%s: Drive returns %v after %v", tt.task, err, time.Since(start))
			}
			if tt.count == "" {
				return
			}
			if n := redis(t, addr, "GET", "count:f"); n != tt.count {
				t.Errorf("%s: the count is %s", tt.task, n)
			}
		})
	}
}

// TestDriveReportsPipeErrors tests that Drive returns the error if the tasks cannot be read or the answers cannot be
// written.
func TestDriveReportsPipeErrors(t *testing.T) {
	broken := errors.New("broken")
	if err := Drive(t.Context(), "", io.MultiReader(strings.NewReader("x\n"), failing{broken}), io.Discard); !errors.Is(err, broken) {
		t.Errorf("a failing reader: %v", err)
	}
	if err := Drive(t.Context(), "", strings.NewReader("x\n"), failing{broken}); !errors.Is(err, broken) {
		t.Errorf("a failing writer: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }
