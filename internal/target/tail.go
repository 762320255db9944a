package target

import "sync"

// tailSize is how much of a program's output is kept, in bytes.
const tailSize = 64 << 10

// tail keeps the last tailSize bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte // grows to twice tailSize, then is cut to the last half
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	p = p[max(0, len(p)-tailSize):]
	if len(t.buf)+len(p) > 2*tailSize {
		t.buf = t.buf[:copy(t.buf, t.buf[len(t.buf)-tailSize:])]
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-tailSize):])
}
