package memnet_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"jobwire/internal/memnet"
)

var (
	cases = flag.Int("cases", 2000, "number of random sequences of operations")
	seed  = flag.Int64("seed", 1, "random seed")
)

// TestLikeTCP performs the same random operations on connections in memory and over TCP, and compares what both ends
// see.
func TestLikeTCP(t *testing.T) {
	parameters := gopter.DefaultTestParameters()
	parameters.MinSuccessfulTests = *cases
	parameters.MaxSize = 30
	parameters.Rng.Seed(*seed)
	properties := gopter.NewProperties(parameters)
	properties.Property("the ends see the same", prop.ForAll(func(ops []uint16) string {
		inMemory, overTCP := perform(ops, memory(t)), perform(ops, tcp(t))
		if inMemory == overTCP {
			return ""
		}
		return fmt.Sprintf("in memory:\n%sover TCP:\n%s", inMemory, overTCP)
	}, gen.SliceOf(gen.UInt16())))
	properties.TestingRun(t)
}

// memory returns the ends of a connection in memory.
func memory(t *testing.T) [2]net.Conn {
	ln, err := memnet.Listen("")
	if err != nil {
		t.Fatal(err)
	}
	near, err := memnet.Dial(t.Context(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return accepted(t, near, ln)
}

// tcp returns the ends of a TCP connection.
func tcp(t *testing.T) [2]net.Conn {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	near, err := new(net.Dialer).DialContext(context.Background(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return accepted(t, near, ln)
}

func accepted(t *testing.T, near net.Conn, ln net.Listener) [2]net.Conn {
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	return [2]net.Conn{near, far}
}

// side is what the test knows about one end of a connection.
type side struct {
	pending int  // bytes that the other end has written and this end has not read
	failed  bool // an operation has returned an error, which TCP reports only once
	shut    bool // this end has ended its direction
	closed  bool
}

// perform performs operations, one after another, and returns what the ends see. Afterwards it reads everything that
// is left.
func perform(ops []uint16, ends [2]net.Conn) string {
	var log strings.Builder
	var sides [2]side
	written := byte(0)
	note := func(end int, op string, n int, err error) {
		fmt.Fprintf(&log, "%d %s %d: %s\n", end, op, n, class(err))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && err != io.EOF {
			sides[end].failed = true
		}
	}
	read := func(end, n int) {
		s := &sides[end]
		if s.pending == 0 {
			deadline := time.Now().Add(10 * time.Second)
			if !sides[1-end].shut && !sides[1-end].closed {
				deadline = time.Unix(1, 0) // nothing will come
			}
			ends[end].SetReadDeadline(deadline)
			k, err := ends[end].Read(make([]byte, 8))
			note(end, "reads", k, err)
			return
		}
		b := make([]byte, min(n, s.pending))
		ends[end].SetReadDeadline(time.Now().Add(10 * time.Second))
		k, err := io.ReadFull(ends[end], b)
		fmt.Fprintf(&log, "%d reads % x: %s\n", end, b[:k], class(err))
		s.pending -= len(b)
	}
	for _, op := range ops {
		end, n := int(op&1), 1+int(op>>8&15)
		s, other := &sides[end], &sides[1-end]
		if s.closed || s.failed {
			continue
		}
		switch op >> 1 & 15 {
		case 0, 1, 2, 3, 4:
			b := make([]byte, n)
			for i := range b {
				written++
				b[i] = written
			}
			k, err := ends[end].Write(b)
			note(end, "writes", k, err)
			if err == nil && !other.closed {
				other.pending += n
			}
		case 5, 6, 7, 8, 9:
			read(end, n)
		case 10:
			if other.closed || s.shut {
				continue
			}
			note(end, "half-closes", 0, ends[end].(interface{ CloseWrite() error }).CloseWrite())
			s.shut = true
		case 11:
			note(end, "closes", 0, ends[end].Close())
			s.closed, s.shut, s.pending = true, true, 0
		case 12:
			if tc, ok := ends[end].(*net.TCPConn); ok {
				tc.SetLinger(0)
				note(end, "resets", 0, tc.Close())
			} else {
				note(end, "resets", 0, ends[end].(*memnet.Conn).Reset())
			}
			s.closed, s.shut, s.pending = true, true, 0
		case 13:
			ends[end].SetReadDeadline(time.Unix(1, 0))
			k, err := ends[end].Read(make([]byte, 8))
			note(end, "reads too late", k, err)
			ends[end].SetReadDeadline(time.Time{})
		case 14:
			ends[end].SetWriteDeadline(time.Unix(1, 0))
			k, err := ends[end].Write([]byte{0})
			note(end, "writes too late", k, err)
			ends[end].SetWriteDeadline(time.Time{})
		}
	}
	for end := range ends {
		s := &sides[end]
		for s.pending > 0 && !s.failed {
			read(end, 1<<10)
		}
		if !s.closed && !s.failed {
			read(end, 1)
		}
		ends[end].Close()
	}
	return log.String()
}

// class returns what the kinds of an error have in common in all networks.
func class(err error) string {
	for _, kind := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}
