package servertest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/conform/report"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver"
)

// serveVariable is the environment variable that makes this test binary run a server with a fault: "PROTOCOL FAULT ADDR".
const serveVariable = "JOBWIRE_TEST_SERVE"

// TestMain runs a server with a fault instead of the tests if serveVariable is set.
func TestMain(m *testing.M) {
	if words := strings.Fields(os.Getenv(serveVariable)); len(words) == 3 {
		protocol, fault, addr := words[0], words[1], words[2]
		fmt.Fprintln(os.Stderr, serveFaulty(protocol, fault, addr))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// resourceFault is a server that wastes resources of its machine.
type resourceFault struct {
	name     string
	listener func(net.Listener) net.Listener
	conn     func(net.Conn) net.Conn
	fails    string // names of the cases that it fails, without the protocol
}

var kept struct {
	sync.Mutex
	memory [][]byte
}

// keepMemory uses n bytes of memory until the server ends.
func keepMemory(n int) {
	b := make([]byte, n)
	for i := range b {
		b[i] = 1
	}
	kept.Lock()
	defer kept.Unlock()
	kept.memory = append(kept.memory, b)
}

var burnCPU = sync.OnceFunc(func() {
	go func() {
		for n := 0; n >= 0; {
			n ^= 1
		}
	}()
})

var load, searched atomic.Int64

// growing returns connections of a server that searches longer for each byte that it reads: longer by perMatch for each
// match of the pattern that it has read, and by perConnection for each connection that it has accepted.
func growing(pattern string, perMatch, perConnection int64) func(net.Conn) net.Conn {
	created := regexp.MustCompile(pattern)
	return func(c net.Conn) net.Conn {
		load.Add(perConnection)
		return &faultyConn{Conn: c, read: func(b []byte) (int, error) {
			n, err := c.Read(b)
			load.Add(perMatch * int64(len(created.FindAllIndex(b[:n], -1))))
			sum := int64(0)
			for x := int64(n) * load.Load() / 1000; x > 0; x-- {
				sum ^= x
			}
			searched.Add(sum)
			return n, err
		}}
	}
}

var resourceFaults = []resourceFault{
	{name: "busy", fails: "connections half-closed asleep waiting urgent many-functions many-tubes many-queues begun at-the-descriptor-limit",
		conn: func(c net.Conn) net.Conn { burnCPU(); return c }},
	{name: "busy-after-half-close", fails: "half-closed left", conn: func(c net.Conn) net.Conn {
		return &faultyConn{Conn: c, read: func(b []byte) (int, error) {
			n, err := c.Read(b)
			if err == io.EOF {
				burnCPU()
			}
			return n, err
		}}
	}},
	{name: "keeps-descriptors", fails: "connections left waiting-left", conn: func(c net.Conn) net.Conn {
		file, err := os.Open(os.DevNull)
		if err == nil {
			keptFiles.Store(file, true)
		}
		return c
	}},
	{name: "keeps-memory", fails: "worker-leaves client-leaves jobs", conn: func(c net.Conn) net.Conn { keepMemory(100 << 10); return c }},
	{name: "keeps-connections", fails: "came-and-went", conn: func(c net.Conn) net.Conn { keepMemory(4 << 10); return c }},
	{name: "keeps-requests", fails: "background-jobs detached-jobs tubes functions refused keys", conn: func(c net.Conn) net.Conn {
		return &faultyConn{Conn: c, read: func(b []byte) (int, error) {
			n, err := c.Read(b)
			keepMemory(20 * n)
			return n, err
		}}
	}},
	{name: "allocates-for-messages", fails: "announced", conn: func(c net.Conn) net.Conn {
		return &faultyConn{Conn: c, read: func(b []byte) (int, error) {
			n, err := c.Read(b)
			keepMemory(1 << 20)
			return n, err
		}}
	}},
	{name: "stores-what-it-reads", fails: "line", conn: func(c net.Conn) net.Conn {
		go func() { // a goroutine, because a server that closes the connection would not call Read again
			for range 64 {
				keepMemory(1 << 20)
			}
		}()
		return c
	}},
	{name: "buffers-replies", fails: "unread", conn: func(c net.Conn) net.Conn {
		return &faultyConn{Conn: c, write: func(b []byte) (int, error) {
			keepMemory(len(b))
			c.SetWriteDeadline(time.Now().Add(time.Millisecond))
			if n, err := c.Write(b); err != nil && n < len(b) {
				keepMemory(64 << 20)
			}
			return len(b), nil
		}}
	}},
	{name: "searches-jobs", fails: "cost-with-jobs cost-of-status", conn: growing(`put [0-9]|m\x00[^f]{1,9}w`, 600, 0)},
	{name: "searches-queues", fails: "cost-with-tubes cost-with-functions cost-with-unique-ids cost-with-keys",
		conn: growing(`use [a-j][0-9]|[a-j][0-9]{4}\x00|HSET`, 1000, 0)},
	{name: "searches-announced", fails: "cost-with-watched-tubes cost-with-announced-functions",
		conn: growing(`watch t[0-9]|f[0-9]{4}`, 5000, 0)},
	{name: "searches-connections", fails: "cost-with-connections", conn: growing(`none`, 0, 100_000)},
	{name: "accepts-no-more", fails: "descriptor-limit", listener: func(ln net.Listener) net.Listener { return &endingListener{Listener: ln} }},
}

var keptFiles sync.Map

// faultyConn is a connection with another Read or Write function.
type faultyConn struct {
	net.Conn
	read, write func([]byte) (int, error)
}

func (c *faultyConn) Read(b []byte) (int, error) {
	if c.read != nil {
		return c.read(b)
	}
	return c.Conn.Read(b)
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if c.write != nil {
		return c.write(b)
	}
	return c.Conn.Write(b)
}

func (c *faultyConn) CloseWrite() error { return transport.CloseWrite(c.Conn) }

// endingListener blocks in Accept after an error.
type endingListener struct{ net.Listener }

func (l *endingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		// Without cgo, the Go runtime would end a program in which every goroutine waits without a timer.
		<-time.After(time.Hour)
	}
	return c, err
}

// faultyListener is a listener that applies a fault to each connection.
type faultyListener struct {
	net.Listener
	conn func(net.Conn) net.Conn
}

func (l *faultyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.conn(c), nil
}

// process returns a function that starts the reference server in a process of its own, with a fault or with "none".
func process(e *catalog.Entry, fault string) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return target.Command{Name: fault, Args: []string{"env", serveVariable + "=" + e.Protocol.Name + " " + fault + " {addr}", self}}.Start(ctx)
	}
}

