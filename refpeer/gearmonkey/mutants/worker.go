package mutants

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/refpeer/gearmonkey"
)

// once returns true at its first call with a variable.
func once(asked *bool) bool { is := !*asked; *asked = true; return is }

// coming are faults of a worker's start and exit.
var coming = []fault{
	{Name: "script-loaded-on-demand", About: "The worker loads the script only after EVALSHA has failed.",
		KilledBy: runs, Edit: func(p *program) {
			p.Load = gearmonkey.Sequence{{Do: "guess", Local: func(_ context.Context, t *task) error {
				t.SHA1 = []byte(strings.Repeat("0", 40))
				return nil
			}}}
		}},
	{Name: "script-of-its-own", About: "The worker's script returns the job with the latest scheduled time instead of the earliest.",
		KilledBy: "loop.scheduled-first", Edit: first("SCRIPT_LOAD", func(t *task) error {
			t.Script = []byte(`local i = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], 0, 'LIMIT', 0, 1); if (#i > 0) then redis.call('ZREM', KEYS[1], i[1]); return { KEYS[1], i[1] }; end`)
			return nil
		})},
	{Name: "script-takes-nothing", About: "The worker's script does not remove the job from its queue, and the worker calls the script only once.",
		KilledBy: `accept.script-runs loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.again loop.becomes-due loop.script-forgotten work.scheduled
			work.after-an-error work.own-id update.each-job`,
		Edit: both(
			first("SCRIPT_LOAD", func(t *task) error {
				t.Script = []byte(strings.Replace(protocol.Script, "redis.call('ZREM', KEYS[1], item[1]); ", "", 1))
				return nil
			}),
			stateful(func(asked *bool) func(*program) {
				return when("EVALSHA_SCHEDULED", func(t *task) bool { return once(asked) })
			}))},
	{Name: "registered-before-its-script", About: "The worker registers before it loads the script.",
		KilledBy: runs, Edit: func(p *program) {
			load := p.Load
			p.Load = nil
			p.Enter = slices.Concat(p.Enter, load)
		}},
	{Name: "registers-for-one", About: "The worker registers only the first of its two functions.",
		KilledBy: "accept.several", Edit: stateful(func(asked *bool) func(*program) {
			return both(
				first("SCRIPT_LOAD", func(*task) error { *asked = false; return nil }),
				when("INCR_COUNT", func(*task) bool { return once(asked) }))
		})},
	{Name: "registers-once-in-its-life", About: "The worker does not register again when it starts again after it has stopped.",
		KilledBy: "exit.comes-back", Edit: stateful(func(been *bool) func(*program) {
			return both(
				when("INCR_COUNT", func(*task) bool { return !*been }),
				then("DECR_COUNT", func(*task) { *been = true }))
		})},
	{Name: "stays-registered", About: "The worker does not decrement the worker count when it leaves.",
		KilledBy: runs, Edit: drop("DECR_COUNT")},
	{Name: "leaves-twice", About: "The worker decrements the worker count twice when it leaves.",
		KilledBy: runs, Edit: twice("DECR_COUNT")},
	{Name: "stays-registered-without-a-job", About: "The worker does not decrement the worker count if it has had no job.",
		KilledBy: "exit.idle", Edit: stateful(func(worked *bool) func(*program) {
			return both(
				finished(func(*task) { *worked = true }),
				when("DECR_COUNT", func(*task) bool { return *worked }))
		})},
	{Name: "stays-registered-after-an-error", About: "The worker does not decrement the worker count after a job has failed.",
		KilledBy: `exit.after-an-error loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten work.scheduled work.error work.after-an-error
			work.no-data`,
		Edit: stateful(func(failed *bool) func(*program) {
			return both(
				finished(func(t *task) { *failed = *failed || string(t.Status) == "error" }),
				when("DECR_COUNT", func(*task) bool { return !*failed }))
		})},
	{Name: "function-ends-at-its-colon", About: "The worker truncates the function name in queue names at its first colon.",
		KilledBy: "accept.odd-function", Edit: func(p *program) {
			p.Look = append(gearmonkey.Sequence{{Do: "cut", Local: func(_ context.Context, t *task) error {
				t.Function, _, _ = bytes.Cut(t.Function, []byte(":"))
				return nil
			}}}, p.Look...)
		}},
}

