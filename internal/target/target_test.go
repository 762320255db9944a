//go:build unix

package target

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestMain runs a helper program if the first argument is "helper". The targets in the tests are this test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helpers[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var helpers = map[string]func(args []string){
	"serve": serve,
	// die PORT: exits immediately.
	"die": func([]string) {
		fmt.Println("cannot open the database")
		os.Exit(3)
	},
	// in-use PORT: exits and prints that the port is in use.
	"in-use": func([]string) {
		fmt.Println("bind(): Address already in use")
		os.Exit(1)
	},
	// mute PORT REPORT: never listens on PORT. It holds a connection to the address REPORT, so that the test notices its end.
	"mute": func(args []string) { linger(args[1]) },
	// parent ADDR REPORT: a server with a child process.
	"parent": func(args []string) {
		child := exec.Command(os.Args[0], "helper", "child", args[1])
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		serve(args[:1])
	},
	"child": func(args []string) { linger(args[0]) },
	// starter REPORT: starts a target of its own, and is killed.
	"starter": func(args []string) {
		if _, err := (Command{Args: helper("orphan", "{addr}", args[0])}).Start(context.Background()); err != nil {
			panic(err)
		}
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	},
	// orphan ADDR REPORT: a server that connects to REPORT before it serves, and keeps the connection.
	"orphan": func(args []string) {
		go io.Copy(io.Discard, connect(args[1]))
		serve(args[:1])
	},
}

// serve ADDR [ignore-term] executes the commands that it receives on connections.
func serve(args []string) {
	if slices.Contains(args, "ignore-term") {
		signal.Ignore(syscall.SIGTERM)
	}
	ln, err := net.Listen("tcp", args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("serving")
	for {
		c, err := ln.Accept()
		if err != nil {
			os.Exit(1)
		}
		go obey(c)
	}
}

// linger connects to addr and waits until it is killed. The listener at addr sees the end of the connection when the
// process ends.
func linger(addr string) {
	io.Copy(io.Discard, connect(addr))
}

func connect(addr string) net.Conn {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		panic(err)
	}
	return c
}

func obey(c net.Conn) {
	switch line, _ := bufio.NewReader(c).ReadString('\n'); line {
	case "exit\n":
		fmt.Println("as you wish")
		os.Exit(7)
	case "kill\n":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "ping\n":
		fmt.Fprintln(c, "pong")
	case "allocate\n":
		kept = bytes.Repeat([]byte{1}, 256<<20)
		fmt.Fprintln(c, "allocated")
	case "grow\n":
		fmt.Fprintln(c, "growing")
		c.Close()
		for range time.Tick(20 * time.Millisecond) {
			if grown = append(grown, bytes.Repeat([]byte{1}, 1<<20)); len(grown) == 100 {
				break
			}
		}
	}
	c.Close()
}

// The memory that a helper has allocated.
var (
	kept  []byte
	grown [][]byte
)

func helper(args ...string) []string { return append([]string{os.Args[0], "helper"}, args...) }

func start(t *testing.T, c Command) Target {
	t.Helper()
	s, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func say(t *testing.T, s Target, line string) string {
	t.Helper()
	c, err := Dial(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintln(c, line)
	answer, _ := bufio.NewReader(c).ReadString('\n')
	return answer
}

func waitDone(t *testing.T, s Target) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the end was not noticed")
	}
}

// reporter listens for the connection of linger.
func reporter(t *testing.T) (addr string, born func() (died func())) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String(), func() func() {
		t.Helper()
		ln.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second))
		c, err := ln.Accept()
		if err != nil {
			t.Fatal("the process was never seen:", err)
		}
		return func() {
			t.Helper()
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the process lives on")
			}
		}
	}
}

