package judge_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/judge"
)

// TestManyJobs checks what the checker of Gearman still knows after more jobs than it stores: unfinished jobs, and the
// last of those that have ended. The bytes of a message are overwritten before the text of a later violation is read.
func TestManyJobs(t *testing.T) {
	const client, idle, busy, jobs = 1, 2, 3, 40_000
	j := judge.New(gearman.Protocol)
	sessions := map[int]codec.Session{}
	for _, id := range []int{client, idle, busy} {
		sessions[id] = gearman.Protocol.NewSession(codec.Options{})
		j.Open(id)
	}
	var raw []byte
	var f codec.Frame
	var got []string
	at := int64(0)
	send := func(id int, from codec.Side, code uint32, args ...string) {
		clear(raw)
		data := strings.Join(args, "\x00")
		raw = append(raw[:0], "\x00RE"+string("QS"[from])...)
		raw = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(raw, code), uint32(len(data)))
		raw = append(raw, data...)
		if _, err := sessions[id].Decode(from, raw, &f); err != nil {
			t.Fatal(err)
		}
		at++
		for _, v := range j.Message(id, &f, at, nil) {
			got = append(got, v.Err().Error())
		}
	}
	const p, s = codec.Peer, codec.Server
	assign := func(id int, handle string) {
		send(id, p, 9)
		send(id, s, 11, handle, "f", "x")
	}
	created := func(handle string) {
		send(client, p, 7, "f", handle, "x")
		send(client, s, 8, handle)
	}
	send(idle, p, 1, "f")
	send(busy, p, 1, "f")
	created("H:0")
	assign(idle, "H:0") // the worker does not finish this job
	for n := 1; n <= jobs; n++ {
		handle := fmt.Sprint("H:", n)
		created(handle)
		assign(busy, handle)
		send(busy, p, 13, handle, "y")
		send(client, s, 13, handle, "y")
	}
	if len(got) > 0 {
		t.Fatalf("violations in correct messages: %q", got)
	}
	assign(busy, "H:0")
	send(idle, p, 9)
	send(busy, p, 9)
	send(client, s, 13, "H:1", "y") // ended too long ago to be known
	send(client, s, 13, fmt.Sprint("H:", jobs), "y")
	send(busy, p, 13, fmt.Sprint("H:", jobs), "y")
	want := []string{
		"the server assigned a job to this worker that is assigned to the worker on connection 2 [gearman.grab.once]",
		"the server sent this message after the client had received the result of the job [gearman.work.complete]",
		"the worker sent a result, but it has already finished the job [gearman.work.final]",
	}
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "byte 12, Job handle: ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("violations\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNoAllocation checks that the checker of Gearman allocates no memory for a job, once it has stored as many as it
// can.
func TestNoAllocation(t *testing.T) {
	const p, s = codec.Peer, codec.Server
	j := judge.New(gearman.Protocol)
	type step struct {
		id   int
		from codec.Side
		raw  []byte
	}
	var steps []step
	var sessions [3]codec.Session
	for id := range sessions {
		sessions[id] = gearman.Protocol.NewSession(codec.Options{})
		j.Open(id)
	}
	add := func(id int, from codec.Side, code uint32, args ...string) {
		data := strings.Join(args, "\x00")
		raw := binary.BigEndian.AppendUint32([]byte("\x00RE"+string("QS"[from])), code)
		raw = binary.BigEndian.AppendUint32(raw, uint32(len(data)))
		steps = append(steps, step{id, from, append(raw, data...)})
	}
	const handle = "H:00000000"
	add(2, p, 1, "f")
	add(1, p, 7, "f", "", "x")
	add(1, s, 8, handle)
	add(2, p, 9)
	add(2, s, 11, handle, "f", "x")
	add(2, p, 12, handle, "1", "2")
	add(1, s, 12, handle, "1", "2")
	add(2, p, 13, handle, "y")
	add(1, s, 13, handle, "y")
	var f codec.Frame
	at, number := int64(0), 0
	job := func() {
		number++
		for i := range steps {
			raw := steps[i].raw
			if k := bytes.Index(raw, []byte("H:")); k >= 0 {
				for n, digit := number, k+9; n > 0; n, digit = n/10, digit-1 {
					raw[digit] = '0' + byte(n%10)
				}
			}
			if _, err := sessions[steps[i].id].Decode(steps[i].from, raw, &f); err != nil {
				t.Fatal(err)
			}
			at++
			for _, v := range j.Message(steps[i].id, &f, at, nil) {
				t.Fatal(v.Err())
			}
		}
	}
	for range 34_000 { // more than it stores
		job()
	}
	if n := testing.AllocsPerRun(10_000, job); n > 0 {
		t.Errorf("%v allocations for each job", n)
	}
}
