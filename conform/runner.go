package conform

import (
	"cmp"
	"context"
	"net"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/lateness"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// Result is the result of a case.
type Result struct {
	Case     *Case
	Verdict  verdict.Verdict
	Note     string // reason why the case was skipped or did not pass
	Quote    string // words of the specification that the target does not follow, if the profile contains them
	Finding  string // name or URL of a finding that explains the failure, if the profile contains it
	Took     time.Duration
	Segments play.Segmentation // how messages were divided into writes in the run that determined the verdict
	Play     *play.Result      // messages of that run; nil if the case passed or did not run
	Command  string            // command line that runs only this case; "" if Runner.Command is ""
	Crash    *Crash            // crash of the target during the case, or nil

	script *transcript.Script // transcript that was run
	setup  *brokenSetup       // nil if all setups worked

	sentBack bool // Inconclusive, because the case may have sent an illegal value that the target has sent in a setup

	lacking *codec.Type // a message that the target does not implement, so that the case failed or is Inferred; or nil
	lacks   string      // a sentence about lacking

	// Only in a result for all instances of a case:
	Instances int    // number of instances; 0: the result is for one instance
	Values    string // the values of the instances, by verdict
}

// Performed returns the transcript that was run: the transcript of the case, in which each setup
// uses a way that works on the target.
func (r *Result) Performed() *transcript.Script {
	if r.script != nil {
		return r.script
	}
	return r.Case.Script
}

// Runner runs suites against one target.
type Runner struct {
	// Start starts a server to test. Run calls it for each of the cases that run at the same time, and for each case that
	// needs a server of its own.
	Start func(context.Context) (target.Target, error)

	// StartProcess starts the server as a process whose resources can be checked. It may be nil if Start does that.
	StartProcess func(context.Context) (target.Target, error)

	// Programs are the clients and workers under test, by role.
	Programs map[string]Program

	Parallel int           // number of cases that run at the same time; 0: 1
	Timeout  time.Duration // timeout of an expectation; 0: play.DefaultTimeout
	// ways to divide messages into writes; each case runs once in each way; nil: only plain
	Segments         []play.Segmentation
	NewServerPerCase bool // every case gets a server of its own
	Strict           bool // a failure where the specification is silent is Failed instead of Different
	Waive            []codec.RuleID
	Profile          *Profile // profile of the target; may be nil
	Command          string   // a command line for [Result.Command], without the selection of cases; may be ""
	OmitPlay         bool     // results do not contain Play, which contains all messages

	// Virtual states that Run is called in a bubble of package testing/synctest, with a target in memory. A case then
	// begins with a second, a step ends when the target waits, this machine delays nothing, and the values of names in
	// messages are the same in each run. Parallel must be 0 or 1.
	Virtual bool

	// Ended, if it is not nil, is called with each result when the case has ended, in any order, and again with a result
	// that replaces an earlier one. It must not block.
	Ended func(Result)

	// Note, if it is not nil, is called with sentences about the run for [Report.Notes].
	Note func(string)

	// InferAfter is the number of instances of a case that must fail in the same way, at the end of a time limit, by a
	// crash or by a hang, before Run infers that the other instances with the same message fail, too, and does not run
	// them. 0: all instances run.
	InferAfter int

	// Budget is the time after which Run starts no further case. 0: no limit.
	Budget time.Duration

	ways *setupWays // ways to setups that work on the target; nil: not tested yet
}

// session is what the cases of a run share: the settings, and what the run has shown.
type session struct {
	Runner
	// barrier request to which the target replied before the first case; nil if it did not reply
	barrier     *transcript.Script
	checkTarget bool                // check the target after each run of a case, even if the case passed
	delay       *lateness.Meter     // scheduling delay of this machine
	large       chan struct{}       // for play.Options.Large
	unique      func(string) string // for play.Options.Unique
	kept        *atomic.Int64       // bytes of messages in the results
	silence     *silence            // replies that the target does not send
	same        *inference          // what the cases so far have shown; nil: the case runs whole
}

// maxKept is the number of bytes up to which the results of a run keep messages whole.
const maxKept = 16 << 20

// keep returns the number of bytes up to which the next result keeps messages whole.
func (s *session) keep() int { return max(1, maxKept-int(s.kept.Load())) }

// dialer returns a function that connects to a target within the timeout.
func dialer(t target.Target, timeout time.Duration) play.Dialer {
	return func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeout, play.DefaultTimeout))
		defer cancel()
		return target.Dial(ctx, t)
	}
}
