package gearman

import (
	"time"

	"jobwire/codec"
)

// Roles of a peer.
const (
	Client codec.Role = 1 << iota
	Worker
	Admin
)

// Sections of the specification that declare the message types.
const (
	secBoth       = "Client/Worker"
	secClientReq  = "Client Requests"
	secClientRes  = "Client Responses"
	secWorkerReq  = "Worker Requests"
	secWorkerRes  = "Worker Responses"
	secAdmin      = "Administrative Protocol"
	secBeyond     = "beyond the specification"
	secAdminExtra = "beyond the specification: administration"
)

// MaxHandle is the maximum length of a job handle in bytes, without the NUL, which the specification includes
// in its limit of 64 ("Binary Packet").
const MaxHandle = 63

// Fields that several message types share. Their names are the labels in the example of the specification, if
// they occur there.
var (
	function = codec.Field{Name: "Function", Kind: codec.Text, Means: codec.Queue}
	unique   = codec.Field{Name: "Unique ID", Kind: codec.Text, Means: codec.UniqueID}
	workload = codec.Field{Name: "Workload", Means: codec.Payload}
	handle   = codec.Field{Name: "Job handle", Kind: codec.Text, Means: codec.JobID, Max: MaxHandle,
		MaxRule: RuleHandleLength, NonEmpty: RuleHandleEmpty, Assigned: true}
	response  = codec.Field{Name: "Response", Means: codec.Payload}
	data      = codec.Field{Name: "Data", Means: codec.Payload}
	option    = codec.Field{Name: "Option", Kind: codec.Text, Means: codec.OptionName, Examples: []string{"exceptions"}}
	known     = boolean("Known", codec.Known)
	running   = boolean("Running", codec.Running)
	numer     = number("Numerator")
	denom     = number("Denominator")
	reducer   = codec.Field{Name: "Reducer", Kind: codec.Text, Means: codec.Queue}
	unused    = codec.Field{Name: "Unused", Kind: codec.Text}
	clients   = number("Client count")
	submit    = []codec.Field{function, unique, workload}
	submitRed = []codec.Field{function, unique, reducer, unused, workload}
	result    = []codec.Field{handle, response}
	progress  = []codec.Field{handle, numer, denom}
	timeLimit = codec.Field{Name: "Timeout", Kind: codec.Number, Means: codec.TimeLimit, Unit: time.Millisecond,
		Rule: RuleDecimal}

	submitted = []string{"JOB_CREATED", "ERROR"}
)

func number(name string) codec.Field {
	return codec.Field{Name: name, Kind: codec.Number, Rule: RuleDecimal}
}

func boolean(name string, means codec.Meaning) codec.Field {
	return codec.Field{Name: name, Kind: codec.Number, Means: means, Hi: 1, Rule: RuleBoolean}
}

// within returns a field of a schedule with the limits lo and hi.
func within(name string, lo, hi uint64) codec.Field {
	return codec.Field{Name: name, Kind: codec.Number, Means: codec.Schedule, Lo: lo, Hi: hi, Rule: RuleRange}
}

