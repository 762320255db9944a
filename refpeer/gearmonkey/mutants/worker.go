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

// once is a condition that holds the first time that it is asked for.
func once(asked *bool) bool { is := !*asked; *asked = true; return is }

// coming are faults of a worker's start and exit.
var coming = []Mutant{
	{Name: "script-loaded-on-demand", About: "The script is loaded only when the server does not know it.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function accept.several exit.once
			exit.idle exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue
			loop.not-early loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error
			work.behind-an-error work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input
			work.own-id work.announced work.wakes work.no-data update.progress update.kept update.each-job
			update.only-if-told`),
		Edit: func(p *program) {
			p.Load = gearmonkey.Sequence{{Do: "guess", Local: func(_ context.Context, t *task) error {
				t.SHA1 = []byte(strings.Repeat("0", 40))
				return nil
			}}}
		}},
	{Name: "script-of-its-own", About: "The script takes the job that is due last.",
		Kills: cases("loop.scheduled-first"),
		Edit: first("SCRIPT_LOAD", func(t *task) error {
			t.Script = []byte(`local i = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], 0, 'LIMIT', 0, 1); if (#i > 0) then redis.call('ZREM', KEYS[1], i[1]); return { KEYS[1], i[1] }; end`)
			return nil
		})},
	{Name: "script-takes-nothing", About: "The script leaves the job in its queue, and is asked no more.",
		Kills: cases(`accept.script-runs loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.again
			loop.becomes-due loop.script-forgotten work.scheduled work.behind-an-error work.own-id update.each-job`),
		Edit: both(
			first("SCRIPT_LOAD", func(t *task) error {
				t.Script = []byte(strings.Replace(protocol.Script, "redis.call('ZREM', KEYS[1], item[1]); ", "", 1))
				return nil
			}),
			remembering(func(asked *bool) func(*program) {
				return when("EVALSHA_SCHEDULED", func(t *task) bool { return once(asked) })
			}))},
	{Name: "registered-before-its-script", About: "A worker registers before it loads the script.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function accept.several exit.once
			exit.idle exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue
			loop.not-early loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error
			work.behind-an-error work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input
			work.own-id work.announced work.wakes work.no-data update.progress update.kept update.each-job
			update.only-if-told`),
		Edit: func(p *program) {
			load := p.Load
			p.Load = nil
			p.Enter = slices.Concat(p.Enter, load)
		}},
	{Name: "registers-for-one", About: "A worker of two functions registers for the first.",
		Kills: cases("accept.several"),
		Edit: remembering(func(asked *bool) func(*program) {
			return both(
				first("SCRIPT_LOAD", func(*task) error { *asked = false; return nil }),
				when("INCR_COUNT", func(*task) bool { return once(asked) }))
		})},
	{Name: "registers-once-in-its-life", About: "A worker that comes back does not register again.",
		Kills: cases("exit.comes-back"),
		Edit: remembering(func(been *bool) func(*program) {
			return both(
				when("INCR_COUNT", func(*task) bool { return !*been }),
				then("DECR_COUNT", func(*task) { *been = true }))
		})},
	{Name: "stays-registered", About: "A worker that leaves stays in the count.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function accept.several exit.once
			exit.idle exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue
			loop.not-early loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error
			work.behind-an-error work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input
			work.own-id work.announced work.wakes work.no-data update.progress update.kept update.each-job
			update.only-if-told`),
		Edit: drop("DECR_COUNT")},
	{Name: "leaves-twice", About: "A worker that leaves takes itself off the count twice.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function accept.several exit.once
			exit.idle exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue
			loop.not-early loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error
			work.behind-an-error work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input
			work.own-id work.announced work.wakes work.no-data update.progress update.kept update.each-job
			update.only-if-told`),
		Edit: twice("DECR_COUNT")},
	{Name: "stays-registered-without-a-job", About: "A worker that found no job stays in the count.",
		Kills: cases("exit.idle"),
		Edit: remembering(func(worked *bool) func(*program) {
			return both(
				finished(func(*task) { *worked = true }),
				when("DECR_COUNT", func(*task) bool { return *worked }))
		})},
	{Name: "stays-registered-behind-an-error", About: "A worker whose job failed stays in the count.",
		Kills: cases(`exit.behind-an-error loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten
			work.scheduled work.error work.behind-an-error work.no-data`),
		Edit: remembering(func(failed *bool) func(*program) {
			return both(
				finished(func(t *task) { *failed = *failed || string(t.Status) == "error" }),
				when("DECR_COUNT", func(*task) bool { return !*failed }))
		})},
	{Name: "function-ends-at-its-colon", About: "A worker looks into the queues of its function's name up to the first colon.",
		Kills: cases("accept.odd-function"),
		Edit: func(p *program) {
			p.Look = append(gearmonkey.Sequence{{Do: "cut", Local: func(_ context.Context, t *task) error {
				t.Function, _, _ = bytes.Cut(t.Function, []byte(":"))
				return nil
			}}}, p.Look...)
		}},
}

// popped is a check of a pop whose reply is a list of two: a queue and an ID.
func popped(t *task, m *message) error {
	if len(m.Args) >= 2 {
		t.ID = append(t.ID[:0], m.Args[len(m.Args)-1]...)
	}
	return nil
}

// pops is another command for the queues.
func pops(do string) func(*program) {
	return func(p *program) {
		change(p, "BRPOP_QUEUES", func(s step) []step { return []step{{Do: do, If: s.If, Then: popped}} })
	}
}

// finding are faults of a worker's loop.
var finding = []Mutant{
	{Name: "normal-before-high", About: "The queue normal is read before high.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function exit.once exit.idle
			exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early
			loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes work.no-data update.progress update.kept update.each-job update.only-if-told`),
		Edit: pops("command BRPOP queue:{FN}:normal queue:{FN}:high queue:{FN}:low 1")},
	{Name: "low-forgotten", About: "The queue low is not read.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function exit.once exit.idle
			exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early
			loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes work.no-data update.progress update.kept update.each-job update.only-if-told`),
		Edit: pops("command BRPOP queue:{FN}:high queue:{FN}:normal 1")},
	{Name: "last-come-first-served", About: "Jobs are popped where they are pushed.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function exit.once exit.idle
			exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early
			loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes work.no-data update.progress update.kept update.each-job update.only-if-told`),
		Edit: pops("command BLPOP queue:{FN}:high queue:{FN}:normal queue:{FN}:low 1")},
	{Name: "waits-for-ever", About: "A worker waits in the queues without an end.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function exit.once exit.idle
			exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early
			loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes work.no-data update.progress update.kept update.each-job update.only-if-told`),
		Edit: ask("BRPOP_QUEUES", "BRPOP_QUEUES {FN} 0")},
	{Name: "scheduled-never", About: "Scheduled jobs are not looked for.",
		Kills: cases(`accept.start accept.own-jobs accept.odd-function accept.several exit.once exit.idle exit.behind-an-error
			exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.again
			loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes work.no-data update.progress update.kept update.each-job update.only-if-told`),
		Edit: drop("EVALSHA_SCHEDULED")},
	{Name: "scheduled-once", About: "Scheduled jobs are looked for in the first round.",
		Kills: cases(`loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.again loop.becomes-due
			loop.script-forgotten work.scheduled work.behind-an-error work.own-id update.each-job`),
		Edit: remembering(func(asked *bool) func(*program) {
			return when("EVALSHA_SCHEDULED", func(*task) bool { return once(asked) })
		})},
	{Name: "queues-first", About: "Scheduled jobs are looked for when the queues are empty.",
		Kills: cases(`accept.start accept.own-jobs accept.odd-function accept.several exit.once exit.idle exit.behind-an-error
			exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.again
			loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes work.no-data update.progress update.kept update.each-job update.only-if-told`),
		Edit: func(p *program) {
			due := p.Look[1].If
			p.Look = p.Look.Swap("EVALSHA_SCHEDULED", "BRPOP_QUEUES")
			p.Look[0].If, p.Look[1].If = nil, due
		}},
	{Name: "queues-too", About: "Behind a scheduled job the queues are looked into, too.",
		Kills: cases("loop.scheduled-first loop.each-queue work.scheduled"),
		Edit:  when("BRPOP_QUEUES", nil)},
	{Name: "time-of-the-start", About: "A worker keeps the time of its start.",
		Kills: cases("loop.becomes-due"),
		Edit: remembering(func(date *[]byte) func(*program) {
			return first("EVALSHA_SCHEDULED", func(t *task) error {
				if *date == nil {
					*date = bytes.Clone(t.Date)
				}
				t.Date = append(t.Date[:0], *date...)
				return nil
			})
		})},
	{Name: "takes-what-is-not-due", About: "Scheduled jobs are taken an hour early.",
		Kills: cases(`accept.start accept.own-jobs accept.odd-function accept.several exit.once exit.idle exit.behind-an-error
			exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.again
			loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes work.no-data update.progress update.kept update.each-job update.only-if-told`),
		Edit: ask("EVALSHA_SCHEDULED", "EVALSHA_SCHEDULED {SHA1} {FN} 99999999999")},
	{Name: "gives-up", About: "A worker that has waited a second in vain ends with an error.",
		Kills: cases("exit.idle loop.again loop.becomes-due"),
		Edit: func(p *program) {
			change(p, "BRPOP_QUEUES", func(s step) []step {
				return []step{s, {Do: "give-up", If: s.If, Local: func(context.Context, *task) error { return errors.New("no job") }}}
			})
		}},
	{Name: "script-not-loaded-again", About: "A worker whose script the server has forgotten ends.",
		Kills: cases("loop.script-forgotten"),
		Edit: func(p *program) {
			change(p, "EVALSHA_SCHEDULED", func(s step) []step { s.Cure = nil; return []step{s} })
		}},
}

// working are faults in what becomes of a job.
var working = []Mutant{
	{Name: "start-not-announced", About: "No start event is published.",
		Kills: cases(`accept.odd-function loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.becomes-due
			loop.script-forgotten work.success work.scheduled work.error work.own-id work.announced update.progress`),
		Edit: drop("PUBLISH_START")},
	{Name: "busy-before-announced", About: "The status busy is set before the start event.",
		Kills: cases(`accept.odd-function loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.becomes-due
			loop.script-forgotten work.success work.scheduled work.error work.own-id update.progress`),
		Edit: swap("PUBLISH_START", "HMSET_BUSY")},
	{Name: "never-busy", About: "The status busy is not set.",
		Kills: cases("work.success work.scheduled work.error work.own-id update.progress"),
		Edit:  drop("HMSET_BUSY")},
	{Name: "scheduled-jobs-not-announced", About: "No start event is published of scheduled jobs.",
		Kills: cases("loop.scheduled-first loop.each-queue loop.becomes-due work.scheduled"),
		Edit: remembering(func(queued *bool) func(*program) {
			return both(
				when("PUBLISH_START", func(*task) bool { return *queued }),
				both(
					first("EVALSHA_SCHEDULED", func(*task) error { *queued = false; return nil }),
					then("BRPOP_QUEUES", func(*task) { *queued = true })))
		})},
	{Name: "input-not-fetched", About: "A job is done with an empty input.",
		Kills: cases(`accept.odd-function accept.several work.success work.scheduled work.fetches-input work.binary work.long
			work.own-id work.announced work.wakes work.no-data update.progress`),
		Edit: drop("HGET_INPUT")},
	{Name: "fetched-input-ends-at-its-nul", About: "The input is given up to its first NUL.",
		Kills: cases("work.binary"),
		Edit:  then("HGET_INPUT", func(t *task) { t.Input, _, _ = bytes.Cut(t.Input, []byte{0}) })},
	{Name: "fetched-input-cut", About: "The input is given up to 64 KiB.",
		Kills: cases("work.long"),
		Edit:  then("HGET_INPUT", func(t *task) { t.Input = t.Input[:min(len(t.Input), 1<<16)] })},
	{Name: "output-trimmed", About: "An output is stored without the blanks around it.",
		Kills: cases("work.binary"),
		Edit:  finished(func(t *task) { t.Output = bytes.Trim(t.Output, " \x00\r\n\t\"") })},
	{Name: "empty-output-is-an-error", About: "A job without an output has failed.",
		Kills: cases("work.no-input work.no-output work.keeps-input"),
		Edit: finished(func(t *task) {
			if len(t.Output) == 0 {
				t.Status = []byte("error")
			}
		})},
	{Name: "errors-succeed", About: "A job that failed has the status success.",
		Kills: cases("work.error work.behind-an-error"),
		Edit:  finished(func(t *task) { t.Status = []byte("success") })},
	{Name: "ended-by-an-error", About: "A worker whose job failed ends.",
		Kills: cases(`loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten work.scheduled
			work.behind-an-error work.no-data`),
		Edit: remembering(func(failed *bool) func(*program) {
			return both(
				finished(func(t *task) { *failed = string(t.Status) == "error" }),
				first("EVALSHA_SCHEDULED", func(*task) error {
					if *failed {
						return errors.New("a job failed")
					}
					return nil
				}))
		})},
	{Name: "ended-by-lost-data", About: "A worker that finds no data ends.",
		Kills: cases(`loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten work.scheduled
			work.no-data`),
		Edit: judge("HGET_INPUT", func(was check) check {
			return func(t *task, m *message) error {
				if m.Type.Name == "nil" {
					return errors.New("no data")
				}
				return was(t, m)
			}
		})},
	{Name: "status-before-output", About: "Status and output are stored by two commands.",
		Kills: cases(`work.success work.scheduled work.error work.behind-an-error work.fetches-input work.binary work.no-input
			work.no-output work.long work.own-id update.progress`),
		Edit: both(
			before("HMSET_DONE", "command HSET job:{FN}:{ID} output {OUTPUT}"),
			say("HMSET_DONE", "command HMSET job:{FN}:{ID} status {STATUS}"))},
	{Name: "input-removed", About: "The input of a job that is done is removed.",
		Kills: cases(`work.no-output work.keeps-input`),
		Edit:  behind("HMSET_DONE", "command HDEL job:{FN}:{ID} input")},
	{Name: "done-under-the-first-id", About: "The end of each job is stored under the first one's ID.",
		Kills: cases(`exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early loop.script-forgotten
			work.scheduled work.behind-an-error work.own-id work.no-data update.each-job`),
		Edit: remembering(func(id *string) func(*program) {
			return first("HMSET_DONE", func(t *task) error {
				if *id == "" {
					*id = string(t.ID)
				}
				t.ID = []byte(*id)
				return nil
			})
		})},
	{Name: "data-kept-for-ever", About: "The data of a job that is done does not expire.",
		Kills: cases("accept.odd-function work.success work.scheduled work.error work.own-id work.announced update.progress"),
		Edit:  drop("EXPIRE_JOB")},
	{Name: "data-kept-for-a-day", About: "The data of a job that is done expires in a day.",
		Kills: cases("accept.odd-function work.success work.scheduled work.error work.own-id work.announced update.progress"),
		Edit:  say("EXPIRE_JOB", "EXPIRE_JOB {FN} {ID} 86400")},
	{Name: "finish-not-announced", About: "No finish event is published.",
		Kills: cases("work.success work.scheduled work.error work.own-id work.announced update.progress"),
		Edit:  drop("PUBLISH_FINISH")},
	{Name: "finish-announced-early", About: "The finish event is published before the data is stored.",
		Kills: cases(`accept.odd-function work.success work.scheduled work.error work.behind-an-error work.fetches-input work.binary
			work.no-input work.no-output work.long work.own-id work.announced update.progress`),
		Edit: swap("HMSET_DONE", "PUBLISH_FINISH")},
	{Name: "lock-not-pushed", About: "No lock is pushed.",
		Kills: cases("work.success work.scheduled work.error work.own-id work.wakes update.progress"),
		Edit:  drop("LPUSH_LOCK")},
	{Name: "lock-pushed-early", About: "The lock is pushed before the data is stored.",
		Kills: cases(`accept.odd-function work.success work.scheduled work.error work.behind-an-error work.fetches-input work.binary
			work.no-input work.no-output work.long work.own-id work.announced work.wakes update.progress`),
		Edit: swap("HMSET_DONE", "LPUSH_LOCK")},
	{Name: "lock-of-done", About: "What is pushed to the lock is done.",
		Kills: cases("work.success work.scheduled work.error work.own-id work.wakes update.progress"),
		Edit:  say("LPUSH_LOCK", "LPUSH_LOCK {FN} {ID} done")},
	{Name: "lock-kept-for-ever", About: "The lock does not expire.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function exit.once
			exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early
			loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes update.progress update.kept update.each-job`),
		Edit: drop("EXPIRE_LOCK")},
	{Name: "lock-kept-for-a-minute", About: "The lock expires in a minute.",
		Kills: cases(`accept.start accept.script accept.script-runs accept.own-jobs accept.odd-function exit.once
			exit.behind-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue loop.not-early
			loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.behind-an-error
			work.fetches-input work.binary work.no-input work.no-output work.long work.keeps-input work.own-id
			work.announced work.wakes update.progress update.kept update.each-job`),
		Edit: say("EXPIRE_LOCK", "EXPIRE_LOCK {FN} {ID} 60")},
}