// TestExecServesUntilStopped tests that a server that is started by a command serves until Stop, that Stop does not
// count as a crash, and that a second Stop does nothing.
func TestExecServesUntilStopped(t *testing.T) {
	s, err := Exec(t.Context(), Join(helper("serve", "{addr}")))
	if err != nil {
		t.Fatal(err)
	}
	if got := say(t, s, "ping"); got != "pong\n" {
		t.Errorf("answer %q", got)
	}
	if err := Alive(t.Context(), s); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("after being asked to stop: %v", err)
	}
	if err := Alive(t.Context(), s); !errors.Is(err, ErrUnreachable) {
		t.Errorf("after Stop: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

// TestExitIsNoticed tests that a server that exits or is killed is reported as crashed with its exit status, and with
// the last lines of its output.
func TestExitIsNoticed(t *testing.T) {
	for order, exit := range map[string]string{"exit": "exit status 7", "kill": "signal: killed"} {
		t.Run(order, func(t *testing.T) {
			s := start(t, Command{Name: "victim", Args: helper("serve", "{addr}")})
			if s.Err() != nil {
				t.Fatalf("dead already: %v", s.Err())
			}
			say(t, s, order)
			waitDone(t, s)
			var e *Error
			if err := s.Err(); !errors.As(err, &e) || !errors.Is(err, ErrDied) || !errors.Is(err, ErrUnreachable) || e.Exit != exit {
				t.Fatalf("got %#v, want a death with %q", err, exit)
			}
			if order == "exit" && !strings.HasSuffix(e.Error(), "as you wish") {
				t.Errorf("the last words are missing: %v", e)
			}
			if err := Alive(t.Context(), s); !errors.Is(err, ErrDied) {
				t.Errorf("Alive: %v", err)
			}
		})
	}
}

// TestDialDistinguishesCrashFromSilence tests that a failed connection to a started program that has ended is reported
// as a crash, and to an address as unreachable.
func TestDialDistinguishesCrashFromSilence(t *testing.T) {
	s := start(t, Command{Args: helper("serve", "{addr}")})
	say(t, s, "exit")
	if err := Died(s); !errors.Is(err, ErrDied) {
		t.Errorf("the program died: %v", err)
	}
	if _, err := Dial(t.Context(), s); !errors.Is(err, ErrDied) {
		t.Errorf("the program died: %v", err)
	}
	a, err := Address("memory:absent")
	if err != nil {
		t.Fatal(err)
	}
	if err := Died(a); err != nil {
		t.Errorf("nobody can tell: %v", err)
	}
	if _, err := Dial(t.Context(), a); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrDied) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestFailureToStart tests that each way in which a server may not start, such as an exit, a missing program or a
// canceled start, is an error that says what happened.
func TestFailureToStart(t *testing.T) {
	t.Run("dies", func(t *testing.T) {
		_, err := Command{Args: helper("die", "{port}")}.Start(t.Context())
		if !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "cannot open the database") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("becomes a daemon", func(t *testing.T) {
		_, err := Command{Args: []string{"sh", "-c", "exit 0", "{port}"}}.Start(t.Context())
		const want = "could not start: the program must stay in the foreground, but it exited: exit status 0"
		if !errors.Is(err, ErrDied) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	})
	t.Run("never listens", func(t *testing.T) {
		addr, born := reporter(t)
		_, err := Command{Args: helper("mute", "{port}", addr), Ready: 300 * time.Millisecond}.Start(t.Context())
		if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrDied) {
			t.Errorf("got %v", err)
		}
		born()()
	})
	t.Run("does not exist", func(t *testing.T) {
		_, err := Command{Args: []string{t.TempDir() + "/nothing", "{port}"}}.Start(t.Context())
		if !errors.Is(err, ErrUnreachable) || errors.Is(err, errCommand) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		addr, born := reporter(t)
		dead := make(chan func(), 1)
		go func() {
			defer cancel()
			dead <- born()
		}()
		_, err := Command{Args: helper("mute", "{port}", addr)}.Start(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v", err)
		}
		(<-dead)()
	})
	t.Run("no port", func(t *testing.T) {
		if _, err := Exec(t.Context(), "gearmand -p 4730"); !errors.Is(err, errCommand) || !strings.Contains(err.Error(), "{port}") {
			t.Errorf("got %v", err)
		}
		if _, err := (Command{}).Start(t.Context()); !errors.Is(err, errCommand) {
			t.Errorf("got %v", err)
		}
	})
}

// TestProgramThatIgnoresTerminationIsKilled tests that Stop kills a program that ignores the request to terminate after
// the grace period.
func TestProgramThatIgnoresTerminationIsKilled(t *testing.T) {
	s := start(t, Command{Args: helper("serve", "{addr}", "ignore-term"), Grace: 50 * time.Millisecond})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := Alive(t.Context(), s); err == nil {
		t.Error("it still serves")
	}
}

// TestChildrenDieWithTheProgram tests that the child processes of a server end with it, whether it is stopped, exits or
// is canceled.
func TestChildrenDieWithTheProgram(t *testing.T) {
	for _, how := range []string{"Stop", "exit", "cancel"} {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			addr, born := reporter(t)
			s, err := Command{Args: helper("parent", "{addr}", addr)}.Start(ctx)
			if err != nil {
				t.Fatal(err)
			}
			died := born()
			switch how {
			case "Stop":
				s.Stop()
			case "exit":
				say(t, s, "exit")
			case "cancel":
				cancel()
			}
			died()
			waitDone(t, s)
			s.Stop()
		})
	}
}

