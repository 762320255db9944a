package gearman

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
)

// BenchmarkCycle measures whole cycles over loopback: submit, grab, complete,
// with window jobs under way between one client and one worker.
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
	encode := func(name string, args ...string) []byte {
		m := codec.Message{Type: row(name)}
		for _, a := range args {
			m.Args = append(m.Args, []byte(a))
		}
		p, err := gearman.Protocol.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
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

// BenchmarkGrab measures grabs in vain and back to sleep, by how much the worker
// can do.
func BenchmarkGrab(b *testing.B) {
	for _, able := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("abilities=%d", able), func(b *testing.B) {
			p := &peer{}
			for i := range able {
				p.newAbility(&function{name: fmt.Append(nil, i)})
			}
			for b.Loop() {
				if _, j := p.pick(); j != nil {
					b.Fatal("there is no job")
				}
			}
		})
	}
}

// work keeps up to window grabs under way and completes each job at once. When
// all came back empty it sleeps.
func work(nc net.Conn, window int, hello, grabJob []byte) error {
	r, w := bufio.NewReaderSize(nc, 64<<10), bufio.NewWriterSize(nc, 64<<10)
	w.Write(hello)
	sleep := hello[len(hello)-12:]
	out := 0
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
			handle := data
			for i, c := range data {
				if c == 0 {
					handle = data[:i+1]
					break
				}
			}
			var head [12]byte
			copy(head[:], "\x00REQ")
			binary.BigEndian.PutUint32(head[4:], 13)
			binary.BigEndian.PutUint32(head[8:], uint32(len(handle)+4))
			w.Write(head[:])
			w.Write(handle)
			w.WriteString("done")
			w.Write(grabJob)
		}
	}
}

// packet reads one packet; its data is good until the next.
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
	_, err = r.Discard(n) // which leaves the bytes where they are
	return typ, all[12:], err
}
