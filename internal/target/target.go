// Package target contains servers that are tested, measured or fuzzed: a server that already runs ([Address]), a
// program that is started here ([Exec], [Command]) or a server inside this process ([Func]). The last two are
// monitored and can be restarted, and all their processes end with them.
package target

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/internal/transport"
)

// Target is a server under test. Its methods may be called at any time, from any goroutine.
type Target interface {
	String() string        // the name in reports
	Addr() string          // as of package transport; a restart may change it
	Done() <-chan struct{} // closed when the server has exited, until a restart; nil if this cannot be observed
	Err() error            // reason why the server exited, an [*Error]; nil while the server runs, and after Stop
	Output() string        // the end of its output, at most 64 KiB

	// Restart stops the server if it still runs, and starts it again. An address cannot be restarted: the error is
	// errors.ErrUnsupported.
	Restart() error

	// Stop stops the server, with SIGKILL if necessary, and returns when all its processes have ended. Further calls do
	// nothing.
	Stop() error
}

var (
	// ErrUnreachable is matched by every [*Error]: the target did not start, did not reply, or crashed. Commands exit
	// with status 3 in this case.
	ErrUnreachable = errors.New("the target could not be reached")
	// ErrDied is matched by the errors of a target that exited unexpectedly.
	ErrDied = errors.New("the target crashed")
)

// Error is the error of a target that cannot be used any more, with its last output.
type Error struct {
	Target string
	Reason string
	Exit   string // "exit status 1", "signal: aborted"; empty unless a program exited
	Output string // as of Target.Output
	Died   bool   // it exited unexpectedly
	Err    error  // the cause, if there is one
}

