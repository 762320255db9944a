package loadgen

import (
	"fmt"
	"slices"
	"sync"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Account counts the jobs of a run, warm-up included, by what went wrong with them. A correct server causes only
// Submitted, Redelivered (if the run kills workers), OutOfOrder, Censored (if the run is interrupted) and Skipped to
// be greater than 0; see [Account.NoFaults].
type Account struct {
	Submitted int64 `json:"submitted"` // jobs that clients sent to the server
	// the client received no result before Config.DrainTimeout; in a scenario with background jobs: no worker completed
	// the job
	Lost           int64 `json:"lost"`
	Unacknowledged int64 `json:"unacknowledged"` // the job finished, but the server did not reply to the submission
	// assigned to a worker while another worker with an open connection had the job, or after the job had finished; or the
	// server refused the completion of an assigned job
	Duplicated int64 `json:"duplicated"`
	Corrupted  int64 `json:"corrupted"` // payloads or results that differ from the submitted payload
	// assigned again after the run had killed the worker that had the job; this is correct behavior
	Redelivered   int64 `json:"redelivered"`
	AnsweredTwice int64 `json:"answered_twice"` // replies or results for jobs that had already received theirs
	Misdirected   int64 `json:"misdirected"`    // results that the server sent to a client that had not submitted the job
	// assigned to a worker after a newer job of the same client, function and priority
	OutOfOrder int64 `json:"out_of_order"`
	Refused    int64 `json:"refused"`  // requests that the server answered with an error
	Censored   int64 `json:"censored"` // in flight when the run was interrupted
	// scheduled in an open loop, but not submitted, because the client had too many jobs in flight
	Skipped int64 `json:"skipped"`

	// the first fault: the connection, the reason, and the message as a line of a transcript; "" if there was none
	First string `json:"first_anomaly"`
}

// Counter describes one counter of an [Account], for reports.
type Counter struct {
	Key   string                // name of the counter in JSON and as a Prometheus label
	Of    func(*Account) *int64 // returns the counter
	Bad   bool                  // a correct server never causes it; the run fails if it is greater than 0
	Words string                // description, printed after the number
}

// Counters are the counters of an [Account] except Submitted, in the order in which reports print them.
var Counters = []Counter{
	{"lost", func(a *Account) *int64 { return &a.Lost }, true, "lost: no result arrived"},
	{"unacknowledged", func(a *Account) *int64 { return &a.Unacknowledged }, true,
		"unacknowledged: finished, but the server never acknowledged the submission"},
	{"duplicated", func(a *Account) *int64 { return &a.Duplicated }, true,
		"duplicated: assigned again while a worker had the job, or after the job had finished"},
	{"corrupted", func(a *Account) *int64 { return &a.Corrupted }, true,
		"corrupted: the received payload differs from the payload that was sent"},
	{"answered_twice", func(a *Account) *int64 { return &a.AnsweredTwice }, true,
		"answered twice: a result arrived for a job that had already finished"},
	{"misdirected", func(a *Account) *int64 { return &a.Misdirected }, true,
		"misdirected: the server sent the result to another client"},
	{"refused", func(a *Account) *int64 { return &a.Refused }, true, "refused: the server answered with an error"},
	{"redelivered", func(a *Account) *int64 { return &a.Redelivered }, false,
		"redelivered: assigned again after bench killed the worker, as expected"},
	{"out_of_order", func(a *Account) *int64 { return &a.OutOfOrder }, false,
		"out of order: assigned before an older job of the same client, function and priority"},
	{"censored", func(a *Account) *int64 { return &a.Censored }, false,
		"unfinished: in flight when the run was interrupted"},
	{"skipped", func(a *Account) *int64 { return &a.Skipped }, false,
		"skipped: scheduled, but not submitted because too many jobs were in flight"},
}

// Tally is a counter of an [Account] with its value.
type Tally struct {
	Counter
	Count int64
}

// Tallies returns the counters that are greater than 0, except Submitted, in the order in which reports print them.
func (a *Account) Tallies() (all []Tally) {
	for _, c := range Counters {
		if n := *c.Of(a); n > 0 {
			all = append(all, Tally{c, n})
		}
	}
	return all
}

// NoFaults reports whether all counters that a correct server never causes are 0.
func (a *Account) NoFaults() bool {
	return !slices.ContainsFunc(a.Tallies(), func(t Tally) bool { return t.Bad })
}

// runAccount is the Account of a run in progress. It is safe for concurrent use.
type runAccount struct {
	mu sync.Mutex
	Account
}

func (a *runAccount) account() Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Account
}

// count adds one to a counter of the account.
func (a *runAccount) count(counter *int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*counter++
}

// countFault increments a counter of faults. For the first fault of the run it also saves the reason why, and the
// message f unless f is nil or has no bytes.
func (c *Conn) countFault(counter *int64, f *codec.Frame, why string) {
	l := &c.run.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	*counter++
	if l.First != "" {
		return
	}
	text := fmt.Sprintf("# %s: %s\n", c.name, why)
	if f != nil && f.Raw != nil {
		p := &transcript.Printer{Protocol: c.run.cfg.Protocol, Fold: 4}
		text += string(p.AppendLine(nil, c.name, f))
	}
	l.First = text
}

// CountRefused counts a message in which the server refused a request.
func (c *Conn) CountRefused(f *codec.Frame) {
	c.countFault(&c.run.ledger.Refused, f, "the server answered with an error")
}
