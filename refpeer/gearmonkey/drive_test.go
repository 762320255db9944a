package gearmonkey

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
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

// TestTwoDriversExchangeAJob: one driver creates a job and waits for it, another one performs it.
func TestTwoDriversExchangeAJob(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	done := make(chan []string, 1)
	go func() { done <- drive(t, addr, "run reverse abc blocking=30", "get reverse 1") }()
	if got := drive(t, addr, "work reverse reverse 1"); got[0] != "ok 1" {
		t.Error(got)
	}
	if got := <-done; got[0] != "ok 1" || got[1] != "ok success cba input abc" {
		t.Error(got)
	}
}

func TestDriveReportsRedisErrors(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	c := redis(t, addr)
	c.do("SET", "uid:f", "text")
	c.do("SET", "queue:g:normal", "no list")
	c.do("SET", "count:h", "no number")
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
	if n := c.do("GET", "count:g"); n != "0" {
		t.Errorf("the count of g is %s", n)
	}
}

// TestDriverReconnects: a connection error fails one task; the next task connects again.
func TestDriverReconnects(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	}()
	got := drive(t, ln.Addr().String(), "run f x", "run f x", "run f x", "run f x")
	ln.Close()
	for i, want := range []string{"error connection ", "error connection ", "ok 1", "error no-id "} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("answer %d is %s, want %s", i, got[i], want)
		}
	}
	if got := drive(t, ln.Addr().String(), "run f x"); !strings.HasPrefix(got[0], "error connection ") {
		t.Error(got)
	}
}

// TestDriveEndsWithItsContext: the end of the context ends the driver. A worker exits cleanly, and a client's call is
// aborted.
func TestDriveEndsWithItsContext(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	c := redis(t, addr)
	for _, task := range []string{"work f echo 1", "run f x blocking=0"} {
		ctx, cancel := context.WithCancel(t.Context())
		tasks, in := io.Pipe()
		ended := make(chan error, 1)
		var out bytes.Buffer
		go func() { ended <- Drive(ctx, addr, tasks, &out) }()
		io.WriteString(in, task+"\n")
		waitUntil(t, "the task is under way", func() bool {
			return strings.Contains(c.do("CLIENT", "LIST"), "cmd=brpop")
		})
		start := time.Now()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(start) > 3*time.Second {
			t.Errorf("%s: Drive returns %v after %v", task, err, time.Since(start))
		}
		if n := c.do("GET", "count:f"); n != "0" {
			t.Errorf("%s: the count is %s", task, n)
		}
		in.Close()
	}
}

// TestDriveEndsAtASilentServer: the end of the context ends the driver although the server has stopped replying.
func TestDriveEndsAtASilentServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		in.ReadString('\n')
		cancel()
		io.Copy(io.Discard, in)
	}()
	if err := Drive(ctx, ln.Addr().String(), strings.NewReader("work f echo 1\n"), io.Discard); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestDriverClosesItsConnections: the driver closes its connections.
func TestDriverClosesItsConnections(t *testing.T) {
	addr := peers.Start(t, "redis-server").Addr()
	c := redis(t, addr)
	drive(t, addr, "run f x", "work f echo 1", "get f 1")
	waitUntil(t, "the operator is alone", func() bool { return strings.Count(c.do("CLIENT", "LIST"), " laddr=") == 1 })
}

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
