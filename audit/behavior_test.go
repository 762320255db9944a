package audit_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/internal/target"
	"jobwire/refserver"
)

// lap is the time that a request of a loop without a pause takes, in virtual time.
const lap = time.Millisecond

// site is a server, the proxy of an audit, and programs that connect to it.
type site struct {
	ctx   context.Context
	sleep func(time.Duration)
	front target.Target
	up    target.Target
}

// peerConn is a connection of a program.
type peerConn struct {
	net.Conn
	r *bufio.Reader
	s *site
}

// open connects to the proxy. It returns nil if the connection fails.
func (s *site) open() *peerConn {
	c, err := target.Dial(s.ctx, s.front)
	if err != nil {
		return nil
	}
	return &peerConn{c, bufio.NewReader(c), s}
}

// ask sends a command of Beanstalk, and returns the first line of the reply, or "" if the connection ended.
func (c *peerConn) ask(format string, args ...any) string {
	c.s.sleep(lap)
	fmt.Fprintf(c, format+"\r\n", args...)
	line, _ := c.r.ReadString('\n')
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	if words[0] == "RESERVED" {
		var n int
		fmt.Sscan(words[2], &n)
		io.CopyN(io.Discard, c.r, int64(n+2))
	}
	return strings.Join(words, " ")
}

// put puts a job, and returns its ID.
func (c *peerConn) put(ttr int) string {
	_, id, _ := strings.Cut(c.ask("put 0 0 %d 1\r\nx", ttr), " ")
	return id
}

// reserve reserves a job, and returns its ID or "".
func (c *peerConn) reserve() string {
	words := strings.Fields(c.ask("reserve-with-timeout 0"))
	if len(words) < 2 {
		return ""
	}
	return words[1]
}

// send sends a message of Gearman.
func (c *peerConn) send(code uint32, args ...string) {
	data := strings.Join(args, "\x00")
	b := binary.BigEndian.AppendUint32([]byte("\x00REQ"), code)
	c.Write(append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...))
}

// get reads a message of Gearman. It returns its code, or 0 at the end of the connection.
func (c *peerConn) get() (code uint32, args []string) {
	var head [12]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return 0, nil
	}
	data := make([]byte, binary.BigEndian.Uint32(head[8:]))
	io.ReadFull(c.r, data)
	return binary.BigEndian.Uint32(head[4:]), strings.Split(string(data), "\x00")
}

// call sends a message of Gearman, and reads one.
func (c *peerConn) call(code uint32, args ...string) (uint32, []string) {
	c.s.sleep(lap)
	c.send(code, args...)
	return c.get()
}

// Messages of Gearman.
const (
	canDo, preSleep, noop, created, grab, assigned, complete, getStatus, submitBG, setClientID, option, submitEpoch,
	canDoTimeout = 1, 4, 6, 8, 9, 11, 13, 15, 18, 22, 26, 36, 23
)

// submit submits n background jobs on a connection of its own.
func (s *site) submit(n int) {
	c := s.open()
	for range n {
		c.call(submitBG, "f", "", "x")
	}
	c.Close()
}

// worker connects a worker of Gearman.
func (s *site) worker() *peerConn {
	c := s.open()
	c.send(canDo, "f")
	return c
}

// lastFor calls do again and again for a time.
func lastFor(d time.Duration, do func()) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		do()
	}
}

// TestBehavior: an audit reports the behavior of faulty programs, and nothing about correct programs, however unusual
// they are. Behavior fails an audit only on request.
func TestBehavior(t *testing.T) {
	for _, h := range unusual {
		t.Run(h.protocol+" "+h.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, err := catalog.Named(h.protocol)
				if err != nil {
					t.Fatal(err)
				}
				sleep := func(d time.Duration) { time.Sleep(d) }
				r := behaves(t, e, func(s *site) {
					s.sleep = sleep
					h.do(s)
				})
				var got []string
				for _, f := range r.Behavior {
					got = append(got, strings.TrimPrefix(string(f.Rule.ID), "behavior."))
				}
				slices.Sort(got)
				if strings.Join(got, " ") != h.rules {
					t.Errorf("expected the rules %q, got %q: %+v", h.rules, strings.Join(got, " "), r.Behavior)
				}
				failed := r.Failed()
				if r.Levels = (audit.Levels{codec.Behavioral}); failed || r.Failed() != (h.rules != "") {
					t.Errorf("failed %v without the level BEHAVIOR, and %v with it", failed, r.Failed())
				}
			})
		})
	}
}

// behaves audits a program, and returns the report.
func behaves(t *testing.T, e *catalog.Entry, do func(*site)) *audit.Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up, err := target.InMemory(ctx, e.Protocol.Name, func(ctx context.Context, ln net.Listener) error {
		return refserver.New(e.New(), refserver.Options{Protocol: e.Protocol}).Serve(ctx, ln)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Stop()
	a := audit.New(audit.Options{Protocol: e.Protocol})
	proxy := &audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, up) }}
	front, err := target.InMemory(ctx, "proxy", proxy.Serve)
	if err != nil {
		t.Fatal(err)
	}
	do(&site{ctx: ctx, front: front, up: up})
	synctest.Wait()
	front.Stop()
	return a.Report()
}
