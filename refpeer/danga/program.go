package danga

import (
	"bytes"
	"encoding/binary"
	"time"

	protocol "jobwire/codec/danga"
	"jobwire/refpeer/internal/line"
)

// Step is one message of a sequence, and Sequence contains the messages that are sent in one write.
type (
	Step     = line.Step[Task]
	Sequence = line.Sequence[Task]
)

// Program contains everything that applications and workers send, and how they handle what they receive.
type Program struct {
	Create    Sequence // to create a job
	Meanwhile Sequence // after the job_create_res of a job of type 0; each step creates a job of another type; it is empty
	Status    Sequence // to request the progress of a job
	Result    Sequence // to request the result of a job

	Enter  Sequence // at the start of a worker
	Ask    Sequence // to request a job
	Sleep  Sequence // after a noop that means that there is no job
	Report Sequence // the reports about a job before its end
	End    Sequence // the end of a job
	Leave  Sequence // before a worker closes the connection

	line.Quirks

	// Options that the protocol leaves to applications.
	PerTask bool // each task has its own connection; each job of a batch has two, to create it and to request its result
	Waits   bool // the application waits for job_create_res before it creates the next job
	Silent  bool // the driver does not report progress
	Drops   bool // the first connection is closed after job_create_res (worker: after job_assign_res), and the task starts again

	// Options that the protocol leaves to workers. Drops is one of them.
	Polls      bool          // the worker does not sleep: it asks again after a pause
	SleepLimit time.Duration // a sleeping worker asks again after this time; 0: it waits for noop
	PerJob     bool          // each job has its own connection
	PerName    bool          // each job name has its own connection; the worker polls them in turn

	// Faults.
	ExtraSleeps int // how often a worker that has received noop sends worker_sleep again before it asks for a job
}

// Task contains the values of a task and its results. Its values replace the placeholders of a sequence.
type Task struct {
	Name, Key, Args, Handle []byte
	Type                    byte // of the job
	Names                   [][]byte
	Progress                [3]uint32 // numerator, denominator, seconds left
	Result                  []byte
	Code                    byte // of the result
	How                     string
	Took                    uint32 // in seconds; 0: the job is not finished

	events []string // reports that an application has received
}

var placeholders = map[string]func(*Task) []byte{
	"NAME":   func(t *Task) []byte { return t.Name },
	"KEY":    func(t *Task) []byte { return t.Key },
	"FLAGS":  func(*Task) []byte { return []byte{0} },
	"TYPE":   func(t *Task) []byte { return []byte{t.Type} },
	"ARGS":   func(t *Task) []byte { return t.Args },
	"HANDLE": func(t *Task) []byte { return t.Handle },
	"NAMES":  func(t *Task) []byte { return bytes.Join(t.Names, []byte{0}) },
	"DONE":   func(t *Task) []byte { return integer(t.Progress[0]) },
	"OF":     func(t *Task) []byte { return integer(t.Progress[1]) },
	"LEFT":   func(t *Task) []byte { return integer(t.Progress[2]) },
	"CODE":   func(t *Task) []byte { return []byte{t.Code} },
	"RESULT": func(t *Task) []byte { return t.Result },
}

func integer(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// half is the progress that a worker reports: 1 of 2, with an unknown time remaining.
var half = [3]uint32{1, 2, protocol.UnknownTime}

// Document returns a client or worker that behaves as the draft describes. All options have their zero values.
func Document() *Program {
	return &Program{
		Create: Sequence{{Do: "job_create_req {NAME} {KEY} {FLAGS} {TYPE} {ARGS}"}},
		Status: Sequence{{Do: "job_status_req {HANDLE}"}},
		Result: Sequence{{Do: "job_complete_req {HANDLE}"}},

		Enter:  Sequence{{Do: "worker_connect {NAMES}..."}},
		Ask:    Sequence{{Do: "job_assign_req"}},
		Sleep:  Sequence{{Do: "worker_sleep"}},
		Report: Sequence{{Do: "job_status_announce {DONE} {OF} {LEFT}", If: func(t *Task) bool { return t.How == "status" }}},
		End:    Sequence{{Do: "job_complete_announce {CODE} {RESULT}"}},
		Leave:  Sequence{{Do: "worker_disconnect"}},
	}
}
