package mutants

import (
	"bytes"
	"encoding/binary"

	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
)

// orderFaults are faults in the order of a worker's messages.
var orderFaults = []fault{
	{Name: "grabs-before-announcing", About: "The worker sends CAN_DO only after it has received NO_JOB.", Rule: "gearman.worker.announces-first",
		Edit: func(p *program) {
			enter, said := p.Enter, false
			p.Enter = nil
			sleep := p.Sleep
			p.Sleep = nil
			for _, st := range enter {
				condition := st.If
				p.Sleep = append(p.Sleep, gearman.Step{Do: st.Do, If: func(t *task) bool { return !said && condition(t) }})
			}
			p.Sleep = append(p.Sleep, sleep...)
		}},
	{Name: "sleeps-before-asking", About: "The worker sends PRE_SLEEP after CAN_DO without sending GRAB_JOB first.", Rule: "gearman.worker.asks-before-sleep",
		Edit: edit.After("CAN_DO", "PRE_SLEEP")},
	{Name: "sleeps-with-the-question", About: "The worker sends PRE_SLEEP immediately after GRAB_JOB, before the reply.", Rule: "gearman.worker.hears-before-sleep",
		Edit: func(p *program) { p.Ask, p.Sleep = append(p.Ask, p.Sleep...), nil }},
	{Name: "noops-passed-over", About: "The worker ignores three NOOP packets before it sends GRAB_JOB.", Rule: "gearman.worker.asks-when-woken",
		Edit: func(p *program) { p.ExtraSleeps = 3 }},
	{Name: "completes-twice", About: "The worker sends each result twice.", Rule: "gearman.work.final",
		Edit: edit.After("WORK_COMPLETE", "WORK_COMPLETE {HANDLE} {RESULT}")},
	{Name: "fails-what-is-done", About: "The worker sends WORK_FAIL after WORK_COMPLETE.", Rule: "gearman.work.final",
		Edit: edit.After("WORK_COMPLETE", "WORK_FAIL {HANDLE}")},
	{Name: "completes-what-failed", About: "The worker sends WORK_COMPLETE after WORK_FAIL.", Rule: "gearman.work.final",
		Edit: edit.After("WORK_FAIL", "WORK_COMPLETE {HANDLE} done")},
	{Name: "completes-anothers-job", About: "The worker sends a result for a job that it does not have.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.Before("WORK_COMPLETE", "WORK_COMPLETE H:elsewhere:1 {RESULT}")},
	{Name: "fails-after-exception", About: "The worker sends WORK_FAIL after WORK_EXCEPTION.", Rule: "gearman.work.final",
		Edit: edit.After("WORK_EXCEPTION", "WORK_FAIL {HANDLE}")},
	{Name: "completes-after-exception", About: "The worker sends WORK_COMPLETE after WORK_EXCEPTION.", Rule: "gearman.work.final",
		Edit: edit.After("WORK_EXCEPTION", "WORK_COMPLETE {HANDLE} {RESULT}")},
	{Name: "warns-after-exception", About: "The worker sends WORK_WARNING after WORK_EXCEPTION.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.After("WORK_EXCEPTION", "WORK_WARNING {HANDLE} late")},
	{Name: "data-after-the-failure", About: "The worker sends WORK_DATA after WORK_FAIL.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.After("WORK_FAIL", "WORK_DATA {HANDLE} late")},
	{Name: "data-with-the-function", About: "The worker sends WORK_DATA with the function instead of the handle.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.SendInstead("WORK_DATA", "WORK_DATA {FN} {WORKLOAD}")},
	{Name: "warning-with-the-function", About: "The worker sends WORK_WARNING with the function instead of the handle.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.SendInstead("WORK_WARNING", "WORK_WARNING {FN} {WORKLOAD}")},
	{Name: "progress-after-the-end", About: "The worker sends progress after the result.", Rule: "gearman.worker.uses-the-handle",
		Edit: edit.After("WORK_COMPLETE", "WORK_STATUS {HANDLE} 2 2")},
}

// working are faults in the format of a worker's messages.
var working = []fault{
	{Name: "handle-not-ended", About: "The worker sends a result without a NUL after the handle.", Rule: "gearman.args.missing",
		Edit: edit.Data("WORK_COMPLETE", faults.WithoutFirstNUL)},
	{Name: "ability-ended-by-nul", About: "The worker sends a NUL after the function in CAN_DO.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("CAN_DO", faults.AppendNUL)},
	{Name: "failure-ended-by-nul", About: "The worker sends a NUL after the handle in WORK_FAIL.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("WORK_FAIL", faults.AppendNUL)},
	{Name: "handle-padded", About: "The worker pads the handle of a result to 80 bytes.", Rule: "gearman.handle.length",
		Edit: edit.Data("WORK_COMPLETE", func(b []byte) []byte {
			k := bytes.IndexByte(b, 0)
			return append(append(bytes.Clone(b[:k]), bytes.Repeat([]byte{' '}, 80-k)...), b[k:]...)
		})},
	{Name: "handle-forgotten", About: "The worker sends a result with an empty handle.", Rule: "gearman.handle.not-empty",
		Edit: edit.Data("WORK_COMPLETE", func(b []byte) []byte { return b[bytes.IndexByte(b, 0):] })},
	{Name: "progress-in-per-cent", About: "The worker sends the numbers of its progress with percent signs, as 50% of 100%.", Rule: "gearman.number.decimal",
		Edit: edit.SendInstead("WORK_STATUS", "WORK_STATUS {HANDLE} 50% 100%")},
	{Name: "progress-as-a-fraction", About: "The worker sends progress as 0.5 of 1.", Rule: "gearman.number.decimal",
		Edit: edit.SendInstead("WORK_STATUS", "WORK_STATUS {HANDLE} 0.5 1")},
	{Name: "progress-below-zero", About: "The worker sends progress with a negative numerator, -1 of 1.", Rule: "gearman.number.decimal",
		Edit: edit.SendInstead("WORK_STATUS", "WORK_STATUS {HANDLE} -1 1")},
	{Name: "limit-with-a-unit", About: "The worker sends the timeout in CAN_DO_TIMEOUT with the unit s.", Rule: "gearman.number.decimal",
		Edit: edit.SendInstead("CAN_DO_TIMEOUT", "CAN_DO_TIMEOUT {FN} 60s")},
	{Name: "speaks-as-a-server", About: "The worker sends results with the magic of responses.", Rule: "gearman.packet.magic-direction",
		Edit: edit.Raw("WORK_COMPLETE", func(b []byte) []byte { return append([]byte("\x00RES"), b[4:]...) })},
	{Name: "length-with-the-header", About: "The worker includes the header in the size of CAN_DO.", Rule: "gearman.args.surplus",
		Edit: edit.Raw("CAN_DO", func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)))
			return b
		})},
	{Name: "length-of-a-little-endian", About: "The worker sends the size of a result in little-endian order.", Rule: "gearman.packet.size-cap",
		Edit: edit.Raw("WORK_COMPLETE", func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[lengthAt:], uint32(len(b)-header))
			return b
		})},
	{Name: "question-of-no-type", About: "The worker requests a job with a packet type that does not exist.", Rule: "gearman.packet.type-known",
		Edit: edit.Raw("GRAB_JOB_UNIQ", func(b []byte) []byte {
			b[7] = 77
			return b
		})},
	{Name: "answers-for-the-server", About: "The worker sends NO_JOB, which only the server may send, after it has received NO_JOB.", Rule: "gearman.packet.type-direction",
		Edit: edit.Before("PRE_SLEEP", "NO_JOB")},
	{Name: "question-with-a-function", About: "The worker sends GRAB_JOB with a function as an argument.", Rule: "gearman.args.surplus",
		Edit: edit.Data("GRAB_JOB_UNIQ", func([]byte) []byte { return []byte("f1") })},
}

// cut truncates a message to its first n bytes.
func cut(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:min(n, len(b))] } }

