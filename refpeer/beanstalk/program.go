package beanstalk

import (
	"fmt"

	"jobwire/refpeer/internal/line"
)

// Step is one message of a sequence, and Sequence contains the messages that are sent in one write.
type (
	Step     = line.Step[Task]
	Sequence = line.Sequence[Task]
)

// Program contains everything that a client sends, and how it handles what it receives.
type Program struct {
	Use    Sequence // before put and kick, if the connection uses another tube
	Watch  Sequence // before reserve, for each tube of the task that the connection does not watch
	Ignore Sequence // before reserve, for each watched tube that the task does not name

	Put       Sequence
	Reserve   Sequence
	Reserved  Sequence // after a job was reserved; it is empty
	PeekReady Sequence // if ByID is true: to find a job that is ready
	Fetch     Sequence // to reserve a job by its ID
	Delete    Sequence
	Release   Sequence
	Bury      Sequence
	Touch     Sequence
	Peek      Sequence
	Kick      Sequence
	Pause     Sequence
	Stats     Sequence
	Leave     Sequence // before the client closes a connection

	line.Quirks

	// Options that the protocol leaves to clients.
	PerTask    bool // each task has its own connection, which stays open as long as it has a reserved job
	Pipelined  bool // use, watch and ignore are sent together with the next command
	InPieces   bool // a client that waits for a job sends several reserve commands, which wait for at most Piece seconds
	Piece      int
	ByID       bool // jobs are found with peek-ready and reserved with reserve-job
	Reconnects bool // before a command about a reserved job, the client connects again and reserves the job by its ID
	OwnLimit   bool // the client measures the timeout of reserve itself, and closes the connection when it has expired

	// Faults.
	KeepsUsed    bool // a new connection is taken to use the tube that the previous connection used
	LateIgnore   bool // the tube default is ignored only before the second reserve of a connection
	KeepsWatched bool // a new connection is taken to watch the tubes that the previous connection watched
}

// Task contains the values of a task and its results. Its values replace the placeholders of a sequence.
type Task struct {
	Tube     []byte
	Tubes    []string // of reserve and work
	Body     []byte
	ID       []byte
	Priority []byte
	Delay    []byte // in seconds
	TTR      []byte // in seconds
	Limited  bool   // reserve has a timeout
	Timeout  int    // of reserve, in seconds
	Reserved bool   // the connection has reserved the job
	Bound    []byte // of kick
	How      string // what a worker does with a job
	Jobs     int    // of a worker; 0: as many as there are

	Count []byte // of kicked jobs, and of the jobs of a worker
	State []byte // of a job
}

var placeholders = map[string]func(*Task) []byte{
	"TUBE":    func(t *Task) []byte { return t.Tube },
	"BODY":    func(t *Task) []byte { return t.Body },
	"ID":      func(t *Task) []byte { return t.ID },
	"PRI":     func(t *Task) []byte { return t.Priority },
	"DELAY":   func(t *Task) []byte { return t.Delay },
	"TTR":     func(t *Task) []byte { return t.TTR },
	"TIMEOUT": func(t *Task) []byte { return fmt.Append(nil, t.Timeout) },
	"BOUND":   func(t *Task) []byte { return t.Bound },
}

// Values of options that a task does not contain.
const (
	defaultPriority = "0"
	defaultDelay    = "0"
	defaultTTR      = "60"
)

// Document returns a client or worker that behaves as the specification describes. All options have
// their zero values.
func Document() *Program {
	return &Program{
		Use:    Sequence{{Do: "use {TUBE}"}},
		Watch:  Sequence{{Do: "watch {TUBE}"}},
		Ignore: Sequence{{Do: "ignore {TUBE}"}},
		Put:    Sequence{{Do: "put {PRI} {DELAY} {TTR} {BODY}"}},
		Reserve: Sequence{
			{Do: "reserve", If: func(t *Task) bool { return !t.Limited }},
			{Do: "reserve-with-timeout {TIMEOUT}", If: func(t *Task) bool { return t.Limited }},
		},
		PeekReady: Sequence{{Do: "peek-ready"}},
		Fetch:     Sequence{{Do: "reserve-job {ID}"}},
		Delete:    Sequence{{Do: "delete {ID}"}},
		Release:   Sequence{{Do: "release {ID} {PRI} {DELAY}"}},
		Bury:      Sequence{{Do: "bury {ID} {PRI}"}},
		Touch:     Sequence{{Do: "touch {ID}"}},
		Peek:      Sequence{{Do: "peek {ID}"}},
		Kick:      Sequence{{Do: "kick {BOUND}"}},
		Pause:     Sequence{{Do: "pause-tube {TUBE} {DELAY}"}},
		Stats:     Sequence{{Do: "stats-job {ID}"}},
		Leave:     Sequence{{Do: "quit"}},
	}
}
