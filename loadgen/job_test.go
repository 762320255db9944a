package loadgen

import (
	"bytes"
	"context"
	"net"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// discard is a connection that discards all bytes written to it.
type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

// BenchmarkJob measures the CPU time of the load generator for one job, without decoding and system calls: the client
// submits the job, the worker completes it and the client receives the result.
func BenchmarkJob(b *testing.B) {
	cfg, err := Config{Protocol: gearman.Protocol, Clients: 1, Workers: 1,
		Dial: func(context.Context) (net.Conn, error) { return discard{}, nil }}.Complete()
	if err != nil {
		b.Fatal(err)
	}
	r := newRun(cfg)
	if err := r.connect(b.Context()); err != nil {
		b.Fatal(err)
	}
	r.limit.Store(1 << 60)
	client, worker := r.clients[0], r.workers[0]
	message := func(name string, args ...[]byte) *codec.Frame {
		raw, err := gearman.Protocol.NewSession(codec.Options{}).Append(nil, codec.Server, &codec.Message{Type: codec.Named(gearman.Protocol.Types, name), Args: args})
		if err != nil {
			b.Fatal(err)
		}
		f := &codec.Frame{}
		if _, err := gearman.Protocol.NewSession(codec.Options{}).Decode(codec.Server, raw, f); err != nil {
			b.Fatal(err)
		}
		return f
	}
	handle, payload := []byte("H:lap:1"), make([]byte, MinPayload)
	created, assigned, completed := message("JOB_CREATED", handle), message("JOB_ASSIGN", handle, []byte("jobwire"), payload), message("WORK_COMPLETE", handle, payload)
	worker.begin()
	client.begin()
	b.ReportAllocs()
	for b.Loop() {
		worker.out.next, client.out.next = worker.out.next[:0], client.out.next[:0]
		for st := range client.samples {
			client.samples[st] = client.samples[st][:0]
		}
		number := client.pool.slots[0].number.Load()
		for _, f := range []*codec.Frame{assigned, completed} {
			client.run.filler.appendPayload(f.Raw[len(f.Raw)-MinPayload:][:0], number, MinPayload)
		}
		client.role.handle(created)
		worker.role.handle(assigned)
		client.role.handle(completed)
	}
}

// TestPayloads tests that a payload identifies its job, and that a change of a byte or of the length is detected.
func TestPayloads(t *testing.T) {
	for _, content := range [][]byte{nil, []byte("{}\n"), bytes.Repeat([]byte("0123456789"), 20000)} {
		l := newFiller(content)
		for _, size := range []int{MinPayload, MinPayload + 1, MinPayload + len(content), 300000} {
			payload := l.appendPayload(nil, 42, size)
			if number, whole := l.numberOf(payload); number != 42 || !whole || len(payload) != size {
				t.Errorf("%d bytes of content, size %d: job %d, %v", len(content), size, number, whole)
			}
			for _, other := range [][]byte{payload[:size-1], append(payload[:size:size], payload[size-1])} {
				if _, whole := l.numberOf(other); whole {
					t.Errorf("%d bytes of content, size %d: a length of %d was not noticed", len(content), size, len(other))
				}
			}
			payload[size-1] ^= 1
			if _, whole := l.numberOf(payload); whole {
				t.Errorf("%d bytes of content, size %d: a change was not noticed", len(content), size)
			}
		}
		if len(content) > 0 && !bytes.Contains(l.appendPayload(nil, 7, 64)[MinPayload:], content[:min(3, len(content))]) {
			t.Errorf("the payload does not have the content %.10q", content)
		}
	}
}
