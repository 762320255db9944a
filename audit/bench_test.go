package audit

import (
	"fmt"
	"testing"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
)

// BenchmarkJob measures the checks of all messages about a job on a busy connection, with 16 concurrent jobs.
func BenchmarkJob(b *testing.B) {
	const window = 16
	a := New(Options{Protocol: protocol.Protocol, Server: true})
	client, worker := a.open(), a.open()
	sess := protocol.Protocol.NewSession(codec.Options{})
	message := func(dst []byte, from codec.Side, name string, args ...string) []byte {
		m := codec.Message{Type: protocol.Protocol.TypeNamed(name)}
		for _, s := range args {
			m.Args = append(m.Args, []byte(s))
		}
		dst, err := sess.Append(dst, from, &m)
		if err != nil {
			b.Fatal(err)
		}
		return dst
	}
	a.observe(worker, codec.Peer, message(nil, codec.Peer, "CAN_DO", "f"))
	var submit, created, grab, assign, done, forwarded []byte
	handle := 0
	prepare := func() {
		submit, created, grab, assign, done, forwarded = submit[:0], created[:0], grab[:0], assign[:0], done[:0],
			forwarded[:0]
		for range window {
			handle++
			h := fmt.Sprintf("H:lap:%d", handle)
			submit = message(submit, codec.Peer, "SUBMIT_JOB", "f", "", "0123456789012345678901234567890123456789")
			created = message(created, codec.Server, "JOB_CREATED", h)
			grab = message(grab, codec.Peer, "GRAB_JOB")
			assign = message(assign, codec.Server, "JOB_ASSIGN", h, "f", "0123456789012345678901234567890123456789")
			done = message(done, codec.Peer, "WORK_COMPLETE", h, "0123456789012345678901234567890123456789")
			forwarded = message(forwarded, codec.Server, "WORK_COMPLETE", h, "0123456789012345678901234567890123456789")
		}
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += window {
		b.StopTimer()
		prepare()
		b.StartTimer()
		a.observe(client, codec.Peer, submit)
		a.observe(client, codec.Server, created)
		a.observe(worker, codec.Peer, grab)
		a.observe(worker, codec.Server, assign)
		a.observe(worker, codec.Peer, done)
		a.observe(client, codec.Server, forwarded)
	}
	if r := a.Report(); r.Violations() > 0 {
		b.Errorf("%d violations, such as %v", r.Violations(), r.BrokenRules[0].First[0].Err)
	}
}
