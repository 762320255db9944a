package gearman

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
)

// BenchmarkCycle measures cycles of submit, grab and complete over loopback, with one client, one worker and window jobs in flight.
func BenchmarkCycle(b *testing.B) {
	for _, window := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) { cycle(b, window) })
	}
}

func cycle(b *testing.B, window int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() {
		served <- refserver.New(New(Options{Host: "bench"}), refserver.Options{Protocol: gearman.Protocol}).Serve(ctx, l)
	}()
	connect := func() net.Conn {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		return nc
	}
	client, worker := connect(), connect()
	submit, grabJob := encode("SUBMIT_JOB", "f", "", "sixteen bytes ok"), encode("GRAB_JOB")
	worked := make(chan error, 1)
	go func() { worked <- work(worker, window, append(encode("CAN_DO", "f"), encode("PRE_SLEEP")...), grabJob) }()

	b.ReportAllocs()
	b.ResetTimer()
	r, w := bufio.NewReaderSize(client, 64<<10), bufio.NewWriterSize(client, 64<<10)
	sent := 0
	for ; sent < min(window, b.N); sent++ {
		w.Write(submit)
	}
	for done := 0; done < b.N; {
		if r.Buffered() == 0 {
			w.Flush()
		}
		typ, _, err := packet(r)
		if err != nil {
			b.Fatal(err)
		}
		if typ == 13 { // WORK_COMPLETE
			done++
			if sent < b.N {
				w.Write(submit)
				sent++
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	client.Close()
	worker.Close()
	<-worked
	cancel()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkQueue queues a million background jobs of 16 bytes and reports the memory of each.
func BenchmarkQueue(b *testing.B) {
	for _, named := range []bool{false, true} {
		b.Run(fmt.Sprintf("unique=%v", named), func(b *testing.B) {
			const jobs = 1_000_000
			var each float64
			for b.Loop() {
				b.StopTimer()
				m := New(Options{}).(*machine)
				before := size()
				b.StartTimer()
				fill(m, jobs, named)
				b.StopTimer()
				each = float64(size()-before) / jobs
				runtime.KeepAlive(m)
				b.StartTimer()
			}
			b.ReportMetric(each, "B/job")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jobs, "ns/job")
		})
	}
}

// TestCyclesAllocateNothing checks that the server allocates no memory for submitting, assigning and completing jobs.
func TestCyclesAllocateNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() {
		served <- refserver.New(New(Options{Host: "test"}), refserver.Options{Protocol: gearman.Protocol}).Serve(ctx, l)
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 500
	nc.Write(encode("CAN_DO", "f"))
	requests := append(bytes.Repeat(encode("SUBMIT_JOB", "f", "", "sixteen bytes ok"), jobs), bytes.Repeat(encode("GRAB_JOB"), jobs)...)
	var results []byte
	r := bufio.NewReaderSize(nc, 64<<10)
	cycles := func() {
		nc.Write(requests)
		results = results[:0]
		for assigned, done := 0, 0; done < jobs; {
			typ, data, err := packet(r)
			if err != nil {
				t.Fatal(err)
			}
			switch typ {
			case 11: // JOB_ASSIGN
				results = appendComplete(results, data)
				if assigned++; assigned == jobs {
					nc.Write(results)
				}
			case 13: // WORK_COMPLETE
				done++
			}
		}
	}
	if n := testing.AllocsPerRun(50, cycles); n > 0 {
		t.Errorf("%d jobs make %v allocations", jobs, n)
	}
	nc.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// encode returns the bytes of a request.
func encode(name string, args ...string) []byte {
	m := codec.Message{Type: typeNamed(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	b, err := gearman.Protocol.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
	if err != nil {
		panic(err)
	}
	return b
}

// appendComplete appends a WORK_COMPLETE for the job in the data of a JOB_ASSIGN.
func appendComplete(dst, assigned []byte) []byte {
	handle := assigned[:bytes.IndexByte(assigned, 0)+1]
	dst = append(dst, "\x00REQ\x00\x00\x00\x0d"...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(handle)+len("done")))
	return append(append(dst, handle...), "done"...)
}

// BenchmarkGrab measures the search for a job if there is none, depending on the number of functions that the worker has registered.
func BenchmarkGrab(b *testing.B) {
	for _, able := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("abilities=%d", able), func(b *testing.B) {
			m, p := New(Options{}).(*machine), &peer{}
			for i := range able {
				p.addAbility(&function{name: fmt.Append(nil, i)})
			}
			for b.Loop() {
				if _, j := m.pick(p); j != nil {
					b.Fatal("there is no job")
				}
			}
		})
	}
}

// work keeps up to window GRAB_JOB requests in flight and completes each job at once. When all of them got NO_JOB, it sleeps.
func work(nc net.Conn, window int, hello, grabJob []byte) error {
	r, w := bufio.NewReaderSize(nc, 64<<10), bufio.NewWriterSize(nc, 64<<10)
	w.Write(hello)
	sleep := hello[len(hello)-12:]
	out := 0
	var result []byte
	for {
		if r.Buffered() == 0 {
			w.Flush()
		}
		typ, data, err := packet(r)
		if err != nil {
			return err
		}
		switch typ {
		case 6: // NOOP
			for ; out < window; out++ {
				w.Write(grabJob)
			}
		case 10: // NO_JOB
			if out--; out == 0 {
				w.Write(sleep)
			}
		case 11: // JOB_ASSIGN
			result = appendComplete(result[:0], data)
			w.Write(result)
			w.Write(grabJob)
		}
	}
}

// packet reads one packet. Its data is valid until the next call.
func packet(r *bufio.Reader) (typ uint32, data []byte, err error) {
	head, err := r.Peek(12)
	if err != nil {
		return 0, nil, err
	}
	typ = binary.BigEndian.Uint32(head[4:])
	n := 12 + int(binary.BigEndian.Uint32(head[8:]))
	all, err := r.Peek(n)
	if err != nil {
		return 0, nil, err
	}
	_, err = r.Discard(n) // the data remains in the buffer
	return typ, all[12:], err
}

// BenchmarkMessages measures the server without a network: a connection submits jobs in batches, grabs them and completes them.
func BenchmarkMessages(b *testing.B) {
	s := refserver.New(New(Options{Host: "bench"}), refserver.Options{Protocol: gearman.Protocol})
	b.ReportAllocs()
	s.ServeConn(b.Context(), &cannedConn{jobs: b.N, out: encode("CAN_DO", "f")})
}

// cannedConn is a connection whose Read returns the messages of BenchmarkMessages, and whose Write discards everything.
type cannedConn struct {
	net.Conn
	jobs, done int
	out        []byte
}

func (c *cannedConn) Read(b []byte) (int, error) {
	const batch = 64
	if len(c.out) == 0 && c.jobs > 0 {
		for range batch {
			c.out = append(c.out, cannedSubmit...)
		}
		for range batch {
			c.out = append(c.out, cannedGrab...)
		}
		for range batch {
			c.done++
			at := len(c.out)
			c.out = append(c.out, "\x00REQ\x00\x00\x00\x0d\x00\x00\x00\x00H:bench:"...)
			c.out = append(strconv.AppendInt(c.out, int64(c.done), 10), "\x00sixteen bytes ok"...)
			binary.BigEndian.PutUint32(c.out[at+8:], uint32(len(c.out)-at-12))
		}
		c.jobs -= batch
	}
	if len(c.out) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.out)
	c.out = c.out[:copy(c.out, c.out[n:])]
	return n, nil
}

var cannedSubmit, cannedGrab = encode("SUBMIT_JOB", "f", "", "sixteen bytes ok"), encode("GRAB_JOB")

func (c *cannedConn) Write(b []byte) (int, error)      { return len(b), nil }
func (c *cannedConn) Close() error                     { return nil }
func (c *cannedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *cannedConn) SetWriteDeadline(time.Time) error { return nil }
