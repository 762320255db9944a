package mutants

import (
	"bytes"
	"encoding/binary"
	"strings"

	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/faults"
)

// orderFaults are faults in the order of a worker's messages.
var orderFaults = []fault{
	{Name: "completes-twice", About: "The worker sends each result twice.", Rule: "danga.complete.no-job",
		Edit: edit.After("job_complete_announce", "job_complete_announce {CODE} {RESULT}")},
	{Name: "completes-after-disconnect", About: "The worker sends its result after worker_disconnect.", Rule: "danga.complete.no-job",
		Edit: edit.Before("job_complete_announce", "worker_disconnect")},
	{Name: "completes-before-asking", About: "The worker sends a result before it has sent job_assign_req.", Rule: "danga.complete.no-job",
		Edit: edit.After("worker_connect", "job_complete_announce {CODE} {RESULT}")},
	{Name: "completes-with-the-question", About: "The worker sends a result immediately after job_assign_req, before the reply.", Rule: "danga.complete.no-job",
		Edit: edit.After("job_assign_req", "job_complete_announce {CODE} {RESULT}")},
	{Name: "sleeps-with-the-question", About: "The worker sends worker_sleep immediately after job_assign_req, before the reply.", Rule: "danga.sleep.hears-first",
		Edit: edit.After("job_assign_req", "worker_sleep")},
	{Name: "progress-before-asking", About: "The worker sends progress before it has sent job_assign_req.", Rule: "danga.status.no-job",
		Edit: edit.After("worker_connect", "job_status_announce {DONE} {OF} {LEFT}")},
	{Name: "progress-after-the-end", About: "The worker sends progress after the result.", Rule: "danga.status.no-job",
		Edit: edit.After("job_complete_announce", "job_status_announce {DONE} {OF} {LEFT}")},
	{Name: "progress-in-its-sleep", About: "The worker sends progress after worker_sleep.", Rule: "danga.status.no-job",
		Edit: edit.After("worker_sleep", "job_status_announce {DONE} {OF} {LEFT}")},
}

// working are faults in the format of a worker's messages.
var working = []fault{
	{Name: "list-ended-by-nul", About: "The worker sends a NUL after the last name in worker_connect.", Rule: "danga.args.trailing-nul",
		Edit: edit.Data("worker_connect", faults.AppendNUL)},
	{Name: "list-with-a-gap", About: "The worker sends an empty name in worker_connect.", Rule: "danga.name.not-empty",
		Edit: edit.Data("worker_connect", func(b []byte) []byte { return append([]byte{0}, b...) })},
	{Name: "list-too-long", About: "The worker sends 2000 names in worker_connect.", Rule: "danga.connect.names-cap",
		Edit: edit.Data("worker_connect", func(b []byte) []byte { return append(b, strings.Repeat("\x00f", 2000)...) })},
	{Name: "ability-not-ascii", About: "The worker sends a name with a non-ASCII letter in worker_connect.", Rule: "danga.text.ascii",
		Edit: edit.Data("worker_connect", func(b []byte) []byte { return append(b, "\x00gr\xc3\xb6\xc3\x9fe"...) })},
	{Name: "sleeps-for-a-time", About: "The worker sends worker_sleep with a duration as an argument.", Rule: "danga.args.surplus",
		Edit: edit.Data("worker_sleep", func([]byte) []byte { return []byte{0, 0, 0, 10} })},
	{Name: "asks-for-a-name", About: "The worker sends job_assign_req with a job name as an argument.", Rule: "danga.args.surplus",
		Edit: edit.Data("job_assign_req", func([]byte) []byte { return []byte("f1") })},
	{Name: "progress-without-time", About: "The worker sends progress without the time remaining.", Rule: "danga.args.missing",
		Edit: edit.Data("job_status_announce", func(b []byte) []byte { return b[:8] })},
	{Name: "progress-of-64-bits", About: "The worker sends progress as integers of 64 bits instead of 32 bits.", Rule: "danga.args.surplus",
		Edit: edit.Data("job_status_announce", func(b []byte) []byte {
			var wide []byte
			for ; len(b) > 0; b = b[4:] {
				wide = binary.BigEndian.AppendUint64(wide, uint64(binary.BigEndian.Uint32(b)))
			}
			return wide
		})},
	{Name: "no-code-no-result", About: "The worker sends an empty result without a result code.", Rule: "danga.args.missing",
		Edit: edit.Data("job_complete_announce", func([]byte) []byte { return nil })},
	{Name: "noop-to-keep-alive", About: "The worker sends noop, which only the server may send.", Rule: "danga.packet.type-direction",
		Edit: edit.Before("job_assign_req", "noop")},
	{Name: "type-of-a-later-draft", About: "The worker requests a job with a packet type that does not exist.", Rule: "danga.packet.type-known",
		Edit: edit.Raw("job_assign_req", func(b []byte) []byte {
			b[4] = 0x1e
			return b
		})},
	{Name: "magic-of-its-own", About: "The worker sends results with a different magic.", Rule: "danga.packet.magic",
		Edit: edit.Raw("job_complete_announce", func(b []byte) []byte { return append([]byte("DONE"), b[4:]...) })},
	{Name: "length-of-a-little-endian", About: "The worker sends the length of a result in little-endian order.", Rule: "danga.packet.size-cap",
		Edit: edit.Raw("job_complete_announce", func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[lengthAt:], uint32(len(b)-header))
			return b
		})},
}