// TestProgramDiesWithItsStarter tests that a server ends when the process that started it ends (only on Linux).
func TestProgramDiesWithItsStarter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a program with the one that started it")
	}
	addr, born := reporter(t)
	args := helper("starter", addr)
	starter := exec.Command(args[0], args[1:]...)
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	born()()
	starter.Wait()
}

// TestLostPortIsReplaced tests that a server is started on another port if another process has taken the free port in
// the meantime.
func TestLostPortIsReplaced(t *testing.T) {
	// A port that is bound, but does not accept connections.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	taken := sa.(*syscall.SockaddrInet4).Port
	draws := 0
	s := start(t, Command{Args: helper("serve", "{addr}"), freePort: func() int {
		if draws++; draws == 1 {
			return taken
		}
		return freePort()
	}})
	if draws != 2 {
		t.Errorf("%d ports were drawn", draws)
	}
	if got := say(t, s, "ping"); got != "pong\n" {
		t.Errorf("answer %q", got)
	}
}

// TestNoFreePort: a program that never gets its port is not reported as crashed.
func TestNoFreePort(t *testing.T) {
	draws := 0
	_, err := Command{Args: helper("in-use", "{port}"), freePort: func() int { draws++; return freePort() }}.Start(t.Context())
	if err == nil || errors.Is(err, ErrDied) || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "could not start: address already in use") {
		t.Errorf("got %v", err)
	}
	if draws != portAttempts {
		t.Errorf("%d ports were tried, want %d", draws, portAttempts)
	}
}

// TestPortTakenByAnother: a program that exits because another one has its port is not reported as crashed. It is if the
// port was its own.
func TestPortTakenByAnother(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := other.Addr().String()
	c := Command{Name: "server"}
	if err := c.ended(addr, "exit status 1", "bind: Address already in use"); errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "server: could not start: address already in use") {
		t.Errorf("another has the port: %v", err)
	}
	if err := c.ended(addr, "signal: aborted", "out of memory"); !errors.Is(err, ErrDied) {
		t.Errorf("it ends of something else: %v", err)
	}
}

// TestPortsOfInstances starts servers concurrently. All must have different ports.
func TestPortsOfInstances(t *testing.T) {
	ports := make(chan int, 100) // few, to provoke collisions
	few := make([]int, 4)
	for i := range few {
		few[i] = freePort()
	}
	for i := range cap(ports) {
		ports <- few[i%len(few)]
	}
	var mu sync.Mutex
	addrs := map[string]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := Command{Args: helper("serve", "{addr}"), freePort: func() int {
				select {
				case p := <-ports:
					return p
				default:
					return freePort()
				}
			}}.Start(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { s.Stop() })
			mu.Lock()
			defer mu.Unlock()
			if addrs[s.Addr()] {
				t.Errorf("two servers have %s", s.Addr())
			}
			addrs[s.Addr()] = true
		})
	}
	wg.Wait()
}

