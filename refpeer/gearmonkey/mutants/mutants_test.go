package mutants

import (
	"context"
	"net"
	"slices"
	"testing"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/refpeer/gearmonkey"
	"jobwire/refserver"
	server "jobwire/refserver/gearmonkey"
)

// TestTable: the table of mutants is complete and consistent, and each case about clients or workers fails for at least one
// mutant.
func TestTable(t *testing.T) {
	all := slices.Concat(creating, waiting, calling, getFaults, coming, jobLookupFaults, working, updating)
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, "Client", "Worker"), All(), 40, func(i int) error {
		all[i].Edit(gearmonkey.Document()) // panics if the edit does not apply
		return nil
	})
}

// TestSomeMutants runs some mutants of every kind against the suite.
func TestSomeMutants(t *testing.T) {
	sound := conform.Baseline{
		Start: func(ctx context.Context) (target.Target, error) {
			return target.Func(ctx, "embedded", func(ctx context.Context, ln net.Listener) error {
				return refserver.New(server.New(server.Options{}), refserver.Options{Protocol: protocol.Protocol}).Serve(ctx, ln)
			})
		},
		Programs: map[string]conform.Program{"Client": gearmonkey.Drive, "Worker": gearmonkey.Drive},
	}
	mutanttest.RunSample(t, mutanttest.Suite(t, protocol.Protocol, "Client", "Worker"), sound, All(), []string{
		"priority-ignored",                  // a different command
		"scheduled-and-queued",              // an additional command
		"input-ends-at-its-nul",             // a changed value
		"uid-repaired",                      // a different reaction to an error
		"high-job-id-wrong",                 // a different reply to the caller
		"time-out-takes-the-job-back",       // a longer sequence
		"zero-is-enough",                    // a different check of a reply
		"roll-call-remembered",              // state between jobs
		"two-fields-only",                   // a changed result of Client.get
		"registers-once-in-its-life",        // a worker's start
		"stays-registered-without-a-job",    // a worker's exit
		"gives-up",                          // a loop that ends
		"script-not-loaded-again",           // a missing Cure
		"output-trimmed",                    // a changed output of the handler
		"scheduled-jobs-not-announced",      // a condition
		"progress-upside-down",              // an update
		"empty-output-is-an-error",          // a status
		"function-ends-at-its-colon",        // a name
		"time-out-is-the-end-of-the-client", // a client that stops working
	}, nil)
}
