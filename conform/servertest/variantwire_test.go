package servertest

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/internal/transport"
	"jobwire/refserver/inject"
)

// everywhere contains variants for the servers of every protocol. They differ in how a server writes bytes and closes
// connections.
var everywhere = []variant{
	{MutantSpec: inject.MutantSpec{Name: "bytewise", About: "The server writes each reply in single bytes.",
		Edit: inject.Wrap(func(c net.Conn) net.Conn { return &bytewise{c} })}},
	{MutantSpec: inject.MutantSpec{Name: "joined", About: "The server writes all replies of 20 ms at once.",
		Edit: inject.Wrap(func(c net.Conn) net.Conn { return newPaced(c, 20*time.Millisecond, nil) })}},
	{MutantSpec: inject.MutantSpec{Name: "slow", About: "The server sends each reply 100 ms later.",
		Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return newPaced(c, 0, func() time.Duration { return 100 * time.Millisecond })
		})}},
	{MutantSpec: inject.MutantSpec{Name: "unsteady", About: "The server sends each reply up to 150 ms later, in order on each connection.",
		Edit: random(func(c net.Conn, random *rand.Rand) net.Conn {
			return newPaced(c, 0, func() time.Duration { return time.Duration(random.Int64N(int64(150 * time.Millisecond))) })
		})}},
	{MutantSpec: inject.MutantSpec{Name: "slow-reader",
		About: "The server reads each message up to 30 ms later, in order on each connection.",
		Edit:  slowReader(30 * time.Millisecond)}},
	{MutantSpec: inject.MutantSpec{Name: "late-close", About: "The server closes connections 100 ms later.",
		Edit: inject.Wrap(func(c net.Conn) net.Conn { return &lateClose{Conn: c} })}},
	{MutantSpec: inject.MutantSpec{Name: "reset", About: "The server closes connections with a reset, 100 ms after the last reply.",
		Edit: inject.Wrap(func(c net.Conn) net.Conn { return &lateClose{Conn: c, reset: true} })}},
}

// random is like [inject.Wrap]. The random numbers differ between the connections of a server, but not between runs.
func random(wrap func(net.Conn, *rand.Rand) net.Conn) inject.Edit {
	return func(s *inject.Server) {
		var conns atomic.Uint64
		inject.Wrap(func(c net.Conn) net.Conn { return wrap(c, rand.New(rand.NewPCG(0, conns.Add(1)))) })(s)
	}
}

// slowReader reads each message up to limit later.
func slowReader(limit time.Duration) inject.Edit {
	return random(func(c net.Conn, random *rand.Rand) net.Conn {
		return inject.Reading(c, func(p []byte) (int, error) {
			n, err := c.Read(p)
			if n < len(p) {
				wait(time.Duration(random.Int64N(int64(limit))))
			}
			return n, err
		})
	})
}

// wait simulates a slow network.
func wait(d time.Duration) { <-time.After(d) }

// bytewise writes the first 512 bytes of each message one byte at a time.
type bytewise struct{ net.Conn }

func (c *bytewise) Write(p []byte) (int, error) {
	for i := range min(len(p), 512) {
		if n, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i + n, err
		}
	}
	if len(p) <= 512 {
		return len(p), nil
	}
	n, err := c.Conn.Write(p[512:])
	return 512 + n, err
}

func (c *bytewise) CloseWrite() error { return transport.CloseWrite(c.Conn) }

// lateClose delays the closing of the connection.
type lateClose struct {
	net.Conn
	once  sync.Once
	reset bool
}

func (c *lateClose) Close() error {
	c.once.Do(func() {
		time.AfterFunc(100*time.Millisecond, func() {
			if c.reset {
				transport.Reset(c.Conn)
			}
			c.Conn.Close()
		})
	})
	return nil
}

func (c *lateClose) CloseWrite() error { return transport.CloseWrite(c.Conn) }

// delayedWriter writes data later, in the same order.
type delayedWriter struct {
	net.Conn
	batch time.Duration        // how long data is collected
	delay func() time.Duration // how much later data is sent
	once  sync.Once

	mu   sync.Mutex
	more sync.Cond
	todo []piece
}

// piece is data to write. Without data, it is the end of the sending direction or of the connection.
type piece struct {
	at   time.Time
	data []byte
	end  func() error
}

func newPaced(c net.Conn, batch time.Duration, delay func() time.Duration) *delayedWriter {
	if delay == nil {
		delay = func() time.Duration { return 0 }
	}
	w := &delayedWriter{Conn: c, batch: batch, delay: delay}
	w.more.L = &w.mu
	go w.run()
	return w
}

// add adds a piece, which is written after a delay. It does not wait, because the server may have locked a mutex.
func (w *delayedWriter) add(p piece) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.at = time.Now().Add(w.delay())
	w.todo = append(w.todo, p)
	w.more.Signal()
}

// next returns the next piece. If there is none, it waits, or returns false.
func (w *delayedWriter) next(wait bool) (piece, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.todo) == 0 {
		if !wait {
			return piece{}, false
		}
		w.more.Wait()
	}
	p := w.todo[0]
	w.todo = w.todo[1:]
	return p, true
}

func (w *delayedWriter) Write(p []byte) (int, error) {
	w.add(piece{data: bytes.Clone(p)})
	return len(p), nil
}

func (w *delayedWriter) CloseWrite() error {
	w.add(piece{end: func() error { return transport.CloseWrite(w.Conn) }})
	return nil
}

func (w *delayedWriter) Close() error {
	w.once.Do(func() {
		w.Conn.SetDeadline(time.Now().Add(2 * time.Second)) // limits the time for a peer that reads nothing
		w.add(piece{})
	})
	return nil
}

func (w *delayedWriter) run() {
	defer w.Conn.Close()
	for {
		p, _ := w.next(true)
		wait(time.Until(p.at))
		data := p.data
		if p.data != nil {
			wait(w.batch)
		}
		for more := true; w.batch > 0 && p.data != nil && more; {
			var q piece
			if q, more = w.next(false); more {
				p, data = q, append(data, q.data...)
			}
		}
		if len(data) > 0 {
			w.Conn.Write(data)
		}
		switch {
		case p.end != nil:
			p.end()
		case p.data == nil:
			return
		}
	}
}
