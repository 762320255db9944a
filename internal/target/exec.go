package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	defaultReady = 10 * time.Second
	defaultGrace = 3 * time.Second
	portAttempts = 5
)

// Command is a program that serves on the port it is told. It must stay in the
// foreground: one that puts itself into the background counts as dead.
type Command struct {
	Name  string        // as reports name it; empty is the command line
	Args  []string      // program and arguments; {port}, {host} and {addr} are replaced
	Env   []string      // added to this process's environment
	Ready time.Duration // how long it may take to accept a connection; 0 is 10 s
	Grace time.Duration // from SIGTERM to SIGKILL; 0 is 3 s

	freePort func() int // draws a port; tests draw ports that are taken
}

// Exec starts the program of a command line, such as
//
//	/usr/sbin/gearmand -L 127.0.0.1 -p {port} -t 1 -l none
//
// and returns once it accepts connections. Cancelling ctx ends it; [Target.Stop]
// waits for that. An error is either an [ErrCommand] or an [*Error].
func Exec(ctx context.Context, line string) (Target, error) {
	args, err := Split(line)
	if err != nil {
		return nil, err
	}
	return Command{Args: args}.Start(ctx)
}

// Start is [Exec] for a command that is split already.
func (c Command) Start(ctx context.Context) (Target, error) {
	if err := checkArgs(c.Args); err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = Join(c.Args)
	}
	if c.Ready == 0 {
		c.Ready = defaultReady
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.freePort == nil {
		c.freePort = freePort
	}
	s := &supervised{name: c.Name, grace: c.Grace}
	s.begin = func(last string) (*life, error) { return c.begin(ctx, last) }
	return s.supervise()
}

// begin starts the program and waits until it is ready. Between the choice of a
// port and the program's bind somebody else can take the port; then another is
// tried. Where that were another jobwire's server, it would answer in this one's
// name, so ports are claimed.
func (c *Command) begin(ctx context.Context, last string) (*life, error) {
	for attempt := 1; ; attempt++ {
		addr, held, err := c.port(last)
		if err != nil {
			return nil, &Error{Target: c.Name, Reason: "could not start: no free port", Err: err}
		}
		l, err := c.launch(ctx, addr, held)
		if err != nil {
			held.Close()
			return nil, &Error{Target: c.Name, Reason: "could not start", Err: err}
		}
		err = c.ready(ctx, l)
		if err == nil {
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

// port claims an address with a free port: the one that was used last, if it can be had.
func (c *Command) port(last string) (addr string, held io.Closer, err error) {
	if last != "" {
		if held, err = claimAddr(last); err == nil {
			return last, held, nil
		}
	}
	const attempts = 200
	for range attempts {
		addr = loopback(c.freePort())
		if held, err = claimAddr(addr); err == nil {
			return addr, held, nil
		}
	}
	return "", nil, fmt.Errorf("could not find a free port: %d random ports were in use: %w", attempts, err)
}

func claimAddr(addr string) (io.Closer, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	held, err := claim(port)
	if err == nil && !isFree(addr) { // after the claim, so that no other instance takes the port in between
		held.Close()
		return nil, errInUse
	}
	return held, err
}

// launch starts the program in a process group of its own. What is held for it is
// closed when it has ended.
func (c *Command) launch(ctx context.Context, addr string, held io.Closer) (*life, error) {
	args, err := Expand(c.Args, addr)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cmd.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = ownGroup()
	started, exited, drained := make(chan error), make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	forced, force := context.WithCancel(context.Background())
	l := &life{addr: addr, output: new(Tail), cancel: cancel, force: force, done: make(chan struct{})}
	go func() {
		defer force()
		// Where the program dies with the thread that started it, that thread
		// must outlive it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		l.begun = time.Now()
		w.Close()
		started <- err
		if err != nil {
			return
		}
		err = WaitGroup(cmd) // what it started ends with it
		asked := ctx.Err() != nil
		close(exited)
		cancel()
		// Somebody who left the group may still hold the pipe; do not wait for him.
		r.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		<-drained
		if !asked {
			l.err = c.ended(addr, exitText(cmd, err), l.output.String())
		}
		held.Close()
		close(l.done)
	}()
	if err := <-started; err != nil {
		cancel()
		r.Close()
		return nil, err
	}
	l.pid = cmd.Process.Pid
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
		late := time.NewTimer(c.Grace)
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

// exitText says how a program ended: "exit status 1", "signal: aborted".
func exitText(cmd *exec.Cmd, err error) string {
	if cmd.ProcessState == nil {
		return err.Error()
	}
	text := cmd.ProcessState.String()
	if n := cmd.ProcessState.ExitCode(); n > 128 && n <= 128+31 { // as a shell reports the end of its child
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
	for {
		conn, err := d.DialContext(wait, "tcp", l.addr)
		if err == nil {
			// Dialling a free port of one's own range can end in a connection to
			// oneself, which no server has accepted.
			self := conn.LocalAddr().String() == conn.RemoteAddr().String()
			conn.Close()
			if !self {
				return nil
			}
		}
		select {
		case <-l.done:
			if l.err != nil {
				return l.err
			}
			return &Error{Target: c.Name, Reason: "the run ended while the program was starting", Output: l.output.String(), Err: ctx.Err()}
		case <-wait.Done():
			if err := ctx.Err(); err != nil {
				return &Error{Target: c.Name, Reason: "the run ended while the program was starting", Output: l.output.String(), Err: err}
			}
			return &Error{Target: c.Name, Reason: fmt.Sprintf("could not start: the program did not accept a connection at %s within %v", l.addr, c.Ready), Output: l.output.String()}
		case <-retry.C:
		}
	}
}

// errInUse is why a program could not start that did not get its port.
var errInUse = errors.New("address already in use")

// saysInUse reports whether a program has printed that it did not get its port.
func saysInUse(output string) bool {
	text := strings.ToLower(output)
	return strings.Contains(text, "address already in use") || strings.Contains(text, "address in use") || strings.Contains(text, "eaddrinuse")
}

// ended returns the error of a program that ended without being asked to. Where another program has its
// port, and it says so, it has not crashed: it never served.
func (c *Command) ended(addr, exit, output string) *Error {
	if saysInUse(output) && !isFree(addr) {
		return c.lostPort(output)
	}
	return &Error{Target: c.Name, Reason: "the program exited", Exit: exit, Output: output, Died: true}
}

func (c *Command) lostPort(output string) *Error {
	return &Error{Target: c.Name, Reason: "could not start", Output: output, Err: errInUse}
}

// notStarted returns the error of a program that ended before it accepted a connection.
func (c *Command) notStarted(l *life, err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.Died {
		return err
	}
	if saysInUse(e.Output) || !isFree(l.addr) {
		return c.lostPort(e.Output)
	}
	e.Reason = "could not start: the program exited"
	return e
}

func isFree(addr string) bool {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	ln.Close()
	return true
}

// freePort draws a port below the ranges from which Linux and BSD number
// outgoing connections, so that no connection of a busy machine takes it.
// Whether it is free is tested after it is claimed: a test listens for an
// instant, and would accept a connection that another jobwire meant for the
// server that it starts there.
func freePort() int {
	const low, high = 10000, 32768
	return low + rand.IntN(high-low)
}
