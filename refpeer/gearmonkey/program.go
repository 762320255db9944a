package gearmonkey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
)

// Step is one command of a sequence, and what becomes of its reply; or, if it is
// Local, something that is done between commands.
type Step struct {
	// Do is the name of the command's row and its arguments. {PLACEHOLDERS} are the
	// document's; they may stand within a word, and words may be quoted. The first
	// word is the name of the step, also of a Local one.
	Do string

	If    func(*Task) bool                   // whether the step is due; nil is always
	Then  func(*Task, *codec.Message) error  // judges the reply, which is no error, and keeps what it says; nil takes any
	Local func(context.Context, *Task) error // instead of a command

	// Cure is what to do once if the server answers an error with the code For,
	// before the command is sent again.
	For  string
	Cure Sequence
}

// Sequence is what a client or a worker does in one go. It ends at the first
// step that fails.
type Sequence []Step

// Program is all that clients and workers do.
type Program struct {
	Run Sequence // Client.run
	Get Sequence // Client.get

	Load   Sequence // a worker's start
	Enter  Sequence // the same, for each of its functions
	Look   Sequence // one round of its loop, for one function
	Work   Sequence // what becomes of a job
	Update Sequence // Worker.update
	Leave  Sequence // its exit, for each function that it entered
}

// Task is what a sequence is about. Its values are those of the placeholders.
type Task struct {
	Function, ID, Input, Output, Status []byte
	Priority, Scheduled, Timeout        []byte // seconds
	Dividend, Divisor                   []byte
	Script, SHA1, Date                  []byte

	RollCall, Blocking bool
	Job                Job // that a client found

	lost   bool    // a worker's job has no input
	handle Handler // works on it
}

// placeholders are the names of a task's values in steps. They are the document's,
// but for the last two, which it writes out.
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

// Document returns the sequences of the document, in its order. What differs from it is
// made by [Sequence.Edit] and [Sequence.Swap].
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
			{Do: "EVALSHA_SCHEDULED {SHA1} {FN} {SYSTEM_DATE}", Then: takeDue, For: "NOSCRIPT", Cure: load},
			{Do: "BRPOP_QUEUES {FN} 1", If: without, Then: takePopped},
		},
		Work: Sequence{
			{Do: "PUBLISH_START {FN} {ID}", Then: counts},
			{Do: "HMSET_BUSY {FN} {ID}", Then: saysOK},
			// The document does not say how a worker gets at the input.
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

// Name returns the first word of Do.
func (s *Step) Name() string {
	name, _, _ := strings.Cut(s.Do, " ")
	return name
}

// Edit returns the sequence with the step of that name replaced by those that
// edit makes of it: none to drop it, two of it to repeat it. It panics if there
// is no such step, as an edit that changes nothing is a mistake.
func (s Sequence) Edit(name string, edit func(Step) []Step) Sequence {
	k := s.find(name)
	return slices.Concat(s[:k], edit(s[k]), s[k+1:])
}

// Swap returns the sequence with the steps of those names in each other's place. It panics if
// one is missing.
func (s Sequence) Swap(a, b string) Sequence {
	i, k := s.find(a), s.find(b)
	s = slices.Clone(s)
	s[i], s[k] = s[k], s[i]
	return s
}

func (s Sequence) find(name string) int {
	for i := range s {
		if s[i].Name() == name {
			return i
		}
	}
	panic("gearmonkey: the sequence has no step " + name)
}

// command is a step, ready to be performed.
type command struct {
	Step
	name  string
	row   *codec.Type // nil if it is local
	words []word
	cure  cycle
}

// word is an argument: texts and values in turn.
type word []part

type part struct {
	text  []byte
	value func(*Task) []byte // instead of text
}

// cycle is a sequence, ready to be performed.
type cycle []command

// compile reads what the steps say. Steps stand in programs, so that a wrong one
// is a defect of the program: compile panics.
func (s Sequence) compile() cycle {
	var c cycle
	for i := range s {
		cmd := command{Step: s[i], name: s[i].Name()}
		if s[i].Local == nil {
			texts, err := transcript.ParseWords(s[i].Do)
			if cmd.row = protocol.Protocol.TypeNamed(cmd.name); cmd.row == nil || err != nil {
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
			w, text = append(w, part{text: []byte(text[:open])}), text[open:]
			continue
		}
		name, rest, ok := strings.Cut(text[1:], "}")
		value := placeholders[name]
		if !ok || value == nil {
			panic("gearmonkey: no placeholder begins " + text)
		}
		w, text = append(w, part{value: value}), rest
	}
	return w
}
