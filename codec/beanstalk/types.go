package beanstalk

import (
	"math"
	"slices"

	"jobwire/codec"
)

// Roles of a peer. Any of them may send every command: they tell the readers of
// a transcript what a connection is for.
const (
	Client codec.Role = 1 << iota
	Producer
	Worker

	anyone = Client | Producer | Worker
)

// Limits of the document, and of real servers where it has none.
const (
	MaxName        = 200       // bytes of a tube's name ("Producer Commands")
	DefaultMaxData = 1<<16 - 1 // bytes of a job's body, max-job-size ("Producer Commands")
	DefaultMaxLine = 224       // bytes of a line with its CR LF
	MaxPriority    = math.MaxUint32
)

// Sections of the document that the rows come from.
const (
	secProtocol = "Protocol"
	secProducer = "Producer Commands"
	secWorker   = "Worker Commands"
	secOther    = "Other Commands"
	secBeyond   = "beyond the document"
)

// nameChars are the bytes of a tube's name ("Protocol"). None of them means
// anything to YAML inside a scalar, so a list of names needs no quotes.
const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

// Fields that several rows share.
var (
	id        = codec.Field{Name: "Job ID", Kind: codec.Number, Rule: RuleDecimal, Assigned: true}
	priority  = codec.Field{Name: "Priority", Kind: codec.Number, Hi: MaxPriority, Rule: RulePriority}
	delay     = seconds("Delay")
	size      = codec.Field{Name: "Bytes", Kind: codec.Length, Hi: math.MaxUint32, Rule: RuleBytes}
	body      = codec.Field{Name: "Body"}
	yamlStart = codec.Field{Name: "Document start", Kind: codec.Literal, Lead: "---\n"}
	tube      = tubeName("Tube")
	job       = []codec.Field{id, size, body}
)

// seconds is a duration. The document calls it an integer; servers keep it in
// 32 bits.
func seconds(name string) codec.Field {
	return codec.Field{Name: name, Kind: codec.Number, Hi: math.MaxUint32, Rule: RuleSeconds}
}

func count(name string) codec.Field {
	return codec.Field{Name: name, Kind: codec.Number, Rule: RuleDecimal}
}

func tubeName(label string) codec.Field {
	return codec.Field{Name: label, Kind: codec.Text, Chars: nameChars, NotFirst: "-", Rule: RuleNameChars,
		Max: MaxName, MaxRule: RuleNameLength, NonEmpty: RuleNameEmpty}
}

// commands are the requests. Behind the replies of each row come those that may
// answer anything (general).
var commands = []codec.Type{
	{Name: "put", Section: secProducer, Fields: []codec.Field{priority, delay, seconds("TTR"), size, body},
		Replies: []string{"INSERTED", "BURIED_JOB", "EXPECTED_CRLF", "JOB_TOO_BIG", "DRAINING"}},
	{Name: "use", Section: secProducer, Fields: []codec.Field{tube}, Replies: []string{"USING"}},

	{Name: "reserve", Section: secWorker, Replies: []string{"RESERVED", "DEADLINE_SOON", "TIMED_OUT"}},
	{Name: "reserve-with-timeout", Section: secWorker, Fields: []codec.Field{{Name: "Timeout", Kind: codec.Signed, Rule: RuleTimeout}},
		Replies: []string{"RESERVED", "DEADLINE_SOON", "TIMED_OUT"}},
	{Name: "reserve-job", Section: secBeyond, Fields: []codec.Field{id}, Replies: []string{"RESERVED", "NOT_FOUND"}},
	{Name: "delete", Section: secWorker, Fields: []codec.Field{id}, Replies: []string{"DELETED", "NOT_FOUND"}},
	{Name: "release", Section: secWorker, Fields: []codec.Field{id, priority, delay}, Replies: []string{"RELEASED", "BURIED", "NOT_FOUND"}},
	{Name: "bury", Section: secWorker, Fields: []codec.Field{id, priority}, Replies: []string{"BURIED", "NOT_FOUND"}},
	{Name: "touch", Section: secWorker, Fields: []codec.Field{id}, Replies: []string{"TOUCHED", "NOT_FOUND"}},
	{Name: "watch", Section: secWorker, Fields: []codec.Field{tube}, Replies: []string{"WATCHING"}},
	{Name: "ignore", Section: secWorker, Fields: []codec.Field{tube}, Replies: []string{"WATCHING", "NOT_IGNORED"}},

	{Name: "peek", Section: secOther, Fields: []codec.Field{id}, Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "peek-ready", Section: secOther, Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "peek-delayed", Section: secOther, Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "peek-buried", Section: secOther, Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "kick", Section: secOther, Fields: []codec.Field{count("Bound")}, Replies: []string{"KICKED"}},
	{Name: "kick-job", Section: secOther, Fields: []codec.Field{id}, Replies: []string{"KICKED_JOB", "NOT_FOUND"}},
	{Name: "stats-job", Section: secOther, Fields: []codec.Field{id}, Replies: []string{"stats-reply", "OK", "NOT_FOUND"}},
	{Name: "stats-tube", Section: secOther, Fields: []codec.Field{tube}, Replies: []string{"stats-reply", "OK", "NOT_FOUND"}},
	{Name: "stats", Section: secOther, Replies: []string{"stats-reply", "OK"}},
	{Name: "list-tubes", Section: secOther, Replies: []string{"list-reply", "OK"}},
	{Name: "list-tube-used", Section: secOther, Replies: []string{"USING"}},
	{Name: "list-tubes-watched", Section: secOther, Replies: []string{"list-reply", "OK"}},
	{Name: "quit", Section: secOther},
	{Name: "pause-tube", Section: secOther, Fields: []codec.Field{tube, delay}, Replies: []string{"PAUSED", "NOT_FOUND"}},
}