// TestPortClaimed: two programs that start servers concurrently do not use the same port; otherwise one would connect to
// the server of the other.
func TestPortClaimed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ports are claimed on Linux")
	}
	taken := freePort()
	other, err := claim(strconv.Itoa(taken))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	draws := 0
	s := start(t, Command{Args: helper("serve", "{addr}"), freePort: func() int {
		if draws++; draws == 1 {
			return taken
		}
		return freePort()
	}})
	if draws != 2 || s.Addr() == loopback(taken) {
		t.Errorf("%d ports were drawn, %s taken", draws, s.Addr())
	}
	s.Stop()
	again, err := claimAddr(s.Addr())
	if err != nil {
		t.Errorf("claimed though the server has ended: %v", err)
	} else {
		again.Close()
	}
}

// TestRestart tests that Restart starts a running or crashed server again at the same address, without the output of
// the earlier process.
func TestRestart(t *testing.T) {
	for _, state := range []string{"alive", "dead"} {
		t.Run(state, func(t *testing.T) {
			s := start(t, Command{Args: helper("serve", "{addr}")})
			first, addr := s.Done(), s.Addr()
			if state == "dead" {
				say(t, s, "exit")
				waitDone(t, s)
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-first:
			default:
				t.Error("the first life goes on")
			}
			if s.Err() != nil || say(t, s, "ping") != "pong\n" {
				t.Errorf("the second life does not serve: %v", s.Err())
			}
			if s.Addr() != addr {
				t.Errorf("the address changed from %s to %s for no reason", addr, s.Addr())
			}
			if strings.Contains(s.Output(), "as you wish") {
				t.Error("the output of the first life is shown as the second's")
			}
		})
	}
}

// TestInMemory tests that a server in memory can be started, can fail, can be restarted and can be stopped like a
// process.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan error)
		embedded := func(ctx context.Context, ln net.Listener) error {
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go obey(c)
				}
			}()
			select {
			case err := <-fail:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s, err := InMemory(t.Context(), "embedded", embedded)
		if err != nil {
			t.Fatal(err)
		}
		if got := say(t, s, "ping"); got != "pong\n" {
			t.Errorf("answer %q", got)
		}
		broken := errors.New("broken")
		fail <- broken
		waitDone(t, s)
		if err := s.Err(); !errors.Is(err, ErrDied) || !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if got := say(t, s, "ping"); got != "pong\n" {
			t.Errorf("answer %q after the restart", got)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if s.Err() != nil || Alive(t.Context(), s) == nil {
			t.Errorf("after Stop: %v", s.Err())
		}
	})
}

// TestServerThatDoesNotEnd tests that Stop returns an error, and does not wait forever, if a server in memory does not
// return.
func TestServerThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, err := InMemory(t.Context(), "deaf", func(context.Context, net.Listener) error { <-release; return nil })
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.Stop(); !errors.Is(err, ErrUnreachable) || time.Since(began) != defaultGrace+time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		close(release)
		waitDone(t, s)
	})
}

