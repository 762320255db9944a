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

// The table is complete and consistent, and leaves out no case about clients or workers.
func TestTable(t *testing.T) {
	all := slices.Concat(creating, waiting, calling, looking, coming, finding, working, updating)
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, "Client", "Worker"), All(), 40, func(i int) error {
		all[i].Edit(gearmonkey.Document()) // panics if it does not apply
		return nil
	})
}

// A few mutants of every kind, end to end.
func TestSomeMutants(t *testing.T) {
	sound := conform.Sound{
		Start: func(ctx context.Context) (target.Target, error) {
			return target.Func(ctx, "embedded", func(ctx context.Context, ln net.Listener) error {
				return refserver.New(server.New(server.Options{}), refserver.Options{Protocol: protocol.Protocol}).Serve(ctx, ln)
			})
		},
		Programs: map[string]conform.Program{"Client": gearmonkey.Drive, "Worker": gearmonkey.Drive},
	}
	mutanttest.Some(t, mutanttest.Suite(t, protocol.Protocol, "Client", "Worker"), sound, All(), []string{
		"priority-ignored",                  // another command
		"scheduled-and-queued",              // one more
		"input-ends-at-its-nul",             // another value
		"uid-repaired",                      // what is done about an error
		"high-job-told-otherwise",           // another answer
		"time-out-takes-the-job-back",       // a sequence that goes on
		"zero-is-enough",                    // another judgement of a reply
		"roll-call-remembered",              // something remembered
		"two-fields-only",                   // what a look finds
		"registers-once-in-its-life",        // a start
		"stays-registered-without-a-job",    // an exit
		"gives-up",                          // a loop that ends
		"script-not-loaded-again",           // a cure that is missing
		"output-trimmed",                    // what the handler made
		"scheduled-jobs-not-announced",      // a condition
		"progress-upside-down",              // an update
		"empty-output-is-an-error",          // a status
		"function-ends-at-its-colon",        // a name
		"time-out-is-the-end-of-the-client", // a client that is broken
	}, nil)
}
