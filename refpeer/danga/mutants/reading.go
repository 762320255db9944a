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
	return edit.Has(func(h *line.Quirks) { h.Read = how })
}

// Quirks that are faults of both roles.
var (
	ignoresEOF = edit.Has(func(h *line.Quirks) { h.IgnoresEOF = true })
	exitsOnEOF = edit.Has(func(h *line.Quirks) { h.ExitsOnEOF = true })
)

// reading are faults of an application in receiving messages.
var reading = []fault{
	{Name: "a-read-is-a-packet", About: "The application expects each read to return exactly one packet.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.ReadWhole)},
	{Name: "a-read-is-a-body", About: "The application reads at most twice for a packet.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Once)},
	{Name: "body-with-the-header", About: "The application expects a packet's body in the same read as its header.", Condition: "header-apart", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Together(header))},
	{Name: "drops-what-follows", About: "The application discards bytes that follow a packet in the same segment.", Condition: "together", Verdict: "hung", Fragile: true, Edit: reads(faults.Alone)},
	{Name: "impatient", About: "The application gives up after 100 milliseconds without a reply.", Condition: "delays", Verdict: "failed cleanly", Fragile: true, Edit: edit.Has(func(h *line.Quirks) { h.Timeout = 100 * time.Millisecond })},
	{Name: "handles-of-32-bytes", About: "The application truncates handles at 32 bytes.", Condition: "long-handles", Verdict: "wrong result", Edit: edit.EditReceived(faults.First(faults.UpTo(32)), "job_create_res")},
	{Name: "result-ends-at-nul", About: "The application truncates a result at its first NUL.", Condition: "nul-bytes", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.ToNUL), "job_complete_res")},
	{Name: "result-of-a-mebibyte", About: "The application truncates a result at 1 MiB.", Condition: "large", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.UpTo(1<<20)), "job_complete_res")},
	{Name: "empty-is-null", About: "The application reports an empty result as the word \"null\".", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.Null), "job_complete_res")},
	{Name: "end-not-noticed", About: "The application keeps waiting after the server has closed the connection.", Condition: "closed-before", Verdict: "hung", Edit: ignoresEOF},
	{Name: "falls-with-the-connection", About: "The application crashes when the server closes the connection.", Condition: "closed-within", Verdict: "crashed", Edit: exitsOnEOF},
	{Name: "hopes-for-the-best", About: "The application reports a result when the server closes the connection without sending one.", Condition: "closed-after", Verdict: "wrong result", Edit: edit.Has(func(h *line.Quirks) { h.EOFEndsJob = true })},
	{Name: "never-connects-again", About: "The application keeps using a closed connection.", Condition: "restarts", Verdict: "not recovered", Edit: edit.Has(func(h *line.Quirks) { h.ReusesFailed = true })},
}

// receiveFaults are faults of a worker in receiving messages.
var receiveFaults = []fault{
	{Name: "no-job-in-its-sleep", About: "The worker rejects a job that arrives after a noop that it took for the reply to its request.", Condition: "needless-noops", Verdict: "failed cleanly",
		Edit: func(p *program) {
			asleep := false
			note := func(s danga.Sequence, is bool) {
				s[0].If = func(*task) bool { asleep = is; return true }
			}
			note(p.Sleep, true)
			note(p.Ask, false)
			p.Edit = func(m *codec.Message) error {
				if m.Type.Name == "job_assign_res" && asleep {
					return errors.New("a job that was not asked for")
				}
				return nil
			}
		}},
	{Name: "workload-ends-at-nul", About: "The worker truncates args at their first NUL.", Condition: "nul-bytes", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.ToNUL), "job_assign_res")},
	{Name: "args-of-a-mebibyte", About: "The worker truncates args at 1 MiB.", Condition: "large", Verdict: "wrong result", Edit: edit.EditReceived(faults.Last(faults.UpTo(1<<20)), "job_assign_res")},
	{Name: "worker-drops-what-follows", About: "The worker discards bytes that follow a packet in the same segment.", Condition: "needless-noops", Verdict: "hung", Fragile: true, Edit: reads(faults.Alone)},
	{Name: "workers-read-is-a-packet", About: "The worker expects each read to return exactly one packet.", Condition: "halves", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.ReadWhole)},
	{Name: "workers-end-not-noticed", About: "The worker keeps waiting after the server has closed the connection.", Condition: "closed-before", Verdict: "hung", Edit: ignoresEOF},
	{Name: "worker-falls", About: "The worker crashes when the server closes the connection.", Condition: "restarts", Verdict: "crashed", Edit: exitsOnEOF},
}
