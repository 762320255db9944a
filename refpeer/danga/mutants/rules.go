package mutants

import (
	"bytes"
	"encoding/binary"
	"strings"

	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/faults"
)

// conduct are faults in how a worker goes about its jobs.
var conduct = []fault{
	{Name: "completes-twice", About: "A worker sends each result twice.", Rule: "danga.complete.no-job",
		Edit: edit.Behind("job_complete_announce", "job_complete_announce {CODE} {RESULT}")},
	{Name: "completes-behind-goodbye", About: "A worker says goodbye before it gives its result.", Rule: "danga.complete.no-job",
		Edit: edit.Before("job_complete_announce", "worker_disconnect")},
	{Name: "completes-before-asking", About: "A worker gives a result before it has asked for a job.", Rule: "danga.complete.no-job",
		Edit: edit.Behind("worker_connect", "job_complete_announce {CODE} {RESULT}")},
	{Name: "completes-with-the-question", About: "A worker asks for a job and gives a result before it has heard the answer.", Rule: "danga.complete.no-job",
		Edit: edit.Behind("job_assign_req", "job_complete_announce {CODE} {RESULT}")},
	{Name: "sleeps-with-the-question", About: "A worker asks for a job and says at once that it sleeps.", Rule: "danga.sleep.hears-first",
		Edit: edit.Behind("job_assign_req", "worker_sleep")},
	{Name: "progress-before-asking", About: "A worker tells of progress before it has asked for a job.", Rule: "danga.status.no-job",
		Edit: edit.Behind("worker_connect", "job_status_announce {DONE} {OF} {LEFT}")},
	{Name: "progress-behind-the-end", About: "A worker tells of progress when it has given its result.", Rule: "danga.status.no-job",
		Edit: edit.Behind("job_complete_announce", "job_status_announce {DONE} {OF} {LEFT}")},
	{Name: "progress-in-its-sleep", About: "A worker that sleeps tells of progress.", Rule: "danga.status.no-job",
		Edit: edit.Behind("worker_sleep", "job_status_announce {DONE} {OF} {LEFT}")},
}

// working are faults in the form of what a worker sends.
var working = []fault{
	{Name: "list-ended-by-nul", About: "A NUL stands behind the last name that a worker can do.", Rule: "danga.args.trailing-nul",
		Edit: edit.Data("worker_connect", faults.NULBehind)},
	{Name: "list-with-a-gap", About: "A worker can do a name that is empty.", Rule: "danga.name.not-empty",
		Edit: edit.Data("worker_connect", func(b []byte) []byte { return append([]byte{0}, b...) })},
	{Name: "list-too-long", About: "A worker can do two thousand names.", Rule: "danga.connect.names-cap",
		Edit: edit.Data("worker_connect", func(b []byte) []byte { return append(b, strings.Repeat("\x00f", 2000)...) })},
	{Name: "ability-not-ascii", About: "A worker can do a name with an umlaut.", Rule: "danga.text.ascii",
		Edit: edit.Data("worker_connect", func(b []byte) []byte { return append(b, "\x00gr\xc3\xb6\xc3\x9fe"...) })},
	{Name: "sleeps-for-a-time", About: "A worker tells how long it sleeps.", Rule: "danga.args.surplus",
		Edit: edit.Data("worker_sleep", func([]byte) []byte { return []byte{0, 0, 0, 10} })},
	{Name: "asks-for-a-name", About: "A worker names the job that it wants.", Rule: "danga.args.surplus",
		Edit: edit.Data("job_assign_req", func([]byte) []byte { return []byte("f1") })},
	{Name: "progress-without-time", About: "Progress is told without the time that remains.", Rule: "danga.args.missing",
		Edit: edit.Data("job_status_announce", func(b []byte) []byte { return b[:8] })},
	{Name: "progress-of-64-bits", About: "Progress is told in numbers of eight bytes.", Rule: "danga.args.surplus",
		Edit: edit.Data("job_status_announce", func(b []byte) []byte {
			var wide []byte
			for ; len(b) > 0; b = b[4:] {
				wide = binary.BigEndian.AppendUint64(wide, uint64(binary.BigEndian.Uint32(b)))
			}
			return wide
		})},
	{Name: "no-code-no-result", About: "An empty result has no code, either.", Rule: "danga.args.missing",
		Edit: edit.Data("job_complete_announce", func([]byte) []byte { return nil })},
	{Name: "noop-to-keep-alive", About: "A worker sends noop.", Rule: "danga.packet.type-direction",
		Edit: edit.Before("job_assign_req", "noop")},
	{Name: "type-of-a-later-draft", About: "A worker asks by a type that the draft has not.", Rule: "danga.packet.type-known",
		Edit: edit.Raw("job_assign_req", func(b []byte) []byte {
			b[4] = 0x1e
			return b
		})},
	{Name: "magic-of-its-own", About: "Results carry another magic than what went before.", Rule: "danga.packet.magic",
		Edit: edit.Raw("job_complete_announce", func(b []byte) []byte { return append([]byte("DONE"), b[4:]...) })},
	{Name: "length-of-a-little-endian", About: "The length of a result has its least byte first.", Rule: "danga.packet.size-cap",
		Edit: edit.Raw("job_complete_announce", func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[lengthAt:], uint32(len(b)-header))
			return b
		})},
}

