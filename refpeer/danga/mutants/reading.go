package mutants

import (
	"errors"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

func reads(how func(*line.Conn) (*codec.Message, error)) func(*program) {
	return edit.Has(func(h *line.Habits) { h.Read = how })
}

// Habits that are faults of both roles.
var (
	stubborn = edit.Has(func(h *line.Habits) { h.Stubborn = true })
	falls    = edit.Has(func(h *line.Habits) { h.Falls = true })
)

// reading are faults of an application in taking what comes.
var reading = []fault{
	{Name: "a-read-is-a-packet", About: "An application takes what one read brings for one packet.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Whole)},
	{Name: "a-read-is-a-body", About: "An application reads twice for a packet, and no more.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Once)},
	{Name: "body-with-the-header", About: "An application wants the body of a packet with its header.", Condition: "header-apart", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Together(header))},
	{Name: "drops-what-follows", About: "An application drops what comes in one segment behind a packet.", Condition: "together", Verdict: "hung", Fragile: true, Edit: reads(faults.Alone)},
	{Name: "impatient", About: "An application waits for 100 milliseconds.", Condition: "delays", Verdict: "failed cleanly", Fragile: true, Edit: edit.Has(func(h *line.Habits) { h.Patience = 100 * time.Millisecond })},
	{Name: "handles-of-32-bytes", About: "An application keeps 32 bytes of a handle.", Condition: "long-handles", Verdict: "hung", Edit: edit.Heard(faults.First(faults.UpTo(32)), "job_create_res")},
	{Name: "result-ends-at-nul", About: "An application ends a result at its first NUL.", Condition: "nul-bytes", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.ToNUL), "job_complete_res")},
	{Name: "result-of-a-mebibyte", About: "An application keeps a mebibyte of a result.", Condition: "large", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.UpTo(1<<20)), "job_complete_res")},
	{Name: "empty-is-null", About: "An application makes a word of an empty result.", Condition: "empty", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.Null), "job_complete_res")},
	{Name: "end-not-noticed", About: "An application waits on when its connection has ended.", Condition: "closed-before", Verdict: "hung", Edit: stubborn},
	{Name: "falls-with-the-connection", About: "An application ends when its connection does.", Condition: "closed-within", Verdict: "crashed", Edit: falls},
	{Name: "hopes-for-the-best", About: "An application takes the end of its connection for that of the job.", Condition: "closed-behind", Verdict: "wrong result", Edit: edit.Has(func(h *line.Habits) { h.Hopes = true })},
	{Name: "never-connects-again", About: "An application goes on with a connection that has ended.", Condition: "restarts", Verdict: "not recovered", Edit: edit.Has(func(h *line.Habits) { h.Clings = true })},
}

// hearing are faults of a worker in taking what comes.
var hearing = []fault{
	{Name: "no-job-in-its-sleep", About: "A worker that took a noop for the answer no takes the job that comes for a mistake.", Condition: "needless-noops", Verdict: "failed cleanly",
		Edit: func(p *program) {
			asleep := false
			note := func(s danga.Sequence, is bool) {
				s[0].If = func(*task) bool { asleep = is; return true }
			}
			note(p.Sleep, true)
			note(p.Ask, false)
			p.Heard = func(m *codec.Message) error {
				if m.Type.Name == "job_assign_res" && asleep {
					return errors.New("a job that was not asked for")
				}
				return nil
			}
		}},
	{Name: "workload-ends-at-nul", About: "A worker ends the args at their first NUL.", Condition: "nul-bytes", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.ToNUL), "job_assign_res")},
	{Name: "args-of-a-mebibyte", About: "A worker keeps a mebibyte of the args.", Condition: "large", Verdict: "wrong result", Edit: edit.Heard(faults.Last(faults.UpTo(1<<20)), "job_assign_res")},
	{Name: "worker-drops-what-follows", About: "A worker drops what comes in one segment behind a packet.", Condition: "needless-noops", Verdict: "hung", Fragile: true, Edit: reads(faults.Alone)},
	{Name: "workers-read-is-a-packet", About: "A worker takes what one read brings for one packet.", Condition: "halves", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Whole)},
	{Name: "workers-end-not-noticed", About: "A worker waits on when its connection has ended.", Condition: "closed-before", Verdict: "hung", Edit: stubborn},
	{Name: "worker-falls", About: "A worker ends when its connection does.", Condition: "restarts", Verdict: "crashed", Edit: falls},
}
