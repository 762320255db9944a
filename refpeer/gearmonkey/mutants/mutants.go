// Package mutants contains GearMonkey clients and workers with one deliberate fault each. They test the cases of the
// conformance suite about clients and workers: a case that no mutant fails tests nothing.
package mutants

import (
	"slices"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/internal/mutant"
	"jobwire/refpeer/gearmonkey"
	"jobwire/refpeer/internal/faults"
)

type fault = faults.Fault[program]

// All returns the mutants: clients first, in the order of the sections of the specification.
func All() []mutant.Mutant {
	return slices.Concat(
		of("Client", creating), of("Client", waiting), of("Client", calling), of("Client", getFaults),
		of("Worker", coming), of("Worker", jobLookupFaults), of("Worker", working), of("Worker", updating))
}

func of(role string, all []fault) []mutant.Mutant {
	return faults.Of(protocol.Protocol, role, all, gearmonkey.Document, func(p *program) mutant.Program { return (&gearmonkey.Driver{Program: p}).Drive })
}

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
