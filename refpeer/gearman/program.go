package gearman

import (
	"slices"
	"strings"
	"time"

	"jobwire/refpeer/internal/line"
)

// Step is one message of a sequence, and Sequence contains the messages that are sent in one write.
type (
	Step     = line.Step[Task]
	Sequence = line.Sequence[Task]
)

// Program contains everything that clients and workers send, and how they handle what they receive.
type Program struct {
	Option  Sequence // before the first job of a client that requests exceptions
	Submit  Sequence // to submit a job
	Created Sequence // after the JOB_CREATED of a job that the client waits for; it is empty
	Status  Sequence // to request the status of a job
	Echo    Sequence

	Start  Sequence // at the start of a worker, before Enter; it is empty
	Enter  Sequence // to register each function of a worker
	Ask    Sequence // to request a job
	Sleep  Sequence // after NO_JOB
	Report Sequence // the reports about a job before its end
	End    Sequence // the end of a job

	line.Quirks

	// Options that the protocol leaves to clients.
	PerTask bool // each task, and each job of a batch, has its own connection
	Waits   bool // the client waits for JOB_CREATED before it submits the next job
	Doubles bool // the client submits each job twice, over two connections
	Drops   bool // the first connection is closed after JOB_CREATED (worker: after JOB_ASSIGN), and the task starts again

	// Options that the protocol leaves to workers. Drops is one of them.
	Polls       bool          // the worker does not sleep: it asks again after a pause
	SleepLimit  time.Duration // a sleeping worker asks again after this time; 0: it waits for NOOP
	PerJob      bool          // each job has its own connection
	PerFunction bool          // each function has its own connection; the worker polls them in turn
	Pipelined   bool          // the end of a job and the next request for a job are sent together
	MaxJobs     int           // how many jobs the worker has at most at a time (0: one); it ends the last one first

	// Faults.
	IgnoresErrors bool // ERROR is ignored
	ExtraSleeps   int  // how often a worker that has received NOOP sends PRE_SLEEP again before it asks for a job
	MixesResults  bool // the client uses a result as the result of the first job that it waits for, whatever the handle is
}

// Task contains the values of a task and its results. Its values replace the placeholders of a sequence.
type Task struct {
	Function, Unique, Workload, Handle []byte
	At, Limit, Name                    []byte // seconds since 1970; milliseconds; a worker's ID
	Schedule                           []byte // minute, hour, day of month, month and day of week, with NULs between them
	Result                             []byte // or the text of an exception
	How                                string // what a worker does with a job
	Priority                           string
	Background, Exceptions             bool

	events  []string // reports that a client has received
	end     error
	created bool // the server has replied to the submission
	done    bool
}

var placeholders = map[string]func(*Task) []byte{
	"FN":       func(t *Task) []byte { return t.Function },
	"UNIQUE":   func(t *Task) []byte { return t.Unique },
	"WORKLOAD": func(t *Task) []byte { return t.Workload },
	"HANDLE":   func(t *Task) []byte { return t.Handle },
	"AT":       func(t *Task) []byte { return t.At },
	"SCHEDULE": func(t *Task) []byte { return t.Schedule },
	"LIMIT":    func(t *Task) []byte { return t.Limit },
	"NAME":     func(t *Task) []byte { return t.Name },
	"RESULT":   func(t *Task) []byte { return t.Result },
}

// Document returns a program that follows the specification, without options.
func Document() *Program {
	p := &Program{
		Option: Sequence{{Do: "OPTION_REQ exceptions"}},
		Status: Sequence{{Do: "GET_STATUS {HANDLE}"}},
		Echo:   Sequence{{Do: "ECHO_REQ {WORKLOAD}"}},
		Enter: Sequence{
			{Do: "SET_CLIENT_ID {NAME}", If: func(t *Task) bool { return len(t.Name) > 0 }},
			{Do: "CAN_DO {FN}", If: func(t *Task) bool { return len(t.Limit) == 0 }},
			{Do: "CAN_DO_TIMEOUT {FN} {LIMIT}", If: func(t *Task) bool { return len(t.Limit) > 0 }},
		},
		Ask:   Sequence{{Do: "GRAB_JOB_UNIQ"}},
		Sleep: Sequence{{Do: "PRE_SLEEP"}},
		Report: Sequence{
			{Do: "WORK_DATA {HANDLE} {WORKLOAD}", If: how("data")},
			{Do: "WORK_WARNING {HANDLE} {WORKLOAD}", If: how("warning")},
			{Do: "WORK_STATUS {HANDLE} 1 2", If: how("status")},
		},
		End: Sequence{
			{Do: "WORK_FAIL {HANDLE}", If: how("fail")},
			{Do: "WORK_EXCEPTION {HANDLE} {RESULT}", If: how("exception")},
			{Do: "WORK_COMPLETE {HANDLE} {RESULT}", If: how("echo reverse empty data warning status")},
		},
	}
	for _, s := range []struct {
		priority, bg string
		is           bool
	}{{"normal", "", false}, {"normal", "_BG", true}, {"high", "", false}, {"high", "_BG", true}, {"low", "", false}, {"low", "_BG", true}} {
		typ := "SUBMIT_JOB"
		if s.priority != "normal" {
			typ += "_" + strings.ToUpper(s.priority)
		}
		p.Submit = append(p.Submit, Step{Do: typ + s.bg + " {FN} {UNIQUE} {WORKLOAD}",
			If: func(t *Task) bool {
				return len(t.At) == 0 && len(t.Schedule) == 0 && t.Priority == s.priority && t.Background == s.is
			}})
	}
	p.Submit = append(p.Submit,
		Step{Do: "SUBMIT_JOB_EPOCH {FN} {UNIQUE} {AT} {WORKLOAD}", If: func(t *Task) bool { return len(t.At) > 0 }},
		Step{Do: "SUBMIT_JOB_SCHED {FN} {UNIQUE} {SCHEDULE}... {WORKLOAD}", If: func(t *Task) bool { return len(t.Schedule) > 0 }})
	return p
}

// how returns the condition that the task's word for what a worker does is one of ways.
func how(ways string) func(*Task) bool {
	return func(t *Task) bool { return slices.Contains(strings.Fields(ways), t.How) }
}
