package exec

import (
	"context"
	"os"
	"sync"

	"jobwire/internal/target"
)

// Servers starts servers, the next ones in the background while others are used.
type Servers struct {
	Start  func(context.Context) (target.Target, error)
	Ending *sync.WaitGroup // servers that start or stop in the background
	Slots  chan struct{}   // its capacity limits the number of servers that start at the same time; nil: no limit

	mu    sync.Mutex
	next  []chan started // servers that were started in the background, the oldest first
	ahead int            // number of servers to start in the background; 0: 1
}

// maxAhead limits the number of servers that are started in the background.
const maxAhead = 4

// Prepare starts the next server in the background. It starts more than one if a server was not ready when it was
// needed.
func (s *Servers) Prepare(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepare(ctx)
}

func (s *Servers) prepare(ctx context.Context) {
	for len(s.next) < max(1, s.ahead) {
		next, start := make(chan started, 1), s.Start
		s.next = append(s.next, next)
		s.Ending.Go(func() {
			if s.Slots != nil {
				s.Slots <- struct{}{}
				defer func() { <-s.Slots }()
			}
			next <- begin(ctx, start)
		})
	}
}

// Take returns the next server.
func (s *Servers) Take(ctx context.Context) (target.Target, error) {
	s.mu.Lock()
	if len(s.next) == 0 {
		s.prepare(ctx)
	} else if len(s.next[0]) == 0 {
		s.ahead = min(max(1, s.ahead)+1, maxAhead)
	}
	first := s.next[0]
	s.next = s.next[1:]
	s.mu.Unlock()
	next := <-first
	return next.t, next.err
}

// Close stops the servers that were started in the background.
func (s *Servers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.next {
		if n := <-c; n.err == nil {
			target.Kill(n.t)
		}
	}
	s.next = nil
}

// started is the result of starting a server.
type started struct {
	t   target.Target
	err error
}

// begin starts a server. If ctx ends, begin stops a server that is still starting. It does not stop a server that has
// started, because that server may print a report when it is stopped later.
func begin(ctx context.Context, start func(context.Context) (target.Target, error)) started {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	t, err := start(own)
	return started{t, err}
}

// Stop asks a server to end and waits for it, so that the server can print a report, for example about leaks. It kills
// the server when ctx is done.
func Stop(ctx context.Context, t target.Target) {
	defer context.AfterFunc(ctx, func() { target.Kill(t) })()
	t.Stop()
}

// Ended reports whether the process of a server has ended.
func Ended(t target.Target) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

// ServerEnv returns environment variables for servers, in addition to the variables of this process, that make small
// memory leaks visible early. With them, servers in Go collect garbage often, and AddressSanitizer keeps at most 1 MiB
// of freed memory (default: 256 MiB). If the user has set GOGC or ASAN_OPTIONS, those settings have precedence.
func ServerEnv() (env []string) {
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=10")
	}
	return append(env, "ASAN_OPTIONS=quarantine_size_mb=1:thread_local_quarantine_size_kb=16:"+os.Getenv("ASAN_OPTIONS"))
}
