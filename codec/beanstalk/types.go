package beanstalk

import (
	"math"
	"slices"
	"time"

	"jobwire/codec"
)

// Roles of a peer. Every role may send every command: in a transcript, they show the purpose of a connection.
const (
	Client codec.Role = 1 << iota
	Producer
	Worker

	anyPeer = Client | Producer | Worker
)

// Limits from the specification or, if it has none, from real servers.
const (
	maxName        = 200       // bytes of a tube's name ("Producer Commands")
	DefaultMaxData = 1<<16 - 1 // bytes of a job's body, max-job-size ("Producer Commands")
	DefaultMaxLine = 224       // bytes of a line with its CR LF
	maxPriority    = math.MaxUint32
)

// Sections of the specification that declare the message types.
const (
	secProtocol = "Protocol"
	secProducer = "Producer Commands"
	secWorker   = "Worker Commands"
	secOther    = "Other Commands"
	secBeyond   = "beyond the specification"
)

// nameChars are the bytes that are allowed in the name of a tube ("Protocol"). None of them is special in a
// YAML scalar, so a list of names needs no quotes.
const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

// defaultTube is the tube that a new connection uses and watches.
const defaultTube = "default"

// Fields that several message types share.
var (
	id       = codec.Field{Name: "Job ID", Kind: codec.Number, Means: codec.JobID, Rule: RuleDecimal, Assigned: true}
	priority = codec.Field{Name: "Priority", Kind: codec.Number, Means: codec.PriorityOf, Hi: maxPriority,
		Rule: RulePriority}
	delay     = seconds("Delay", codec.Delay)
	size      = codec.Field{Name: "Bytes", Kind: codec.Length, Hi: math.MaxUint32, Rule: RuleBytes}
	body      = codec.Field{Name: "Body", Means: codec.Payload}
	yamlStart = codec.Field{Name: "Document start", Kind: codec.Literal, Prefix: "---\n"}
	tube      = tubeName("Tube")
	job       = []codec.Field{id, size, body}
)

// seconds returns a field for a duration. The specification calls it an integer; servers store it in 32 bits.
func seconds(name string, means codec.Meaning) codec.Field {
	return codec.Field{Name: name, Kind: codec.Number, Means: means, Unit: time.Second, Hi: math.MaxUint32,
		Rule: RuleSeconds}
}

func count(name string) codec.Field {
	return codec.Field{Name: name, Kind: codec.Number, Rule: RuleDecimal}
}

func tubeName(label string) codec.Field {
	return codec.Field{Name: label, Kind: codec.Text, Means: codec.Queue, Chars: nameChars, NotFirst: "-",
		Rule: RuleNameChars,
		Max:  maxName, MaxRule: RuleNameLength, NonEmpty: RuleNameEmpty, Examples: []string{defaultTube, "a", "b"}}
}