// popped accepts any reply to a pop. If it is a list with a queue and an ID, popped sets the ID of the task.
func popped(t *task, m *message) error {
	if len(m.Args) >= 2 {
		t.ID = append(t.ID[:0], m.Args[len(m.Args)-1]...)
	}
	return nil
}

// pops replaces the command that reads the queues.
func pops(do string) func(*program) {
	return func(p *program) {
		change(p, "BRPOP_QUEUES", func(s step) []step { return []step{{Do: do, If: s.If, Then: popped}} })
	}
}

// jobLookupFaults are faults in how a worker looks for jobs: in its queues, and among the scheduled jobs.
var jobLookupFaults = []fault{
	{Name: "normal-before-high", About: "The worker reads the queue of normal priority before the queue of high priority.",
		KilledBy: finishes, Edit: pops("command BRPOP queue:{FN}:normal queue:{FN}:high queue:{FN}:low 1")},
	{Name: "low-forgotten", About: "The worker does not read the low queue.",
		KilledBy: finishes, Edit: pops("command BRPOP queue:{FN}:high queue:{FN}:normal 1")},
	{Name: "last-come-first-served", About: "The worker pops jobs at the end at which clients push them.",
		KilledBy: finishes, Edit: pops("command BLPOP queue:{FN}:high queue:{FN}:normal queue:{FN}:low 1")},
	{Name: "waits-for-ever", About: "The worker waits for a job without a timeout.",
		KilledBy: finishes, Edit: ask("BRPOP_QUEUES", "BRPOP_QUEUES {FN} 0")},
	{Name: "scheduled-never", About: "The worker does not look for scheduled jobs.",
		KilledBy: takes, Edit: drop("EVALSHA_SCHEDULED")},
	{Name: "scheduled-once", About: "The worker looks for scheduled jobs only in its first round.",
		KilledBy: `loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.again loop.becomes-due loop.script-forgotten work.scheduled work.after-an-error work.own-id
			update.each-job`,
		Edit: stateful(func(asked *bool) func(*program) {
			return when("EVALSHA_SCHEDULED", func(*task) bool { return once(asked) })
		})},
	{Name: "queues-first", About: "The worker looks for scheduled jobs only when the queues are empty.",
		KilledBy: takes, Edit: func(p *program) {
			condition := p.Look[1].If
			p.Look = p.Look.Swap("EVALSHA_SCHEDULED", "BRPOP_QUEUES")
			p.Look[0].If, p.Look[1].If = nil, condition
		}},
	{Name: "queues-too", About: "The worker also reads the queues after it has found a scheduled job.",
		KilledBy: "loop.scheduled-first work.scheduled", Edit: when("BRPOP_QUEUES", nil)},
	{Name: "time-of-the-start", About: "The worker always sends the time at which it started to the script.",
		KilledBy: "loop.becomes-due", Edit: stateful(func(date *[]byte) func(*program) {
			return first("EVALSHA_SCHEDULED", func(t *task) error {
				if *date == nil {
					*date = bytes.Clone(t.Date)
				}
				t.Date = append(t.Date[:0], *date...)
				return nil
			})
		})},
	{Name: "takes-what-is-not-due", About: "The worker takes scheduled jobs one hour early.",
		KilledBy: takes, Edit: ask("EVALSHA_SCHEDULED", "EVALSHA_SCHEDULED {SHA1} {FN} 99999999999")},
	{Name: "gives-up", About: "The worker ends with an error after one second without a job.",
		KilledBy: "exit.idle loop.again loop.becomes-due", Edit: func(p *program) {
			change(p, "BRPOP_QUEUES", func(s step) []step {
				return []step{s, {Do: "give-up", If: s.If, Local: func(context.Context, *task) error { return errors.New("no job") }}}
			})
		}},
	{Name: "script-not-loaded-again", About: "The worker ends when the server no longer has the script.",
		KilledBy: "loop.script-forgotten", Edit: func(p *program) {
			change(p, "EVALSHA_SCHEDULED", func(s step) []step { s.Cure = nil; return []step{s} })
		}},
}

