package mutants

import (
	"bytes"
	"context"
	"errors"

	"jobwire/codec"
	"jobwire/refpeer/gearmonkey"
)

// priority returns the condition that a job has the priority.
func priority(name string) func(*task) bool {
	return func(t *task) bool { return string(t.Priority) == name }
}

// creating are faults of Client.run without options.
var creating = []fault{
	{Name: "normal-is-low", About: "The client puts jobs of normal priority into the low queue.",
		KilledBy: `run.normal run.normal-by-name run.again run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input run.goes-on
			blocking.success blocking.times-out blocking.goes-on-after-time-out rollcall.one rollcall.several rollcall.once`,
		Edit: func(p *program) {
			change(p, "LPUSH_QUEUE", func(s step) []step {
				return []step{{Do: "LPUSH_QUEUE {FN} low {ID}", If: priority("normal")},
					{Do: s.Do, If: func(t *task) bool { return s.If(t) && !priority("normal")(t) }}}
			})
		}},
	{Name: "priority-ignored", About: "The client puts jobs of every priority except scheduled into the normal queue.",
		KilledBy: "run.high run.low run.two-functions blocking.high rollcall.blocking", Edit: sendInstead("LPUSH_QUEUE", "LPUSH_QUEUE {FN} normal {ID}")},
	{Name: "scheduled-in-milliseconds", About: "The client sends the time of a scheduled job in milliseconds.",
		KilledBy: "run.scheduled run.scheduled-in-the-past", Edit: sendInstead("ZADD_SCHEDULED", "ZADD_SCHEDULED {FN} {SCHEDULED}000 {ID}")},
	{Name: "past-not-scheduled", About: "The client puts a scheduled job whose time has passed into the normal queue.",
		KilledBy: "run.scheduled-in-the-past", Edit: func(p *program) {
			over := func(t *task) bool { return priority("scheduled")(t) && len(t.Scheduled) < 10 }
			change(p, "ZADD_SCHEDULED", func(s step) []step {
				return []step{{Do: "LPUSH_QUEUE {FN} normal {ID}", If: over},
					{Do: s.Do, If: func(t *task) bool { return s.If(t) && !over(t) }}}
			})
		}},
	{Name: "scheduled-and-queued", About: "The client also puts a scheduled job into the normal queue.",
		KilledBy: "run.scheduled run.scheduled-in-the-past", Edit: after("ZADD_SCHEDULED", "LPUSH_QUEUE {FN} normal {ID}")},
	{Name: "queued-twice", About: "The client puts each job into its queue twice.",
		KilledBy: queues, Edit: twice("LPUSH_QUEUE")},
	{Name: "pushed-at-the-wrong-end", About: "The client pushes jobs at the end from which workers pop.",
		KilledBy: queues, Edit: sendInstead("LPUSH_QUEUE", "command RPUSH queue:{FN}:{PRIO} {ID}")},
	{Name: "creation-not-announced", About: "The client publishes no create event.",
		KilledBy: creates, Edit: drop("PUBLISH_CREATE")},
	{Name: "created-for-create", About: "The client publishes the event \"created\" instead of \"create\".",
		KilledBy: creates, Edit: sendInstead("PUBLISH_CREATE", "command PUBLISH channel:{FN} created:{ID}")},
	{Name: "announced-before-its-data", About: "The client publishes the create event before it stores the job's data.",
		KilledBy: creates, Edit: swap("HMSET_IDLE", "PUBLISH_CREATE")},
	{Name: "queued-before-announced", About: "The client queues the job before it publishes the create event.",
		KilledBy: queues + " run.scheduled run.scheduled-in-the-past", Edit: swap("PUBLISH_CREATE", "LPUSH_QUEUE")},
	{Name: "queued-before-its-data", About: "The client queues the job before it stores the job's data.",
		KilledBy: creates, Edit: swap("HMSET_IDLE", "LPUSH_QUEUE")},
	{Name: "status-new", About: "The client stores the status \"new\" instead of \"idle\".",
		KilledBy: creates + " look.idle", Edit: sendInstead("HMSET_IDLE", "command HMSET job:{FN}:{ID} status new input {INPUT}")},
	{Name: "input-quoted", About: "The client stores the input with the quotes that the listing in the specification shows.",
		KilledBy: creates + " look.all-fields", Edit: sendInstead("HMSET_IDLE", `command HMSET job:{FN}:{ID} status idle input "\"{INPUT}\""`)},
	{Name: "input-ends-at-its-nul", About: "The client truncates the input at its first NUL.",
		KilledBy: "run.line-ends", Edit: first("HMSET_IDLE", func(t *task) error { t.Input, _, _ = bytes.Cut(t.Input, []byte{0}); return nil })},
	{Name: "placeholder-in-input-substituted", About: "The client replaces text in the input that looks like a placeholder.",
		KilledBy: "run.quotes", Edit: first("HMSET_IDLE", func(t *task) error {
			t.Input = bytes.ReplaceAll(t.Input, []byte("{INPUT}"), nil)
			return nil
		})},
	{Name: "long-input-cut", About: "The client truncates the input at 64 KiB.",
		KilledBy: "run.long-input", Edit: first("HMSET_IDLE", func(t *task) error { t.Input = t.Input[:min(len(t.Input), 1<<16)]; return nil })},
	{Name: "empty-input-left-out", About: "The client does not store an empty input.",
		KilledBy: "run.empty-input", Edit: func(p *program) {
			change(p, "HMSET_IDLE", func(s step) []step {
				empty := func(t *task) bool { return len(t.Input) == 0 }
				return []step{{Do: "command HMSET job:{FN}:{ID} status idle", If: empty},
					{Do: s.Do, If: func(t *task) bool { return !empty(t) }}}
			})
		}},
	{Name: "function-ends-at-its-blank", About: "The client truncates the function name at its first space.",
		KilledBy: "run.odd-function", Edit: first("INCR_UID", func(t *task) error { t.Function, _, _ = bytes.Cut(t.Function, []byte(" ")); return nil })},
	{Name: "uid-of-the-first-function", About: "The client takes all IDs from the counter of its first function.",
		KilledBy: "run.two-functions run.goes-on", Edit: stateful(func(fn *string) func(*program) {
			return func(p *program) {
				change(p, "INCR_UID", func(s step) []step {
					return []step{{Do: "before-INCR_UID", Local: func(_ context.Context, t *task) error {
						if *fn == "" {
							*fn = string(t.Function)
						}
						t.SHA1, t.Function = t.Function, []byte(*fn)
						return nil
					}}, s, {Do: "after-INCR_UID", Local: func(_ context.Context, t *task) error { t.Function = t.SHA1; return nil }}}
				})
			}
		})},
	{Name: "id-of-the-first-job", About: "The client stores all jobs under the ID of the first job.",
		KilledBy: `run.again run.great-id run.announced blocking.lock-was-there blocking.goes-on-after-time-out blocking.one-by-one rollcall.one rollcall.several rollcall.blocking`,
		Edit: stateful(func(id *string) func(*program) {
			return first("HMSET_IDLE", func(t *task) error {
				if *id == "" {
					*id = string(t.ID)
				}
				t.ID = []byte(*id)
				return nil
			})
		})},
	{Name: "id-of-53-bits", About: "The client keeps IDs as floating-point numbers, which changes large IDs.",
		KilledBy: "run.great-id", Edit: then("INCR_UID", func(t *task) {
			if n, _ := codec.ParseNumber(t.ID); n > 1<<53 {
				t.ID = append(t.ID[:len(t.ID)-3], "000"...)
			}
		})},
	{Name: "high-job-id-wrong", About: "The client returns a wrong ID to its caller for jobs of high priority.",
		KilledBy: "run.high run.two-functions blocking.high", Edit: then("LPUSH_QUEUE", func(t *task) {
			if string(t.Priority) == "high" {
				t.ID = append(t.ID, '0')
			}
		})},
	{Name: "uid-repaired", About: "The client resets the ID counter when the server does not return an ID.",
		KilledBy: "run.no-id run.no-id-scheduled run.no-id-blocking run.goes-on", Edit: func(p *program) {
			change(p, "INCR_UID", func(s step) []step {
				s.For, s.Cure = "ERR", gearmonkey.Sequence{{Do: "command SET uid:{FN} 1000"}}
				return []step{s}
			})
		}},
	{Name: "broken-by-a-failure", About: "The client creates no more jobs after one job could not be created.",
		KilledBy: "run.goes-on", Edit: stateful(func(failed *bool) func(*program) {
			return both(
				first("INCR_UID", func(t *task) error {
					if *failed {
						return errors.New("no more jobs")
					}
					*failed = true
					return nil
				}),
				first("HMSET_IDLE", func(*task) error { *failed = false; return nil }))
		})},
	{Name: "waits-for-high-jobs", About: "The client waits for jobs of high priority without the option blocking.",
		KilledBy: "run.high run.two-functions", Edit: when("BRPOP_LOCK", func(t *task) bool { return t.Blocking || string(t.Priority) == "high" })},
	{Name: "rolls-for-low-jobs", About: "The client checks the worker count before jobs of low priority although the option rollcall is not set.",
		KilledBy: "run.low", Edit: when("GET_COUNT", func(t *task) bool { return t.RollCall || string(t.Priority) == "low" })},
}
