package gearmonkey

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearmonkey"
	"jobwire/internal/transport"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// replyTimeout is how long a client waits for an expected reply. In a synctest bubble this time passes without
// waiting.
const replyTimeout = 20 * time.Second

// client is a connection to this server or to redis-server. It decodes only as much of the protocol as it needs
// to find the end of a reply, so that replies are compared as bytes.
type client struct {
	t      testing.TB
	nc     net.Conn
	r      *bufio.Reader
	settle func() // called after each action
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Cleanup(func() { nc.Close() })
	return &client{t, nc, bufio.NewReader(nc), func() {}}
}

func dialTCP(t testing.TB, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

// raw sends bytes.
func (c *client) raw(s string) {
	c.t.Helper()
	c.nc.SetWriteDeadline(time.Now().Add(replyTimeout))
	if _, err := io.WriteString(c.nc, s); err != nil {
		c.t.Fatalf("sending %.100q: %v", s, err)
	}
	c.settle()
}

// leave closes the connection with a reset. After a close without a reset, the server would take it for half-closed.
func (c *client) leave() {
	transport.Reset(c.nc)
	c.settle()
}

// send sends a command with the given words.
func (c *client) send(words ...string) {
	c.t.Helper()
	var b []byte
	b = appendHeader(b, '*', int64(len(words)))
	for _, w := range words {
		b = bulk(b, w)
	}
	c.raw(string(b))
}

// next returns the next value that the server sends, with spaces in place of line ends.
func (c *client) next() string {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(replyTimeout))
	v, err := readValue(c.r)
	if err != nil {
		c.t.Fatalf("a reply is due: %v (got %q)", err, v)
	}
	return v
}

// readValue reads one value of RESP.
func readValue(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		b := make([]byte, n+2)
		_, err = io.ReadFull(r, b)
		return line + " " + string(b[:n]), err
	case '%':
		n *= 2
		fallthrough
	case '*', '>', '~':
		for range n {
			v, err := readValue(r)
			line += " " + v
			if err != nil {
				return line, err
			}
		}
	}
	return line, nil
}

// ask sends a line of words and returns the reply.
func (c *client) ask(line string) string {
	c.t.Helper()
	c.send(strings.Fields(line)...)
	return c.next()
}

// want sends a line of words and checks the reply.
func (c *client) want(line, want string) {
	c.t.Helper()
	if got := c.ask(line); got != want {
		c.t.Fatalf("%s: got %q, want %q", line, got, want)
	}
}

// gets checks the next value that the server sends.
func (c *client) gets(want string) {
	c.t.Helper()
	if got := c.next(); got != want {
		c.t.Fatalf("got %q, want %q", got, want)
	}
}

// quiet checks that the server has sent nothing. This is only reliable in a synctest bubble.
func (c *client) quiet() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	if b, err := c.r.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v, want nothing", b, err)
	}
}

// ended checks that the server closes the connection and sends nothing more.
func (c *client) ended() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(replyTimeout))
	if b, err := io.ReadAll(c.r); err != nil || len(b) > 0 {
		c.t.Fatalf("got %q, %v, want the end of the connection", b, err)
	}
}

// bubble runs a test with a server in a synctest bubble. It also checks that every goroutine ends, and that
// only keys are left in the machine.
func bubble(t *testing.T, o refserver.Options, test func(t *testing.T, m *Machine, dial func() *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Protocol = gearmonkey.Protocol
		m := New(Options{})
		srv := refserver.New(m, o)
		test(t, m, func() *client {
			c := newClient(t, peertest.Connect(t, srv))
			c.settle = synctest.Wait // so that the server handles commands in the order of the test
			c.settle()
			return c
		})
		srv.Close()
		synctest.Wait()
		left := len(m.peers) + len(m.waiting) + max(0, len(m.timeouts.items)-1) + len(m.channels) + len(m.patterns)
		if left > 0 {
			t.Errorf("left behind: %d peers, %d keys waited for, timeouts %v, channels %v, patterns %v",
				len(m.peers), len(m.waiting), m.timeouts.items, m.channels, m.patterns)
		}
	})
}

// serveTCP serves a machine on loopback until the test ends.
func serveTCP(t testing.TB) (addr string) {
	t.Helper()
	return peertest.Serve(t, gearmonkey.Protocol, New(Options{}))
}