// asking are faults in what an application sends.
var asking = []fault{
	{Name: "asks-while-it-waits", About: "An application asks for the status of a job while it waits for another.", Rule: "danga.sync.one-at-a-time",
		Edit: alsoIf(0, "job_status_req J:none:1")},
	{Name: "result-while-it-waits", About: "An application asks for a result while it waits for another.", Rule: "danga.sync.one-at-a-time",
		Edit: alsoIf(0, "job_complete_req J:none:1")},
	{Name: "waits-for-two", About: "An application waits for two jobs at once.", Rule: "danga.sync.one-at-a-time",
		Edit: alsoIf(0, "job_create_req {NAME} {KEY} {FLAGS} {TYPE} {ARGS}")},
	{Name: "type-of-four", About: "A job is created with a type that there is not.", Rule: "danga.create.type-known",
		Edit: edit.Data("job_create_req", func(b []byte) []byte {
			b[bytes.IndexByte(b, 0)+bytes.IndexByte(b[bytes.IndexByte(b, 0)+1:], 0)+3] = 4
			return b
		})},
	{Name: "key-not-ended", About: "A job is created without the NULs behind its name and key.", Rule: "danga.args.missing",
		Edit: edit.Data("job_create_req", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte{0}, nil) })},
	{Name: "job-without-a-name", About: "A job is created whose name is empty.", Rule: "danga.name.not-empty",
		Edit: edit.Data("job_create_req", func(b []byte) []byte { return b[bytes.IndexByte(b, 0):] })},
	{Name: "key-of-any-bytes", About: "A duplicate key is a hash as it is, not as text.", Rule: "danga.text.ascii",
		Edit: edit.Data("job_create_req", func(b []byte) []byte {
			at := bytes.IndexByte(b, 0) + 1
			return append(append(bytes.Clone(b[:at]), 0xde, 0xad), b[at:]...)
		})},
	{Name: "key-of-8000-bytes", About: "A duplicate key is a whole document.", Rule: "danga.text.length-cap",
		Edit: edit.Data("job_create_req", func(b []byte) []byte {
			at := bytes.IndexByte(b, 0) + 1
			return append(append(bytes.Clone(b[:at]), strings.Repeat("k", 8000)...), b[at:]...)
		})},
	{Name: "handle-ended-by-nul", About: "A NUL stands behind the handle whose status is asked for.", Rule: "danga.args.trailing-nul",
		Edit: edit.Data("job_status_req", faults.NULBehind)},
	{Name: "status-of-nothing", About: "The status of a job without a handle is asked for.", Rule: "danga.handle.not-empty",
		Edit: edit.Data("job_status_req", func([]byte) []byte { return nil })},
	{Name: "result-of-nothing", About: "The result of a job without a handle is asked for.", Rule: "danga.handle.not-empty",
		Edit: edit.Data("job_complete_req", func([]byte) []byte { return nil })},
	{Name: "answers-for-the-server", About: "An application sends the answer to its own question.", Rule: "danga.packet.type-direction",
		Edit: edit.Raw("job_status_req", func(b []byte) []byte {
			b[4] = 0x0a
			return b
		})},
}

// alsoIf sends something else, too, behind the creation of a job of the type.
func alsoIf(kind byte, do string) func(*program) {
	return edit.Change("job_create_req", func(st danga.Step) []danga.Step {
		return []danga.Step{st, {Do: do, If: func(t *task) bool { return t.Type == kind }}}
	})
}