// asking are faults in an application's messages.
var asking = []fault{
	{Name: "asks-while-it-waits", About: "The application requests the status of a job while it waits for another job.", Rule: "danga.sync.one-at-a-time",
		Edit: alsoIf(0, "job_status_req J:none:1")},
	{Name: "result-while-it-waits", About: "The application requests a result while it waits for another job.", Rule: "danga.sync.one-at-a-time",
		Edit: alsoIf(0, "job_complete_req J:none:1")},
	{Name: "waits-for-two", About: "The application creates a second type 0 job while it waits for the first.", Rule: "danga.sync.one-at-a-time",
		Edit: alsoIf(0, "job_create_req {NAME} {KEY} {FLAGS} {TYPE} {ARGS}")},
	{Name: "type-of-four", About: "The application creates a job of type 4, which does not exist.", Rule: "danga.create.type-known",
		Edit: edit.Data("job_create_req", func(b []byte) []byte {
			b[bytes.IndexByte(b, 0)+bytes.IndexByte(b[bytes.IndexByte(b, 0)+1:], 0)+3] = 4
			return b
		})},
	{Name: "key-not-ended", About: "The application creates a job without a NUL after the name and the key.", Rule: "danga.args.missing",
		Edit: edit.Data("job_create_req", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte{0}, nil) })},
	{Name: "job-without-a-name", About: "The application creates a job with an empty name.", Rule: "danga.name.not-empty",
		Edit: edit.Data("job_create_req", func(b []byte) []byte { return b[bytes.IndexByte(b, 0):] })},
	{Name: "key-of-any-bytes", About: "The application sends a binary hash as the duplicate key.", Rule: "danga.text.ascii",
		Edit: edit.Data("job_create_req", func(b []byte) []byte {
			at := bytes.IndexByte(b, 0) + 1
			return append(append(bytes.Clone(b[:at]), 0xde, 0xad), b[at:]...)
		})},
	{Name: "key-of-8000-bytes", About: "The application sends a duplicate key of 8000 bytes.", Rule: "danga.text.length-cap",
		Edit: edit.Data("job_create_req", func(b []byte) []byte {
			at := bytes.IndexByte(b, 0) + 1
			return append(append(bytes.Clone(b[:at]), strings.Repeat("k", 8000)...), b[at:]...)
		})},
	{Name: "handle-ended-by-nul", About: "The application sends a NUL after the handle in job_status_req.", Rule: "danga.args.trailing-nul",
		Edit: edit.Data("job_status_req", faults.AppendNUL)},
	{Name: "status-of-nothing", About: "The application sends job_status_req with an empty handle.", Rule: "danga.handle.not-empty",
		Edit: edit.Data("job_status_req", func([]byte) []byte { return nil })},
	{Name: "result-of-nothing", About: "The application sends job_complete_req with an empty handle.", Rule: "danga.handle.not-empty",
		Edit: edit.Data("job_complete_req", func([]byte) []byte { return nil })},
	{Name: "answers-for-the-server", About: "The application sends the reply to its own request, which only the server may send.", Rule: "danga.packet.type-direction",
		Edit: edit.Raw("job_status_req", func(b []byte) []byte {
			b[4] = 0x0a
			return b
		})},
}

// alsoIf sends another packet after the creation of a job of the type.
func alsoIf(kind byte, do string) func(*program) {
	return edit.Change("job_create_req", func(st danga.Step) []danga.Step {
		return []danga.Step{st, {Do: do, If: func(t *task) bool { return t.Type == kind }}}
	})
}