// packets are the binary types in the order of their numbers. Number 5 is unused.
var packets = []codec.Type{
	{Code: 1, Name: "CAN_DO", Req: Worker, Section: secWorkerReq, Does: codec.Register, Fields: []codec.Field{function}},
	{Code: 2, Name: "CANT_DO", Req: Worker, Section: secWorkerReq, Does: codec.Unregister,
		Fields: []codec.Field{function}},
	{Code: 3, Name: "RESET_ABILITIES", Req: Worker, Section: secWorkerReq, Does: codec.Unregister},
	{Code: 4, Name: "PRE_SLEEP", Req: Worker, Section: secWorkerReq, Does: codec.Sleep},
	{Code: 6, Name: "NOOP", Res: Worker, Section: secWorkerRes, Does: codec.Wake},
	{Code: 7, Name: "SUBMIT_JOB", Req: Client, Section: secClientReq, Does: codec.Submit, Replies: submitted,
		Fields: submit},
	{Code: 8, Name: "JOB_CREATED", Res: Client, Section: secClientRes, Does: codec.Accept, Fields: []codec.Field{handle}},
	{Code: 9, Name: "GRAB_JOB", Req: Worker, Section: secWorkerReq, Does: codec.Ask,
		Replies: []string{"JOB_ASSIGN", "NO_JOB", "ERROR"}},
	{Code: 10, Name: "NO_JOB", Res: Worker, Section: secWorkerRes, Does: codec.NoJob},
	{Code: 11, Name: "JOB_ASSIGN", Res: Worker, Section: secWorkerRes, Does: codec.Assign,
		Fields: []codec.Field{handle, function, workload}},
	{Code: 12, Name: "WORK_STATUS", Req: Worker, Res: Client, Section: secWorkerReq, Does: codec.Status, Fields: progress},
	{Code: 13, Name: "WORK_COMPLETE", Req: Worker, Res: Client, Section: secWorkerReq, Does: codec.Complete,
		Fields: result},
	{Code: 14, Name: "WORK_FAIL", Req: Worker, Res: Client, Section: secWorkerReq, Does: codec.Fail,
		Fields: []codec.Field{handle}},
	{Code: 15, Name: "GET_STATUS", Req: Client, Section: secClientReq, Does: codec.Query,
		Replies: []string{"STATUS_RES", "ERROR"}, Fields: []codec.Field{handle}},
	{Code: 16, Name: "ECHO_REQ", Req: Client | Worker, Section: secBoth, Does: codec.Echo,
		Replies: []string{"ECHO_RES", "ERROR"}, Fields: []codec.Field{data}},
	{Code: 17, Name: "ECHO_RES", Res: Client | Worker, Section: secBoth, Does: codec.Answer, Fields: []codec.Field{data}},
	{Code: 18, Name: "SUBMIT_JOB_BG", Req: Client, Section: secClientReq, Does: codec.Submit, Background: true,
		Replies: submitted, Fields: submit},
	{Code: 19, Name: "ERROR", Res: Client | Worker, Section: secBoth, Does: codec.Refuse, Fields: []codec.Field{
		{Name: "Error code", Kind: codec.Text}, {Name: "Error text", Means: codec.Chosen}}},
	{Code: 20, Name: "STATUS_RES", Res: Client, Section: secClientRes, Does: codec.Answer,
		Fields: []codec.Field{handle, known, running, numer, denom}},
	{Code: 21, Name: "SUBMIT_JOB_HIGH", Req: Client, Section: secClientReq, Does: codec.Submit, Priority: codec.High,
		Replies: submitted, Fields: submit},
	{Code: 22, Name: "SET_CLIENT_ID", Req: Worker, Section: secWorkerReq, Does: codec.Configure,
		Fields: []codec.Field{{Name: "Client ID", Kind: codec.Text, Means: codec.WorkerID}}},
	{Code: 23, Name: "CAN_DO_TIMEOUT", Req: Worker, Section: secWorkerReq, Does: codec.Register,
		Fields: []codec.Field{function, timeLimit}},
	{Code: 24, Name: "ALL_YOURS", Req: Worker, Section: secWorkerReq},
	{Code: 25, Name: "WORK_EXCEPTION", Req: Worker, Res: Client, Section: secWorkerReq, Does: codec.Exception,
		Fields: []codec.Field{handle, {Name: "Exception", Means: codec.Payload}}},
	{Code: 26, Name: "OPTION_REQ", Req: Client | Worker, Section: secClientReq, Does: codec.Configure,
		Replies: []string{"OPTION_RES", "ERROR"}, Fields: []codec.Field{option}},
	{Code: 27, Name: "OPTION_RES", Res: Client | Worker, Section: secClientRes, Does: codec.Answer,
		Fields: []codec.Field{option}},
	{Code: 28, Name: "WORK_DATA", Req: Worker, Res: Client, Section: secWorkerReq, Does: codec.Data,
		Fields: []codec.Field{handle, data}},
	{Code: 29, Name: "WORK_WARNING", Req: Worker, Res: Client, Section: secWorkerReq, Does: codec.Warning,
		Fields: []codec.Field{handle, {Name: "Warning", Means: codec.Payload}}},
	{Code: 30, Name: "GRAB_JOB_UNIQ", Req: Worker, Section: secWorkerReq, Does: codec.Ask,
		Replies: []string{"JOB_ASSIGN_UNIQ", "NO_JOB", "ERROR"}},
	{Code: 31, Name: "JOB_ASSIGN_UNIQ", Res: Worker, Section: secWorkerRes, Does: codec.Assign,
		Fields: []codec.Field{handle, function, unique, workload}},
	{Code: 32, Name: "SUBMIT_JOB_HIGH_BG", Req: Client, Section: secClientReq, Does: codec.Submit, Background: true,
		Priority: codec.High, Replies: submitted, Fields: submit},
	{Code: 33, Name: "SUBMIT_JOB_LOW", Req: Client, Section: secClientReq, Does: codec.Submit, Priority: codec.Low,
		Replies: submitted, Fields: submit},
	{Code: 34, Name: "SUBMIT_JOB_LOW_BG", Req: Client, Section: secClientReq, Does: codec.Submit, Background: true,
		Priority: codec.Low, Replies: submitted, Fields: submit},
	{Code: 35, Name: "SUBMIT_JOB_SCHED", Req: Client, Section: secClientReq, Does: codec.Submit, Background: true,
		Replies: submitted, Fields: []codec.Field{function, unique,
			within("Minute", 0, 59), within("Hour", 0, 23), within("Day of month", 1, 31), within("Month", 1, 12),
			within("Day of week", 0, 6), workload}},
	{Code: 36, Name: "SUBMIT_JOB_EPOCH", Req: Client, Section: secClientReq, Does: codec.Submit, Background: true,
		Replies: submitted, Fields: []codec.Field{function, unique,
			{Name: "Epoch time", Kind: codec.Number, Means: codec.StartTime, Rule: RuleDecimal}, workload}},
	{Code: 37, Name: "SUBMIT_REDUCE_JOB", Req: Client, Section: secBeyond, Does: codec.Submit, Replies: submitted,
		Fields: submitRed},
	{Code: 38, Name: "SUBMIT_REDUCE_JOB_BACKGROUND", Req: Client, Section: secBeyond, Does: codec.Submit, Background: true,
		Replies: submitted, Fields: submitRed},
	{Code: 39, Name: "GRAB_JOB_ALL", Req: Worker, Section: secBeyond, Does: codec.Ask,
		Replies: []string{"JOB_ASSIGN_ALL", "JOB_ASSIGN_UNIQ", "NO_JOB", "ERROR"}},
	{Code: 40, Name: "JOB_ASSIGN_ALL", Res: Worker, Section: secBeyond, Does: codec.Assign,
		Fields: []codec.Field{handle, function, unique, reducer, workload}},
	{Code: 41, Name: "GET_STATUS_UNIQUE", Req: Client, Section: secBeyond, Does: codec.Query,
		Replies: []string{"STATUS_RES_UNIQUE", "ERROR"}, Fields: []codec.Field{unique}},
	{Code: 42, Name: "STATUS_RES_UNIQUE", Res: Client, Section: secBeyond, Does: codec.Answer,
		Fields: []codec.Field{unique, known, running, numer, denom, clients}},
}