// longer announces one byte more than follows the header.
func longer(b []byte) []byte {
	binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)-header+1))
	return b
}

// cutShort are messages that a worker sends incompletely.
var cutShort = []fault{
	{Name: "half-a-header", About: "The worker sends only half of the header of GRAB_JOB.", Rule: "gearman.message.complete", Verdict: "hung",
		Edit: edit.Raw("GRAB_JOB_UNIQ", cut(header/2))},
	{Name: "failure-without-handle", About: "The worker sends only the header of WORK_FAIL.", Rule: "gearman.message.complete", Verdict: "wrong result",
		Edit: edit.Raw("WORK_FAIL", cut(header))},
	{Name: "exception-too-short", About: "The worker announces one byte more than it sends in WORK_EXCEPTION.", Rule: "gearman.message.complete", Verdict: "wrong result",
		Edit: edit.Raw("WORK_EXCEPTION", longer)},
}

// cutShortByClient are messages that a client sends incompletely.
var cutShortByClient = []fault{
	{Name: "half-a-submission", About: "The client sends only half of a SUBMIT_JOB packet.", Rule: "gearman.message.complete", Verdict: "hung",
		Edit: edit.Raw("SUBMIT_JOB", func(b []byte) []byte { return b[:len(b)/2] })},
	{Name: "submission-too-short", About: "The client announces one byte more than it sends in SUBMIT_JOB.", Rule: "gearman.message.complete", Verdict: "hung",
		Edit: edit.Raw("SUBMIT_JOB", longer)},
	{Name: "echo-without-data", About: "The client sends only the header of ECHO_REQ.", Rule: "gearman.message.complete", Verdict: "hung",
		Edit: edit.Raw("ECHO_REQ", cut(header))},
	{Name: "status-without-handle", About: "The client sends only the header of GET_STATUS.", Rule: "gearman.message.complete", Verdict: "hung",
		Edit: edit.Raw("GET_STATUS", cut(header))},
	{Name: "background-without-workload", About: "The client announces one byte more than it sends in SUBMIT_JOB_BG.", Rule: "gearman.message.complete", Verdict: "hung",
		Edit: edit.Raw("SUBMIT_JOB_BG", longer)},
	{Name: "high-priority-cut", About: "The client sends all but the last byte of SUBMIT_JOB_HIGH.", Rule: "gearman.message.complete", Verdict: "hung",
		Edit: edit.Raw("SUBMIT_JOB_HIGH", func(b []byte) []byte { return b[:len(b)-1] })},
}