// working are faults in how a worker does a job.
var working = []fault{
	{Name: "start-not-announced", About: "The worker publishes no start event.",
		KilledBy: `accept.odd-function loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.becomes-due loop.script-forgotten work.success work.scheduled work.error
			work.own-id work.announced update.progress`,
		Edit: drop("PUBLISH_START")},
	{Name: "busy-before-announced", About: "The worker sets the status \"busy\" before it publishes the start event.",
		KilledBy: `accept.odd-function loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.becomes-due loop.script-forgotten work.success work.scheduled work.error
			work.own-id update.progress`,
		Edit: swap("PUBLISH_START", "HMSET_BUSY")},
	{Name: "never-busy", About: "The worker does not set the status \"busy\".",
		KilledBy: "work.success work.scheduled work.error work.own-id update.progress", Edit: drop("HMSET_BUSY")},
	{Name: "scheduled-jobs-not-announced", About: "The worker publishes no start event for scheduled jobs.",
		KilledBy: "loop.scheduled-first loop.each-queue loop.becomes-due work.scheduled", Edit: stateful(func(queued *bool) func(*program) {
			return both(
				when("PUBLISH_START", func(*task) bool { return *queued }),
				both(
					first("EVALSHA_SCHEDULED", func(*task) error { *queued = false; return nil }),
					then("BRPOP_QUEUES", func(*task) { *queued = true })))
		})},
	{Name: "input-not-fetched", About: "The worker uses an empty input for every job.",
		KilledBy: `accept.odd-function accept.several work.success work.scheduled work.fetches-input work.binary work.long work.own-id work.announced work.wakes work.no-data
			update.progress`,
		Edit: drop("HGET_INPUT")},
	{Name: "fetched-input-ends-at-its-nul", About: "The worker truncates the input at its first NUL.",
		KilledBy: "work.binary", Edit: then("HGET_INPUT", func(t *task) { t.Input, _, _ = bytes.Cut(t.Input, []byte{0}) })},
	{Name: "fetched-input-cut", About: "The worker truncates the input at 64 KiB.",
		KilledBy: "work.long", Edit: then("HGET_INPUT", func(t *task) { t.Input = t.Input[:min(len(t.Input), 1<<16)] })},
	{Name: "output-trimmed", About: "The worker removes spaces around the output.",
		KilledBy: "work.binary", Edit: finished(func(t *task) { t.Output = bytes.Trim(t.Output, " \x00\r\n\t\"") })},
	{Name: "empty-output-is-an-error", About: "The worker reports a job with an empty output as failed.",
		KilledBy: "work.no-input work.no-output work.keeps-input", Edit: finished(func(t *task) {
			if len(t.Output) == 0 {
				t.Status = []byte("error")
			}
		})},
	{Name: "errors-succeed", About: "The worker stores the status \"success\" for a failed job.",
		KilledBy: "work.error work.after-an-error", Edit: finished(func(t *task) { t.Status = []byte("success") })},
	{Name: "ended-by-an-error", About: "The worker ends after a job has failed.",
		KilledBy: "loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten work.scheduled work.after-an-error work.no-data",
		Edit: stateful(func(failed *bool) func(*program) {
			return both(
				finished(func(t *task) { *failed = string(t.Status) == "error" }),
				first("EVALSHA_SCHEDULED", func(*task) error {
					if *failed {
						return errors.New("a job failed")
					}
					return nil
				}))
		})},
	{Name: "ended-by-lost-data", About: "The worker ends if a job has no data.",
		KilledBy: "loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten work.scheduled work.no-data",
		Edit: recheck("HGET_INPUT", func(was check) check {
			return func(t *task, m *message) error {
				if m.Type.Name == "nil" {
					return errors.New("no data")
				}
				return was(t, m)
			}
		})},
	{Name: "status-before-output", About: "The worker stores the status and the output with two commands instead of one.",
		KilledBy: `work.success work.scheduled work.error work.after-an-error work.fetches-input work.binary work.no-input work.no-output work.long work.own-id update.progress`,
		Edit: both(
			before("HMSET_DONE", "command HSET job:{FN}:{ID} output {OUTPUT}"),
			sendInstead("HMSET_DONE", "command HMSET job:{FN}:{ID} status {STATUS}"))},
	{Name: "input-removed", About: "The worker removes the input of a finished job.",
		KilledBy: "work.no-output work.keeps-input", Edit: after("HMSET_DONE", "command HDEL job:{FN}:{ID} input")},
	{Name: "done-under-the-first-id", About: "The worker stores the status and the output of each job under the ID of the first job.",
		KilledBy: `exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten work.scheduled work.after-an-error work.own-id
			work.no-data update.each-job`,
		Edit: stateful(func(id *string) func(*program) {
			return first("HMSET_DONE", func(t *task) error {
				if *id == "" {
					*id = string(t.ID)
				}
				t.ID = []byte(*id)
				return nil
			})
		})},
	{Name: "data-kept-for-ever", About: "The worker sets no expiry for the data of a finished job.",
		KilledBy: "accept.odd-function work.success work.scheduled work.error work.own-id work.announced update.progress", Edit: drop("EXPIRE_JOB")},
	{Name: "data-kept-for-a-day", About: "The worker sets an expiry of one day for the data of a finished job.",
		KilledBy: "accept.odd-function work.success work.scheduled work.error work.own-id work.announced update.progress",
		Edit:     sendInstead("EXPIRE_JOB", "EXPIRE_JOB {FN} {ID} 86400")},
	{Name: "finish-not-announced", About: "The worker publishes no finish event.",
		KilledBy: "work.success work.scheduled work.error work.own-id work.announced update.progress", Edit: drop("PUBLISH_FINISH")},
	{Name: "finish-announced-early", About: "The worker publishes the finish event before it stores the data.",
		KilledBy: `accept.odd-function work.success work.scheduled work.error work.after-an-error work.fetches-input work.binary work.no-input work.no-output work.long work.own-id
			work.announced update.progress`,
		Edit: swap("HMSET_DONE", "PUBLISH_FINISH")},
	{Name: "lock-not-pushed", About: "The worker does not push the lock.",
		KilledBy: "work.success work.scheduled work.error work.own-id work.wakes update.progress", Edit: drop("LPUSH_LOCK")},
	{Name: "lock-pushed-early", About: "The worker pushes the lock before it stores the data.",
		KilledBy: `accept.odd-function work.success work.scheduled work.error work.after-an-error work.fetches-input work.binary work.no-input work.no-output work.long work.own-id
			work.announced work.wakes update.progress`,
		Edit: swap("HMSET_DONE", "LPUSH_LOCK")},
	{Name: "lock-of-done", About: "The worker pushes \"done\" instead of \"OK\" to the list of the lock.",
		KilledBy: "work.success work.scheduled work.error work.own-id work.wakes update.progress", Edit: sendInstead("LPUSH_LOCK", "LPUSH_LOCK {FN} {ID} done")},
	{Name: "lock-kept-for-ever", About: "The worker sets no expiry for the lock.",
		KilledBy: ends, Edit: drop("EXPIRE_LOCK")},
	{Name: "lock-kept-for-a-minute", About: "The worker sets an expiry of one minute for the lock.",
		KilledBy: ends, Edit: sendInstead("EXPIRE_LOCK", "EXPIRE_LOCK {FN} {ID} 60")},
}

