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
	return edit.Has(func(h *line.Quirks) { h.Read = how })
}

// reading are faults of a client in receiving messages.
var reading = []fault{
	{Name: "a-read-is-a-packet", About: "The client expects each read to return exactly one packet.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.ReadWhole)},
	{Name: "a-read-is-a-body", About: "The client reads at most twice for a packet.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Once)},
	{Name: "body-with-the-header", About: "The client expects a packet's body in the same read as its header.", Condition: "header-apart", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Together(header))},
	{Name: "drops-what-follows", About: "The client discards bytes that follow a packet in the same segment.", Condition: "together", Verdict: "hung", Fragile: true, Edit: reads(faults.Alone)},
	{Name: "impatient", About: "The client gives up after 100 milliseconds without a reply.", Condition: "delays", Verdict: "failed cleanly", Fragile: true, Edit: func(p *program) { p.Timeout = 100 * time.Millisecond }},
	{Name: "first-come-first-served", About: "The client assigns each result to any waiting job, whatever the handle.", Condition: "interleaved", Verdict: "wrong result", Edit: func(p *program) { p.MixesResults = true }},
	{Name: "handles-of-32-bytes", About: "The client truncates handles at 32 bytes.", Condition: "long-handles", Verdict: "hung", Edit: edit.EditReceived(faults.First(faults.UpTo(32)), "JOB_CREATED")},
	{Name: "result-ends-at-nul", About: "The client truncates a result at its first NUL.", Condition: "nul-bytes", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.ToNUL), "WORK_COMPLETE")},
	{Name: "result-of-a-mebibyte", About: "The client truncates a result at 1 MiB.", Condition: "large", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.UpTo(1<<20)), "WORK_COMPLETE")},
	{Name: "empty-is-null", About: "The client reports an empty result as the word \"null\".", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.Null), "WORK_COMPLETE")},
	{Name: "deaf-to-errors", About: "The client ignores ERROR.", Condition: "error-answers", Verdict: "hung", Edit: func(p *program) { p.IgnoresErrors = true }},
	{Name: "end-not-noticed", About: "The client keeps waiting after the server has closed the connection.", Condition: "closed-before", Verdict: "hung", Edit: func(p *program) { p.IgnoresEOF = true }},
	{Name: "falls-with-the-connection", About: "The client crashes when the server closes the connection.", Condition: "closed-within", Verdict: "crashed", Edit: func(p *program) { p.ExitsOnEOF = true }},
	{Name: "hopes-for-the-best", About: "The client reports a result when the server closes the connection without sending one.", Condition: "closed-after", Verdict: "wrong result", Edit: func(p *program) { p.EOFEndsJob = true }},
	{Name: "never-connects-again", About: "The client keeps using a closed connection.", Condition: "restarts", Verdict: "not recovered", Edit: func(p *program) { p.ReusesFailed = true }},
}

// receiveFaults are faults of a worker in receiving messages.
var receiveFaults = []fault{
	{Name: "noop-is-an-error", About: "The worker rejects NOOP while it is not asleep.", Condition: "needless-noops", Verdict: "failed cleanly",
		Edit: func(p *program) {
			asleep := false
			note := func(s gearman.Sequence, is bool) {
				s[0].If = func(*task) bool { asleep = is; return true }
			}
			note(p.Sleep, true)
			note(p.Ask, false)
			p.Edit = func(m *codec.Message) error {
				if m.Type.Name == "NOOP" && !asleep {
					return errors.New("NOOP is unexpected")
				}
				return nil
			}
		}},
	{Name: "workers-handles-of-32-bytes", About: "The worker truncates handles at 32 bytes.", Rule: "gearman.worker.uses-the-handle", Condition: "long-handles", Verdict: "wrong result",
		Edit: edit.EditReceived(faults.First(faults.UpTo(32)), "JOB_ASSIGN", "JOB_ASSIGN_UNIQ")},
	{Name: "workload-ends-at-nul", About: "The worker truncates a workload at its first NUL.", Condition: "nul-bytes", Verdict: "wrong result",
		Edit: edit.EditReceived(faults.Last(faults.ToNUL), "JOB_ASSIGN", "JOB_ASSIGN_UNIQ")},
	{Name: "worker-drops-what-follows", About: "The worker discards bytes that follow a packet in the same segment.", Condition: "needless-noops", Fragile: true, Edit: reads(faults.Alone), Verdict: "hung"},
	{Name: "workers-end-not-noticed", About: "The worker keeps waiting after the server has closed the connection.", Condition: "closed-before", Verdict: "hung", Edit: func(p *program) { p.IgnoresEOF = true }},
	{Name: "worker-deaf-to-errors", About: "The worker ignores ERROR.", Condition: "error-answers", Verdict: "hung", Edit: func(p *program) { p.IgnoresErrors = true }},
	{Name: "worker-falls", About: "The worker crashes when the server closes the connection.", Condition: "restarts", Verdict: "crashed", Edit: func(p *program) { p.ExitsOnEOF = true }},
}
