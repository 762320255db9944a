package loadgen

import (
	"fmt"
	"slices"
	"sync"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Account is what happened to the jobs of a run, warm-up included.
type Account struct {
	Submitted      int64 `json:"submitted"`
	Lost           int64 `json:"lost"`           // accepted, or sent, and no result arrived
	Unacknowledged int64 `json:"unacknowledged"` // finished, but the submission was not answered
	Duplicated     int64 `json:"duplicated"`     // assigned again for no reason, or after the end
	Corrupted      int64 `json:"corrupted"`      // payloads that are not what was sent
	Redelivered    int64 `json:"redelivered"`    // assigned again because the worker was killed, as expected
	AnsweredTwice  int64 `json:"answered_twice"` // results of jobs that had ended
	Misdirected    int64 `json:"misdirected"`    // results that belong to another client's job
	OutOfOrder     int64 `json:"out_of_order"`   // assigned before an older job of the same client, function and priority
	Refused        int64 `json:"refused"`        // answered with an error
	Censored       int64 `json:"censored"`       // in flight when the run was interrupted
	Skipped        int64 `json:"skipped"`        // scheduled, but not submitted because too many were in flight

	First string `json:"first_anomaly"` // the first thing that went wrong, as a transcript
}

// tally is one count of an account.
type tally struct {
	key   string // as in JSON
	count func(*Account) *int64
	bad   bool   // it may not happen
	words string // what happened to so many jobs
}

// tallies are the counts of an account, in the order of reports.
var tallies = []tally{
	{"lost", func(a *Account) *int64 { return &a.Lost }, true, "lost: no result arrived"},
	{"unacknowledged", func(a *Account) *int64 { return &a.Unacknowledged }, true, "unacknowledged: finished, but the server never acknowledged the submission"},
	{"duplicated", func(a *Account) *int64 { return &a.Duplicated }, true, "duplicated: assigned again while a worker had the job, or after the job had finished"},
	{"corrupted", func(a *Account) *int64 { return &a.Corrupted }, true, "corrupted: the received payload differs from the payload that was sent"},
	{"answered_twice", func(a *Account) *int64 { return &a.AnsweredTwice }, true, "answered twice: a result arrived for a job that had already finished"},
	{"misdirected", func(a *Account) *int64 { return &a.Misdirected }, true, "misdirected: the server sent the result to another client"},
	{"refused", func(a *Account) *int64 { return &a.Refused }, true, "refused: the server answered with an error"},
	{"redelivered", func(a *Account) *int64 { return &a.Redelivered }, false, "redelivered: assigned again after bench killed the worker, as expected"},
	{"out_of_order", func(a *Account) *int64 { return &a.OutOfOrder }, false, "out of order: assigned before an older job of the same client, function and priority"},
	{"censored", func(a *Account) *int64 { return &a.Censored }, false, "unfinished: in flight when the run was interrupted"},
	{"skipped", func(a *Account) *int64 { return &a.Skipped }, false, "skipped: scheduled, but not submitted because too many jobs were in flight"},
}

// NoFaults reports whether nothing happened to any job that should not.
func (a *Account) NoFaults() bool {
	return !slices.ContainsFunc(tallies, func(t tally) bool { return t.bad && *t.count(a) > 0 })
}

// runAccount is the account of a run in progress.
type runAccount struct {
	mu sync.Mutex
	Account
}

func (l *runAccount) account() Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Account
}

func (l *runAccount) count(counter *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*counter++
}

// countFault counts something that went wrong. The first is kept with its message.
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

// noteRefused notes a reply that refuses a request.
func (c *Conn) noteRefused(f *codec.Frame) {
	c.countFault(&c.run.ledger.Refused, f, "the server answered with an error")
}
