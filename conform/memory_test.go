package conform

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// faulty returns a function that runs the reference server with an edit.
func faulty(edit inject.Edit) func(context.Context, net.Listener) error {
	return func(ctx context.Context, ln net.Listener) error {
		p := inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return server.New(server.Options{}) }}
		return p.Serve(ctx, ln, &inject.MutantSpec{Edit: edit})
	}
}

// inMemory calls test in a synctest bubble with a function that starts a server. Connections to the server are pipes, so
// time limits take no time, and a busy machine does not change verdicts.
func inMemory(t *testing.T, serve func(context.Context, net.Listener) error, test func(t *testing.T, start func(context.Context) (target.Target, error))) {
	synctest.Test(t, func(t *testing.T) {
		test(t, func(ctx context.Context) (target.Target, error) {
			m := &memoryTarget{ctx: ctx, serve: serve}
			return m, m.Restart()
		})
	})
}

// memoryTarget is a server in this process with connections in memory.
type memoryTarget struct {
	ctx   context.Context
	serve func(context.Context, net.Listener) error

	mu    sync.Mutex
	conns chan net.Conn
	done  chan struct{}
	stop  context.CancelFunc
}

func (*memoryTarget) String() string { return "a server in memory" }
func (*memoryTarget) Addr() string   { return "memory" }
func (*memoryTarget) Err() error     { return nil }
func (*memoryTarget) Output() string { return "" }

func (m *memoryTarget) Done() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

func (m *memoryTarget) Restart() error {
	if m.stop != nil {
		m.Stop()
	}
	ctx, stop := context.WithCancel(m.ctx)
	conns, done := make(chan net.Conn), make(chan struct{})
	m.mu.Lock()
	m.conns, m.done, m.stop = conns, done, stop
	m.mu.Unlock()
	go func() {
		defer close(done)
		m.serve(ctx, &memoryListener{ctx, stop, conns})
	}()
	return nil
}

func (m *memoryTarget) Stop() error {
	m.stop()
	<-m.Done()
	return nil
}

// Dial is called by [target.Dial].
func (m *memoryTarget) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	m.mu.Lock()
	conns, done := m.conns, m.done
	m.mu.Unlock()
	select {
	case conns <- far:
		return near, nil
	case <-done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memoryListener accepts the connections of a memoryTarget.
type memoryListener struct {
	ctx   context.Context
	close context.CancelFunc
	conns <-chan net.Conn
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error   { l.close(); return nil }
func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{} }
