//go:build unix

package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"jobwire/internal/transport"
)

// GroupCommand returns a command for a program that connects to addr. The program leads a process group, which is
// terminated when ctx ends. WaitGroup waits for it.
func GroupCommand(ctx context.Context, words []string, addr string) (*exec.Cmd, error) {
	args, err := Expand(words, addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// begin starts the program and waits until it is ready. If another program takes the port before the program binds it,
// begin tries another port. If the other program were the server of another jobwire, its replies would be mistaken for
// those of this server, so each jobwire claims its ports.
func (c *Command) begin(ctx context.Context, last string) (*life, error) {
	for attempt := 1; ; attempt++ {
		addr, claimed, err := c.port(last)
		if err != nil {
			return nil, &Error{Target: c.Name, Reason: "could not start: no free address", Err: err}
		}
		l, err := c.launch(ctx, addr, claimed)
		if err != nil {
			claimed.Close()
			return nil, &Error{Target: c.Name, Reason: "could not start", Err: err}
		}
		err = c.ready(ctx, l)
		if err == nil {
			if l.memory != nil {
				l.memory.ready.Store(true)
			}
			return l, nil
		}
		l.cancel()
		<-l.done
		if err = c.notStarted(l, err); attempt == portAttempts || !errors.Is(err, errInUse) {
			return nil, err
		}
		last = ""
	}
}

// port claims the address of a Unix socket or one with a free port. It prefers the last address.
func (c *Command) port(last string) (addr string, claimed io.Closer, err error) {
	if contains(c.Args, "{socket}") {
		return newSocket(last)
	}
	if last != "" {
		if claimed, err = claimAddr(last); err == nil {
			return last, claimed, nil
		}
	}
	const attempts = 200
	for range attempts {
		addr = loopback(c.freePort())
		if claimed, err = claimAddr(addr); err == nil {
			return addr, claimed, nil
		}
	}
	return "", nil, fmt.Errorf("could not find a free port: %d random ports were in use: %w", attempts, err)
}

// newSocket makes a folder for a Unix socket. Its closer removes the folder.
func newSocket(last string) (addr string, dir io.Closer, err error) {
	if path, ok := transport.Path(last); ok {
		folder := filepath.Dir(path)
		if err := os.Mkdir(folder, 0o700); err == nil {
			return last, socketDir(folder), nil
		}
	}
	folder, err := os.MkdirTemp("", "jobwire-")
	if err != nil {
		return "", nil, err
	}
	return transport.Unix(filepath.Join(folder, "socket")), socketDir(folder), nil
}

// socketDir is a folder that Close removes.
type socketDir string

func (d socketDir) Close() error { return os.RemoveAll(string(d)) }

// claimAddr reserves the port of an address among the jobwire processes on the machine until the closer is closed. It
// returns errInUse if a program listens on the address.
func claimAddr(addr string) (io.Closer, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	claimed, err := claim(port)
	if err == nil && !isFree(addr) { // checked after the claim, so that no other jobwire takes the port in between
		claimed.Close()
		return nil, errInUse
	}
	return claimed, err
}

// launch starts the program in its own process group. When the program has exited, launch closes the claim of the port.
func (c *Command) launch(ctx context.Context, addr string, claimed io.Closer) (*life, error) {
	args, err := Expand(c.Args, addr)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd, isLimited := limited(ctx, exec.Command(args[0], args[1:]...))
	cmd.Env = append(cmd.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = ownGroup()
	started, exited, drained := make(chan error), make(chan struct{}), make(chan struct{})
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	forced, force := context.WithCancel(context.Background())
	l := &life{addr: addr, output: new(Tail), cancel: cancel, force: force, done: make(chan struct{})}
	if c.Memory > 0 {
		l.memory = new(guard)
	}
	go func() {
		defer force()
		// On Linux, the program is killed when the thread that started it ends, so this thread must not end before the
		// program.
		runtime.LockOSThread()
		if isLimited {
			keepLimits() // changes the thread, which therefore stays locked and ends with this goroutine
		} else {
			defer runtime.UnlockOSThread()
		}
		err := cmd.Start()
		l.begun = time.Now()
		w.Close()
		started <- err
		if err != nil {
			return
		}
		err = WaitGroup(cmd) // also ends the processes that the program started
		asked := ctx.Err() != nil
		close(exited)
		cancel()
		// A process that left the group may still have the pipe open; do not wait for it.
		r.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		<-drained
		if !asked {
			e := c.ended(addr, exitText(cmd, err), l.output.String())
			if l.memory != nil && l.memory.excess.Load() {
				e.Err = fmt.Errorf("it needed more than %d MiB of memory, so jobwire killed it", c.Memory>>20)
			}
			l.err = e
		}
		claimed.Close()
		close(l.done)
	}()
	if err := <-started; err != nil {
		cancel()
		r.Close()
		return nil, err
	}
	l.pid = cmd.Process.Pid
	if l.memory != nil {
		go l.memory.watch(l.pid, c.Memory, exited)
	}
	go func() {
		io.Copy(l.output, r)
		r.Close()
		close(drained)
	}()
	go func() {
		select {
		case <-exited:
			return
		case <-ctx.Done():
		}
		if forced.Err() == nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		}
		grace := c.Grace
		if parent.Err() != nil {
			grace = min(grace, hastyGrace)
		}
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-exited:
			return
		case <-late.C:
		case <-forced.Done():
		}
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}()
	return l, nil
}

// watch measures the resident memory of a program until it exits, and kills the program when it needs more than limit
// bytes.
func (g *guard) watch(pid int, limit int64, exited <-chan struct{}) {
	every := time.NewTicker(guardInterval)
	defer every.Stop()
	var last [growthTime / guardInterval]int64 // the last measurements, as a ring
	for n := 0; ; n = (n + 1) % len(last) {
		select {
		case <-exited:
			return
		case <-every.C:
		}
		size := resident(pid)
		if last[n] == 0 || !g.ready.Load() {
			for i := range last {
				last[i] = size
			}
		}
		switch grown := size - last[n]; {
		case grown > limit/growthShare:
			g.growing.Store(true)
		case grown <= limit/growthShare/8:
			g.growing.Store(false)
		}
		last[n] = size
		if size > limit {
			g.excess.Store(true)
			syscall.Kill(-pid, syscall.SIGKILL)
			return
		}
	}
}

// exitText describes how a program ended: "exit status 1", "signal: aborted".
func exitText(cmd *exec.Cmd, err error) string {
	if cmd.ProcessState == nil {
		return err.Error()
	}
	text := cmd.ProcessState.String()
	if n := cmd.ProcessState.ExitCode(); n > 128 && n <= 128+31 { // a shell reports a signal of its child in this way
		text += fmt.Sprintf(", signal: %v", syscall.Signal(n-128))
	}
	return text
}

// ready waits until the program accepts a connection.
func (c *Command) ready(ctx context.Context, l *life) error {
	wait, cancel := context.WithTimeout(ctx, c.Ready)
	defer cancel()
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	var d net.Dialer
	network, address := transport.Split(l.addr)
	for {
		conn, err := d.DialContext(wait, network, address)
		if err == nil {
			// Dialing a free port in the range of outgoing connections can connect a socket to itself, without a server.
			self := network == "tcp" && conn.LocalAddr().String() == conn.RemoteAddr().String()
			if !self {
				transport.Leave(conn) // otherwise statistics could still count it when the first test case begins
				return nil
			}
			conn.Close()
		}
		select {
		case <-l.done:
			if l.err != nil {
				return l.err
			}
			return &Error{Target: c.Name, Reason: "the run ended while the program was starting", Output: l.output.String(),
				Err: ctx.Err()}
		case <-wait.Done():
			if err := ctx.Err(); err != nil {
				return &Error{Target: c.Name, Reason: "the run ended while the program was starting", Output: l.output.String(),
					Err: err}
			}
			return &Error{Target: c.Name, Reason: fmt.Sprintf("could not start: the program did not accept a connection at %s within %v", l.addr, c.Ready), Output: l.output.String()}
		case <-retry.C:
		}
	}
}

// errInUse is the error of a program that could not start because its port was in use.
var errInUse = errors.New("address already in use")

// saysInUse reports whether a program has printed that its port was in use.
func saysInUse(output string) bool {
	text := strings.ToLower(output)
	return strings.Contains(text, "address already in use") || strings.Contains(text, "address in use") ||
		strings.Contains(text, "eaddrinuse")
}

// ended returns the error of a program that exited unexpectedly. If the program has printed that its port was in use,
// and another program has the port, it has not crashed: it never served.
func (c *Command) ended(addr, exit, output string) *Error {
	if saysInUse(output) && !isFree(addr) {
		return c.lostPort(output)
	}
	return &Error{Target: c.Name, Reason: "the program exited", Exit: exit, Output: output, Died: true}
}

func (c *Command) lostPort(output string) *Error {
	return &Error{Target: c.Name, Reason: "could not start", Output: output, Err: errInUse}
}

// notStarted returns the error of a program that exited before it accepted a connection.
func (c *Command) notStarted(l *life, err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.Died {
		return err
	}
	switch free := isFree(l.addr); {
	case saysInUse(e.Output) || !free && e.Exit != "exit status 0":
		return c.lostPort(e.Output)
	case e.Exit != "exit status 0":
		e.Reason = "could not start: the program exited"
	default: // it may have become a daemon
		if e.Reason = "could not start: the program must stay in the foreground, but it exited"; !free {
			e.Err = fmt.Errorf("another process, which it may have started, listens at %s", l.addr)
		}
	}
	return e
}

// isFree reports whether a program could listen on addr. The folder of a Unix socket belongs to one server, so no other
// program listens there.
func isFree(addr string) bool {
	if _, ok := transport.Path(addr); ok {
		return true
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	ln.Close()
	return true
}
