package gearmonkey

import (
	"bytes"
	"context"
	"testing"

	"jobwire/codec"
	"jobwire/internal/peers"
)

// repeatingConn is a connection whose peer sends the same bytes repeatedly and accepts everything.
type repeatingConn struct {
	scriptedConn
	again []byte
	at    int
}

func (e *repeatingConn) Read(b []byte) (int, error) {
	n := copy(b, e.again[e.at:])
	e.at = (e.at + n) % len(e.again)
	return n, nil
}

func (e *repeatingConn) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkRun measures the client without a server.
func BenchmarkRun(b *testing.B) {
	c := NewClient(NewConn(&repeatingConn{again: []byte(":7\r\n+OK\r\n:0\r\n:1\r\n")}, codec.Options{}), nil)
	input := bytes.Repeat([]byte("x"), 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(context.Background(), "reverse", input, RunOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRound(b *testing.B) {
	e := &repeatingConn{again: []byte("$40\r\n" + sha + "\r\n:1\r\n")}
	w := NewWorker(NewConn(e, codec.Options{}), nil)
	w.Accept("reverse")
	if err := w.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.performer.conn.at = w.performer.conn.end
	*e = repeatingConn{again: []byte("$-1\r\n*2\r\n$20\r\nqueue:reverse:normal\r\n$1\r\n7\r\n:0\r\n+OK\r\n$4\r\ntest\r\n+OK\r\n:1\r\n:0\r\n:1\r\n:1\r\n")}
	b.ReportAllocs()
	for b.Loop() {
		if found, err := w.Round(context.Background(), echo); !found || err != nil {
			b.Fatal(found, err)
		}
	}
}

// BenchmarkCycleAtRedis measures creating and performing one job with a real server.
func BenchmarkCycleAtRedis(b *testing.B) {
	addr := peers.Start(b, "redis-server").Addr()
	c := NewClient(connect(b, addr).Conn, nil)
	w := worker(b, addr, "reverse")
	if err := w.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	input := []byte("test")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(context.Background(), "reverse", input, RunOptions{}); err != nil {
			b.Fatal(err)
		}
		if found, err := w.Round(context.Background(), echo); !found || err != nil {
			b.Fatal(found, err)
		}
	}
}