// commands are the requests. The function table adds the replies that may answer any command (general) to the
// Replies of each.
var commands = []codec.Type{
	{Name: "put", Section: secProducer, Does: codec.Submit, Background: true,
		Fields:  []codec.Field{priority, delay, seconds("TTR", codec.TimeLimit), size, body},
		Replies: []string{"INSERTED", "BURIED_JOB", "EXPECTED_CRLF", "JOB_TOO_BIG", "DRAINING"}},
	{Name: "use", Section: secProducer, Does: codec.Use, Fields: []codec.Field{tube}, Replies: []string{"USING"}},

	{Name: "reserve", Section: secWorker, Does: codec.Ask, Blocks: codec.Always,
		Replies: []string{"RESERVED", "DEADLINE_SOON", "TIMED_OUT"}},
	{Name: "reserve-with-timeout", Section: secWorker, Does: codec.Ask, Blocks: codec.UnlessZero,
		Fields: []codec.Field{{Name: "Timeout", Kind: codec.Signed, Means: codec.Timeout, Unit: time.Second,
			Rule: RuleTimeout}},
		Replies: []string{"RESERVED", "DEADLINE_SOON", "TIMED_OUT"}},
	{Name: "reserve-job", Section: secBeyond, Does: codec.Ask, Fields: []codec.Field{id},
		Replies: []string{"RESERVED", "NOT_FOUND"}},
	{Name: "delete", Section: secWorker, Does: codec.Delete, Fields: []codec.Field{id},
		Replies: []string{"DELETED", "NOT_FOUND"}},
	{Name: "release", Section: secWorker, Does: codec.Release, Fields: []codec.Field{id, priority, delay},
		Replies: []string{"RELEASED", "BURIED", "NOT_FOUND"}},
	{Name: "bury", Section: secWorker, Does: codec.Bury, Fields: []codec.Field{id, priority},
		Replies: []string{"BURIED", "NOT_FOUND"}},
	{Name: "touch", Section: secWorker, Does: codec.Touch, Fields: []codec.Field{id},
		Replies: []string{"TOUCHED", "NOT_FOUND"}},
	{Name: "watch", Section: secWorker, Does: codec.Register, Fields: []codec.Field{tube}, Replies: []string{"WATCHING"}},
	{Name: "ignore", Section: secWorker, Does: codec.Unregister, Fields: []codec.Field{tube},
		Replies: []string{"WATCHING", "NOT_IGNORED"}},

	{Name: "peek", Section: secOther, Does: codec.Query, Fields: []codec.Field{id},
		Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "peek-ready", Section: secOther, Does: codec.Query, Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "peek-delayed", Section: secOther, Does: codec.Query, Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "peek-buried", Section: secOther, Does: codec.Query, Replies: []string{"FOUND", "NOT_FOUND"}},
	{Name: "kick", Section: secOther, Does: codec.Kick, Fields: []codec.Field{count("Bound")},
		Replies: []string{"KICKED"}},
	{Name: "kick-job", Section: secOther, Does: codec.Kick, Fields: []codec.Field{id},
		Replies: []string{"KICKED_JOB", "NOT_FOUND"}},
	{Name: "stats-job", Section: secOther, Does: codec.Query, Fields: []codec.Field{id},
		Replies: []string{"stats-reply", "OK", "NOT_FOUND"}},
	{Name: "stats-tube", Section: secOther, Does: codec.Query, Fields: []codec.Field{tube},
		Replies: []string{"stats-reply", "OK", "NOT_FOUND"}},
	{Name: "stats", Section: secOther, Does: codec.Query, Replies: []string{"stats-reply", "OK"}},
	{Name: "list-tubes", Section: secOther, Does: codec.Query, Replies: []string{"list-reply", "OK"}},
	{Name: "list-tube-used", Section: secOther, Does: codec.Query, Replies: []string{"USING"}},
	{Name: "list-tubes-watched", Section: secOther, Does: codec.Query, Replies: []string{"list-reply", "OK"}},
	{Name: "quit", Section: secOther, Does: codec.Leave},
	{Name: "pause-tube", Section: secOther, Does: codec.Pause, Fields: []codec.Field{tube, delay},
		Replies: []string{"PAUSED", "NOT_FOUND"}},
}

// general are the replies that may answer any command ("Protocol").
var general = []string{"OUT_OF_MEMORY", "INTERNAL_ERROR", "BAD_FORMAT", "UNKNOWN_COMMAND"}

// replies are the messages that servers send. If several types have the same word, the request determines the
// type; for the two forms of a YAML body, the body does.
var replies = []codec.Type{
	{Name: "INSERTED", Section: secProducer, Does: codec.Accept, Fields: []codec.Field{id}},
	{Name: "BURIED_JOB", Word: "BURIED", Section: secProducer, Does: codec.Bury, Fields: []codec.Field{id}},
	{Name: "EXPECTED_CRLF", Section: secProducer, Does: codec.Refuse},
	{Name: "JOB_TOO_BIG", Section: secProducer, Does: codec.Refuse},
	{Name: "DRAINING", Section: secProducer, Does: codec.Refuse},
	{Name: "USING", Section: secProducer, Does: codec.Answer, Fields: []codec.Field{tube}},

	{Name: "DEADLINE_SOON", Section: secWorker, Does: codec.NoJob},
	{Name: "TIMED_OUT", Section: secWorker, Does: codec.NoJob},
	{Name: "RESERVED", Section: secWorker, Does: codec.Assign, Fields: job},
	{Name: "DELETED", Section: secWorker, Does: codec.Answer},
	{Name: "NOT_FOUND", Section: secWorker, Does: codec.Refuse},
	{Name: "RELEASED", Section: secWorker, Does: codec.Answer},
	{Name: "BURIED", Section: secWorker, Does: codec.Bury},
	{Name: "TOUCHED", Section: secWorker, Does: codec.Answer},
	{Name: "WATCHING", Section: secWorker, Does: codec.Answer, Fields: []codec.Field{count("Count")}},
	{Name: "NOT_IGNORED", Section: secWorker, Does: codec.Refuse},

	{Name: "FOUND", Section: secOther, Does: codec.Answer, Fields: job},
	{Name: "KICKED", Section: secOther, Does: codec.Answer, Fields: []codec.Field{count("Count")}},
	{Name: "KICKED_JOB", Word: "KICKED", Section: secOther, Does: codec.Answer},
	{Name: "PAUSED", Section: secOther, Does: codec.Answer},
	{Name: "stats-reply", Word: "OK", Section: secOther, Does: codec.Answer, Varies: true,
		Fields: []codec.Field{size, yamlStart}, Repeat: []codec.Field{
			{Name: "Key", Kind: codec.Text, Term: ": ", NonEmpty: RuleReplyYAML, Scalar: true, Unique: true, Only: true,
				Examples: []string{"pid", "current-jobs-ready", "os.name", "a b", "d: e", "-", "it's", "\u00e9"}},
			{Name: "Value", Kind: codec.Text, Term: "\n", Scalar: true, Only: true,
				Examples: []string{"", "0", "ready", "a b", "a: b", "it's", "\\", "-1", "1.13", "4611686018427387904"}}}},
	{Name: "list-reply", Word: "OK", Section: secOther, Does: codec.Answer, Varies: true,
		Fields: []codec.Field{size, yamlStart}, Repeat: []codec.Field{listed()}},
	{Name: "OK", Section: secOther, Does: codec.Answer, Varies: true,
		Fields: []codec.Field{size, {Name: "YAML", Rule: RuleReplyYAML, Only: true,
			Examples: []string{"---\n\"a\": '\"b\"'\n", "{a: \"'b'\"}", "---\n- \"a b\"", "- -a\n- b\n", "---\n- 'a:b'\n"}}}},

	{Name: "OUT_OF_MEMORY", Section: secProtocol, Does: codec.Refuse},
	{Name: "INTERNAL_ERROR", Section: secProtocol, Does: codec.Refuse},
	{Name: "BAD_FORMAT", Section: secProtocol, Does: codec.Refuse},
	{Name: "UNKNOWN_COMMAND", Section: secProtocol, Does: codec.Refuse},
}

