// Package target is what gets judged, measured or fuzzed: a server somewhere
// ([Address]), a program started here ([Exec], [Command]) or a server inside
// this process ([Func]). The last two are watched, can be restarted and leave
// nothing behind.
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
	"time"
)

// Target is a server under judgement. Its methods may be called at any time,
// from any goroutine.
type Target interface {
	String() string        // as reports name it
	Addr() string          // host:port; a restart may change it
	Done() <-chan struct{} // closed when this life of the server has ended; nil if that cannot be seen
	Err() error            // why it ended: an [*Error], or nil while it lives and if it was asked to end
	Output() string        // the last of what it printed, at most 64 KiB

	// Restart ends the server if it still lives and starts it again. An address
	// cannot be restarted: the error is errors.ErrUnsupported.
	Restart() error

	// Stop ends the server, by force if need be, and returns when nothing of it
	// is left. Further calls do nothing.
	Stop() error
}

var (
	// ErrUnreachable is matched by every [*Error]: the target did not start, did
	// not answer, or died. Commands turn it into exit status 3.
	ErrUnreachable = errors.New("the target could not be reached")
	// ErrDied is matched by the errors of a target that ended unasked.
	ErrDied = errors.New("the target crashed")
)

// Error says that a target is out of reach, and what it said last.
type Error struct {
	Target string
	Reason string
	Exit   string // "exit status 1", "signal: aborted"; empty unless a program ended
	Output string // as Target.Output
	Died   bool   // it ended, rather than failed to answer
	Err    error  // the cause, where there is one
}

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

// Is makes ErrUnreachable and ErrDied match.
func (e *Error) Is(err error) bool {
	return err == ErrUnreachable || err == ErrDied && e.Died
}

// Dial connects to the target. The error is an [*Error], which tells a server
// that died from one that does not answer.
func Dial(ctx context.Context, t Target) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", t.Addr())
	if err == nil {
		return c, nil
	}
	if dead := Died(t); dead != nil {
		return nil, dead
	}
	return nil, &Error{Target: t.String(), Reason: "cannot connect", Output: t.Output(), Err: err}
}

// Died is for after a connection broke: it returns the error of a target that
// has died, or nil. A death breaks connections a little before it can be
// noticed, so it watches for up to 200 ms.
func Died(t Target) error {
	if t.Done() == nil {
		return nil
	}
	late := time.NewTimer(200 * time.Millisecond)
	defer late.Stop()
	select {
	case <-t.Done():
		return t.Err()
	case <-late.C:
		return nil
	}
}

// Alive reports whether the target lives and accepts a connection: nil, or an
// [*Error].
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
	c.Close()
	return nil
}

// Address is a server that runs elsewhere, at host:port. Whether it can be
// reached is found out by the first [Dial].
func Address(addr string) (Target, error) {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return nil, fmt.Errorf("invalid address %q: expected HOST:PORT", addr)
	}
	return address(addr), nil
}

type address string

func (a address) String() string      { return string(a) }
func (a address) Addr() string        { return string(a) }
func (address) Done() <-chan struct{} { return nil }
func (address) Err() error            { return nil }
func (address) Output() string        { return "" }
func (address) Stop() error           { return nil }

func (a address) Restart() error {
	return &Error{Target: string(a), Reason: "jobwire cannot restart a server that it did not start", Err: errors.ErrUnsupported}
}

// life is the time from one start of a server to its end.
type life struct {
	addr   string
	output *Tail
	cancel context.CancelFunc // asks it to end
	force  context.CancelFunc // once it is asked, ends it at once; nil: cannot
	pid    int                // of the program; 0 is none
	begun  time.Time          // of the process
	done   chan struct{}      // closed when it has
	err    error              // why it ended; to be read once done is closed
}

// supervised is a target that is started here, by begin. A life goes on until
// it ends by itself, it is cancelled, or the context given at first is.
type supervised struct {
	name  string
	grace time.Duration // from being asked to end to having ended
	begin func(last string) (*life, error)

	mu      sync.Mutex // held while starting and stopping
	current *life      // never nil once supervise has succeeded
	view    sync.Mutex // guards current alone, so that nobody waits for a start to look
}

// supervise begins the first life.
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

// Pid returns the process that a target started here runs in, which leads a group of its
// own; 0 is none.
func Pid(t Target) int {
	if s, ok := t.(*supervised); ok {
		return s.life().pid
	}
	return 0
}

// Begun returns when the process of a target that was started here began; zero is none.
func Begun(t Target) time.Time {
	if s, ok := t.(*supervised); ok {
		return s.life().begun
	}
	return time.Time{}
}

func (s *supervised) Err() error {
	l := s.life()
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

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

// Func is a server inside this process. serve gets a listener on a free
// loopback port and returns when its context is done, which closes the listener
// too; returning earlier counts as the server's death. Cancelling ctx stops it.
func Func(ctx context.Context, name string, serve func(context.Context, net.Listener) error) (Target, error) {
	s := &supervised{name: name, grace: defaultGrace}
	s.begin = func(last string) (*life, error) {
		ln, err := listen(last)
		if err != nil {
			return nil, &Error{Target: name, Reason: "cannot listen", Err: err}
		}
		ctx, cancel := context.WithCancel(ctx)
		l := &life{addr: ln.Addr().String(), output: new(Tail), cancel: cancel, done: make(chan struct{})}
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

// listen takes the port of the last life again if it is free, or another.
func listen(last string) (net.Listener, error) {
	if last != "" {
		if ln, err := net.Listen("tcp", last); err == nil {
			return ln, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// Kill ends the server at once, without asking it to, and returns when nothing of it is left.
func Kill(t Target) {
	if s, ok := t.(*supervised); ok {
		if l := s.life(); l.force != nil {
			l.force()
		}
	}
	t.Stop()
}

// Loads reports whether the process of a target has loaded a library whose path contains the name, and uses it: programs in Go make
// most system calls without the C library. Where this cannot be known, it reports true.
func Loads(t Target, name string) bool {
	process := fmt.Sprintf("/proc/%d/", Pid(t))
	if _, err := buildinfo.ReadFile(process + "exe"); err == nil {
		return false
	}
	maps, err := os.ReadFile(process + "maps")
	return err != nil || strings.Contains(string(maps), name)
}
