package danga

import (
	"math"

	"jobwire/codec"
)

// Roles of a peer, "A" and "W" in the draft's table.
const (
	Application codec.Role = 1 << iota
	Worker
)

// Limits for values that the draft does not limit (RuleTextCap, RuleNamesCap).
const (
	maxText  = 4096 // bytes of a job name, a duplicate key or a handle
	maxNames = 1024 // job names in one worker_connect
)

// DefaultMagic is the magic that a session writes until the first packet of the connection fixes another one. The draft
// does not define the four bytes.
const DefaultMagic = "GEAR"

// Job types ("Packet: job_create_req").
const (
	SyncWait   = 0 // the application waits; status and result are sent to it
	Async      = 1 // the application gets a handle, with which it can request the status
	AsyncThrow = 2 // the application does not request the result
)

// UnknownTime is the value of an unknown remaining time (danga.status.time-unknown).
const UnknownTime = math.MaxUint32

// ascii contains the bytes that are allowed in a text. NUL is not among them, because it ends the text.
var ascii = func() string {
	var b []byte
	for c := byte(1); c < 0x80; c++ {
		b = append(b, c)
	}
	return string(b)
}()

// Fields that several message types share.
var (
	jobName  = text("Job name", codec.Queue, RuleNameEmpty)
	nextName = following(jobName)
	args     = codec.Field{Name: "Args", Means: codec.Payload}
	handle   = codec.Field{Name: "Job handle", Kind: codec.Text, Means: codec.JobID, Chars: ascii, Rule: RuleASCII,
		Max: maxText, MaxRule: RuleTextCap, NonEmpty: RuleHandleEmpty, Assigned: true}
	resultCode = codec.Field{Name: "Result code", Kind: codec.Uint, Means: codec.Outcome, Width: 1, Rule: RuleInteger}
	resultData = codec.Field{Name: "Result data", Means: codec.Payload}
	flags      = codec.Field{Name: "Flags", Kind: codec.Uint, Width: 1, Rule: RuleInteger, Examples: []string{"\x00"}}
	progress   = []codec.Field{integer("Numerator", 4), integer("Denominator", 4), integer("Time remaining", 4)}
)

func text(name string, means codec.Meaning, nonEmpty codec.RuleID) codec.Field {
	return codec.Field{Name: name, Kind: codec.Text, Means: means, Chars: ascii, Rule: RuleASCII, Max: maxText,
		MaxRule: RuleTextCap, NonEmpty: nonEmpty}
}

func integer(name string, width int) codec.Field {
	return codec.Field{Name: name, Kind: codec.Uint, Width: width, Rule: RuleInteger}
}

// following returns the field for a further element of a list, which is preceded by a separator.
func following(f codec.Field) codec.Field {
	f.Prefix = "\x00"
	return f
}

func optional(f codec.Field) codec.Field {
	f.Optional = true
	return f
}

// packets are the message types in the order of their numbers.
var packets = []codec.Type{
	{Code: 0x00, Name: "noop", Res: Worker, Section: "Packet: noop", Does: codec.Wake},
	{Code: 0x01, Name: "worker_connect", Req: Worker, Section: "Packet: worker_connect", Does: codec.Register,
		Fields: []codec.Field{optional(jobName)}, Repeat: []codec.Field{nextName}},
	{Code: 0x02, Name: "worker_disconnect", Req: Worker, Section: "Packet: worker_disconnect", Does: codec.Leave},
	{Code: 0x03, Name: "worker_sleep", Req: Worker, Section: "Packet: worker_sleep", Does: codec.Sleep},
	{Code: 0x04, Name: "job_create_req", Req: Application, Section: "Packet: job_create_req", Does: codec.Submit,
		Blocks: codec.Attached, Replies: []string{"job_create_res"}, Fields: []codec.Field{
			jobName, text("Duplicate key", codec.UniqueID, ""), flags,
			{Name: "Job type", Kind: codec.Uint, Means: codec.Attachment, Width: 1, Hi: AsyncThrow, Rule: RuleJobType}, args}},
	{Code: 0x05, Name: "job_create_res", Res: Application, Section: "Packet: job_create_res", Does: codec.Accept,
		Fields: []codec.Field{optional(handle)}},
	{Code: 0x06, Name: "job_assign_req", Req: Worker, Section: "Packet: job_assign_req", Does: codec.Ask,
		Replies: []string{"job_assign_res", "noop"}},
	{Code: 0x07, Name: "job_assign_res", Res: Worker, Section: "Packet: job_assign_res", Does: codec.Assign,
		Fields: []codec.Field{jobName, args}},
	{Code: 0x08, Name: "job_status_announce", Req: Worker, Section: "Packet: job_status_announce", Does: codec.Status,
		Fields: progress},
	{Code: 0x09, Name: "job_status_req", Req: Application, Section: "Packet: job_status_req", Does: codec.Query,
		Replies: []string{"job_status_res"}, Fields: []codec.Field{handle}},
	{Code: 0x0a, Name: "job_status_res", Res: Application, Section: "Packet: job_status_res", Does: codec.Status,
		Fields: progress},
	{Code: 0x0b, Name: "job_complete_announce", Req: Worker, Section: "Packet: job_complete_announce",
		Does:   codec.Complete,
		Fields: []codec.Field{resultCode, resultData}},
	{Code: 0x0c, Name: "job_complete_req", Req: Application, Section: "Packet: job_complete_req", Does: codec.Wait,
		Replies: []string{"job_complete_res"}, Fields: []codec.Field{handle}},
	{Code: 0x0d, Name: "job_complete_res", Res: Application, Section: "Packet: job_complete_res", Does: codec.Complete,
		Fields: []codec.Field{
			{Name: "Job status", Kind: codec.Uint, Means: codec.Ended, Width: 4, Rule: RuleInteger}, resultCode, resultData}},
}

// Framing fields, which the codec writes itself.
var (
	magicField  = codec.Field{Name: "Magic", Kind: codec.Literal, Width: 4}
	codeField   = codec.Field{Name: "Packet type", Kind: codec.Code, Width: 1}
	lengthField = codec.Field{Name: "Length", Kind: codec.Length, Width: 4}
)

var form = codec.Form{Any: []codec.RuleID{RuleMagic, RuleTypeKnown, RuleTypeDirection, RuleSizeCap},
	Missing: RuleArgsMissing, Extra: RuleArgsExtra, Trailing: RuleArgsTrailing}

var framing = codec.Framing{Header: &codec.Header{Fields: [3]*codec.Field{&magicField, &codeField, &lengthField},
	First: DefaultMagic, Form: &form,
	Other: RuleMagic, Known: RuleTypeKnown, Direction: RuleTypeDirection, Size: RuleSizeCap, MaxRepeat: maxNames,
	RepeatRule:  RuleNamesCap,
	KnownDetail: "expected a packet type from 0x00 to 0x0d, got %#02x",
	ExtraDetail: "expected the end of the packet after the last argument, got %d more bytes",
	Element:     "name"}}

// types are the message types. The index of a type is its number.
var types = func() []*codec.Type {
	framing.Header.Link(packets)
	return codec.JoinTypes(packets)
}()
