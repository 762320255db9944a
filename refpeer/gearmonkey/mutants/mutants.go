// Package mutants contains GearMonkey clients and workers with one deliberate fault each. They test the cases of the
// conformance suite about clients and workers: a case that no mutant fails tests nothing.
package mutants

import (
	"embed"

	"jobwire/internal/mutant"
	"jobwire/refpeer/gearmonkey"
	"jobwire/refpeer/internal/faults"
)

//go:embed *.yaml
var rows embed.FS

var kit = &faults.Kit{
	Document:  gearmonkey.Document,
	Rows:      rows,
	Functions: map[string]any{"timed_out": gearmonkey.TimedOut, "nothing_registered": gearmonkey.ErrNothingRegistered},
	Sets: map[string]string{
		"queues": queues, "creates": creates, "blocks": blocks, "checksWorkers": checksWorkers,
		"ends": ends, "finishes": finishes, "runs": runs, "takes": takes,
	},
}

// All returns the mutants.
func All() []mutant.Mutant { return kit.Mutants("Client", "Worker") }

// Sets of cases. A fault that a step has with every job fails the cases of one of these sets.
const (
	queues = `run.normal run.normal-by-name run.high run.low run.again run.two-functions run.great-id run.odd-function run.empty-input run.quotes run.line-ends
		run.long-input run.goes-on blocking.success blocking.times-out blocking.goes-on-after-time-out blocking.high rollcall.one rollcall.several
		rollcall.blocking rollcall.once`
	creates = queues + " run.scheduled run.scheduled-in-the-past run.announced"
	blocks  = `run.great-id run.announced run.no-id run.no-id-scheduled run.no-id-blocking run.goes-on blocking.success blocking.error blocking.not-by-events
		blocking.own-lock blocking.lock-was-there blocking.times-out blocking.goes-on-after-time-out blocking.for-ever blocking.high blocking.one-by-one
		rollcall.zero rollcall.negative rollcall.text rollcall.digits-and-text rollcall.one rollcall.several rollcall.own-function rollcall.blocking look.busy
		look.all-fields look.binary look.long look.of-another`
	checksWorkers = `rollcall.never-a-worker rollcall.zero rollcall.negative rollcall.text rollcall.digits-and-text rollcall.one rollcall.several rollcall.own-function
		rollcall.blocking rollcall.blocking-no-workers rollcall.once`

	works = `accept.start accept.own-jobs accept.odd-function exit.once exit.after-an-error exit.comes-back loop.scheduled-first loop.priorities loop.each-queue
		loop.not-early loop.again loop.becomes-due loop.script-forgotten work.success work.scheduled work.error work.after-an-error work.fetches-input
		work.binary work.no-input work.no-output work.long work.keeps-input work.own-id work.announced work.wakes update.progress update.kept update.each-job`
	ends     = works + " accept.script accept.script-runs"
	finishes = ends + " exit.idle work.no-data update.only-on-request"
	runs     = finishes + " accept.several"
	takes    = works + " accept.several exit.idle work.no-data update.only-on-request"
)