// general are the replies that may answer any command ("Protocol").
var general = []string{"OUT_OF_MEMORY", "INTERNAL_ERROR", "BAD_FORMAT", "UNKNOWN_COMMAND"}

// replies are what servers send. Where rows share a word, the request tells
// which is due, or, for the two forms of a YAML body, the body does.
var replies = []codec.Type{
	{Name: "INSERTED", Section: secProducer, Fields: []codec.Field{id}},
	{Name: "BURIED_JOB", Word: "BURIED", Section: secProducer, Fields: []codec.Field{id}},
	{Name: "EXPECTED_CRLF", Section: secProducer},
	{Name: "JOB_TOO_BIG", Section: secProducer},
	{Name: "DRAINING", Section: secProducer},
	{Name: "USING", Section: secProducer, Fields: []codec.Field{tube}},

	{Name: "DEADLINE_SOON", Section: secWorker},
	{Name: "TIMED_OUT", Section: secWorker},
	{Name: "RESERVED", Section: secWorker, Fields: job},
	{Name: "DELETED", Section: secWorker},
	{Name: "NOT_FOUND", Section: secWorker},
	{Name: "RELEASED", Section: secWorker},
	{Name: "BURIED", Section: secWorker},
	{Name: "TOUCHED", Section: secWorker},
	{Name: "WATCHING", Section: secWorker, Fields: []codec.Field{count("Count")}},
	{Name: "NOT_IGNORED", Section: secWorker},

	{Name: "FOUND", Section: secOther, Fields: job},
	{Name: "KICKED", Section: secOther, Fields: []codec.Field{count("Count")}},
	{Name: "KICKED_JOB", Word: "KICKED", Section: secOther},
	{Name: "PAUSED", Section: secOther},
	{Name: "stats-reply", Word: "OK", Section: secOther, Fields: []codec.Field{size, yamlStart}, Repeat: []codec.Field{
		{Name: "Key", Kind: codec.Text, Chars: keyChars, NotFirst: "-", Rule: RuleReplyYAML, Term: ": ", NonEmpty: RuleReplyYAML},
		{Name: "Value", Kind: codec.Text, Term: "\n"}}},
	{Name: "list-reply", Word: "OK", Section: secOther, Fields: []codec.Field{size, yamlStart}, Repeat: []codec.Field{listed()}},
	{Name: "OK", Section: secOther, Fields: []codec.Field{size, {Name: "YAML", Rule: RuleReplyYAML}}},

	{Name: "OUT_OF_MEMORY", Section: secProtocol},
	{Name: "INTERNAL_ERROR", Section: secProtocol},
	{Name: "BAD_FORMAT", Section: secProtocol},
	{Name: "UNKNOWN_COMMAND", Section: secProtocol},
}

// keyChars are the bytes of a key in statistics.
const keyChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// listed is a tube's name in a list.
func listed() codec.Field {
	f := tubeName("Tube")
	f.Lead, f.Term = "- ", "\n"
	return f
}

// Framing rows, which the codec writes itself.
var (
	commandField = codec.Field{Name: "Command", Kind: codec.Code}
	replyField   = codec.Field{Name: "Reply", Kind: codec.Code}
)

// unknownCommand stands for a command that has no row.
const unknownCommand = 0xff

var (
	types   = table()
	answers = repliesByRow()          // by the index of a command, or unknownCommand
	byByte  [256][]*codec.Type        // commands, by the first byte of their word
	sizedAt = make([]int, len(types)) // by index: which field is the size of a body, or -1
)

func init() {
	for i, t := range types {
		if t.Req != 0 {
			byByte[t.Word[0]] = append(byByte[t.Word[0]], t)
		}
		sizedAt[i] = slices.IndexFunc(t.Fields, func(f codec.Field) bool { return f.Kind == codec.Length })
	}
}

// table joins both halves and fills in what is the same in every row of one.
func table() []*codec.Type {
	var all []*codec.Type
	for i := range commands {
		t := &commands[i]
		t.Req = anyone
		if len(t.Replies) > 0 {
			t.Replies = append(t.Replies, general...)
		}
		all = append(all, t)
	}
	for i := range replies {
		t := &replies[i]
		t.Res = anyone
		all = append(all, t)
	}
	for i, t := range all {
		if t.Word == "" {
			t.Word = t.Name
		}
		t.Sep, t.End, t.Index = " ", crlf, i
	}
	return all
}

// command returns the row of a command's word, or nil.
func command(word []byte) *codec.Type {
	if len(word) > 0 {
		for _, t := range byByte[word[0]] {
			if t.Word == string(word) {
				return t
			}
		}
	}
	return nil
}

// repliesByRow resolves the names in Replies.
func repliesByRow() (by [unknownCommand + 1][]*codec.Type) {
	byName := map[string]*codec.Type{}
	for _, t := range types {
		byName[t.Name] = t
	}
	for i, t := range types {
		for _, name := range t.Replies {
			by[i] = append(by[i], byName[name])
		}
	}
	for _, name := range general {
		by[unknownCommand] = append(by[unknownCommand], byName[name])
	}
	return by
}
