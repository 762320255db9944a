package mutants

import (
	"bytes"
	"encoding/binary"

	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
)

// conduct are faults in how a worker goes about its jobs.
var conduct = []fault{
	{Name: "grabs-before-announcing", About: "A worker says what it can do only when there is nothing to do.", Rule: "gearman.worker.announces-first",
		Edit: func(p *program) {
			enter, said := p.Enter, false
			p.Enter = nil
			sleep := p.Sleep
			p.Sleep = nil
			for _, st := range enter {
				due := st.If
				p.Sleep = append(p.Sleep, gearman.Step{Do: st.Do, If: func(t *task) bool { return !said && due(t) }})
			}
			p.Sleep = append(p.Sleep, sleep...)
		}},
	{Name: "sleeps-before-asking", About: "A worker sleeps as soon as it has said what it can do.", Rule: "gearman.worker.asks-before-sleep",
		Edit: edit.Behind("CAN_DO", "PRE_SLEEP")},
	{Name: "sleeps-with-the-question", About: "A worker asks for a job and says at once that it sleeps.", Rule: "gearman.worker.hears-before-sleep",
		Edit: func(p *program) { p.Ask, p.Sleep = append(p.Ask, p.Sleep...), nil }},
	{Name: "noops-passed-over", About: "A worker that is woken sleeps again, three times, before it asks.", Rule: "gearman.worker.asks-when-woken",
		Edit: func(p *program) { p.Naps = 3 }},
	{Name: "completes-twice", About: "A worker sends each result twice.", Rule: "gearman.work.final",
		Edit: edit.Behind("WORK_COMPLETE", "WORK_COMPLETE {HANDLE} {RESULT}")},
	{Name: "fails-what-is-done", About: "A worker says of a job that is done that it failed.", Rule: "gearman.work.final",
		Edit: edit.Behind("WORK_COMPLETE", "WORK_FAIL {HANDLE}")},
	{Name: "completes-what-failed", About: "A worker says of a job that failed that it is done.", Rule: "gearman.work.final",
		Edit: edit.Behind("WORK_FAIL", "WORK_COMPLETE {HANDLE} done")},
	{Name: "completes-anothers-job", About: "A worker gives a result of a job that it was not given.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.Before("WORK_COMPLETE", "WORK_COMPLETE H:elsewhere:1 {RESULT}")},
	{Name: "progress-behind-the-end", About: "A worker tells of progress when the job has ended.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.Behind("WORK_COMPLETE", "WORK_STATUS {HANDLE} 2 2")},
}

// working are faults in the form of what a worker sends.
var working = []fault{
	{Name: "handle-not-ended", About: "No NUL stands between handle and result.", Rule: "gearman.args.missing",
		Edit: edit.Data("WORK_COMPLETE", faults.Joined)},
	{Name: "ability-ended-by-nul", About: "A NUL stands behind the function that a worker can do.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("CAN_DO", faults.NULBehind)},
	{Name: "failure-ended-by-nul", About: "A NUL stands behind the handle of a job that failed.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("WORK_FAIL", faults.NULBehind)},
	{Name: "handle-padded", About: "The handle of a result is padded to 80 bytes.", Rule: "gearman.handle.length",
		Edit: edit.Data("WORK_COMPLETE", func(b []byte) []byte {
			k := bytes.IndexByte(b, 0)
			return append(append(bytes.Clone(b[:k]), bytes.Repeat([]byte{' '}, 80-k)...), b[k:]...)
		})},
	{Name: "handle-forgotten", About: "The handle of a result is empty.", Rule: "gearman.handle.not-empty",
		Edit: edit.Data("WORK_COMPLETE", func(b []byte) []byte { return b[bytes.IndexByte(b, 0):] })},
	{Name: "progress-in-per-cent", About: "Progress is told as 50% of 100%.", Rule: "gearman.number.decimal",
		Edit: edit.Says("WORK_STATUS", "WORK_STATUS {HANDLE} 50% 100%")},
	{Name: "progress-as-a-fraction", About: "Progress is told as 0.5 of 1.", Rule: "gearman.number.decimal",
		Edit: edit.Says("WORK_STATUS", "WORK_STATUS {HANDLE} 0.5 1")},
	{Name: "progress-below-zero", About: "Progress is told as -1 of 1.", Rule: "gearman.number.decimal",
		Edit: edit.Says("WORK_STATUS", "WORK_STATUS {HANDLE} -1 1")},
	{Name: "limit-with-a-unit", About: "A time limit is told in seconds, with an s.", Rule: "gearman.number.decimal",
		Edit: edit.Says("CAN_DO_TIMEOUT", "CAN_DO_TIMEOUT {FN} 60s")},
	{Name: "speaks-as-a-server", About: "Results carry the magic of a server's packets.", Rule: "gearman.packet.magic-direction",
		Edit: edit.Raw("WORK_COMPLETE", func(b []byte) []byte { return append([]byte("\x00RES"), b[4:]...) })},
	{Name: "length-with-the-header", About: "The length of an ability counts the header, too.", Rule: "gearman.args.surplus",
		Edit: edit.Raw("CAN_DO", func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)))
			return b
		})},
	{Name: "length-of-a-little-endian", About: "The length of a result has its least byte first.", Rule: "gearman.packet.size-cap",
		Edit: edit.Raw("WORK_COMPLETE", func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[lengthAt:], uint32(len(b)-header))
			return b
		})},
	{Name: "question-of-no-type", About: "A worker asks for a job by a type that there is not.", Rule: "gearman.packet.type-known",
		Edit: edit.Raw("GRAB_JOB_UNIQ", func(b []byte) []byte {
			b[7] = 77
			return b
		})},
	{Name: "answers-for-the-server", About: "A worker that finds nothing says NO_JOB itself.", Rule: "gearman.packet.type-direction",
		Edit: edit.Before("PRE_SLEEP", "NO_JOB")},
	{Name: "question-with-a-function", About: "A worker names the function for which it wants a job.", Rule: "gearman.args.surplus",
		Edit: edit.Data("GRAB_JOB_UNIQ", func([]byte) []byte { return []byte("f1") })},
}