// asking are faults in a client's messages.
var asking = []fault{
	{Name: "no-unique-id", About: "The client sends SUBMIT_JOB without the unique ID argument.", Rule: "gearman.args.missing",
		Edit: edit.Data("SUBMIT_JOB", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte{0}, nil) })},
	{Name: "time-in-words", About: "The client sends SUBMIT_JOB_EPOCH with the time \"tomorrow\".", Rule: "gearman.number.decimal",
		Edit: edit.SendInstead("SUBMIT_JOB_EPOCH", "SUBMIT_JOB_EPOCH {FN} {UNIQUE} tomorrow {WORKLOAD}")},
	{Name: "status-of-nothing", About: "The client sends GET_STATUS with an empty handle.", Rule: "gearman.handle.not-empty",
		Edit: edit.Data("GET_STATUS", func([]byte) []byte { return nil })},
	{Name: "status-ended-by-nul", About: "The client sends a NUL after the handle in GET_STATUS.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("GET_STATUS", faults.AppendNUL)},
	{Name: "option-ended-by-nul", About: "The client sends a NUL after the option in OPTION_REQ.", Rule: "gearman.args.trailing-nul",
		Edit: edit.Data("OPTION_REQ", faults.AppendNUL)},
	{Name: "magic-misspelt", About: "The client sends SUBMIT_JOB_BG with an unknown magic.", Rule: "gearman.packet.magic",
		Edit: edit.Raw("SUBMIT_JOB_BG", func(b []byte) []byte {
			b[3] = 'X'
			return b
		})},
	{Name: "no-such-command", About: "The client sends an unknown text command before GET_STATUS.", Rule: "gearman.admin.command-known",
		Edit: edit.Raw("GET_STATUS", func(b []byte) []byte { return append([]byte("stauts\n"), b...) })},
}