// lines are the administrative commands and their replies. The command determines which replies are possible;
// a reply has the first type in the command's Replies whose form matches.
var lines = []codec.Type{
	{Word: "workers", Name: "workers", Req: Admin, Section: secAdmin, Does: codec.Query,
		Replies: []string{"workers-reply", "ERR", "error-line"}},
	{Word: "status", Name: "status", Req: Admin, Section: secAdmin, Does: codec.Query,
		Replies: []string{"status-reply", "ERR", "error-line"}},
	{Word: "maxqueue", Name: "maxqueue", Req: Admin, Section: secAdmin, Does: codec.Configure,
		Replies: []string{"OK", "ERR", "error-line"}, Fields: []codec.Field{
			adminFunction, size("Size"), size("Normal size"), size("Low size")}},
	{Word: "shutdown", Name: "shutdown", Req: Admin, Section: secAdmin, Does: codec.Shutdown,
		Replies: []string{"OK", "ERR", "error-line"}, Fields: []codec.Field{
			{Name: "Mode", Kind: codec.Text, Optional: true}}},
	{Word: "version", Name: "version", Req: Admin, Section: secAdmin, Does: codec.Query,
		Replies: []string{"ERR", "version-reply"}},

	{Word: "prioritystatus", Name: "prioritystatus", Req: Admin, Section: secAdminExtra, Does: codec.Query,
		Replies: []string{"prioritystatus-reply", "ERR", "error-line"}},
	{Word: "show jobs", Name: "show-jobs", Req: Admin, Section: secAdminExtra, Does: codec.Query,
		Replies: []string{"show-jobs-reply", "ERR", "error-line"}},
	{Word: "show unique jobs", Name: "show-unique-jobs", Req: Admin, Section: secAdminExtra, Does: codec.Query,
		Replies: []string{"ERR", "error-line", "show-unique-jobs-reply"}},
	{Word: "cancel job", Name: "cancel-job", Req: Admin, Section: secAdminExtra, Does: codec.Cancel,
		Replies: []string{"OK", "ERR", "error-line"}, Fields: []codec.Field{handle}},
	{Word: "getpid", Name: "getpid", Req: Admin, Section: secAdminExtra, Does: codec.Query,
		Replies: []string{"getpid-reply", "ERR", "error-line"}},
	{Word: "verbose", Name: "verbose", Req: Admin, Section: secAdminExtra, Does: codec.Query,
		Replies: []string{"verbose-reply", "ERR", "error-line"}},
	{Word: "create function", Name: "create-function", Req: Admin, Section: secAdminExtra, Does: codec.Configure,
		Replies: []string{"OK", "ERR", "error-line"}, Fields: []codec.Field{adminFunction}},
	{Word: "drop function", Name: "drop-function", Req: Admin, Section: secAdminExtra, Does: codec.Configure,
		Replies: []string{"OK", "ERR", "error-line"}, Fields: []codec.Field{adminFunction}},

	{Word: "OK", Name: "OK", Res: Admin, Section: secAdmin, Does: codec.Answer},
	{Word: "ERR", Name: "ERR", Res: Admin, Section: secAdminExtra, Does: codec.Refuse, Fields: []codec.Field{
		{Name: "Error code", Kind: codec.Text, NonEmpty: RuleAdminArgs},
		{Name: "Error text", Means: codec.Chosen, Optional: true}}},
	{Name: "error-line", Res: Admin, Section: secAdminExtra, Does: codec.Refuse, Varies: true,
		Free: &codec.FreeText{Unlike: unlikeError, Like: likeError},
		Fields: []codec.Field{{Name: "Error message", NonEmpty: RuleAdminReply, Means: codec.Chosen, Only: true,
			Examples: []string{
				"Error: unknown command", "unknown command \"x\"", "ERROR no such job", "invalid argument (2)"}}}},
	{Name: "workers-reply", Res: Admin, Section: secAdmin, Does: codec.Answer, Varies: true, Stop: ".",
		Repeat: []codec.Field{
			number("Descriptor"), {Name: "Address", Kind: codec.Text}, {Name: "Client ID", Kind: codec.Text, Term: " :"},
			{Name: "Functions"}}},
	{Name: "status-reply", Res: Admin, Section: secAdmin, Does: codec.Answer, Varies: true, Stop: ".", Sep: "\t",
		Repeat: []codec.Field{
			function, number("Total"), number("Running"), number("Available workers")}},
	{Name: "version-reply", Res: Admin, Section: secAdmin, Does: codec.Answer, Varies: true,
		Fields: []codec.Field{{Name: "Version", NonEmpty: RuleAdminArgs}}},
	{Name: "prioritystatus-reply", Res: Admin, Section: secAdminExtra, Does: codec.Answer, Varies: true, Stop: ".",
		Sep: "\t", Repeat: []codec.Field{
			function, number("High"), number("Normal"), number("Low"), number("Available workers")}},
	{Name: "show-jobs-reply", Res: Admin, Section: secAdminExtra, Does: codec.Answer, Varies: true, Stop: ".", Sep: "\t",
		Repeat: []codec.Field{
			handle, number("Retries"), boolean("Ignored", codec.Uninterpreted), boolean("Queued", codec.Uninterpreted)}},
	{Name: "show-unique-jobs-reply", Res: Admin, Section: secAdminExtra, Does: codec.Answer, Varies: true, Stop: ".",
		Repeat: []codec.Field{{Name: "Unique ID"}}},
	{Word: "OK", Name: "getpid-reply", Res: Admin, Section: secAdminExtra, Does: codec.Answer, Varies: true,
		Fields: []codec.Field{number("Process ID")}},
	{Word: "OK", Name: "verbose-reply", Res: Admin, Section: secAdminExtra, Does: codec.Answer, Varies: true,
		Fields: []codec.Field{{Name: "Level", Kind: codec.Text}}},
}