// TestAddress tests that a target at an address checks the form of the address, cannot be restarted, and that Stop does
// nothing.
func TestAddress(t *testing.T) {
	for _, bad := range []string{"", "host", "host:", "1:2:3"} {
		if _, err := Address(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	a, err := Address("example.test:4730")
	if err != nil || a.Addr() != "example.test:4730" {
		t.Fatalf("got %v, %v", a, err)
	}
	if err := a.Restart(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Restart: %v", err)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
}

// TestCrashReport: the head of a crash report is kept, and omitted output is marked.
func TestCrashReport(t *testing.T) {
	var stacks strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&stacks, "goroutine %d [select]:\nmain.serve()\n\t/src/main.go:%d\n", i, i)
	}
	frames := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "    #%d 0x55 in frame%d /src/server.c:%d\n", i, i, i)
		}
		return b.String()
	}
	tests := []struct {
		name, output string
		want         []string
	}{
		{"panic", "serving\npanic: index out of range [3]\n\ngoroutine 7 [running]:\nmain.handle(0x1)\n\t/src/main.go:12\n" + stacks.String(),
			[]string{"crash report:\n  panic: index out of range [3]\n  goroutine 7 [running]:\n  main.handle(0x1)\n", "lines left out]"}},
		{"fatal error", "fatal error: concurrent map writes\n\n" + stacks.String(), []string{"crash report:\n  fatal error: concurrent map writes\n  goroutine 0"}},
		{"sanitizer", "==42==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\nREAD of size 4\n" + frames(500) + "SUMMARY: AddressSanitizer: heap-use-after-free server.c:1 in frame0\n==42==ABORTING\n",
			[]string{"crash report:\n  ==42==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n  READ of size 4\n      #0 0x55 in frame0", "lines left out]\n  SUMMARY: AddressSanitizer: heap-use-after-free server.c:1 in frame0"}},
		{"assertion", strings.Repeat("debug: job\n", 20_000) + "server: job.c:88: job_free: Assertion `j->refs == 0' failed.\n",
			[]string{"crash report:\n  server: job.c:88: job_free: Assertion `j->refs == 0' failed."}},
		{"stack trace", "ready\n\nBegin stack trace, frames found: 2\n?0  0x1 in /usr/sbin/gearmand(+0x1) " +
			"[0x1]\n?1  0x2 in /usr/sbin/gearmand(+0x2) [0x2]\n",
			[]string{"crash report:\n  ?0  0x1 in /usr/sbin/gearmand"}},
		{"a word of the start", "backtrace: on, assertions: abort\none\ntwo\nthree\nfour\nfive\nsix\n",
			[]string{"last output:\n  two\n  three\n  four\n  five\n  six"}},
		{"abort", "free(): double free detected in tcache 2\n", []string{"crash report:\n  free(): double free detected in tcache 2"}},
		{"an old one", "panic: the first\n" + strings.Repeat("served\n", 20_000) + "panic: the last\n\ngoroutine 1 [running]:\n", []string{"crash report:\n  panic: the last\n"}},
		{"long line", "panic: " + strings.Repeat("x", 5000), []string{"panic: xxx", "bytes left out]"}},
		{"none", "one\ntwo\nthree\nfour\nfive\nsix\n", []string{"last output:\n  two\n  three\n  four\n  five\n  six"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l Tail
			for rest := tt.output; rest != ""; {
				n := min(len(rest), 1000)
				l.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			got := (&Error{Target: "server", Reason: "the program exited", Exit: "signal: aborted", Output: l.String(), Died: true}).Error()
			for _, want := range append(tt.want, "server: the program exited: signal: aborted; ") {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in:\n%s", want, got)
				}
			}
			if len(got) > 8<<10 {
				t.Errorf("%d bytes long", len(got))
			}
		})
	}
}

// TestOutputIsBounded tests that only the last bytes of a server's output are kept, whatever the sizes of its writes.
func TestOutputIsBounded(t *testing.T) {
	var l Tail
	var all strings.Builder
	for i := range 5000 {
		line := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i%97))
		all.WriteString(line)
		l.Write([]byte(line))
	}
	want := all.String()[all.Len()-tailSize:]
	if got := l.String(); got != want {
		t.Errorf("%d bytes kept, want the last %d", len(got), len(want))
	}
	huge := strings.Repeat("y", tailSize) + strings.Repeat("z", tailSize)
	if n, err := l.Write([]byte(huge)); n != len(huge) || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if got := l.String(); got != huge[tailSize:] {
		t.Errorf("%d bytes kept of a huge write", len(got))
	}
	if cap(l.buf) > 4*tailSize {
		t.Errorf("%d bytes are held", cap(l.buf))
	}
}

// TestDescriptorLimit tests that a program starts with the limit of file descriptors in the context, also after a
// restart, and that it cannot raise the limit, even if it belongs to root.
func TestDescriptorLimit(t *testing.T) {
	ctx := LimitDescriptors(t.Context(), 40)
	s, err := Command{Args: []string{"sh", "-c", `ulimit -n; ulimit -n 50; exec "$0" helper serve {addr}`, helper()[0]}}.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if got := say(t, s, "ping"); got != "pong\n" {
		t.Errorf("got %q", got)
	}
	if got := s.Output(); !strings.HasPrefix(got, "40\n") || runtime.GOOS == "linux" && !strings.Contains(got, "ermitted") {
		t.Errorf("the program printed %q", got)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := s.Output(); !strings.HasPrefix(got, "40\n") {
		t.Errorf("after a restart, the program printed %q", got)
	}
}