// listed returns the field for a tube's name in a list.
func listed() codec.Field {
	f := tubeName("Tube")
	f.Prefix, f.Term, f.Scalar = "- ", "\n", true
	return f
}

// Framing fields, which the codec writes itself.
var (
	commandField = codec.Field{Name: "Command", Kind: codec.Code}
	replyField   = codec.Field{Name: "Reply", Kind: codec.Code}
)

var (
	types  = table()
	byByte [256][]*codec.Type // commands, by the first byte of their word
	// by index of the type: index of the field that contains the size of the body, or -1 if messages of the type have no
	// body
	sizedAt = make([]int, len(types))
)

func init() {
	for i, t := range types {
		if t.Req != 0 {
			byByte[t.Word[0]] = append(byByte[t.Word[0]], t)
		}
		sizedAt[i] = slices.IndexFunc(t.Fields, func(f codec.Field) bool { return f.Kind == codec.Length })
	}
}

// unknownCommand represents a command without a message type.
var unknownCommand = func() *codec.Type {
	t := &codec.Type{}
	for _, name := range general {
		t.Answers = append(t.Answers, codec.Named(types, name))
	}
	return t
}()

var (
	commandForm = codec.Form{Any: []codec.RuleID{RuleLineCRLF, RuleLineLength, RuleDirection, RuleCommandKnown},
		Body:    []codec.RuleID{RulePutCRLF, RulePutSize},
		Missing: RuleCommandArgs, Extra: RuleCommandArgs, Trailing: RuleCommandSpacing, Spacing: RuleCommandSpacing}
	replyForm = codec.Form{Any: []codec.RuleID{RuleLineCRLF, RuleDirection, RuleReplyAsked},
		Body:    []codec.RuleID{RuleBodyCRLF},
		Missing: RuleReplyForm, Extra: RuleReplyForm, Trailing: RuleReplyForm, Spacing: RuleReplyForm}
	yamlForm = func() codec.Form {
		f := replyForm
		f.Body = []codec.RuleID{RuleBodyCRLF, RuleReplyYAML}
		return f
	}()
)

var framing = codec.Framing{Lines: &codec.Lines{Word: [2]*codec.Field{&commandField, &replyField}, End: crlf,
	Max: [2]int{DefaultMaxLine, DefaultMaxLine}, Scan: [2]int{maxScan, maxScan}, Unknown: general, Reject: reject,
	Body: [2]codec.Body{
		codec.Peer:   {Max: DefaultMaxData, Size: RulePutSize, End: RulePutCRLF, MaxOf: []string{"stats", "max-job-size"}},
		codec.Server: {Max: codec.DefaultMaxData, Size: RuleReplySize, End: RuleBodyCRLF}},
	Length: RuleLineLength, Inside: RuleLineCRLF, Command: RuleCommandKnown, Asked: RuleReplyAsked, Reply: RuleReplyForm}}

// table joins commands and replies and sets the fields that all of each have in common.
func table() []*codec.Type {
	for i := range commands {
		t := &commands[i]
		t.Req = anyPeer
		if t.Ordered = len(t.Replies) > 0; t.Ordered {
			t.Replies = append(t.Replies, general...)
		}
	}
	for i := range replies {
		replies[i].Res = anyPeer
	}
	all := codec.JoinTypes(commands, replies)
	for _, t := range all {
		if t.Word == "" {
			t.Word = t.Name
		}
		t.Sep, t.End, t.Form = " ", crlf, [2]*codec.Form{&commandForm, &replyForm}
		if len(t.Repeat) > 0 {
			t.Form[codec.Server] = &yamlForm
		}
	}
	return all
}

// command returns the message type of a command's word, or nil.
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
