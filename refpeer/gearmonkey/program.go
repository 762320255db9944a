package gearmonkey

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
)

// Step is one command of a sequence with the check of its reply; or, if Local is set, a function that is called between
// commands.
type Step struct {
	// Do is the name of the command's message type and its arguments. {PLACEHOLDERS} are those of the specification; they
	// may be parts of a word, and words may be quoted. The first word is the name of the step, also if Local is set.
	Do string

	If    func(*Task) bool                   // whether to perform the step; nil: always
	Then  func(*Task, *codec.Message) error  // checks a reply that is not an error, and stores its values; nil accepts any
	Local func(context.Context, *Task) error // called instead of sending a command

	// Cure contains the steps to perform if the server replies with an error whose code is For. Then the
	// command is sent once more.
	For  string
	Cure Sequence
}

// Sequence contains steps that are performed in order. It ends at the first step that fails.
type Sequence []Step

// Program contains the commands that clients and workers send to Redis, as one sequence for each of their operations.
type Program struct {
	Run Sequence // Client.run
	Get Sequence // Client.get

	Load   Sequence // at the start of a worker
	Enter  Sequence // at the start of a worker, for each of its functions
	Look   Sequence // in each round of a worker's loop, to get a job of one function
	Work   Sequence // for each job
	Update Sequence // Worker.update
	Leave  Sequence // at the exit of a worker, for each registered function
}

// Task contains the values that replace the placeholders of a sequence.
type Task struct {
	Function, ID, Input, Output, Status []byte
	Priority, Scheduled, Timeout        []byte // seconds
	Dividend, Divisor                   []byte
	Script, SHA1, Date                  []byte

	RollCall, Blocking bool
	Job                Job // the result of Client.get

	lost   bool    // the job of a worker has no input
	handle Handler // called by Work
}

// placeholders are the names of a task's values in steps. All but the last two are in the specification, which contains the
// values of these two literally.
var placeholders = map[string]func(*Task) []byte{
	"FN":          func(t *Task) []byte { return t.Function },
	"ID":          func(t *Task) []byte { return t.ID },
	"PRIO":        func(t *Task) []byte { return t.Priority },
	"INPUT":       func(t *Task) []byte { return t.Input },
	"OUTPUT":      func(t *Task) []byte { return t.Output },
	"STATUS":      func(t *Task) []byte { return t.Status },
	"TIMEOUT":     func(t *Task) []byte { return t.Timeout },
	"SCHEDULED":   func(t *Task) []byte { return t.Scheduled },
	"SYSTEM_DATE": func(t *Task) []byte { return t.Date },
	"DIVIDEND":    func(t *Task) []byte { return t.Dividend },
	"DIVISOR":     func(t *Task) []byte { return t.Divisor },
	"SCRIPT":      func(t *Task) []byte { return t.Script },
	"SHA1":        func(t *Task) []byte { return t.SHA1 },
}

// Document returns a program that follows the specification.
func Document() *Program {
	load := Sequence{
		{Do: "SCRIPT_LOAD {SCRIPT}", Then: takeSHA1},
	}
	return &Program{
		Run: Sequence{
			{Do: "GET_COUNT {FN}", If: rollCall, Then: registered},
			{Do: "INCR_UID {FN}", Then: takeNewID},
			{Do: "HMSET_IDLE {FN} {ID} {INPUT}", Then: saysOK},
			{Do: "PUBLISH_CREATE {FN} {ID}", Then: counts},
			{Do: "ZADD_SCHEDULED {FN} {SCHEDULED} {ID}", If: scheduled, Then: counts},
			{Do: "LPUSH_QUEUE {FN} {PRIO} {ID}", If: unscheduled, Then: counts},
			{Do: "BRPOP_LOCK {FN} {ID} {TIMEOUT}", If: blocking, Then: unlocked},
		},
		Get: Sequence{
			{Do: "HGETALL_JOB {FN} {ID}", Then: takeJob},
		},
		Load: load,
		Enter: Sequence{
			{Do: "INCR_COUNT {FN}", Then: counts},
		},
		Look: Sequence{
			{Do: "EVALSHA_SCHEDULED {SHA1} {FN} {SYSTEM_DATE}", Then: takeScheduled, For: "NOSCRIPT", Cure: load},
			{Do: "BRPOP_QUEUES {FN} 1", If: without, Then: takePopped},
		},
		Work: Sequence{
			{Do: "PUBLISH_START {FN} {ID}", Then: counts},
			{Do: "HMSET_BUSY {FN} {ID}", Then: saysOK},
			// The specification does not say how a worker reads the input.
			{Do: "HGET_INPUT {FN} {ID}", Then: takeInput},
			{Do: "work", Local: work},
			{Do: "HMSET_DONE {FN} {ID} {STATUS} {OUTPUT}", Then: saysOK},
			{Do: "EXPIRE_JOB {FN} {ID} 90000", Then: counts},
			{Do: "PUBLISH_FINISH {FN} {ID}", Then: counts},
			{Do: "LPUSH_LOCK {FN} {ID} OK", Then: counts},
			{Do: "EXPIRE_LOCK {FN} {ID} 10", Then: counts},
		},
		Update: Sequence{
			{Do: "HMSET_PROGRESS {FN} {ID} {DIVIDEND} {DIVISOR}", Then: saysOK},
		},
		Leave: Sequence{
			{Do: "DECR_COUNT {FN}", Then: counts},
		},
	}
}

func (s *Step) name() string {
	name, _, _ := strings.Cut(s.Do, " ")
	return name
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// command returns the message type and the arguments of a step for a task.
func (s *Step) command(t *Task) (*codec.Type, [][]byte, error) {
	words, err := transcript.ParseWords(s.Do)
	msgType := protocol.Protocol.TypeNamed(s.name())
	if err != nil || msgType == nil {
		return nil, nil, fmt.Errorf("%w: step %q does not name a message type (%v)", ErrUsage, s.Do, err)
	}
	var args [][]byte
	for _, word := range words[1:] {
		args = append(args, placeholder.ReplaceAllFunc([]byte(word), func(name []byte) []byte {
			return placeholders[string(name[1:len(name)-1])](t)
		}))
	}
	return msgType, args, nil
}
