package danga

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/refserver"
)

// BenchmarkCycle measures whole cycles over loopback: create, assign, complete. The number of jobs in flight is
// the number of pairs of a waiting application and a worker.
func BenchmarkCycle(b *testing.B) {
	for _, pairs := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("pairs=%d", pairs), func(b *testing.B) { cycle(b, pairs) })
	}
}

func cycle(b *testing.B, pairs int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() {
		served <- refserver.New(New(Options{Name: "bench"}), refserver.Options{Protocol: danga.Protocol}).Serve(ctx, l)
	}()
	var applications, workers sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	begin := make(chan struct{})
	for range pairs {
		a, w := connectTo(b, l), connectTo(b, l)
		defer a.Close()
		workers.Go(func() { work(w) })
		applications.Go(func() {
			<-begin
			if err := wait(a, &left); err != nil {
				b.Error(err)
			}
			w.Close()
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	close(begin)
	applications.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	workers.Wait()
	cancel()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}

func connectTo(b *testing.B, l net.Listener) net.Conn {
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	return nc
}

func encode(name string, args ...string) []byte {
	m := codec.Message{Type: typeNamed(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	p, err := danga.Protocol.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
	if err != nil {
		panic(err)
	}
	return p
}

// wait creates jobs one after another, and waits for each, until none is left.
func wait(nc net.Conn, left *atomic.Int64) error {
	r := bufio.NewReader(nc)
	create := encode("job_create_req", "f", "", "\x00", "\x00", "sixteen bytes ok")
	for left.Add(-1) >= 0 {
		nc.Write(create)
		for typ := byte(0); typ != 0x0d; { // job_complete_res
			var err error
			if typ, err = packet(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// work completes each job at once, and requests the next in the same write. When there is none, it sleeps.
func work(nc net.Conn) {
	r := bufio.NewReader(nc)
	ask, sleep := encode("job_assign_req"), encode("worker_sleep")
	done := append(encode("job_complete_announce", "\x00", "done"), ask...)
	nc.Write(append(encode("worker_connect", "f"), ask...))
	for asked := true; ; {
		typ, err := packet(r)
		switch {
		case err != nil:
			return
		case typ == 0x07: // job_assign_res
			nc.Write(done)
		case asked: // noop: no job
			nc.Write(sleep)
			asked = false
		default: // noop: wake up
			nc.Write(ask)
			asked = true
		}
	}
}

// packet reads one packet and returns its type.
func packet(r *bufio.Reader) (typ byte, err error) {
	head, err := r.Peek(9)
	if err != nil {
		return 0, err
	}
	typ = head[4]
	n := 9 + int(binary.BigEndian.Uint32(head[5:]))
	if _, err := r.Discard(n); err != nil && err != io.EOF {
		return 0, err
	}
	return typ, nil
}
