// Package memnet is a network in memory, for tests of programs in this process. Its connections behave like TCP
// connections of Linux over the loopback interface, with three differences that make tests repeatable: a read returns
// bytes of one write only, each effect reaches the other side before the call that causes it returns, and nothing
// takes time. In a bubble of package testing/synctest, time passes only while all connections wait.
package memnet

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Addr is the name of a listener, or of a connection to it.
type Addr string

func (Addr) Network() string  { return "memory" }
func (a Addr) String() string { return string(a) }

var (
	mu        sync.Mutex
	listeners = map[string]*Listener{}
	lastName  uint64
)

// Listener accepts the connections that [Dial] opens. The number of connections that wait to be accepted is not
// limited.
type Listener struct {
	addr Addr

	mu       sync.Mutex
	changed  sync.Cond
	waiting  []*Conn // connections that Accept has not returned yet
	deadline deadline
	closed   bool
}

// Listen listens on a name. It chooses an unused name if the name is empty. The error matches syscall.EADDRINUSE if
// another listener has the name.
func Listen(name string) (*Listener, error) {
	mu.Lock()
	defer mu.Unlock()
	for name == "" {
		lastName++
		if s := strconv.FormatUint(lastName, 10); listeners[s] == nil {
			name = s
		}
	}
	l := &Listener{addr: Addr(name)}
	if listeners[name] != nil {
		return nil, l.error("listen", os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	l.changed.L = &l.mu
	listeners[name] = l
	return l, nil
}

// Accept returns the next connection. After Close, the error matches net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, l.error("accept", net.ErrClosed)
		case l.deadline.passed():
			return nil, l.error("accept", os.ErrDeadlineExceeded)
		case len(l.waiting) > 0:
			c := l.waiting[0]
			l.waiting = l.waiting[1:]
			return c, nil
		}
		l.deadline.wait(&l.changed)
	}
}

// Close makes the name free again and resets the connections that have not been accepted.
func (l *Listener) Close() error {
	mu.Lock()
	if listeners[string(l.addr)] == l {
		delete(listeners, string(l.addr))
	}
	mu.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.error("close", net.ErrClosed)
	}
	l.closed = true
	waiting := l.waiting
	l.waiting = nil
	l.changed.Broadcast()
	l.mu.Unlock()
	for _, c := range waiting {
		c.Reset()
	}
	return nil
}

// Addr returns the name of the listener.
func (l *Listener) Addr() net.Addr { return l.addr }

// SetDeadline sets the time after which Accept fails. The zero time means never.
func (l *Listener) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = deadline(t)
	l.changed.Broadcast()
	return nil
}

func (l *Listener) error(op string, err error) error {
	return &net.OpError{Op: op, Net: "memory", Addr: l.addr, Err: err}
}

// Dial opens a connection to the listener with the name. Like a connection over TCP, it is open before the listener
// accepts it. If there is no listener, the error matches syscall.ECONNREFUSED.
func Dial(ctx context.Context, name string) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: Addr(name), Err: err}
	}
	mu.Lock()
	l := listeners[name]
	mu.Unlock()
	if l != nil {
		near, far := Pipe()
		near.remote, far.local = l.addr, l.addr
		near.local = "client-of-" + l.addr
		far.remote = near.local
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.closed {
			l.waiting = append(l.waiting, far)
			l.changed.Broadcast()
			return near, nil
		}
	}
	err := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	return nil, &net.OpError{Op: "dial", Net: "memory", Addr: Addr(name), Err: err}
}

// deadline is the time after which operations fail. The zero time means never.
type deadline time.Time

func (d deadline) passed() bool { t := time.Time(d); return !t.IsZero() && !t.After(time.Now()) }

// wait waits for a change, at most until the deadline. The caller has locked changed.L.
func (d deadline) wait(changed *sync.Cond) {
	if t := time.Time(d); !t.IsZero() {
		timer := time.AfterFunc(time.Until(t), func() {
			changed.L.Lock()
			defer changed.L.Unlock()
			changed.Broadcast()
		})
		defer timer.Stop()
	}
	changed.Wait()
}
