package mutants

import (
	"errors"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

func reads(how func(*line.Conn) (*codec.Message, error)) func(*program) {
	return edit.Has(func(h *line.Habits) { h.Read = how })
}

// reading are faults of a client in taking what comes.
var reading = []fault{
	{Name: "a-read-is-a-packet", About: "A client takes what one read brings for one packet.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Whole)},
	{Name: "a-read-is-a-body", About: "A client reads twice for a packet, and no more.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Once)},
	{Name: "body-with-the-header", About: "A client wants the body of a packet with its header.", Condition: "header-apart", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Together(header))},
	{Name: "drops-what-follows", About: "A client drops what comes in one segment behind a packet.", Condition: "together", Verdict: "hung", Fragile: true, Edit: reads(faults.Alone)},
	{Name: "impatient", About: "A client waits for 100 milliseconds.", Condition: "delays", Verdict: "failed cleanly", Fragile: true, Edit: func(p *program) { p.Patience = 100 * time.Millisecond }},
	{Name: "first-come-first-served", About: "A client takes a result for that of any job that waits.", Condition: "interleaved", Verdict: "wrong result", Edit: func(p *program) { p.Mixes = true }},
	{Name: "handles-of-32-bytes", About: "A client keeps 32 bytes of a handle.", Condition: "long-handles", Verdict: "hung", Edit: edit.Heard(faults.First(faults.UpTo(32)), "JOB_CREATED")},
	{Name: "result-ends-at-nul", About: "A client ends a result at its first NUL.", Condition: "nul-bytes", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.ToNUL), "WORK_COMPLETE")},
	{Name: "result-of-a-mebibyte", About: "A client keeps a mebibyte of a result.", Condition: "large", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.UpTo(1<<20)), "WORK_COMPLETE")},
	{Name: "empty-is-null", About: "A client makes a word of an empty result.", Condition: "empty", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.Null), "WORK_COMPLETE")},
	{Name: "deaf-to-errors", About: "A client passes over ERROR.", Condition: "error-answers", Verdict: "hung", Edit: func(p *program) { p.Deaf = true }},
	{Name: "end-not-noticed", About: "A client waits on when its connection has ended.", Condition: "closed-before", Verdict: "hung", Edit: func(p *program) { p.Stubborn = true }},
	{Name: "falls-with-the-connection", About: "A client ends when its connection does.", Condition: "closed-within", Verdict: "crashed", Edit: func(p *program) { p.Falls = true }},
	{Name: "hopes-for-the-best", About: "A client takes the end of its connection for that of the job.", Condition: "closed-behind", Verdict: "wrong result", Edit: func(p *program) { p.Hopes = true }},
	{Name: "never-connects-again", About: "A client goes on with a connection that has ended.", Condition: "restarts", Verdict: "not recovered", Edit: func(p *program) { p.Clings = true }},
}

// hearing are faults of a worker in taking what comes.
var hearing = []fault{
	{Name: "noop-is-an-error", About: "A worker that does not sleep takes NOOP for a mistake.", Condition: "needless-noops", Verdict: "failed cleanly",
		Edit: func(p *program) {
			asleep := false
			note := func(s gearman.Sequence, is bool) {
				s[0].If = func(*task) bool { asleep = is; return true }
			}
			note(p.Sleep, true)
			note(p.Ask, false)
			p.Heard = func(m *codec.Message) error {
				if m.Type.Name == "NOOP" && !asleep {
					return errors.New("NOOP is unexpected")
				}
				return nil
			}
		}},
	{Name: "workers-handles-of-32-bytes", About: "A worker keeps 32 bytes of a handle.", Rule: "gearman.worker.uses-the-handle", Condition: "long-handles", Verdict: "wrong result",
		Edit: edit.Heard(faults.First(faults.UpTo(32)), "JOB_ASSIGN", "JOB_ASSIGN_UNIQ")},
	{Name: "workload-ends-at-nul", About: "A worker ends a workload at its first NUL.", Condition: "nul-bytes", Verdict: "wrong result",
		Edit: edit.Heard(faults.Last(faults.ToNUL), "JOB_ASSIGN", "JOB_ASSIGN_UNIQ")},
	{Name: "worker-drops-what-follows", About: "A worker drops what comes in one segment behind a packet.", Condition: "needless-noops", Fragile: true, Edit: reads(faults.Alone), Verdict: "hung"},
	{Name: "workers-end-not-noticed", About: "A worker waits on when its connection has ended.", Condition: "closed-before", Verdict: "hung", Edit: func(p *program) { p.Stubborn = true }},
	{Name: "worker-deaf-to-errors", About: "A worker passes over ERROR.", Condition: "error-answers", Verdict: "hung", Edit: func(p *program) { p.Deaf = true }},
	{Name: "worker-falls", About: "A worker ends when its connection does.", Condition: "restarts", Verdict: "crashed", Edit: func(p *program) { p.Falls = true }},
}