// updating are faults of Worker.update.
var updating = []fault{
	{Name: "progress-not-stored", About: "The worker does not store progress.",
		KilledBy: "update.progress update.kept update.each-job", Edit: drop("HMSET_PROGRESS")},
	{Name: "progress-upside-down", About: "The worker exchanges dividend and divisor of progress.",
		KilledBy: "update.progress update.kept update.each-job", Edit: sendInstead("HMSET_PROGRESS", "HMSET_PROGRESS {FN} {ID} {DIVISOR} {DIVIDEND}")},
	{Name: "progress-of-the-first-job", About: "The worker stores the progress of every job under ID 1.",
		KilledBy: "update.each-job", Edit: sendInstead("HMSET_PROGRESS", "HMSET_PROGRESS {FN} 1 {DIVIDEND} {DIVISOR}")},
	{Name: "progress-forgotten", About: "The worker removes the progress when the job ends.",
		KilledBy: "work.keeps-input update.kept", Edit: after("HMSET_DONE", "command HDEL job:{FN}:{ID} status:dividend status:divisor")},
	{Name: "progress-unasked", About: "The worker stores empty progress at the start of each job.",
		KilledBy: `accept.odd-function work.success work.scheduled work.error work.after-an-error work.fetches-input work.binary work.no-input work.no-output work.long
			work.keeps-input work.own-id update.progress update.each-job update.only-on-request`,
		Edit: after("HMSET_BUSY", "HMSET_PROGRESS {FN} {ID} 0 1")},
}