// updating are faults of Worker.update.
var updating = []Mutant{
	{Name: "progress-not-told", About: "Progress is not told.",
		Kills: cases("update.progress update.kept update.each-job"),
		Edit:  drop("HMSET_PROGRESS")},
	{Name: "progress-upside-down", About: "Dividend and divisor are told in each other's place.",
		Kills: cases("update.progress update.kept update.each-job"),
		Edit:  say("HMSET_PROGRESS", "HMSET_PROGRESS {FN} {ID} {DIVISOR} {DIVIDEND}")},
	{Name: "progress-of-the-first-job", About: "All progress is told for the job with ID 1.",
		Kills: cases("update.each-job"),
		Edit:  say("HMSET_PROGRESS", "HMSET_PROGRESS {FN} 1 {DIVIDEND} {DIVISOR}")},
	{Name: "progress-forgotten", About: "What was told of progress is removed at the job's end.",
		Kills: cases(`work.keeps-input update.kept`),
		Edit:  behind("HMSET_DONE", "command HDEL job:{FN}:{ID} status:dividend status:divisor")},
	{Name: "progress-unasked", About: "Progress of nothing is told at a job's start.",
		Kills: cases(`accept.odd-function work.success work.scheduled work.error work.behind-an-error work.fetches-input work.binary
			work.no-input work.no-output work.long work.keeps-input work.own-id update.progress update.each-job
			update.only-if-told`),
		Edit: behind("HMSET_BUSY", "HMSET_PROGRESS {FN} {ID} 0 1")},
}
