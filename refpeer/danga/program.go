package danga

import (
	"bytes"
	"encoding/binary"

	protocol "jobwire/codec/danga"
	"jobwire/refpeer/internal/line"
)

// Step is one message of a sequence, and Sequence what is sent in one go.
type (
	Step     = line.Step[Task]
	Sequence = line.Sequence[Task]
)

// Program is all that applications and workers send, and how they take what comes.
type Program struct {
	Create Sequence // a job
	Status Sequence // for the progress of a job
	Result Sequence // for its result

	Enter Sequence // a worker's start
	Ask   Sequence // for a job
	Sleep Sequence // when there is none
	Tell  Sequence // what it says of a job before its end
	End   Sequence // and its end
	Leave Sequence

	line.Habits
	Naps int // how often a worker that is woken sleeps again before it asks
}

// Task is what a sequence is about. Its values are those of the placeholders.
type Task struct {
	Name, Key, Args, Handle []byte
	Type                    byte // of the job
	Names                   [][]byte
	Progress                [3]uint32 // numerator, denominator, seconds left
	Result                  []byte
	Code                    byte // of the result
	How                     string
	Took                    uint32 // seconds, 0 while the job is not finished

	events []string // what an application was told before the end
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

// half is the progress that a worker tells of: one of two, and nobody knows how long it takes.
var half = [3]uint32{1, 2, protocol.UnknownTime}

// Document returns the sequences of the document.
func Document() *Program {
	return &Program{
		Create: Sequence{{Do: "job_create_req {NAME} {KEY} {FLAGS} {TYPE} {ARGS}"}},
		Status: Sequence{{Do: "job_status_req {HANDLE}"}},
		Result: Sequence{{Do: "job_complete_req {HANDLE}"}},

		Enter: Sequence{{Do: "worker_connect {NAMES}..."}},
		Ask:   Sequence{{Do: "job_assign_req"}},
		Sleep: Sequence{{Do: "worker_sleep"}},
		Tell:  Sequence{{Do: "job_status_announce {DONE} {OF} {LEFT}", If: func(t *Task) bool { return t.How == "status" }}},
		End:   Sequence{{Do: "job_complete_announce {CODE} {RESULT}"}},
		Leave: Sequence{{Do: "worker_disconnect"}},
	}
}
