package loadgen

import (
	"context"
	"net"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// discard is a connection that takes all bytes.
type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

// BenchmarkJob measures what the load generator itself does for one job, without decoding and without
// system calls: the client submits it, the worker completes it and the client receives the result.
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
		worker.out, client.out = worker.out[:0], client.out[:0]
		for st := range client.samples {
			client.samples[st] = client.samples[st][:0]
		}
		number := client.pool.slots[0].number.Load()
		for _, f := range []*codec.Frame{assigned, completed} {
			appendPayload(f.Raw[len(f.Raw)-MinPayload:][:0], number, MinPayload)
		}
		client.peer.Handle(created)
		worker.peer.Handle(assigned)
		client.peer.Handle(completed)
	}
}
