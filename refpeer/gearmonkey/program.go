package gearmonkey

import (
	"context"
	"fmt"
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

// command is a compiled step.
type command struct {
	Step
	name    string
	msgType *codec.Type // nil if Local is set
	words   []word
	cure    cycle
}

// word is an argument: its constant and variable parts.
type word []argPart

type argPart struct {
	text  []byte
	value func(*Task) []byte // instead of text
}

// cycle is a compiled sequence.
type cycle []command

// compile parses the steps of a sequence. It panics if a step is invalid, because steps are part of the program code.
func (s Sequence) compile() cycle {
	var c cycle
	for i := range s {
		name, _, _ := strings.Cut(s[i].Do, " ")
		cmd := command{Step: s[i], name: name}
		if s[i].Local == nil {
			texts, err := transcript.ParseWords(s[i].Do)
			if cmd.msgType = protocol.Protocol.TypeNamed(cmd.name); cmd.msgType == nil || err != nil {
				panic(fmt.Sprintf("gearmonkey: step %q does not name a message type (%v)", s[i].Do, err))
			}
			for _, text := range texts[1:] {
				cmd.words = append(cmd.words, compileWord(text))
			}
		}
		if s[i].Cure != nil {
			cmd.cure = s[i].Cure.compile()
		}
		c = append(c, cmd)
	}
	return c
}

func compileWord(text string) word {
	var w word
	for text != "" {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			open = len(text)
		}
		if open > 0 {
			w, text = append(w, argPart{text: []byte(text[:open])}), text[open:]
			continue
		}
		name, rest, ok := strings.Cut(text[1:], "}")
		value := placeholders[name]
		if !ok || value == nil {
			panic("gearmonkey: no placeholder begins " + text)
		}
		w, text = append(w, argPart{value: value}), rest
	}
	return w
}