// Error returns the target, the reason, how the process exited, and the part of its output that most likely explains
// the failure.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Target, e.Reason)
	if e.Exit != "" {
		fmt.Fprintf(&b, ": %s", e.Exit)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if title, lines := Excerpt(e.Output); lines != "" {
		fmt.Fprintf(&b, "; %s:\n%s", title, lines)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is matches ErrUnreachable and ErrDied.
func (e *Error) Is(err error) bool {
	return err == ErrUnreachable || err == ErrDied && e.Died
}

// Use makes [Dial] connect to a target of this package with d. It must be called before the first Dial.
func Use(t Target, d *transport.Dialer) {
	switch t := t.(type) {
	case *address:
		t.dialer = d
	case *supervised:
		t.dialer = d
	}
}

// Dialer returns the dialer of [Use], or nil.
func Dialer(t Target) *transport.Dialer {
	switch t := t.(type) {
	case *address:
		return t.dialer
	case *supervised:
		return t.dialer
	}
	return nil
}

// Dial connects to the target. The error is an [*Error], which distinguishes a server that has crashed from one that
// does not accept connections.
func Dial(ctx context.Context, t Target) (net.Conn, error) {
	c, err := Dialer(t).Dial(ctx, t.Addr())
	if err == nil {
		return c, nil
	}
	if dead := Died(t); dead != nil {
		return nil, dead
	}
	return nil, &Error{Target: t.String(), Reason: "cannot connect", Output: t.Output(), Err: err}
}

// Died is called after a connection error. It returns the error of a target that has crashed, or nil. A crash breaks
// connections slightly before the exit can be observed, so Died waits for the exit for up to 200 ms, and longer while
// the memory of a program with a memory limit grows.
func Died(t Target) error {
	if t.Done() == nil {
		return nil
	}
	late := time.NewTimer(diedWait)
	defer late.Stop()
	for {
		select {
		case <-t.Done():
			return t.Err()
		case <-late.C:
		}
		if !Growing(t) {
			return nil
		}
		late.Reset(diedWait)
	}
}

// diedWait is the time within which Died observes the exit of a program.
const diedWait = 200 * time.Millisecond

// guard watches the memory of a program.
type guard struct {
	ready   atomic.Bool // the program has accepted a connection, so that its memory need not grow any more
	growing atomic.Bool // the memory has grown fast in growthTime, and has not stopped growing since
	excess  atomic.Bool // the program was killed, because it exceeded the limit
}

const (
	guardInterval = 50 * time.Millisecond // time between two measurements
	growthTime    = 200 * time.Millisecond
	// memory grows fast if it grows by more than its limit divided by growthShare, and stops at 1/8 of that
	growthShare = 256
)

// Growing reports whether the memory of a program that has a memory limit grows fast. A program that goes on will be
// killed.
func Growing(t Target) bool {
	s, ok := t.(*supervised)
	if !ok {
		return false
	}
	g := s.life().memory
	return g != nil && g.growing.Load()
}

// Alive returns nil if the target runs and accepts a connection, or an [*Error].
func Alive(ctx context.Context, t Target) error {
	select {
	case <-t.Done():
		if err := t.Err(); err != nil {
			return err
		}
	default:
	}
	c, err := Dial(ctx, t)
	if err != nil {
		return err
	}
	transport.Leave(c)
	return nil
}

// Address returns a server that already runs at an address of package transport. It does not connect: an unreachable
// server is noticed by the first [Dial].
func Address(addr string) (Target, error) {
	if err := transport.Check(addr); err != nil {
		return nil, err
	}
	return &address{addr: addr}, nil
}

type address struct {
	addr   string
	dialer *transport.Dialer
}

func (a *address) String() string      { return a.addr }
func (a *address) Addr() string        { return a.addr }
func (*address) Done() <-chan struct{} { return nil }
func (*address) Err() error            { return nil }
func (*address) Output() string        { return "" }
func (*address) Stop() error           { return nil }

func (a *address) Restart() error {
	return &Error{Target: a.addr, Reason: "jobwire cannot restart a server that it did not start",
		Err: errors.ErrUnsupported}
}

// life is one server process, or one run of a server function.
type life struct {
	addr   string
	output *Tail
	cancel context.CancelFunc // stops the server
	force  context.CancelFunc // makes cancel kill the server without waiting for its exit; nil: not possible
	pid    int                // of the program; 0: none
	begun  time.Time          // when the process started
	done   chan struct{}      // closed when the server has ended
	err    error              // why it ended; valid after done is closed
	memory *guard             // nil: not watched
}

// supervised is a target that begin starts. A server runs until it exits by itself, it is canceled, or the initial
// context ends.
type supervised struct {
	name   string
	grace  time.Duration // how long the server may take to end after it was stopped
	begin  func(last string) (*life, error)
	dialer *transport.Dialer

	mu      sync.Mutex // locked while starting and stopping
	current *life      // not nil after supervise has succeeded
	view    sync.Mutex // guards only current, so that reading it does not wait for a start
}

// supervise starts the server for the first time.
func (s *supervised) supervise() (Target, error) {
	first, err := s.begin("")
	if err != nil {
		return nil, err
	}
	s.current = first
	return s, nil
}

func (s *supervised) life() *life {
	s.view.Lock()
	defer s.view.Unlock()
	return s.current
}

func (s *supervised) String() string        { return s.name }
func (s *supervised) Addr() string          { return s.life().addr }
func (s *supervised) Done() <-chan struct{} { return s.life().done }
func (s *supervised) Output() string        { return s.life().output.String() }

// Pid returns the ID of the process of a target that was started here, or 0. The process leads its own group.
func Pid(t Target) int {
	if s, ok := t.(*supervised); ok {
		return s.life().pid
	}
	return 0
}

// Begun returns when the process of a target that was started here began, or the zero time.
func Begun(t Target) time.Time {
	if s, ok := t.(*supervised); ok {
		return s.life().begun
	}
	return time.Time{}
}

// Err returns why the current process ended, or nil while it runs.
func (s *supervised) Err() error {
	l := s.life()
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// Restart stops the process and starts a new one on the same address.
func (s *supervised) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil {
		return err
	}
	next, err := s.begin(s.life().addr)
	if err != nil {
		return err
	}
	s.view.Lock()
	s.current = next
	s.view.Unlock()
	return nil
}

func (s *supervised) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop()
}

// stop asks the process to end and waits for that. It returns an error if the process still runs one second after the
// grace period, in which case no other process can be started on its address.
func (s *supervised) stop() error {
	l := s.life()
	l.cancel()
	late := time.NewTimer(s.grace + time.Second)
	defer late.Stop()
	select {
	case <-l.done:
		return nil
	case <-late.C:
		return &Error{Target: s.name, Reason: fmt.Sprintf("the process did not exit within %v after jobwire asked it to (SIGTERM)", s.grace), Output: l.output.String()}
	}
}

// Func starts a server inside this process. serve gets a listener on a free loopback port, and must return when its
// context ends; the end of the context also closes the listener. If serve returns earlier, the server counts as
// crashed. The end of ctx stops the server.
func Func(ctx context.Context, name string, serve func(context.Context, net.Listener) error) (Target, error) {
	return function(ctx, "127.0.0.1:0", name, serve)
}

// InMemory is like Func, but the server listens in memory (package memnet), so that only this process can connect to
// it.
func InMemory(ctx context.Context, name string, serve func(context.Context, net.Listener) error) (Target, error) {
	return function(ctx, transport.Memory, name, serve)
}

// function starts a server inside this process that listens on addr.
func function(ctx context.Context, addr, name string, serve func(context.Context, net.Listener) error) (Target, error) {
	s := &supervised{name: name, grace: defaultGrace}
	s.begin = func(last string) (*life, error) {
		ln, err := listen(last, addr)
		if err != nil {
			return nil, &Error{Target: name, Reason: "cannot listen", Err: err}
		}
		ctx, cancel := context.WithCancel(ctx)
		l := &life{addr: transport.Name(ln), output: new(Tail), cancel: cancel, done: make(chan struct{})}
		unwatch := context.AfterFunc(ctx, func() { ln.Close() })
		go func() {
			err := serve(ctx, ln)
			asked := ctx.Err() != nil
			unwatch()
			ln.Close()
			cancel()
			if !asked {
				l.err = &Error{Target: name, Reason: "the server exited unexpectedly", Died: true, Err: err}
			}
			close(l.done)
		}()
		return l, nil
	}
	return s.supervise()
}

// listen listens on the previous address if it is free, or else on addr.
func listen(last, addr string) (net.Listener, error) {
	if last != "" {
		if ln, err := transport.Listen(last, nil); err == nil {
			return ln, nil
		}
	}
	return transport.Listen(addr, nil)
}

// Kill kills the server, without asking it to exit, and returns when all its processes have ended.
func Kill(t Target) {
	if s, ok := t.(*supervised); ok {
		if l := s.life(); l.force != nil {
			l.force()
		}
	}
	t.Stop()
}

// Loads reports whether the process of a target has loaded a library whose path contains the name, and uses it.
// Programs in Go do not use the C library for most system calls, so it returns false for them. If the libraries are
// unknown, it returns true.
func Loads(t Target, name string) bool {
	process := fmt.Sprintf("/proc/%d/", Pid(t))
	if _, err := buildinfo.ReadFile(process + "exe"); err == nil {
		return false
	}
	maps, err := os.ReadFile(process + "maps")
	return err != nil || strings.Contains(string(maps), name)
}
