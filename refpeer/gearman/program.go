package gearman

import (
	"slices"
	"strings"

	"jobwire/refpeer/internal/line"
)

// Step is one message of a sequence, and Sequence what is sent in one go.
type (
	Step     = line.Step[Task]
	Sequence = line.Sequence[Task]
)

// Program is all that clients and workers send, and how they take what comes.
type Program struct {
	Option Sequence // before a client's first job that is to have exceptions told
	Submit Sequence // for a job
	Status Sequence // for the status of a job
	Echo   Sequence

	Enter Sequence // a worker's start, for each of its functions
	Ask   Sequence // for a job
	Sleep Sequence // when there is none
	Tell  Sequence // what it says of a job before its end
	End   Sequence // and its end

	line.Habits
	Deaf  bool // an ERROR is passed over
	Naps  int  // how often a worker that is woken sleeps again before it asks
	Mixes bool // a result is taken for that of the first job that waits
}

// Task is what a sequence is about. Its values are those of the placeholders.
type Task struct {
	Function, Unique, Workload, Handle []byte
	At, Limit, Name                    []byte // seconds since 1970; seconds; a worker's ID
	Result                             []byte // also an exception's text
	How                                string // what a worker does with it
	Priority                           string
	Background, Exceptions             bool

	events []string // what a client was told before the end
	end    error
	done   bool
}

var placeholders = map[string]func(*Task) []byte{
	"FN":       func(t *Task) []byte { return t.Function },
	"UNIQUE":   func(t *Task) []byte { return t.Unique },
	"WORKLOAD": func(t *Task) []byte { return t.Workload },
	"HANDLE":   func(t *Task) []byte { return t.Handle },
	"AT":       func(t *Task) []byte { return t.At },
	"LIMIT":    func(t *Task) []byte { return t.Limit },
	"NAME":     func(t *Task) []byte { return t.Name },
	"RESULT":   func(t *Task) []byte { return t.Result },
}

// Document returns the sequences of the document.
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
		Tell: Sequence{
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
			If: func(t *Task) bool { return len(t.At) == 0 && t.Priority == s.priority && t.Background == s.is }})
	}
	p.Submit = append(p.Submit, Step{Do: "SUBMIT_JOB_EPOCH {FN} {UNIQUE} {AT} {WORKLOAD}", If: func(t *Task) bool { return len(t.At) > 0 }})
	return p
}

// how is the condition that a job is done in one of the ways.
func how(ways string) func(*Task) bool {
	return func(t *Task) bool { return slices.Contains(strings.Fields(ways), t.How) }
}