// serveFaulty serves until the process is killed.
func serveFaulty(protocol, fault, addr string) error {
	e, err := catalog.Named(protocol)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for _, f := range resourceFaults {
		switch {
		case f.name != fault:
		case f.listener != nil:
			ln = f.listener(ln)
		default:
			ln = &faultyListener{ln, f.conn}
		}
	}
	return refserver.New(e.New(), refserver.Options{Protocol: e.Protocol}).Serve(context.Background(), ln)
}

// TestResourceFaults tests that servers with faults fail the cases about resources. The faults of a protocol are tested one
// after another, and before the parallel tests of this package, because some servers use a processor all the time, or much
// memory.
func TestResourceFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 30 s of processor time: run without -short")
	}
	for _, e := range catalog.All() {
		t.Run(e.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			suite, err := mutanttest.Load(t, e.Protocol).AtLevels([]string{"RESOURCE"})
			if err != nil {
				t.Fatal(err)
			}
			// The self-tests show that faulty servers fail the other cases.
			suite = suite.First().Only(func(c *conform.Case) bool { return len(c.Watch) > 0 || c.Descriptors > 0 })
			proved := map[string]bool{}
			for _, f := range resourceFaults {
				part := *suite
				part.Cases = slices.DeleteFunc(slices.Clone(suite.Cases), func(c *conform.Case) bool {
					_, name, _ := strings.Cut(c.Family, ".resource.")
					return !slices.Contains(strings.Fields(f.fails), name)
				})
				t.Run(f.name, func(t *testing.T) {
					// One case at a time, because Run repeats late failures of cases that ran at the same time as others.
					r := conform.Runner{Start: process(e, f.name), Timeout: time.Second, Segments: []play.Segmentation{play.Plain}}
					for _, res := range r.Run(t.Context(), &part, nil) {
						if res.Verdict != verdict.Failed && res.Verdict != verdict.Hung {
							t.Errorf("%s: %s\n%s", res.Case.ID, res.Verdict, report.Result(res))
						}
						proved[res.Case.Family] = true
					}
				})
			}
			for _, c := range suite.Cases {
				if !proved[c.Family] {
					t.Errorf("no faulty server fails %s", c.Family)
				}
			}
		})
	}
}