// adminFunction is the name of a function in a text command. It must not be empty.
var adminFunction = codec.Field{Name: "Function", Kind: codec.Text, Means: codec.Queue, NonEmpty: RuleAdminArgs}

// size returns a field for a queue limit; a value of zero or less means no limit.
func size(name string) codec.Field {
	return codec.Field{Name: name, Kind: codec.Signed, Optional: true, Rule: RuleDecimal}
}

// Framing fields, which the codec writes itself.
var (
	magicField  = codec.Field{Name: "Magic", Kind: codec.Literal, Width: 4}
	codeField   = codec.Field{Name: "Packet type", Kind: codec.Code, Width: 4}
	lengthField = codec.Field{Name: "Packet length", Kind: codec.Length, Width: 4}
	wordField   = codec.Field{Name: "Command", Kind: codec.Code}
	replyField  = codec.Field{Name: "Reply", Kind: codec.Code}
	stopField   = codec.Field{Name: "End of list", Kind: codec.Literal}
)

var types = table()

// unknownCommand represents a text command without a message type.
var unknownCommand = &codec.Type{Answers: []*codec.Type{codec.Named(types, "ERR"), errorLine}}

// Replies that have neither a word nor columns that identify them.
var (
	errorLine = codec.Named(types, "error-line") // an error message, whose form the specification does not give
	anyLine   = codec.Named(types, "version-reply")
	anyList   = codec.Named(types, "show-unique-jobs-reply")
)

