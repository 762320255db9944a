package mutants

import (
	"bytes"
	"context"
	"errors"

	"jobwire/codec"
	"jobwire/refpeer/gearmonkey"
)

// priority is the condition that a job is of that priority.
func priority(name string) func(*task) bool {
	return func(t *task) bool { return string(t.Priority) == name }
}

// creating are faults of Client.run without options.
var creating = []Mutant{
	{Name: "normal-is-low", About: "A job of priority normal goes into the queue low.",
		Kills: cases(`run.normal run.normal-by-name run.again run.two-functions run.great-id run.odd-function run.empty-input
			run.quotes run.line-ends run.long-input run.goes-on blocking.success blocking.times-out
			blocking.goes-on-after-time-out rollcall.one rollcall.several rollcall.once`),
		Edit: func(p *program) {
			change(p, "LPUSH_QUEUE", func(s step) []step {
				return []step{{Do: "LPUSH_QUEUE {FN} low {ID}", If: priority("normal")},
					{Do: s.Do, If: func(t *task) bool { return s.If(t) && !priority("normal")(t) }}}
			})
		}},
	{Name: "priority-ignored", About: "A job of any priority but scheduled goes into the queue normal.",
		Kills: cases("run.high run.low run.two-functions blocking.high rollcall.blocking"),
		Edit:  say("LPUSH_QUEUE", "LPUSH_QUEUE {FN} normal {ID}")},
	{Name: "scheduled-in-milliseconds", About: "The time of a scheduled job is sent in milliseconds.",
		Kills: cases("run.scheduled run.scheduled-in-the-past"),
		Edit:  say("ZADD_SCHEDULED", "ZADD_SCHEDULED {FN} {SCHEDULED}000 {ID}")},
	{Name: "past-not-scheduled", About: "A job for a time that is over is queued as a normal one.",
		Kills: cases("run.scheduled-in-the-past"),
		Edit: func(p *program) {
			over := func(t *task) bool { return priority("scheduled")(t) && len(t.Scheduled) < 10 }
			change(p, "ZADD_SCHEDULED", func(s step) []step {
				return []step{{Do: "LPUSH_QUEUE {FN} normal {ID}", If: over},
					{Do: s.Do, If: func(t *task) bool { return s.If(t) && !over(t) }}}
			})
		}},
	{Name: "scheduled-and-queued", About: "A scheduled job is queued as a normal one, too.",
		Kills: cases("run.scheduled run.scheduled-in-the-past"),
		Edit:  behind("ZADD_SCHEDULED", "LPUSH_QUEUE {FN} normal {ID}")},
	{Name: "queued-twice", About: "A job is queued twice.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.again run.two-functions run.great-id run.odd-function
			run.empty-input run.quotes run.line-ends run.long-input run.goes-on blocking.success blocking.times-out
			blocking.goes-on-after-time-out blocking.high rollcall.one rollcall.several rollcall.blocking rollcall.once`),
		Edit: twice("LPUSH_QUEUE")},
	{Name: "pushed-at-the-wrong-end", About: "A job is pushed where workers pop.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.again run.two-functions run.great-id run.odd-function
			run.empty-input run.quotes run.line-ends run.long-input run.goes-on blocking.success blocking.times-out
			blocking.goes-on-after-time-out blocking.high rollcall.one rollcall.several rollcall.blocking rollcall.once`),
		Edit: say("LPUSH_QUEUE", "command RPUSH queue:{FN}:{PRIO} {ID}")},
	{Name: "creation-not-announced", About: "No create event is published.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.scheduled run.scheduled-in-the-past run.again
			run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input
			run.announced run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high
			rollcall.one rollcall.several rollcall.blocking rollcall.once`),
		Edit: drop("PUBLISH_CREATE")},
	{Name: "created-for-create", About: "The event of a new job is called created.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.scheduled run.scheduled-in-the-past run.again
			run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input
			run.announced run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high
			rollcall.one rollcall.several rollcall.blocking rollcall.once`),
		Edit: say("PUBLISH_CREATE", "command PUBLISH channel:{FN} created:{ID}")},
	{Name: "announced-before-its-data", About: "The create event is published before the data is stored.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.scheduled run.scheduled-in-the-past run.again
			run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input
			run.announced run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high
			rollcall.one rollcall.several rollcall.blocking rollcall.once`),
		Edit: swap("HMSET_IDLE", "PUBLISH_CREATE")},
	{Name: "queued-before-announced", About: "A job is queued before its create event is published.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.scheduled run.scheduled-in-the-past run.again
			run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input
			run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high rollcall.one
			rollcall.several rollcall.blocking rollcall.once`),
		Edit: swap("PUBLISH_CREATE", "LPUSH_QUEUE")},
	{Name: "queued-before-its-data", About: "A job is queued before its data is stored.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.scheduled run.scheduled-in-the-past run.again
			run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input
			run.announced run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high
			rollcall.one rollcall.several rollcall.blocking rollcall.once`),
		Edit: swap("HMSET_IDLE", "LPUSH_QUEUE")},
	{Name: "status-new", About: "The status of a new job is new.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.scheduled run.scheduled-in-the-past run.again
			run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input
			run.announced run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high
			rollcall.one rollcall.several rollcall.blocking rollcall.once look.idle`),
		Edit: say("HMSET_IDLE", "command HMSET job:{FN}:{ID} status new input {INPUT}")},
	{Name: "input-quoted", About: "The quotes of the document's listing are sent with the input.",
		Kills: cases(`run.normal run.normal-by-name run.high run.low run.scheduled run.scheduled-in-the-past run.again
			run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends run.long-input
			run.announced run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high
			rollcall.one rollcall.several rollcall.blocking rollcall.once look.all-fields`),
		Edit: say("HMSET_IDLE", `command HMSET job:{FN}:{ID} status idle input "\"{INPUT}\""`)},
	{Name: "input-ends-at-its-nul", About: "An input is stored up to its first NUL.",
		Kills: cases("run.line-ends"),
		Edit:  first("HMSET_IDLE", func(t *task) error { t.Input, _, _ = bytes.Cut(t.Input, []byte{0}); return nil })},
	{Name: "placeholder-in-input-substituted", About: "A placeholder that stands in an input is taken for one.",
		Kills: cases("run.quotes"),
		Edit: first("HMSET_IDLE", func(t *task) error {
			t.Input = bytes.ReplaceAll(t.Input, []byte("{INPUT}"), nil)
			return nil
		})},
	{Name: "long-input-cut", About: "An input is cut at 64 KiB.",
		Kills: cases("run.long-input"),
		Edit:  first("HMSET_IDLE", func(t *task) error { t.Input = t.Input[:min(len(t.Input), 1<<16)]; return nil })},
	{Name: "empty-input-left-out", About: "An empty input is not stored.",
		Kills: cases("run.empty-input"),
		Edit: func(p *program) {
			change(p, "HMSET_IDLE", func(s step) []step {
				empty := func(t *task) bool { return len(t.Input) == 0 }
				return []step{{Do: "command HMSET job:{FN}:{ID} status idle", If: empty},
					{Do: s.Do, If: func(t *task) bool { return !empty(t) }}}
			})
		}},
	{Name: "function-ends-at-its-blank", About: "A function's name is taken up to its first blank.",
		Kills: cases("run.odd-function"),
		Edit:  first("INCR_UID", func(t *task) error { t.Function, _, _ = bytes.Cut(t.Function, []byte(" ")); return nil })},
	{Name: "uid-of-the-first-function", About: "All IDs are those of the client's first function.",
		Kills: cases("run.two-functions run.goes-on"),
		Edit: remembering(func(fn *string) func(*program) {
			return func(p *program) {
				change(p, "INCR_UID", func(s step) []step {
					return []step{{Do: "before-INCR_UID", Local: func(_ context.Context, t *task) error {
						if *fn == "" {
							*fn = string(t.Function)
						}
						t.SHA1, t.Function = t.Function, []byte(*fn)
						return nil
					}}, s, {Do: "behind-INCR_UID", Local: func(_ context.Context, t *task) error { t.Function = t.SHA1; return nil }}}
				})
			}
		})},
	{Name: "id-of-the-first-job", About: "All jobs are stored under the ID of the first one.",
		Kills: cases(`run.again run.great-id run.announced blocking.lock-was-there blocking.goes-on-after-time-out
			blocking.one-by-one rollcall.one rollcall.several rollcall.blocking`),
		Edit: remembering(func(id *string) func(*program) {
			return first("HMSET_IDLE", func(t *task) error {
				if *id == "" {
					*id = string(t.ID)
				}
				t.ID = []byte(*id)
				return nil
			})
		})},
	{Name: "id-of-53-bits", About: "An ID is kept as a floating-point number.",
		Kills: cases("run.great-id"),
		Edit: then("INCR_UID", func(t *task) {
			if n, _ := codec.ParseNumber(t.ID); n > 1<<53 {
				t.ID = append(t.ID[:len(t.ID)-3], "000"...)
			}
		})},
	{Name: "high-job-told-otherwise", About: "The caller is told another ID of a high job.",
		Kills: cases("run.high run.two-functions blocking.high"),
		Edit: then("LPUSH_QUEUE", func(t *task) {
			if string(t.Priority) == "high" {
				t.ID = append(t.ID, '0')
			}
		})},
	{Name: "uid-repaired", About: "Where the server gives no ID, the client sets the count of IDs anew.",
		Kills: cases("run.no-id run.no-id-scheduled run.no-id-blocking run.goes-on"),
		Edit: func(p *program) {
			change(p, "INCR_UID", func(s step) []step {
				s.For, s.Cure = "ERR", gearmonkey.Sequence{{Do: "command SET uid:{FN} 1000"}}
				return []step{s}
			})
		}},
	{Name: "broken-by-a-failure", About: "A client whose job could not be made makes no more at all.",
		Kills: cases("run.goes-on"),
		Edit: remembering(func(failed *bool) func(*program) {
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
	{Name: "waits-for-high-jobs", About: "A run of a high job waits unasked.",
		Kills: cases("run.high run.two-functions"),
		Edit:  when("BRPOP_LOCK", func(t *task) bool { return t.Blocking || string(t.Priority) == "high" })},
	{Name: "rolls-for-low-jobs", About: "A run of a low job calls the roll unasked.",
		Kills: cases("run.low"),
		Edit:  when("GET_COUNT", func(t *task) bool { return t.RollCall || string(t.Priority) == "low" })},
}
