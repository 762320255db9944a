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

// Caps on what the draft leaves unlimited (RuleTextCap, RuleNamesCap).
const (
	MaxText  = 4096 // bytes of a job name, a duplicate key or a handle
	MaxNames = 1024 // job names in one worker_connect
)

// Job types ("Packet: job_create_req").
const (
	SyncWait   = 0 // the application waits; status and result are streamed to it
	Async      = 1 // the application gets a handle to ask with
	AsyncThrow = 2 // nobody asks for the result
)

// UnknownTime is a time remaining that nobody knows (danga.status.time-unknown).
const UnknownTime = math.MaxUint32

// ascii holds the bytes that a text may be made of: the NUL ends it.
var ascii = func() string {
	var b []byte
	for c := byte(1); c < 0x80; c++ {
		b = append(b, c)
	}
	return string(b)
}()

// Fields that several rows share.
var (
	jobName    = text("Job name", RuleNameEmpty)
	nextName   = following(jobName)
	args       = codec.Field{Name: "Args"}
	handle     = codec.Field{Name: "Job handle", Kind: codec.Text, Chars: ascii, Rule: RuleASCII, Max: MaxText, MaxRule: RuleTextCap, NonEmpty: RuleHandleEmpty, Assigned: true}
	resultCode = integer("Result code", 1)
	resultData = codec.Field{Name: "Result data"}
	progress   = []codec.Field{integer("Numerator", 4), integer("Denominator", 4), integer("Time remaining", 4)}
)

func text(name string, nonEmpty codec.RuleID) codec.Field {
	return codec.Field{Name: name, Kind: codec.Text, Chars: ascii, Rule: RuleASCII, Max: MaxText, MaxRule: RuleTextCap, NonEmpty: nonEmpty}
}

func integer(name string, width int) codec.Field {
	return codec.Field{Name: name, Kind: codec.Uint, Width: width, Rule: RuleInteger}
}

// following makes a field one of a list: a separator stands before it.
func following(f codec.Field) codec.Field {
	f.Lead = "\x00"
	return f
}

func optional(f codec.Field) codec.Field {
	f.Optional = true
	return f
}

// packets are the types in the order of their numbers.
var packets = []codec.Type{
	{Code: 0x00, Name: "noop", Res: Worker, Section: "Packet: noop"},
	{Code: 0x01, Name: "worker_connect", Req: Worker, Section: "Packet: worker_connect",
		Fields: []codec.Field{optional(jobName)}, Repeat: []codec.Field{nextName}},
	{Code: 0x02, Name: "worker_disconnect", Req: Worker, Section: "Packet: worker_disconnect"},
	{Code: 0x03, Name: "worker_sleep", Req: Worker, Section: "Packet: worker_sleep"},
	{Code: 0x04, Name: "job_create_req", Req: Application, Section: "Packet: job_create_req", Fields: []codec.Field{
		jobName, text("Duplicate key", ""), integer("Flags", 1),
		{Name: "Job type", Kind: codec.Uint, Width: 1, Hi: AsyncThrow, Rule: RuleJobType}, args}},
	{Code: 0x05, Name: "job_create_res", Res: Application, Section: "Packet: job_create_res", Fields: []codec.Field{optional(handle)}},
	{Code: 0x06, Name: "job_assign_req", Req: Worker, Section: "Packet: job_assign_req"},
	{Code: 0x07, Name: "job_assign_res", Res: Worker, Section: "Packet: job_assign_res", Fields: []codec.Field{jobName, args}},
	{Code: 0x08, Name: "job_status_announce", Req: Worker, Section: "Packet: job_status_announce", Fields: progress},
	{Code: 0x09, Name: "job_status_req", Req: Application, Section: "Packet: job_status_req", Fields: []codec.Field{handle}},
	{Code: 0x0a, Name: "job_status_res", Res: Application, Section: "Packet: job_status_res", Fields: progress},
	{Code: 0x0b, Name: "job_complete_announce", Req: Worker, Section: "Packet: job_complete_announce",
		Fields: []codec.Field{resultCode, resultData}},
	{Code: 0x0c, Name: "job_complete_req", Req: Application, Section: "Packet: job_complete_req", Fields: []codec.Field{handle}},
	{Code: 0x0d, Name: "job_complete_res", Res: Application, Section: "Packet: job_complete_res", Fields: []codec.Field{
		integer("Job status", 4), resultCode, resultData}},
}

// Framing rows, which the codec writes itself.
var (
	magicField  = codec.Field{Name: "Magic", Kind: codec.Literal, Width: 4}
	codeField   = codec.Field{Name: "Packet type", Kind: codec.Code, Width: 1}
	lengthField = codec.Field{Name: "Length", Kind: codec.Length, Width: 4}
)

// types are the rows. A row's index is its number.
var types = func() []*codec.Type {
	all := make([]*codec.Type, len(packets))
	for i := range packets {
		packets[i].Index, packets[i].Sep = i, "\x00"
		all[i] = &packets[i]
	}
	return all
}()