var (
	packetForm = codec.Form{Any: []codec.RuleID{RuleMagic, RuleMagicDirection, RuleTypeKnown, RuleTypeDirection,
		RuleSizeCap},
		Missing: RuleArgsMissing, Extra: RuleArgsExtra, Trailing: RuleArgsTrailing}
	commandForm = codec.Form{Any: []codec.RuleID{RuleAdminCommand, RuleAdminLine},
		Missing: RuleAdminArgs, Extra: RuleAdminArgs, Trailing: RuleAdminSpacing, Spacing: RuleAdminSpacing}
	replyForm = codec.Form{Any: []codec.RuleID{RuleAdminAsked}, Missing: RuleAdminReply, Extra: RuleAdminReply,
		Trailing: RuleAdminReply}
)

var framing = codec.Framing{
	Header: &codec.Header{Fields: [3]*codec.Field{&magicField, &codeField, &lengthField},
		Magic: [2]string{codec.Peer: "\x00REQ", codec.Server: "\x00RES"},
		Form:  &packetForm, Unassigned: 1001,
		Other: RuleMagic, Reversed: RuleMagicDirection, Known: RuleTypeKnown, Direction: RuleTypeDirection, Size: RuleSizeCap,
		KnownDetail: "expected a known packet type, got %d",
		ExtraDetail: "expected no data for a type without arguments, got %d bytes"},
	Lines: &codec.Lines{Word: [2]*codec.Field{&wordField, &replyField}, Stop: &stopField, End: "\n",
		Scan:    [2]int{codec.Peer: codec.DefaultMaxLine, codec.Server: codec.DefaultMaxData},
		Unknown: []string{"ERR", "error-line"},
		Length:  RuleAdminLine, Command: RuleAdminCommand, Asked: RuleAdminAsked, Reply: RuleAdminReply,
		Mixed: RuleAdminReply},
}

// table joins packets and lines and sets the fields that all packets, or all lines, have in common.
func table() []*codec.Type {
	framing.Header.Link(packets)
	for i := range lines {
		t := &lines[i]
		if t.Sep == "" {
			t.Sep = " "
		}
		t.End, t.Ordered, t.Form = "\n", t.Req != 0, [2]*codec.Form{&commandForm, &replyForm}
	}
	return codec.JoinTypes(packets, lines)
}