// asking are faults in what a client sends.
var asking = []fault{
	{Name: "no-unique-id", About: "A job is submitted without the place of the unique ID.", Rule: "gearman.args.missing",
		Edit: edit.Data("SUBMIT_JOB", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte{0}, nil) })},
	{Name: "time-in-words", About: "A job is submitted for tomorrow.", Rule: "gearman.number.decimal",
		Edit: edit.Says("SUBMIT_JOB_EPOCH", "SUBMIT_JOB_EPOCH {FN} {UNIQUE} tomorrow {WORKLOAD}")},
	{Name: "status-of-nothing", About: "The status of a job without a handle is asked for.", Rule: "gearman.handle.not-empty",
		Edit: edit.Data("GET_STATUS", func([]byte) []byte { return nil })},
	{Name: "status-ended-by-nul", About: "A NUL stands behind the handle whose status is asked for.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("GET_STATUS", faults.NULBehind)},
	{Name: "option-ended-by-nul", About: "A NUL stands behind the name of an option.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("OPTION_REQ", faults.NULBehind)},
	{Name: "magic-misspelt", About: "A background job is submitted with another magic.", Rule: "gearman.packet.magic",
		Edit: edit.Raw("SUBMIT_JOB_BG", func(b []byte) []byte {
			b[3] = 'X'
			return b
		})},
	{Name: "no-such-command", About: "A line that is no command goes before a question of status.", Rule: "gearman.admin.command-known",
		Edit: edit.Raw("GET_STATUS", func(b []byte) []byte { return append([]byte("stauts\n"), b...) })},
}
